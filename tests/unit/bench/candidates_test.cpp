// Lines of candidates, designs from files, and the kernels that are chosen for a problem.
#include "bench/candidates.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "bench/tilewright_kernels.hpp"
#include "tilewright/engine/host_operands.hpp"

namespace tilewright::bench {
namespace {

using testing::HasSubstr;

engine::Engine& engine_of_emulator() {
  static engine::Engine engine([] {
    engine::Options options;
    options.device = "emulator:sm_90a";
    options.cache_on_disk = false;
    options.tuning = engine::Tuning::off;
    return options;
  }());
  return engine;
}

const Problem& problem() {
  static const Problem kProblem = *parse_problem("id=R1-007 dtype=bf16 m=64 n=512 k=1024 b=col");
  return kProblem;
}

FoundKernels found(const KernelChoice& choice, const std::string& wanted = "") {
  const op::Gemm call =
      *gemm(problem(), placeholder_addresses(), engine::memory_device(engine_of_emulator().device()->properties()));
  return *find_kernels(engine_of_emulator(), call, wanted, choice);
}

TEST(FindKernels, TakesTheFirstOfTheRankingOrAll) {
  const FoundKernels all = found({.most = 0});
  EXPECT_EQ(static_cast<int>(all.kernels.size()), all.found);
  EXPECT_GT(all.found, 10);
  const FoundKernels first = found({.most = 3});
  EXPECT_EQ(first.found, all.found);
  ASSERT_EQ(first.kernels.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(first.kernels[i].kernel->name(), all.kernels[i].kernel->name());
  EXPECT_LT(found({.most = 0}, "sm80_gemm").found, all.found);
}

TEST(CandidateLine, HasTheProblemTheDesignAndBothTimes) {
  const FoundKernels kernels = found({.most = 1});
  Timing timing;
  timing.median_us = 12.5;
  timing.samples = 7;
  const std::string line =
      candidate_line(problem(), "a GPU", {.ranked = kernels.kernels[0], .rank = 1, .is_right = true, .timing = timing});
  EXPECT_EQ(line.find('\n'), std::string::npos);
  const auto json = nlohmann::json::parse(line);
  EXPECT_EQ(json["id"], "R1-007");
  EXPECT_EQ(json["class"], "decode");
  EXPECT_EQ(json["problem"], problem().line);
  EXPECT_EQ(json["m"], 64);
  EXPECT_EQ(json["gpu"], "a GPU");
  EXPECT_EQ(json["kernel"], kernels.kernels[0].kernel->name());
  EXPECT_EQ(json["family"], kernels.kernels[0].kernel->metadata().family);
  EXPECT_DOUBLE_EQ(json["estimate_us"], kernels.kernels[0].estimate_us);
  EXPECT_DOUBLE_EQ(json["median_us"], 12.5);
  EXPECT_EQ(json["samples"], 7);
  EXPECT_EQ(json["right"], true);
  EXPECT_EQ(json["design"]["threadblock_shape"].size(), 3u);

  const auto wrong = nlohmann::json::parse(
      candidate_line(problem(), "", {.ranked = kernels.kernels[0], .rank = 2, .is_right = false}));
  EXPECT_TRUE(wrong["median_us"].is_null());
  EXPECT_EQ(wrong["right"], false);
  EXPECT_EQ(nlohmann::json::parse(failure_line(problem(), "a GPU", "k", "no memory \xff"))["kernel"], "k");
}

/// Runs the calls on the emulator, and says that each took as many microseconds as its contender's number plus 10.
MakeTimer fake_timer() {
  return [](std::span<const Contender> contenders, int set_count) -> TimeCalls {
    return [contenders, set_count, set = 0](const std::vector<std::size_t>& order) mutable {
      std::vector<double> times_us;
      for (const std::size_t one : order) {
        set = (set + 1) % set_count;
        contenders[one].run(set, nullptr);
        times_us.push_back(static_cast<double>(one) + 10.0);
      }
      return times_us;
    };
  };
}

/// From finding the kernels to their lines, with the emulator as the device.
TEST(SurveyCandidates, VerifiesAndTimesKernels) {
  engine::Engine& engine = engine_of_emulator();
  RandomBlocks random(engine.device(), 1);
  const Problem small = *parse_problem("id=R1-001 dtype=f16 m=24 n=40 k=32 b=col kernel=sm80_gemm");
  CandidateOptions options{.choice = {.most = 2}};
  options.most_sets = 2;
  options.survey.most_samples = 3;
  const std::vector<std::string> lines = survey_candidates(engine, small, random, options, fake_timer());
  ASSERT_EQ(lines.size(), 2u);
  for (int i = 0; i < 2; ++i) {
    const auto json = nlohmann::json::parse(lines[static_cast<std::size_t>(i)]);
    EXPECT_EQ(json.value("failure", ""), "");
    EXPECT_EQ(json["right"], true);
    EXPECT_EQ(json["rank"], i + 1);
    EXPECT_DOUBLE_EQ(json["median_us"], 10.0 + i);
    EXPECT_EQ(json["samples"], 3);
    EXPECT_EQ(json["family"], "sm80_gemm");
    EXPECT_EQ(json["gpu"], engine.device()->properties().name);
  }
  options.most_verified_bytes = 0;
  EXPECT_TRUE(
      nlohmann::json::parse(survey_candidates(engine, small, random, options, fake_timer())[0])["right"].is_null());

  const Problem none = *parse_problem("dtype=f16 m=24 n=40 k=32 kernel=no_such_kernel");
  const std::vector<std::string> failed = survey_candidates(engine, none, random, options, fake_timer());
  ASSERT_EQ(failed.size(), 1u);
  EXPECT_EQ(nlohmann::json::parse(failed[0])["failure"],
            "no kernel for this problem has \"no_such_kernel\" in its name");
}

/// The whole ranking, written as designs and read again, makes the same kernels.
TEST(Designs, OfCandidatesCanBeMeasuredAgain) {
  FoundKernels all = found({.most = 0});
  // A design does not say in which language a program is printed.
  std::erase_if(all.kernels, [](const engine::RankedKernel& one) { return one.kernel->metadata().family == "mlir"; });
  std::stringstream file;
  file << "# designs\n\n";
  for (const engine::RankedKernel& one : all.kernels)
    file << nlohmann::json::parse(candidate_line(problem(), "", {.ranked = one}))["design"] << '\n';
  const std::vector<plan::FlatDesign> designs = read_designs(file, "designs.txt");
  ASSERT_EQ(designs.size(), all.kernels.size());
  const FoundKernels again = found({.most = 1, .designs = designs});
  EXPECT_EQ(again.found, all.found);
  std::vector<std::string> names, expected;
  for (const engine::RankedKernel& one : again.kernels) names.push_back(one.kernel->name());
  for (const engine::RankedKernel& one : all.kernels) expected.push_back(one.kernel->name());
  EXPECT_THAT(names, testing::UnorderedElementsAreArray(expected));
  for (const engine::RankedKernel& one : again.kernels) EXPECT_GT(one.estimate_us, 0.0);
}

TEST(Designs, AMalformedLineIsNamed) {
  const auto error_of = [](const std::string& text) -> std::string {
    std::istringstream file(text);
    try {
      read_designs(file, "designs.txt");
    } catch (const InvalidArgument& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(error_of("{\"stages\": 4}\n{stages}\n"), HasSubstr("designs.txt:2: "));
  EXPECT_THAT(error_of("{\"schedule\": \"idle\"}\n"), HasSubstr("designs.txt:1: schedule must not be \"idle\""));
  EXPECT_THAT(error_of("{\"stages\": \"four\"}\n"), HasSubstr("designs.txt:1: "));
  EXPECT_EQ(error_of("{\"stages\": 4}\n"), "");
}

}  // namespace
}  // namespace tilewright::bench
