// Tuning records as the commands show them: `tune --list` lists the winner, `find` marks it, `tune --forget` deletes
// it. A fake timer replaces the GPU.
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "tilewright/compile/file.hpp"
#include "tilewright/engine/engine.hpp"
#include "tilewright/tune/timer.hpp"
#include "tilewright/tune/tune.hpp"
#include "tools/cli/commands.hpp"
#include "tools/cli/kernel_choice.hpp"
#include "tools/cli/problem.hpp"

namespace tilewright::cli {
namespace {

/// A fake timer: one kernel takes 3.25 us, every other kernel 9 us.
class ByName final : public tune::Timer {
 public:
  explicit ByName(std::string fastest) : fastest_(std::move(fastest)) {}
  std::vector<double> time(std::span<const engine::PreparedCall> calls) override {
    std::vector<double> times;
    for (const engine::PreparedCall& call : calls) times.push_back(call.kernel().name() == fastest_ ? 3.25 : 9.0);
    return times;
  }

 private:
  std::string fastest_;
};

class TuneCommandTest : public testing::Test {
 protected:
  void SetUp() override {
    kernel_.device = "emulator:sm_80";
    ::setenv("TILEWRIGHT_CACHE_DIR", folder_.path().c_str(), 1);
    try {
      engine::Engine(engine_options(kernel_)).compiler();
    } catch (const ToolchainNotFound& error) {
      GTEST_SKIP() << error.what();
    }
    problem_.m = 40;
    problem_.n = 24;
    problem_.k = 16;
  }
  void TearDown() override { ::unsetenv("TILEWRIGHT_CACHE_DIR"); }

  /// Tunes the problem so that its second-ranked kernel wins, and returns that kernel's name.
  std::string let_the_second_win() const {
    const Problem problem(problem_);
    engine::Options options = engine_options(kernel_);
    const std::string second = engine::Engine(options).find_kernels(problem.gemm())[1].kernel->name();
    const auto timer = std::make_shared<ByName>(second);
    engine::Engine engine(options);
    const tune::TuningReport report = tune::tune(engine, problem.gemm(), {.top = 2, .timer = timer});
    EXPECT_EQ(report.winner, 1U);
    return second;
  }

  /// Runs a command, which must succeed, and returns what it prints on stdout.
  static std::string output_of(Command (*add)(CLI::App&), const std::string& line) {
    CLI::App app;
    const Command command = add(app);
    app.parse(line, false);
    testing::internal::CaptureStdout();
    EXPECT_EQ(command.run(), ExitCode::ok);
    return testing::internal::GetCapturedStdout();
  }
  static nlohmann::json json_of(Command (*add)(CLI::App&), const std::string& line) {
    return nlohmann::json::parse(output_of(add, line + " --json"));
  }

  static constexpr const char* kProblem = " --m 40 --n 24 --k 16 --device emulator:sm_80";

  compile::ScopedFolder folder_{testing::TempDir()};
  ProblemOptions problem_;
  KernelOptions kernel_;
};

TEST_F(TuneCommandTest, FindMarksTheWinner) {
  const std::string find = std::string("find") + kProblem;
  const nlohmann::json before = json_of(add_find_command, find);
  EXPECT_FALSE(before.contains("tuned"));
  const std::string winner = let_the_second_win();
  const nlohmann::json after = json_of(add_find_command, find);
  EXPECT_EQ(after["tuned"]["name"], winner);
  EXPECT_EQ(after["tuned"]["median_us"], 3.25);
  EXPECT_EQ(after["kernels"][0]["name"], winner);
  EXPECT_EQ(after["kernels"][1]["name"], before["kernels"][0]["name"]);
  const std::string text = output_of(add_find_command, find);
  EXPECT_NE(text.find(winner + "  (tuned: 3.2 us)\n"), std::string::npos) << text;
}

TEST_F(TuneCommandTest, ForgetDeletesListedRecords) {
  const std::string winner = let_the_second_win();
  const nlohmann::json listed = json_of(add_tune_command, "tune --list");
  ASSERT_EQ(listed["choices"].size(), 1U);
  EXPECT_EQ(listed["choices"][0]["winner"], winner);
  EXPECT_EQ(listed["choices"][0]["report"]["candidates"].size(), 2U);
  EXPECT_EQ(listed["choices"][0]["report"]["candidates"][0]["status"], "slower");
  EXPECT_NE(output_of(add_tune_command, "tune --list").find(winner), std::string::npos);

  EXPECT_EQ(json_of(add_tune_command, "tune --forget --m 41 --n 24 --k 16 --device emulator:sm_80")["forgotten"], 0);
  EXPECT_EQ(json_of(add_tune_command, std::string("tune --forget") + kProblem)["forgotten"], 1);
  EXPECT_FALSE(json_of(add_find_command, std::string("find") + kProblem).contains("tuned"));
  let_the_second_win();
  EXPECT_EQ(json_of(add_tune_command, "tune --forget")["forgotten"], 1);
}

/// Records of groups are those of their capacity and of what the file expects of the sizes.
TEST_F(TuneCommandTest, TunesTheProblemOfAFile) {
  const std::string path = folder_.path() + "/groups.json";
  compile::write_file(path, R"({"operation": "grouped_gemm", "mode": "masked_m", "sizes": [7, 0, 13],
      "extents": {"m": 30, "n": 24, "k": 16}, "types": {"A": "f16", "B": "f16", "D": "f16"}})");
  const std::string line = "tune --problem " + path + " --device emulator:sm_80";
  EXPECT_EQ(json_of(add_tune_command, line + " --top 2 --verify-candidates")["candidates"][0]["status"], "sound");
  EXPECT_EQ(json_of(add_tune_command, line + " --forget")["forgotten"], 0);
  CLI::App app;
  const Command command = add_tune_command(app);
  app.parse(line + " --m 4", false);
  EXPECT_THROW(command.run(), InvalidArgument);
}

}  // namespace
}  // namespace tilewright::cli
