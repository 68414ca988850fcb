// What the harness tells cuBLASLt about alignment, and what it concludes from a wrong result.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bench/cublaslt_recheck.hpp"
#include "bench/operand_alignment.hpp"

namespace tilewright::bench {
namespace {

using testing::HasSubstr;
using testing::StartsWith;
using Where = Recheck::Where;

TEST(CommonAlignment, IsThatOfTheLeastAlignedAddressOfAllCalls) {
  const std::vector<OperandAddresses> calls = {{.a = 0x1000, .b = 0x2040, .c = 0, .d = 0x3002},
                                               {.a = 0x1100, .b = 0x2000, .c = 0, .d = 0x4000}};
  EXPECT_EQ(common_alignment(calls), (OperandAlignment{.a = 256, .b = 64, .c = 256, .d = 2}));
  EXPECT_EQ(common_alignment({}), OperandAlignment());
}

Recheck recheck(Where where, bool is_right, bool is_rounding = false) {
  Recheck one{.where = where, .algorithm = "algorithm 0", .verdict = {}, .is_rounding = is_rounding};
  one.verdict.right = is_right;
  if (!is_right) one.verdict.reason = "D[1,2] is 3";
  return one;
}

std::string conclusion_of(bool same, bool fresh, bool without_workspace, bool is_rounding = false) {
  return conclusion(std::vector{recheck(Where::same_memory, same, is_rounding),
                                recheck(Where::fresh_memory, fresh, is_rounding),
                                recheck(Where::without_workspace, without_workspace)});
}

TEST(Recheck, SaysWhoIsAtFault) {
  EXPECT_THAT(conclusion_of(false, true, true), HasSubstr("the harness or the operands' memory is at fault"));
  EXPECT_THAT(conclusion_of(true, false, true), HasSubstr("cuBLASLt's result varies"));
  EXPECT_THAT(conclusion_of(false, false, true, true), HasSubstr("rounds the partial sums of split-K"));
  EXPECT_THAT(conclusion_of(false, false, true), HasSubstr("cuBLASLt or the workspace is at fault"));
  EXPECT_EQ(conclusion_of(false, false, false), "cuBLASLt's algorithm is wrong wherever the operands are");
  EXPECT_EQ(conclusion({}), "cuBLASLt's algorithm is wrong wherever the operands are");
}

TEST(Recheck, IsDescribedWithItsVerdict) {
  EXPECT_EQ(describe(recheck(Where::fresh_memory, true)), "in fresh memory, algorithm 0: right");
  EXPECT_EQ(describe(recheck(Where::same_memory, false)), "the same call again, algorithm 0: wrong, D[1,2] is 3");
  EXPECT_THAT(describe(recheck(Where::without_workspace, false, true)),
              StartsWith("in fresh memory without a workspace, algorithm 0: wrong, D[1,2] is 3; the errors are those"));
}

}  // namespace
}  // namespace tilewright::bench
