// tilewright gemm: computes one GEMM on matrices from files or on random numbers, and verifies it with --verify.
#include <CLI/CLI.hpp>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "tilewright/cache/store.hpp"
#include "tilewright/compile/artifact.hpp"
#include "tilewright/engine/engine.hpp"
#include "tilewright/op/problem.hpp"
#include "tools/cli/commands.hpp"
#include "tools/cli/kernel_choice.hpp"
#include "tools/cli/output_file.hpp"
#include "tools/cli/problem.hpp"
#include "tools/cli/standard_streams.hpp"

namespace tilewright::cli {
namespace {

struct GemmOptions {
  ProblemOptions problem;
  KernelOptions kernel;
  std::string out;
  bool verify = false;
  bool json = false;
};

double milliseconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

// Where the binary came from: one word for the JSON output and one phrase for the text.
struct Origin {
  const char* word;
  const char* phrase;
};

Origin origin_of(const cache::Counters& counters) {
  if (counters.compiles != 0) return {"compiled", "compiled"};
  if (counters.disk_hits != 0) return {"disk", "found in the cache"};
  return {"none", "not needed"};
}

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

Outcome compute(const GemmOptions& options) {
  Problem problem(options.problem);
  std::vector<NamedFile> outputs = problem.output_files();
  if (!options.out.empty()) outputs.insert(outputs.begin(), {"--out", options.out});
  check_outputs(outputs, problem.input_files());
  engine::Engine engine(engine_options(options.kernel));
  Outcome outcome;
  outcome.problem = to_string(problem.gemm());
  outcome.device = engine.device()->properties().name;
  outcome.kernel = choose_kernel(engine, problem.gemm(), options.kernel);
  problem.materialize();

  auto start = std::chrono::steady_clock::now();
  if (!problem.gemm().is_empty()) engine.compile(outcome.kernel.kernel);
  outcome.binary_ms = milliseconds_since(start);
  outcome.binary = origin_of(engine.cache().counters());

  start = std::chrono::steady_clock::now();
  engine.run(problem.gemm(), outcome.kernel.kernel);
  outcome.run_ms = milliseconds_since(start);

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

void print_text(const Outcome& outcome) {
  fmt::print("problem   {}\n", outcome.problem);
  fmt::print("device    {}\n", outcome.device);
  fmt::print("kernel    {}\n          {}\n", outcome.kernel.kernel->name(), outcome.kernel.origin);
  fmt::print("binary    {} in {:.1f} ms\n", outcome.binary.phrase, outcome.binary_ms);
  fmt::print("run       {:.1f} ms, copies in and out included\n", outcome.run_ms);
  if (outcome.comparison) fmt::print("verify    {}\n", op::to_string(*outcome.comparison));
  if (!outcome.output.empty()) fmt::print("wrote     {}\n", outcome.output);
  for (const std::string& file : outcome.epilogue_outputs) fmt::print("wrote     {}\n", file);
}

void print_json(const Outcome& outcome) {
  nlohmann::ordered_json json;
  json["problem"] = outcome.problem;
  json["device"] = outcome.device;
  json["kernel"] = outcome.kernel.kernel->name();
  json["binary"] = {{"from", outcome.binary.word}, {"ms", outcome.binary_ms}};
  json["run_ms"] = outcome.run_ms;
  if (outcome.comparison) {
    const op::Comparison& comparison = *outcome.comparison;
    json["verify"] = {{"ok", comparison.is_within_bound()}, {"exact", comparison.is_exact()},
                      {"elements", comparison.elements},    {"checked", comparison.checked},
                      {"equal", comparison.equal},          {"outside_bound", comparison.outside},
                      {"max_error", comparison.max_error}};
  }
  if (!outcome.output.empty()) json["out"] = outcome.output;
  if (!outcome.epilogue_outputs.empty()) json["outputs"] = outcome.epilogue_outputs;
  fmt::print("{}\n", json.dump(2));
}

ExitCode run(const GemmOptions& options) {
  const Outcome outcome = compute(options);
  options.json ? print_json(outcome) : print_text(outcome);
  if (!outcome.is_wrong()) return ExitCode::ok;
  say("wrong result: " + op::to_string(*outcome.comparison));
  return ExitCode::wrong_result;
}

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
