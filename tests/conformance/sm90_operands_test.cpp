// Operands whose layout TMA cannot load: sm90_gemm loads them with plain loads, or repacks them first.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/conformance/gemm_checks.hpp"
#include "tests/unit/plan/gemm_cases.hpp"
#include "tilewright/base/target_features.hpp"

namespace tilewright::conformance {
namespace {

struct OperandsCase {
  std::string problem;
  Placement placement;
  std::array<int, 2> tile;
  int warpgroups = 2;
  plan::Schedule schedule = plan::Schedule::cooperative;
  int split_k = 1;
  std::array<int, 2> cluster{1, 1};
  std::string one = "";  // letters of the operands that are broadcast over a batch of 3
};

std::ostream& operator<<(std::ostream& out, const OperandsCase& tested) { return out << tested.problem; }

std::vector<OperandsCase> gathered_cases() {
  using enum plan::Schedule;
  return {
      // Elements of 2 bytes: every layout, both schedules, split-K, several tiles per CTA.
      {"dtype=bf16 m=151 n=277 k=201 a=row b=col", {.offset_elements = 1}, {128, 256}},
      {"dtype=f16 m=131 n=263 k=135 a=row b=row", {}, {128, 128}, 2, ping_pong},
      {"dtype=f16 m=67 n=71 k=193 a=col b=row d=col", {.padding = 2, .offset_elements = 3}, {64, 64}, 1},
      {"dtype=bf16 m=135 n=131 k=129 a=col b=col", {}, {128, 128}},
      {"dtype=f16 m=33 n=131 k=333 a=row b=col", {.padding = 4}, {128, 128}, 2, cooperative, 2},
      {"dtype=bf16 m=1 n=3 k=5 a=col b=row", {}, {64, 64}, 1},
      {"dtype=f16 m=197 n=67 k=129 a=row b=col", {}, {192, 64}, 3},
      // One of the two operands is loaded by TMA.
      {"dtype=bf16 m=131 n=263 k=200 a=row b=row", {}, {128, 128}},
      {"dtype=f16 m=136 n=131 k=135 a=col b=col", {}, {128, 128}, 2, ping_pong},
      // Accesses of 4 and 8 bytes.
      {"dtype=bf16 m=131 n=137 k=202 a=row b=col", {.offset_elements = 2}, {128, 128}, 2, ping_pong},
      {"dtype=f16 m=132 n=140 k=131 a=col b=row", {}, {128, 128}},
      {"dtype=tf32 m=131 n=133 k=101 a=row b=col", {.offset_elements = 3}, {128, 128}},
      {"dtype=tf32 m=65 n=70 k=98 a=row b=col", {}, {64, 64}, 1},
      // Elements of 1 byte.
      {"dtype=s8 m=131 n=133 k=391 a=row b=col", {.offset_elements = 1}, {128, 128}},
      {"dtype=u8 m=70 n=69 k=259 a=row b=col", {.padding = 3}, {64, 64}, 2, ping_pong},
      {"dtype=s8 m=70 n=69 k=260 a=row b=col", {}, {64, 64}, 1},
      {"dtype=e4m3 m=131 n=70 k=387 a=row b=col", {}, {128, 64}},
      // A is M-major and is transposed through registers.
      {"dtype=tf32 m=131 n=69 k=101 a=col b=col", {.offset_elements = 1}, {128, 64}},
      {"dtype=s8 m=67 n=133 k=391 a=col b=col", {}, {64, 64}, 1},
      // A batch; A is loaded by TMA.
      {"dtype=bf16 batch=3 m=67 n=71 k=136 a=row b=row", {.batch_padding = 8}, {64, 64}, 1},
  };
}

std::vector<OperandsCase> repacked_cases() {
  using enum plan::Schedule;
  return {
      // Elements of 2 bytes: every layout and misalignment, both schedules, split-K, clusters, long rows.
      {"dtype=bf16 m=151 n=277 k=201 a=row b=col", {.offset_elements = 1}, {128, 256}},
      {"dtype=f16 m=131 n=263 k=135 a=row b=row", {}, {128, 128}, 2, ping_pong},
      {"dtype=f16 m=67 n=71 k=193 a=col b=row d=col", {.padding = 2, .offset_elements = 3}, {64, 64}, 1},
      {"dtype=bf16 m=135 n=131 k=129 a=col b=col", {.offset_elements = 7}, {128, 128}},
      {"dtype=f16 m=33 n=131 k=1333 a=row b=col", {.padding = 4}, {128, 128}, 2, cooperative, 2},
      {"dtype=bf16 m=1 n=3 k=5 a=col b=row", {}, {64, 64}, 1},
      {"dtype=bf16 m=1 n=1 k=1 a=row b=col", {.offset_elements = 1}, {64, 64}, 1},
      {"dtype=f16 m=197 n=67 k=129 a=row b=col", {}, {192, 64}, 3},
      {"dtype=bf16 m=263 n=131 k=135 a=row b=col", {}, {64, 64}, 1, cooperative, 1, {2, 1}},
      {"dtype=bf16 m=131 n=263 k=135 a=col b=row", {}, {128, 64}, 2, ping_pong, 1, {1, 2}},
      // One of the two operands is loaded by TMA.
      {"dtype=bf16 m=131 n=263 k=200 a=row b=row", {}, {128, 128}},
      {"dtype=f16 m=136 n=131 k=135 a=col b=col", {}, {128, 128}, 2, ping_pong},
      // Accesses of 4 and 8 bytes.
      {"dtype=bf16 m=131 n=137 k=202 a=row b=col", {.offset_elements = 2}, {128, 128}, 2, ping_pong},
      {"dtype=f16 m=132 n=140 k=131 a=col b=row", {.offset_elements = 4}, {128, 128}},
      {"dtype=tf32 m=131 n=133 k=101 a=row b=col", {.offset_elements = 3}, {128, 128}},
      {"dtype=tf32 m=65 n=70 k=98 a=row b=col", {.offset_elements = 2}, {64, 64}, 1},
      // Elements of 1 byte.
      {"dtype=s8 m=131 n=133 k=391 a=row b=col", {.offset_elements = 1}, {128, 128}},
      {"dtype=u8 m=70 n=69 k=2111 a=row b=col", {.padding = 3, .offset_elements = 13}, {64, 64}, 2, ping_pong},
      {"dtype=s8 m=70 n=69 k=260 a=row b=col", {}, {64, 64}, 1},
      {"dtype=e4m3 m=131 n=70 k=387 a=row b=col", {}, {128, 64}},
      // There are more tiles than CTAs.
      {"dtype=bf16 m=801 n=705 k=67 a=row b=col", {}, {64, 64}, 1},
  };
}

// Types that wgmma reads only K-major, aligned and unaligned.
std::vector<OperandsCase> transposed_cases() {
  using enum plan::Schedule;
  return {
      {"dtype=tf32 m=132 n=260 k=100 a=col b=row", {}, {128, 128}},
      {"dtype=tf32 m=131 n=69 k=101 a=col b=row", {.offset_elements = 1}, {128, 64}},
      {"dtype=tf32 m=131 n=69 k=101 a=row b=row", {}, {64, 64}, 2, ping_pong},
      {"dtype=tf32 m=67 n=69 k=132 a=col b=col d=col", {.padding = 1}, {64, 64}, 1},
      {"dtype=tf32 m=1 n=3 k=5 a=col b=row", {}, {64, 64}, 1},
      {"dtype=s8 m=144 n=272 k=208 a=col b=row", {}, {128, 128}},
      {"dtype=s8 m=128 n=256 k=64 a=col b=row", {.offset_elements = 1}, {128, 128}},
      {"dtype=s8 m=131 n=133 k=391 a=col b=row", {.offset_elements = 1}, {128, 128}},
      {"dtype=u8 m=70 n=69 k=259 a=row b=row", {.padding = 3, .offset_elements = 2}, {64, 64}, 2, ping_pong},
      {"dtype=s8 m=70 n=136 k=263 a=col b=col d=col", {.offset_elements = 3}, {64, 64}, 1, cooperative, 2},
      {"dtype=s8 m=263 n=131 k=135 a=col b=row", {}, {64, 64}, 1, cooperative, 1, {2, 1}},
      {"dtype=e4m3 m=131 n=70 k=387 a=col b=row out=bf16", {}, {128, 64}},
      {"dtype=e5m2 m=197 n=67 k=129 a=col b=row out=f32", {.padding = 5}, {192, 64}, 3},
      {"dtype=s8 m=1 n=3 k=5 a=col b=row", {}, {64, 64}, 1},
      {"dtype=s8 m=801 n=705 k=67 a=col b=row", {}, {64, 64}, 1},
  };
}

// The A of the problem as computed is contiguous along M, and TMA loads it. B is so along N, or not aligned.
std::vector<OperandsCase> only_b_cases() {
  using enum plan::Schedule;
  return {
      {"dtype=tf32 m=132 n=260 k=100 a=col b=row", {}, {128, 128}},
      {"dtype=tf32 m=132 n=69 k=101 a=col b=row", {}, {64, 64}, 2, ping_pong},
      {"dtype=tf32 m=132 n=69 k=101 a=col b=col", {}, {64, 64}, 1},
      {"dtype=tf32 m=67 n=72 k=132 a=col b=row d=col", {}, {64, 64}, 1},
      {"dtype=tf32 m=264 n=131 k=136 a=col b=row", {}, {64, 64}, 1, cooperative, 1, {2, 1}},
      {"dtype=s8 m=144 n=272 k=208 a=col b=row", {}, {128, 128}},
      {"dtype=s8 m=144 n=70 k=263 a=col b=row", {}, {64, 64}, 1, cooperative, 2},
      {"dtype=e4m3 m=160 n=70 k=387 a=col b=row out=bf16", {}, {128, 64}},
  };
}

std::vector<OperandsCase> repacked_batches() {
  return {
      {"dtype=bf16 m=67 n=71 k=137 a=row b=col", {.batch_padding = 3}, {64, 64}, 1},
      {"dtype=bf16 m=67 n=71 k=137 a=col b=row", {.offset_elements = 1}, {64, 64}, 1},
      {.problem = "dtype=bf16 m=67 n=71 k=137 a=row b=col", .placement = {}, .tile = {128, 64}, .one = "A"},
      {.problem = "dtype=f16 m=67 n=71 k=137 a=row b=col", .placement = {.padding = 2}, .tile = {128, 64}, .one = "B"},
      {.problem = "dtype=tf32 m=40 n=44 k=36 a=col b=row", .placement = {}, .tile = {128, 64}, .one = "A"},
      {.problem = "dtype=s8 m=40 n=44 k=36 a=col b=row", .placement = {.batch_padding = 5}, .tile = {128, 64}},
  };
}

enum class Repacking { none, all, only_b };

/// On an emulator the operands have no red zones, so that a read outside an operand is outside its allocation and is
/// reported.
void expect_exact_of(engine::Engine& engine, const op::Gemm& gemm, const OperandsCase& tested, Repacking repacking) {
  Placement placement = tested.placement;
  if (engine.device()->properties().emulated) placement.red_zone = 0;
  GuardedProblem guarded(engine.device(), gemm, placement);
  const op::GemmSignature description = op::describe(guarded.on_device());
  const int element_bytes = bytes(description.a.element);
  plan::Sm90GemmDesign design =
      plan::sm90_design({{tested.tile[0], tested.tile[1], 128 / element_bytes}, 3, {4 * tested.warpgroups, 1}},
                        tested.cluster, engine.device()->properties().target);
  design.split_k = tested.split_k;
  design.repacks_operands = repacking != Repacking::none;
  design.repacks_only_b = repacking == Repacking::only_b;
  design.schedule = tested.schedule;
  if (description.d.layout == op::MatrixLayout::column_major) design = plan::transposed(design);
  expect_exact(engine, engine.make_kernel(description, design), guarded);
}

class OperandsConformance : public testing::TestWithParam<OperandsCase> {
 protected:
  static op::Gemm gemm() { return shape_of(*bench::parse_problem(GetParam().problem)); }

