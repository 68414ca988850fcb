// sm90_gemm's plans: the integers of known designs, launches, and what is refused.
#include "tilewright/plan/sm90/launch.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <set>

#include "tests/unit/plan/gemm_cases.hpp"
#include "tilewright/arch/limits.hpp"
#include "tilewright/arch/smem_layout.hpp"
#include "tilewright/op/epilogue_text.hpp"
#include "tilewright/plan/search.hpp"
#include "tilewright/plan/tile_grid.hpp"

namespace tilewright::plan {
namespace {

constexpr Tile kLarge{{128, 256, 64}, 4, {8, 1}};

Sm90GemmPlan planned(const op::GemmSignature& description, const Sm90GemmDesign& design) {
  Result<Sm90GemmPlan> plan = plan_sm90_gemm(description, design);
  EXPECT_TRUE(plan) << (plan ? "" : plan.reason());
  return *std::move(plan);
}

std::string refusal(const op::GemmSignature& description, const Sm90GemmDesign& design) {
  const Result<Sm90GemmPlan> plan = plan_sm90_gemm(description, design);
  return plan ? "none" : plan.reason();
}

TEST(Sm90Gemm, PinsTheIntegersOfF16AlongK) {
  const op::GemmSignature description = describe_f16();
  const Sm90GemmPlan plan = planned(description, sm90_design(kLarge, {2, 1}));
  EXPECT_EQ(plan.atom->name, "wgmma_k16_f32_f16_f16_ss");
  EXPECT_EQ(plan.consumers(), 2);
  EXPECT_EQ(plan.threads(), 384);
  EXPECT_EQ(plan.a.tile_bytes(), 128 * 64 * 2);
  EXPECT_EQ(plan.a.boxes, 1);
  EXPECT_EQ(plan.a.shares, 1);
  EXPECT_EQ(plan.a.map.box, (std::array<std::uint32_t, 5>{64, 128, 1}));
  EXPECT_EQ(arch::encode(plan.a.wgmma.descriptor), 0x4000004000010000U);
  EXPECT_EQ(to_string(plan.a.wgmma.offset), "(2,4):(512,2)");
  // Two CTAs along M share B: each loads half of its columns.
  EXPECT_EQ(plan.b.shares, 2);
  EXPECT_EQ(plan.b.map.box, (std::array<std::uint32_t, 5>{64, 128, 1}));
  EXPECT_EQ(plan.b.share, (TmaStep{0, 128, 128 * 128}));
  EXPECT_EQ(plan.subtile, (EpilogueSubtile{64, 1}));
  EXPECT_EQ(plan.smem_bytes(), 4 * (16384 + 32768) + 2 * 2 * 8192 + 2 * 4 * 8 + 2 * 2 * 8);
  EXPECT_EQ(plan.producer_registers, 40);
  EXPECT_EQ(plan.consumer_registers, 232);
}

TEST(Sm90Gemm, MnMajorOperandsHaveWideBoxesOfAllK) {
  const op::GemmSignature description = describe_f16({kColumn, kRow, kRow, kRow});
  const Sm90GemmPlan plan = planned(description, sm90_design(kLarge));
  EXPECT_EQ(plan.b.boxes, 4);
  EXPECT_EQ(plan.b.map.box, (std::array<std::uint32_t, 5>{64, 64, 1}));
  EXPECT_EQ(plan.b.box, (TmaStep{64, 0, 64 * 128}));
  EXPECT_EQ(arch::encode(plan.b.wgmma.descriptor), 0x4000004002000000U);  // LBO 8192, SBO 1024
  EXPECT_EQ(to_string(plan.b.wgmma.offset), "(1,4):(0,128)");
  EXPECT_EQ(to_string(plan.a.wgmma.offset), "(2,4):(512,128)");
}

TEST(Sm90Gemm, DescriptorOffsetsAreALayoutIfKSpansTwoSwizzleAtoms) {
  const op::GemmSignature description = describe_f16();
  const Sm90GemmPlan plan = planned(description, sm90_design({{128, 128, 128}, 3, {8, 1}}));
  EXPECT_EQ(plan.a.boxes, 2);
  EXPECT_EQ(plan.a.box, (TmaStep{64, 0, 128 * 128}));
  EXPECT_EQ(to_string(plan.a.wgmma.offset), "(2,(4,2)):(512,(2,1024))");
}

TEST(Sm90Gemm, AColumnMajorOutputIsTheTransposedProblem) {
  const op::GemmSignature description = describe_f16({kRow, kColumn, kRow, kColumn});
  const Sm90GemmDesign design = sm90_design({{256, 128, 64}, 4, {1, 8}}, {1, 2});
  const Sm90GemmPlan plan = planned(description, design);
  EXPECT_TRUE(plan.is_transposed);
  EXPECT_EQ(plan.tile, (TileShape{128, 256, 64}));
  EXPECT_EQ(plan.cluster_m, 2);
  EXPECT_EQ(plan.cluster_n, 1);
}

TEST(Sm90Gemm, ALaunchIsAPersistentGridWithFourTensorMaps) {
  const op::GemmSignature description = describe_f16();
  const Sm90GemmPlan plan = planned(description, sm90_design(kLarge, {2, 1}));
  op::Gemm gemm;
  gemm.a = op::matrix(std::uint64_t{1} << 20, DType::f16, 1000, 520, kRow);
  gemm.b = op::matrix(std::uint64_t{2} << 20, DType::f16, 520, 2048, kColumn);
  gemm.c = op::matrix(std::uint64_t{3} << 20, DType::f16, 1000, 2048, kRow);
  gemm.d = op::matrix(std::uint64_t{4} << 20, DType::f16, 1000, 2048, kRow);
  gemm.accumulator = DType::f32;
  gemm.epilogue = description.epilogue;
  ASSERT_TRUE(check_arguments(plan, op::view(gemm)));
  const Launch launched = launch(plan, op::view(gemm));
  EXPECT_EQ(launched.grid[0], 2U * 4 * 8);  // 4 x 8 clusters of two CTAs
  EXPECT_EQ(launched.block[0], 384U);
  EXPECT_EQ(launched.cluster[0], 2U);
  ASSERT_EQ(launched.tensor_maps().size(), 4U);
  const TensorMapRequest& a = launched.tensor_maps()[0];
  EXPECT_EQ(a.map.extents, (std::array<std::uint64_t, 5>{520, 1000, 1}));
  EXPECT_EQ(a.map.strides, (std::array<std::uint64_t, 5>{0, 1040, 1040000}));
  EXPECT_EQ(a.map.box, (std::array<std::uint32_t, 5>{64, 128, 1}));
  EXPECT_EQ(a.map.type, TensorMapType::f16);
  EXPECT_EQ(a.map.swizzle, TensorMapSwizzle::bytes_128);
  EXPECT_EQ(a.map.promotion, TensorMapPromotion::bytes_128);
  for (const TensorMapRequest& request : launched.tensor_maps()) EXPECT_TRUE(check(request.map));
  EXPECT_EQ(launched.tensor_maps()[2].parameter_offset, 256U);
  EXPECT_EQ(launched.tensor_maps()[3].map.address, gemm.d.address)
      << "the map of D replaces that of C, which is not read";
  // The parameters are three tensor maps, seven integers and the tile grid, the tensor map of C, the cache policies,
  // the workspace and the scalars, rounded up to a multiple of 64 bytes.
  EXPECT_EQ(launched.parameters().size(), 640U);
  EXPECT_EQ(launched.tensor_maps()[3].parameter_offset, 384U + 64U);
  std::int32_t m = 0;
  std::memcpy(&m, launched.parameters().data() + 384, sizeof m);
  EXPECT_EQ(m, 1000);

  op::Gemm ragged = gemm;
  ragged.b = op::matrix(std::uint64_t{2} << 20, DType::f16, 520, 2044, kColumn);
  ragged.d = op::matrix(std::uint64_t{4} << 20, DType::f16, 1000, 2044, kRow, 2048);
  ragged.c = ragged.d;
  EXPECT_EQ(check_arguments(plan, op::view(ragged)).reason(), "rows of D have 4088 bytes, TMA stores multiples of 16");

  gemm.alpha = 0;
  EXPECT_EQ(check_arguments(plan, op::view(gemm)).reason(), "k and alpha must not be 0, got k = 520 and alpha = 0");
}

TEST(Sm90Gemm, ABatchIsTheMapsThirdMode) {
  const op::GemmSignature description = describe_f16();
  const Sm90GemmPlan plan = planned(description, sm90_design(kLarge, {2, 1}));
  op::Gemm gemm;
  gemm.a = op::batched(op::matrix(std::uint64_t{1} << 40, DType::f16, 200, 520, kRow), 5, 200 * 520 + 64);
  gemm.b = op::batched(op::matrix(std::uint64_t{2} << 40, DType::f16, 520, 256, kColumn), 5, 0);
  gemm.c = op::batched(op::matrix(std::uint64_t{3} << 40, DType::f16, 200, 256, kRow), 5);
  gemm.d = op::batched(op::matrix(std::uint64_t{4} << 40, DType::f16, 200, 256, kRow), 5);
  gemm.accumulator = DType::f32;
  gemm.epilogue = description.epilogue;
  gemm.beta = 1.0;
  ASSERT_TRUE(check_arguments(plan, op::view(gemm))) << check_arguments(plan, op::view(gemm)).reason();
  const Launch launched = launch(plan, op::view(gemm));
  EXPECT_EQ(launched.grid[0], 5U * 2) << "one cluster of two CTAs for each matrix";
  const TensorMapRequest& a = launched.tensor_maps()[0];
  EXPECT_EQ(a.map.extents, (std::array<std::uint64_t, 5>{520, 200, 5}));
  EXPECT_EQ(a.map.strides, (std::array<std::uint64_t, 5>{0, 1040, (200 * 520 + 64) * 2}));
  EXPECT_EQ(a.map.box[2], 1U);
  EXPECT_EQ(launched.tensor_maps()[1].map.extents, (std::array<std::uint64_t, 5>{520, 256, 1})) << "one B for all";
  EXPECT_EQ(launched.tensor_maps()[2].map.extents, (std::array<std::uint64_t, 5>{256, 200, 5}));
  EXPECT_EQ(launched.tensor_maps()[2].map.strides, (std::array<std::uint64_t, 5>{0, 512, 200 * 512}));
  EXPECT_EQ(launched.tensor_maps()[3].map.address, gemm.c.address);
  EXPECT_EQ(launched.tensor_maps()[3].map.strides, (std::array<std::uint64_t, 5>{0, 512, 200 * 512}));
  std::array<std::int32_t, 10> integers{};
  std::memcpy(integers.data(), launched.parameters().data() + 384, sizeof integers);
  EXPECT_EQ(integers, (std::array<std::int32_t, 10>{200, 256, 520, 5, 1, 0, 1, 1, 1, 5}))
      << "m, n, k, batches, steps of A, B and C, cluster tiles, groups";
  EXPECT_EQ(cost_input(plan, op::view(gemm)).batches, 5);

  gemm.a.stride[0] = std::int64_t{1} << 39;
  EXPECT_EQ(check_arguments(plan, op::view(gemm)).reason(),
            "matrices are 549755813888 elements of f16 apart, TMA needs strides below 1099511627776 bytes");
  for (op::Tensor* tensor : {&gemm.a, &gemm.c, &gemm.d}) *tensor = op::slice(*tensor, 0);
  gemm.d = op::batched(gemm.d, 2147482624);
  EXPECT_EQ(check_arguments(plan, op::view(gemm)).reason(),
            "needs 1 tiles for each of 2147482624 matrices, the limit is 2147482623 in total");
}

// The register counts agree with those that ptxas -v reports; tests/conformance/test_ptxas.py compares them.
TEST(Sm90Gemm, RegistersOfAllThreadsAreThoseOfTheLaunch) {
  constexpr int kRegistersOfAnSm = 65536;
  for (const bool uses_plain_loads : {false, true}) {
    for (const int consumers : {1, 2, 3}) {
      for (const int needed : {100, 180}) {
        const RegisterSplit split = split_registers(consumers, uses_plain_loads, {}, needed);
        // At launch, every thread has the same number of registers: the largest number that setmaxnreg requests, but at
        // most what the SM has for each thread, rounded down to a multiple of 8.
        const int available = kRegistersOfAnSm / (128 * (consumers + 1)) / 8 * 8;
        const int at_launch = std::min(std::max(split.producer, split.consumer), available);
        EXPECT_LE(split.producer + consumers * split.consumer, at_launch * (consumers + 1))
            << consumers << uses_plain_loads;
        EXPECT_EQ(split.producer % 8 + split.consumer % 8, 0);
      }
    }
  }
}

TEST(Sm90Gemm, ConsumersThatNeedMoreLeaveTheProducerLess) {
  const op::GemmSignature description = describe_f16({}, 2);
  const Sm90GemmPlan plan = planned(description, sm90_design({{256, 128, 64}, 3, {8, 1}}));
  EXPECT_EQ(plan.producer_registers, 136);
  EXPECT_EQ(plan.consumer_registers, 184);
  EXPECT_EQ(plan.plain_load_words, 80);
}

TEST(Sm90Gemm, PlainStoresNeedRegisters) {
  const auto refused = [](DType d, int alignment_bytes, int columns) {
    op::GemmSignature description = describe({DType::bf16, DType::bf16, d, DType::f32});
    description.d.alignment = alignment_bytes / bytes(d);
    return refusal(description, sm90_design({{256, columns, 64}, 3, {8, 1}}));
  };
  EXPECT_EQ(refused(DType::bf16, 16, 192), "none");
  EXPECT_EQ(refused(DType::bf16, 8, 192),
            "a tile of 256x192 over 2 warpgroups needs about 248 registers a thread, of 232");
  EXPECT_EQ(refused(DType::bf16, 2, 160), "none");
  EXPECT_EQ(refused(DType::f32, 4, 192),
            "a tile of 256x192 over 2 warpgroups needs about 256 registers a thread, of 232");
}

TEST(Sm90Gemm, UnalignedOperandsAreLoadedByPlainLoads) {
  const op::GemmSignature halves = describe_f16({}, 2);
  const Tile tile{{128, 192, 64}, 4, {8, 1}};
  const Sm90GemmPlan plan = planned(halves, sm90_design(tile));
  EXPECT_EQ(plan.a.plain_load_bytes, 4);
  EXPECT_EQ(plan.a.lines_of_pass(), 4);
  EXPECT_EQ(plan.a.passes(), 32);
  EXPECT_EQ(plan.b.passes(), 48);
  EXPECT_EQ(plan.producer_registers, 152);
  EXPECT_EQ(plan.consumer_registers, 176);
  EXPECT_EQ(plan.plain_load_words, 80);
  EXPECT_FALSE(plan.stores_by_tma);
  // The layout in shared memory is the same as with TMA.
  const op::GemmSignature aligned = describe_f16();
  const Sm90GemmPlan by_tma = planned(aligned, sm90_design(tile));
  EXPECT_EQ(plan.a.smem, by_tma.a.smem);
  EXPECT_EQ(plan.a.wgmma, by_tma.a.wgmma);
  EXPECT_EQ(plan.b.wgmma, by_tma.b.wgmma);
  EXPECT_EQ(plan.stage_bytes(), by_tma.stage_bytes());
  EXPECT_FALSE(by_tma.uses_plain_loads());

  op::GemmSignature mixed = describe_f16({}, 8);
  mixed.b.alignment = 8;
  const Sm90GemmPlan one = planned(mixed, sm90_design(tile));
  EXPECT_EQ(one.a.plain_load_bytes, 8);
  EXPECT_EQ(one.a.passes(), 16);
  EXPECT_EQ(one.b.passes(), 0);
  EXPECT_EQ(one.b.boxes, 1);
}

// copy/plain_load_operand.cuh relies on this: from one step of 8 lines or from one row to the next, the offset in
// shared memory changes by the same amount for all threads. Stores must also have no bank conflicts.
TEST(Sm90Gemm, PlainLoadsStoreAtLinearOffsetsWithoutBankConflicts) {
  const TypeCase tf32{DType::f32, DType::f32, DType::f32, DType::f32, op::MathOperation::multiply_add_tf32};
  const TypeCase s8{DType::s8, DType::s8, DType::s32, DType::s32};
  const std::vector<op::GemmSignature> descriptions{describe_f16({}, 2), describe_f16({kColumn, kRow, kRow, kRow}, 2),
                                                    describe_f16({kColumn, kRow, kRow, kRow}, 8), describe(tf32, {}, 4),
                                                    describe(s8, {}, 1)};
  for (const op::GemmSignature& description : descriptions) {
    const int k = 128 / bytes(description.a.element);
    const Sm90GemmPlan plan = planned(description, sm90_design({{128, 192, k}, 3, {8, 1}}));
    for (const TmaOperandPlan* operand : {&plan.a, &plan.b}) {
      const bool is_k_major = operand->major == arch::Major::k;
      const int element_bytes = bytes(operand->element);
      const auto place = [&](int line, int element) {
        return element_bytes *
               operand->smem(is_k_major ? layout::IntTuple{line, element} : layout::IntTuple{element, line});
      };
      const int lines = is_k_major ? operand->mn : operand->k;
      const int contiguous = is_k_major ? operand->k : operand->mn;
      const int row = operand->row_bytes() / element_bytes;
      for (int line = 0; line < lines; ++line) {
        for (int element = 0; element < contiguous; ++element) {
          ASSERT_EQ(place(line, element), place(line % 8, element % row) + place(line / 8 * 8, element / row * row))
              << to_string(description) << " at " << line << " " << element;
        }
      }
      const int vector = operand->plain_load_bytes / element_bytes;
      std::vector<std::int64_t> offsets;
      for (int lane = 0; lane < 32; ++lane) offsets.push_back(place(lane * vector / row, lane * vector % row));
      EXPECT_EQ(arch::bank_conflicts(offsets, operand->plain_load_bytes), 0) << to_string(description);
    }
  }
}

TEST(Sm90Gemm, PlainLoadOperandsArePassedByAddress) {
  const op::GemmSignature description = describe_f16({}, 2);
  const Sm90GemmPlan plan = planned(description, sm90_design({{128, 192, 64}, 4, {8, 1}}));
  op::Gemm gemm;
  gemm.a = op::matrix((std::uint64_t{1} << 20) + 2, DType::f16, 1001, 519, kRow);
  gemm.b = op::matrix(std::uint64_t{2} << 20, DType::f16, 519, 2047, kColumn, 523);
  gemm.d = op::matrix(std::uint64_t{4} << 20, DType::f16, 1001, 2047, kRow);
  gemm.c = gemm.d;
  gemm.accumulator = DType::f32;
  gemm.epilogue = description.epilogue;
  ASSERT_TRUE(check_arguments(plan, op::view(gemm)));
  const Launch launched = launch(plan, op::view(gemm));
  EXPECT_TRUE(launched.tensor_maps().empty());
  EXPECT_EQ(launched.parameters().size(), 4U * 24 + 7 * 4 + sizeof(TileGrid) + 2 * 8 + 2 * 8 + 2 * 4)
      << "four matrices, seven integers, the tile grid, two cache policies, the workspace with the offset "
         "of the "
         "reductions' partial results, two scalars";
  std::array<std::int64_t, 5> words{};  // address, leading dimension and batch stride of A, then of B
  std::memcpy(words.data(), launched.parameters().data(), sizeof words);
  EXPECT_EQ(words[0], (std::int64_t{1} << 20) + 2);
  EXPECT_EQ(words[1], 519);
  EXPECT_EQ(words[3], std::int64_t{2} << 20);
  EXPECT_EQ(words[4], 523);

  gemm.b = op::matrix(std::uint64_t{2} << 20, DType::f16, 519, 2047, kColumn, (std::int64_t{1} << 28) + 1);
  EXPECT_EQ(check_arguments(plan, op::view(gemm)).reason(),
            "plain loads advance by 2147483656 bytes from one pass to the next, the limit is 2147483647");
}

Sm90GemmDesign repacking(const Tile& tile, std::array<int, 2> cluster = {1, 1}) {
  Sm90GemmDesign design = sm90_design(tile, cluster);
  design.repacks_operands = true;
  return design;
}

TEST(Sm90Gemm, UnalignedOperandsAreRepackedIfTheDesignRepacks) {
  const op::GemmSignature halves = describe_f16({}, 2);
  const Sm90GemmPlan plan = planned(halves, repacking(kLarge, {2, 1}));
  EXPECT_TRUE(plan.a.is_repacked);
  EXPECT_FALSE(plan.a.is_transposed);
  EXPECT_EQ(plan.a.alignment_bytes, 2);
  EXPECT_FALSE(plan.uses_plain_loads());
  // Apart from the copy, the plan is that of aligned operands.
  const op::GemmSignature aligned = describe_f16();
  const Sm90GemmPlan by_tma = planned(aligned, sm90_design(kLarge, {2, 1}));
  EXPECT_EQ(plan.b.map, by_tma.b.map);
  EXPECT_EQ(plan.b.share, by_tma.b.share);
  EXPECT_EQ(plan.b.wgmma, by_tma.b.wgmma);
  EXPECT_EQ(plan.smem_bytes(), by_tma.smem_bytes());
  EXPECT_EQ(plan.consumer_registers, by_tma.consumer_registers);

  op::GemmSignature mixed = describe_f16();
  mixed.b.alignment = 4;
  const Sm90GemmPlan one = planned(mixed, repacking(kLarge));
  EXPECT_FALSE(one.a.is_repacked);
  EXPECT_TRUE(one.b.is_repacked);
  EXPECT_EQ(refusal(aligned, repacking(kLarge)),
            "no operand needs to be repacked: TMA can load both, and wgmma reads both major modes");
}

TEST(Sm90Gemm, RepackedCopiesHaveLinesOf128Bytes) {
  const op::GemmSignature description = describe_f16({kRow, kRow, kRow, kRow}, 2);
  const Sm90GemmPlan plan = planned(description, repacking(kLarge));
  op::Gemm gemm = problem_of(description, 257, 511, 100);
  gemm.a = op::batched(op::matrix((std::uint64_t{1} << 40) + 2, DType::f16, 257, 100, kRow, 101), 3);
  gemm.b = op::batched(gemm.b, 3, 0);
  gemm.c = op::batched(gemm.c, 3);
  gemm.d = op::batched(gemm.d, 3);
  ASSERT_TRUE(check_arguments(plan, op::view(gemm))) << check_arguments(plan, op::view(gemm)).reason();
  const Launch launched = launch(plan, op::view(gemm));
  EXPECT_TRUE(launched.cooperative);
  EXPECT_EQ(launched.grid[0], 3U * 3 * 2);
  ASSERT_EQ(launched.tensor_maps().size(), 2U);
  constexpr std::int64_t kBytesOfA = 3 * 257 * 256;   // its lines have 200 bytes
  constexpr std::int64_t kBytesOfB = 1 * 100 * 1024;  // its lines have 1022 bytes; one matrix for the whole batch
  const TensorMapRequest& a = launched.tensor_maps()[0];
  EXPECT_TRUE(a.is_in_workspace);
  EXPECT_EQ(a.map.address, kWorkspaceCounterBytes);
  EXPECT_EQ(a.map.extents, (std::array<std::uint64_t, 5>{100, 257, 3}));
  EXPECT_EQ(a.map.strides, (std::array<std::uint64_t, 5>{0, 256, 257 * 256}));
  const TensorMapRequest& b = launched.tensor_maps()[1];
  EXPECT_EQ(b.map.address, kWorkspaceCounterBytes + kBytesOfA);
  EXPECT_EQ(b.map.extents, (std::array<std::uint64_t, 5>{511, 100, 1}));
  EXPECT_EQ(b.map.strides, (std::array<std::uint64_t, 5>{0, 1024, 100 * 1024}));
  EXPECT_EQ(launched.workspace_bytes(), kWorkspaceCounterBytes + kBytesOfA + kBytesOfB);
  // A has a tensor map, address, leading dimension, batch stride, and the offset and pitch of its copy. B follows at
  // byte 192.
  std::array<std::int64_t, 5> words{};
  std::memcpy(words.data(), launched.parameters().data() + kTensorMapBytes, sizeof words);
  EXPECT_EQ(words, (std::array<std::int64_t, 5>{(std::int64_t{1} << 40) + 2, 101, 257 * 101,
                                                static_cast<std::int64_t>(a.map.address), 256}));
  EXPECT_EQ(b.parameter_offset, 192U);
  constexpr std::int64_t kBytesRead = 2 * (3 * 257 * 100 + 511 * 100);
  constexpr std::int64_t kBytesOfShortLines = 300 * (3 * 257 + 100);
  EXPECT_EQ(cost_input(plan, op::view(gemm)).repacked_bytes, kBytesRead + kBytesOfA + kBytesOfB + kBytesOfShortLines);

  // Repacking has work for more CTAs than there are tiles.
  EXPECT_EQ(launch(plan, op::view(problem_of(description, 128, 255, 65535))).grid[0], 132U);
}

TEST(Sm90Gemm, RepackedCopiesFollowThePartialSums) {
  const op::GemmSignature description = describe_f16({}, 2);
  Sm90GemmDesign design = repacking({{128, 128, 64}, 3, {8, 1}});
  design.split_k = 4;
  const Launch launched = launch(planned(description, design), op::view(problem_of(description, 383, 127, 1023)));
  ASSERT_EQ(launched.tensor_maps().size(), 2U);
  EXPECT_EQ(launched.tensor_maps()[0].map.address, kWorkspaceCounterBytes + 3 * 2 * 4 * 128 * 128 * 4);
  EXPECT_EQ(launched.workspace_bytes(), launched.tensor_maps()[1].map.address + 127 * 2048);
}

TEST(Sm90Gemm, RefusesAWorkspaceBeyondFourGigabytes) {
  const op::GemmSignature description = describe_f16({}, 2);
  const Sm90GemmPlan plan = planned(description, repacking(kLarge));
  EXPECT_TRUE(check_arguments(plan, op::view(problem_of(description, 65536, 1001, 32001))));
  EXPECT_EQ(check_arguments(plan, op::view(problem_of(description, 131072, 1001, 32001))).reason(),
            "needs a workspace of 8469864064 bytes, at most 4294967296");
}

TEST(Sm90Gemm, RefusesWithTheNumber) {
  const op::GemmSignature f16 = describe_f16();
  EXPECT_EQ(refusal(f16, sm90_design(kLarge, {1, 1}, kSm80)), "wgmma needs sm_90a, the target is sm_80");
  const op::GemmSignature loose = describe_f16({}, 8);
  EXPECT_EQ(refusal(loose, sm90_design(kLarge, {2, 1})),
            "B is aligned to 8 bytes, TMA needs 16: plain loads cannot multicast to 2 CTAs");
  const op::GemmSignature bytes = describe({DType::s8, DType::s8, DType::s32, DType::s32}, {}, 8);
  EXPECT_EQ(refusal(bytes, sm90_design({{64, 24, 32}, 4, {4, 1}})),
            "B: a pass of plain loads covers 32 lines, which do not divide the tile's 24");
  EXPECT_EQ(refusal(f16, sm90_design({{128, 256, 64}, 4, {6, 1}})), "tile m 128 is not divisible by warp count m 6");
  EXPECT_EQ(refusal(f16, sm90_design({{128, 256, 64}, 4, {2, 1}})),
            "math warps must be 4, 8 or 12 along m and 1 along n, got 2x1");
  EXPECT_EQ(refusal(f16, sm90_design({{64, 256, 64}, 4, {8, 1}})),
            "tile m 64 is not divisible by the 128 rows of 2 warpgroups");
  EXPECT_EQ(refusal(f16, sm90_design(kLarge, {4, 4})), "a cluster has at most 8 CTAs, got 4x4");
  EXPECT_EQ(refusal(f16, sm90_design({{256, 256, 64}, 2, {8, 1}})),
            "a tile of 256x256 over 2 warpgroups needs about 296 registers a thread, of 232");
  EXPECT_EQ(refusal(f16, sm90_design({{128, 256, 64}, 5, {8, 1}})),
            "needs 278640 bytes of shared memory, more than the 232448 of a CTA on sm_90a");
}

// ptxas asks for 130 registers for 200 columns if A comes from registers, and the threads of four warpgroups have 128.
TEST(Sm90Gemm, AnInstructionWithFragmentsOfANeedsRegistersForThem) {
  const op::GemmSignature tf32 =
      describe({DType::f32, DType::f32, DType::f32, DType::f32, op::MathOperation::multiply_add_tf32}, {kRow, kRow});
  const auto refused = [&](int columns) {
    Sm90GemmDesign design = sm90_design({{columns, 192, 32}, 4, {1, 12}});
    design.swaps_operands = true;
    return refusal(tf32, design);
  };
  EXPECT_EQ(refused(184), "none");
  EXPECT_EQ(refused(200), "an instruction of 200 columns needs 130 registers a thread, of 128 in 4 warpgroups");
}

TEST(Sm90Gemm, SumsOfEightBitFloatsArePromotedUnlessTheyMayBeFast) {
  constexpr Tile kTall{{256, 128, 128}, 4, {8, 1}};
  TypeCase types{DType::e4m3, DType::e5m2, DType::bf16, DType::f32};
  const op::GemmSignature exact = describe(types);
  const Sm90GemmPlan plan = planned(exact, sm90_design(kTall));
  EXPECT_EQ(plan.atom->name, "wgmma_k32_f32_e4m3_e5m2_ss");
  EXPECT_TRUE(plan.promotes_accumulators);
  EXPECT_EQ(plan.a.tile_bytes(), 256 * 128);
  EXPECT_EQ(refusal(exact, sm90_design({{128, 256, 128}, 4, {8, 1}})),
            "a tile of 128x256 over 2 warpgroups needs about 296 registers a thread, of 232");
  EXPECT_EQ(refusal(exact, sm90_design({{128, 128, 256}, 2, {8, 1}})),
            "tile k must be at most 128 where sums of 8-bit floats are promoted, got 256");
  types.math = op::MathOperation::multiply_add_fast_accumulate;
  const op::GemmSignature fast = describe(types);
  EXPECT_FALSE(planned(fast, sm90_design({{128, 256, 128}, 4, {8, 1}})).promotes_accumulators);
  const op::GemmSignature half = describe({DType::e5m2, DType::e5m2, DType::f16, DType::f16});
  EXPECT_FALSE(planned(half, sm90_design(kTall)).promotes_accumulators);
}

TEST(Sm90Gemm, AColumnMajorOutputExchangesTheTypesOfEightBitFloats) {
  const op::GemmSignature description =
      describe({DType::e4m3, DType::e5m2, DType::f32, DType::f32}, {kRow, kColumn, kRow, kColumn});
  const Sm90GemmPlan plan = planned(description, sm90_design({{128, 128, 128}, 4, {1, 8}}));
  EXPECT_EQ(plan.atom->name, "wgmma_k32_f32_e5m2_e4m3_ss");
}

Sm90GemmDesign split(int split_k, const Tile& tile) {
  Sm90GemmDesign design = sm90_design(tile);
  design.split_k = split_k;
  return design;
}

TEST(Sm90Gemm, SplitKLaunchesAGroupOfCtasPerTile) {
  const op::GemmSignature description = describe_f16();
  const Sm90GemmPlan plan = planned(description, split(4, {{128, 128, 64}, 3, {8, 1}}));
  EXPECT_EQ(plan.cluster_size(), 1);
  EXPECT_EQ(plan.group_size(), 4);
  EXPECT_FALSE(plan.stores_by_tma);
  // Shared memory holds the stages, four words of each thread of two warpgroups, and two barriers per stage.
  EXPECT_EQ(plan.smem_bytes(), 3 * 32768 + 2 * 128 * 16 + 6 * 8);
  EXPECT_EQ(check_arguments(plan, op::view(problem_of(description, 128, 128, 192))).reason(),
            "k of 192 has 3 tiles of 64, fewer than split_k of 4");

  const Launch launched = launch(plan, op::view(problem_of(description, 384, 128, 1024)));
  EXPECT_TRUE(launched.cooperative);
  EXPECT_EQ(launched.grid[0], 3U * 4);
  EXPECT_EQ(launched.cluster[0], 1U);
  EXPECT_EQ(launched.workspace_bytes(), kWorkspaceCounterBytes + 3 * 2 * 4 * 128 * 128 * 4);
  EXPECT_EQ(launch(plan, op::view(problem_of(description, 8192, 8192, 1024))).grid[0], 132U);
}

TEST(Sm90Gemm, SubtilesHaveTheWidestPanelsThatDivideATile) {
  constexpr int kRoom = 16384;
  constexpr OutputElements kHalves{2, 2, true}, kWords{4, 4, true}, kBytes{1, 1, true};
  EXPECT_EQ(epilogue_subtile(kHalves, 128, kRoom), (EpilogueSubtile{64, 1}));
  EXPECT_EQ(epilogue_subtile(kHalves, 32, kRoom), (EpilogueSubtile{32, 1}));
  const EpilogueSubtile narrow = epilogue_subtile(kHalves, 48, kRoom);
  EXPECT_EQ(narrow, (EpilogueSubtile{16, 3}));
  EXPECT_EQ(narrow.count(48), 1);
  EXPECT_EQ(epilogue_subtile(kHalves, 48, 3 * 4096 - 1), (EpilogueSubtile{16, 2}));
  EXPECT_EQ(epilogue_subtile(kHalves, 48, 0), (EpilogueSubtile{16, 1}));
  EXPECT_EQ(epilogue_subtile(kWords, 160, kRoom), (EpilogueSubtile{32, 1}));
  EXPECT_EQ(epilogue_subtile(kWords, 160, kRoom).count(160), 5);
  EXPECT_EQ(epilogue_subtile(kBytes, 24, kRoom), EpilogueSubtile{});  // rows of 24 bytes are no multiple of 16
  EXPECT_EQ(epilogue_subtile(kBytes, 96, kRoom), (EpilogueSubtile{32, 3}));
  EXPECT_EQ(epilogue_subtile({1, 1, false}, 24, kRoom), (EpilogueSubtile{24, 1}));
  EXPECT_EQ(epilogue_subtile({2, 2, false}, 112, kRoom), (EpilogueSubtile{56, 1}));
  EXPECT_EQ(epilogue_subtile({4, 1, true}, 64, kRoom),
            (EpilogueSubtile{32, 1}));  // C has 4-byte elements, D 1-byte elements
}

TEST(Sm90Gemm, TilesThatNoPanelOfWholeSectorsDividesAreOnePackedPanel) {
  constexpr int kRoom = 16384;
  constexpr OutputElements kHalves{2, 2, true}, kWords{4, 4, true}, kBytes{1, 1, true};
  for (const int columns : {24, 40, 56, 72, 120})
    EXPECT_EQ(epilogue_subtile(kHalves, columns, 0), (EpilogueSubtile{columns, 1}));
  EXPECT_EQ(epilogue_subtile(kBytes, 48, kRoom), (EpilogueSubtile{48, 1}));
  EXPECT_EQ(epilogue_subtile({4, 2, true}, 56, kRoom), (EpilogueSubtile{56, 1}));
  EXPECT_EQ(epilogue_subtile(kWords, 56, kRoom), (EpilogueSubtile{8, 4}));    // 8 columns are a sector
  EXPECT_EQ(epilogue_subtile(kHalves, 136, kRoom), (EpilogueSubtile{8, 8}));  // two buffers would take too much

  for (const int columns : {80, 112, 144, 176, 208, 240})
    EXPECT_EQ(epilogue_subtile(kHalves, columns, 2 * kRoom), (EpilogueSubtile{columns / 2, 1})) << "not 32-byte panels";
  EXPECT_EQ(epilogue_subtile(kHalves, 176, 0), (EpilogueSubtile{16, 1})) << "it must fit in shared memory";
  EXPECT_EQ(wanted_output_bytes(kHalves, 176), 2 * 64 * 88 * 2);
  EXPECT_EQ(wanted_output_bytes(kHalves, 160), 2 * 64 * 32 * 2);
  EXPECT_EQ(wanted_output_bytes(kHalves, 32), 2 * 64 * 32 * 2);
  EXPECT_EQ(epilogue_subtile({4, 2, true}, 176, 2 * kRoom).panel_columns, 16) << "rows of C would be 352 bytes";
  OutputElements plain = kHalves;
  plain.stores_by_tma = false;
  EXPECT_EQ(epilogue_subtile(plain, 176, 3 * kRoom), (EpilogueSubtile{16, 11})) << "plain stores need whole rows";

  EXPECT_EQ(panel_boxes(2, true, 56), (PanelBoxes{.line = 56, .lines = 64, .boxes = 1}));
  EXPECT_EQ(panel_boxes(2, true, 64), (PanelBoxes{.line = 64, .lines = 64, .boxes = 1}));
  const layout::ComposedLayout packed = panel_layout(2, true, 56);
  for (int row = 0; row < 64; ++row) {
    for (int column = 0; column < 56; ++column)
      EXPECT_EQ(packed(layout::IntTuple{row, column}), (row * 56 + column) * 2);
  }
}

TEST(Sm90Gemm, StoresAreCountedInBoxesAndPartialSectors) {
  constexpr OutputElements kHalves{2, 2, true}, kColumns{2, 2, false}, kWords{4, 4, false};
  const auto stores = [](const OutputElements& elements, int atoms, int columns) {
    return tile_stores(epilogue_subtile(elements, columns, 16384), elements, atoms, columns);
  };
  EXPECT_EQ(stores(kHalves, 1, 128), (TileStores{.boxes = 2, .partial_sectors = 0}));
  EXPECT_EQ(stores(kHalves, 2, 176), (TileStores{.boxes = 22, .partial_sectors = 0}));
  EXPECT_EQ(stores(kHalves, 1, 56), (TileStores{.boxes = 1, .partial_sectors = 1}));
  EXPECT_EQ(stores(kHalves, 1, 136), (TileStores{.boxes = 17, .partial_sectors = 17}));
  EXPECT_EQ(stores(kColumns, 1, 112), (TileStores{.boxes = 2, .partial_sectors = 0}));
  EXPECT_EQ(stores(kWords, 1, 64), (TileStores{.boxes = 4, .partial_sectors = 0}));  // a column of 64 rows is two boxes
}

/// The eight rows of 16 bytes of a matrix of stmatrix must lie in different banks.
TEST(Sm90Gemm, PackedPanelsOfOddWidthsHaveNoBankConflicts) {
  for (const int columns : {24, 40, 56, 72, 88, 104, 120}) {
    const layout::ComposedLayout panel = panel_layout(2, true, columns);
    for (int first = 0; first < 64; first += 8) {
      for (int column = 0; column < columns; column += 8) {
        std::set<std::int64_t> banks;
        for (int row = first; row < first + 8; ++row) banks.insert(panel(layout::IntTuple{row, column}) % 128 / 16);
        EXPECT_EQ(banks.size(), 8U) << columns;
      }
    }
  }
}

// Rows of D that plain stores store should have few ends.
TEST(Sm90Gemm, SubtilesOfPlainStoresAreWide) {
  constexpr int kRoom = 65536;
  constexpr OutputElements kHalves{.stores_by_tma = false}, kColumns{.d_is_row_major = false, .stores_by_tma = false};
  EXPECT_EQ(epilogue_subtile(kHalves, 256, kRoom), (EpilogueSubtile{64, 4}));
  EXPECT_EQ(line_bytes(kHalves, {64, 4}, 256), 512);
  EXPECT_EQ(epilogue_subtile(kHalves, 256, kRoom - 1), (EpilogueSubtile{64, 3}));
  EXPECT_EQ(epilogue_subtile(kHalves, 80, kRoom), (EpilogueSubtile{16, 5}));
  EXPECT_EQ(line_bytes(kHalves, {16, 5}, 80), 160);
  EXPECT_EQ(epilogue_subtile(kColumns, 256, kRoom), (EpilogueSubtile{64, 1})) << "a column has 64 rows";
  EXPECT_EQ(line_bytes(kColumns, {64, 1}, 256), 128);
  EXPECT_EQ(epilogue_subtile({.c_bytes = 4, .stores_by_tma = false}, 256, kRoom), (EpilogueSubtile{32, 1}))
      << "a thread would hold 64 results";
}

TEST(Sm90Gemm, RefusesSplitKThatCannotBeSummed) {
  const op::GemmSignature description = describe_f16();
  const Tile tile{{128, 128, 64}, 3, {8, 1}};
  Sm90GemmDesign shared = sm90_design(tile, {2, 1});
  shared.split_k = 67;
  EXPECT_EQ(refusal(description, shared), "split_k must be from 1 to the 66 clusters of 2 that sm_90a holds, got 67");
  EXPECT_EQ(refusal(description, split(133, tile)),
            "split_k must be from 1 to the 132 clusters of 1 that sm_90a holds, got 133");
  EXPECT_EQ(refusal(description, split(0, tile)),
            "split_k must be from 1 to the 132 clusters of 1 that sm_90a holds, got 0");
  const op::GemmSignature half = describe({DType::f16, DType::f16, DType::f16, DType::f16});
  EXPECT_EQ(refusal(half, split(2, {{64, 64, 64}, 3, {4, 1}})), "split-K accumulates in f32 or s32, not in f16");
}

TEST(Sm90Gemm, PingPongGivesEachWarpgroupATile) {
  const op::GemmSignature description = describe_f16();
  Sm90GemmDesign design = sm90_design({{128, 128, 64}, 4, {8, 1}});
  design.schedule = Schedule::ping_pong;
  const Sm90GemmPlan plan = planned(description, design);
  EXPECT_EQ(plan.team(), 1);
  EXPECT_EQ(plan.consumers(), 2);
  design.warps_m = 4;
  EXPECT_EQ(refusal(description, design), "ping_pong needs at least 2 consumer warpgroups, got 1");
  design = sm90_design({{128, 256, 64}, 3, {8, 1}});
  design.schedule = Schedule::ping_pong;
  EXPECT_EQ(refusal(description, design),
            "a tile of 128x256 over 1 warpgroups needs about 296 registers a thread, of 232");
}

TEST(Sm90Gemm, InterleavedOperandsAreRefused) {
  const TypeCase bytes{DType::s8, DType::s8, DType::s8, DType::s32};
  const Sm90GemmDesign design = sm90_design({{128, 128, 128}, 4, {8, 1}});
  EXPECT_EQ(refusal(describe(bytes, kInterleavedLayouts), design),
            "TMA moves row-major and column-major matrices, but A is column_interleaved_32");
  EXPECT_EQ(refusal(describe(bytes, {kRow, kColumn, kRow, kColumnInterleaved}), design),
            "TMA moves row-major and column-major matrices, but D is column_interleaved_32");
}

TEST(Sm90Gemm, GatedEpiloguesAreNeverTransposed) {
  for (const auto d_layout : {kRow, kColumn}) {
    op::GemmSignature description = describe_f16({kRow, kColumn, kRow, d_layout});
    description.epilogue = op::parse_epilogue("D = swiglu(acc)", DType::f32).value_or_throw();
    Sm90GemmDesign design = sm90_design({{128, 128, 64}, 4, {8, 1}});
    const Sm90GemmPlan plan = planned(description, design);
    EXPECT_FALSE(plan.is_transposed);
    EXPECT_EQ(plan.d_is_row_major(), d_layout == kRow);
    EXPECT_EQ(wgmma_shape(design, description), (TileShape{64, 128, 16}));
    design.swaps_operands = true;
    EXPECT_EQ(refusal(description, design),
              "the epilogue pairs columns of A*B, which would be rows if the operands were swapped: do not swap them");
  }
}

TEST(Sm90Gemm, SwappedOperandsStoreColumns) {
  const op::GemmSignature description = describe_f16();
  Sm90GemmDesign design = sm90_design({{16, 128, 64}, 4, {1, 8}});
  design.swaps_operands = true;
  const Sm90GemmPlan plan = planned(description, design);
  EXPECT_TRUE(plan.is_transposed);
  EXPECT_FALSE(plan.d_is_row_major());
  EXPECT_EQ(plan.tile, (TileShape{128, 16, 64}));
  EXPECT_EQ(plan.subtile, (EpilogueSubtile{16, 1}));
  const Launch launched = launch(plan, op::view(problem_of(description, 9, 512, 256)));
  const TensorMapRequest& d = launched.tensor_maps()[2];
  EXPECT_EQ(d.map.extents, (std::array<std::uint64_t, 5>{512, 9, 1}));
  EXPECT_EQ(d.map.box, (std::array<std::uint32_t, 5>{64, 16, 1}));
  EXPECT_EQ(d.map.swizzle, TensorMapSwizzle::bytes_128);
}

TEST(Sm90Gemm, UnalignedOutputsAreStoredByPlainStores) {
  op::GemmSignature description = describe_f16();
  description.d.alignment = 2;
  const Sm90GemmPlan plan = planned(description, sm90_design(kLarge, {2, 1}));
  EXPECT_FALSE(plan.stores_by_tma);
  EXPECT_EQ(plan.store_bytes, 4);
  op::Gemm gemm = problem_of(description, 100, 130, 64);
  EXPECT_TRUE(check_arguments(plan, op::view(gemm)));
  const Launch launched = launch(plan, op::view(gemm));
  EXPECT_EQ(launched.tensor_maps().size(), 2U);
  std::uint64_t address = 0;
  std::memcpy(&address, launched.parameters().data() + 256, sizeof address);
  EXPECT_EQ(address, gemm.d.address);
}

constexpr TypeCase kTf32{DType::f32, DType::f32, DType::f32, DType::f32, op::MathOperation::multiply_add_tf32};
constexpr TypeCase kBytes{DType::s8, DType::u8, DType::s32, DType::s32};
constexpr TypeCase kFloats{DType::e4m3, DType::e5m2, DType::bf16, DType::f32};
constexpr Tile kWords{{128, 256, 32}, 4, {8, 1}};

TEST(Sm90Gemm, KMajor32BitOperandsAreReadByDescriptors) {
  const op::GemmSignature description = describe(kTf32);
  const Sm90GemmPlan plan = planned(description, sm90_design(kWords));
  EXPECT_EQ(plan.atom->name, "wgmma_k8_f32_tf32_tf32_ss");
  EXPECT_FALSE(plan.a.fragments);
  EXPECT_EQ(plan.subtile, (EpilogueSubtile{32, 1}));
}

TEST(Sm90Gemm, MnMajor32BitAGoesThroughRegisters) {
  const op::GemmSignature description = describe(kTf32, {kColumn, kColumn, kRow, kRow});
  const Sm90GemmPlan plan = planned(description, sm90_design(kWords));
  EXPECT_EQ(plan.atom->name, "wgmma_k8_f32_tf32_tf32_rs");
  EXPECT_EQ(plan.a.boxes, 4);
  EXPECT_EQ(plan.a.map.box, (std::array<std::uint32_t, 5>{32, 32, 1}));
  ASSERT_TRUE(plan.a.fragments);
  EXPECT_EQ(to_string(plan.a.fragments->offset),
            "Sw<3,2,3> o 0 o ((4,8,(2,2)),(2,2),2):((32,1,(16,1024)),(8,128),2048)");
  EXPECT_EQ(to_string(plan.b.wgmma.offset), "(1,4):(0,2)");
  EXPECT_EQ(refusal(description, sm90_design({{128, 256, 24}, 4, {8, 1}})),
            "fragments of A are double buffered, so a tile needs an even number of instructions along k, got 3");
  EXPECT_EQ(refusal(description, sm90_design({{192, 128, 32}, 4, {4, 1}})),
            "a tile of 192x128 over 1 warpgroups needs about 268 registers a thread, of 232");
}

TEST(Sm90Gemm, MnMajor32BitBNeedsSwappedOperands) {
  const op::GemmSignature along_n = describe(kTf32, {kRow, kRow, kRow, kRow});
  EXPECT_EQ(refusal(along_n, sm90_design(kWords)),
            "wgmma reads tf32 K-major only, except for A from registers: B is MN-major, swap the operands or repack "
            "them");
  Sm90GemmDesign swapped = sm90_design({{256, 128, 32}, 4, {1, 8}});
  swapped.swaps_operands = true;
  const Sm90GemmPlan plan = planned(along_n, swapped);
  EXPECT_TRUE(plan.is_transposed);
  EXPECT_TRUE(plan.a.fragments);
  EXPECT_FALSE(plan.d_is_row_major());
  const op::GemmSignature both = describe(kTf32, {kColumn, kRow, kRow, kRow});
  EXPECT_EQ(refusal(both, sm90_design(kWords)),
            "wgmma reads tf32 K-major only, except for A from registers: A and B are MN-major, repack them");
}

TEST(Sm90Gemm, OnlyBIsRepackedIfAGoesThroughRegisters) {
  Sm90GemmDesign design = repacking(kWords);
  design.repacks_only_b = true;
  const op::GemmSignature both_along_mn = describe(kTf32, {kColumn, kRow, kRow, kRow});
  const Sm90GemmPlan plan = planned(both_along_mn, design);
  EXPECT_FALSE(plan.a.is_repacked);
  EXPECT_TRUE(plan.b.is_repacked);
  EXPECT_TRUE(plan.loads_fragments());

  constexpr const char* kRefusal =
      "repacks_only_b is for a B that is repacked and an A that TMA loads and that goes through registers";
  EXPECT_EQ(refusal(describe(kTf32, {kRow, kRow, kRow, kRow}), design), kRefusal);
  EXPECT_EQ(refusal(describe(kTf32, {kColumn, kRow, kRow, kRow}, 4), design), kRefusal);
  EXPECT_EQ(refusal(describe(kTf32, {kColumn, kColumn, kRow, kRow}), design),
            "no operand needs to be repacked: TMA can load both, and wgmma reads both major modes");
  design.repacks_operands = false;
  EXPECT_FALSE(plan_sm90_gemm(both_along_mn, design));
}

// The search swaps or repacks operands if wgmma cannot read them otherwise.
TEST(Sm90Gemm, TheSearchServesEveryLayout) {
  for (const TypeCase& types : {kTf32, kBytes, kFloats}) {
    for (const Layouts& layouts : all_layouts()) {
      const op::GemmSignature description = describe(types, layouts);
      const std::vector<Sm90GemmDesign> designs =
          sm90_gemm_designs(op::view(problem_of(description, 4096, 4096, 4096)), description, kSm90);
      EXPECT_FALSE(designs.empty()) << to_string(description);
      for (const Sm90GemmDesign& design : designs) {
        EXPECT_TRUE(plan_sm90_gemm(description, design)) << to_string(description) << " " << to_string(design);
      }
    }
  }
}

TEST(Sm90Gemm, MnMajor32BitAnd8BitOperandsAreRepackedToKMajor) {
  for (const TypeCase& types : {kTf32, kBytes}) {
    const op::GemmSignature description = describe(types, {kColumn, kRow, kRow, kRow});
    const int k = 128 / bytes(types.a);
    const Sm90GemmPlan plan = planned(description, repacking({{128, 128, k}, 4, {8, 1}}));
    EXPECT_TRUE(plan.a.is_transposed && plan.b.is_transposed);
    EXPECT_EQ(plan.a.major, arch::Major::k);
    EXPECT_FALSE(plan.a.fragments);
    const Launch launched = launch(plan, op::view(problem_of(description, 260, 516, 100)));
    EXPECT_EQ(launched.tensor_maps()[1].map.extents, (std::array<std::uint64_t, 5>{100, 516, 1}));
  }
  // Warps transpose in shared memory and need more of it than the stages of small tiles occupy.
  const op::GemmSignature description = describe(kBytes, {kColumn, kRow, kRow, kRow});
  const Sm90GemmPlan small = planned(description, repacking({{64, 64, 128}, 3, {4, 1}}));
  EXPECT_EQ(small.smem_bytes(), 8 * 8704 + 6 * 8 + 2 * 8);
}

TEST(Sm90Gemm, MnMajor8BitAGoesThroughRegistersByLdmatrix) {
  const op::GemmSignature description = describe(kBytes, {kColumn, kColumn, kRow, kRow});
  const Sm90GemmPlan plan = planned(description, sm90_design({{128, 256, 128}, 4, {8, 1}}));
  EXPECT_EQ(plan.atom->name, "wgmma_k32_s32_s8_u8_rs");
  EXPECT_EQ(plan.a.boxes, 1);
  EXPECT_EQ(plan.a.map.box, (std::array<std::uint32_t, 5>{128, 128, 1}));
  EXPECT_EQ(plan.consumer_arrivals(), 4);
  ASSERT_TRUE(plan.a.fragments);
  EXPECT_TRUE(plan.a.fragments->pairs_rows);
}

op::Gemm pointer_arrays(std::int64_t batch) {
  op::Gemm gemm;
  const auto array = [&](std::uint64_t address, std::int64_t rows, std::int64_t columns, op::MatrixLayout layout) {
    return op::pointer_array(op::matrix(std::uint64_t{0}, DType::f16, rows, columns, layout), address, batch);
  };
  gemm.a = array((std::uint64_t{1} << 40) + 8, 200, 520, kRow);
  gemm.b = array(std::uint64_t{2} << 40, 520, 256, kColumn);
  gemm.c = array(std::uint64_t{3} << 40, 200, 256, kRow);
  gemm.d = array(std::uint64_t{4} << 40, 200, 256, kRow);
  gemm.accumulator = DType::f32;
  return gemm;
}

TEST(Sm90Gemm, EachCtaHasSlotsForTheTensorMapsOfAPointerArray) {
  const op::Gemm gemm = pointer_arrays(70000);
  ASSERT_TRUE(op::validate(gemm)) << op::validate(gemm).reason();
  const Sm90GemmPlan plan = planned(op::describe(gemm), sm90_design(kLarge));
  EXPECT_EQ(plan.made_tensor_maps(), 2);
  EXPECT_EQ(plan.tensor_map_slots(), plan.stages + 1);
  EXPECT_FALSE(plan.stores_by_tma);
  EXPECT_FALSE(plan.loads_source_by_tma);
  const Sm90SharedMemory memory = plan.shared_memory();
  EXPECT_EQ(memory.tensor_maps_at() % 128, 0);
  EXPECT_GE(memory.tensor_maps_at(), memory.ring_barriers_end());
  EXPECT_LE(memory.tensor_maps_at() + 2 * 128, memory.bytes());
  EXPECT_LE(memory.bytes(), arch::limits(plan.target).smem_per_block_bytes);

  ASSERT_TRUE(check_arguments(plan, op::view(gemm))) << check_arguments(plan, op::view(gemm)).reason();
  const Launch launched = launch(plan, op::view(gemm));
  EXPECT_EQ(launched.grid[0], static_cast<std::uint32_t>(arch::limits(plan.target).sm_count));
  EXPECT_FALSE(launched.cooperative);
  const std::size_t slots = std::size_t{launched.grid[0]} * static_cast<std::size_t>(plan.tensor_map_slots()) * 128;
  EXPECT_GE(launched.workspace_bytes(), kWorkspaceCounterBytes + 2 * slots);
  EXPECT_LE(launched.workspace_bytes(), kWorkspaceCounterBytes + 2 * slots + 512) << "not for every matrix";
  ASSERT_EQ(launched.tensor_maps().size(), 2U);
  const TensorMapRequest& a = launched.tensor_maps()[0];
  EXPECT_EQ(a.map.address, std::uint64_t{1} << 40) << "of no matrix, but a multiple of 16";
  EXPECT_EQ(a.map.extents, (std::array<std::uint64_t, 5>{520, 200, 1}));
  for (const TensorMapRequest& request : launched.tensor_maps()) EXPECT_TRUE(check(request.map));
  std::array<std::uint64_t, 2> array_and_slots{};
  std::memcpy(array_and_slots.data(), launched.parameters().data() + 128, sizeof array_and_slots);
  EXPECT_EQ(array_and_slots[0], gemm.a.address);
  EXPECT_EQ(array_and_slots[1] % 128, 0U);
}

TEST(Sm90Gemm, TheSearchFitsDesignsForPointerArrays) {
  const op::Gemm gemm = pointer_arrays(5);
  const op::GemmSignature signature = op::describe(gemm);
  const std::vector<Sm90GemmDesign> designs = sm90_gemm_designs(op::view(gemm), signature, kSm90a);
  EXPECT_FALSE(designs.empty());
  for (const Sm90GemmDesign& design : designs) {
    const Result<Sm90GemmSketch> sketch = sketch_sm90_gemm(signature, design);
    ASSERT_TRUE(sketch) << to_string(design) << ": " << sketch.reason();
    EXPECT_TRUE(check_arguments(*sketch, op::view(gemm))) << check_arguments(*sketch, op::view(gemm)).reason();
  }
}

}  // namespace
}  // namespace tilewright::plan
