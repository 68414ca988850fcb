// Converts a benchmark's problem to the library's op::Gemm.
#pragma once

#include <array>
#include <cstdint>

#include "problem.hpp"

namespace tilewright::bench {

/// The device addresses of the operands of one call.
struct Addresses {
  std::uint64_t a = 0, b = 0, d = 0;
  std::uint64_t plain = 0;                               // D of plain(problem): the memory of D or of the product
  std::uint64_t c = 0;                                   // 0 if the epilogue does not read C
  std::uint64_t product = 0;                             // stored_product(): the memory of D, or a separate buffer
  std::array<std::uint64_t, kMaxCaseTensors> tensors{};  // in the order of stored_tensors()
};

/// The problem on device memory, with alpha = 1 and the beta of its epilogue case, or 0 without one. Refused if the
/// library cannot express or compute it. Without an epilogue, D is at Addresses::plain.
Result<op::Gemm> gemm(const Problem& problem, const Addresses& addresses, const op::MemoryDevice& device);

/// The library's tensor for a matrix or a batch of matrices.
op::Tensor tensor(std::uint64_t address, const StoredMatrix& stored, const op::MemoryDevice& device);

}  // namespace tilewright::bench
