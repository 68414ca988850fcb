// Every kernel family on every problem of tests/problems/gemm.txt, on each device. Operands lie between red zones, and
// D is poisoned before the run. Results must be equal bit for bit on integers and within the error bound on random
// numbers. TILEWRIGHT_DEVICES (separated by commas) chooses the devices.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "bench/problem.hpp"
#include "tests/conformance/gemm_checks.hpp"
#include "tests/unit/plan/gemm_cases.hpp"
#include "tilewright/base/text.hpp"
#include "tilewright/engine/engine.hpp"
#include "tilewright/op/fill.hpp"
#include "tilewright/op/problem.hpp"
#include "tilewright/runtime/cuda_device.hpp"

namespace tilewright::conformance {
namespace {

std::vector<bench::Problem> problems() {
  const std::string path = TILEWRIGHT_SOURCE_DIR "/tests/problems/gemm.txt";
  std::ifstream file(path);
  return bench::read_problems(file, path);
}

struct Case {
  std::string device;
  bench::Problem problem;
};

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const std::string& device : devices()) {
    for (const bench::Problem& problem : problems()) cases.push_back({device, problem});
  }
  return cases;
}

class GemmConformance : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    if (is_missing(GetParam().device)) GTEST_SKIP() << "no GPU";
  }

  engine::Engine& engine() const { return engine_of(GetParam().device); }
  op::Gemm shape() const { return shape_of(GetParam().problem); }

  // Checks the best kernel of every family for the problem with this placement.
  template <class Check>
  void for_each_family(const op::Gemm& gemm, const Placement& placement, Check check) {
    GuardedProblem problem(engine().device(), gemm, placement);
    const std::vector<registry::KernelPtr> kernels = best_of_each_family(engine(), problem.on_device());
    ASSERT_FALSE(kernels.empty());
    for (const registry::KernelPtr& kernel : kernels) check(engine(), kernel, problem);
  }
};

TEST_P(GemmConformance, IsExactOnIntegers) { for_each_family(shape(), {}, expect_exact); }

TEST_P(GemmConformance, IsWithinTheBoundOnRandomNumbers) { for_each_family(shape(), {}, expect_within_bound); }

TEST_P(GemmConformance, ReadsCAndScalesWithOddLeadingDimensionsAndAddresses) {
  op::Gemm gemm = shape();
  gemm.alpha = 2.0;
  gemm.beta = -3.0;
  for_each_family(gemm, {.padding = 3, .offset_elements = 1}, expect_exact);
}

INSTANTIATE_TEST_SUITE_P(Problems, GemmConformance, testing::ValuesIn(all_cases()), [](const auto& tested) {
  return identifier(fmt::format("{} {} {}", tested.param.device, tested.index, bench::title(tested.param.problem)));
});

class DeviceConformance : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (is_missing(GetParam())) GTEST_SKIP() << "no GPU";
  }

  engine::Engine& engine() const { return engine_of(GetParam()); }

  static constexpr std::array kReadAlongK{DType::tf32, DType::s8, DType::u8, DType::e4m3};

  static bench::Problem wanted_problem(DType type, std::int64_t m, std::int64_t n, std::int64_t k) {
    bench::Problem wanted;
    wanted.dtype = type == DType::tf32 ? DType::f32 : type;
    if (type == DType::tf32) wanted.math = op::MathOperation::multiply_add_tf32;
    wanted.out = is_integer(type) ? DType::s32 : wanted.dtype;
    wanted.accumulator = op::default_accumulator(wanted.dtype);
    wanted.m = m;
    wanted.n = n;
    wanted.k = k;
    wanted.b = op::MatrixLayout::column_major;
    return wanted;
  }

  static op::Gemm problem(DType type, std::int64_t m, std::int64_t n, std::int64_t k) {
    return shape_of(wanted_problem(type, m, n, k));
  }

  // Two consumer warpgroups with 64 rows each (after swapping operands), on tiles of 64 columns.
  registry::KernelPtr wgmma_kernel(const op::Gemm& gemm, plan::Schedule schedule, bool swaps_operands) const {
    const op::GemmSignature description = op::describe(gemm);
    const int rows = schedule == plan::Schedule::ping_pong ? 64 : 128;
    plan::Sm90GemmDesign design = plan::sm90_design({{rows, 64, 128 / bytes(description.a.element)}, 3, {8, 1}}, {1, 1},
                                                    engine().device()->properties().target);
    design.schedule = schedule;
    design.swaps_operands = swaps_operands;
    if ((description.d.layout == op::MatrixLayout::column_major) != swaps_operands) design = plan::transposed(design);
    return engine().make_kernel(description, design);
  }
};

