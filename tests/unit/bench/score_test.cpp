// Ratios, geometric means, regret, missing cases and the table of classes, on invented figures.
#include "bench/score.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "bench/problem_class.hpp"
#include "bench/report.hpp"

namespace tilewright::bench {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

Row row(const std::string& contender, const std::string& detail, double median_us) {
  Row row{.contender = contender, .detail = detail, .verdict = {}, .timing = {}};
  row.verdict.right = true;
  row.timing.median_us = median_us;
  return row;
}

Outcome outcome(const std::string& line, std::vector<Row> rows) {
  Outcome outcome;
  outcome.problem = *parse_problem(line);
  outcome.rows = std::move(rows);
  outcome.kernels = 20;
  outcome.candidates = 8;
  return outcome;
}

constexpr const char* kLarge = "id=G03-TN class=large dtype=bf16 m=4096 n=4096 k=4096 b=col";

Outcome measured() {
  return outcome(kLarge, {row("cublaslt", "algorithm 0", 180.0), row("cublaslt_best", "algorithm 5", 162.0),
                          row("tilewright", "kernel x", 200.0), row("tilewright_best", "kernel y", 160.0)});
}

Case made(const std::string& id, const std::string& problem_class, double ratio, double to_best, double regret) {
  return {.id = id,
          .problem_class = problem_class,
          .missing = "",
          .ratio = ratio,
          .ratio_to_best = to_best,
          .regret = regret};
}

Case missing(const std::string& id, const std::string& problem_class) {
  return {.id = id, .problem_class = problem_class, .missing = "no kernel", .regret = {}};
}

TEST(Judge, RatioAndRegretAreThoseOfTheRankedChoice) {
  const Case one = judge(measured());
  EXPECT_EQ(one.id, "G03-TN");
  EXPECT_EQ(one.problem_class, "large");
  EXPECT_EQ(one.missing, "");
  EXPECT_DOUBLE_EQ(one.ratio, 0.9);
  EXPECT_DOUBLE_EQ(one.ratio_to_best, 0.81);
  EXPECT_DOUBLE_EQ(*one.regret, 1.25);
}

TEST(Judge, ASecondRowOfTheSameKernelGivesNoRegret) {
  Outcome same = measured();
  same.rows[3].detail = "kernel x";
  same.rows[1].timing.median_us = 190.0;
  EXPECT_DOUBLE_EQ(*judge(same).regret, 1.0);
  EXPECT_DOUBLE_EQ(judge(same).ratio_to_best, 0.9);
}

TEST(Judge, RegretIsUnknownIfOtherKernelsWereNotMeasured) {
  Outcome alone = measured();
  alone.rows.pop_back();
  alone.candidates = 1;
  EXPECT_FALSE(judge(alone).regret);
  EXPECT_DOUBLE_EQ(judge(alone).ratio, 0.9);
  alone.kernels = 1;
  EXPECT_DOUBLE_EQ(*judge(alone).regret, 1.0);
}

TEST(Judge, WrongBestDoesNotCount) {
  Outcome wrong = measured();
  wrong.rows[3].verdict.right = false;
  EXPECT_DOUBLE_EQ(*judge(wrong).regret, 1.0);
}

TEST(Judge, GivesTheReasonOfAMissingCase) {
  Outcome none = measured();
  none.rows.resize(2);
  none.no_kernel = "one call computes one product, got a batch of 8";
  EXPECT_EQ(judge(none).missing, "one call computes one product, got a batch of 8");
  EXPECT_FALSE(judge(none).regret);

  Outcome wrong = measured();
  wrong.rows[2].verdict = {.right = false, .reason = "D[0,0] is nan"};
  EXPECT_EQ(judge(wrong).missing, "wrong: D[0,0] is nan");

  Outcome alone = measured();
  alone.rows.erase(alone.rows.begin(), alone.rows.begin() + 2);
  alone.no_cublaslt = "cuBLASLt has no algorithm";
  EXPECT_EQ(judge(alone).missing, "cuBLASLt has no algorithm");
  EXPECT_DOUBLE_EQ(*judge(alone).regret, 1.25);

  Outcome failed = outcome("dtype=f16 m=1 n=2 k=3", {});
  failed.failure = "out of memory";
  EXPECT_EQ(judge(failed).missing, "failed: out of memory");
  EXPECT_EQ(judge(failed).id, "f16 1x2x3 row row row");
}

Outcome wrong_choice() {
  Outcome wrong = measured();
  wrong.rows[0].verdict = {.right = false, .reason = "D[2800,1134] is nan"};
  wrong.rows[0].timing = {};
  return wrong;
}

TEST(Judge, AWrongChoiceOfCublasLtIsReplacedByItsFastestCorrectAlgorithm) {
  const Case best = judge(wrong_choice());
  EXPECT_EQ(best.missing, "");
  EXPECT_EQ(best.substituted, "D[2800,1134] is nan");
  EXPECT_DOUBLE_EQ(best.ratio, 0.81);
  EXPECT_DOUBLE_EQ(best.ratio_to_best, 0.81);
  EXPECT_EQ(judge(measured()).substituted, "");

  Outcome both = wrong_choice();
  both.rows[1].verdict = {.right = false, .reason = "D[0,0] is nan"};
  EXPECT_EQ(judge(both).missing, "cuBLASLt is wrong: D[2800,1134] is nan");
  EXPECT_EQ(judge(both).substituted, "");
  both.rows.push_back(row("cublaslt_correct", "algorithm 9", 220.0));
  EXPECT_EQ(judge(both).missing, "");
  EXPECT_DOUBLE_EQ(judge(both).ratio, 1.1);
  EXPECT_DOUBLE_EQ(judge(both).ratio_to_best, 1.1);
  EXPECT_EQ(score_classes(std::vector{judge(both), judge(measured())}).front().substituted, 1);
}

TEST(Regret, IsThatOfTheProblemWithItsEpilogue) {
  Outcome one = outcome("id=E dtype=bf16 m=64 n=64 k=64 b=col epilogue=bias",
                        {row("tilewright", "kernel x", 11.0), row("tilewright_best", "kernel y", 10.0),
                         row("tilewright_plain", "kernel z", 5.0)});
  EXPECT_DOUBLE_EQ(*regret(one), 1.1);
}

TEST(Geomean, OfRatios) {
  EXPECT_DOUBLE_EQ(geomean(std::array{2.0, 8.0}), 4.0);
  EXPECT_DOUBLE_EQ(geomean(std::array{0.5, 1.0, 2.0}), 1.0);
  EXPECT_NEAR(geomean(std::array{1.1, 1.2, 0.9}), 1.0591045, 1e-7);
  EXPECT_THROW(geomean({}), InternalError);
}

TEST(ScoreClasses, ComputesMeanWorstAndRegretOfEachClass) {
  const std::vector<Case> cases = {made("A", "large", 0.98, 0.95, 1.0), made("B", "large", 1.05, 1.02, 1.10),
                                   made("C", "s8", 1.3, 1.2, 1.02), missing("D", "batched"),
                                   made("E", "", 0.1, 0.1, 9.0)};
  const std::vector<Score> scores = score_classes(cases);
  ASSERT_EQ(scores.size(), 3u);

  const Score& large = scores[0];
  EXPECT_EQ(large.name, "large");
  EXPECT_EQ(large.cases, 2);
  EXPECT_EQ(large.missing, 0);
  EXPECT_NEAR(*large.geomean, 1.014396, 1e-6);
  EXPECT_NEAR(*large.geomean_to_best, 0.984378, 1e-6);
  EXPECT_DOUBLE_EQ(*large.min, 0.98);
  EXPECT_EQ(large.min_id, "A");
  EXPECT_DOUBLE_EQ(*large.mean_regret, 1.05);
  EXPECT_DOUBLE_EQ(*large.max_regret, 1.10);
  EXPECT_EQ(large.max_regret_id, "B");
  EXPECT_TRUE(large.is_met());

  const Score& batched = scores[1];
  EXPECT_EQ(batched.name, "batched");
  EXPECT_EQ(batched.cases, 1);
  EXPECT_EQ(batched.missing, 1);
  EXPECT_FALSE(batched.geomean);
  EXPECT_FALSE(batched.mean_regret);
  EXPECT_FALSE(batched.is_met());

  EXPECT_EQ(scores[2].name, "s8");
  EXPECT_TRUE(scores[2].is_met());
}

TEST(ScoreClasses, IsMetOnlyIfMeanAndWorstReachTheTargetsAndNoCaseIsMissing) {
  const auto large = [](std::vector<Case> cases) { return score_classes(cases).front().is_met(); };
  EXPECT_TRUE(large({made("A", "large", 1.0, 1.0, 1.0), made("B", "large", 1.0, 1.0, 1.0)}));
  EXPECT_FALSE(large({made("A", "large", 0.99, 1.0, 1.0), made("B", "large", 1.0, 1.0, 1.0)}));
  EXPECT_FALSE(large({made("A", "large", 0.94, 1.0, 1.0), made("B", "large", 2.0, 1.0, 1.0)}));
  EXPECT_FALSE(large({made("A", "large", 1.0, 1.0, 1.0), missing("B", "large")}));
}

TEST(ScoreSuite, IsOverAllCasesOfClasses) {
  const Score suite = score_suite(std::vector<Case>{made("A", "large", 1.0, 1.0, 1.0), made("B", "s8", 1.44, 1.2, 1.4),
                                                    missing("C", "fp8"), made("D", "", 9.0, 9.0, 9.0)});
  EXPECT_EQ(suite.cases, 3);
  EXPECT_EQ(suite.missing, 1);
  EXPECT_DOUBLE_EQ(*suite.geomean, 1.2);
  EXPECT_DOUBLE_EQ(*suite.target_geomean, 1.12);
  EXPECT_FALSE(suite.target_min);
  EXPECT_DOUBLE_EQ(*suite.mean_regret, 1.2);
  EXPECT_FALSE(suite.is_met());
}

TEST(ProblemClasses, HaveTheTargetsOfTheHopperGemm) {
  ASSERT_EQ(problem_classes().size(), 10u);
  EXPECT_DOUBLE_EQ(find_problem_class("unaligned")->target_geomean, 2.5);
  EXPECT_DOUBLE_EQ(find_problem_class("unaligned")->target_min, 1.5);
  EXPECT_DOUBLE_EQ(find_problem_class("decode")->target_geomean, 1.10);
  EXPECT_EQ(find_problem_class("huge"), nullptr);
  EXPECT_THAT(parse_problem("class=huge dtype=f16 m=1 n=1 k=1").reason(),
              StartsWith("class must be one of large, short, decode"));
}

TEST(ProblemClasses, HaveTheTargetsOfTheGuide) {
  std::ifstream file(TILEWRIGHT_SOURCE_DIR "/bench/README.md");
  const std::string guide(std::istreambuf_iterator<char>(file), {});
  for (const ProblemClass& one : problem_classes())
    EXPECT_THAT(guide,
                HasSubstr(fmt::format("| {} | {:.2f} | {:.2f} |", one.title, one.target_geomean, one.target_min)));
  EXPECT_THAT(guide, HasSubstr(fmt::format("| whole suite | {:.2f} | |", kSuiteTarget)));
}

TEST(ProblemClasses, EachHasCasesInTheSuite) {
  std::ifstream file(TILEWRIGHT_SOURCE_DIR "/bench/problems/hopper.txt");
  std::vector<Case> cases;
  for (const Problem& problem : read_problems(file, "hopper.txt")) {
    EXPECT_NE(problem.id, "") << problem.line;
    EXPECT_NE(problem.problem_class, "") << problem.line;
    cases.push_back(missing(problem.id, problem.problem_class));
  }
  EXPECT_EQ(score_classes(cases).size(), problem_classes().size());
  EXPECT_EQ(score_suite(cases).cases, static_cast<int>(cases.size()));
}

TEST(WriteJson, HasCasesClassesAndSuite) {
  const std::filesystem::path path = std::filesystem::path(testing::TempDir()) / "tilewright_bench_report.json";
  Outcome absent = outcome("id=B01-TN class=batched dtype=bf16 batch=8 m=1 n=1 k=1", {});
  absent.no_kernel = "no batch";
  Setting setting;
  setting.gpu = "a GPU";
  write_json(path, setting, {measured(), absent});
  std::ifstream file(path);
  const auto json = nlohmann::json::parse(file);
  EXPECT_EQ(json["setting"]["gpu"], "a GPU");
  EXPECT_EQ(json["problems"][0]["id"], "G03-TN");
  EXPECT_DOUBLE_EQ(json["problems"][0]["ratio_to_cublaslt"], 0.9);
  EXPECT_DOUBLE_EQ(json["problems"][0]["regret"], 1.25);
  EXPECT_EQ(json["problems"][0]["rows"].size(), 4u);
  EXPECT_EQ(json["problems"][1]["missing"], "no batch");
  EXPECT_FALSE(json["problems"][1].contains("ratio_to_cublaslt"));
  EXPECT_EQ(json["classes"][0]["name"], "large");
  EXPECT_EQ(json["classes"][0]["met"], false);
  EXPECT_EQ(json["classes"][1]["missing"], 1);
  EXPECT_TRUE(json["classes"][1]["geomean"].is_null());
  EXPECT_DOUBLE_EQ(json["suite"]["target_geomean"], 1.12);
  EXPECT_TRUE(json["suite"]["target_min"].is_null());
  std::filesystem::remove(path);
}

TEST(WriteJson, SaysWhichCasesHaveAnotherReference) {
  const std::filesystem::path path = std::filesystem::path(testing::TempDir()) / "tilewright_bench_wrong.json";
  Outcome wrong = wrong_choice();
  wrong.rechecks = {"in fresh memory, algorithm 0: wrong"};
  wrong.conclusion = "cuBLASLt's algorithm is wrong wherever the operands are";
  wrong.failed_kernels = {{"kernel w", "ptxas failed: \xff"}};
  write_json(path, {}, {wrong}, true);
  std::ifstream file(path);
  const auto json = nlohmann::json::parse(file);
  EXPECT_EQ(json["problems"][0]["substituted"], "D[2800,1134] is nan");
  EXPECT_EQ(json["problems"][0]["rechecks"][0], "in fresh memory, algorithm 0: wrong");
  EXPECT_EQ(json["problems"][0]["conclusion"], "cuBLASLt's algorithm is wrong wherever the operands are");
  EXPECT_EQ(json["problems"][0]["failed_kernels"][0]["name"], "kernel w");
  EXPECT_DOUBLE_EQ(json["problems"][0]["rows"][2]["ratio_to_cublaslt"], 0.81);
  EXPECT_EQ(json["classes"][0]["substituted"], 1);
  EXPECT_EQ(json["random"]["groups"][0]["name"], "all");
  EXPECT_EQ(json["random"]["groups"][0]["substituted"], 1);
  EXPECT_EQ(json["random"]["cases"][0]["algorithm"], "algorithm 5");
  EXPECT_DOUBLE_EQ(json["random"]["groups"][0]["targets"]["mean_regret"], 1.02);
  EXPECT_TRUE(json["random"]["groups"][0]["targets"]["geomean"].is_null());
  std::filesystem::remove(path);

  testing::internal::CaptureStdout();
  print_outcome(wrong);
  print_scores({wrong});
  EXPECT_THAT(testing::internal::GetCapturedStdout(),
              testing::AllOf(HasSubstr("recheck of cublaslt: in fresh memory"), HasSubstr("FAILED kernel w"),
                             HasSubstr("cuBLASLt's choice is wrong for G03-TN, the ratio is to its fastest")));
}

TEST(PrintScores, PrintsATableAndTheReasonsOfMissingCases) {
  Outcome absent = outcome("id=B01-TN class=batched dtype=bf16 batch=8 m=1 n=1 k=1", {});
  absent.no_kernel = "no batch";
  testing::internal::CaptureStdout();
  print_scores({measured(), absent});
  const std::string printed = testing::internal::GetCapturedStdout();
  EXPECT_THAT(printed, HasSubstr("large aligned bf16 and f16, all layouts"));
  EXPECT_THAT(printed, HasSubstr("NOT MET"));
  EXPECT_THAT(printed, HasSubstr("whole suite"));
  EXPECT_THAT(printed, HasSubstr("missing B01-TN: no batch"));

  testing::internal::CaptureStdout();
  print_scores({outcome("dtype=f16 m=1 n=1 k=1", {})});
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
}

}  // namespace
}  // namespace tilewright::bench
