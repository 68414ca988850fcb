// Interleaved operands: every family that computes them, with residue tiles, padded leading dimensions, batches, mixed
// layouts and epilogues, equal to the reference bit for bit.
#include <gtest/gtest.h>

#include <set>

#include "tests/conformance/gemm_checks.hpp"
#include "tests/unit/plan/gemm_cases.hpp"
#include "tilewright/engine/explanation.hpp"
#include "tilewright/op/epilogue_tensors.hpp"
#include "tilewright/op/epilogue_text.hpp"

namespace tilewright::conformance {
namespace {

constexpr auto kRow = plan::kRow, kColumn = plan::kColumn;
constexpr auto kByRows = op::MatrixLayout::row_interleaved, kByColumns = op::MatrixLayout::column_interleaved;
constexpr plan::Layouts kCutlass{kByColumns, kByRows, kByColumns, kByColumns};

struct Case {
  plan::TypeCase types;
  plan::Layouts layouts;
  std::array<std::int64_t, 3> extents;
  std::string_view epilogue;  // empty: a linear combination
  std::int64_t batch = 1;
  Placement placement = {};
};

constexpr plan::TypeCase kBytes{DType::s8, DType::s8, DType::s8, DType::s32};
constexpr plan::TypeCase kUnsigned{DType::u8, DType::u8, DType::u8, DType::s32};
constexpr plan::TypeCase kWords{DType::s8, DType::u8, DType::s32, DType::s32};
constexpr plan::TypeCase kFloats{DType::u8, DType::s8, DType::f32, DType::s32};
constexpr Placement kPadded{.padding = 64, .batch_padding = 96};

const Case kCases[] = {
    {kBytes, kCutlass, {64, 64, 64}, ""},
    {kBytes, kCutlass, {33, 96, 160}, "", 1, kPadded},
    {kBytes, kCutlass, {70, 32, 32}, "D = clamp(alpha * acc + beta * C, -128, 127)", 3, kPadded},
    {kBytes, kCutlass, {1, 160, 96}, "D = clamp(acc + row(bias), -20, 20)"},
    {kUnsigned, kCutlass, {40, 64, 352}, "D = relu(acc + column(bias)); aux = acc", 2},
    {kWords, kCutlass, {130, 160, 128}, "", 1, kPadded},
    {kWords, {kByColumns, kColumn, kRow, kByColumns}, {49, 64, 96}, ""},
    {kFloats, {kRow, kByRows, kRow, kRow}, {49, 50, 96}, "D = acc"},
    {kFloats, {kByColumns, kByRows, kColumn, kColumn}, {33, 34, 64}, "", 2, kPadded},
    {kWords, {kByColumns, kByRows, kByRows, kByRows}, {96, 35, 64}, "", 1, kPadded},
    {kWords, {kByColumns, kByRows, kByColumns, kColumn}, {64, 96, 64}, "", 2},
    {kBytes, {kByColumns, kByRows, kByRows, kByColumns}, {64, 96, 64}, "", 2},
    {kBytes, {kByColumns, kColumn, kByColumns, kRow}, {20, 64, 64}, "D = acc; row(total) = sum(acc)"},
    {kWords, kCutlass, {34, 128, 64}, "D = max(even(acc), odd(acc))"},
    {kWords, {kByColumns, kByRows, kByRows, kByRows}, {64, 36, 64}, "D = max(even(acc), odd(acc))"},
    {kBytes, kCutlass, {33, 64, 64}, "", 1, {.padding = 1, .offset_elements = 1}},
};

op::Gemm problem_of(const Case& tested) {
  const auto [m, n, k] = tested.extents;
  op::Gemm gemm = plan::problem_of(plan::describe(tested.types, tested.layouts), m, n, k);
  gemm.alpha = 2.0;
  gemm.beta = -1.0;
  if (!tested.epilogue.empty()) {
    const DType compute = op::default_compute(gemm.accumulator, gemm.d.dtype);
    gemm.epilogue = op::parse_epilogue(tested.epilogue, compute).value_or_throw();
  }
  if (gemm.epilogue.is_gated()) {
    gemm.d = op::matrix(gemm.d.address, gemm.d.dtype, m, gemm.d_columns(), tested.layouts.d);
    gemm.c = gemm.d;
  }
  for (const op::EpilogueTensor& wanted : op::epilogue_tensors(gemm.epilogue)) {
    const bool along_m = wanted.broadcast.along_m, along_n = wanted.broadcast.along_n;
    gemm.tensors.push_back(
        {std::string(wanted.label),
         op::matrix(std::uint64_t{1} << 50, gemm.epilogue.compute == DType::s32 ? DType::s32 : DType::f32,
                    along_m ? m : 1, along_n ? n : 1)});
  }
  if (tested.batch > 1) {
    gemm = batch_of(gemm, tested.batch);
    for (op::NamedTensor& each : gemm.tensors) each.tensor = op::batched(each.tensor, tested.batch);
  }
  return gemm;
}

class Interleaved : public testing::TestWithParam<std::tuple<std::string, std::size_t>> {};

TEST_P(Interleaved, EqualsTheReference) {
  const auto& [device, number] = GetParam();
  if (is_missing(device)) GTEST_SKIP() << "no GPU";
  if (device == "emulator:sm_90a") GTEST_SKIP() << "the kernels are those for sm_80";
  engine::Engine& engine = engine_of(device);
  const Case& tested = kCases[number];
  GuardedProblem guarded(engine.device(), problem_of(tested), tested.placement);
  std::set<std::string> families;
  for (const registry::KernelPtr& kernel : best_of_each_family(engine, guarded.on_device())) {
    families.insert(kernel->metadata().family);
    SCOPED_TRACE(kernel->name());
    expect_exact(engine, kernel, guarded);
  }
  EXPECT_EQ(families, (std::set<std::string>{"simt_gemm", "sm80_gemm"}));
}

std::vector<std::string> tested_devices() { return devices(); }

INSTANTIATE_TEST_SUITE_P(Cases, Interleaved,
                         testing::Combine(testing::ValuesIn(tested_devices()),
                                          testing::Range(std::size_t{0}, std::size(kCases))),
                         [](const auto& tested) {
                           return identifier(
                               fmt::format("{}_{}", std::get<0>(tested.param), std::get<1>(tested.param)));
                         });

// The design of PyCUTLASS's unit test, and others, with and without split-K.
TEST(InterleavedDesigns, ComputeResidueTiles) {
  const std::string device = devices().front();
  if (is_missing(device)) GTEST_SKIP() << "no GPU";
  if (device == "emulator:sm_90a") GTEST_SKIP() << "the kernels are those for sm_80";
  engine::Engine& engine = engine_of(device);
  const Case tested{kBytes, kCutlass, {100, 160, 480}, "", 1, kPadded};
  GuardedProblem guarded(engine.device(), problem_of(tested), tested.placement);
  const Target target = engine.device()->properties().target;
  for (const int split_k : {1, 3}) {
    for (const plan::Tile& tile :
         {plan::Tile{{64, 64, 64}, 6, {2, 2}}, {{128, 32, 128}, 3, {2, 2}}, {{32, 64, 32}, 4, {1, 2}}}) {
      plan::Sm80GemmDesign design = plan::sm80_design({16, 8, 32}, tile, target);
      design.split_k = split_k;
      expect_exact(engine, engine.make_kernel(op::describe(guarded.on_device()), design), guarded);
    }
    for (const plan::Tile& tile : {plan::Tile{{64, 64, 32}, 2, {2, 1}}, {{32, 32, 64}, 2, {1, 1}}}) {
      plan::SimtGemmDesign design = plan::simt_design(tile, target);
      design.split_k = split_k;
      expect_exact(engine, engine.make_kernel(op::describe(guarded.on_device()), design), guarded);
    }
  }
}

TEST(InterleavedRefusals, NameTheOperandAndItsLayout) {
  const std::string device = devices().back();
  if (is_missing(device)) GTEST_SKIP() << "no GPU";
  engine::Engine& engine = engine_of(device);
  const op::Gemm gemm = problem_of({kBytes, kCutlass, {64, 64, 64}, ""});
  GuardedProblem guarded(engine.device(), gemm, Placement{});
  if (device == "emulator:sm_90a") {
    const std::string text = engine::to_text(engine.explain(guarded.on_device()));
    EXPECT_NE(text.find("sm90_gemm: TMA moves row-major and column-major matrices, but A is column_interleaved_32"),
              std::string::npos)
        << text;
  }
  const Target target = engine.device()->properties().target;
  EXPECT_THROW(engine.make_kernel(op::describe(guarded.on_device()),
                                  plan::sm80_design({16, 8, 16}, {{64, 64, 48}, 3, {2, 2}}, target)),
               InvalidArgument);
}

}  // namespace
}  // namespace tilewright::conformance