// Every ranked kernel must be correct, not only the best.
TEST_P(DeviceConformance, EveryRankedKernelIsExact) {
  for (const DType type : {DType::f64, DType::f32, DType::f16, DType::s8, DType::e4m3}) {
    GuardedProblem guarded(engine().device(), problem(type, 150, 140, 72), {});
    std::vector<registry::KernelPtr> kernels;
    for (const engine::RankedKernel& ranked : engine().find_kernels(guarded.on_device()))
      kernels.push_back(ranked.kernel);
    kernels = without_kernels_of_sm80(engine(), kernels);
    engine().compile(kernels);
    for (const registry::KernelPtr& kernel : kernels) expect_exact(engine(), kernel, guarded);
  }
}

// The same kernel must compute single matrices and all kinds of batches.
TEST_P(DeviceConformance, BatchesAreExactInEveryFamily) {
  for (const DType type : {DType::f32, DType::f16, DType::s8}) {
    op::Gemm one = problem(type, 72, 144, 80);
    if (type == DType::f16) one.d.stride = one.c.stride = {1, 72};
    one.beta = -2.0;
    const std::vector<registry::KernelPtr> kernels =
        best_of_each_family(engine(), GuardedProblem(engine().device(), batch_of(one, 3), {}).on_device());
    const Placement padded{.padding = 16, .batch_padding = 48};
    for (const auto& [gemm, placement] : {std::pair{one, Placement{}},
                                          {batch_of(one, 1), padded},
                                          {batch_of(one, 3), Placement{}},
                                          {batch_of(one, 3), padded},
                                          {batch_of(one, 2, "A"), padded},
                                          {batch_of(one, 2, "B"), padded},
                                          {batch_of(one, 2, "ABC"), Placement{}}}) {
      GuardedProblem guarded(engine().device(), gemm, placement);
      for (const registry::KernelPtr& kernel : without_kernels_of_sm80(engine(), kernels))
        expect_exact(engine(), kernel, guarded);
    }
  }
}

// Residue tiles along M, N and K; C is bf16 if D is an 8-bit float.
TEST_P(DeviceConformance, EightBitFloatsMixAndAreStoredInAnyFloat) {
  using enum DType;
  struct Types {
    DType a, b, d;
  };
  constexpr Types kTypes[] = {{e4m3, e4m3, f32},  {e4m3, e4m3, f16},  {e4m3, e4m3, bf16}, {e4m3, e4m3, e4m3},
                              {e4m3, e4m3, e5m2}, {e4m3, e5m2, bf16}, {e4m3, e5m2, e4m3}, {e5m2, e4m3, f32},
                              {e5m2, e4m3, e5m2}, {e5m2, e5m2, f16},  {e5m2, e5m2, e4m3}};
  for (const Types& types : kTypes) {
    op::Gemm gemm = problem(types.a, 70, 48, 144);
    gemm.b.dtype = types.b;
    gemm.d.dtype = types.d;
    gemm.c.dtype = is_fp8(types.d) ? bf16 : types.d;
    gemm.beta = -2.0;
    GuardedProblem guarded(engine().device(), gemm, {});
    SCOPED_TRACE(fmt::format("{} * {} -> {}", name(types.a), name(types.b), name(types.d)));
    const std::vector<registry::KernelPtr> kernels = best_of_each_family(engine(), guarded.on_device());
    ASSERT_FALSE(kernels.empty());
    for (const registry::KernelPtr& kernel : without_kernels_of_sm80(engine(), kernels)) {
      expect_exact(engine(), kernel, guarded);
      expect_within_bound(engine(), kernel, guarded);
    }
  }
}

