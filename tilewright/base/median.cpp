#include "tilewright/base/median.hpp"

#include <algorithm>

#include "tilewright/base/error.hpp"

namespace tilewright {

double median(std::vector<double> values) {
  TILEWRIGHT_CHECK(!values.empty(), "the median of no values");
  std::ranges::sort(values);
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

}  // namespace tilewright
