// Scores measured epilogues: the overhead over the plain product, and the speed relative to cuBLASLt with its fused
// epilogue and with a separate kernel.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "outcome.hpp"

namespace tilewright::bench {

/// The ratios of Tilewright's best-ranked kernel, with the epilogue fused.
struct EpilogueRatios {
  std::optional<double> overhead;          // time / time of Tilewright's plain product, both by the best-ranked kernel
  std::optional<double> to_fused;          // time of cuBLASLt's fused epilogue, by the heuristic's choice / ours
  std::optional<double> to_fused_best;     // the same with cuBLASLt's fastest algorithm
  std::optional<double> to_separate;       // time of cuBLASLt's product and a kernel for the epilogue / ours
  std::optional<double> to_separate_best;  // the same with the fastest algorithm for the product
};

struct EpilogueMeasurement {
  std::string id;       // the problem's title if it has no id
  std::string missing;  // why there are no ratios; empty if there are
  std::string epilogue;
  EpilogueRatios ratios;
};

/// @pre the problem has an epilogue
EpilogueMeasurement judge_epilogue(const Outcome& outcome);

/// The measurements of one epilogue.
struct EpilogueScore {
  std::string epilogue;
  int cases = 0;
  int missing = 0;          // how many of the cases have no ratios
  EpilogueRatios geomeans;  // each over the cases that have the ratio
};

/// One score per epilogue that was measured, in the order of epilogue_cases().
std::vector<EpilogueScore> score_epilogues(std::span<const EpilogueMeasurement> measurements);

/// The ratios with their names in the JSON output, in the order of reports.
struct NamedRatio {
  const char* name;
  std::optional<double> EpilogueRatios::*ratio;
};
std::span<const NamedRatio> named_ratios();

}  // namespace tilewright::bench