TEST_P(DeviceConformance, BatchesMayBeginAnywhere) {
  GuardedProblem guarded(engine().device(), batch_of(problem(DType::f16, 17, 9, 20), 3),
                         {.padding = 1, .batch_padding = 3, .offset_elements = 1});
  for (const registry::KernelPtr& kernel : best_of_each_family(engine(), guarded.on_device())) {
    expect_exact(engine(), kernel, guarded);
  }
}

// Split-K, ping-pong, clusters and swapped operands: each advances differently to the next tile and to the next matrix
// of a batch. The other families are not persistent.
TEST_P(DeviceConformance, EveryPersistentScheduleComputesBatches) {
  GuardedProblem single(engine().device(), problem(DType::f16, 150, 140, 72), {});
  GuardedProblem batch(engine().device(), batch_of(problem(DType::f16, 150, 140, 72), 2), {});
  std::vector<registry::KernelPtr> kernels;
  for (const engine::RankedKernel& ranked : engine().find_kernels(single.on_device())) {
    if (ranked.kernel->metadata().family == "sm90_gemm") kernels.push_back(ranked.kernel);
  }
  engine().compile(kernels);
  for (const registry::KernelPtr& kernel : kernels) expect_exact(engine(), kernel, batch);
}

// Matrices interleaved by rows, the layout (rows, heads, columns) of attention.
TEST_P(DeviceConformance, MatricesMayInterleave) {
  constexpr std::int64_t kHeads = 3, kRows = 40, kColumns = 64;
  op::Gemm gemm = problem(DType::f16, kRows, kColumns, 32);
  gemm.d = op::matrix(std::uint64_t{0}, DType::f16, kRows, kHeads * kColumns);
  gemm.b = op::matrix(std::uint64_t{0}, DType::f16, 32, kHeads * kColumns);
  gemm.c = gemm.d;
  GuardedProblem guarded(engine().device(), gemm, {});
  const auto heads = [&](const op::Gemm& from) {
    op::Gemm all = from;
    for (op::Tensor* tensor : {&all.b, &all.c, &all.d}) {
      tensor->shape = {kHeads, tensor->rows(), kColumns};
      tensor->stride = {kColumns, kHeads * kColumns, 1};
    }
    return all;
  };
  for (const registry::KernelPtr& kernel : best_of_each_family(engine(), heads(guarded.on_device()))) {
    fill_exactly(guarded.host());
    guarded.upload();
    engine().run(heads(guarded.on_device()), kernel);
    guarded.download();
    EXPECT_EQ(guarded.damage(), "");
    EXPECT_TRUE(op::compare(guarded.host()).is_exact()) << kernel->name();
  }
}

