// Measured choice: what a tuning is told, and what it found out about each kernel.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tilewright/base/support.hpp"

namespace tilewright::tune {

class Timer;

struct TuneOptions {
  int top = 8;                             // candidates: the best-ranked
  double seconds = 1.0;                    // of device time for timing; compiling and checking are not in it
  bool checks_only = false;                // run and check every candidate, time and remember nothing
  double lock_timeout_s = 60;              // for another process that tunes on such a device
  std::shared_ptr<Timer> timer = nullptr;  // what times the calls; null: the GPU's events, see make_timer()
};

/// What became of a candidate.
enum class Fate {
  winner,
  slower,        // timed; perhaps given up early
  sound,         // checked and not timed
  wrong,         // its result differs from the reference by more than the types allow
  strayed,       // it wrote outside its outputs
  failed,        // it does not compile, load or launch
  skipped,       // it broke a device in an earlier tuning
  broke_device,  // a fatal error of the device, which ends the tuning
  not_reached,   // the tuning ended before
};

std::string_view name(Fate fate);

struct CandidateReport {
  std::string kernel;
  double estimate_us = 0.0;  // what the ranking went by
  Fate fate = Fate::not_reached;
  std::string reason;      // one line; empty where there is nothing to add
  double median_us = 0.0;  // where samples is not 0
  int samples = 0;
};

struct TuningReport {
  std::string device;                       // device_identity()
  std::string problem;                      // problem_class()
  std::vector<CandidateReport> candidates;  // in the ranking's order
  std::optional<std::size_t> winner;        // index of a candidate
  std::string reference;                    // the kernel whose result was the measure; empty: the host's oracle alone
  std::string stopped;                      // why it ended early: the fatal error; empty: it did not
  std::vector<std::string> warnings;        // what could not be kept, and why
};

/// A JSON object, keys in a fixed order.
std::string to_json(const TuningReport& report);

}  // namespace tilewright::tune
