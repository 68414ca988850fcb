#include "tilewright/tune/fault_journal.hpp"

#include <algorithm>
#include <chrono>

#include "tilewright/cache/key.hpp"

namespace tilewright::tune {

FaultJournal::FaultJournal(const cache::TuningRecords& records, std::string device, std::string problem, bool is_alone)
    : records_(records), device_(std::move(device)), problem_(std::move(problem)), is_alone_(is_alone) {
  if (auto faults = records.faults()) {
    earlier_ = *std::move(faults);
  } else {
    warn_unless(faults.refusal());
  }
}

std::optional<std::string> FaultJournal::earlier_fault(const registry::Kernel& kernel) const {
  const std::string source = kernel.source_digest().hex();
  const std::string library = cache::library_identity();
  for (const cache::KernelFault& fault : earlier_) {
    if (fault.device != device_ || fault.library != library || fault.source != source) continue;
    if (!fault.is_trial) return "in an earlier tuning: " + fault.reason;
    if (is_alone_) return "an earlier process ran it and did not return";
  }
  return std::nullopt;
}

cache::KernelFault FaultJournal::fault_of(const registry::Kernel& kernel, std::string reason, bool is_trial) const {
  const std::int64_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  return {
      device_, cache::library_identity(), kernel.source_digest().hex(), kernel.name(), problem_, std::move(reason), now,
      is_trial};
}

void FaultJournal::begin_trial(const registry::Kernel& kernel) {
  if (is_alone_) warn_unless(records_.note(fault_of(kernel, "on trial", true)));
}

void FaultJournal::end_trial(const registry::Kernel& kernel) {
  if (is_alone_) warn_unless(records_.take_back(fault_of(kernel, "", true)));
}

void FaultJournal::note(const registry::Kernel& kernel, const std::string& reason) {
  if (!records_.root().empty()) warn_unless(records_.note(fault_of(kernel, reason, false)));
}

void FaultJournal::warn_unless(const Support& done) {
  if (!done && std::ranges::find(warnings_, done.reason()) == warnings_.end()) warnings_.push_back(done.reason());
}

}  // namespace tilewright::tune
