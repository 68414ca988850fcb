// The layouts of A and B in shared memory that each family reports.
#include "tilewright/plan/shared_layouts.hpp"

#include <gtest/gtest.h>

#include <set>

#include "tests/unit/plan/gemm_cases.hpp"
#include "tilewright/layout/composed_layout.hpp"
#include "tilewright/plan/program_gemm.hpp"

namespace tilewright::plan {
namespace {

constexpr auto kRow = op::MatrixLayout::row_major, kColumn = op::MatrixLayout::column_major;

/// Offsets of different elements must differ.
void expect_bijective(const SharedLayout& shared) {
  std::set<std::int64_t> offsets;
  const auto lines = layout::size(shared.layout.mode(0)), elements = layout::size(shared.layout.mode(1));
  for (std::int64_t line = 0; line < lines; ++line) {
    for (std::int64_t element = 0; element < elements; ++element) offsets.insert(shared.layout(line, element));
  }
  EXPECT_EQ(static_cast<std::int64_t>(offsets.size()), lines * elements) << layout::to_string(shared.layout);
}

const Sm90GemmDesign kSm90Design = sm90_design({{64, 128, 64}, 3, {4, 1}});

TEST(SharedLayouts, OfWgmmaAreSwizzleAtoms) {
  const auto shared = shared_layouts(describe_f16({kRow, kRow, kRow, kRow}), kSm90Design);
  ASSERT_EQ(shared.size(), 2U);
  EXPECT_EQ(shared[0].operand, "A");
  EXPECT_EQ(shared[0].unit_bits, 16);
  EXPECT_TRUE(shared[0].is_k_major);
  EXPECT_EQ(shared[0].layout.swizzle, layout::Swizzle(3, 3, 3));
  EXPECT_EQ(shared[0].layout(1, 0), 64 + 8);  // the next row, whose vectors are permuted
  EXPECT_FALSE(shared[1].is_k_major);
  EXPECT_EQ(layout::size(shared[1].layout.mode(0)), 64);   // lines: k
  EXPECT_EQ(layout::size(shared[1].layout.mode(1)), 128);  // along n
  for (const SharedLayout& each : shared) expect_bijective(each);
}

// A column-major D is computed as D' = B' A'.
TEST(SharedLayouts, AreNamedAsTheCallerNamesTheOperands) {
  const auto shared = shared_layouts(describe_f16({kRow, kRow, kRow, kColumn}), transposed(kSm90Design));
  ASSERT_EQ(shared.size(), 2U);
  EXPECT_EQ(shared[0].operand, "A");
  EXPECT_TRUE(shared[0].is_k_major);
  EXPECT_FALSE(shared[1].is_k_major);
}

TEST(SharedLayouts, OfOtherFamilies) {
  const auto of_sm80 = shared_layouts(describe_f16(), sm80_design({16, 8, 16}, {{64, 64, 32}, 3, {2, 2}}));
  const auto of_simt = shared_layouts(describe_f32(), simt_design());
  const auto of_program = shared_layouts(describe_f16(), program_gemm_designs(describe_f16(), kSm90).front());
  for (const auto& shared : {of_sm80, of_simt, of_program}) {
    ASSERT_EQ(shared.size(), 2U);
    for (const SharedLayout& each : shared) expect_bijective(each);
  }
  EXPECT_EQ(of_sm80[0].unit_bits, 8);
  EXPECT_EQ(of_simt[0].unit_bits, 32);
}

TEST(SharedLayouts, AreEmptyWithoutAPlan) {
  EXPECT_TRUE(shared_layouts(describe_f16(), FlatDesign{}).empty());
  EXPECT_TRUE(shared_layouts(describe_f16(), sm90_design({{63, 128, 64}, 3, {4, 1}})).empty());
}

}  // namespace
}  // namespace tilewright::plan
