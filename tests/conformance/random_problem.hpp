// Random problems: types, layouts, extents, leading dimensions, addresses, batches and scalars.
#pragma once

#include <cstdint>
#include <string>

#include "tests/conformance/guarded_operands.hpp"

namespace tilewright::conformance {

struct RandomProblem {
  std::uint64_t seed = 0;
  op::Gemm shape;  // addresses are placeholders; no C if its address is 0
  Placements placements{Placement{}};
  bool tries_another = false;  // also run a kernel other than the one ranked first
  std::uint64_t which = 0;     // a random number that selects this kernel
};

/// The same seed gives the same problem on every platform. M and N are at most `largest`, K at most 4 * `largest`.
RandomProblem draw_problem(std::uint64_t seed, std::int64_t largest);

/// One line that describes the problem and the placements.
std::string to_string(const RandomProblem& problem);

}  // namespace tilewright::conformance
