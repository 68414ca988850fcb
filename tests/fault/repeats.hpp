// The number of repetitions of random tests. TILEWRIGHT_TEST_REPEATS multiplies the number used in CI, for a thorough
// run: "TILEWRIGHT_TEST_REPEATS=20 build/bin/test_fault".
#pragma once

#include <cstdlib>

namespace tilewright {

inline int repeats(int in_ci) {
  const char* const factor = std::getenv("TILEWRIGHT_TEST_REPEATS");
  return factor == nullptr ? in_ci : in_ci * std::atoi(factor);
}

}  // namespace tilewright
