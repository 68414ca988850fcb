// Batches whose matrices lie at the addresses in an array, in one launch. The matrices lie in scattered order between
// gaps of NaN, and D is NaN before each run.
#include <gtest/gtest.h>

#include "tests/conformance/gemm_checks.hpp"
#include "tests/conformance/sm90_design_case.hpp"
#include "tilewright/base/target_features.hpp"
#include "tilewright/op/epilogue_text.hpp"
#include "tilewright/op/fill.hpp"

namespace tilewright::conformance {
namespace {

op::Gemm batch(std::string_view problem, std::int64_t count, const std::string& one = "") {
  return batch_of(shape_of(*bench::parse_problem(problem)), count, one);
}

/// The problem with strided batches instead of pointer arrays.
op::Gemm as_strided(op::Gemm gemm) {
  for (op::Tensor* tensor : {&gemm.a, &gemm.b, &gemm.c, &gemm.d}) {
    if (tensor->is_pointer_array()) *tensor = op::batched(op::matrix_at(*tensor, tensor->address), tensor->batch());
  }
  return gemm;
}

class PointerArrays : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (is_missing(GetParam())) GTEST_SKIP() << "no GPU";
  }

  engine::Engine& engine() const { return engine_of(GetParam()); }

  /// Checks the best kernel of each family that computes the problem without pointer arrays. Without red zones, an
  /// emulator reports a read outside the operands.
  void expect_exact_in_every_family(const op::Gemm& gemm, Placement placement = {}) const {
    if (engine().device()->properties().emulated) placement.red_zone = 0;
    GuardedProblem guarded(engine().device(), gemm, placement);
    const std::vector<registry::KernelPtr> kernels = best_of_each_family(engine(), guarded.on_device());
    for (const registry::KernelPtr& kernel : without_kernels_of_sm80(engine(), kernels)) {
      SCOPED_TRACE(kernel->name());
      expect_exact(engine(), kernel, guarded);
    }
    const GuardedProblem strided(engine().device(), as_strided(gemm), placement);
    EXPECT_EQ(kernels.size(), best_of_each_family(engine(), strided.on_device()).size());
  }
};

TEST_P(PointerArrays, EveryOperandMayBeOne) {
  for (const char* const letters : {"ABCD", "A", "B", "C", "D", "AB", "CD"}) {
    SCOPED_TRACE(letters);
    op::Gemm gemm = batch("dtype=f16 m=40 n=48 k=32 a=row b=col", 5);
    gemm.beta = 2.0;
    expect_exact_in_every_family(with_pointer_arrays(gemm, letters));
  }
}

TEST_P(PointerArrays, MayBeMixedWithBroadcastOperands) {
  for (const char* const one : {"A", "B", "C", "AC"}) {
    SCOPED_TRACE(one);
    op::Gemm gemm = batch("dtype=bf16 m=72 n=40 k=80 a=row b=row", 4, one);
    gemm.beta = -1.0;
    std::string letters = "ABCD";
    std::erase_if(letters, [&](char letter) { return std::string_view(one).find(letter) != std::string_view::npos; });
    expect_exact_in_every_family(with_pointer_arrays(gemm, letters));
  }
}

TEST_P(PointerArrays, EveryTypeAndLayout) {
  for (const char* const problem :
       {"dtype=f64 m=24 n=20 k=12 a=col b=row", "dtype=f32 m=33 n=20 k=12 a=row b=col d=col",
        "dtype=tf32 m=40 n=36 k=20 a=row b=col", "dtype=tf32 m=40 n=36 k=20 a=col b=row d=col",
        "dtype=s8 m=40 n=48 k=64 a=row b=col", "dtype=s8 m=32 n=48 k=64 a=col b=row",
        "dtype=e4m3 m=32 n=48 k=64 a=row b=col d=col", "dtype=f16 m=40 n=48 k=32 a=col b=col d=col"}) {
    SCOPED_TRACE(problem);
    op::Gemm gemm = batch(problem, 3);
    gemm.beta = 1.0;
    expect_exact_in_every_family(with_pointer_arrays(gemm, "ABCD"));
  }
}

TEST_P(PointerArrays, ASingleMatrixMayHaveAPointer) {
  expect_exact_in_every_family(with_pointer_arrays(batch("dtype=f16 m=40 n=48 k=32 a=row b=col", 1), "ABCD"));
}

/// The matrices are aligned to less than TMA and vector loads need, which the problem declares.
TEST_P(PointerArrays, MayDeclareAnyAlignment) {
  for (const int alignment : {2, 4, 8}) {
    SCOPED_TRACE(alignment);
    op::Gemm gemm = batch("dtype=f16 m=40 n=48 k=32 a=row b=col", 3);
    gemm.beta = 1.0;
    expect_exact_in_every_family(with_pointer_arrays(gemm, "ABCD", alignment), {.offset_elements = alignment / 2});
  }
}