// wgmma reads 4-byte and 1-byte elements only K-major. If one operand is MN-major, it is A (possibly after swapping)
// and is passed in registers. The extents are below a tile, of several tiles with residues, and of more tiles than
// CTAs.
TEST_P(DeviceConformance, OneMnMajorOperandInEverySchedule) {
  if (engine().device()->properties().target != kSm90a) GTEST_SKIP() << "wgmma needs sm_90a";
  using enum op::MatrixLayout;
  std::set<std::string> run;
  for (const DType type : kReadAlongK) {
    for (const bool swaps : {false, true}) {
      for (const op::MatrixLayout d : {row_major, column_major}) {
        const op::MatrixLayout ab = (d == column_major) != swaps ? row_major : column_major;
        for (const auto& [m, n, k] : {std::array{16, 32, 16}, {208, 144, 112}, {1040, 592, 32}}) {
          bench::Problem wanted = wanted_problem(type, m, n, k);
          std::tie(wanted.a, wanted.b, wanted.d) = std::tie(ab, ab, d);
          GuardedProblem guarded(engine().device(), shape_of(wanted), {});
          for (const plan::Schedule schedule : {plan::Schedule::cooperative, plan::Schedule::ping_pong}) {
            const registry::KernelPtr kernel = wgmma_kernel(guarded.on_device(), schedule, swaps);
            run.insert(kernel->name());
            expect_exact(engine(), kernel, guarded);
          }
        }
      }
    }
  }
  EXPECT_EQ(run.size(), kReadAlongK.size() * 2 * 2 * 2);
}

// If A of 1-byte elements is passed in registers, a thread's accumulators have other rows. Tested with every type of D,
// both layouts of D, and C.
TEST_P(DeviceConformance, OneByteOperandsInRegistersGiveEveryOutputType) {
  if (engine().device()->properties().target != kSm90a) GTEST_SKIP() << "wgmma needs sm_90a";
  using enum op::MatrixLayout;
  for (const DType out : {DType::s8, DType::f16, DType::f32}) {
    for (const bool swaps : {false, true}) {
      bench::Problem wanted = wanted_problem(DType::s8, 80, 48, 32);
      wanted.a = wanted.b = swaps ? row_major : column_major;
      wanted.out = out;
      op::Gemm gemm = shape_of(wanted);
      gemm.epilogue = op::linear_combination(op::default_compute(gemm.accumulator, out));
      gemm.alpha = 2.0;
      gemm.beta = -3.0;
      GuardedProblem guarded(engine().device(), gemm, {});
      expect_exact(engine(), wgmma_kernel(guarded.on_device(), plan::Schedule::cooperative, swaps), guarded);
    }
  }
}

TEST_P(DeviceConformance, EveryNamedEpilogueIsWithinItsBound) {
  for (const char* name : {"clamp", "relu", "leaky_relu", "tanh", "sigmoid", "silu", "hardswish", "gelu"}) {
    for (const DType type : {DType::f64, DType::f32, DType::f16}) {
      op::Gemm gemm = problem(type, 40, 24, 16);
      gemm.epilogue = *op::named_epilogue(name, type, op::default_compute(gemm.accumulator, type));
      gemm.beta = 0.5;
      GuardedProblem guarded(engine().device(), gemm, {});
      SCOPED_TRACE(name);
      const registry::KernelPtr best = best_of_each_family(engine(), guarded.on_device()).front();
      for (const registry::KernelPtr& kernel : without_kernels_of_sm80(engine(), {best}))
        expect_within_bound(engine(), kernel, guarded);
    }
  }
}

TEST_P(DeviceConformance, ZeroExtentsLaunchNothingOrGiveBetaTimesC) {
  for (const auto& [m, n] : {std::pair{0, 8}, {8, 0}, {0, 0}}) {
    GuardedProblem guarded(engine().device(), problem(DType::f32, m, n, 4), {});
    guarded.upload();
    EXPECT_NO_THROW(engine().run(guarded.on_device()));
    guarded.download();
    EXPECT_EQ(guarded.damage(), "");
  }
  op::Gemm gemm = problem(DType::f16, 33, 17, 0);
  gemm.beta = 2.0;
  GuardedProblem guarded(engine().device(), gemm, {});
  for (const registry::KernelPtr& kernel : best_of_each_family(engine(), guarded.on_device())) {
    expect_exact(engine(), kernel, guarded);
  }
}

