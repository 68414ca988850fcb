// Split-K in parallel mode: a GEMM as GEMMs that each write partial sums to a workspace, and the reduction of these.
// Problems whose D is small and whose K is large have too few tiles to occupy a GPU; their parts multiply the tiles.
#pragma once

#include <cstdint>
#include <vector>

#include "tilewright/op/reduce_split_k.hpp"

namespace tilewright::op {

/// Run the GEMMs in any order, then the reduction. Each problem may be prepared, tuned and repeated by itself; the
/// partial sums may be reduced more than once, with different epilogues.
struct SplitK {
  /// None if the product is not read (k or alpha is 0). Else a GEMM whose batch mode is the outer mode of K, and, if
  /// the last part is shorter, a second GEMM for it. Their D is the partial sums, in the accumulator type.
  std::vector<Gemm> gemms;
  /// Has the caller's C, D, scalars, epilogue and tensors.
  ReduceSplitK reduction;
  std::int64_t k_part = 0;  // extent along K of every part but the last

  /// Bytes of the partial sums: parts packed one after the other, each with the layout of D.
  std::int64_t workspace_bytes() const { return span_bytes(reduction.parts); }
};

/// How K is split. `count` may be less than the number of parts asked for: k_part is rounded up, so that the parts of
/// operands that are contiguous along K have the alignment of the whole operand, at most 16 bytes.
struct KParts {
  std::int64_t count = 0;   // 0 if the product is not read
  std::int64_t k_part = 0;  // of every part but the last
  std::int64_t k_last = 0;
  bool operator==(const KParts&) const = default;
};

/// Splits K into at most `parts` parts. @pre validate(gemm), parts >= 1
KParts split_k(const Gemm& gemm, std::int64_t parts);

/// Splits the problem; the partial sums are at `workspace`, on the device of D. It is 0 to learn workspace_bytes(), and
/// must be aligned to 16 bytes for the fastest kernels.
/// Refuses a batch, less than one part, and partial sums whose bytes do not fit 63 bits. @pre validate(gemm)
Result<SplitK> split_k(const Gemm& gemm, std::int64_t parts, std::uint64_t workspace);

}  // namespace tilewright::op
