// tilewright conv: computes one convolution, or one of its gradients, on random numbers, and verifies it with --verify.
#include <CLI/CLI.hpp>
#include <memory>

#include "tilewright/engine/engine.hpp"
#include "tilewright/op/problem.hpp"
#include "tools/cli/commands.hpp"
#include "tools/cli/computation.hpp"
#include "tools/cli/convolution.hpp"
#include "tools/cli/kernel_choice.hpp"

namespace tilewright::cli {
namespace {

struct ConvOptions {
  ConvolutionOptions problem;
  KernelOptions kernel;
  bool explain = false;
  bool verify = false;
  bool json = false;
};

ExitCode explain(const engine::Engine& engine, const op::Problem& problem, const std::string& text, bool as_json) {
  const engine::Explanation found = engine.explain(problem);
  if (as_json) {
    fmt::print("{}\n", engine::to_json(found));
  } else {
    fmt::print("problem   {}\ntarget    {}\n{}", text, found.target.name(), engine::to_text(found, true));
  }
  return ExitCode::ok;
}

ExitCode run(const ConvOptions& options) {
  Convolution convolution(options.problem);
  engine::Engine engine(engine_options(options.kernel));
  Outcome outcome;
  outcome.problem = to_string(convolution.conv());
  if (options.explain) return explain(engine, convolution.conv(), outcome.problem, options.json);
  outcome.kernel = choose_kernel(engine, convolution.conv(), options.kernel);
  convolution.materialize();
  compute(outcome, engine, convolution.conv());
  if (options.verify) outcome.comparison = op::compare(convolution.conv(), options.problem.seed);
  return report(outcome, options.json);
}

}  // namespace

Command add_conv_command(CLI::App& parent) {
  CLI::App* app =
      parent.add_subcommand("conv", "compute a 2-D convolution of random NHWC tensors, or one of its gradients");
  const auto options = std::make_shared<ConvOptions>();
  add_convolution_options(*app, options->problem);
  add_kernel_options(*app, options->kernel, false);
  app->add_flag(
      "--explain", options->explain,
      "do not compute: rank the kernels, and list those that cannot compute the problem, each with the reason");
  app->add_flag("--verify", options->verify, "compare the output with the reference; if it is wrong, exit 1");
  app->add_flag("--json", options->json, "print the result as JSON");
  return {app, [options] { return run(*options); }};
}

}  // namespace tilewright::cli