TEST_P(DeviceConformance, ZeroScalarsNeverReadTheirOperand) {
  op::Gemm gemm = problem(DType::f32, 33, 17, 20);
  GuardedProblem no_source(engine().device(), gemm, {});
  op::fill_integers(no_source.host().a, -3, 3, 1);
  op::fill_integers(no_source.host().b, -3, 3, 2);  // C is not filled and stays NaN
  for (const registry::KernelPtr& kernel : best_of_each_family(engine(), no_source.on_device())) {
    EXPECT_TRUE(run_once(engine(), kernel, no_source).is_exact()) << kernel->name();
  }
  gemm.alpha = 0.0;
  gemm.beta = 1.0;
  GuardedProblem no_product(engine().device(), gemm, {});
  op::fill_integers(no_product.host().c, -3, 3, 3);  // A and B are not filled and stay NaN
  for (const registry::KernelPtr& kernel : best_of_each_family(engine(), no_product.on_device())) {
    EXPECT_TRUE(run_once(engine(), kernel, no_product).is_exact()) << kernel->name();
  }
}

TEST_P(DeviceConformance, NanAndInfinityPropagate) {
  GuardedProblem guarded(engine().device(), problem(DType::f16, 33, 17, 20), {});
  fill_exactly(guarded.host());
  op::store(guarded.host().a, 3, 5, std::numeric_limits<double>::quiet_NaN());
  op::store(guarded.host().b, 7, 11, std::numeric_limits<double>::infinity());
  for (const registry::KernelPtr& kernel : best_of_each_family(engine(), guarded.on_device())) {
    const op::Comparison comparison = run_once(engine(), kernel, guarded);
    EXPECT_TRUE(comparison.is_exact()) << kernel->name() << op::to_string(comparison);
  }
}

TEST_P(DeviceConformance, SourceMayBeTheDestination) {
  op::Gemm gemm = problem(DType::f32, 40, 24, 16);
  gemm.beta = 1.0;
  GuardedProblem guarded(engine().device(), gemm, {});
  fill_exactly(guarded.host());
  guarded.upload();
  op::Gemm in_place = guarded.on_device();
  in_place.d = in_place.c;
  engine().run(in_place);
  std::vector<float> c(40 * 24);
  const op::Tensor before = op::matrix(c.data(), DType::f32, 40, 24);
  op::copy_elements(guarded.host().c, before);
  guarded.download();
  op::Gemm expected = guarded.host();
  expected.d = expected.c;  // holds the result
  expected.c = before;
  EXPECT_TRUE(op::compare(expected).is_exact()) << op::to_string(op::compare(expected));
}

TEST_P(DeviceConformance, BadArgumentsAreRefusedBeforeAnythingRuns) {
  std::vector<float> memory(64);
  op::Gemm gemm;
  gemm.a = op::matrix(memory.data(), DType::f32, 4, 4);
  gemm.b = op::matrix(memory.data() + 16, DType::f32, 4, 4);
  gemm.d = op::matrix(memory.data() + 32, DType::f32, 4, 4);
  EXPECT_NO_THROW(engine().run(gemm));
  const auto refuses = [&](auto spoil) {
    op::Gemm bad = gemm;
    spoil(bad);
    EXPECT_THROW(engine().run(bad), InvalidArgument);
  };
  refuses([](op::Gemm& g) { g.a.address = 0; });
  refuses([](op::Gemm& g) { g.d.address = 0; });
  refuses([](op::Gemm& g) { g.b.stride[0] = 3; });
  refuses([](op::Gemm& g) { g.a.shape[0] = -4; });
  refuses([](op::Gemm& g) { g.a.dtype = DType::f16; });
  refuses([](op::Gemm& g) { g.d.address = g.a.address; });
  refuses([](op::Gemm& g) { g.beta = 1.0; });  // C is null
}

INSTANTIATE_TEST_SUITE_P(Devices, DeviceConformance, testing::ValuesIn(devices()),
                         [](const auto& tested) { return identifier(tested.param); });

}  // namespace
}  // namespace tilewright::conformance
