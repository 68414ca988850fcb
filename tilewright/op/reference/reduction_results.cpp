#include "tilewright/op/reference/reduction_results.hpp"

#include <algorithm>
#include <cmath>

#include "tilewright/op/reference/accumulators.hpp"

namespace tilewright::op {

double reduce(const Epilogue& epilogue, Reduction reduction, double x, double y) {
  const double value = combine(reduction, x, y);
  return epilogue.compute == DType::s32 ? wrap_to_s32(value) : value;
}

void BoundedReduction::add(const Epilogue& epilogue, Reduction reduction, const BoundedValue& x) {
  value_ = reduce(epilogue, reduction, value_, x.value);
  magnitude_ += std::fabs(x.value);
  error_ = reduction == Reduction::sum ? error_ + x.error : std::max(error_, x.error);
  ++count_;
}

BoundedValue BoundedReduction::result(const Epilogue& epilogue, Reduction reduction) const {
  if (reduction != Reduction::sum || epilogue.compute == DType::s32) return {value_, error_};
  const double additions = static_cast<double>(count_) + 2.0;
  const Roundoff unit = roundoff(epilogue.compute);
  return {value_, error_ + additions * (2.0 * unit.relative * (magnitude_ + error_) + unit.absolute)};
}

}  // namespace tilewright::op
