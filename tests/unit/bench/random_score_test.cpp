// Scores of random problems, on invented figures.
#include "bench/random_score.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>

#include "bench/random_class.hpp"
#include "bench/report.hpp"

namespace tilewright::bench {
namespace {

using testing::AllOf;
using testing::HasSubstr;

Row row(const std::string& contender, const std::string& detail, double median_us) {
  Row row{.contender = contender, .detail = detail, .verdict = {}, .timing = {}};
  row.verdict.right = true;
  row.timing.median_us = median_us;
  return row;
}

Row wrong_row(const std::string& contender, const std::string& reason) {
  Row row{.contender = contender, .detail = "wrong algorithm", .verdict = {}, .timing = {}};
  row.verdict.reason = reason;
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

RandomCase made(const std::string& id, const std::string& random_class, double ratio, double regret) {
  RandomCase one;
  one.id = id;
  one.random_class = random_class;
  one.has_aligned_rows = random_class != "unaligned";
  one.ratio = ratio;
  one.regret = regret;
  return one;
}

RandomCase missing(const std::string& id, const std::string& random_class, bool lacks_cublaslt) {
  RandomCase one;
  one.id = id;
  one.random_class = random_class;
  one.missing = "none";
  one.lacks_cublaslt = lacks_cublaslt;
  return one;
}

const RandomScore* find(const std::vector<RandomScore>& scores, std::string_view name) {
  const auto found = std::ranges::find(scores, name, &RandomScore::name);
  return found == scores.end() ? nullptr : &*found;
}

constexpr const char* kDecode = "id=R100-001 dtype=bf16 m=64 n=4096 k=4096 b=col";

TEST(JudgeRandom, HasBothKernelsAndTimes) {
  const RandomCase one =
      judge_random(outcome(kDecode, {row("cublaslt", "algorithm 0", 18.0), row("cublaslt_best", "algorithm 3", 15.0),
                                     row("tilewright", "kernel x", 20.0), row("tilewright_best", "kernel y", 16.0)}));
  EXPECT_EQ(one.id, "R100-001");
  EXPECT_EQ(one.random_class, "decode");
  EXPECT_TRUE(one.has_aligned_rows);
  EXPECT_EQ(one.missing, "");
  EXPECT_DOUBLE_EQ(one.ratio, 0.9);
  EXPECT_DOUBLE_EQ(one.ours_us, 20.0);
  EXPECT_DOUBLE_EQ(one.cublaslt_us, 18.0);
  EXPECT_EQ(one.kernel, "kernel x");
  EXPECT_EQ(one.algorithm, "algorithm 0");
  EXPECT_DOUBLE_EQ(*one.regret, 1.25);
}

TEST(JudgeRandom, AWrongChoiceOfCublasLtIsReplaced) {
  const RandomCase one = judge_random(
      outcome(kDecode, {wrong_row("cublaslt", "D[0,0] is nan"), wrong_row("cublaslt_best", "D[0,0] is nan"),
                        row("tilewright", "kernel x", 20.0), row("cublaslt_correct", "algorithm 7", 30.0)}));
  EXPECT_DOUBLE_EQ(one.ratio, 1.5);
  EXPECT_EQ(one.algorithm, "algorithm 7");
  EXPECT_EQ(one.substituted, "D[0,0] is nan");
}

TEST(JudgeRandom, TheReferenceOfAnEpilogueIsTheFusedOneIfThereIsOne) {
  const char* line = "id=E dtype=bf16 m=64 n=64 k=64 b=col epilogue=bias";
  const Row ours = row("tilewright", "kernel x", 10.0), separate = row("cublaslt_separate", "two kernels", 15.0);
  EXPECT_DOUBLE_EQ(judge_random(outcome(line, {ours, row("cublaslt_fused", "a", 12.0), separate})).ratio, 1.2);
  EXPECT_DOUBLE_EQ(judge_random(outcome(line, {ours, separate})).ratio, 1.5);
  const RandomCase replaced = judge_random(outcome(line, {ours, wrong_row("cublaslt_fused", "D is 0"), separate}));
  EXPECT_DOUBLE_EQ(replaced.ratio, 1.5);
  EXPECT_EQ(replaced.substituted, "cublaslt_fused: D is 0");
  EXPECT_EQ(replaced.random_class, "epilogue");
}

TEST(JudgeRandom, GivesTheReasonOfAMissingCaseAndWhoseItIs) {
  Outcome none = outcome(kDecode, {row("cublaslt", "algorithm 0", 18.0)});
  none.no_kernel = "no kernel";
  EXPECT_EQ(judge_random(none).missing, "no kernel");
  EXPECT_FALSE(judge_random(none).lacks_cublaslt);

  const Outcome wrong = outcome(kDecode, {row("cublaslt", "algorithm 0", 18.0), wrong_row("tilewright", "D is 1")});
  EXPECT_EQ(judge_random(wrong).missing, "wrong: D is 1");

  Outcome failed = outcome(kDecode, {});
  failed.failure = "out of memory";
  EXPECT_EQ(judge_random(failed).missing, "failed: out of memory");

  Outcome alone = outcome(kDecode, {row("tilewright", "kernel x", 20.0)});
  alone.no_cublaslt = "cuBLASLt has no algorithm";
  EXPECT_EQ(judge_random(alone).missing, "cuBLASLt has no algorithm");
  EXPECT_TRUE(judge_random(alone).lacks_cublaslt);
  EXPECT_TRUE(judge_random(alone).regret);

  const Outcome both = outcome(kDecode, {wrong_row("cublaslt", "D is 2"), row("tilewright", "kernel x", 20.0)});
  EXPECT_EQ(judge_random(both).missing, "cuBLASLt is wrong: D is 2");
  EXPECT_TRUE(judge_random(both).lacks_cublaslt);
}

TEST(JudgeRandom, NamesOurWrongKernelsThatAreNotTheFirst) {
  Outcome one = outcome(kDecode, {row("cublaslt", "algorithm 0", 18.0), row("tilewright", "kernel x", 18.0),
                                  wrong_row("tilewright_best", "D is 3")});
  one.failed_kernels = {{"kernel z", "ptxas failed"}};
  const RandomCase judged = judge_random(one);
  EXPECT_EQ(judged.missing, "");
  EXPECT_EQ(judged.wrong_kernels, "tilewright_best wrong algorithm: D is 3; kernel z: ptxas failed");
  const RandomScore all = score_random_groups(std::vector{judged}).front();
  EXPECT_EQ(all.with_wrong_kernels, 1);
  EXPECT_FALSE(all.is_met());
  RandomCase right = judged;
  right.wrong_kernels = "";
  EXPECT_TRUE(score_random_groups(std::vector{right}).front().is_met());
}

TEST(Percentile, IsTheSmallestValueWithThatShareBelowOrAtIt) {
  std::vector<double> values;
  for (int i = 20; i >= 1; --i) values.push_back(i);
  EXPECT_DOUBLE_EQ(percentile(values, 5.0), 1.0);
  EXPECT_DOUBLE_EQ(percentile(values, 95.0), 19.0);
  values.push_back(21.0);
  EXPECT_DOUBLE_EQ(percentile(values, 5.0), 2.0);
  EXPECT_DOUBLE_EQ(percentile(values, 95.0), 20.0);
  EXPECT_DOUBLE_EQ(percentile({7.0}, 5.0), 7.0);
  EXPECT_THROW(percentile({}, 5.0), InternalError);
}

TEST(ScoreRandom, CountsAndAveragesByGroupAndClass) {
  const std::vector<RandomCase> cases = {made("A", "decode", 2.0, 1.0),    made("B", "decode", 0.5, 1.3),
                                         made("C", "odd_rows", 0.85, 1.0), made("D", "unaligned", 4.0, 1.0),
                                         made("E", "f32", 0.96, 1.0),      missing("F", "decode", false),
                                         missing("G", "s8", true)};
  const std::vector<RandomScore> groups = score_random_groups(cases);
  const RandomScore& all = groups.front();
  EXPECT_EQ(all.name, "all");
  EXPECT_EQ(all.cases, 7);
  EXPECT_EQ(all.missing, 2);
  EXPECT_EQ(all.lacks_cublaslt, 1);
  EXPECT_EQ(all.below_09, 2);
  EXPECT_EQ(all.below_08, 1);
  EXPECT_DOUBLE_EQ(all.share_below_09(), 0.4);
  EXPECT_DOUBLE_EQ(all.share_below_08(), 0.2);
  EXPECT_DOUBLE_EQ(*all.least, 0.5);
  EXPECT_EQ(all.least_id, "B");
  EXPECT_DOUBLE_EQ(*all.fifth_percentile, 0.5);
  EXPECT_NEAR(*all.geomean, std::pow(2.0 * 0.5 * 0.85 * 4.0 * 0.96, 0.2), 1e-12);
  EXPECT_EQ(all.regrets, 5);
  EXPECT_DOUBLE_EQ(*all.mean_regret, 1.06);
  EXPECT_DOUBLE_EQ(*all.percentile_95_of_regret, 1.3);
  EXPECT_EQ(all.largest_regret_id, "B");
  EXPECT_FALSE(all.is_met());

  EXPECT_EQ(find(groups, "aligned")->cases, 4);
  EXPECT_EQ(find(groups, "odd_rows")->cases, 1);
  EXPECT_FALSE(find(groups, "odd_rows")->is_met());
  EXPECT_FALSE(find(groups, "f32")->is_met());
  EXPECT_EQ(find(groups, "f64"), nullptr);

  const std::vector<RandomScore> classes = score_random_classes(cases);
  int sum = 0;
  for (const RandomScore& score : classes) sum += score.cases;
  EXPECT_EQ(sum, 7);
  EXPECT_EQ(find(classes, "decode")->cases, 3);
  EXPECT_EQ(find(classes, "s8")->missing, 1);
  EXPECT_FALSE(find(classes, "s8")->geomean);
  EXPECT_EQ(find(classes, "large"), nullptr);
}

TEST(ScoreRandom, AlignedProblemsHaveTheTargetsOfTheGuide) {
  const auto aligned = [](const std::vector<RandomCase>& cases) {
    return find(score_random_groups(cases), "aligned")->is_met();
  };
  std::vector<RandomCase> cases(40, made("A", "large", 1.06, 1.01));
  EXPECT_TRUE(aligned(cases));
  cases[0].ratio = 0.80;
  EXPECT_TRUE(aligned(cases));
  cases[0].ratio = 0.79;  // the least
  EXPECT_FALSE(aligned(cases));
  cases[0].ratio = cases[1].ratio = cases[2].ratio = 0.92;  // the fifth percentile
  EXPECT_FALSE(aligned(cases));
  EXPECT_FALSE(aligned(std::vector<RandomCase>(40, made("A", "large", 1.04, 1.01))));
  EXPECT_FALSE(aligned(std::vector<RandomCase>(40, made("A", "large", 1.06, 1.03))));
  cases.assign(40, made("A", "large", 1.06, 1.0));
  cases[0].regret = cases[1].regret = 1.2;
  EXPECT_TRUE(aligned(cases));
  cases[2].regret = 1.2;  // the 95th percentile of the regret
  EXPECT_FALSE(aligned(cases));
}

TEST(ScoreRandom, OddRowsAndCudaCoresHaveTargetsOfTheirOwn) {
  const auto is_met = [](const std::string& name, std::vector<RandomCase> cases) {
    return find(score_random_groups(cases), name)->is_met();
  };
  EXPECT_TRUE(is_met("odd_rows", {made("A", "odd_rows", 1.0, 1.0)}));
  EXPECT_FALSE(is_met("odd_rows", {made("A", "odd_rows", 0.99, 1.0)}));
  EXPECT_TRUE(is_met("f64", {made("A", "f64", 0.94, 1.0), made("B", "f64", 1.02, 1.0)}));
  EXPECT_FALSE(is_met("f64", {made("A", "f64", 0.92, 1.0), made("B", "f64", 1.5, 1.0)}));
  EXPECT_FALSE(is_met("f32", {made("A", "f32", 0.96, 1.0)}));
  EXPECT_TRUE(is_met("f32", {made("A", "f32", 0.98, 1.0), missing("B", "f32", true)}));
  EXPECT_FALSE(is_met("f32", {made("A", "f32", 0.98, 1.0), missing("B", "f32", false)}));
}

TEST(ScoreRandom, TheGuideHasTheTargetsOfEveryGroup) {
  std::ifstream file(TILEWRIGHT_SOURCE_DIR "/bench/README.md");
  const std::string guide(std::istreambuf_iterator<char>(file), {});
  const std::vector<RandomScore> groups = score_random_groups(
      std::vector{made("A", "odd_rows", 1.0, 1.0), made("B", "f32", 1.0, 1.0), made("C", "f64", 1.0, 1.0)});
  EXPECT_EQ(groups.size(), 5u);
  for (const RandomScore& group : groups) {
    std::string line = fmt::format("| {} |", group.title);
    for (const std::optional<double>& target :
         {group.targets.geomean, group.targets.fifth_percentile, group.targets.least, group.targets.mean_regret,
          group.targets.percentile_95_of_regret})
      line += target ? fmt::format(" {:.2f} |", *target) : " |";
    EXPECT_THAT(guide, HasSubstr(line));
  }
}

TEST(Worst, AreTheSmallestRatiosInOrder) {
  const std::vector<RandomCase> cases = {made("A", "decode", 2.0, 1.0), made("B", "decode", 0.5, 1.0),
                                         missing("C", "decode", false), made("D", "decode", 0.7, 1.0)};
  const std::vector<RandomCase> found = worst(cases, 2);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].id, "B");
  EXPECT_EQ(found[1].id, "D");
  EXPECT_EQ(worst(cases, 10).size(), 3u);
}

TEST(PrintRandomScores, NamesWorstMissingAndReplacedCases) {
  Outcome absent = outcome("id=R100-002 dtype=f64 m=64 n=64 k=64", {});
  absent.no_kernel = "no f64";
  testing::internal::CaptureStdout();
  print_random_scores({outcome(kDecode, {wrong_row("cublaslt", "D is 2"), row("cublaslt_best", "algorithm 3", 15.0),
                                         row("tilewright", "kernel x", 20.0)}),
                       absent});
  EXPECT_THAT(testing::internal::GetCapturedStdout(),
              AllOf(HasSubstr("NOT MET"), HasSubstr("all problems"), HasSubstr("M or N of at most 128"),
                    HasSubstr("R100-001   decode     0.750"), HasSubstr("kernel x"), HasSubstr("algorithm 3"),
                    HasSubstr("missing R100-002 (f64 64x64x64 row row row): no f64"),
                    HasSubstr("cuBLASLt's choice is wrong for R100-001")));
}

}  // namespace
}  // namespace tilewright::bench
