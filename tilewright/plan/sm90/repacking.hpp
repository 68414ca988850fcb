// Operands that sm90_gemm first copies to its workspace, since TMA cannot reach them or wgmma does not read them as
// they lie: how the copies lie, and what they cost.
#pragma once

#include <cstdint>

#include "tilewright/arch/wgmma_smem.hpp"
#include "tilewright/op/gemm.hpp"

namespace tilewright::plan {

/// Whether TMA does not reach an operand, or wgmma not read it, as it lies along K or not. wgmma reads elements of 2
/// bytes either way.
bool must_be_repacked(const op::TensorSignature& tensor, bool is_along_k);

/// A copy: lines one after another, those of all matrices that differ.
struct RepackedCopy {
  std::int64_t contiguous = 1, lines = 1, matrices = 1;  // elements of a line, lines of a matrix
  std::int64_t pitch = 0;                                // bytes from a line to the next, whole 128

  /// At most 2^61: more is not told apart.
  std::int64_t bytes() const;
};

/// The copy of an operand of `mn` x `k` elements, along K or along M or N.
RepackedCopy repacked_copy(const op::Tensor& tensor, arch::Major major, std::int64_t mn, std::int64_t k);

/// Bytes of an operand's elements, each matrix that serves a whole batch once.
double bytes_to_copy(const op::Tensor& tensor);

/// Bytes of shared memory in which a warp transposes: copy/transposed_lines.cuh.
int transposing_bytes(int element_bytes);

}  // namespace tilewright::plan
