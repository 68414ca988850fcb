// Grouped GEMMs: what is refused, their views and keys, and the reference against a GEMM of each group.
#include "tilewright/op/grouped_gemm.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "tilewright/op/epilogue_text.hpp"
#include "tilewright/op/fill.hpp"
#include "tilewright/op/problem.hpp"

namespace tilewright::op {
namespace {

using testing::HasSubstr;

constexpr std::uint64_t kApart = std::uint64_t{1} << 40;

Tensor at(int number, DType type, std::int64_t rows, std::int64_t columns) {
  return matrix(kApart * static_cast<std::uint64_t>(number), type, rows, columns);
}

/// Five groups, of shapes without memory of their own.
GroupedGemm grouped_of(GroupedMode mode) {
  constexpr std::int64_t kGroups = 5;
  const bool stacks_a = mode == GroupedMode::ragged_m || mode == GroupedMode::ragged_k;
  const bool stacks_b = mode == GroupedMode::ragged_n || mode == GroupedMode::ragged_k;
  const bool stacks_d = mode == GroupedMode::ragged_m || mode == GroupedMode::ragged_n;
  GroupedGemm grouped{.gemm = {}, .mode = mode, .ends = group_ends(9 * kApart, kGroups)};
  grouped.gemm.a = at(1, DType::f16, 64, 32);
  grouped.gemm.b = at(2, DType::f16, 32, 48);
  grouped.gemm.d = at(3, DType::f16, 64, 48);
  if (!stacks_a) grouped.gemm.a = batched(grouped.gemm.a, kGroups);
  if (!stacks_b) grouped.gemm.b = batched(grouped.gemm.b, kGroups);
  if (!stacks_d) grouped.gemm.d = batched(grouped.gemm.d, kGroups);
  grouped.gemm.c = grouped.gemm.d;
  return grouped;
}

constexpr std::array kModes{GroupedMode::ragged_m, GroupedMode::ragged_n, GroupedMode::ragged_k,
                            GroupedMode::masked_m, GroupedMode::masked_n, GroupedMode::masked_k};

TEST(GroupedGemm, EveryModeIsValidAndHasAViewAtItsCapacity) {
  for (const GroupedMode mode : kModes) {
    SCOPED_TRACE(name(mode));
    const GroupedGemm grouped = grouped_of(mode);
    ASSERT_TRUE(validate(grouped)) << validate(grouped).reason();
    const GemmView all = view(grouped);
    EXPECT_EQ(all.m(), 64);
    EXPECT_EQ(all.n(), 48);
    EXPECT_EQ(all.k(), 32);
    EXPECT_EQ(all.batch(), 5);
    EXPECT_EQ(describe(all).groups, mode);
    EXPECT_EQ(all.check_strided("a family").reason(),
              fmt::format("a family needs matrices of one size, but the problem has groups ({})", name(mode)));
    EXPECT_THAT(to_string(Signature(describe(all))), HasSubstr(fmt::format("groups={}", name(mode))));
    EXPECT_THAT(problem_class(Problem(grouped)), HasSubstr("5 groups in 64x48x32 gemm"));
  }
}

TEST(GroupedGemm, SignaturesWithoutGroupsHaveNoTextForThem) {
  EXPECT_THAT(to_string(Signature(describe(grouped_of(GroupedMode::ragged_m).gemm))),
              testing::Not(HasSubstr("groups")));
}

TEST(GroupedGemm, ListsItsOperands) {
  GroupedGemm grouped = grouped_of(GroupedMode::ragged_m);
  std::vector<std::string> names;
  for (const ConstOperand& operand : operands(std::as_const(grouped))) names.emplace_back(operand.name);
  EXPECT_THAT(names, testing::ElementsAre("A", "B", "C", "D", "offsets"));
  grouped = grouped_of(GroupedMode::masked_m);
  EXPECT_EQ(operands(grouped)[4].name, "counts");
  EXPECT_EQ(operands(grouped)[4].tensor, &grouped.ends);
  EXPECT_TRUE(operands(grouped)[3].is_partly_written);
}

TEST(GroupedGemm, StackedModesThatAreContiguousHaveNoAlignment) {
  GroupedGemm grouped = grouped_of(GroupedMode::ragged_m);
  EXPECT_EQ(describe(view(grouped)).a.alignment, 8);
  EXPECT_EQ(describe(view(grouped)).d.alignment, 8);
  grouped.gemm.a = matrix(kApart, DType::f16, 64, 32, MatrixLayout::column_major);
  EXPECT_EQ(describe(view(grouped)).a.alignment, 1);
  EXPECT_EQ(describe(view(grouped_of(GroupedMode::ragged_n))).d.alignment, 1);
  EXPECT_EQ(describe(view(grouped_of(GroupedMode::masked_n))).b.alignment, 8);
  EXPECT_EQ(describe(view(grouped_of(GroupedMode::masked_n))).d.alignment, 1) << "its lines end where groups do";
  EXPECT_EQ(describe(view(grouped_of(GroupedMode::masked_m))).d.alignment, 8);
}

TEST(GroupedGemm, RefusesEndsThatAreNotPackedIntegers) {
  GroupedGemm grouped = grouped_of(GroupedMode::ragged_m);
  grouped.ends.dtype = DType::f32;
  EXPECT_EQ(validate(grouped).reason(), "'offsets' must be s32, got f32");
  grouped = grouped_of(GroupedMode::masked_m);
  grouped.ends.stride = {2};
  EXPECT_EQ(validate(grouped).reason(), "'counts' must be contiguous, but its stride is 2");
  grouped.ends = at(9, DType::s32, 5, 1);
  EXPECT_EQ(validate(grouped).reason(), "'counts' must have one mode, with one number for each group, got (5,1)");
  grouped = grouped_of(GroupedMode::ragged_m);
  grouped.ends.address = 0;
  EXPECT_EQ(validate(grouped).reason(), "'offsets' is a null pointer");
  grouped.ends = {};
  EXPECT_EQ(validate(grouped).reason(), "'offsets' is missing: set GroupedGemm::ends to group_ends(...)");
}

TEST(GroupedGemm, RefusesBatchesThatAreNotThoseOfItsMode) {
  GroupedGemm grouped = grouped_of(GroupedMode::ragged_m);
  grouped.gemm.d = batched(grouped.gemm.d, 5);
  EXPECT_EQ(validate(grouped).reason(),
            "D is a batch of 5, but in ragged_m it is one matrix in which the groups are stacked");
  grouped = grouped_of(GroupedMode::ragged_m);
  grouped.gemm.b = batched(at(2, DType::f16, 32, 48), 4);
  EXPECT_EQ(validate(grouped).reason(), "B has a batch of 4, but there are 5 groups");
  grouped.gemm.b = at(2, DType::f16, 32, 48);
  EXPECT_TRUE(validate(grouped)) << "one B for all groups: " << validate(grouped).reason();
  grouped = grouped_of(GroupedMode::ragged_m);
  grouped.gemm.a = pointer_array(grouped.gemm.a, kApart, 1);
  EXPECT_EQ(validate(grouped).reason(),
            "A is an array of pointers, but in ragged_m it is one matrix in which the groups are stacked");
  EXPECT_EQ(validate(GroupedGemm{.gemm = {}, .mode = GroupedMode::none, .ends = {}}).reason(),
            "a grouped_gemm needs a mode such as ragged_m");
}

TEST(GroupedGemm, RefusesPointerArraysThatAreMaskedAlongK) {
  GroupedGemm grouped = grouped_of(GroupedMode::masked_k);
  grouped.gemm.b = pointer_array(matrix_at(grouped.gemm.b, 0), kApart, 5);
  EXPECT_EQ(validate(grouped).reason(), "B is an array of pointers, but in masked_k it is a batch with one stride");
}

/// The summary changes what is ranked and remembered, and not the code.
TEST(GroupedGemm, ExpectedSizesArePartOfTheKeyAndOfEstimates) {
  const GroupedGemm unknown = grouped_of(GroupedMode::masked_m);
  GroupedGemm expected = unknown;
  expected.expected = expect_mean(GroupedMode::masked_m, 5, 9);
  EXPECT_EQ(view(unknown).mean_m(), 64);
  EXPECT_EQ(view(expected).mean_m(), 9);
  EXPECT_EQ(view(expected).mean_n(), 48);
  EXPECT_EQ(view(expected).spread_m(), GroupSpread::unknown);
  EXPECT_EQ(view(expected).spread_n(), GroupSpread::equal);
  EXPECT_EQ(describe(view(expected)), describe(view(unknown)));
  EXPECT_NE(key(Problem(expected)), key(Problem(unknown)));
  EXPECT_TRUE(check_same_extents(key(Problem(expected)), key(Problem(unknown)))) << "a prepared call takes both";
  EXPECT_THAT(problem_class(Problem(expected)), HasSubstr("5 groups in 64x48x32 expects 5 groups of 9 (mean) gemm"));
  const GroupedGemm stacked = grouped_of(GroupedMode::ragged_m);
  EXPECT_EQ(view(stacked).mean_m(), 13) << "of 64 rows";
  EXPECT_EQ(view(stacked).spread_m(), GroupSpread::unknown);
}

TEST(GroupSummary, CountsGroupsThatAreNotEmptyAndRoundsUnequalSizes) {
  const std::vector<std::int64_t> equal{512, 0, 512, 512}, unequal{100, 101, 99, 0, 700};
  GroupSummary summary = summarize(GroupedMode::ragged_m, equal);
  EXPECT_EQ(summary, (GroupSummary{.groups = 3, .m = 512, .spread_m = GroupSpread::equal}));
  EXPECT_EQ(to_string(summary), "3 groups of 512 (equal)");
  summary = summarize(GroupedMode::ragged_n, unequal);
  EXPECT_EQ(summary, (GroupSummary{.groups = 4, .n = 256, .spread_n = GroupSpread::unequal, .skew = 2}));
  EXPECT_EQ(to_string(summary), "4 groups of 256 (largest 4)");
  EXPECT_EQ(summarize(GroupedMode::masked_k, unequal).k, 256);
  EXPECT_EQ(summarize(GroupedMode::ragged_m, std::vector<std::int64_t>{0, 0}), GroupSummary());
  EXPECT_EQ(to_string(GroupSummary()), "");
  const std::vector<std::array<std::int64_t, 3>> extents{{64, 32, 16}, {64, 96, 16}, {0, 5, 5}, {64, 64, 16}};
  summary = summarize(extents);
  EXPECT_EQ(summary, (GroupSummary{.groups = 3,
                                   .m = 64,
                                   .n = 64,
                                   .k = 16,
                                   .spread_m = GroupSpread::equal,
                                   .spread_n = GroupSpread::unequal,
                                   .spread_k = GroupSpread::equal,
                                   .skew = 1}));
}

TEST(GroupedGemm, TensorsOfTheEpilogueAreStackedOrOneForEachGroup) {
  GroupedGemm grouped = grouped_of(GroupedMode::ragged_m);
  grouped.gemm.epilogue = *parse_epilogue("D = acc * single(scale) + row(bias) + column(shift)", DType::f32);
  const Tensor bias = at(5, DType::f32, 1, 48), shift = at(6, DType::f32, 64, 1), scale = at(7, DType::f32, 1, 1);
  grouped.gemm.tensors = {{"bias", batched(bias, 5)}, {"shift", shift}, {"scale", batched(scale, 5)}};
  EXPECT_TRUE(validate(grouped)) << validate(grouped).reason();
  EXPECT_EQ(describe(view(grouped)).tensors[2].alignment, 1) << "shift is stacked along its contiguous mode";
  grouped.gemm.tensors = {{"bias", bias}, {"shift", shift}, {"scale", scale}};
  EXPECT_TRUE(validate(grouped)) << validate(grouped).reason();
  grouped.gemm.tensors = {{"bias", batched(bias, 4)}, {"shift", shift}, {"scale", scale}};
  EXPECT_EQ(validate(grouped).reason(), "'bias' has a batch of 4, but there are 5 groups");
  grouped.gemm.tensors = {{"bias", bias}, {"shift", batched(shift, 5)}, {"scale", scale}};
  EXPECT_EQ(validate(grouped).reason(), "'shift' has a batch of 5, but in ragged_m it is stacked as D is");
}

/// Five independent groups of at most 64 x 48 x 32.
GroupedGemm independent_groups() {
  GroupedGemm grouped = grouped_of(GroupedMode::masked_m);
  grouped.mode = GroupedMode::independent;
  for (Tensor* const tensor : {&grouped.gemm.a, &grouped.gemm.b, &grouped.gemm.c, &grouped.gemm.d})
    *tensor = pointer_array(matrix_at(*tensor, 0), tensor->address, 5);
  grouped.ends = group_extents(9 * kApart, 5);
  grouped.leading_dimensions = group_leading_dimensions(10 * kApart, 5);
  return grouped;
}

TEST(GroupedGemm, IndependentGroupsHaveExtentsAndLeadingDimensionsOfTheirOwn) {
  const GroupedGemm grouped = independent_groups();
  ASSERT_TRUE(validate(grouped)) << validate(grouped).reason();
  const GemmView all = view(grouped);
  EXPECT_EQ(all.batch(), 5);
  EXPECT_EQ(describe(all).a.alignment, 8) << "the declared one";
  EXPECT_EQ(describe(all).d.alignment, 1) << "its lines end where groups do";
  EXPECT_TRUE(validate(describe(all)));
  EXPECT_THAT(to_string(Signature(describe(all))), HasSubstr("groups=independent"));
  EXPECT_EQ(transposed(describe(all)).groups, GroupedMode::independent);
  std::vector<std::string> names;
  for (const ConstOperand& operand : operands(grouped)) names.emplace_back(operand.name);
  EXPECT_THAT(names, testing::ElementsAre("A", "B", "C", "D", "extents", "leading_dimensions"));
}

TEST(GroupedGemm, RefusesIndependentGroupsWithoutTheirNumbersOrPointers) {
  GroupedGemm grouped = independent_groups();
  grouped.gemm.b = matrix_at(grouped.gemm.b, kApart);
  EXPECT_EQ(validate(grouped).reason(), "B must be an array of pointers, because independent groups lie anywhere");
  grouped = independent_groups();
  grouped.ends = group_ends(9 * kApart, 5);
  EXPECT_EQ(validate(grouped).reason(), "'extents' must have shape (groups,3), with 3 numbers for each group, got (5)");
  grouped = independent_groups();
  grouped.leading_dimensions.stride = {8, 1};
  EXPECT_EQ(validate(grouped).reason(), "'leading_dimensions' must be contiguous, but its stride is 8");
  grouped.leading_dimensions = group_leading_dimensions(10 * kApart, 4);
  EXPECT_EQ(validate(grouped).reason(), "'leading_dimensions' are those of 4 groups, but there are 5");
  grouped = grouped_of(GroupedMode::ragged_m);
  grouped.leading_dimensions = group_leading_dimensions(10 * kApart, 5);
  EXPECT_EQ(validate(grouped).reason(),
            "only independent groups have leading dimensions of their own, but the mode is ragged_m");
  grouped = independent_groups();
  grouped.gemm.epilogue = *parse_epilogue("D = even(acc) * odd(acc)", DType::f32);
  grouped.gemm.d = grouped.gemm.c = pointer_array(at(3, DType::f16, 64, 24), 3 * kApart, 5);
  EXPECT_EQ(validate(grouped).reason(),
            "the epilogue pairs columns of A*B, which grouped GEMMs of mode independent do not support");
  GemmSignature signature = describe(view(independent_groups()));
  signature.d.is_pointer_array = false;
  EXPECT_EQ(validate(signature).reason(), "operands of independent groups are arrays of pointers");
}

TEST(GroupedGemm, ReductionsHaveResultsForEachGroup) {
  GroupedGemm grouped = grouped_of(GroupedMode::ragged_m);
  grouped.gemm.epilogue = *parse_epilogue("D = acc; row(sums) = sum(acc); column(most) = max(acc)", DType::f32);
  const Tensor sums = at(5, DType::f32, 1, 48), most = at(6, DType::f32, 64, 1);
  grouped.gemm.tensors = {{"sums", batched(sums, 5)}, {"most", most}};
  EXPECT_TRUE(validate(grouped)) << validate(grouped).reason();
  grouped.gemm.tensors = {{"sums", sums}, {"most", most}};
  EXPECT_EQ(validate(grouped).reason(), "'sums' has a batch of 1, but there are 5 groups");
}

TEST(GroupedGemm, RefusesPairsOfStackedColumns) {
  GroupedGemm grouped = grouped_of(GroupedMode::ragged_n);
  grouped.gemm.epilogue = *parse_epilogue("D = even(acc) * odd(acc)", DType::f32);
  grouped.gemm.d = grouped.gemm.c = at(3, DType::f16, 64, 24);
  EXPECT_EQ(validate(grouped).reason(),
            "the epilogue pairs columns of A*B, which grouped GEMMs of mode ragged_n do not support");
}

/// A grouped problem in host memory.
class HostProblem {
 public:
  HostProblem(GroupedMode mode, std::vector<std::int32_t> ends, DType type = DType::f32)
      : grouped(grouped_of(mode)), ends_(std::move(ends)) {
    for (Tensor* const tensor : {&grouped.gemm.a, &grouped.gemm.b, &grouped.gemm.c, &grouped.gemm.d}) {
      tensor->dtype = type;
      tensor->address = allocate(*tensor);
      fill_integers(*tensor, -4, 4, memory_.size());
    }
    grouped.ends.address = reinterpret_cast<std::uint64_t>(ends_.data());
    fill_poison(grouped.gemm.d);
  }

