#include "tools/cli/computation.hpp"

#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>

#include "tilewright/cache/store.hpp"
#include "tilewright/compile/artifact.hpp"
#include "tools/cli/standard_streams.hpp"

namespace tilewright::cli {
namespace {

double milliseconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

Origin origin_of(const cache::Counters& counters) {
  if (counters.compiles != 0) return {"compiled", "compiled"};
  if (counters.disk_hits != 0) return {"disk", "found in the cache"};
  return {"none", "not needed"};
}

void print_text(const Outcome& outcome) {
  fmt::print("problem   {}\n", outcome.problem);
  fmt::print("device    {}\n", outcome.device);
  fmt::print("kernel    {}\n          {}\n", outcome.kernel.kernel->name(), origin(outcome.kernel));
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
  if (const std::optional<Rank>& rank = outcome.kernel.rank) {
    json["rank"] = {{"number", rank->number}, {"of", rank->of}, {"predicted_us", nullptr}};
    if (std::isfinite(rank->predicted_us)) json["rank"]["predicted_us"] = rank->predicted_us;
  }
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

}  // namespace

void compute(Outcome& outcome, engine::Engine& engine, const op::Problem& problem) {
  outcome.device = engine.device()->properties().name;
  auto start = std::chrono::steady_clock::now();
  if (!op::is_empty(problem)) engine.compile(outcome.kernel.kernel);
  outcome.binary_ms = milliseconds_since(start);
  outcome.binary = origin_of(engine.cache().counters());

  start = std::chrono::steady_clock::now();
  engine.run(problem, outcome.kernel.kernel);
  outcome.run_ms = milliseconds_since(start);
}

ExitCode report(const Outcome& outcome, bool as_json) {
  as_json ? print_json(outcome) : print_text(outcome);
  if (!outcome.is_wrong()) return ExitCode::ok;
  say("wrong result: " + op::to_string(*outcome.comparison));
  return ExitCode::wrong_result;
}

}  // namespace tilewright::cli
