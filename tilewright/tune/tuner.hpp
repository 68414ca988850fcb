// One tuning: compiles the candidates, checks each on copies of the operands, and times those that are correct.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "tilewright/engine/engine.hpp"
#include "tilewright/tune/fault_journal.hpp"
#include "tilewright/tune/race.hpp"
#include "tilewright/tune/timer.hpp"
#include "tilewright/tune/tuning.hpp"
#include "tilewright/tune/tuning_operands.hpp"

namespace tilewright::tune {

class Tuner {
 public:
  /// `ranked` has all kernels of the problem, best first; the first `top` are the candidates. All references must
  /// outlive this object. @pre op::measurable(problem) @throws OutOfMemory
  Tuner(engine::Engine& engine, const op::Problem& problem, std::span<const engine::RankedKernel> ranked, int top,
        FaultJournal& journal);

  /// Runs every candidate once. A candidate that fails or computes a wrong result is discarded, with the reason in the
  /// report. A fatal device error ends the tuning and is in the report too. @throws ToolchainNotFound
  void check_candidates();

  /// Times the sound candidates and determines the winner. Does nothing if there is none or the tuning has ended.
  /// @throws OutOfMemory, and any error of a call that is not a fatal device error
  void time_candidates(Timer& timer, double seconds);

  const TuningReport& report() const { return report_; }

 private:
  struct Outcome {
    CandidateStatus status = CandidateStatus::sound;
    std::string reason;
  };
  enum class InputCheck { at_the_end, after_each };

  void compile_together() const;
  void find_reference();
  void check_all(InputCheck input_check);
  Outcome judge(const registry::KernelPtr& kernel, InputCheck input_check);
  Outcome run_alone(const registry::KernelPtr& kernel);
  void set_outcome(const registry::KernelPtr& kernel, const Outcome& outcome);
  void take_times(const Race& race, std::span<const std::size_t> contenders);
  void blame(std::span<const std::size_t> suspects, const std::string& what);
  bool has_ended() const { return !report_.stopped.empty(); }

  engine::Engine& engine_;
  FaultJournal& journal_;
  std::span<const engine::RankedKernel> ranked_;
  std::span<const engine::RankedKernel> candidates_;  // index by index with report_.candidates
  TuningReport report_;
  TuningOperands operands_;
  OutputImages expected_;  // outputs of the reference kernel; empty: there is none
};

}  // namespace tilewright::tune
