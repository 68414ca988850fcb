// Kernels that break devices, remembered across processes: a trial is written down before a kernel first runs and taken
// back after, so that even a process that never returns leaves word for the next.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tilewright/cache/tuning_records.hpp"
#include "tilewright/registry/kernel.hpp"

namespace tilewright::tune {

class FaultJournal {
 public:
  /// `is_alone`: the records' lock is held, so that an earlier trial is a process that died; else trials are neither
  /// believed nor written.
  FaultJournal(const cache::TuningRecords& records, std::string device, std::string problem, bool is_alone);

  /// What an earlier process noted of this kernel's text.
  std::optional<std::string> earlier_fault(const registry::Kernel& kernel) const;

  void begin_trial(const registry::Kernel& kernel);
  void end_trial(const registry::Kernel& kernel);
  void note(const registry::Kernel& kernel, const std::string& reason);

  /// What could not be read or kept, each cause once.
  const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  cache::KernelFault fault_of(const registry::Kernel& kernel, std::string reason, bool is_trial) const;
  void warn_unless(const Support& done);

  const cache::TuningRecords& records_;
  std::string device_;
  std::string problem_;
  bool is_alone_;
  std::vector<cache::KernelFault> earlier_;
  std::vector<std::string> warnings_;
};

}  // namespace tilewright::tune
