// The options of a tuning, and its report on each candidate.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tilewright/base/support.hpp"
#include "tilewright/registry/promises.hpp"

namespace tilewright::tune {

class Timer;

struct TuneOptions {
  int top = 8;                 // number of candidates, taken from the top of the ranking
  double seconds = 1.0;        // budget of device time for timing, without compiling and checking
  bool checks_only = false;    // check the candidates only; nothing is timed or remembered
  double lock_timeout_s = 60;  // time to wait for another process that tunes on an identical device
  std::optional<registry::Promises> required = {};  // of the candidates; default: engine::Options::required
  std::shared_ptr<Timer> timer = nullptr;           // null: CUDA events, see make_timer()
};

/// The outcome for a candidate.
enum class CandidateStatus {
  winner,
  slower,         // timed, possibly dropped early
  sound,          // passed the check, not timed
  wrong,          // a result exceeds the error bound
  out_of_bounds,  // it wrote outside its outputs
  broke_rule,     // the emulator found an access outside of memory, a race, or another error
  failed,         // it did not compile, load or launch
  skipped,        // it broke a device in an earlier tuning
  broke_device,   // a fatal device error, which ended the tuning
  not_reached,    // the tuning ended before its turn
};

std::string_view name(CandidateStatus status);
/// Whether the kernel computes wrong results, or may do so elsewhere.
bool is_wrong(CandidateStatus status);

struct CandidateReport {
  std::string kernel;
  double estimate_us = 0.0;  // predicted time
  CandidateStatus status = CandidateStatus::not_reached;
  std::string reason;      // one line, may be empty
  double median_us = 0.0;  // valid if samples is not 0
  int samples = 0;
};

struct TuningReport {
  std::string device;                       // device_identity()
  std::string problem;                      // problem_class()
  std::vector<CandidateReport> candidates;  // in the order of the ranking
  std::optional<std::size_t> winner;        // index into candidates
  std::string reference;                    // the kernel that results were compared with; empty: only op::reference
  std::string stopped;                      // the fatal device error that ended the tuning; empty: there was none
  std::vector<std::string> warnings;        // errors in reading and writing tuning records
};

/// A JSON object with keys in a fixed order.
std::string to_json(const TuningReport& report);

}  // namespace tilewright::tune
