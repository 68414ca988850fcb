// Values with bounds on the errors of their computation, and how operations pass errors on.
#pragma once

#include <array>

#include "tilewright/base/dtype.hpp"
#include "tilewright/op/epilogue.hpp"

namespace tilewright::op {

/// A value, and a bound on the error of its computation in the GPU's types.
struct BoundedValue {
  double value = 0.0;
  double error = 0.0;
};

/// The rounding error of a type: relative to the value, plus an absolute term for flushed subnormals.
struct Roundoff {
  double relative = 0.0;
  double absolute = 0.0;
};
Roundoff roundoff(DType type);

/// The value, with the additional error of `units` roundings.
BoundedValue rounded(BoundedValue x, const Roundoff& unit, double units = 1.0);
/// `x` rounded to the type: inputs within the error of x may be rounded to other values.
BoundedValue converted(DType type, const BoundedValue& x);
/// The result of an operation: the errors of its inputs, passed on, and its own.
BoundedValue apply(EpilogueOp op, const std::array<BoundedValue, 3>& in, const Roundoff& unit);

}  // namespace tilewright::op