TEST_P(PointerArrays, LeadingDimensionsMayHavePadding) {
  op::Gemm gemm = batch("dtype=f16 m=40 n=48 k=32 a=row b=col", 3);
  gemm.beta = 1.0;
  expect_exact_in_every_family(with_pointer_arrays(gemm, "ABCD"), {.padding = 8});
  expect_exact_in_every_family(with_pointer_arrays(gemm, "ABCD"), {.padding = 3});
}

/// If alpha or k is 0, the arrays of A and B may be missing, and if beta is 0, that of C.
TEST_P(PointerArrays, MayBeMissingWhereTheCallDoesNotReadThem) {
  op::Gemm gemm = with_pointer_arrays(batch("dtype=f16 m=40 n=48 k=32 a=row b=col", 3), "ABCD");
  gemm.alpha = 0.0;
  gemm.beta = 2.0;
  GuardedProblem guarded(engine().device(), gemm, Placement{});
  op::fill_integers(guarded.host().c, -3, 3, 1);
  guarded.upload();
  op::Gemm given = guarded.on_device();
  given.a.address = given.b.address = 0;
  engine().run(given);
  guarded.download();
  EXPECT_EQ(guarded.damage(), "");
  EXPECT_TRUE(op::compare(guarded.host()).is_exact()) << op::to_string(op::compare(guarded.host()));

  given = guarded.on_device();
  given.alpha = 1.0;
  given.beta = 0.0;
  given.c.address = 0;
  op::Gemm host = guarded.host();
  host.alpha = 1.0;
  host.beta = 0.0;
  fill_exactly(host);
  guarded.upload();
  engine().run(given);
  guarded.download();
  EXPECT_TRUE(op::compare(host).is_exact()) << op::to_string(op::compare(host));
}

/// C and D may be the same array: D = A*B + C in place.
TEST_P(PointerArrays, COfTheSameArrayMayBeD) {
  op::Gemm gemm = with_pointer_arrays(batch("dtype=f32 m=24 n=20 k=12 a=row b=col", 4), "ABCD");
  GuardedProblem guarded(engine().device(), gemm, Placement{});
  fill_exactly(guarded.host());
  guarded.upload();
  op::Gemm given = guarded.on_device();
  engine().run(given);  // D = A*B
  given.beta = 1.0;
  given.c = given.d;
  for (const registry::KernelPtr& kernel : best_of_each_family(engine(), given)) {
    guarded.upload();
    engine().run(guarded.on_device());
    engine().run(given, kernel);  // D = A*B + A*B
    guarded.download();
    op::Gemm twice = guarded.host();
    twice.alpha = 2.0;
    twice.beta = 0.0;
    EXPECT_TRUE(op::compare(twice).is_exact()) << kernel->name() << op::to_string(op::compare(twice));
  }
}

/// Activations and reductions, whose tensors are strided.
TEST_P(PointerArrays, EpiloguesApplyToEachMatrix) {
  op::Gemm gemm = batch("dtype=f16 m=40 n=48 k=32 a=row b=col", 3);
  gemm.epilogue = *op::parse_epilogue("let t = relu(acc + row(bias)); D = t; column(sums) = sum(t)", DType::f32);
  const auto vector = [&](std::int64_t rows, std::int64_t columns, std::uint64_t address) {
    return op::batched(op::matrix(address, DType::f32, rows, columns), 3);
  };
  constexpr std::uint64_t kApart = std::uint64_t{1} << 40;
  gemm.tensors = {{"bias", vector(1, 48, 8 * kApart)}, {"sums", vector(40, 1, 9 * kApart)}};
  expect_exact_in_every_family(with_pointer_arrays(gemm, "ABD"));
}

INSTANTIATE_TEST_SUITE_P(Devices, PointerArrays, testing::ValuesIn(devices()),
                         [](const auto& each) { return identifier(each.param); });

/// Every design of sm90_gemm makes its tensor maps in its own way.
class Sm90PointerArrays : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (is_missing(GetParam())) GTEST_SKIP() << "no GPU";
    if (!has_feature(engine().device()->properties().target, TargetFeature::wgmma))
      GTEST_SKIP() << "wgmma needs sm_90a";
  }

  engine::Engine& engine() const { return engine_of(GetParam()); }

  void expect_exact_of(const op::Gemm& gemm, const DesignCase& tested, Placement placement = {},
                       bool repacks = false) const {
    SCOPED_TRACE(tested.name);
    if (engine().device()->properties().emulated) placement.red_zone = 0;
    GuardedProblem guarded(engine().device(), gemm, placement);
    const op::GemmSignature signature = op::describe(guarded.on_device());
    plan::Sm90GemmDesign design = design_of(tested, signature);
    design.target = engine().device()->properties().target;
    design.repacks_operands = repacks;
    expect_exact(engine(), engine().make_kernel(signature, design), guarded);
  }
};

