// Many GEMMs of different sizes in one launch, whose sizes are in device memory.
#pragma once

#include <cstdint>
#include <vector>

#include "tilewright/op/gemm.hpp"
#include "tilewright/op/gemm_view.hpp"
#include "tilewright/op/group_summary.hpp"
#include "tilewright/op/grouped_mode.hpp"

namespace tilewright::op {

struct GroupedGemm {
  /// The operands at their capacity, which is the extent that the host knows. Stacked operands are single matrices;
  /// the others are batches with one matrix for each group, or one matrix for all:
  ///   ragged_m: A (T, k), B (groups, k, n), C and D (T, n)
  ///   ragged_n: A (groups, m, k), B (k, T), C and D (m, T)
  ///   ragged_k: A (m, T), B (T, n), C and D (groups, m, n)
  ///   masked_m: A (groups, max_m, k), B (groups, k, n), C and D (groups, max_m, n)
  ///   masked_n: A (groups, m, k), B (groups, k, max_n), C and D (groups, m, max_n)
  ///   masked_k: A (groups, m, max_k), B (groups, max_k, n), C and D (groups, m, n)
  ///   independent: pointer arrays A (groups, max_m, max_k), B (groups, max_k, max_n), C and D (groups, max_m, max_n),
  ///     whose declared alignment holds for the leading dimensions of the groups, too; their own are not used
  /// The tensors of the epilogue, and the results of its reductions, have the extents of a problem at its capacity,
  /// too. Those with a ragged mode are single matrices; the others are batches with one matrix for each group, or one
  /// matrix for all.
  Gemm gemm;
  GroupedMode mode = GroupedMode::ragged_m;
  /// The end of each group along the mode that differs, as packed s32. In a ragged mode group g has the rows (or
  /// columns) from ends[g-1] to ends[g], and group 0 begins at 0; in a masked mode it has the first ends[g]. Each is
  /// from 0 to the capacity, and those of a ragged mode do not decrease. They are not checked: kernels clamp them, so
  /// that they access nothing outside the operands. Rows and columns of D that belong to no group are not written, and
  /// neither are results of reductions to which no element of D contributes.
  /// Independent groups have three ends each, (groups, 3): their m, n and k.
  Tensor ends;
  /// Only of independent groups: the leading dimensions of A, B, C and D of each, in elements, as packed s32 (groups,
  /// 4). That of C is not used if the call does not read C.
  Tensor leading_dimensions = {};
  /// What the host expects of the sizes, for the ranking and the tuning records. Calls with other expectations may run
  /// other kernels, whose results differ as those of any two kernels.
  GroupSummary expected = {};

  std::int64_t groups() const { return ends.shape.rank() >= 1 ? ends.shape[0] : 0; }
  /// Whether D is empty or there are no groups, so that there is nothing to compute.
  bool is_empty() const { return gemm.m() == 0 || gemm.n() == 0 || groups() == 0; }

  bool operator==(const GroupedGemm&) const = default;
};

/// The ends of `groups` groups at `address`, for GroupedGemm::ends.
Tensor group_ends(std::uint64_t address, std::int64_t groups, MemoryDevice device = {});

/// The extents of independent groups, for GroupedGemm::ends, and their leading dimensions.
Tensor group_extents(std::uint64_t address, std::int64_t groups, MemoryDevice device = {});
Tensor group_leading_dimensions(std::uint64_t address, std::int64_t groups, MemoryDevice device = {});

/// "offsets", "counts" or "extents": the name of GroupedGemm::ends in lists of operands and in messages.
std::string_view ends_name(GroupedMode mode);

/// Refuses what validate(const Gemm&) refuses; ends that are not packed s32; batches of stacked operands, and batches
/// of other operands whose number of matrices is neither 1 nor that of the groups; interleaved matrices; pointer arrays
/// of stacked operands, and of A and B in masked_k; independent groups whose operands are no pointer arrays, or whose
/// leading dimensions are not packed s32; and gated epilogues if n differs between the groups.
Support validate(const GroupedGemm& grouped);

/// The part of validate() that concerns the epilogue of a problem with groups of `mode`.
Support check_grouped_epilogue(GroupedMode mode, const Epilogue& epilogue);

/// The operands: A, B, C, D, the ends, the leading dimensions of independent groups, then the auxiliary tensors in the
/// problem's order.
std::vector<Operand> operands(GroupedGemm& grouped);
std::vector<ConstOperand> operands(const GroupedGemm& grouped);

/// The view of the problem at its capacity. It refers to `grouped`. @pre validate(grouped)
GemmView view(const GroupedGemm& grouped);

/// The rows, columns or elements of k of a group: those from `begin` to `end` of the stack, or of its own matrix.
struct GroupInterval {
  std::int64_t begin = 0, end = 0;

  std::int64_t size() const { return end - begin; }
  bool operator==(const GroupInterval&) const = default;
};

/// The interval of group `index`, clamped to the capacity as kernels do. @pre the view has groups, and the ends are in
/// host memory
GroupInterval group_interval(const GemmView& view, std::int64_t index);

/// An independent group: its extents, clamped to the capacity as kernels do, and its leading dimensions.
struct IndependentGroup {
  std::int64_t m = 0, n = 0, k = 0;
  std::int64_t lda = 0, ldb = 0, ldc = 0, ldd = 0;

  bool operator==(const IndependentGroup&) const = default;
};

/// @pre the groups of the view are independent, and their numbers are in host memory
IndependentGroup independent_group(const GemmView& view, std::int64_t index);

/// Matrix `index` of operand `role`, 'A' to 'D', with the extents and the leading dimension of the group. The pointer
/// array is read. @pre as independent_group()
Tensor matrix_of_group(const GemmView& view, char role, std::int64_t index);

}  // namespace tilewright::op
