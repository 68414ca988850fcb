// tilewright run: computes a problem that a JSON file describes, or ranks or verifies the kernels for it.
#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "tilewright/engine/engine.hpp"
#include "tilewright/kernels/list.hpp"
#include "tilewright/tune/tune.hpp"
#include "tools/cli/commands.hpp"
#include "tools/cli/computation.hpp"
#include "tools/cli/kernel_choice.hpp"
#include "tools/cli/number.hpp"
#include "tools/cli/problem_file.hpp"
#include "tools/cli/problem_run.hpp"
#include "tools/cli/standard_streams.hpp"

namespace tilewright::cli {
namespace {

ExitCode find(const engine::Engine& engine, const ProblemFile& problem, const ProblemRunOptions& options) {
  const engine::Explanation found = engine.explain(problem.problem(), {}, choose_target(engine, options.kernel));
  if (options.json) {
    nlohmann::ordered_json json{{"problem", problem.description()}};
    json.update(nlohmann::ordered_json::parse(engine::to_json(found)));
    fmt::print("{}\n", json.dump(2));
  } else {
    fmt::print("problem   {}\ntarget    {}\n{}", problem.description(), found.target.name(),
               engine::to_text(found, true));
  }
  return ExitCode::ok;
}

ExitCode verify_candidates(engine::Engine& engine, const ProblemFile& problem, bool json) {
  const tune::TuningReport report = tune::tune(engine, problem.problem(), {.checks_only = true});
  if (json) fmt::print("{}\n", nlohmann::ordered_json::parse(tune::to_json(report)).dump(2));
  bool is_any_sound = false;
  for (const tune::CandidateReport& candidate : report.candidates) {
    if (!json) {
      fmt::print("{:<12} {}{}{}\n", tune::name(candidate.status), candidate.kernel,
                 candidate.reason.empty() ? "" : ": ", candidate.reason);
    }
    if (tune::is_wrong(candidate.status)) {
      say(fmt::format("wrong result: {}: {}", candidate.kernel, candidate.reason));
      return ExitCode::wrong_result;
    }
    is_any_sound |= candidate.status == tune::CandidateStatus::sound;
  }
  if (is_any_sound) return ExitCode::ok;
  say("no kernel could be run");
  return ExitCode::environment;
}

ExitCode compute(engine::Engine& engine, ProblemFile& problem, const ProblemRunOptions& options) {
  if (options.verify && !op::has_reference(problem.problem())) {
    throw InvalidArgument(
        fmt::format("the operation {} has no reference to verify against", op::operation_name(problem.problem())));
  }
  Outcome outcome;
  outcome.problem = problem.description();
  outcome.kernel = choose_kernel(engine, problem.problem(), options.kernel);
  problem.materialize(options.seed);
  compute(outcome, engine, problem.problem());
  if (options.verify) outcome.comparison = op::compare(problem.problem(), options.seed);
  return report(outcome, options.json);
}

}  // namespace

void add_run_options(CLI::App& command, ProblemRunOptions& options) {
  add_kernel_options(command, options.kernel, true);
  add_integer<std::uint64_t>(command, "--seed", options.seed, {}, "seed of the random operands (default 0)");
  command.add_flag(
      "--find", options.find,
      "do not compute: rank the kernels, and list those that cannot compute the problem, each with the reason");
  command.add_flag("--verify-candidates", options.verify_candidates,
                   "run the best-ranked kernels, each on its own memory, and verify their results");
  command.add_flag("--verify", options.verify,
                   "compare the outputs of the chosen kernel with the reference; if they are wrong, exit 1");
  command.add_flag("--json", options.json, "print the result as JSON");
}

ExitCode run_problem(ProblemFile& problem, const ProblemRunOptions& options,
                     const std::shared_ptr<registry::Registry>& registry) {
  if (options.find + options.verify_candidates + options.verify > 1)
    throw InvalidArgument("give only one of --find, --verify-candidates and --verify");
  engine::Engine engine(engine_options(options.kernel), registry);
  if (options.find) return find(engine, problem, options);
  if (options.verify_candidates) return verify_candidates(engine, problem, options.json);
  return compute(engine, problem, options);
}

Command add_run_command(CLI::App& parent, std::shared_ptr<registry::Registry> registry) {
  CLI::App* app =
      parent.add_subcommand("run", "compute a problem that a JSON file describes: a GEMM or another operation");
  const auto file = std::make_shared<std::string>();
  const auto options = std::make_shared<ProblemRunOptions>();
  app->add_option("--problem", *file,
                  "JSON file with the operation, extents and types; docs/operations.md has the format")
      ->type_name("FILE")
      ->required();
  add_run_options(*app, *options);
  if (registry == nullptr) registry = kernels::make_registry();
  return {app, [file, options, registry] {
            ProblemFile problem(*file, *registry);
            return run_problem(problem, *options, registry);
          }};
}

}  // namespace tilewright::cli
