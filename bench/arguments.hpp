// The only place where a problem becomes arguments of the library.
#pragma once

#include <cstdint>

#include "problem.hpp"

namespace tilewright::bench {

/// Where the operands of one call are.
struct Addresses {
  std::uint64_t a = 0, b = 0, d = 0;
};

/// The problem over memory of the GPU `ordinal`, alpha = 1, beta = 0; or why the library cannot say or compute it.
Result<op::Gemm> gemm(const Problem& problem, const Addresses& addresses, int ordinal);

}  // namespace tilewright::bench
