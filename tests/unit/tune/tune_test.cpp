// Tuning on the emulator with a fake timer and fake kernels: discarded candidates, the winner, and its record.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <thread>

#include "tests/unit/base/interruption_latency.hpp"
#include "tests/unit/engine/fake_kernels.hpp"
#include "tests/unit/engine/host_problem.hpp"
#include "tilewright/cache/store.hpp"
#include "tilewright/cache/tuning_records.hpp"
#include "tilewright/compile/file.hpp"
#include "tilewright/kernels/list.hpp"
#include "tilewright/op/expression.hpp"
#include "tilewright/tune/fault_journal.hpp"
#include "tilewright/tune/timer.hpp"
#include "tilewright/tune/tune.hpp"

namespace tilewright::tune {
namespace {

using namespace engine;  // for the shared fakes of the engine's tests

/// Returns a fixed time for each family; does not run the calls.
class FakeTimer final : public Timer {
 public:
  std::vector<double> time(std::span<const PreparedCall> calls) override {
    ++batches;
    std::vector<double> times;
    for (const PreparedCall& call : calls) {
      const std::string& family = call.kernel().metadata().family;
      if (family == breaks) throw DriverError(700, "CUDA_ERROR_ILLEGAL_ADDRESS (700)");
      const auto found = of_family.find(family);
      times.push_back(found != of_family.end() ? found->second : 50.0);
    }
    return times;
  }

  std::map<std::string, double> of_family;
  std::string breaks;
  int batches = 0;
};

class TuningTest : public testing::Test {
 protected:
  void SetUp() override {
    try {
      Engine(options()).compiler();
    } catch (const ToolchainNotFound& error) {
      GTEST_SKIP() << error.what();
    }
  }

  Options options() const {
    Options options = emulator_options();
    options.cache_on_disk = true;
    options.cache_dir = folder_.path();
    options.toolchain.dump_dir = folder_.path() + "/dumps";
    options.before_first_use = on_first_use({.timer = timer_});
    return options;
  }
  /// With the test's timer.
  TuningReport tune_by(Engine& engine, const op::Problem& problem, TuneOptions options = {}) const {
    options.timer = timer_;
    return tune(engine, problem, options);
  }
  TuningReport tune_by(Engine&& engine, const op::Problem& problem, const TuneOptions& options = {}) const {
    return tune_by(engine, problem, options);
  }
  std::unique_ptr<Engine> engine(std::vector<Fake> fakes, const Options& options) const {
    auto made = std::make_unique<Engine>(options);
    made->registry().add(std::make_shared<FakeProvider>(std::move(fakes))).or_throw();
    return made;
  }
  std::unique_ptr<Engine> engine(std::vector<Fake> fakes) const { return engine(std::move(fakes), options()); }
  cache::TuningRecords records() const { return cache::TuningRecords(folder_.path()); }

  /// The candidate of this fake family.
  static const CandidateReport& of(const TuningReport& report, const std::string& family) {
    for (const CandidateReport& candidate : report.candidates) {
      if (candidate.kernel.starts_with(family + "_f32")) return candidate;
    }
    ADD_FAILURE() << family << " is not among the candidates";
    return report.candidates.front();
  }
  static void expect_status(const TuningReport& report, const std::string& family, CandidateStatus status,
                            const std::string& says) {
    const CandidateReport& candidate = of(report, family);
    EXPECT_EQ(candidate.status, status) << name(candidate.status) << " " << candidate.reason;
    EXPECT_NE(candidate.reason.find(says), std::string::npos) << candidate.reason;
    EXPECT_EQ(candidate.reason.find('\n'), std::string::npos) << candidate.reason;
  }
  static std::string winner(const TuningReport& report) {
    return report.winner ? report.candidates[*report.winner].kernel : "nobody";
  }
  static std::string first(const Engine& engine, const op::Gemm& gemm) {
    return engine.find_kernels(gemm).front().kernel->metadata().family;
  }

