// Tiles of GEMM programs whose accumulators leave no registers for what the epilogue reads.
#include "tilewright/plan/program_gemm.hpp"

#include <gtest/gtest.h>

#include "tests/unit/plan/gemm_cases.hpp"
#include "tilewright/op/expression.hpp"

namespace tilewright::plan {
namespace {

op::GemmSignature f16_with(const op::Expression& d) {
  op::GemmSignature signature = describe_f16();
  signature.epilogue = op::make_epilogue("tested", DType::f32, d).value_or_throw();
  for (const op::EpilogueNode* tensor : signature.epilogue.tensors()) {
    static_cast<void>(tensor);
    signature.tensors.push_back({DType::f16, op::ContiguousMode::columns, 8});
  }
  return signature;
}

ProgramGemmDesign wide_design() { return {tiling_of({{128, 256, 64}, 4, {8, 1}}, kSm90)}; }

TEST(ProgramGemm, WideTilesReadNoTensorOfTheSizeOfD) {
  EXPECT_TRUE(plan_program_gemm(f16_with(op::acc()), wide_design()));
  EXPECT_TRUE(plan_program_gemm(f16_with(op::acc() + op::row("bias")), wide_design()));
  for (const op::Expression& reading : {op::acc() + op::c(), op::acc() + op::full("residual")}) {
    const op::GemmSignature signature = f16_with(reading);
    EXPECT_EQ(plan_program_gemm(signature, wide_design()).reason(),
              "a thread would have 128 accumulators, at most 127 fit beside the elements of C or of a tensor of D's "
              "size");
    for (const ProgramGemmDesign& design : program_gemm_designs(signature, kSm90))
      EXPECT_TRUE(plan_program_gemm(signature, design)) << design.tile.m << "x" << design.tile.n;
  }
}

TEST(ProgramGemm, WideTilesAreOfferedWhereTheyFit) {
  EXPECT_EQ(program_gemm_designs(f16_with(op::acc()), kSm90).front().tile.n, 256);
}

}  // namespace
}  // namespace tilewright::plan
