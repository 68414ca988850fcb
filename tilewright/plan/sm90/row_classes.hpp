// Classes of the rows of D, for an im2col A whose coordinates are divided: the gradient of a convolution with a stride.
#pragma once

#include <cstdint>
#include <vector>

#include "tilewright/op/gemm_view.hpp"
#include "tilewright/plan/sm90/repacking.hpp"

namespace tilewright::plan {

/// The most classes that a kernel has parameters for: those of a stride of 3 along both axes. Kernels for those of a
/// stride of 2 have room for op::kFewRowClasses, so that their parameters fit in 4 KB.
inline constexpr int kMaxRowClasses = 9;

/// Every `stride`-th tap of an axis, from tap `first` on.
struct TapSteps {
  std::int64_t first = 0, stride = 1;
};

/// The rows of D whose positions have the same remainders modulo the divisors of A's axes. Every tap either meets all
/// of them at whole coordinates, or none, so that their A is an im2col matrix without divisors over every other tap or
/// so, and no product is with a zero that the division puts there. (An output pixel of a gradient belongs to one
/// class.)
struct RowClass {
  op::OperandView a;  // im2col; has no columns if no tap meets the class
  op::OperandView b;  // im2col, without taps: the rows of B of these taps
  op::OperandView d;  // im2col, without taps: the rows of D
  TapSteps h, w;      // the taps of the class
  std::int64_t m() const { return d.im2col.rows(); }
  std::int64_t k() const { return a.im2col.columns(); }
};

/// The number of classes of an operand, including those without rows: 1 unless its coordinates are divided.
std::int64_t row_class_count(const op::OperandView& a);

/// The extents that the cost model estimates with: those of a matrix of the batch or of a group of the mean size, or
/// the mean of the classes of rows, which count as a batch.
struct MeanExtents {
  std::int64_t m, n, k, batches;
};
MeanExtents mean_extents(const op::GemmView& view);

/// The classes that have rows, those with the longest K first. Their rows cover D, each row once.
/// @pre A is an im2col matrix whose axes have steps of 1, and one matrix; B and D are matrices with contiguous rows
std::vector<RowClass> row_classes(const op::GemmView& view);

/// B of a class that is not empty, in a repacked copy of B at `offset` of the workspace: an im2col matrix whose rows
/// are the columns of B, and whose columns are the taps of the class. @pre repacked_pieces(view.b), and the copy is
/// K-major
op::OperandView class_of_copy(const RowClass& row_class, const op::GemmView& view, const RepackedCopy& copy,
                              std::int64_t offset);

}  // namespace tilewright::plan
