#include "tilewright/engine/remembered_choices.hpp"

#include <algorithm>
#include <chrono>

#include "tilewright/base/hash.hpp"
#include "tilewright/base/interruption.hpp"
#include "tilewright/cache/key.hpp"
#include "tilewright/runtime/cuda_device.hpp"

namespace tilewright::engine {
namespace {

constexpr int kDriverMajor = 1000;  // cuDriverGetVersion: 1000 * major + 10 * minor

}  // namespace

std::string device_identity(const runtime::Device& device) {
  const runtime::DeviceProperties& properties = device.properties();
  std::string identity = fmt::format("{}, {} SMs, {}", properties.name, properties.sm_count, properties.target.name());
  if (const auto* gpu = dynamic_cast<const runtime::CudaDevice*>(&device)) {
    int version = 0;
    gpu->context()->driver().driver_get_version(&version);
    identity += fmt::format(", driver {}", version / kDriverMajor);
  }
  return identity;
}

// Together with the library's identity, the name of a shipped kernel determines its code.
Result<std::string> kernel_set(std::span<const registry::KernelPtr> kernels) {
  std::vector<std::string> names;
  names.reserve(kernels.size());
  try {
    for (const registry::KernelPtr& kernel : kernels) {
      names.push_back(kernel->name());
      if (!kernel->depends_only_on_key()) names.back() += ' ' + kernel->source_digest().hex();
    }
  } catch (const std::exception& error) {  // user code may throw anything
    if (is_interrupted()) throw;
    return refuse("{} has no source: {}", names.back(), error.what());
  }
  std::ranges::sort(names);
  FieldHasher hasher;
  for (const std::string& each : names) hasher.field("kernel", each);
  return hasher.finish().hex().substr(0, 16);
}

RememberedChoices::RememberedChoices(const std::string& root, std::string device)
    : records_(root), device_(std::move(device)) {}

Support RememberedChoices::reload() {
  const auto records = records_.choices(device_, cache::library_identity());
  if (!records) return records.refusal();
  const std::scoped_lock lock(mutex_);
  for (const cache::TuningRecord& record : *records) insert(record);
  return {};
}

void RememberedChoices::insert(const cache::TuningRecord& record) {
  Entry entry{record.key.kernels, {record.winner, record.median_us, record.measured_s}};
  std::vector<Entry>& entries = by_problem_[record.key.problem];
  const auto same = std::ranges::find(entries, record.key.kernels, &Entry::kernels);
  if (same != entries.end()) {
    *same = std::move(entry);
  } else {
    entries.push_back(std::move(entry));
  }
}

std::optional<TunedChoice> RememberedChoices::find(const op::Problem& problem,
                                                   std::span<const registry::KernelPtr> kernels) const {
  std::string key;
  {
    const std::scoped_lock lock(mutex_);
    if (by_problem_.empty()) return std::nullopt;
    key = op::problem_class(problem);
    if (!by_problem_.contains(key)) return std::nullopt;
  }
  const Result<std::string> wanted = kernel_set(kernels);  // without the lock, since it may run user code
  if (!wanted) return std::nullopt;
  const std::scoped_lock lock(mutex_);
  const std::vector<Entry>& entries = by_problem_.at(key);
  const auto entry = std::ranges::find(entries, *wanted, &Entry::kernels);
  if (entry == entries.end()) return std::nullopt;
  return entry->choice;
}

Support RememberedChoices::remember(const std::string& problem_class, const Winner& winner,
                                    std::span<const registry::KernelPtr> kernels) {
  const Result<std::string> set = kernel_set(kernels);
  if (!set) return set.refusal();
  cache::TuningRecord record;
  record.key = {device_, cache::library_identity(), problem_class, *set};
  record.winner = winner.kernel;
  record.median_us = winner.median_us;
  record.report = winner.report;
  record.measured_s = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  {
    const std::scoped_lock lock(mutex_);
    insert(record);
  }
  return records_.remember(record);
}

}  // namespace tilewright::engine
