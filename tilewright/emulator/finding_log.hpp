// The findings of a launch that continues after a finding.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string_view>
#include <tuple>
#include <vector>

#include "tilewright/emulator/checks.hpp"

namespace tilewright::emulator {

/// Keeps one finding of each kind, severity and instruction: that of the cluster with the lowest index, so that the
/// result does not depend on the timing of host threads, and there the first. The functions may be called by several
/// host threads.
class FindingLog {
 public:
  /// Counts a finding. False when it need not be added, as one of the same kind at the same instruction is kept
  /// instead. `code` is an index in Program::code, `cluster` the linear index of the cluster in the grid.
  bool count(FindingKind kind, Severity severity, std::uint32_t code, std::uint64_t cluster);
  /// Keeps a finding. @pre count() returned true for it
  void add(Finding finding, std::uint32_t code, std::uint64_t cluster);
  /// Counts and keeps a finding that ended `what`: the CTA, the cluster or the launch. True when the launch is to end.
  bool add_fatal(Finding finding, std::uint64_t cluster, std::string_view what);

  /// The findings in the order of their clusters. Those of the same kind and source line are one, whose
  /// Finding::count is the number of times that it was found.
  std::vector<Finding> findings() const;

 private:
  using Key = std::tuple<FindingKind, Severity, std::uint32_t>;

  struct Kept {
    Finding finding;
    std::uint64_t cluster = 0;
    std::uint64_t order = 0;  // number of findings that were kept before
    std::uint64_t count = 0;
  };

  mutable std::mutex mutex_;
  std::map<Key, Kept> kept_;
  std::vector<Kept> fatal_;
  std::uint64_t order_ = 0;
};

}  // namespace tilewright::emulator
