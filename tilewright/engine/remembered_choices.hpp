// What earlier tunings chose, for one engine: read from disk when it is made, so that ranking never touches the disk.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "tilewright/base/fork.hpp"
#include "tilewright/cache/tuning_records.hpp"
#include "tilewright/op/problem.hpp"
#include "tilewright/registry/kernel.hpp"
#include "tilewright/runtime/device.hpp"

namespace tilewright::engine {

/// "NVIDIA H200, 132 SMs, sm_90a, driver 13": devices of equal identity share their records.
std::string device_identity(const runtime::Device& device);

/// A digest of the kernels' names, in any order, and of the sources of those whose names do not determine them.
/// Refused where an author fails to give one.
Result<std::string> kernel_set(std::span<const registry::KernelPtr> kernels);

/// A kernel that was measured to be the best.
struct TunedChoice {
  std::string kernel;
  double median_us = 0.0;
  std::int64_t measured_s = 0;  // since 1970
};

/// Thread-safe.
class RememberedChoices {
 public:
  /// `root`: of the cache; empty: choices are remembered in this engine only.
  RememberedChoices(const std::string& root, std::string device);

  const cache::TuningRecords& records() const { return records_; }
  const std::string& device() const { return device_; }

  /// The choice among exactly these kernels.
  std::optional<TunedChoice> find(const op::Problem& problem, std::span<const registry::KernelPtr> kernels) const;

  /// Reads again what is on disk. Refused where that cannot be read: then what was known stays.
  Support reload();

  /// What a tuning found: the winner among `kernels`, and the report to keep with it.
  struct Winner {
    std::string kernel;
    double median_us = 0.0;
    std::string report;  // JSON
  };
  /// Keeps the winner here and on disk. Refused where the disk refuses.
  Support remember(const std::string& problem_class, const Winner& winner,
                   std::span<const registry::KernelPtr> kernels);

 private:
  struct Entry {
    std::string kernels;
    TunedChoice choice;
  };
  void insert(const cache::TuningRecord& record);

  cache::TuningRecords records_;
  std::string device_;

  mutable ForkSafeMutex mutex_;  // guards what follows
  std::unordered_map<std::string, std::vector<Entry>> by_problem_;
};

}  // namespace tilewright::engine
