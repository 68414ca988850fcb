// skinny_gemm: every type, layout and alignment, few rows and few columns, the ends of K and of the lines, batches,
// pointer arrays and epilogues. The reference's sums of integers are exact, so D must equal it bit for bit.
#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <vector>

#include "tests/conformance/gemm_checks.hpp"
#include "tests/unit/plan/gemm_cases.hpp"
#include "tilewright/base/target_features.hpp"
#include "tilewright/op/epilogue_tensors.hpp"
#include "tilewright/op/epilogue_text.hpp"
#include "tilewright/op/gemm_view.hpp"

namespace tilewright::conformance {
namespace {

using plan::kColumn;
using plan::kRow;

constexpr plan::TypeCase kF32{DType::f32, DType::f32, DType::f32, DType::f32};
constexpr plan::TypeCase kBf16{DType::bf16, DType::bf16, DType::bf16, DType::f32};
constexpr plan::TypeCase kTypes[] = {
    kF32,
    kBf16,
    {DType::f64, DType::f64, DType::f64, DType::f64},
    {DType::f16, DType::f16, DType::f32, DType::f32},
    {DType::e4m3, DType::e4m3, DType::bf16, DType::f32},
    {DType::s8, DType::s8, DType::s32, DType::s32},
};
struct Extents {
  std::int64_t m, n, k;
};
constexpr Extents kExtents[] = {{1, 130, 1300}, {3, 77, 1027}, {8, 65, 96}, {77, 5, 130}, {129, 1, 260}, {2, 7, 5}};

std::vector<registry::KernelPtr> skinny_kernels(const engine::Engine& engine, const op::Problem& problem) {
  std::vector<registry::KernelPtr> kernels;
  for (const engine::RankedKernel& candidate : engine.find_kernels(problem)) {
    if (candidate.kernel->metadata().family == "skinny_gemm") kernels.push_back(candidate.kernel);
  }
  return kernels;
}

/// How a design divides the lines of the large operand and K: lines of a thread, lanes with different lines, warps
/// along the lines and along K, CTAs along K, adjacent elements of K, and chunks that are loaded ahead.
struct Division {
  int lines, groups, warps_lines, warps_k, cluster_k, chunk, ahead;
};
constexpr Division kDivisions[] = {{4, 1, 2, 2, 1, 8, 2}, {1, 4, 1, 4, 2, 4, 3}, {8, 8, 1, 2, 1, 4, 2},
                                   {2, 2, 2, 1, 4, 2, 4}, {1, 1, 1, 8, 8, 1, 2}, {8, 16, 1, 1, 1, 1, 2}};

plan::FlatDesign design_of(const Division& division, const op::GemmView& view, const Target& target) {
  const bool rows_are_few = view.m() <= 8;
  int few = 1;
  while (few < (rows_are_few ? view.m() : view.n())) few *= 2;
  const int lines = division.lines * division.groups * division.warps_lines;
  plan::FlatDesign design;
  design.target = target;
  design.warps_k = division.warps_k;
  design.stages = division.ahead;
  design.swaps_operands = !rows_are_few;
  design.cluster.k = has_feature(target, TargetFeature::clusters) ? division.cluster_k : 1;
  design.tile =
      rows_are_few ? plan::TileShape{few, lines, division.chunk} : plan::TileShape{lines, few, division.chunk};
  design.instruction = rows_are_few ? plan::TileShape{few, division.lines, division.chunk}
                                    : plan::TileShape{division.lines, few, division.chunk};
  design.warps_m = rows_are_few ? 1 : division.warps_lines;
  design.warps_n = rows_are_few ? division.warps_lines : 1;
  return design;
}

class SkinnyGemm : public testing::TestWithParam<std::tuple<std::string, plan::TypeCase>> {
 protected:
  void SetUp() override {
    if (is_missing(std::get<0>(GetParam()))) GTEST_SKIP() << "no GPU";
  }
  static engine::Engine& engine() { return engine_of(std::get<0>(GetParam())); }
  static const plan::TypeCase& types() { return std::get<1>(GetParam()); }
};

// Each problem has another division, so that together they have all of them.
TEST_P(SkinnyGemm, IsExactForEveryLayoutAndAlignment) {
  std::size_t number = 0;
  for (const plan::Layouts& layouts : plan::all_layouts()) {
    const Extents& extents = kExtents[number % std::size(kExtents)];
    op::Gemm gemm = plan::problem_of(plan::describe(types(), layouts), extents.m, extents.n, extents.k);
    gemm.beta = number % 2 == 0 ? 0.0 : -1.0;
    if (number % 4 == 3) gemm = batch_of(gemm, 3, number % 8 == 3 ? "B" : "");
    Placements placements{Placement{}};
    placements.a.padding = static_cast<int>(number % 3);
    placements.b.padding = static_cast<int>(number * 5 % 4);
    GuardedProblem guarded(engine().device(), gemm, placements);
    const op::GemmView view = op::with_longest_lines(op::view(guarded.on_device()));
    const plan::FlatDesign design =
        design_of(kDivisions[number * 5 % std::size(kDivisions)], view, engine().device()->properties().target);
    SCOPED_TRACE(plan::to_string(design));
    expect_exact(engine(), engine().make_kernel(op::describe(view), design), guarded);
    ++number;
  }
}

std::string case_name(const testing::TestParamInfo<std::tuple<std::string, plan::TypeCase>>& info) {
  const auto& [device, types] = info.param;
  return identifier(fmt::format("{}_{}_{}", device, name(types.a), name(types.d)));
}
INSTANTIATE_TEST_SUITE_P(Devices, SkinnyGemm, testing::Combine(testing::ValuesIn(devices()), testing::ValuesIn(kTypes)),
                         case_name);

class SkinnyGemmOfF32 : public testing::Test {
 protected:
  void SetUp() override {
    if (is_missing(devices().back())) GTEST_SKIP() << "no GPU";
  }
  static engine::Engine& engine() { return engine_of(devices().back()); }
};

TEST_F(SkinnyGemmOfF32, EveryDesignIsExactAndWithinTheErrorBound) {
  for (const op::MatrixLayout layout : {kRow, kColumn}) {
    const op::Gemm gemm = plan::problem_of(plan::describe(kF32, {kRow, layout, kRow, kRow}), 2, 200, 2500);
    GuardedProblem guarded(engine().device(), gemm, Placements{Placement{}});
    const std::vector<registry::KernelPtr> kernels = skinny_kernels(engine(), guarded.on_device());
    EXPECT_GE(kernels.size(), 2U);
    for (const registry::KernelPtr& kernel : kernels) expect_exact(engine(), kernel, guarded);
    expect_within_bound(engine(), kernels.front(), guarded);
  }
}

TEST_F(SkinnyGemmOfF32, AddressesInPointerArrays) {
  const op::Gemm one = plan::problem_of(plan::describe(kBf16, {kRow, kColumn, kRow, kRow}), 2, 48, 64);
  GuardedProblem guarded(engine().device(), with_pointer_arrays(batch_of(one, 3), "ABCD"), Placements{Placement{}});
  const std::vector<registry::KernelPtr> kernels = skinny_kernels(engine(), guarded.on_device());
  ASSERT_FALSE(kernels.empty());
  expect_exact(engine(), kernels.front(), guarded);
}

/// A problem of bf16 with the epilogue, whose tensors are vectors or matrices of f32.
op::Gemm problem_with(std::string_view epilogue, std::int64_t m, std::int64_t n) {
  op::Gemm gemm = plan::problem_of(plan::describe(kBf16, {kRow, kColumn, kRow, kRow}), m, n, 72);
  gemm.epilogue = op::parse_epilogue(epilogue, DType::f32).value_or_throw();
  gemm.d = op::matrix(gemm.d.address, gemm.d.dtype, m, gemm.d_columns(), kRow);
  gemm.c = op::matrix(gemm.c.address, gemm.c.dtype, m, gemm.d_columns(), kRow);
  for (const op::EpilogueTensor& wanted : op::epilogue_tensors(gemm.epilogue)) {
    const std::int64_t rows = wanted.broadcast.along_m ? m : 1, columns = wanted.broadcast.along_n ? n : 1;
    const std::uint64_t address = (10 + gemm.tensors.size()) << 40;
    gemm.tensors.push_back({std::string(wanted.label), op::matrix(address, DType::f32, rows, columns, kRow)});
  }
  return gemm;
}

TEST_F(SkinnyGemmOfF32, AppliesTheEpilogue) {
  for (const auto& [m, n] : {std::pair{2, 96}, {70, 2}}) {
    for (const std::string_view epilogue :
         {"D = relu(acc + row(bias))", "let t = acc - column(shift); D = relu(t); aux = t",
          "D = even(acc) - odd(acc)"}) {
      SCOPED_TRACE(epilogue);
      GuardedProblem guarded(engine().device(), problem_with(epilogue, m, n), Placements{Placement{}});
      const std::vector<registry::KernelPtr> kernels = skinny_kernels(engine(), guarded.on_device());
      ASSERT_FALSE(kernels.empty());
      expect_exact(engine(), kernels.back(), guarded);
    }
  }
}

TEST_F(SkinnyGemmOfF32, RefusesWhatItDoesNotCompute) {
  const op::Gemm nine = plan::problem_of(plan::describe(kF32, {kRow, kColumn, kRow, kRow}), 9, 9, 64);
  EXPECT_TRUE(skinny_kernels(engine(), nine).empty());
  const op::Gemm eight = plan::problem_of(plan::describe(kF32, {kRow, kColumn, kRow, kRow}), 8, 9, 64);
  const std::vector<registry::KernelPtr> kernels = skinny_kernels(engine(), eight);
  ASSERT_FALSE(kernels.empty());
  EXPECT_EQ(kernels.front()->supports(nine).reason(), "computes at most 8 rows, got 9");
}

}  // namespace
}  // namespace tilewright::conformance
