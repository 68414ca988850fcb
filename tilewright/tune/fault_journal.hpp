// Records, across processes, the kernels that caused fatal device errors. A trial is recorded before a kernel first
// runs and withdrawn afterwards, so that even a process that crashes or hangs leaves a record.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tilewright/cache/tuning_records.hpp"
#include "tilewright/registry/kernel.hpp"

namespace tilewright::tune {

class FaultJournal {
 public:
  /// `is_alone`: the lock of the records is held, so that a recorded trial must be of a process that died. Otherwise
  /// trials are neither read nor recorded.
  FaultJournal(const cache::TuningRecords& records, std::string device, std::string problem, bool is_alone);

  /// The fault that an earlier process recorded for this kernel's source, if there is one.
  std::optional<std::string> earlier_fault(const registry::Kernel& kernel) const;

  void begin_trial(const registry::Kernel& kernel);
  void end_trial(const registry::Kernel& kernel);
  void note(const registry::Kernel& kernel, const std::string& reason);

  /// Errors in reading and writing the records, without duplicates.
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
