// tilewright gemm: computes one GEMM on matrices from files or on random numbers, and verifies it with --verify.
#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "tilewright/engine/engine.hpp"
#include "tilewright/op/problem.hpp"
#include "tools/cli/commands.hpp"
#include "tools/cli/computation.hpp"
#include "tools/cli/kernel_choice.hpp"
#include "tools/cli/output_file.hpp"
#include "tools/cli/problem.hpp"

namespace tilewright::cli {
namespace {

struct GemmOptions {
  ProblemOptions problem;
  KernelOptions kernel;
  std::string out;
  bool verify = false;
  bool json = false;
};

Outcome compute(const GemmOptions& options) {
  Problem problem(options.problem);
  std::vector<NamedFile> outputs = problem.output_files();
  if (!options.out.empty()) outputs.insert(outputs.begin(), {"--out", options.out});
  check_outputs(outputs, problem.input_files());
  engine::Engine engine(engine_options(options.kernel));
  Outcome outcome;
  outcome.problem = to_string(problem.gemm());
  outcome.kernel = choose_kernel(engine, problem.gemm(), options.kernel);
  problem.materialize();

  compute(outcome, engine, problem.gemm());
  if (options.verify) outcome.comparison = op::compare(problem.gemm(), options.problem.seed);
  if (!options.out.empty() && !outcome.is_wrong()) {
    write_output(options.out, npy_bytes(problem.output()));
    outcome.output = options.out;
  }
  if (!outcome.is_wrong()) {
    for (const auto& [file, matrix] : problem.epilogue_outputs()) {
      write_output(file, npy_bytes(matrix));
      outcome.epilogue_outputs.push_back(file);
    }
  }
  return outcome;
}

ExitCode run(const GemmOptions& options) { return report(compute(options), options.json); }

}  // namespace

Command add_gemm_command(CLI::App& parent) {
  CLI::App* app = parent.add_subcommand(
      "gemm",
      "compute a GEMM on matrices from files or on random ones: D = alpha * A * B + beta * C, or another epilogue");
  const auto options = std::make_shared<GemmOptions>();
  add_problem_options(*app, options->problem);
  add_kernel_options(*app, options->kernel, false);
  app->add_option("--out", options->out, "write D to this .npy file; the file is complete or not written at all")
      ->type_name("FILE");
  app->add_flag("--verify", options->verify, "compare D with the reference; if it is wrong, write no file and exit 1");
  app->add_flag("--json", options->json, "print the result as JSON");
  return {app, [options] { return run(*options); }};
}

}  // namespace tilewright::cli
