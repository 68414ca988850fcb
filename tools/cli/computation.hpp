// One computation of the commands gemm, conv, contract and run: the kernel, where its binary came from, the times, the
// comparison.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tilewright/engine/engine.hpp"
#include "tools/cli/commands.hpp"
#include "tools/cli/kernel_choice.hpp"

namespace tilewright::cli {

/// Where the binary came from: one word for the JSON output and one phrase for the text.
struct Origin {
  const char* word;
  const char* phrase;
};

struct Outcome {
  std::string problem;
  std::string device;
  ChosenKernel kernel;
  Origin binary{"none", "not needed"};
  double binary_ms = 0.0;
  double run_ms = 0.0;
  std::optional<op::Comparison> comparison;
  std::string output;
  std::vector<std::string> epilogue_outputs;

  bool is_wrong() const { return comparison && !comparison->is_within_bound(); }
};

/// Compiles the chosen kernel and runs it. @pre `outcome` has the kernel, and the operands have memory
void compute(Outcome& outcome, engine::Engine& engine, const op::Problem& problem);

/// Prints the outcome, and says on stderr if it is wrong.
ExitCode report(const Outcome& outcome, bool as_json);

}  // namespace tilewright::cli
