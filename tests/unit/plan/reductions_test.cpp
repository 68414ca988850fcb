// The resources that reductions need: partial results and counters in the workspace, and shared memory.
#include "tilewright/plan/reductions.hpp"

#include <gtest/gtest.h>

#include "tests/unit/plan/gemm_cases.hpp"
#include "tilewright/op/expression.hpp"
#include "tilewright/plan/simt_gemm.hpp"
#include "tilewright/plan/sm90/gemm.hpp"

namespace tilewright::plan {
namespace {

op::Epilogue epilogue_of(const std::vector<op::NamedOutput>& outputs) {
  return op::make_epilogue("graph", DType::f32, op::acc(), outputs).value_or_throw();
}

TEST(Reductions, AreCountedByTheShapeOfTheirResults) {
  const op::Epilogue epilogue = epilogue_of({{"aux", op::acc()},
                                             {"a", op::acc(), op::Reduction::sum, op::kRowVector},
                                             {"b", op::acc(), op::Reduction::maximum, op::kColumnVector},
                                             {"c", op::acc(), op::Reduction::minimum, op::kColumnVector},
                                             {"d", op::acc(), op::Reduction::sum, op::kSingle}});
  EXPECT_EQ(reduction_counts(epilogue), (ReductionCounts{1, 2, 1}));
  EXPECT_EQ(reduction_counts(op::transposed(epilogue)), (ReductionCounts{2, 1, 1}));
}

TEST(Reductions, HaveAPartialResultForEachBlockAndShare) {
  const ReductionBlocks blocks{.along_m = 3, .along_n = 5, .shares = 2, .batches = 4};
  EXPECT_EQ(reduction_part_bytes({1, 0, 0}, blocks, 300, 500, 4), 3 * 500 * 2 * 4 * 4);
  EXPECT_EQ(reduction_part_bytes({0, 1, 0}, blocks, 300, 500, 4), 5 * 300 * 2 * 4 * 4);
  EXPECT_EQ(reduction_part_bytes({0, 0, 1}, blocks, 300, 500, 8), 3 * 5 * 2 * 4 * 8);
  EXPECT_EQ(reduction_part_bytes({2, 1, 3}, blocks, 300, 500, 4), (2 * 3 * 500 + 5 * 300 + 3 * 3 * 5) * 2 * 4 * 4);
  EXPECT_EQ(reduction_part_bytes({}, blocks, 300, 500, 4), 0);
}

/// Each of four groups may have one block of rows that it does not fill.
TEST(Reductions, StackedGroupsShareOneNumberingOfBlocks) {
  const ReductionBlocks blocks = reduction_blocks(op::GroupedMode::ragged_m, 300, 500, 128, 64, 4);
  EXPECT_EQ(blocks.along_m, 2 + 4);
  EXPECT_EQ(blocks.along_n, 8);
  EXPECT_EQ(reduction_part_bytes({1, 0, 0}, blocks, 300, 500, 4), 6 * 500 * 4) << "for all groups";
  EXPECT_EQ(reduction_part_bytes({0, 1, 0}, blocks, 300, 500, 4), 8 * 300 * 4);
  const ReductionBlocks masked = reduction_blocks(op::GroupedMode::masked_m, 300, 500, 128, 64, 4);
  EXPECT_EQ(masked.along_m, 3);
  EXPECT_EQ(reduction_part_bytes({1, 0, 0}, masked, 300, 500, 4), 3 * 500 * 4 * 4) << "for each group";
  EXPECT_EQ(reduction_blocks(op::GroupedMode::ragged_n, 300, 500, 128, 64, 4).along_n, 7 + 4);
}

TEST(Reductions, NeedNoMoreCountersThanAWorkspaceHas) {
  const ReductionBlocks blocks{.along_m = 100, .along_n = 535, .batches = 100};
  EXPECT_TRUE(check_reductions({0, 0, 1}, blocks));
  EXPECT_TRUE(check_reductions({1, 1, 0}, {.along_m = 99, .along_n = 535, .batches = 100}));
  EXPECT_EQ(check_reductions({1, 1, 0}, blocks).reason(),
            "reductions need 635 arrival counters for each of 100 matrices, a workspace has 63480");
  EXPECT_TRUE(check_reductions({}, {.along_m = 1 << 20, .along_n = 1 << 20, .batches = 1 << 20}));
}

// With tiles of 32 rows, a D of 2^20 x 2^12 has 2^15 partial results for each of 2^12 results of a reduction, which are
// 0.5 GB. Nine such reductions need 4.8 GB.
TEST(Reductions, NeedNoMoreWorkspaceThanALaunchMayHave) {
  op::GemmSignature description = describe_f32();
  std::vector<op::NamedOutput> outputs;
  for (int i = 0; i < 9; ++i)
    outputs.push_back({"r" + std::to_string(i), op::acc(), op::Reduction::sum, op::kRowVector});
  description.epilogue = epilogue_of(outputs);
  description.tensors.resize(outputs.size());
  const SimtGemmDesign design{{kSm80, {32, 32, 8}, 2, 1, 1, {}}};
  const SimtGemmPlan plan = plan_simt_gemm(description, design).value_or_throw();
  op::Gemm gemm = problem_of(description, 1 << 20, 1 << 12, 16);
  EXPECT_EQ(check_arguments(plan, op::view(gemm)).reason(),
            "needs a workspace of 4832124928 bytes, at most 4294967296");
  gemm = problem_of(description, 1 << 19, 1 << 12, 16);
  EXPECT_TRUE(check_arguments(plan, op::view(gemm))) << check_arguments(plan, op::view(gemm)).reason();
}

/// Without these registers such tiles spilled.
TEST(Reductions, NeedRegistersOfAWgmmaTile) {
  const ReductionCounts none{}, single{0, 0, 1}, column{0, 1, 0}, all{1, 1, 1};
  EXPECT_EQ(reduction_registers(none, op::GroupedMode::ragged_m), 0);
  EXPECT_EQ(reduction_registers(single, op::GroupedMode::none), 0);
  const auto refused = [](const ReductionCounts& counts, op::GroupedMode groups, int columns, int team) {
    const ConsumerExtras extras{.reduction_registers = reduction_registers(counts, groups)};
    const Support fits = check_registers({128, columns, 64}, team, 2, false, extras);
    return fits ? std::string("none") : fits.reason();
  };
  EXPECT_EQ(refused(single, op::GroupedMode::none, 192, 1), "none");
  EXPECT_EQ(refused(column, op::GroupedMode::none, 160, 1), "none");
  EXPECT_NE(refused(column, op::GroupedMode::none, 176, 1), "none");
  EXPECT_EQ(refused(single, op::GroupedMode::ragged_m, 128, 1), "none");
  EXPECT_NE(refused(single, op::GroupedMode::ragged_m, 160, 1), "none");
  EXPECT_EQ(refused(all, op::GroupedMode::ragged_m, 224, 2), "none");
  // Producers that make tensor maps spill if consumers take more of their registers.
  EXPECT_EQ(split_registers(2, false, {.differs_in_k = true}, 229).producer, 40);
  EXPECT_EQ(split_registers(2, false, {}, 229).producer, 24);
  EXPECT_EQ(refused(all, op::GroupedMode::ragged_m, 256, 2),
            "a tile of 128x256 over 2 warpgroups needs about 234 registers a thread, of 232");
}

TEST(TmaOutputs, AreTheFirstWithTheStorageOrderOfD) {
  op::GemmSignature description = describe({DType::bf16, DType::bf16, DType::bf16, DType::f32});
  description.epilogue = epilogue_of({{"column_major", op::acc()},
                                      {"sums", op::acc(), op::Reduction::sum, op::kRowVector},
                                      {"a", op::acc()},
                                      {"unaligned", op::acc()},
                                      {"b", op::acc()},
                                      {"c", op::acc()}});
  using enum op::ContiguousMode;
  description.tensors = {{DType::bf16, rows, 8},   {DType::f32, none, 1},      {DType::f32, columns, 4},
                         {DType::f32, columns, 2}, {DType::e4m3, columns, 16}, {DType::bf16, columns, 8}};
  const TmaOutputs found = tma_outputs(description, 1);
  EXPECT_EQ(found.count, TmaOutputs::kMost);
  EXPECT_EQ(found.numbers, (std::array{2, 4}));
  EXPECT_EQ(found.element_bytes, (std::array{4, 1}));
  EXPECT_EQ(tma_outputs(op::transposed(description), 1), found);
  EXPECT_EQ(tma_outputs(description, 2).count, 0) << "with split-K, outputs are stored from registers";
  const OutputElements elements{2, 2, true, found};
  EXPECT_EQ(elements.widest(), 4);
  EXPECT_EQ(elements.narrowest(), 1);
  EXPECT_EQ(elements.bytes_per_element(), 2 + 4 + 1);
  EXPECT_EQ(elements.buffer_bytes(8 * 64), 1024 + 2048 + 1024) << "each part begins at a multiple of 1024 bytes";
  EXPECT_EQ((EpilogueSubtile{8, 1}.bytes(elements)), kOutputBuffers * 4096);
  EXPECT_EQ((EpilogueSubtile{8, 1}.bytes({1, 1, true})), kOutputBuffers * 512) << "without other parts";
  description.d.alignment = 4;
  EXPECT_EQ(tma_outputs(description, 1).count, 0) << "TMA cannot store D";
}

}  // namespace
}  // namespace tilewright::plan
