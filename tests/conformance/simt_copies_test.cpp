// The copies of simt_gemm from global to shared memory: every alignment, both majors, and vectors that the end of K, M
// or N cuts, in single problems, batches, pointer arrays and split-K. The reference's sums of integers are exact, so D
// must equal it bit for bit.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/conformance/gemm_checks.hpp"
#include "tests/unit/plan/gemm_cases.hpp"
#include "tilewright/plan/simt_gemm.hpp"

namespace tilewright::conformance {
namespace {

using plan::kColumn;
using plan::kRow;

const plan::Layouts kTn{kRow, kColumn, kRow, kRow};
const plan::Tile kSmall{{32, 32, 16}, 3, {1, 1}};
const plan::Tile kWide{{128, 128, 16}, 3, {2, 4}};

/// The least padding with which rows of `extent` elements are aligned to `alignment` elements of 1, 2 or 4 and not to
/// twice as many.
int padding_for(std::int64_t extent, int alignment) {
  int padding = 0;
  while ((extent + padding) % (2 * alignment) != alignment) ++padding;
  return padding;
}

class SimtCopies : public testing::Test {
 protected:
  void SetUp() override {
    if (is_missing(devices().front())) GTEST_SKIP() << "no GPU";
    if (devices().front() == "emulator:sm_90a") GTEST_SKIP() << "the kernels are those for sm_80";
  }

  /// Runs the f32 or f64 problem by a design of simt_gemm, whose plan must have vectors of as many elements as the
  /// alignment allows.
  void expect_exact_copies(const op::Gemm& gemm, const plan::Tile& tile, int alignment, int split_k = 1) {
    engine::Engine& engine = engine_of(devices().front());
    Placements placements{Placement{}};
    const op::GemmSignature packed = op::describe(gemm);
    const op::GemmView extents = op::view(gemm);
    placements.a.padding = padding_for(op::has_contiguous_rows(packed.a.layout) ? extents.k() : extents.m(), alignment);
    placements.b.padding = padding_for(op::has_contiguous_rows(packed.b.layout) ? extents.n() : extents.k(), alignment);
    GuardedProblem guarded(engine.device(), gemm, placements);
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

  static op::Gemm problem(const plan::Layouts& layouts, std::int64_t m, std::int64_t n, std::int64_t k,
                          DType dtype = DType::f32) {
    return plan::problem_of(plan::describe({dtype, dtype, dtype, dtype}, layouts), m, n, k);
  }
};

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

}  // namespace
}  // namespace tilewright::conformance
