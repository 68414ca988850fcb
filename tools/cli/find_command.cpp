// tilewright find: the kernels that can compute a problem, best first, and the reason for each that cannot.
#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "tilewright/engine/engine.hpp"
#include "tools/cli/commands.hpp"
#include "tools/cli/kernel_choice.hpp"
#include "tools/cli/problem.hpp"

namespace tilewright::cli {
namespace {

struct FindOptions {
  ProblemOptions problem;
  KernelOptions kernel;
  bool explain = false;
  bool json = false;
};

void print_text(const engine::Explanation& found, const op::Gemm& gemm, bool explain) {
  fmt::print("problem   {}\ntarget    {}\n{}", to_string(gemm), found.target.name(), engine::to_text(found, explain));
}

void print_json(const engine::Explanation& found, const op::Gemm& gemm) {
  nlohmann::ordered_json json{{"problem", to_string(gemm)}};
  json.update(nlohmann::ordered_json::parse(engine::to_json(found)));
  fmt::print("{}\n", json.dump(2));
}

ExitCode run(const FindOptions& options) {
  const Problem problem(options.problem);
  const engine::Engine engine(engine_options(options.kernel));
  const Target target = choose_target(engine, options.kernel);
  engine::Explanation found{.target = target, .kernels = {}, .refused = {}, .tuned = {}};
  if (options.kernel.has_design() || !options.kernel.kernel.empty()) {
    const ChosenKernel chosen = choose_kernel(engine, problem.gemm(), options.kernel);
    found.kernels.push_back({chosen.kernel, chosen.kernel->estimate_us(problem.gemm())});
  } else {
    found = engine.explain(problem.gemm(), {}, target);
  }
  options.json ? print_json(found, problem.gemm()) : print_text(found, problem.gemm(), options.explain);
  return ExitCode::ok;
}

}  // namespace

Command add_find_command(CLI::App& parent) {
  CLI::App* app = parent.add_subcommand("find", "rank the kernels that can compute a GEMM");
  const auto options = std::make_shared<FindOptions>();
  add_problem_options(*app, options->problem);
  add_kernel_options(*app, options->kernel, true);
  app->add_flag("--explain", options->explain,
                "also list the kernels that cannot compute the GEMM, each with the reason");
  app->add_flag("--json", options->json, "print kernels and refusals as JSON");
  return {app, [options] { return run(*options); }};
}

}  // namespace tilewright::cli
