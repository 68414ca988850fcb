// Contractions on copies of their operands: the order of modes of the copies, and what is refused.
#include "tilewright/op/permuted_contraction.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/op/direct_contraction.hpp"
#include "tilewright/op/epilogue_text.hpp"

namespace tilewright::op {
namespace {

using testing::HasSubstr;

constexpr std::uint64_t kWorkspace = std::uint64_t{1} << 50;
constexpr std::int64_t kMaxBytes = std::int64_t{1} << 40;

/// The access of A, B and D of the inner GEMM: "strided strided strided".
std::string access_of(const Contraction& contraction) {
  const GemmView gemm = view(contraction);
  return fmt::format("{} {} {}", name(gemm.a.access), name(gemm.b.access), name(gemm.d.access));
}

std::string orders(const PermutedContraction& permuted) {
  std::string text;
  for (const std::vector<OperandCopy>* const copies : {&permuted.before, &permuted.after}) {
    for (const OperandCopy& copy : *copies)
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", copy.role, copy.order);
  }
  return text;
}

TEST(PermutedContraction, CopiesHaveTheOrderOfTheOthers) {
  const Contraction contraction = tccg_contraction("ijkl-minj-nlmk", DType::f16);
  ASSERT_TRUE(has_folded_operands(contraction));
  EXPECT_EQ(access_of(contraction), "folded folded strided") << "B is contiguous along n, and A along m";

  const auto of_b = permute(contraction, {.b = true}, kWorkspace, kMaxBytes).value_or_throw();
  EXPECT_EQ(orders(of_b), "B mn|kl") << "K as A has it, N as D has it";
  EXPECT_EQ(of_b.inner.b.address, kWorkspace);
  EXPECT_EQ(of_b.inner.a, contraction.a);
  const GemmView gemm = view(of_b.inner);
  EXPECT_EQ(gemm.b.access, OperandAccess::strided);
  EXPECT_EQ(describe(gemm).b.alignment, 8) << "rows of 24 elements";

  const auto of_both = permute(contraction, {.a = true, .b = true}, kWorkspace, kMaxBytes).value_or_throw();
  EXPECT_EQ(orders(of_both), "A mn|ij, B mn|kl");
  EXPECT_EQ(access_of(of_both.inner), "strided strided strided");
  EXPECT_EQ(of_both.workspace_bytes, 1280 + 1024) << "1152 bytes of A and 960 of B, each rounded up to 256";
}

TEST(PermutedContraction, RowsAreAlignedTo16Bytes) {
  const Contraction contraction = tccg_contraction("ij-kil-lkj", DType::f16);
  const auto permuted = permute(contraction, {.b = true}, kWorkspace, kMaxBytes).value_or_throw();
  EXPECT_EQ(orders(permuted), "B kl|j");
  EXPECT_EQ(permuted.inner.b.stride[2], 24) << "rows of 20 elements begin at multiples of 8";
}

TEST(PermutedContraction, TheCopyOfDIsMadeAtTheEnd) {
  Contraction contraction = tccg_contraction("abjc-cbka-kj", DType::f32);
  contraction.beta = 1.0;
  const auto permuted = permute(contraction, {.d = true}, kWorkspace, kMaxBytes).value_or_throw();
  EXPECT_EQ(orders(permuted), "C j|cba, D j|cba");
  EXPECT_EQ(permuted.after.front().permutation.to, contraction.d);
  EXPECT_EQ(permuted.after.front().permutation.from, permuted.inner.d);
  EXPECT_EQ(permuted.before.front().permutation.from, contraction.c);
  EXPECT_NE(permuted.inner.c.address, permuted.inner.d.address);
  contraction.beta = 0.0;
  EXPECT_FALSE(permute(contraction, {.d = true}, kWorkspace, kMaxBytes).value_or_throw().before.front().is_used);
}

TEST(PermutedContraction, BroadcastModesStayBroadcast) {
  Contraction contraction = tccg_contraction("ijkl-minj-nlmk", DType::f16);
  contraction.a.stride[1] = 0;  // i
  const auto permuted = permute(contraction, {.a = true}, kWorkspace, kMaxBytes).value_or_throw();
  EXPECT_EQ(permuted.inner.a.stride[1], 0);
  EXPECT_EQ(elements(permuted.before.front().permutation), 8 * 3 * 3) << "m, n and j";
}

TEST(PermutedContraction, OneByteElementsAndTf32AreCopiedAlongK) {
  Contraction contraction = tccg_contraction("ijkl-imjn-lnkm", DType::s8);
  EXPECT_EQ(orders(permute(contraction, {.a = true}, kWorkspace, kMaxBytes).value_or_throw()), "A nm|ij");
  contraction = tccg_contraction("ijkl-imjn-lnkm", DType::f16);
  EXPECT_EQ(orders(permute(contraction, {.a = true}, kWorkspace, kMaxBytes).value_or_throw()), "A ij|nm")
      << "A is contiguous along i, too";
}

TEST(PermutedContraction, RefusesWithTheReason) {
  Contraction contraction = tccg_contraction("ijkl-minj-nlmk", DType::f16);
  EXPECT_EQ(permute(contraction, {.a = true}, kWorkspace, 1000).reason(),
            "copies of a need 1280 bytes of workspace, at most 1000 are allowed");
  // A bias along m = i*j in the order of D; a D in the order of A has no such order where A begins with j.
  contraction = tccg_contraction("ijl-jim-lm", DType::f32);
  NamedTensor bias{"bias", contraction.d};
  bias.tensor.dtype = DType::f32;
  bias.tensor.address = std::uint64_t{9} << 40;
  bias.tensor.shape = {8, 3, 1};
  bias.tensor.stride = {1, 8, 1};
  contraction.epilogue = *parse_epilogue("D = acc + column(bias)", DType::f32);
  contraction.tensors = {bias};
  ASSERT_TRUE(validate(contraction)) << validate(contraction).reason();
  EXPECT_THAT(permute(contraction, {.d = true}, kWorkspace, kMaxBytes).reason(),
              HasSubstr("'bias' must be broadcast along all modes of m or none, and these must have one stride"));
}

}  // namespace
}  // namespace tilewright::op