constexpr auto kCooperative = plan::Schedule::cooperative;
constexpr auto kPingPong = plan::Schedule::ping_pong;

TEST_P(Sm90PointerArrays, EveryScheduleMakesItsTensorMaps) {
  op::Gemm gemm = with_pointer_arrays(batch("dtype=f16 m=136 n=72 k=264 a=row b=col", 3), "ABCD");
  gemm.beta = 1.0;
  for (const DesignCase& tested : {DesignCase{"one warpgroup", {64, 64}, 1, 4},
                                   {"cooperative", {128, 64}, 2, 3},
                                   {"three warpgroups", {192, 64}, 3, 3},
                                   {"ping-pong", {64, 64}, 2, 4, {1, 1}, kPingPong},
                                   {"multicast of B", {64, 64}, 1, 4, {2, 1}},
                                   {"multicast of A", {64, 64}, 1, 4, {1, 2}},
                                   {"swapped", {64, 64}, 1, 4, {1, 1}, kCooperative, true},
                                   {"split-K", {64, 64}, 1, 4, {1, 1}, kCooperative, false, 2},
                                   {"split-K and multicast", {64, 64}, 1, 4, {2, 1}, kCooperative, false, 2}}) {
    expect_exact_of(gemm, tested);
  }
}

TEST_P(Sm90PointerArrays, OneOperandMayBeStrided) {
  for (const char* const letters : {"A", "B", "AD", "BC", "D"}) {
    SCOPED_TRACE(letters);
    op::Gemm gemm = with_pointer_arrays(batch("dtype=bf16 m=136 n=72 k=136 a=col b=row", 3), letters);
    gemm.beta = 1.0;
    expect_exact_of(gemm, {"multicast", {64, 64}, 2, 3, {2, 1}, kPingPong});
  }
}

TEST_P(Sm90PointerArrays, PlainLoadsAndRepackingTakeThem) {
  for (const char* const problem :
       {"dtype=bf16 m=67 n=71 k=137 a=row b=col", "dtype=bf16 m=67 n=72 k=137 a=col b=row d=col",
        "dtype=bf16 m=72 n=71 k=137 a=col b=row"}) {
    for (const char* const letters : {"ABCD", "A", "B"}) {
      SCOPED_TRACE(fmt::format("{} {}", problem, letters));
      op::Gemm gemm = with_pointer_arrays(batch(problem, 3), letters, 2);
      gemm.beta = 1.0;
      expect_exact_of(gemm, {"plain loads", {64, 64}, 1, 3}, {.offset_elements = 1});
      expect_exact_of(gemm, {"repacked", {64, 64}, 1, 3}, {.offset_elements = 1}, true);
    }
  }
  const op::Gemm transposed = with_pointer_arrays(batch("dtype=s8 m=48 n=80 k=112 a=col b=row", 3), "AB");
  expect_exact_of(transposed, {"repacked", {64, 64}, 1, 3}, {}, true);
}

/// Plain loads of one operand, and TMA loads of the other through tensor maps that the same warp makes.
TEST_P(Sm90PointerArrays, PlainLoadsOfOneOperandAndTmaLoadsOfTheOther) {
  for (const char* const problem :
       {"dtype=bf16 m=67 n=72 k=136 a=row b=row", "dtype=bf16 m=72 n=67 k=136 a=col b=row"}) {
    SCOPED_TRACE(problem);
    op::Gemm gemm = batch(problem, 5);
    expect_exact_of(with_pointer_arrays(with_pointer_arrays(gemm, "AB"), "D"), {"plain loads", {64, 64}, 1, 3});
  }
}

/// Each CTA computes so many matrices that it uses every slot for tensor maps several times.
TEST_P(Sm90PointerArrays, SlotsOfTensorMapsAreUsedAgain) {
  const int sms = engine().device()->properties().sm_count;
  const op::Gemm gemm = batch("dtype=f16 m=16 n=16 k=16 a=row b=col", std::int64_t{std::min(sms, 16)} * 20);
  expect_exact_of(with_pointer_arrays(gemm, "ABD"), {"cooperative", {64, 64}, 1, 3});
  expect_exact_of(with_pointer_arrays(gemm, "ABD"), {"ping-pong", {64, 64}, 2, 3, {1, 1}, kPingPong});
  expect_exact_of(with_pointer_arrays(gemm, "BD"), {"multicast", {64, 64}, 1, 3, {2, 1}});
}

INSTANTIATE_TEST_SUITE_P(Devices, Sm90PointerArrays, testing::ValuesIn(devices()),
                         [](const auto& each) { return identifier(each.param); });

}  // namespace
}  // namespace tilewright::conformance
