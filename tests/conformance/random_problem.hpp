// Problems drawn at random: types, layouts, extents, leading dimensions, addresses, batches, scalars.
#pragma once

#include <cstdint>
#include <string>

#include "tests/conformance/guarded_operands.hpp"

namespace tilewright::conformance {

struct RandomProblem {
  std::uint64_t seed = 0;
  op::Gemm shape;  // addresses are placeholders; without a C where that is 0
  Placements placements{Placement{}};
  bool tries_another = false;  // kernel than the one ranked first
  std::uint64_t which = 0;     // a number to choose it by
};

/// The same seed draws the same problem everywhere. M and N are at most `largest`, K four times as much.
RandomProblem draw_problem(std::uint64_t seed, std::int64_t largest);

/// One line about everything that was drawn.
std::string to_string(const RandomProblem& problem);

}  // namespace tilewright::conformance
