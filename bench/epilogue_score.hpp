// Judges measured epilogues: what one costs beside the plain product, and the ratio to cuBLASLt's two ways.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "outcome.hpp"

namespace tilewright::bench {

/// Our ranking's choice is what is compared, with its epilogue fused.
struct EpilogueRatios {
  std::optional<double> overhead;          // its time / that of our plain product, both chosen by the ranking
  std::optional<double> to_fused;          // time of cuBLASLt's own epilogue, chosen by its heuristic / ours
  std::optional<double> to_fused_best;     // of the best of cuBLASLt's algorithms
  std::optional<double> to_separate;       // of cuBLASLt's product and a kernel for the epilogue after it
  std::optional<double> to_separate_best;  // with the best algorithm for it
};

struct EpilogueMeasurement {
  std::string id;       // the problem's title where it has no id
  std::string missing;  // why there are no ratios; empty where there are
  std::string epilogue;
  EpilogueRatios ratios;
};

/// @pre the problem has an epilogue
EpilogueMeasurement judge_epilogue(const Outcome& outcome);

/// The measurements of one epilogue.
struct EpilogueScore {
  std::string epilogue;
  int cases = 0;
  int missing = 0;          // of them
  EpilogueRatios geomeans;  // each over the cases that have it
};

/// One score an epilogue that has cases, in the order of epilogue_cases().
std::vector<EpilogueScore> score_epilogues(std::span<const EpilogueMeasurement> measurements);

/// Every ratio with its name in JSON, in order.
struct NamedRatio {
  const char* name;
  std::optional<double> EpilogueRatios::*ratio;
};
std::span<const NamedRatio> named_ratios();

}  // namespace tilewright::bench
