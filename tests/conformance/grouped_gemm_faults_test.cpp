// Faults that are planted in how sm90_gemm schedules, loads and stores groups. The emulator must name the broken rule,
// or the result must be wrong.
#include <gtest/gtest.h>

#include <numeric>

#include "tests/conformance/gemm_checks.hpp"
#include "tests/conformance/guarded_groups.hpp"
#include "tests/conformance/planted_kernel.hpp"
#include "tests/conformance/sm90_design_case.hpp"
#include "tilewright/op/epilogue_text.hpp"

namespace tilewright::conformance {
namespace {

using Mode = op::GroupedMode;

constexpr const char* kOutput = "epilogue/warpgroup_output.cuh";
constexpr const char* kTiles = "scheduler/group_tiles.cuh";
constexpr const char* kMaps = "operand/tensor_map_ring.cuh";
constexpr const char* kBatch = "operand/tma_batch.cuh";
constexpr const char* kGroups = "scheduler/groups.cuh";
constexpr const char* kKernel = "gemm/sm90_gemm.cuh";
constexpr const char* kWrong = "wrong result";

struct Fault {
  const char* name;
  Mode mode;
  std::vector<Substitution> planted;
  std::string_view found;  // the name of a finding, or kWrong
};
void PrintTo(const Fault& fault, std::ostream* out) { *out << fault.name; }

const Fault kFaults[] = {
    {"TmaStoresTheLastTileOfAGroup",
     Mode::ragged_m,
     {{kOutput, "return row + 64 <= tile.end_m(row + 64) && column + kColumns <= tile.end_n(column + kColumns);",
       "return true;"}},
     kWrong},
    {"PlainStoresDoNotEndWithTheGroup",
     Mode::ragged_m,
     {{kOutput, "const int end_y = Plan::kDIsRowMajor ? end_m(tile) : end_n(tile) / kPerElement;",
       "const int end_y = Plan::kDIsRowMajor ? parameters_.m : end_n(tile) / kPerElement;"}},
     kWrong},
    {"BuffersOfTmaStoresAreReusedTooEarly",
     Mode::ragged_m,
     {{kOutput, "if (by_tma || thread_ == 0) ptx::tma_store_commit();", "if (by_tma) ptx::tma_store_commit();"}},
     emulator::name(emulator::FindingKind::async_read_in_flight)},
    {"TheTableIsReadBeforeItIsWritten",
     Mode::ragged_m,
     {{kTiles, "ptx::store_shared(shared + (first + thread) * 4, through);\n      __syncthreads();",
       "ptx::store_shared(shared + (first + thread) * 4, through);"}},
     emulator::name(emulator::FindingKind::shared_race)},
    {"TheTensorMapIsNotAcquired",
     Mode::ragged_k,
     {{kMaps, "ptx::tensor_map_acquire(slots_ + slot_);", ""}},
     emulator::name(emulator::FindingKind::missing_tensor_map_fence)},
    {"TheTensorMapDoesNotEndWithTheGroup",
     Mode::ragged_k,
     {{kMaps, "ptx::tensor_map_replace_extent<kMode>(shared_, extent);", "static_cast<void>(extent);"}},
     kWrong},
    {"AllGroupsUseOneTensorMap",
     Mode::ragged_k,
     {{kKernel, "if (tile.batch == selected) return;", "if (selected >= 0) return;"}},
     kWrong},
    {"AllGroupsUseTheMatrixOfTheFirst",
     Mode::masked_k,
     {{kBatch, ": step_(step), ring_(shared,", ": step_(step * 0), ring_(shared,"}},
     kWrong},
    {"PaddedGroupsBeginWhereTheOneBeforeEnds",
     Mode::masked_k,
     {{kGroups, "const int begin = kIsStacked && group > 0", "const int begin = group > 0"}},
     "bad descriptor"},  // a tensor copy begins at a coordinate that is not a multiple of 16 bytes
    {"PaddedGroupsMultiplyTheirPadding",
     Mode::masked_k,
     {{kMaps, "ptx::tensor_map_replace_extent<kMode>(shared_, extent);", "static_cast<void>(extent);"}},
     kWrong},
    {"GroupsWithoutKMultiplyNoZeros", Mode::ragged_k, {{kKernel, "Plan::kTileK), 1);", "Plan::kTileK), 0);"}}, kWrong},
    {"GroupsWithoutKMultiplyOthers",
     Mode::ragged_k,
     {{kKernel, "tile.begin_k() : behind_k;", "tile.begin_k() : 0;"}},
     kWrong},
    {"WarpgroupsWithoutRowsReleaseNoStages",
     Mode::ragged_m,
     {{kKernel, "ring.end_read(passed.stage, thread);", "{}"}},
     emulator::name(emulator::FindingKind::deadlock)},
    {"WarpgroupsWithoutRowsReleaseStagesBeforeTheyArrive",
     Mode::ragged_m,
     {{kKernel, "ring.begin_read(passed);", ""}},
     emulator::name(emulator::FindingKind::async_read_in_flight)},
};

class GroupedFaults : public testing::Test {
 protected:
  void SetUp() override {
    try {
      engine().compiler();
    } catch (const ToolchainNotFound& error) {
      GTEST_SKIP() << error.what();
    }
  }

  static engine::Engine& engine() { return engine_of("emulator:sm_90a"); }

