// The only place where a problem becomes arguments of the library.
#pragma once

#include <array>
#include <cstdint>

#include "problem.hpp"

namespace tilewright::bench {

/// Where the operands of one call are.
struct Addresses {
  std::uint64_t a = 0, b = 0, d = 0;
  std::uint64_t plain = 0;                                // D of plain(problem): D, or the product's memory
  std::uint64_t c = 0;                                    // where the epilogue reads it
  std::uint64_t product = 0;                              // stored_product(): D, or memory of its own
  std::array<std::uint64_t, kMostCaseTensors> tensors{};  // of stored_tensors(), in that order
};

/// The problem over memory of the device, alpha = 1, beta as its epilogue's row says and 0 without one; or why the
/// library cannot say or compute it. Without an epilogue its D is at Addresses::plain.
Result<op::Gemm> gemm(const Problem& problem, const Addresses& addresses, const op::MemoryDevice& device);

/// One matrix, or a batch of them, as the library's tensor.
op::Tensor tensor(std::uint64_t address, const StoredMatrix& stored, const op::MemoryDevice& device);

}  // namespace tilewright::bench
