// Edge cases: extents of 0, extents and strides that exceed any memory, operands that overlap, NaN, infinities and
// subnormal numbers, integers that overflow.
#include <gtest/gtest.h>

#include <bit>
#include <limits>
#include <vector>

#include "tests/conformance/gemm_checks.hpp"
#include "tilewright/op/fill.hpp"

namespace tilewright::conformance {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

class EdgeProblems : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (is_missing(GetParam())) GTEST_SKIP() << "no GPU";
  }

  engine::Engine& engine() const { return engine_of(GetParam()); }

  /// B is column-major (K-major), which every family accepts.
  static op::Gemm problem(DType type, std::int64_t m, std::int64_t n, std::int64_t k) {
    bench::Problem wanted;
    wanted.dtype = type;
    wanted.out = is_integer(type) ? DType::s32 : type;
    wanted.accumulator = op::default_accumulator(type);
    wanted.m = m;
    wanted.n = n;
    wanted.k = k;
    wanted.b = op::MatrixLayout::column_major;
    return shape_of(wanted);
  }

  template <class Check>
  void for_each_family(const op::Gemm& gemm, const Check& check) const {
    GuardedProblem guarded(engine().device(), gemm, Placement{});
    const std::vector<registry::KernelPtr> kernels = best_of_each_family(engine(), guarded.on_device());
    ASSERT_FALSE(kernels.empty());
    for (const registry::KernelPtr& kernel : kernels) {
      SCOPED_TRACE(kernel->name());
      check(kernel, guarded);
    }
  }

  /// Expects that the problem is refused as invalid, and that no memory is allocated for it.
  void expect_refused(const op::Gemm& gemm, const std::string& what) const {
    const std::size_t before = engine().device()->allocated_bytes();
    EXPECT_THROW(engine().run(gemm), InvalidArgument) << what;
    EXPECT_THROW(static_cast<void>(engine().prepare(gemm)), InvalidArgument) << what;
    EXPECT_EQ(engine().device()->allocated_bytes(), before) << what;
  }
};

/// If K is 0, D is beta * C, or zero without C. If D is empty, nothing is launched. No byte outside D changes.
TEST_P(EdgeProblems, EveryExtentMayBeZero) {
  for (const DType type : {DType::f32, DType::f16}) {
    for (int zeros = 1; zeros < 16; ++zeros) {
      const auto extent = [&](int bit, std::int64_t otherwise) { return (zeros >> bit & 1) != 0 ? 0 : otherwise; };
      for (const double beta : {0.0, -2.0}) {
        SCOPED_TRACE(fmt::format("{} m {} n {} k {} batch {} beta {}", name(type), extent(0, 9), extent(1, 5),
                                 extent(2, 4), extent(3, 2), beta));
        op::Gemm gemm = batch_of(problem(type, 9, 5, 4), 2);
        gemm.beta = beta;
        for (op::Tensor* tensor : {&gemm.a, &gemm.b, &gemm.c, &gemm.d}) tensor->shape[0] = extent(3, 2);
        for (op::Tensor* tensor : {&gemm.a, &gemm.c, &gemm.d}) tensor->shape[1] = extent(0, 9);
        for (op::Tensor* tensor : {&gemm.b, &gemm.c, &gemm.d}) tensor->shape[2] = extent(1, 5);
        gemm.a.shape[2] = gemm.b.shape[1] = extent(2, 4);
        GuardedProblem guarded(engine().device(), gemm, Placement{});
        op::fill_integers(guarded.host().c, -3, 3, 1);
        guarded.upload();
        EXPECT_NO_THROW(engine().run(guarded.on_device()));
        guarded.download();
        EXPECT_EQ(guarded.damage(), "");
        EXPECT_TRUE(op::compare(guarded.host()).is_exact()) << op::to_string(op::compare(guarded.host()));
      }
    }
  }
}

