// Repacking of sm90_gemm operands. An operand that TMA cannot load, or whose major mode wgmma does not support, is
// first copied to the workspace. This header gives the layout of the copy and its size.
#pragma once

#include <cstdint>
#include <optional>

#include "tilewright/arch/wgmma_smem.hpp"
#include "tilewright/op/gemm_view.hpp"

namespace tilewright::plan {

/// Whether TMA cannot load the operand because of its alignment, or wgmma cannot read its major mode. `is_along_k` says
/// that the operand is K-major. wgmma reads 2-byte elements in either major mode and all others K-major only.
bool must_be_repacked(const op::TensorSignature& tensor, bool is_along_k);

/// The repacked copy of an operand: the lines of each distinct matrix of the batch, one after another.
struct RepackedCopy {
  std::int64_t contiguous = 1, lines = 1, matrices = 1;  // elements per line, lines per matrix, number of matrices
  std::int64_t pitch = 0;                                // bytes from one line to the next, a multiple of 128

  /// Size of the copy in bytes, saturated at 2^61 to avoid overflow.
  std::int64_t bytes() const;
};

/// The layout of the repacked copy of an operand of `mn` x `k` elements with the given major mode.
RepackedCopy repacked_copy(const op::Tensor& tensor, arch::Major major, std::int64_t mn, std::int64_t k);

/// Size in bytes of the operand's elements. A matrix that is broadcast over the batch counts once.
double bytes_to_copy(const op::Tensor& tensor);

/// Bytes that repacking reads and writes. Short lines count as longer ones that would take the same time, unless the
/// operand is transposed.
double moved_bytes(const op::Tensor& tensor, const RepackedCopy& copy, bool is_transposed);

/// The pieces of K of an operand that is repacked: one, or those of a matrix whose K has two strides, such as the
/// filter of dgrad, whose K is (tap, filter).
struct RepackedPieces {
  std::int64_t count = 1;
  std::int64_t ld = 0;    // elements from one line to the next
  std::int64_t step = 0;  // elements from one piece to the next, or from one matrix of the batch to the next
};
/// Nothing for an im2col matrix that has other taps or more strides, or whose pieces are no multiples of 16 bytes.
std::optional<RepackedPieces> repacked_pieces(const op::OperandView& operand);

/// Bytes of shared memory that a warp needs for transposing; see copy/transposed_lines.cuh.
int transposing_bytes(int element_bytes);

}  // namespace tilewright::plan
