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
  /// Expects that a correct kernel wins against these candidates, that the report gives them these statuses, and that
  /// the device stays usable.
  void expect_discarded(std::vector<Fake> fakes, const std::string& right_body,
                        const std::vector<std::pair<std::string, tune::CandidateStatus>>& statuses) const {
    fakes.push_back({"right", right_body});
    const auto tuned = engine(fakes, folder_.path());
    const tune::TuningReport report = tune::tune(*tuned, problem_.gemm, {.top = static_cast<int>(fakes.size())});
    EXPECT_TRUE(report.stopped.empty()) << report.stopped;
    EXPECT_EQ(tune::name(of(report, "right").status), tune::name(tune::CandidateStatus::winner))
        << of(report, "right").reason;
    for (const auto& [family, status] : statuses) {
      const tune::CandidateReport& candidate = of(report, family);
      EXPECT_EQ(name(candidate.status), name(status)) << candidate.kernel << ": " << candidate.reason;
    }
    tuned->run(problem_.gemm);
    EXPECT_TRUE(problem_.compare().is_exact());
  }

  compile::ScopedFolder folder_{testing::TempDir()};
  HostProblem problem_{8, 12, 16};
};

TEST_F(TuningFaults, EveryFaultyKernelIsDiscardedAndTheDeviceStaysUsable) {
  expect_discarded(faulty_kernels(), kRightBody,
                   {{"constant_result", tune::CandidateStatus::wrong},
                    {"one_wrong_element", tune::CandidateStatus::wrong},
                    {"no_result", tune::CandidateStatus::wrong},
                    {"stray_after", tune::CandidateStatus::out_of_bounds},
                    {"stray_before", tune::CandidateStatus::out_of_bounds},
                    {"writes_input", tune::CandidateStatus::out_of_bounds},
                    {"broken", tune::CandidateStatus::failed},
                    {"unlaunchable", tune::CandidateStatus::failed}});
}

TEST_F(TuningFaults, EveryKernelWithFaultsInEpilogueTensorsIsDiscarded) {
  problem_.set_epilogue(epilogue_with_tensors());
  expect_discarded(faulty_kernels_with_tensors(), kRightBodyWithTensors,
                   {{"wrong_aux", tune::CandidateStatus::wrong},
                    {"no_aux", tune::CandidateStatus::wrong},
                    {"stray_aux", tune::CandidateStatus::out_of_bounds},
                    {"stray_before_aux", tune::CandidateStatus::out_of_bounds},
                    {"to_vector", tune::CandidateStatus::out_of_bounds},
                    {"to_residual", tune::CandidateStatus::out_of_bounds},
                    {"first_row", tune::CandidateStatus::wrong}});
}

/// Tunes with a kernel that breaks the device ("bomb") and exits with 0 if the tuning reports it with this status. If
/// the bomb broke the device, the tuning must have stopped; otherwise another kernel must compute the problem.
[[noreturn]] void tune_with_bomb(tune::CandidateStatus status) {
  const Fake bomb{"bomb", std::string(kRightBody) + "*reinterpret_cast<int*>(8) = 1;"};
  HostProblem problem(8, 12, 16);
  const auto tuned = engine({{"right"}, bomb, {"later"}}, std::getenv(kFolderVariable));
  const tune::TuningReport report = tune::tune(*tuned, problem.gemm, {.top = 3});
  fmt::print(stderr, "{}\n", to_json(report));
  const tune::CandidateReport& candidate = of(report, "bomb");
  if (candidate.status != status || candidate.reason.find("700") == std::string::npos) std::exit(1);
  const bool stops = status == tune::CandidateStatus::broke_device;
  if (report.stopped.empty() == stops || report.winner.has_value() == stops) std::exit(2);
  if (stops) std::exit(of(report, "later").status == tune::CandidateStatus::not_reached ? 0 : 3);
  tuned->run(problem.gemm);
  std::exit(problem.compare().is_exact() ? 0 : 4);
}

TEST_F(TuningFaults, AKernelThatBreaksTheDeviceEndsTheTuningAndIsSkippedByTheNextProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // executes the test program again: CUDA does not work after a fork
  setenv(kFolderVariable, folder_.path().c_str(), 0);
  EXPECT_EXIT(tune_with_bomb(tune::CandidateStatus::broke_device), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(tune_with_bomb(tune::CandidateStatus::skipped), testing::ExitedWithCode(0), "");
  unsetenv(kFolderVariable);
}

}  // namespace
}  // namespace tilewright::engine
