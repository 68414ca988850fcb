#include "tilewright/emulator/finding_log.hpp"

#include <algorithm>
#include <utility>

namespace tilewright::emulator {
namespace {

/// Clusters that may end with a finding, such as a deadlock, before the launch ends.
constexpr std::size_t kMaxFatal = 8;

bool at_same_line(const CodeLocation& a, const CodeLocation& b) {
  return a.source.empty() && b.source.empty() ? a.ptx_line == b.ptx_line : a.source == b.source;
}

}  // namespace

bool FindingLog::count(FindingKind kind, Severity severity, std::uint32_t code, std::uint64_t cluster) {
  const std::scoped_lock lock(mutex_);
  const auto [entry, inserted] = kept_.try_emplace(Key{kind, severity, code});
  Kept& kept = entry->second;
  ++kept.count;
  if (!inserted && kept.cluster <= cluster) return false;
  kept.cluster = cluster;
  kept.order = order_++;
  return true;
}

void FindingLog::add(Finding finding, std::uint32_t code, std::uint64_t cluster) {
  const std::scoped_lock lock(mutex_);
  Kept& kept = kept_[Key{finding.kind, finding.severity, code}];
  if (kept.cluster == cluster) kept.finding = std::move(finding);
}

bool FindingLog::add_fatal(Finding finding, std::uint64_t cluster, std::string_view what) {
  const std::scoped_lock lock(mutex_);
  const bool ends = finding.kind == FindingKind::no_progress || fatal_.size() + 1 >= kMaxFatal;
  finding.is_fatal = true;
  finding.notes.push_back(fmt::format("the {} ended here", ends ? "launch" : what));
  fatal_.push_back({std::move(finding), cluster, order_++, 1});
  return ends;
}

std::vector<Finding> FindingLog::findings() const {
  const std::scoped_lock lock(mutex_);
  std::vector<Kept> all = fatal_;
  for (const auto& [key, kept] : kept_) all.push_back(kept);
  std::ranges::sort(all, {}, [](const Kept& kept) { return std::pair(kept.cluster, kept.order); });
  std::vector<Finding> merged;
  for (Kept& kept : all) {
    const auto same = std::ranges::find_if(merged, [&](const Finding& other) {
      return other.kind == kept.finding.kind && other.severity == kept.finding.severity &&
             at_same_line(other.location, kept.finding.location);
    });
    if (same != merged.end()) {
      same->count += kept.count;
      same->is_fatal |= kept.finding.is_fatal;
      continue;
    }
    kept.finding.count = kept.count;
    merged.push_back(std::move(kept.finding));
  }
  return merged;
}

}  // namespace tilewright::emulator