  compile::ScopedFolder folder_{testing::TempDir()};
  std::shared_ptr<FakeTimer> timer_ = std::make_shared<FakeTimer>();
  HostProblem problem_{8, 12, 16};
};

// The emulator survives what would break a GPU.
const std::vector<Fake> kFaultyKernels = [] {
  std::vector<Fake> all = faulty_kernels();
  all.push_back({"far_stray", std::string(kRightBody) + "p.d[100000000] = 3.0f;"});
  return all;
}();

TEST_F(TuningTest, EveryFaultyKernelIsDiscarded) {
  std::vector<Fake> fakes = kFaultyKernels;
  fakes.push_back({"right"});
  for (const Fake& faulty : kFaultyKernels) timer_->of_family[faulty.family] = 1.0;
  timer_->of_family["right"] = 10.0;
  const auto tuned = engine(fakes);
  const TuningReport report = tune_by(*tuned, problem_.gemm, {.top = 12});
  expect_status(report, "constant_result", CandidateStatus::wrong, "expected");
  expect_status(report, "one_wrong_element", CandidateStatus::wrong, "D[7,11]");
  expect_status(report, "no_result", CandidateStatus::wrong, "D[0,0]");
  expect_status(report, "stray_after", CandidateStatus::out_of_bounds,
                "output D, which spans 384 bytes, at byte 412 from the first element");
  expect_status(report, "stray_before", CandidateStatus::out_of_bounds, "D, which spans 384 bytes, at byte -4 from");
  expect_status(report, "far_stray", CandidateStatus::broke_rule, "out-of-bounds");
  expect_status(report, "writes_input", CandidateStatus::out_of_bounds, "wrote to its inputs");
  expect_status(report, "broken", CandidateStatus::failed, "");
  EXPECT_FALSE(of(report, "broken").reason.empty());
  expect_status(report, "unlaunchable", CandidateStatus::failed, "fake driver error 1");
  for (const CandidateReport& each : report.candidates) {  // a command fails if there is a wrong one
    const bool is_faulty =
        each.kernel.find("stray") != std::string::npos || each.kernel.find("result") != std::string::npos ||
        each.kernel.find("wrong") != std::string::npos || each.kernel.find("input") != std::string::npos;
    EXPECT_EQ(is_wrong(each.status), is_faulty) << each.kernel;
  }
  EXPECT_EQ(winner(report), of(report, "right").kernel);
  EXPECT_EQ(report.candidates.size(), 12U);
  EXPECT_TRUE(report.stopped.empty());
  EXPECT_TRUE(report.reference.starts_with("simt_gemm")) << report.reference;
  EXPECT_EQ(first(*tuned, problem_.gemm), "right") << "the winner is ranked first";
  EXPECT_EQ(tuned->device()->allocated_bytes(), 0U);
}

TEST_F(TuningTest, AWrongKernelIsNotTheReference) {
  const auto tuned =
      engine({{"constant_result", "p.d[threadIdx.x] = 1.0f;", 0, plan::OpClass::simt},
              {"writes_input", std::string(kRightBody) + "p.a[threadIdx.x] = 5.0f;", 0, plan::OpClass::simt},
              {"right"}});
  const TuningReport report = tune_by(*tuned, problem_.gemm, {.top = 3});
  expect_status(report, "constant_result", CandidateStatus::wrong, "");
  expect_status(report, "writes_input", CandidateStatus::out_of_bounds, "inputs");
  EXPECT_EQ(winner(report), of(report, "right").kernel);
  EXPECT_TRUE(report.reference.starts_with("simt_gemm"));
}

TEST_F(TuningTest, WithoutAReferenceKernelResultsAreComparedWithTheHost) {
  const Fake constant_result{"constant_result", "p.d[threadIdx.x] = 1.0f;", 0, plan::OpClass::simt};
  const auto tuned = engine({constant_result,
                             {"liar2", constant_result.body + " ", 0, constant_result.op_class},
                             {"liar3", constant_result.body, 0, constant_result.op_class},
                             {"right"},
                             {"liar4", constant_result.body}});
  const TuningReport report = tune_by(*tuned, problem_.gemm, {.top = 5});
  EXPECT_EQ(report.reference, "");
  expect_status(report, "liar4", CandidateStatus::wrong, "expected");
  EXPECT_EQ(winner(report), of(report, "right").kernel);
}

TEST_F(TuningTest, TheCallersMemoryIsNeverWritten) {
  const auto tuned = engine(kFaultyKernels);
  const DeviceProblem on_device(problem_, tuned->device());
  op::fill_poison(problem_.gemm.d);
  const HostProblem before(8, 12, 16);
  tune_by(*tuned, on_device.gemm);
  tune_by(*tuned, problem_.gemm);
  const auto bytes_of = [](const op::Tensor& tensor) {
    const auto* begin = reinterpret_cast<const char*>(tensor.address);
    return std::string(begin, begin + op::span_bytes(tensor));
  };
  EXPECT_EQ(bytes_of(problem_.gemm.a), bytes_of(before.gemm.a));
  EXPECT_EQ(bytes_of(problem_.gemm.b), bytes_of(before.gemm.b));
  EXPECT_EQ(bytes_of(problem_.gemm.d), std::string(8 * 12 * 4, '\xff'));
  std::string now(8 * 16 * 4, '\0');
  tuned->device()->copy_out(now.data(), on_device.gemm.a.address, now.size(), nullptr);
  EXPECT_EQ(now, bytes_of(before.gemm.a));
}

TEST_F(TuningTest, AnotherEngineFindsTheWinnerOnDisk) {
  timer_->of_family = {{"fast", 10.0}, {"slow", 30.0}};
  const std::vector<Fake> fakes{{"slow"}, {"fast"}};
  const TuningReport report = tune_by(*engine(fakes), problem_.gemm, {.top = 2});
  EXPECT_EQ(winner(report), of(report, "fast").kernel);
  EXPECT_EQ(of(report, "fast").median_us, 10.0);
  expect_status(report, "slow", CandidateStatus::slower, "dropped after 4 samples");

  const auto other = engine(fakes);
  const Explanation explanation = other->explain(problem_.gemm);
  ASSERT_TRUE(explanation.tuned);
  EXPECT_EQ(explanation.tuned->kernel, winner(report));
  EXPECT_EQ(explanation.tuned->median_us, 10.0);
  EXPECT_EQ(explanation.kernels.front().kernel->name(), winner(report));
  EXPECT_EQ(explanation.kernels[1].kernel->metadata().family, "slow") << "the others keep their order";
  EXPECT_EQ(other->prepare(DeviceProblem(problem_, other->device()).gemm).kernel().metadata().family, "fast");

  Options off = options();
  off.tuning = Tuning::off;
  EXPECT_EQ(first(*engine(fakes, off), problem_.gemm), "slow");
}

TEST_F(TuningTest, ARecordAppliesOnlyToTheMeasuredProblemAndKernels) {
  timer_->of_family = {{"fast", 10.0}, {"slow", 30.0}};
  const std::vector<Fake> fakes{{"slow"}, {"fast"}};
  tune_by(*engine(fakes), problem_.gemm, {.top = 2});
  const auto other = engine(fakes);
  EXPECT_EQ(first(*other, problem_.gemm), "fast");
  EXPECT_EQ(first(*other, HostProblem(8, 12, 17).gemm), "slow") << "other extents";
  EXPECT_EQ(first(*other, HostProblem(8, 12, 16, {.a = op::MatrixLayout::column_major}).gemm), "slow");
  HostProblem with_source(8, 12, 16);
  with_source.gemm.beta = 1.0;
  EXPECT_EQ(first(*other, with_source.gemm), "slow") << "C is read";
  HostProblem scaled(8, 12, 16);
  scaled.gemm.alpha = -2.0;
  EXPECT_EQ(first(*other, scaled.gemm), "fast") << "the values of scalars are launch arguments";
  EXPECT_FALSE(other->explain(problem_.gemm, {}, kSm90a).tuned) << "another target";
  EXPECT_EQ(first(*engine({{"slow"}, {"fast"}, {"new"}}), problem_.gemm), "slow") << "another set of kernels";
  const auto not_fast = [](const registry::KernelMetadata& metadata) { return metadata.family != "fast"; };
  EXPECT_EQ(other->find_kernels(problem_.gemm, not_fast).front().kernel->metadata().family, "slow");
}

TEST_F(TuningTest, ARecordOfAMissingKernelIsIgnored) {
  const auto tuned = engine({{"right"}});
  tune_by(*tuned, problem_.gemm, {.top = 1});
  cache::TuningRecord record = records().list()->front();
  record.winner = "gone";
  ASSERT_TRUE(records().remember(record));
  const auto other = engine({{"right"}});
  EXPECT_FALSE(other->explain(problem_.gemm).tuned);
  EXPECT_EQ(first(*other, problem_.gemm), "right");
}

TEST_F(TuningTest, ARememberedCallUsesTheWinner) {
  timer_->of_family = {{"fast", 10.0}, {"slow", 30.0}};
  const auto tuned = engine({{"slow"}, {"fast"}});
  const DeviceProblem on_device(problem_, tuned->device());
  EXPECT_EQ(tuned->prepare(on_device.gemm).kernel().metadata().family, "slow");
  tune_by(*tuned, on_device.gemm, {.top = 2});
  EXPECT_EQ(tuned->prepare(on_device.gemm).kernel().metadata().family, "fast");
}

TEST_F(TuningTest, ARememberedCallWithOtherStridesUsesTheWinner) {
  const HostProblem packed(64, 64, 64, {.type = DType::f16, .d_type = DType::f16});
  const HostProblem padded(64, 64, 64, {.type = DType::f16, .d_type = DType::f16, .padding = 8});
  Engine tuned(options());
  const DeviceProblem on_device(padded, tuned.device());
  const std::vector<RankedKernel> ranked = tuned.find_kernels(packed.gemm);
  const std::string unlikely = "simt_gemm";
  const auto top =
      std::ranges::find(ranked, unlikely, [](const RankedKernel& each) { return each.kernel->metadata().family; });
  ASSERT_TRUE(top != ranked.begin() && top != ranked.end());
  timer_->of_family = {{unlikely, 1.0}};
  EXPECT_NE(tuned.prepare(on_device.gemm).kernel().metadata().family, unlikely);
  tune_by(tuned, packed.gemm, {.top = static_cast<int>(top - ranked.begin()) + 1});
  EXPECT_EQ(tuned.prepare(on_device.gemm).kernel().metadata().family, unlikely);
}

TEST_F(TuningTest, AFatalErrorEndsTheTuningAndTheNextSkipsTheKernel) {
  const std::vector<Fake> fakes{{"right"}, {"bomb", kRightBody, 700}, {"later"}};
  const TuningReport report = tune_by(*engine(fakes), problem_.gemm, {.top = 3});
  expect_status(report, "right", CandidateStatus::sound, "");
  expect_status(report, "bomb", CandidateStatus::broke_device, "fake driver error 700");
  expect_status(report, "later", CandidateStatus::not_reached, "");
  EXPECT_EQ(report.stopped, of(report, "bomb").kernel + ": fake driver error 700");
  EXPECT_FALSE(report.winner);
  EXPECT_TRUE(records().list()->empty()) << "an incomplete tuning is not remembered";
  ASSERT_EQ(records().faults()->size(), 1U);
  EXPECT_FALSE(records().faults()->front().is_trial);

  const TuningReport next = tune_by(*engine(fakes), problem_.gemm, {.top = 3});
  expect_status(next, "bomb", CandidateStatus::skipped, "fake driver error 700");
  EXPECT_TRUE(next.stopped.empty());
  EXPECT_TRUE(next.winner);
}

TEST_F(TuningTest, AFatalErrorWhileTimingIsRecordedForTheBatch) {
  timer_->breaks = "bomb";
  const TuningReport report = tune_by(*engine({{"right"}, {"bomb"}}), problem_.gemm, {.top = 2});
  expect_status(report, "bomb", CandidateStatus::broke_device, "or one of 1 kernels timed with it");
  expect_status(report, "right", CandidateStatus::broke_device, "or one of 1 kernels timed with it");
  EXPECT_NE(report.stopped.find(of(report, "bomb").kernel), std::string::npos);
  EXPECT_TRUE(records().list()->empty());
  EXPECT_EQ(records().faults()->size(), 2U);
}

TEST_F(TuningTest, AProcessThatDiesInAKernelLeavesARecord) {
  const auto tuned = engine({{"hangs"}, {"right"}});
  const registry::KernelPtr kernel = tuned->find_kernels(problem_.gemm).front().kernel;
  {
    FaultJournal journal(tuned->choices().records(), tuned->choices().device(), "p", true);
    journal.begin_trial(*kernel);
  }
  const TuningReport report = tune_by(*tuned, problem_.gemm, {.top = 2});
  expect_status(report, "hangs", CandidateStatus::skipped, "did not return");
  EXPECT_EQ(winner(report), of(report, "right").kernel);
}

TEST_F(TuningTest, TrialsOfARunningProcessAreIgnored) {
  const auto tuned = engine({{"right"}});
  const registry::KernelPtr kernel = tuned->find_kernels(problem_.gemm).front().kernel;
  FaultJournal journal(tuned->choices().records(), tuned->choices().device(), "p", true);
  const auto lock = tuned->choices().records().lock(tuned->choices().device(), 0.0);
  journal.begin_trial(*kernel);
  const TuningReport report = tune_by(*tuned, problem_.gemm, {.top = 1, .lock_timeout_s = 0.05});
  EXPECT_EQ(winner(report), kernel->name());
  ASSERT_EQ(report.warnings.size(), 1U);
  EXPECT_NE(report.warnings[0].find("another process may be tuning"), std::string::npos);
}

/// An interruption may be an Error too, but it must not count as a candidate's failure or leave a trial.
TEST_F(TuningTest, AnInterruptionEndsTheTuning) {
  using Clock = std::chrono::steady_clock;
  const auto tuned = engine({{"endless", "while (true) p.d[0] = p.d[0] + 1.0f;"}, {"right"}});
  Clock::time_point asked;
  {
    const ScopedInterruptCheck check([&] {
      const auto on_trial = records().faults();
      if (on_trial->empty() || !on_trial->front().kernel.starts_with("endless")) return;
      if (asked == Clock::time_point()) asked = Clock::now();
      throw Interrupted("the test asks for the end");
    });
    EXPECT_THROW(tune_by(*tuned, problem_.gemm, {.top = 2}), Interrupted);
  }
  EXPECT_LT(Clock::now() - asked, kMaxInterruptionLatency);
  EXPECT_TRUE(records().faults()->empty());
  EXPECT_TRUE(records().list()->empty());
  EXPECT_EQ(tuned->device()->allocated_bytes(), 0U);
}

TEST_F(TuningTest, NoTrialRemainsAfterwards) {
  tune_by(*engine(kFaultyKernels), problem_.gemm, {.top = 9});
  EXPECT_TRUE(records().faults()->empty());
}

TEST_F(TuningTest, IsRefusedOnTheEmulatorWithoutATimer) {
  const auto tuned = engine({{"right"}, {"constant_result", "p.d[threadIdx.x] = 1.0f;"}});
  try {
    tune(*tuned, problem_.gemm);
    FAIL() << "the emulator was timed";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "kernels cannot be timed on emulator:sm_80: tune on a GPU");
  }
  const TuningReport report = tune_by(*tuned, problem_.gemm, {.top = 2, .checks_only = true});
  expect_status(report, "right", CandidateStatus::sound, "");
  expect_status(report, "constant_result", CandidateStatus::wrong, "");
  EXPECT_FALSE(report.winner);
  EXPECT_TRUE(records().list()->empty());
}

TEST_F(TuningTest, RefusesProblemsWithoutAProduct) {
  const auto tuned = engine({{"right"}});
  EXPECT_THROW(tune_by(*tuned, HostProblem(0, 12, 16).gemm), InvalidArgument);
  EXPECT_THROW(tune_by(*tuned, HostProblem(8, 12, 0).gemm), InvalidArgument);
  problem_.gemm.alpha = 0.0;
  EXPECT_TRUE(tune_by(*tuned, problem_.gemm, {.top = 1}).winner) << "measured with alpha 1";
  EXPECT_THROW(tune_by(*tuned, problem_.gemm, {.top = 0}), InvalidArgument);
  EXPECT_THROW(tune_by(*tuned, problem_.gemm, {.seconds = 0.0}), InvalidArgument);
  EXPECT_THROW(tune_by(*tuned, problem_.gemm, {.seconds = std::nan("")}), InvalidArgument);
  problem_.gemm.b.shape[0] = 5;
  EXPECT_THROW(tune_by(*tuned, problem_.gemm), InvalidArgument);
}

TEST_F(TuningTest, OnFirstUseTunesOnceAndRunsTheWinner) {
  timer_->of_family = {{"fast", 10.0}, {"slow", 30.0}};
  Options first_use = options();
  first_use.tuning = Tuning::on_first_use;
  const std::vector<Fake> fakes{{"slow"}, {"fast"}, {"constant_result", "p.d[threadIdx.x] = 1.0f;"}};
  Options alone = options();
  alone.cache_dir = folder_.path() + "/elsewhere";
  tune_by(*engine(fakes, alone), problem_.gemm);
  const int batches_of_one = std::exchange(timer_->batches, 0);
  {
    const auto tuned = engine(fakes, first_use);
    std::vector<std::thread> threads;
    std::vector<std::unique_ptr<HostProblem>> problems;
    for (int i = 0; i < 4; ++i) problems.push_back(std::make_unique<HostProblem>(8, 12, 16));
    for (const auto& problem : problems) threads.emplace_back([&] { tuned->run(problem->gemm); });
    for (std::thread& thread : threads) thread.join();
    for (const auto& problem : problems) EXPECT_TRUE(problem->compare().is_exact());
    EXPECT_EQ(first(*tuned, problem_.gemm), "fast");
    EXPECT_EQ(timer_->batches, batches_of_one) << "four threads, one tuning";
  }
  const auto measured = *records().list();
  ASSERT_EQ(measured.size(), 1U);
  const auto other = engine(fakes, first_use);
  timer_->breaks = "fast";  // would end another tuning
  other->run(problem_.gemm);
  EXPECT_EQ(*records().list(), measured);
  EXPECT_EQ(other->cache().counters().compiles, 0) << "the winner is in the cache";
}

TEST_F(TuningTest, OnFirstUseACallProceedsIfTuningFails) {
  Options first_use = options();
  first_use.tuning = Tuning::on_first_use;
  first_use.before_first_use = on_first_use();
  const auto tuned = engine({{"right"}}, first_use);
  tuned->run(problem_.gemm);
  EXPECT_TRUE(problem_.compare().is_exact());
}

TEST_F(TuningTest, RecordsThatCannotBeReadAreIgnored) {
  tune_by(*engine({{"right"}}), problem_.gemm, {.top = 1});
  std::filesystem::resize_file(folder_.path() + "/tuning_records.db", 5000);
  const auto tuned = engine({{"right"}});
  EXPECT_FALSE(tuned->explain(problem_.gemm).tuned);
  EXPECT_TRUE(tune_by(*tuned, problem_.gemm, {.top = 1}).winner);
  EXPECT_TRUE(engine({{"right"}})->explain(problem_.gemm).tuned);
}

TEST_F(TuningTest, WithoutADiskChoicesAreRememberedInMemory) {
  Options memory_only = options();
  memory_only.cache_on_disk = false;
  timer_->of_family = {{"fast", 10.0}, {"slow", 30.0}};
  const auto tuned = engine({{"slow"}, {"fast"}}, memory_only);
  const TuningReport report = tune_by(*tuned, problem_.gemm, {.top = 2});
  EXPECT_EQ(first(*tuned, problem_.gemm), "fast");
  ASSERT_EQ(report.warnings.size(), 1U);
  EXPECT_NE(report.warnings[0].find("no folder"), std::string::npos);
}

TEST_F(TuningTest, TwoProcessesTuneTogether) {
  const auto fakes = std::vector<Fake>{{"right"}};
  std::vector<pid_t> children;
  for (int process = 0; process < 2; ++process) {
    const pid_t child = ::fork();
    if (child == 0) {
      const auto tuned = engine(fakes);
      bool good = true;
      for (int n = 1; n <= 3; ++n)
        good = good && tune_by(*tuned, HostProblem(4, n, 8).gemm, {.top = 1}).warnings.empty();
      ::_exit(good ? 0 : 1);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  EXPECT_EQ(records().list()->size(), 3U);
  EXPECT_TRUE(records().faults()->empty());
}

TEST_F(TuningTest, FaultsInAuxiliaryTensorsAreFound) {
  problem_.set_epilogue(epilogue_with_tensors());
  std::vector<Fake> fakes = faulty_kernels_with_tensors();
  for (const Fake& faulty : fakes) timer_->of_family[faulty.family] = 1.0;
  fakes.push_back({"right", kRightBodyWithTensors});
  timer_->of_family["right"] = 10.0;
  const auto tuned = engine(fakes);
  const TuningReport report = tune_by(*tuned, problem_.gemm, {.top = 8});
  expect_status(report, "wrong_aux", CandidateStatus::wrong, "aux[7,11] is ");
  expect_status(report, "no_aux", CandidateStatus::wrong, "aux[0,0] is ");
  expect_status(report, "stray_aux", CandidateStatus::out_of_bounds,
                "output aux, which spans 384 bytes, at byte 412 from");
  expect_status(report, "stray_before_aux", CandidateStatus::out_of_bounds,
                "output aux, which spans 384 bytes, at byte -4 from");
  expect_status(report, "to_vector", CandidateStatus::out_of_bounds, "wrote to its inputs");
  expect_status(report, "to_residual", CandidateStatus::out_of_bounds, "wrote to its inputs");
  expect_status(report, "first_row", CandidateStatus::wrong, "D[");
  EXPECT_EQ(winner(report), of(report, "right").kernel);
  EXPECT_TRUE(report.reference.starts_with("simt_gemm")) << report.reference;
  EXPECT_TRUE(report.warnings.empty());
  EXPECT_EQ(tuned->device()->allocated_bytes(), 0U);

  const auto other = engine(fakes);
  EXPECT_EQ(first(*other, problem_.gemm), "right");
  HostProblem without(8, 12, 16);
  EXPECT_EQ(first(*other, without.gemm), "wrong_aux") << "another epilogue";
  op::Gemm widened = problem_.gemm;
  widened.tensors[1].tensor = op::matrix(std::uint64_t{1} << 40, DType::f16, 8, 12);
  EXPECT_EQ(first(*other, widened), "wrong_aux") << "another type of the residual";
  EXPECT_NE(problem_class(widened), report.problem);
}

TEST_F(TuningTest, TheCallersAuxiliaryTensorsAreNeverWritten) {
  problem_.set_epilogue(epilogue_with_tensors());
  const auto bytes_of = [&](std::string_view name) {
    const op::Tensor& tensor = problem_.gemm.tensor(name);
    const auto* begin = reinterpret_cast<const char*>(tensor.address);
    return std::string(begin, begin + op::span_bytes(tensor));
  };
  const std::string bias = bytes_of("bias"), residual = bytes_of("residual");
  tune_by(*engine(faulty_kernels_with_tensors()), problem_.gemm);
  EXPECT_EQ(bytes_of("bias"), bias);
  EXPECT_EQ(bytes_of("residual"), residual);
  EXPECT_EQ(bytes_of("aux"), std::string(8 * 12 * 4, '\xff'));
}

TEST_F(TuningTest, OnFirstUseAnEpilogueWithTensorsIsTunedToo) {
  problem_.set_epilogue(epilogue_with_tensors());
  timer_->of_family = {{"fast", 10.0}, {"slow", 30.0}};
  Options first_use = options();
  first_use.tuning = Tuning::on_first_use;
  const auto tuned = engine({{"slow", kRightBodyWithTensors}, {"fast", kRightBodyWithTensors}}, first_use);
  tuned->run(problem_.gemm);
  EXPECT_TRUE(problem_.compare().is_exact()) << op::to_string(problem_.compare());
  EXPECT_EQ(first(*tuned, problem_.gemm), "fast");
  EXPECT_EQ(records().list()->size(), 1U);
}

TEST_F(TuningTest, BatchesAndMatricesHaveDifferentRecords) {
  EXPECT_NE(problem_class(HostProblem(8, 12, 16, {.batch = 3}).gemm), problem_class(problem_.gemm));
  EXPECT_EQ(problem_class(HostProblem(8, 12, 16, {.batch = 1}).gemm), problem_class(problem_.gemm));
}

// The shipped kernels pass the checks for types, layouts and paddings that have different code.
TEST_F(TuningTest, ShippedKernelsAreSound) {
  for (const auto& [type, d_type, padding] :
       {std::tuple{DType::f16, DType::f32, 8}, {DType::s8, DType::s32, 0}, {DType::f64, DType::f64, 3}}) {
    HostProblem problem(72, 40, 64,
                        {.type = type, .d_type = d_type, .b = op::MatrixLayout::column_major, .padding = padding});
    problem.gemm.beta = 1.0;
    const TuningReport report = tune_by(Engine(options()), problem.gemm, {.top = 2, .checks_only = true});
    for (const CandidateReport& candidate : report.candidates) {
      EXPECT_EQ(candidate.status, CandidateStatus::sound) << candidate.kernel << ": " << candidate.reason;
    }
  }
}

// Programs are candidates as all kernels are: checked, timed, and remembered on disk in either language.
TEST_F(TuningTest, AProgramThatWinsIsRemembered) {
  const auto programs = std::make_shared<registry::Registry>();
  programs->add(kernels::make_cuda_program_provider()).or_throw();
  programs->add(kernels::make_mlir_provider()).or_throw();
  const HostProblem problem(128, 128, 64,
                            {.type = DType::bf16, .d_type = DType::bf16, .b = op::MatrixLayout::column_major});
  Options hopper = options();
  hopper.device = "emulator:sm_90a";
  Engine tuned(hopper, programs);
  timer_->of_family = {{"cuda_program", 30.0}, {"mlir", 10.0}};
  const TuningReport report = tune_by(tuned, problem.gemm, {.top = 4});
  ASSERT_TRUE(report.winner) << report.stopped << to_text(tuned.explain(problem.gemm));
  const std::string winner = report.candidates[*report.winner].kernel;
  for (const CandidateReport& candidate : report.candidates) {
    const CandidateStatus expected = candidate.kernel == winner ? CandidateStatus::winner : CandidateStatus::slower;
    EXPECT_EQ(candidate.status, expected) << candidate.kernel << ": " << candidate.reason;
  }
  timer_->of_family.clear();
  Engine other(hopper, programs);
  const Explanation explanation = other.explain(problem.gemm);
  ASSERT_TRUE(explanation.tuned);
  EXPECT_EQ(explanation.tuned->kernel, winner);
  EXPECT_EQ(explanation.kernels.front().kernel->name(), winner);
  other.run(problem.gemm);
  EXPECT_EQ(other.cache().counters().compiles, 0) << "the tuning has compiled it";
  EXPECT_TRUE(problem.compare().is_exact()) << op::to_string(problem.compare());
}

// Batches are packed or interleaved by rows, and there are auxiliary tensors of every broadcast.
TEST_F(TuningTest, ShippedKernelsAreSoundWithTensorsAndInBatches) {
  const op::Expression t = op::acc() * op::column("scale") + op::row("bias") + op::full("residual") +
                           op::single("shift") + op::row_index() - 2.0 * op::column_index();
  const op::Epilogue epilogue = op::make_epilogue("tuned", DType::f32, op::call("gelu", {t}),
                                                  {{"aux", t},
                                                   {"up", t > 0.0},
                                                   {"sums", t, op::Reduction::sum, op::kColumnVector},
                                                   {"top", t, op::Reduction::maximum, op::kRowVector},
                                                   {"all", t, op::Reduction::sum, op::kSingle}})
                                    .value_or_throw();
  for (const char* device : {"emulator:sm_80", "emulator:sm_90a"}) {
    for (const HostProblemOptions& shape :
         {HostProblemOptions{.type = DType::f16, .d_type = DType::f16},
          {.type = DType::f16, .d = op::MatrixLayout::column_major, .padding = 3, .batch = 2, .batch_padding = 5}}) {
      HostProblem problem(72, 40, 64, shape);
      problem.set_epilogue(epilogue);
      Options here = options();
      here.device = device;
      const TuningReport report = tune_by(Engine(here), problem.gemm, {.top = 3, .checks_only = true});
      EXPECT_FALSE(report.reference.empty());
      for (const CandidateReport& candidate : report.candidates)
        EXPECT_EQ(candidate.status, CandidateStatus::sound) << candidate.kernel << ": " << candidate.reason;
    }
  }
  HostProblem interleaved(8, 12, 16, {.padding = 2 * 12 + 3, .batch = 3});
  interleaved.gemm.d.stride[0] = 12;
  const TuningReport report = tune_by(Engine(options()), interleaved.gemm, {.top = 3, .checks_only = true});
  for (const CandidateReport& candidate : report.candidates)
    EXPECT_EQ(candidate.status, CandidateStatus::sound) << candidate.kernel << ": " << candidate.reason;
}

}  // namespace
}  // namespace tilewright::tune
