// Faults that are planted in the exchange of partial sums by simt_gemm and sm80_gemm. The emulator must name the broken
// rule and the line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "tests/conformance/gemm_checks.hpp"
#include "tests/conformance/planted_kernel.hpp"
#include "tests/unit/plan/gemm_cases.hpp"

namespace tilewright::conformance {
namespace {

using enum emulator::FindingKind;

constexpr const char* kSum = "epilogue/split_k_tile.cuh";
constexpr const char* kGridBarrier = "pipeline/grid_barrier.cuh";

constexpr const char* kInTurn = "epilogue/split_k_in_turn.cuh";
constexpr const char* kParts = "scheduler/parts_in_turn.cuh";
constexpr const char* kSimtGemm = "gemm/simt_gemm.cuh";

// The emulator runs each CTA as far as it can, so that the first one would draw all tickets. In these tests each CTA
// computes the part of its number.
const Substitution kOwnTicket{
    kParts, "ptx::increment_to_relaxed(reinterpret_cast<uint32_t*>(workspace_ + Plan::kTicketCounter), last)",
    "blockIdx.x"};
const Substitution kOneTicket{kSimtGemm, "for (int ticket; parts.next(ticket, shared_memory);) {",
                              "for (int ticket, left = 1; left-- > 0 && parts.next(ticket, shared_memory);) {"};

struct Fault {
  const char* name;
  std::vector<Substitution> planted;
  emulator::FindingKind kind;
  const char* line;      // line of device code of the finding or of a call that it was inlined at; empty: not checked
  bool in_turn = false;  // the parts are added in turn
};
void PrintTo(const Fault& fault, std::ostream* out) { *out << fault.name; }

const Fault kFaults[] = {
    {"TheCtaArrivesBeforeAllItsThreadsHaveStored",
     {{kSum, "__syncthreads();\n    if (ptx::thread() == 0) {\n      all_.arrive();",
       "if (ptx::thread() == 0) {\n      all_.arrive();"}},
     global_race,
     "ptx::load_global<Sums>"},
    {"TheCtaDoesNotWaitForTheOthers", {{kSum, "all_.wait();", ""}}, global_race, ""},
    {"OtherThreadsDoNotWaitForTheFirst",
     {{kSum, "all_.wait();\n    }\n    __syncthreads();", "all_.wait();\n    }"}},
     global_race,
     ""},
    {"AllTilesUseTheSameBuffer", {{kSum, "is_odd_round_ = !is_odd_round_;", ""}}, global_race, ""},
    {"OneArrivalTooManyIsExpected",
     {{kGridBarrier, "static_cast<uint32_t>(arrivals - 1)", "static_cast<uint32_t>(arrivals)"}},
     deadlock,
     "all_.wait();"},
    {"PartsShareTheirPlace",
     {{kSum, "reinterpret_cast<Accumulator*>(partials() + k_part_ * kPartialBytes)",
       "reinterpret_cast<Accumulator*>(partials())"}},
     global_race,
     ""},
    {"TheCtaDoesNotWaitForItsTurn",
     {kOwnTicket,
      kOneTicket,
      {kInTurn, "while (ptx::load_acquire(counter) != static_cast<uint32_t>(part)) {\n        }", ""}},
     global_race,
     "",
     true},
    {"OtherThreadsDoNotWaitForTheTurn",
     {kOwnTicket, kOneTicket, {kInTurn, "        }\n      }\n      __syncthreads();", "        }\n      }"}},
     global_race,
     "",
     true},
    {"TheTurnEndsBeforeAllThreadsHaveStored",
     {kOwnTicket,
      kOneTicket,
      {kInTurn, "    __syncthreads();\n    if (ptx::thread() == 0) ptx::increment_to(counter",
       "    if (ptx::thread() == 0) ptx::increment_to(counter"}},
     global_race,
     "",
     true},
    {"TheNextTicketIsDrawnWhileTheLastIsRead",
     {{kParts, "ticket = *drawn;\n    __syncthreads();", "ticket = *drawn;"}},
     shared_race,
     "",
     true},
};

class SplitKFaults : public testing::Test {
 protected:
  // One engine per test, because a kernel that is stopped leaves workspace counters that no other kernel may find.
  SplitKFaults() : engine_(options()) {}

  void SetUp() override {
    try {
      engine_.compiler();
    } catch (const ToolchainNotFound& error) {
      GTEST_SKIP() << error.what();
    }
  }

  /// A problem with more tiles than groups of CTAs, so that each group computes several tiles.
  static op::Gemm problem() { return batch_of(plan::problem_of(plan::describe_f32(), 64, 64, 96), 20); }
  registry::KernelPtr kernel(const op::Gemm& gemm, bool in_turn = false) {
    plan::SimtGemmDesign design = plan::simt_design({{64, 32, 16}, 3, {2, 1}}, engine_.device()->properties().target);
    design.split_k = in_turn ? 3 : 66;
    design.splits_in_turn = in_turn;
    return engine_.make_kernel(op::describe(gemm), design);
  }

  engine::Engine engine_;

 private:
  static engine::Options options() {
    engine::Options options = engine::Options::from_environment();
    options.device = "emulator:sm_80";
    return options;
  }
};

class EachSplitKFault : public SplitKFaults, public testing::WithParamInterface<Fault> {};

TEST_P(EachSplitKFault, IsNamed) {
  GuardedProblem guarded(engine_.device(), problem(), Placement{});
  const auto planted = std::make_shared<PlantedKernel>(kernel(guarded.on_device(), GetParam().in_turn),
                                                       GetParam().planted, GetParam().in_turn);
  fill_exactly(guarded.host());
  guarded.upload();
  std::optional<emulator::Finding> finding;
  try {
    engine_.run(guarded.on_device(), planted);
  } catch (const emulator::EmulationFinding& found) {
    finding = found.finding();
  }
  ASSERT_TRUE(finding) << "the emulator found no fault";
  const std::string text = emulator::to_string(*finding);
  EXPECT_EQ(emulator::name(finding->kind), emulator::name(GetParam().kind)) << text;
  if (*GetParam().line != '\0') {
    EXPECT_THAT(planted->lines_at(finding->location), testing::Contains(testing::HasSubstr(GetParam().line))) << text;
  }
}

INSTANTIATE_TEST_SUITE_P(All, EachSplitKFault, testing::ValuesIn(kFaults),
                         [](const auto& tested) { return std::string(tested.param.name); });

// Without a fault, the same sources must have no findings.
TEST_F(SplitKFaults, AreNotReportedForUnchangedCode) {
  GuardedProblem guarded(engine_.device(), problem(), Placement{});
  for (const bool in_turn : {false, true}) {
    const registry::KernelPtr inner = kernel(guarded.on_device(), in_turn);
    const std::vector<Substitution> planted =
        in_turn ? std::vector{kOwnTicket, kOneTicket} : std::vector<Substitution>();
    expect_exact(engine_, std::make_shared<PlantedKernel>(inner, planted, in_turn), guarded);
  }
}

}  // namespace
}  // namespace tilewright::conformance