  GroupedGemm grouped;

 private:
  std::uint64_t allocate(const Tensor& tensor) {
    memory_.emplace_back(static_cast<std::size_t>(span_bytes(tensor)));
    return reinterpret_cast<std::uint64_t>(memory_.back().data());
  }

  std::vector<std::int32_t> ends_;
  std::vector<std::vector<std::byte>> memory_;
};

double element(const Tensor& tensor, std::int64_t batch, std::int64_t row, std::int64_t column) {
  return load(slice(tensor, tensor.batch() == 1 ? 0 : batch), row, column);
}

/// The product of A and B in group `group`, at (row, column) of the stack or of the group's matrix.
double product(const GroupedGemm& grouped, std::int64_t group, std::int64_t row, std::int64_t column,
               const GroupInterval& k) {
  double sum = 0.0;
  for (std::int64_t p = k.begin; p < k.end; ++p)
    sum += element(grouped.gemm.a, group, row, p) * element(grouped.gemm.b, group, p, column);
  return sum;
}

/// Groups 1 and 4 are empty, and rows (or columns) after number 40 belong to no group.
TEST(ReferenceGroupedGemm, ComputesTheIntervalOfEachGroupAndNothingElse) {
  for (const GroupedMode mode : kModes) {
    SCOPED_TRACE(name(mode));
    const bool is_masked = !is_ragged(mode);
    HostProblem problem(mode, is_masked ? std::vector{7, 0, 32, 1, 0}
                                        : (mode == GroupedMode::ragged_k ? std::vector{7, 7, 20, 30, 30}
                                                                         : std::vector{7, 7, 32, 40, 40}));
    const GroupedGemm& grouped = problem.grouped;
    ASSERT_TRUE(validate(grouped)) << validate(grouped).reason();
    reference(Problem(grouped));
    std::int64_t computed = 0;
    for (std::int64_t group = 0; group < 5; ++group) {
      const GroupInterval of_group = group_interval(view(grouped), group);
      const GroupInterval all_k{0, 32};
      for (std::int64_t row = 0; row < 64; ++row) {
        for (std::int64_t column = 0; column < 48; ++column) {
          const bool is_in_m = !differs_in_m(mode) || (row >= of_group.begin && row < of_group.end);
          const bool is_in_n = !differs_in_n(mode) || (column >= of_group.begin && column < of_group.end);
          const double d = element(grouped.gemm.d, group, row, column);
          if (is_in_m && is_in_n) {
            ++computed;
            ASSERT_EQ(d, product(grouped, group, row, column, ends_along_k(mode) ? of_group : all_k));
          } else if (is_masked) {
            ASSERT_TRUE(std::isnan(d)) << group << ' ' << row << ' ' << column;
          }
        }
      }
    }
    if (mode == GroupedMode::ragged_m) {
      EXPECT_TRUE(std::isnan(load(grouped.gemm.d, 40, 0)));
    }
    const Comparison comparison = compare(Problem(grouped));
    EXPECT_EQ(comparison.checked, computed);
    EXPECT_EQ(comparison.elements, computed);
    EXPECT_TRUE(comparison.is_exact()) << to_string(comparison);
  }
}

TEST(ReferenceGroupedGemm, ClampsEndsToTheCapacity) {
  HostProblem problem(GroupedMode::ragged_m, {10, -5, 20, 1 << 30, 3});
  const GemmView all = view(problem.grouped);
  EXPECT_EQ(group_interval(all, 1).size(), 0);
  EXPECT_EQ(group_interval(all, 2), (GroupInterval{0, 20}));
  EXPECT_EQ(group_interval(all, 3), (GroupInterval{20, 64}));
  EXPECT_EQ(group_interval(all, 4).size(), 0);
}

/// Group 2 is empty, so that its results keep their values.
TEST(ReferenceGroupedGemm, ReducesTheElementsOfEachGroup) {
  HostProblem problem(GroupedMode::ragged_m, {3, 8, 8, 30, 50});
  Gemm& gemm = problem.grouped.gemm;
  gemm.epilogue = *parse_epilogue("D = acc * 0 + row_index; row(sums) = sum(D); column(most) = max(D)", DType::f32);
  std::vector<float> sums(5 * 48, -1.0F), most(64, -1.0F);
  gemm.tensors = {{"sums", batched(matrix(sums.data(), DType::f32, 1, 48), 5)},
                  {"most", matrix(most.data(), DType::f32, 64, 1)}};
  ASSERT_TRUE(validate(problem.grouped)) << validate(problem.grouped).reason();
  reference(Problem(problem.grouped));
  EXPECT_EQ(sums[0], 0.0F + 1.0F + 2.0F);
  EXPECT_EQ(sums[48 + 7], 3.0F + 4.0F + 5.0F + 6.0F + 7.0F);
  EXPECT_EQ(sums[2 * 48], -1.0F);
  EXPECT_EQ(most[49], 49.0F);
  EXPECT_EQ(most[50], -1.0F) << "belongs to no group";
  EXPECT_TRUE(compare(Problem(problem.grouped)).is_exact());
  sums[48 + 7] += 1.0F;
  EXPECT_EQ(compare(Problem(problem.grouped)).outside, 1);
}

TEST(ReferenceGroupedGemm, EpiloguesCountTheRowsOfDAndReadStackedTensors) {
  HostProblem problem(GroupedMode::ragged_m, {3, 8, 8, 30, 50});
  Gemm& gemm = problem.grouped.gemm;
  gemm.epilogue = *parse_epilogue("D = acc * 0 + row(bias) + column(shift) + row_index", DType::f32);
  std::vector<float> bias(5 * 48), shift(64);
  for (std::size_t i = 0; i < bias.size(); ++i) bias[i] = static_cast<float>(i / 48 * 1000);
  for (std::size_t i = 0; i < shift.size(); ++i) shift[i] = static_cast<float>(i * 10000);
  gemm.tensors = {{"bias", batched(matrix(bias.data(), DType::f32, 1, 48), 5)},
                  {"shift", matrix(shift.data(), DType::f32, 64, 1)}};
  ASSERT_TRUE(validate(problem.grouped)) << validate(problem.grouped).reason();
  reference(Problem(problem.grouped));
  EXPECT_EQ(load(gemm.d, 2, 5), 20000.0 + 2.0);
  EXPECT_EQ(load(gemm.d, 5, 5), 50000.0 + 1000.0 + 5.0);
  EXPECT_EQ(load(gemm.d, 49, 5), 490000.0 + 4000.0 + 49.0);
}

}  // namespace
}  // namespace tilewright::op
