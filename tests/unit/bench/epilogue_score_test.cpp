// Overheads, ratios and their means per epilogue, on invented figures.
#include "bench/epilogue_score.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "bench/report.hpp"

namespace tilewright::bench {
namespace {

using testing::HasSubstr;

Row row(const std::string& contender, double median_us, bool right = true) {
  Row row{.contender = contender, .detail = "", .verdict = {}, .timing = {}};
  row.verdict.right = right;
  if (!right) row.verdict.reason = "D[0,0] is 1";
  row.timing.median_us = median_us;
  return row;
}

Outcome outcome(const std::string& id, const std::string& epilogue, std::vector<Row> rows) {
  Outcome outcome;
  outcome.problem = *parse_problem(fmt::format("id={} dtype=bf16 m=64 n=64 k=64 b=col epilogue={}", id, epilogue));
  outcome.rows = std::move(rows);
  return outcome;
}

Outcome measured(const std::string& id, const std::string& epilogue) {
  return outcome(id, epilogue,
                 {row("tilewright", 110.0), row("tilewright_plain", 100.0), row("cublaslt_plain", 105.0),
                  row("cublaslt_fused", 121.0), row("cublaslt_fused_best", 132.0), row("cublaslt_separate", 165.0),
                  row("cublaslt_separate_best", 154.0)});
}

TEST(JudgeEpilogue, ComparesTheRankedChoiceWithThePlainProductAndCublasLt) {
  const EpilogueMeasurement one = judge_epilogue(measured("L01-TN-bias", "bias"));
  EXPECT_EQ(one.id, "L01-TN-bias");
  EXPECT_EQ(one.epilogue, "bias");
  EXPECT_EQ(one.missing, "");
  EXPECT_DOUBLE_EQ(*one.ratios.overhead, 1.1);
  EXPECT_DOUBLE_EQ(*one.ratios.to_fused, 1.1);
  EXPECT_DOUBLE_EQ(*one.ratios.to_fused_best,
                   1.1);  // the heuristic's choice is faster than the best in the short measurement
  EXPECT_DOUBLE_EQ(*one.ratios.to_separate, 1.5);
  EXPECT_DOUBLE_EQ(*one.ratios.to_separate_best, 1.4);
}

TEST(JudgeEpilogue, MissingAndWrongRowsHaveNoRatio) {
  const EpilogueMeasurement alone =
      judge_epilogue(outcome("A", "residual", {row("tilewright", 110.0), row("cublaslt_fused", 99.0, false)}));
  EXPECT_EQ(alone.missing, "");
  EXPECT_FALSE(alone.ratios.overhead);
  EXPECT_FALSE(alone.ratios.to_fused);
  EXPECT_FALSE(alone.ratios.to_separate_best);
  EXPECT_EQ(judge_epilogue(outcome("A", "bias", {row("tilewright", 1.0, false)})).missing, "wrong: D[0,0] is 1");
  Outcome none = outcome("A", "bias", {});
  none.no_kernel = "no kernel";
  EXPECT_EQ(judge_epilogue(none).missing, "no kernel");
}

TEST(ScoreEpilogues, AreGeometricMeansOverTheCasesOfAnEpilogue) {
  Outcome slower = measured("L02-TN-bias", "bias");
  slower.rows[1].timing.median_us = 110.0;
  Outcome missing = outcome("L10-TN-bias", "bias", {});
  missing.no_kernel = "no kernel";
  std::vector<EpilogueMeasurement> measurements;
  for (const Outcome& each :
       {measured("L01-TN-residual", "residual"), measured("L01-TN-bias", "bias"), slower, missing})
    measurements.push_back(judge_epilogue(each));
  const std::vector<EpilogueScore> scores = score_epilogues(measurements);
  ASSERT_EQ(scores.size(), 2u);
  EXPECT_EQ(scores[0].epilogue, "bias");
  EXPECT_EQ(scores[0].cases, 3);
  EXPECT_EQ(scores[0].missing, 1);
  EXPECT_DOUBLE_EQ(*scores[0].geomeans.overhead, std::sqrt(1.1));
  EXPECT_DOUBLE_EQ(*scores[0].geomeans.to_separate, 1.5);
  EXPECT_EQ(scores[1].epilogue, "residual");
}

TEST(EpilogueReport, JsonAndTableHaveTheRatios) {
  const std::filesystem::path path = std::filesystem::path(testing::TempDir()) / "tilewright_bench_epilogues.json";
  Outcome unfused = measured("L02-TN-bias", "bias");
  unfused.rows.resize(2);
  unfused.no_fused = "cuBLASLt has no such epilogue";
  write_json(path, Setting{}, {measured("L01-TN-bias", "bias"), unfused});
  std::ifstream file(path);
  const auto json = nlohmann::json::parse(file);
  EXPECT_TRUE(json["classes"].empty());
  EXPECT_EQ(json["suite"]["cases"], 0);
  EXPECT_EQ(json["epilogues"][0]["name"], "bias");
  EXPECT_DOUBLE_EQ(json["epilogues"][0]["geomean"]["overhead"], 1.1);
  EXPECT_EQ(json["problems"][0]["epilogue"], "bias");
  EXPECT_DOUBLE_EQ(json["problems"][0]["ratio_to_separate_best"], 1.4);
  EXPECT_DOUBLE_EQ(json["problems"][0]["rows"][0]["ratio_to_cublaslt_separate"], 1.5);
  EXPECT_TRUE(json["problems"][1]["ratio_to_fused"].is_null());
  EXPECT_EQ(json["problems"][1]["no_fused"], "cuBLASLt has no such epilogue");
  std::filesystem::remove(path);

  testing::internal::CaptureStdout();
  print_epilogue_scores({measured("L01-TN-bias", "bias")});
  const std::string printed = testing::internal::GetCapturedStdout();
  EXPECT_THAT(printed, HasSubstr("bias                         1       0     1.100     1.100     1.100     1.500"));
  EXPECT_THAT(printed, HasSubstr("L01-TN-bias"));
  testing::internal::CaptureStdout();
  print_epilogue_scores({});
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
}

}  // namespace
}  // namespace tilewright::bench
