// The product of all types and layouts, each with extents that are multiples of the tile and with extents that neither
// tiles nor vectors divide, computed by the kernel that is ranked first. Results must be equal bit for bit on integers
// and within the error bound on random numbers. The tests of the command (test_cli_gemm.py) do not repeat this product.
#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <vector>

#include "tests/conformance/gemm_checks.hpp"

namespace tilewright::conformance {
namespace {

// In the notation of problem files.
constexpr const char* kTypes[]{
    "dtype=f64",       "dtype=f32",         "dtype=tf32",          "dtype=f32 math=multiply_add_fast_f32",
    "dtype=f16",       "dtype=f16 acc=f16", "dtype=f16 out=f32",   "dtype=bf16",
    "dtype=s8",        "dtype=s8 out=s8",   "dtype=s8 out=f32",    "dtype=u8",
    "dtype=u8 out=s8", "dtype=u8 out=f32",  "dtype=e4m3 out=bf16",
};

class TypeAndLayout : public testing::TestWithParam<std::tuple<std::string, const char*>> {
 protected:
  void SetUp() override {
    if (is_missing(std::get<0>(GetParam()))) GTEST_SKIP() << "no GPU";
  }

  engine::Engine& engine() const { return engine_of(std::get<0>(GetParam())); }

  /// The problem with each combination of layouts of A, B and D.
  static std::vector<op::Gemm> problems(const std::string& extents) {
    std::vector<op::Gemm> all;
    for (const char* a : {"row", "col"}) {
      for (const char* b : {"row", "col"}) {
        for (const char* d : {"row", "col"}) {
          all.push_back(shape_of(
              *bench::parse_problem(fmt::format("{} {} a={} b={} d={}", std::get<1>(GetParam()), extents, a, b, d))));
        }
      }
    }
    return all;
  }

  void expect_right(const std::string& extents) const {
    for (const op::Gemm& gemm : problems(extents)) {
      GuardedProblem guarded(engine().device(), gemm, {});
      const std::vector<engine::RankedKernel> ranked = engine().find_kernels(guarded.on_device());
      ASSERT_FALSE(ranked.empty()) << "no kernel can compute the problem";
      expect_exact(engine(), ranked.front().kernel, guarded);
      expect_within_bound(engine(), ranked.front().kernel, guarded);
    }
  }
};

TEST_P(TypeAndLayout, IsCorrectOnWholeTiles) { expect_right("m=128 n=128 k=128"); }

TEST_P(TypeAndLayout, IsCorrectOnResidueTiles) { expect_right("m=127 n=129 k=65"); }

INSTANTIATE_TEST_SUITE_P(Product, TypeAndLayout,
                         testing::Combine(testing::ValuesIn(devices()), testing::ValuesIn(kTypes)),
                         [](const auto& tested) {
                           return identifier(std::get<0>(tested.param) + " " + std::get<1>(tested.param));
                         });

}  // namespace
}  // namespace tilewright::conformance
