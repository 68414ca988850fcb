#include "tools/cuda_runtime/stream_order.hpp"

#include <algorithm>
#include <utility>

#include "tilewright/base/text.hpp"

namespace tilewright::cuda_runtime {
namespace {

using emulator::ByteRanges;
using emulator::Finding;
using emulator::Footprint;

/// Work of a chain that the host never waits for is kept up to this number; races with older work are missed.
constexpr std::size_t kMaxWork = 256;

struct Conflict {
  ByteRanges::Range bytes;
  std::string_view now, before;
};

std::optional<Conflict> find_conflict(const Footprint& now, const Footprint& before) {
  struct Pair {
    const ByteRanges& now;
    const ByteRanges& before;
    std::string_view now_verb, before_verb;
  };
  const Pair pairs[] = {
      {now.writes, before.writes, "write", "write"},
      {now.reads, before.writes, "read", "write"},
      {now.writes, before.reads, "write", "read"},
      {now.writes, before.updates, "write", "atomic access"},
      {now.updates, before.writes, "atomic access", "write"},
      {now.reads, before.updates, "read", "atomic access"},
      {now.updates, before.reads, "atomic access", "read"},
  };
  for (const Pair& pair : pairs) {
    if (const auto bytes = pair.now.first_common(pair.before)) return Conflict{*bytes, pair.now_verb, pair.before_verb};
  }
  return std::nullopt;
}

}  // namespace

std::optional<Finding> find_race(const std::string& now, const Footprint& of_now, const std::string& before,
                                 const Footprint& of_before) {
  const std::optional<Conflict> conflict = find_conflict(of_now, of_before);
  if (!conflict) return std::nullopt;
  Finding found;
  found.kind = emulator::FindingKind::stream_race;
  found.address = conflict->bytes.first;
  found.detail =
      fmt::format("{} of {} bytes at global address {:#x} by {}, not ordered after the {} by {}", conflict->now,
                  conflict->bytes.second - conflict->bytes.first, conflict->bytes.first, now, conflict->before, before);
  return found;
}

void StreamClock::join(const StreamClock& other) {
  for (const auto& [chain, count] : other.counts_) {
    std::uint64_t& own = counts_[chain];
    own = std::max(own, count);
  }
}

void StreamOrder::host_waits(const StreamClock& clock) {
  ++version_;
  host_.join(clock);
  for (auto& [chain, works] : chains_) {
    while (!works.empty() && host_.covers(chain, works.front().count)) works.pop_front();
  }
  std::erase_if(chains_, [](const auto& each) { return each.second.empty(); });
}

void StreamOrder::host_waits_for_all() {
  ++version_;
  chains_.clear();
  for (const auto& [chain, count] : counts_) host_.reach(chain, count);
}

std::optional<Finding> StreamOrder::add(const std::string& name, Chain chain, StreamClock& clock, Footprint footprint) {
  ++version_;
  footprint.normalise();
  std::optional<Finding> found;
  for (const auto& [other, works] : chains_) {
    if (found || other == chain) continue;
    for (auto work = works.rbegin(); work != works.rend() && !clock.covers(other, work->count) && !found; ++work) {
      found = find_race(name, footprint, work->name, work->footprint);
    }
  }
  const std::uint64_t count = ++counts_[chain];
  clock.reach(chain, count);
  if (footprint.reads.empty() && footprint.writes.empty() && footprint.updates.empty()) return found;
  std::deque<Work>& works = chains_[chain];
  const bool may_signal_host = host_memory_.first_common(footprint.updates).has_value();
  works.push_back({name, count, std::move(footprint), may_signal_host});
  if (works.size() > kMaxWork) works.pop_front();
  return found;
}

void StreamOrder::forget(std::uint64_t begin, std::uint64_t end) {
  ++version_;
  for (auto& [chain, works] : chains_) {
    for (Work& work : works) work.footprint.remove(begin, end);
  }
}

void StreamOrder::add_host_memory(std::uint64_t begin, std::uint64_t end) {
  host_memory_.add(begin, end);
  host_memory_.normalise();
}

PendingUse StreamOrder::pending_use(std::uint64_t begin, std::uint64_t end) const {
  PendingUse most;
  for (const auto& [chain, works] : chains_) {
    for (const Work& work : works) {
      if (work.may_signal_host || host_.covers(chain, work.count)) continue;
      for (const bool is_write : {true, false}) {
        for (const auto& [low, high] : (is_write ? work.footprint.writes : work.footprint.reads).ranges()) {
          const std::uint64_t from = std::max(low, begin), to = std::min(high, end);
          const bool is_more = is_write == most.is_write ? from < to && to - from > most.end - most.begin : is_write;
          if (from < to && is_more) most = {from, to, is_write, work.name};
        }
      }
    }
  }
  return most;
}

}  // namespace tilewright::cuda_runtime
