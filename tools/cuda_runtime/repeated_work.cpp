#include "tools/cuda_runtime/repeated_work.hpp"

#include <utility>

namespace tilewright::cuda_runtime {
namespace {

using emulator::ByteRanges;
using emulator::Footprint;

/// Whether `written` has a byte of the footprint.
bool touches(const Footprint& footprint, const ByteRanges& written) {
  return footprint.reads.first_common(written) || footprint.writes.first_common(written) ||
         footprint.updates.first_common(written);
}

}  // namespace

std::uint64_t RepeatedWork::runs(const std::string& key) const {
  const auto found = entries_.find(key);
  return found == entries_.end() ? 0 : found->second.runs;
}

void RepeatedWork::note(const std::string& key, Footprint footprint) {
  footprint.normalise();
  std::erase_if(entries_, [&](const auto& each) {
    return each.first != key &&
           (touches(each.second.footprint, footprint.writes) || touches(each.second.footprint, footprint.updates));
  });
  if (key.empty()) return;
  Entry& entry = entries_[key];
  entry.footprint = std::move(footprint);
  ++entry.runs;
}

}  // namespace tilewright::cuda_runtime
