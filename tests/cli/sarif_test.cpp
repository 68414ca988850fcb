#include "tools/cli/sarif.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace tilewright::cli {
namespace {

emulator::Finding race() {
  emulator::Finding finding;
  finding.kind = emulator::FindingKind::shared_race;
  finding.detail = "write of 4 bytes";
  finding.thread = emulator::ThreadLocation{{1, 0, 0}, {32, 0, 0}};
  finding.location.source = {{"/usr/include/cuda/pipeline", 7}, {"/nowhere/kernel.cu", 12}};
  finding.count = 3;
  return finding;
}

TEST(Sarif, FindingsAreResultsOfRules) {
  emulator::Finding warning = race();
  warning.severity = emulator::Severity::warning;
  emulator::Finding at_load;
  at_load.kind = emulator::FindingKind::malformed_ptx;
  const auto sarif = nlohmann::json::parse(sarif_text({race(), warning, at_load}, SourceExcerpts()));
  EXPECT_EQ(sarif.at("version"), "2.1.0");
  const nlohmann::json& run = sarif.at("runs").at(0);
  const nlohmann::json& rules = run.at("tool").at("driver").at("rules");
  ASSERT_EQ(rules.size(), 2U);
  EXPECT_EQ(rules[0].at("id"), "shared_race");
  EXPECT_EQ(rules[1].at("id"), "malformed_ptx");
  const nlohmann::json& results = run.at("results");
  ASSERT_EQ(results.size(), 3U);
  EXPECT_EQ(results[0].at("level"), "error");
  EXPECT_EQ(results[1].at("level"), "warning");
  EXPECT_EQ(results[0].at("occurrenceCount"), 3);
  EXPECT_EQ(results[0].at("message").at("text"), "write of 4 bytes, by thread (32,0,0) of CTA (1,0,0)");
  // The frame in a header of the toolkit is not the one that is reported.
  const nlohmann::json& place = results[0].at("locations").at(0).at("physicalLocation");
  EXPECT_EQ(place.at("artifactLocation").at("uri"), "/nowhere/kernel.cu");
  EXPECT_EQ(place.at("region").at("startLine"), 12);
  EXPECT_EQ(results[0].at("stacks").at(0).at("frames").size(), 2U);
  EXPECT_FALSE(results[2].contains("locations"));
}

TEST(Sarif, SymbolsAreDemangled) {
  EXPECT_EQ(source_name("_Z1kPfi"), "k(float*, int)");
  EXPECT_EQ(source_name("kernel"), "kernel");
}

}  // namespace
}  // namespace tilewright::cli
