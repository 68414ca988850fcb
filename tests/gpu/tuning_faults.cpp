// Tuning on a GPU with faulty kernels: a kernel that is wrong is discarded; a kernel that breaks the device ends the
// tuning, which runs in a child process, and is skipped by the next process.
#include <gtest/gtest.h>

#include <cstdlib>

#include "gpu_test.hpp"
#include "tests/unit/engine/fake_kernels.hpp"
#include "tests/unit/engine/host_problem.hpp"
#include "tilewright/compile/file.hpp"
#include "tilewright/engine/engine.hpp"
#include "tilewright/tune/tune.hpp"

namespace tilewright::engine {
namespace {

/// The folder in which the child processes of a test keep their records. The children execute the test program again
/// and would otherwise use folders of their own.
constexpr const char* kFolderVariable = "TILEWRIGHT_TEST_TUNING_FOLDER";

std::unique_ptr<Engine> engine(std::vector<Fake> fakes, const std::string& folder) {
  Options options;
  options.device = "cuda:0";
  options.cache_dir = folder;
  options.toolchain.dump_dir = folder + "/dumps";
  auto made = std::make_unique<Engine>(options);
  made->registry().add(std::make_shared<FakeProvider>(std::move(fakes))).or_throw();
  return made;
}

/// The report about the candidate of a fake family. @throws Error when there is none.
const tune::CandidateReport& of(const tune::TuningReport& report, const std::string& family) {
  for (const tune::CandidateReport& candidate : report.candidates) {
    if (candidate.kernel.starts_with(family + "_f32")) return candidate;
  }
  throw Error(fmt::format("{} is not among the candidates", family));
}

class TuningFaults : public runtime::GpuTest {
 protected:
  /// Expects that a correct kernel wins against these candidates, which meet these fates, and that the device stays
  /// usable.
  void expect_discarded(std::vector<Fake> fakes, const std::string& right_body,
                        const std::vector<std::pair<std::string, tune::Fate>>& fates) const {
    fakes.push_back({"right", right_body});
    const auto tuned = engine(fakes, folder_.path());
    const tune::TuningReport report = tune::tune(*tuned, problem_.gemm, {.top = static_cast<int>(fakes.size())});
    EXPECT_TRUE(report.stopped.empty()) << report.stopped;
    EXPECT_EQ(tune::name(of(report, "right").fate), tune::name(tune::Fate::winner)) << of(report, "right").reason;
    for (const auto& [family, fate] : fates) {
      const tune::CandidateReport& candidate = of(report, family);
      EXPECT_EQ(name(candidate.fate), name(fate)) << candidate.kernel << ": " << candidate.reason;
    }
    tuned->run(problem_.gemm);
    EXPECT_TRUE(problem_.compare().is_exact());
  }

  compile::ScopedFolder folder_{testing::TempDir()};
  HostProblem problem_{8, 12, 16};
};

TEST_F(TuningFaults, EveryFaultyKernelIsDiscardedAndTheDeviceStaysUsable) {
  expect_discarded(faulty_kernels(), kRightBody,
                   {{"constant_result", tune::Fate::wrong},
                    {"one_wrong_element", tune::Fate::wrong},
                    {"no_result", tune::Fate::wrong},
                    {"stray_after", tune::Fate::strayed},
                    {"stray_before", tune::Fate::strayed},
                    {"writes_input", tune::Fate::strayed},
                    {"broken", tune::Fate::failed},
                    {"unlaunchable", tune::Fate::failed}});
}

TEST_F(TuningFaults, EveryKernelWithFaultsInEpilogueTensorsIsDiscarded) {
  problem_.set_epilogue(epilogue_with_tensors());
  expect_discarded(faulty_kernels_with_tensors(), kRightBodyWithTensors,
                   {{"wrong_aux", tune::Fate::wrong},
                    {"no_aux", tune::Fate::wrong},
                    {"stray_aux", tune::Fate::strayed},
                    {"stray_before_aux", tune::Fate::strayed},
                    {"to_vector", tune::Fate::strayed},
                    {"to_residual", tune::Fate::strayed},
                    {"first_row", tune::Fate::wrong}});
}

/// Tunes with a kernel that breaks the device ("bomb") and exits with 0 if it met this fate. If the bomb broke the
/// else another kernel than the bomb computes the problem.
[[noreturn]] void tune_with_bomb(tune::Fate fate) {
  const Fake bomb{"bomb", std::string(kRightBody) + "*reinterpret_cast<int*>(8) = 1;"};
  HostProblem problem(8, 12, 16);
  const auto tuned = engine({{"right"}, bomb, {"later"}}, std::getenv(kFolderVariable));
  const tune::TuningReport report = tune::tune(*tuned, problem.gemm, {.top = 3});
  fmt::print(stderr, "{}\n", to_json(report));
  const tune::CandidateReport& candidate = of(report, "bomb");
  if (candidate.fate != fate || candidate.reason.find("700") == std::string::npos) std::exit(1);
  const bool stops = fate == tune::Fate::broke_device;
  if (report.stopped.empty() == stops || report.winner.has_value() == stops) std::exit(2);
  if (stops) std::exit(of(report, "later").fate == tune::Fate::not_reached ? 0 : 3);
  tuned->run(problem.gemm);
  std::exit(problem.compare().is_exact() ? 0 : 4);
}

TEST_F(TuningFaults, AKernelThatBreaksTheDeviceEndsTheTuningAndIsSkippedByTheNextProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // executes the test program again: CUDA does not work after a fork
  setenv(kFolderVariable, folder_.path().c_str(), 0);
  EXPECT_EXIT(tune_with_bomb(tune::Fate::broke_device), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(tune_with_bomb(tune::Fate::skipped), testing::ExitedWithCode(0), "");
  unsetenv(kFolderVariable);
}

}  // namespace
}  // namespace tilewright::engine