  /// Runs a kernel with the faults, whose warpgroups have 128 rows of a tile and more steps of K than it has stages.
  /// Returns "", the name of the finding, or kWrong.
  static std::string found_in(Mode mode, std::span<const Substitution> planted) {
    std::vector<std::int32_t> sizes{130, 0, 1, 129, 63, 64, 200, 7};
    // With more groups than SMs, a CTA computes tiles of two groups.
    for (int i = 0; op::ends_along_k(mode) && i < 140; ++i) sizes.push_back(i % 3);
    std::vector<std::int32_t> ends = sizes;
    if (op::is_ragged(mode)) std::partial_sum(sizes.begin(), sizes.end(), ends.begin());
    const op::Gemm capacity =
        shape_of(*bench::parse_problem(mode == Mode::ragged_k   ? "dtype=bf16 a=col b=row m=72 n=136 k=760"
                                       : mode == Mode::masked_k ? "dtype=bf16 a=row b=col m=72 n=136 k=264"
                                                                : "dtype=bf16 a=row b=col m=620 n=136 k=264"));
    GuardedGroups guarded(engine().device(), grouped_of(capacity, mode, static_cast<std::int64_t>(sizes.size())), ends,
                          {});
    const op::GemmSignature signature = op::describe(op::view(guarded.on_device()));
    const registry::KernelPtr kernel = engine().make_kernel(signature, design_of({"", {256, 128}, 2, 3}, signature));
    guarded.upload();
    try {
      engine().run(guarded.on_device(), std::make_shared<PlantedKernel>(kernel, planted));
    } catch (const emulator::EmulationFinding& finding) {
      return std::string(emulator::name(finding.finding().kind));
    }
    guarded.download();
    return guarded.damage().empty() && op::compare(op::Problem(guarded.host())).is_exact() ? std::string() : kWrong;
  }
};

class EachGroupedFault : public GroupedFaults, public testing::WithParamInterface<Fault> {};

TEST_P(EachGroupedFault, IsFound) { EXPECT_EQ(found_in(GetParam().mode, GetParam().planted), GetParam().found); }

INSTANTIATE_TEST_SUITE_P(All, EachGroupedFault, testing::ValuesIn(kFaults),
                         [](const auto& tested) { return std::string(tested.param.name); });

/// Reductions count the blocks of each group that have arrived. A launch that leaves other counters than it found makes
/// the next one wrong.
class GroupedReductionFaults : public GroupedFaults {
 protected:
  /// Launches twice, with other sizes. The workspace is that of an engine of its own, because faults leave counters. It
  /// looks for races, because CTAs that share memory without an order may still compute the right result.
  static std::string found_in(std::span<const Substitution> planted) {
    engine::Options options = engine::Options::from_environment();
    options.device = "emulator:sm_90a";
    options.emulator_checks_global = true;
    engine::Engine engine(options);
    op::GroupedGemm grouped =
        grouped_of(shape_of(*bench::parse_problem("dtype=bf16 a=row b=col m=320 n=136 k=72")), Mode::ragged_m, 5);
    constexpr std::uint64_t kApart = std::uint64_t{1} << 40;
    grouped.gemm.epilogue = *op::parse_epilogue("D = acc; row(sums) = sum(acc); column(most) = max(acc)", DType::f32);
    grouped.gemm.tensors = {{"sums", op::batched(op::matrix(5 * kApart, DType::f32, 1, 136), 5)},
                            {"most", op::matrix(6 * kApart, DType::f32, 320, 1)}};
    GuardedGroups guarded(engine.device(), grouped, {65, 65, 200, 201, 320}, {});
    const op::GemmSignature signature = op::describe(op::view(guarded.on_device()));
    const auto kernel = std::make_shared<PlantedKernel>(
        engine.make_kernel(signature, design_of({"", {64, 64}, 1, 3}, signature)), planted);
    for (const std::vector<std::int32_t>& ends :
         {std::vector<std::int32_t>{65, 65, 200, 201, 320}, {1, 130, 140, 260, 320}}) {
      guarded.set_ends(ends);
      guarded.upload();
      try {
        engine.run(guarded.on_device(), kernel);
      } catch (const emulator::EmulationFinding& finding) {
        return std::string(emulator::name(finding.finding().kind));
      }
      guarded.download();
      if (!guarded.damage().empty() || !op::compare(op::Problem(guarded.host())).is_exact()) return kWrong;
    }
    return {};
  }
};

TEST_F(GroupedReductionFaults, CountersThatAreNotResetAreFound) {
  EXPECT_EQ(found_in({}), "");
  const Substitution fault{"epilogue/reduction.cuh", "ptx::increment_to(at, end) == end",
                           "ptx::increment_to(at, 0xffffffffu) == end"};
  EXPECT_EQ(found_in(std::span(&fault, 1)), emulator::name(emulator::FindingKind::global_race));
}

TEST_F(GroupedReductionFaults, CountsOfTheWholeStackAreFound) {
  const Substitution fault{"epilogue/reduction.cuh",
                           "return ceil_div(block.tile.end_m(m_) - block.tile.begin_m(), kBlockM);",
                           "return ceil_div(m_, kBlockM);"};
  EXPECT_EQ(found_in(std::span(&fault, 1)), kWrong);
}

TEST_F(GroupedReductionFaults, GroupsThatShareBlocksAreFound) {
  const Substitution fault{"epilogue/reduction.cuh", "return block.tile.begin_m() / kBlockM + block.tile.batch;",
                           "return block.tile.begin_m() / kBlockM;"};
  EXPECT_EQ(found_in(std::span(&fault, 1)), emulator::name(emulator::FindingKind::global_race));
}

// Without a fault, the same sources must have no findings and the right result.
TEST_F(GroupedFaults, AreNotReportedForUnchangedCode) {
  EXPECT_EQ(found_in(Mode::ragged_m, {}), "");
  EXPECT_EQ(found_in(Mode::ragged_k, {}), "");
  EXPECT_EQ(found_in(Mode::masked_k, {}), "");
}

}  // namespace
}  // namespace tilewright::conformance