TEST_P(EdgeProblems, ExtentsAndStridesBeyondAnyMemoryAreRefused) {
  constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min(), kHuge = std::int64_t{1} << 62;
  std::vector<float> memory(256);
  op::Gemm sound;
  sound.a = op::matrix(memory.data(), DType::f32, 4, 4);
  sound.b = op::matrix(memory.data() + 64, DType::f32, 4, 4);
  sound.d = op::matrix(memory.data() + 128, DType::f32, 4, 4);
  EXPECT_NO_THROW(engine().run(sound));
  for (const std::int64_t extent : {std::int64_t{-1}, kLeast, kLeast + 1, kHuge, std::int64_t{1} << 31}) {
    op::Gemm gemm = sound;
    gemm.a.shape[0] = gemm.d.shape[0] = extent;
    expect_refused(gemm, fmt::format("m of {}", extent));
    gemm = sound;
    gemm.b.shape[1] = gemm.d.shape[1] = extent;
    expect_refused(gemm, fmt::format("n of {}", extent));
    gemm = sound;
    gemm.a.shape[1] = gemm.b.shape[0] = extent;
    expect_refused(gemm, fmt::format("k of {}", extent));
    gemm = sound;
    gemm.d = op::batched(gemm.d, extent);
    gemm.a = op::batched(gemm.a, extent, 0);
    gemm.b = op::batched(gemm.b, extent, 0);
    expect_refused(gemm, fmt::format("batch of {}", extent));
  }
  // A leading dimension below the extent, and strides whose product with an extent exceeds 64 bits.
  for (const std::int64_t stride : {std::int64_t{3}, std::int64_t{0}, std::int64_t{-4}, kLeast, kHuge, kHuge + 1}) {
    for (op::Tensor op::Gemm::*operand : {&op::Gemm::a, &op::Gemm::b, &op::Gemm::d}) {
      op::Gemm gemm = sound;
      (gemm.*operand).stride[0] = stride;
      expect_refused(gemm, fmt::format("a leading dimension of {}", stride));
    }
  }
  for (const std::int64_t stride : {kLeast, kHuge, std::int64_t{-16}, std::int64_t{15}, std::int64_t{0}}) {
    op::Gemm gemm = sound;
    gemm.d = op::batched(gemm.d, 3, stride);
    expect_refused(gemm, fmt::format("matrices of D {} elements apart", stride));
  }
}

TEST_P(EdgeProblems, OverlappingOutputsAreRefusedExceptDInPlaceOfC) {
  std::vector<float> memory(1024, 1.0F);
  op::Gemm sound;
  sound.a = op::matrix(memory.data(), DType::f32, 8, 8);
  sound.b = op::matrix(memory.data() + 128, DType::f32, 8, 8);
  sound.c = sound.d = op::matrix(memory.data() + 256, DType::f32, 8, 8);
  sound.beta = 1.0;
  EXPECT_NO_THROW(engine().run(sound)) << "C is D";
  const auto refuses = [&](const std::string& what, const auto& spoil) {
    op::Gemm gemm = sound;
    spoil(gemm);
    expect_refused(gemm, what);
  };
  refuses("D is A", [](op::Gemm& g) { g.d.address = g.a.address; });
  refuses("D is B", [](op::Gemm& g) { g.d.address = g.b.address; });
  refuses("D overlaps A by one element", [](op::Gemm& g) { g.d.address = g.a.address + 63 * 4; });
  refuses("D overlaps C in part", [](op::Gemm& g) { g.c.address = g.d.address + 4; });
  refuses("C is D in another layout",
          [](op::Gemm& g) { g.c = op::matrix(g.d.address, DType::f32, 8, 8, op::MatrixLayout::column_major); });
  refuses("C is D with another leading dimension", [](op::Gemm& g) { g.c.stride[0] = 9; });
  refuses("D of stride 0", [](op::Gemm& g) { g.d.stride[0] = 0; });
  refuses("rows of D overlap", [](op::Gemm& g) { g.d.stride[0] = 7; });
}

/// If beta is 0, C is not read and may contain anything, including signalling NaNs.
TEST_P(EdgeProblems, ZeroBetaReadsNeitherCNorD) {
  for (const DType type : {DType::f32, DType::f16}) {
    for_each_family(problem(type, 33, 17, 20), [&](const registry::KernelPtr& kernel, GuardedProblem& guarded) {
      for (const double seen : {kNan, kInfinity, -kInfinity, std::bit_cast<double>(0x7ff0000000000001U)}) {
        fill_exactly(guarded.host());
        for (std::int64_t row = 0; row < 33; ++row) {
          for (std::int64_t column = 0; column < 17; ++column) {
            op::store(guarded.host().c, row, column, seen);
            op::store(guarded.host().d, row, column, seen);
          }
        }
        EXPECT_TRUE(run_once(engine(), kernel, guarded).is_exact()) << seen;
        EXPECT_TRUE(std::isfinite(op::load(guarded.host().d, 32, 16)));
      }
    });
  }
}

