// The harness states the alignment of the operands to cuBLASLt, and finds the cause of a wrong result.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "bench/cublaslt_recheck.hpp"
#include "bench/operand_alignment.hpp"
#include "bench/tilewright_kernels.hpp"

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

/// A problem on the emulator, a contender that computes it, and one that writes nothing.
class OnEmulator : public testing::Test {
 protected:
  OnEmulator() {
    engine::Options options;
    options.device = "emulator:sm_90a";
    options.cache_on_disk = false;
    engine_ = std::make_unique<engine::Engine>(options);
    random_ = std::make_unique<RandomBlocks>(engine_->device(), 1);
  }

  const std::shared_ptr<runtime::Device>& device() const { return engine_->device(); }
  OperandSets sets(std::uint64_t seed) const { return {device(), problem_, *random_, seed, 1}; }
  Contender right(const OperandSets& sets) const {
    Contender contender = tilewright_contenders(*engine_, problem_, sets, {.most = 1})->contenders.front();
    contender.detail = "right";
    return contender;
  }
  static Contender idle() {
    return {.name = "cublaslt", .detail = "idle", .run = [](int, runtime::StreamHandle) {}};
  }
  /// Writes the result and one byte behind D.
  Contender overrunning(const OperandSets& sets) const {
    Contender contender = right(sets);
    const std::uint64_t end = sets.addresses(0).d + stored_d(problem_).bytes();
    contender.run = [run = contender.run, end, device = device()](int set, runtime::StreamHandle stream) {
      run(set, stream);
      device->fill(end, 0, 1, stream);
    };
    return contender;
  }

  Problem problem_ = *parse_problem("dtype=f16 m=25 n=39 k=33 kernel=simt_gemm");
  std::unique_ptr<engine::Engine> engine_;
  std::unique_ptr<RandomBlocks> random_;
};

TEST_F(OnEmulator, TheFirstRightContenderReplacesAWrongOne) {
  const OperandSets memory = sets(1);
  Verification verification(device(), problem_, memory);
  EXPECT_FALSE(verification.first_right(std::vector{idle(), idle()}));
  const auto found = verification.first_right(std::vector{idle(), right(memory), idle()});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->first.detail, "right");
  EXPECT_TRUE(found->second.right);
}

TEST_F(OnEmulator, AWriteBehindDIsWrong) {
  const OperandSets memory = sets(1);
  Verification verification(device(), problem_, memory);
  EXPECT_EQ(verification.judge(overrunning(memory)).reason, "memory behind the last element of D was written");
  EXPECT_TRUE(verification.judge(right(memory)).right);
}

TEST_F(OnEmulator, RechecksTellTheMemoryFromTheAlgorithm) {
  const OperandSets memory = sets(1);
  const auto conclusion_for = [&](const Algorithms& algorithms) {
    return conclusion(recheck_cublaslt(algorithms, device(), problem_, memory, *random_, 1));
  };
  EXPECT_THAT(conclusion_for([&](const OperandSets& where, std::size_t) {
                return std::vector{&where == &memory ? idle() : right(where)};
              }),
              HasSubstr("the harness or the operands' memory is at fault"));
  EXPECT_THAT(conclusion_for([&](const OperandSets& where, std::size_t workspace_bytes) {
                return std::vector{workspace_bytes != 0 ? idle() : right(where)};
              }),
              HasSubstr("cuBLASLt or the workspace is at fault"));
  EXPECT_THAT(conclusion_for([&](const OperandSets&, std::size_t) { return std::vector{idle()}; }),
              HasSubstr("wrong wherever the operands are"));
  const auto none = recheck_cublaslt([](const OperandSets&, std::size_t) { return std::vector<Contender>(); }, device(),
                                     problem_, memory, *random_, 1);
  EXPECT_TRUE(none.empty());
}

}  // namespace
}  // namespace tilewright::bench
