// tilewright find: the kernels that could compute a problem, best first, and why the others cannot.
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

void print_text(const engine::Explanation& found, const op::Gemm& gemm, const Target& target, bool explain) {
  fmt::print("problem   {}\ntarget    {}\n", to_string(gemm), target.name());
  fmt::print("{} kernels, best first by predicted time{}\n", found.kernels.size(),
             found.tuned ? ", after the one measured to be the best" : "");
  for (std::size_t rank = 0; rank < found.kernels.size(); ++rank) {
    const auto& [kernel, estimate_us] = found.kernels[rank];
    const bool is_tuned = rank == 0 && found.tuned;
    fmt::print("{:>3} {:>10.1f} us  {}{}\n", rank + 1, estimate_us, kernel->name(),
               is_tuned ? fmt::format("  (tuned: {:.1f} us)", found.tuned->median_us) : "");
    fmt::print("                   {}\n", plan::to_string(kernel->metadata().design));
  }
  if (!explain) return;
  fmt::print("{} refused\n", found.refused.size());
  for (const registry::RefusedKernel& refused : found.refused) fmt::print("  {}: {}\n", refused.name, refused.reason);
}

void print_json(const engine::Explanation& found, const op::Gemm& gemm, const Target& target) {
  nlohmann::ordered_json json;
  json["problem"] = to_string(gemm);
  json["target"] = target.name();
  if (found.tuned) json["tuned"] = {{"name", found.tuned->kernel}, {"median_us", found.tuned->median_us}};
  json["kernels"] = nlohmann::ordered_json::array();
  json["refused"] = nlohmann::ordered_json::array();
  for (const auto& [kernel, estimate_us] : found.kernels) {
    json["kernels"].push_back({{"name", kernel->name()},
                               {"estimate_us", estimate_us},
                               {"metadata", nlohmann::ordered_json::parse(registry::to_json(kernel->metadata()))}});
  }
  for (const registry::RefusedKernel& refused : found.refused) {
    json["refused"].push_back({{"name", refused.name}, {"reason", refused.reason}});
  }
  fmt::print("{}\n", json.dump(2));
}

ExitCode run(const FindOptions& options) {
  const Problem problem(options.problem);
  const engine::Engine engine(engine_options(options.kernel));
  const Target target = choose_target(engine, options.kernel);
  engine::Explanation found;
  if (options.kernel.has_design() || !options.kernel.kernel.empty()) {
    const ChosenKernel chosen = choose_kernel(engine, problem.gemm(), options.kernel);
    found.kernels.push_back({chosen.kernel, chosen.kernel->estimate_us(problem.gemm())});
  } else {
    found = engine.explain(problem.gemm(), {}, target);
  }
  options.json ? print_json(found, problem.gemm(), target) : print_text(found, problem.gemm(), target, options.explain);
  return ExitCode::ok;
}

}  // namespace

Command add_find_command(CLI::App& parent) {
  CLI::App* app = parent.add_subcommand("find", "rank the kernels that can compute a problem");
  const auto options = std::make_shared<FindOptions>();
  add_problem_options(*app, options->problem);
  add_kernel_options(*app, options->kernel, true);
  app->add_flag("--explain", options->explain, "also list what was refused, with the reason");
  app->add_flag("--json", options->json, "print kernels and refusals as JSON");
  return {app, [options] { return run(*options); }};
}

}  // namespace tilewright::cli
