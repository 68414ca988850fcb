#include "tilewright/tune/tune.hpp"

#include <spdlog/spdlog.h>

#include <utility>
#include <vector>

#include "tilewright/base/interruption.hpp"
#include "tilewright/tune/fault_journal.hpp"
#include "tilewright/tune/timer.hpp"
#include "tilewright/tune/tuner.hpp"

namespace tilewright::tune {
namespace {

constexpr double kMaxSeconds = 3600.0;

void check(const TuneOptions& options) {
  if (options.top < 1) throw InvalidArgument(fmt::format("tuning needs at least 1 candidate, got {}", options.top));
  if (!(options.seconds > 0.0 && options.seconds <= kMaxSeconds)) {
    throw InvalidArgument(
        fmt::format("the tuning time must be above 0 and at most {} seconds, got {}", kMaxSeconds, options.seconds));
  }
}

Support remember(engine::Engine& engine, const TuningReport& report, const std::vector<engine::RankedKernel>& ranked) {
  std::vector<registry::KernelPtr> kernels;
  for (const engine::RankedKernel& each : ranked) kernels.push_back(each.kernel);
  const CandidateReport& winner = report.candidates[*report.winner];
  return engine.choices().remember(report.problem, {winner.kernel, winner.median_us, to_json(report)}, kernels);
}

/// `is_alone` says whether the lock of the records is held, or why it is not. @pre the engine's tuning lock is held
TuningReport tune_locked(engine::Engine& engine, const op::Problem& problem, const TuneOptions& options,
                         const Support& is_alone) {
  check(options);
  op::validate(problem).or_throw();
  const op::Problem measured = op::measurable(problem).value_or_throw();
  std::shared_ptr<Timer> timer = options.timer;
  if (!options.checks_only && !timer) {
    Result<std::shared_ptr<Timer>> made = make_timer(engine.device());
    if (!made) throw Error(made.reason());
    timer = *std::move(made);
  }
  const std::vector<engine::RankedKernel> ranked = engine.rank_by_estimate(measured, options.required);
  const engine::RememberedChoices& choices = engine.choices();
  const std::string problem_class = op::problem_class(measured);
  FaultJournal journal(choices.records(), choices.device(), problem_class, bool(is_alone));
  Tuner tuner(engine, measured, ranked, options.top, journal);
  tuner.check_candidates();
  if (!options.checks_only) tuner.time_candidates(*timer, options.seconds);

  TuningReport report = tuner.report();
  report.device = choices.device();
  report.problem = problem_class;
  report.warnings = journal.warnings();
  if (!is_alone && !choices.records().root().empty())
    report.warnings.push_back("another process may be tuning: " + is_alone.reason());
  if (!report.winner) return report;
  if (const Support kept = remember(engine, report, ranked); !kept) report.warnings.push_back(kept.reason());
  engine.forget_rankings();
  return report;
}

void tune_if_new(engine::Engine& engine, const op::Problem& problem, const TuneOptions& options) {
  if (!op::measurable(problem) || engine.explain(problem).tuned) return;
  engine::RememberedChoices& choices = engine.choices();
  const auto tuning = engine.lock_tuning();
  const auto lock = choices.records().lock(choices.device(), options.lock_timeout_s);
  static_cast<void>(choices.reload());  // another process may have tuned this problem while it held the lock
  engine.forget_rankings();
  if (engine.explain(problem).tuned) return;
  const TuningReport report = tune_locked(engine, problem, options, lock ? Support() : Support(lock.refusal()));
  if (!report.stopped.empty()) spdlog::error("tuning broke the device: {}", report.stopped);
  for (const std::string& warning : report.warnings) spdlog::warn("tuning: {}", warning);
}

}  // namespace

TuningReport tune(engine::Engine& engine, const op::Problem& problem, const TuneOptions& options) {
  const auto tuning = engine.lock_tuning();
  const engine::RememberedChoices& choices = engine.choices();
  const auto lock = choices.records().lock(choices.device(), options.lock_timeout_s);
  return tune_locked(engine, problem, options, lock ? Support() : Support(lock.refusal()));
}

// Tuning is optional, so its errors must not make the call fail.
std::function<void(engine::Engine&, const op::Problem&)> on_first_use(const TuneOptions& options) {
  return [options](engine::Engine& engine, const op::Problem& problem) {
    try {
      tune_if_new(engine, problem, options);
    } catch (const std::exception& error) {  // user code may throw anything
      if (is_interrupted()) throw;
      spdlog::warn("not tuned: {}", error.what());
    }
  };
}

engine::Options options_from_environment() {
  engine::Options options = engine::Options::from_environment();
  options.before_first_use = on_first_use();
  return options;
}

}  // namespace tilewright::tune
