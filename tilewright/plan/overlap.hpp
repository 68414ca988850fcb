// The time of phases that overlap, for the cost models.
#pragma once

#include <algorithm>
#include <cmath>

namespace tilewright::plan {

/// The time of two phases that overlap: the p-norm of their times. The shorter one hides behind the longer one, the
/// less so the closer they are: of two equal ones 2^(1/p) times the time of one is taken. Large powers approach the
/// maximum.
inline double overlapped(double a, double b, double power) {
  const double longer = std::max(a, b), shorter = std::min(a, b);
  if (longer <= 0) return longer;
  return longer * std::pow(1 + std::pow(shorter / longer, power), 1 / power);
}

}  // namespace tilewright::plan
