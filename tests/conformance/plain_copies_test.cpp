// The copies of simt_gemm and sm80_gemm from global to shared memory: every alignment, both majors, and vectors that
// the end of K, M or N cuts, in single problems, batches, pointer arrays and split-K. The reference's sums of integers
// are exact, so D must equal it bit for bit. Padding is NaN.
#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "tests/conformance/gemm_checks.hpp"
#include "tests/unit/plan/gemm_cases.hpp"
#include "tilewright/plan/simt_gemm.hpp"
#include "tilewright/plan/sm80_gemm.hpp"

namespace tilewright::conformance {
namespace {

using plan::kColumn;
using plan::kRow;

const plan::Layouts kTn{kRow, kColumn, kRow, kRow};
const plan::Tile kSmall{{32, 32, 16}, 3, {1, 1}};
const plan::Tile kWide{{128, 128, 16}, 3, {2, 4}};

/// The least padding with which rows of `extent` elements are aligned to `alignment` elements and not to twice as
/// many.
int padding_for(std::int64_t extent, int alignment) {
  int padding = 0;
  while ((extent + padding) % (2 * alignment) != alignment) ++padding;
  return padding;
}

/// The placements with which the rows of A and B have that alignment.
Placements placements_of(const op::Gemm& gemm, int alignment, const Placement& all = {}) {
  Placements placements{all};
  const op::GemmSignature packed = op::describe(gemm);
  const op::GemmView extents = op::view(gemm);
  placements.a.padding = padding_for(op::has_contiguous_rows(packed.a.layout) ? extents.k() : extents.m(), alignment);
  placements.b.padding = padding_for(op::has_contiguous_rows(packed.b.layout) ? extents.n() : extents.k(), alignment);
  return placements;
}

op::Gemm problem(const plan::Layouts& layouts, std::int64_t m, std::int64_t n, std::int64_t k, DType dtype = DType::f32,
                 std::optional<DType> accumulator = {}) {
  const DType sums = accumulator.value_or(dtype);
  return plan::problem_of(plan::describe({dtype, dtype, sums, sums}, layouts), m, n, k);
}

class PlainCopies : public testing::Test {
 protected:
  void SetUp() override {
    if (is_missing(devices().front())) GTEST_SKIP() << "no GPU";
    if (devices().front() == "emulator:sm_90a") GTEST_SKIP() << "the kernels are those for sm_80";
  }

  /// Runs the problem by a design of sm80_gemm. The last row or column of an operand ends where its allocation does.
  static void expect_exact_on_tensor_cores(const op::Gemm& gemm, const std::array<int, 3>& instruction,
                                           const plan::Tile& tile, int alignment, int split_k = 1) {
    engine::Engine& engine = engine_of(devices().front());
    GuardedProblem guarded(engine.device(), gemm, placements_of(gemm, alignment, {.red_zone = 0}));
    const op::GemmSignature signature = op::describe(guarded.on_device());
    EXPECT_EQ(signature.a.alignment, alignment);
    EXPECT_EQ(signature.b.alignment, alignment);
    plan::Sm80GemmDesign design =
        plan::sm80_design({instruction[0], instruction[1], instruction[2]}, tile, engine.device()->properties().target);
    design.split_k = split_k;
    const registry::KernelPtr kernel = engine.make_kernel(signature, design);
    SCOPED_TRACE(kernel->name());
    expect_exact(engine, kernel, guarded);
  }