  /// Checks the case on every device that has wgmma.
  static void expect_exact_everywhere(const op::Gemm& gemm, Repacking repacking) {
    int count = 0;
    for (const std::string& device : devices()) {
      if (is_missing(device) || !has_feature(engine_of(device).device()->properties().target, TargetFeature::wgmma))
        continue;
      SCOPED_TRACE(device);
      expect_exact_of(engine_of(device), gemm, GetParam(), repacking);
      ++count;
    }
    if (count == 0) GTEST_SKIP() << "wgmma needs sm_90a";
  }
};

class Gathered : public OperandsConformance {};
TEST_P(Gathered, IsExactAndReadsNothingElse) { expect_exact_everywhere(gemm(), Repacking::none); }

class Repacked : public OperandsConformance {};
TEST_P(Repacked, IsExactAndReadsNothingElse) { expect_exact_everywhere(gemm(), Repacking::all); }

class RepackedB : public OperandsConformance {};
TEST_P(RepackedB, IsExactAndReadsNothingElse) { expect_exact_everywhere(gemm(), Repacking::only_b); }

class RepackedBatches : public OperandsConformance {};
TEST_P(RepackedBatches, AreExactAndReadNothingElse) {
  expect_exact_everywhere(batch_of(gemm(), 3, GetParam().one), Repacking::all);
}

const auto kName = [](const auto& tested) { return identifier(tested.param.problem + tested.param.one); };

INSTANTIATE_TEST_SUITE_P(Operands, Gathered, testing::ValuesIn(gathered_cases()), kName);
INSTANTIATE_TEST_SUITE_P(Lines, Repacked, testing::ValuesIn(repacked_cases()), kName);
INSTANTIATE_TEST_SUITE_P(Transposed, Repacked, testing::ValuesIn(transposed_cases()), kName);
INSTANTIATE_TEST_SUITE_P(Operands, RepackedB, testing::ValuesIn(only_b_cases()), kName);
INSTANTIATE_TEST_SUITE_P(Operands, RepackedBatches, testing::ValuesIn(repacked_batches()), kName);

}  // namespace
}  // namespace tilewright::conformance
