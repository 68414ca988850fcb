// The kernels chosen by earlier tunings. They are read from disk once, so that ranking never accesses the disk.
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

/// "NVIDIA H200, 132 SMs, sm_90a, driver 13": devices with equal identity share tuning records.
std::string device_identity(const runtime::Device& device);

/// A digest of a set of kernels, independent of their order: their names and, for user-defined kernels, whose names do
/// not determine their code, the source digests. Refused if a kernel's source() throws.
Result<std::string> kernel_set(std::span<const registry::KernelPtr> kernels);

/// The winner of a tuning.
struct TunedChoice {
  std::string kernel;
  double median_us = 0.0;
  std::int64_t measured_s = 0;  // Unix time in seconds
};

/// Thread-safe.
class RememberedChoices {
 public:
  /// `root` is the cache directory; empty: choices are remembered in memory only.
  RememberedChoices(const std::string& root, std::string device);

  const cache::TuningRecords& records() const { return records_; }
  const std::string& device() const { return device_; }

  /// The choice of a tuning among exactly these kernels, if there is one.
  std::optional<TunedChoice> find(const op::Problem& problem, std::span<const registry::KernelPtr> kernels) const;

  /// Reads the records on disk again. If that fails, the choices stay as they are and the reason is returned.
  Support reload();

  /// The winner of a tuning and its report.
  struct Winner {
    std::string kernel;
    double median_us = 0.0;
    std::string report;  // JSON
  };
  /// Stores the winner among `kernels` in memory and on disk. Refused if it cannot be written to disk.
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

  mutable ForkSafeMutex mutex_;  // guards the members below
  std::unordered_map<std::string, std::vector<Entry>> by_problem_;
};

}  // namespace tilewright::engine