  /// Runs the f32 or f64 problem by a design of simt_gemm, whose plan must have vectors of as many elements as the
  /// alignment allows.
  void expect_exact_copies(const op::Gemm& gemm, const plan::Tile& tile, int alignment, int split_k = 1) {
    engine::Engine& engine = engine_of(devices().front());
    GuardedProblem guarded(engine.device(), gemm, placements_of(gemm, alignment));
    const op::GemmSignature signature = op::describe(guarded.on_device());
    plan::SimtGemmDesign design = plan::simt_design(tile, engine.device()->properties().target);
    design.split_k = split_k;
    const plan::SimtGemmPlan plan = plan::plan_simt_gemm(signature, design).value_or_throw();
    const int widest = 16 / bytes(signature.a.element);
    EXPECT_EQ(plan.a.vector, std::min(alignment, widest));
    EXPECT_EQ(plan.b.vector, std::min(alignment, widest));
    const registry::KernelPtr kernel = engine.make_kernel(signature, design);
    SCOPED_TRACE(kernel->name());
    expect_exact(engine, kernel, guarded);
  }
};

class SimtCopies : public PlainCopies {};

TEST_F(SimtCopies, TailsOfKAtEveryAlignment) {
  for (const int alignment : {1, 2, 4}) {
    for (std::int64_t tail = 0; tail < 8; ++tail) {
      for (const std::int64_t whole : {0, 16, 56}) {
        if (whole + tail < 2) continue;  // a single column or row has no leading dimension that limits vectors
        SCOPED_TRACE(fmt::format("alignment {}, k {}", alignment, whole + tail));
        expect_exact_copies(problem(kTn, 45, 39, whole + tail), kSmall, alignment);
      }
    }
  }
}

TEST_F(SimtCopies, TailsOfMAndN) {
  for (const int alignment : {1, 2, 4}) {
    for (const std::int64_t tail : {2, 3, 5, 31}) {
      SCOPED_TRACE(fmt::format("alignment {}, tail {}", alignment, tail));
      expect_exact_copies(problem(kTn, 32 + tail, 64 - tail, 35), kSmall, alignment);
      expect_exact_copies(problem(kTn, tail, tail, 18), kSmall, alignment);
    }
  }
}

TEST_F(SimtCopies, EveryMajorOfAAndB) {
  for (const plan::Layouts& layouts :
       {kTn, plan::Layouts{kRow, kRow, kRow, kRow}, plan::Layouts{kColumn, kRow, kRow, kRow},
        plan::Layouts{kColumn, kColumn, kRow, kColumn}}) {
    for (const int alignment : {1, 2, 4}) {
      for (const plan::Tile& tile : {kWide, plan::Tile{{64, 64, 16}, 3, {2, 1}}, plan::Tile{{128, 32, 16}, 2, {4, 1}},
                                     plan::Tile{{64, 64, 8}, 4, {2, 2}}}) {
        SCOPED_TRACE(fmt::format("alignment {}", alignment));
        expect_exact_copies(problem(layouts, 131, 70, 53), tile, alignment);
      }
    }
  }
}

TEST_F(SimtCopies, Doubles) {
  for (const int alignment : {1, 2}) {
    for (const std::int64_t k : {7, 40}) {
      expect_exact_copies(problem(kTn, 35, 45, k, DType::f64), kSmall, alignment);
      expect_exact_copies(problem({kRow, kRow, kRow, kRow}, 70, 65, k, DType::f64), {{64, 64, 16}, 2, {2, 2}},
                          alignment);
    }
  }
}

TEST_F(SimtCopies, BatchesAndPointerArrays) {
  for (const int alignment : {1, 2, 4}) {
    const op::Gemm gemm = problem(kTn, 37, 41, 27);
    expect_exact_copies(batch_of(gemm, 3), kSmall, alignment);
    expect_exact_copies(batch_of(gemm, 3, "B"), kSmall, alignment);
    expect_exact_copies(with_pointer_arrays(batch_of(gemm, 3), "ABCD", 4 * alignment), kSmall, alignment);
  }
}

TEST_F(SimtCopies, PartsOfSplitK) {
  for (const int alignment : {1, 4}) {
    for (const std::int64_t k : {33, 167}) {
      expect_exact_copies(problem(kTn, 45, 39, k), kSmall, alignment, 3);
      expect_exact_copies(problem(kTn, 150, 131, k), kWide, alignment, 2);
    }
  }
}

class Sm80Copies : public PlainCopies {};

TEST_F(Sm80Copies, CutVectorsOfEveryMajor) {
  const plan::Tile tile{{64, 32, 32}, 3, {2, 2}};
  for (const plan::Layouts& layouts :
       {kTn, plan::Layouts{kRow, kRow, kRow, kRow}, plan::Layouts{kColumn, kRow, kRow, kRow},
        plan::Layouts{kColumn, kColumn, kRow, kColumn}}) {
    for (const int alignment : {1, 2, 4, 8}) {
      for (const std::int64_t k : {3, 32, 61, 96}) {
        SCOPED_TRACE(fmt::format("alignment {}, k {}", alignment, k));
        expect_exact_on_tensor_cores(problem(layouts, 67, 35, k, DType::f16, DType::f32), {16, 8, 16}, tile, alignment);
      }
    }
  }
}

TEST_F(Sm80Copies, OtherTypes) {
  for (const plan::Layouts& layouts : {kTn, plan::Layouts{kColumn, kRow, kRow, kRow}}) {
    for (const int alignment : {1, 2})
      expect_exact_on_tensor_cores(problem(layouts, 35, 45, 39, DType::f64), {8, 8, 4}, {{32, 32, 16}, 4, {2, 2}},
                                   alignment);
  }
  for (const int alignment : {4, 8, 16})
    expect_exact_on_tensor_cores(problem(kTn, 35, 45, 77, DType::s8, DType::s32), {16, 8, 32},
                                 {{32, 32, 64}, 4, {2, 2}}, alignment);
}

TEST_F(Sm80Copies, PartsOfSplitK) {
  for (const int parts : {2, 6, 11}) {
    expect_exact_on_tensor_cores(problem(kTn, 70, 131, 341, DType::f16, DType::f32), {16, 8, 16},
                                 {{64, 128, 32}, 3, {2, 2}}, 8, parts);
    expect_exact_on_tensor_cores(problem({kColumn, kRow, kRow, kRow}, 70, 131, 341, DType::f16, DType::f32),
                                 {16, 8, 16}, {{64, 128, 32}, 3, {2, 2}}, 8, parts);
  }
}

TEST_F(Sm80Copies, BatchesAndPointerArrays) {
  const op::Gemm gemm = problem({kColumn, kRow, kRow, kRow}, 37, 41, 27, DType::f16, DType::f32);
  const plan::Tile tile{{32, 32, 32}, 3, {2, 2}};
  expect_exact_on_tensor_cores(batch_of(gemm, 3), {16, 8, 16}, tile, 8);
  expect_exact_on_tensor_cores(with_pointer_arrays(batch_of(gemm, 3), "ABCD", 16), {16, 8, 16}, tile, 8);
}

}  // namespace
}  // namespace tilewright::conformance
