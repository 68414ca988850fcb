#include "tilewright/tune/tuner.hpp"

#include <algorithm>
#include <set>

#include "tilewright/base/interruption.hpp"
#include "tilewright/base/text.hpp"
#include "tilewright/runtime/driver.hpp"

namespace tilewright::tune {
namespace {

constexpr int kReferenceTries = 3;

bool is_fatal(const Error& error) {
  const auto* driver_error = dynamic_cast<const DriverError*>(&error);
  return driver_error != nullptr && runtime::is_fatal(driver_error->code());
}

// CUDA-core kernels use no tensor cores and are the most likely to be correct.
bool is_simple(const registry::Kernel& kernel) {
  return std::holds_alternative<plan::SimtGemmDesign>(kernel.metadata().design);
}

}  // namespace

Tuner::Tuner(engine::Engine& engine, const op::Problem& problem, std::span<const engine::RankedKernel> ranked, int top,
             FaultJournal& journal)
    : engine_(engine),
      journal_(journal),
      ranked_(ranked),
      candidates_(ranked.first(std::min(ranked.size(), static_cast<std::size_t>(top)))),
      operands_(engine.device(), problem) {
  for (const engine::RankedKernel& candidate : candidates_) {
    CandidateReport& report = report_.candidates.emplace_back();
    report.kernel = candidate.kernel->name();
    report.estimate_us = candidate.estimate_us;
  }
}

void Tuner::check_candidates() {
  compile_together();
  find_reference();
  check_all(InputCheck::at_the_end);
  if (has_ended() || operands_.inputs_are_intact()) return;
  // A candidate wrote to the inputs, so the results of those after it are invalid: check all again, with the inputs
  // compared after each.
  operands_.restore_inputs();
  for (CandidateReport& candidate : report_.candidates) {
    if (candidate.status != CandidateStatus::failed && candidate.status != CandidateStatus::skipped)
      candidate.status = CandidateStatus::not_reached;
  }
  check_all(InputCheck::after_each);
}

// Compiles in parallel and in advance. A candidate that does not compile is reported when it is checked.
void Tuner::compile_together() const {
  std::vector<registry::KernelPtr> kernels;
  for (const engine::RankedKernel& candidate : candidates_) kernels.push_back(candidate.kernel);
  const auto simple =
      std::ranges::find_if(ranked_, [](const engine::RankedKernel& each) { return is_simple(*each.kernel); });
  if (simple != ranked_.end()) kernels.push_back(simple->kernel);
  try {
    engine_.compile(kernels);
  } catch (const ToolchainNotFound&) {
    throw;
  } catch (const Error&) {
    if (is_interrupted()) throw;
  }
}

// The reference is the best-ranked simple kernel whose sampled elements agree with op::reference.
void Tuner::find_reference() {
  int tries = 0;
  for (const engine::RankedKernel& ranked : ranked_) {
    if (!is_simple(*ranked.kernel)) continue;
    if (has_ended() || tries++ == kReferenceTries) return;
    const Outcome outcome = judge(ranked.kernel, InputCheck::after_each);
    set_outcome(ranked.kernel, outcome);
    if (outcome.status != CandidateStatus::sound) continue;
    expected_ = operands_.output_images();
    report_.reference = ranked.kernel->name();
    return;
  }
}

void Tuner::check_all(InputCheck input_check) {
  for (std::size_t i = 0; i < candidates_.size() && !has_ended(); ++i) {
    if (report_.candidates[i].status != CandidateStatus::not_reached) continue;
    const Outcome outcome = judge(candidates_[i].kernel, input_check);
    set_outcome(candidates_[i].kernel, outcome);
    // If op::reference cannot compute the problem, the other kernels are compared with the first one.
    if (outcome.status == CandidateStatus::sound && expected_.empty() && !op::has_reference(operands_.on_host()))
      expected_ = operands_.output_images();
  }
}

Tuner::Outcome Tuner::judge(const registry::KernelPtr& kernel, InputCheck input_check) {
  check_interruption();
  if (const auto fault = journal_.earlier_fault(*kernel)) return {CandidateStatus::skipped, *fault};
  if (Outcome outcome = run_alone(kernel); outcome.status != CandidateStatus::sound) return outcome;
  if (std::string stray = operands_.find_out_of_bounds_write(); !stray.empty())
    return {CandidateStatus::out_of_bounds, std::move(stray)};
  if (input_check == InputCheck::after_each && !operands_.inputs_are_intact()) {
    operands_.restore_inputs();
    return {CandidateStatus::out_of_bounds, "it wrote to its inputs"};
  }
  if (std::string wrong = operands_.find_wrong_element(expected_); !wrong.empty()) {
    return {CandidateStatus::wrong, std::move(wrong)};
  }
  return {};
}

Tuner::Outcome Tuner::run_alone(const registry::KernelPtr& kernel) {
  journal_.begin_trial(*kernel);
  try {
    operands_.poison_outputs();
    const engine::PreparedCall prepared = engine_.prepare(operands_.on_device(), kernel, nullptr, registry::Promises());
    prepared.run();
    operands_.fetch_outputs();
  } catch (const ToolchainNotFound&) {
    journal_.end_trial(*kernel);
    throw;
  } catch (const Error& error) {
    const std::string reason = first_line(error.what());
    if (is_fatal(error)) {
      journal_.note(*kernel, reason);
      report_.stopped = fmt::format("{}: {}", kernel->name(), reason);
      return {CandidateStatus::broke_device, reason};
    }
    journal_.end_trial(*kernel);
    if (is_interrupted()) throw;
    const bool broke_rule = dynamic_cast<const EmulationError*>(&error) != nullptr;
    return {broke_rule ? CandidateStatus::broke_rule : CandidateStatus::failed, reason};
  } catch (...) {  // an exception of user code, in any language, is not a device fault
    journal_.end_trial(*kernel);
    throw;
  }
  journal_.end_trial(*kernel);
  return {};
}

void Tuner::set_outcome(const registry::KernelPtr& kernel, const Outcome& outcome) {
  for (std::size_t i = 0; i < candidates_.size(); ++i) {
    if (candidates_[i].kernel != kernel) continue;
    report_.candidates[i].status = outcome.status;
    report_.candidates[i].reason = outcome.reason;
  }
}

void Tuner::time_candidates(Timer& timer, double seconds) {
  std::vector<std::size_t> contenders;
  for (std::size_t i = 0; i < candidates_.size(); ++i) {
    if (report_.candidates[i].status == CandidateStatus::sound) contenders.push_back(i);
  }
  if (has_ended() || contenders.empty()) return;

  RotatingOperands sets(engine_.device(), operands_);
  std::set<std::size_t> running;  // candidates in the current batch of calls
  const auto time = [&](std::span<const std::size_t> order) {
    std::vector<engine::PreparedCall> calls;
    running.clear();
    for (const std::size_t contender : order) {
      calls.push_back(
          engine_.prepare(sets.next(), candidates_[contenders[contender]].kernel, nullptr, registry::Promises()));
      running.insert(contenders[contender]);
    }
    return timer.time(calls);
  };
  Race race(contenders.size(), seconds);
  try {
    const std::size_t first = race.run(time);
    take_times(race, contenders);
    report_.winner = contenders[first];
    report_.candidates[contenders[first]].status = CandidateStatus::winner;
  } catch (const Error& error) {
    if (!is_fatal(error)) throw;
    take_times(race, contenders);
    blame(std::vector<std::size_t>(running.begin(), running.end()), first_line(error.what()));
  }
}

void Tuner::take_times(const Race& race, std::span<const std::size_t> contenders) {
  int max_samples = 0;
  for (std::size_t i = 0; i < contenders.size(); ++i) max_samples = std::max(max_samples, race.samples(i));
  for (std::size_t i = 0; i < contenders.size(); ++i) {
    if (race.samples(i) == 0) continue;
    CandidateReport& report = report_.candidates[contenders[i]];
    report.status = CandidateStatus::slower;
    report.samples = race.samples(i);
    report.median_us = race.median_us(i);
    if (report.samples < max_samples) report.reason = fmt::format("dropped after {} samples", report.samples);
  }
}

// The device does not report which kernel of the batch caused the error, so all of them are recorded.
void Tuner::blame(std::span<const std::size_t> suspects, const std::string& what) {
  const std::string reason =
      suspects.size() == 1
          ? what
          : fmt::format("{} (caused by this or one of {} kernels timed with it)", what, suspects.size() - 1);
  for (const std::size_t suspect : suspects) {
    report_.candidates[suspect].status = CandidateStatus::broke_device;
    report_.candidates[suspect].reason = reason;
    journal_.note(*candidates_[suspect].kernel, reason);
    report_.stopped += (report_.stopped.empty() ? "" : " or ") + report_.candidates[suspect].kernel;
  }
  report_.stopped += ": " + what;
}

}  // namespace tilewright::tune
