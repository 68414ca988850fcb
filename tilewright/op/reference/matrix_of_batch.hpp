// One matrix of a batch, or one group, as a problem of its own.
#pragma once

#include <cstdint>
#include <vector>

#include "tilewright/op/gemm_view.hpp"
#include "tilewright/op/grouped_gemm.hpp"

namespace tilewright::op {

/// The single-matrix problem at one index of a batch, or of a group.
class MatrixOfBatch {
 public:
  MatrixOfBatch(const GemmView& batch, std::int64_t index);
  MatrixOfBatch(const MatrixOfBatch&) = delete;
  MatrixOfBatch& operator=(const MatrixOfBatch&) = delete;

  const GemmView& view() const { return view_; }

 private:
  /// Reduces the operands, which are at their capacity, to the interval of a group.
  void cut(const GroupInterval& group);
  /// Takes the operands of an independent group.
  void take_group(const GemmView& batch, std::int64_t index);

  std::vector<NamedTensor> tensors_;  // which view_.tensors refers to
  GemmView view_;
};

/// Extents of D of one matrix of a batch, or of a group.
struct DExtents {
  std::int64_t rows, columns;
};
DExtents d_extents(const GemmView& gemm, std::int64_t index);

/// The matrices of the batch, or the groups, whose D is not empty.
std::vector<std::int64_t> nonempty_matrices(const GemmView& gemm);

/// All matrices of a batch, or the groups whose D is not empty: the others have no results of reductions.
std::vector<std::int64_t> computed_matrices(const GemmView& gemm);

}  // namespace tilewright::op