TEST_P(EdgeProblems, NansInfinitiesZerosAndSubnormalsPropagate) {
  for (const DType type : {DType::f32, DType::f16, DType::bf16}) {
    for_each_family(problem(type, 33, 17, 24), [&](const registry::KernelPtr& kernel, GuardedProblem& guarded) {
      fill_exactly(guarded.host());
      const op::Gemm& host = guarded.host();
      op::store(host.a, 3, 5, kNan);
      op::store(host.a, 4, 0, kInfinity);
      op::store(host.a, 4, 1, -kInfinity);
      op::store(host.b, 7, 11, -kInfinity);
      for (std::int64_t p = 0; p < 24; ++p) {
        op::store(host.a, 8, p, -0.0);
        op::store(host.a, 9, p, type == DType::f16 ? 0x1p-24 : 0x1p-130);  // subnormal, also in bf16 and f32
      }
      const op::Comparison comparison = run_once(engine(), kernel, guarded);
      EXPECT_TRUE(comparison.is_within_bound()) << op::to_string(comparison);
      EXPECT_TRUE(std::isnan(op::load(host.d, 3, 0)));
      EXPECT_TRUE(std::isnan(op::load(host.d, 8, 11))) << "0 * infinity";
      EXPECT_TRUE(std::isfinite(op::load(host.d, 0, 0)));
    });
  }
}

TEST_P(EdgeProblems, ZeroAlphaReadsNeitherANorB) {
  op::Gemm gemm = problem(DType::f16, 33, 17, 24);
  gemm.alpha = 0.0;
  gemm.beta = 3.0;
  for_each_family(gemm, [&](const registry::KernelPtr& kernel, GuardedProblem& guarded) {
    fill_exactly(guarded.host());
    for (std::int64_t p = 0; p < 24; ++p) {
      op::store(guarded.host().a, 5, p, kNan);
      op::store(guarded.host().b, p, 7, kInfinity);
    }
    EXPECT_TRUE(run_once(engine(), kernel, guarded).is_exact());
  });
}

/// -128 * -128 * 2^17 is 2^31, so that sums in s32 wrap, in any order of addition.
TEST_P(EdgeProblems, SumsOfIntegersWrap) {
  constexpr std::int64_t kLong = std::int64_t{1} << 17;
  for_each_family(problem(DType::s8, 16, 16, kLong), [&](const registry::KernelPtr& kernel, GuardedProblem& guarded) {
    op::fill_integers(guarded.host().a, -128, -128, 1);
    op::fill_integers(guarded.host().b, -128, -128, 1);
    for (std::int64_t p = 0; p < kLong; ++p) {
      op::store(guarded.host().b, p, 1, 127);
      op::store(guarded.host().b, p, 2, p % 2 == 0 ? -128 : 127);
    }
    EXPECT_TRUE(run_once(engine(), kernel, guarded).is_exact());
    EXPECT_EQ(op::load(guarded.host().d, 0, 0), -2147483648.0);
    EXPECT_EQ(op::load(guarded.host().d, 15, 1), -128.0 * 127 * kLong);
  });
}

TEST_P(EdgeProblems, UnsupportedCombinationsOfTypesAreRefused) {
  const op::Gemm sound = problem(DType::f16, 8, 8, 8);
  const auto refuses = [&](const std::string& what, const auto& spoil) {
    op::Gemm gemm = sound;
    spoil(gemm);
    expect_refused(gemm, what);
  };
  refuses("f16 by bf16", [](op::Gemm& g) { g.b.dtype = DType::bf16; });
  refuses("f16 by s8", [](op::Gemm& g) { g.b.dtype = DType::s8; });
  refuses("s32 operands", [](op::Gemm& g) { g.a.dtype = g.b.dtype = DType::s32; });
  refuses("sums of f16 in s32", [](op::Gemm& g) { g.accumulator = DType::s32; });
  refuses("D of s8 from f16", [](op::Gemm& g) { g.d.dtype = DType::s8; });
  refuses("4-bit integers", [](op::Gemm& g) { g.a.dtype = g.b.dtype = DType::s4; });
  refuses("fp8 mathematics on f16", [](op::Gemm& g) { g.math = op::MathOperation::multiply_add_fast_accumulate; });
}

INSTANTIATE_TEST_SUITE_P(Devices, EdgeProblems, testing::ValuesIn(devices()),
                         [](const auto& tested) { return identifier(tested.param); });

}  // namespace
}  // namespace tilewright::conformance
