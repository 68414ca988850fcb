// StreamOrder records which work of streams happens before which other work, and finds accesses that nothing orders.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>

#include "tilewright/emulator/checks.hpp"
#include "tilewright/emulator/footprint.hpp"

namespace tilewright::cuda_runtime {

/// A sequence of work of which each happens before the next: a stream, or a path through a graph.
using Chain = std::uint64_t;

/// How much of each chain happens before something: a vector clock over chains.
class StreamClock {
 public:
  void join(const StreamClock& other);
  void reach(Chain chain, std::uint64_t count) { counts_[chain] = count; }
  bool covers(Chain chain, std::uint64_t count) const {
    const auto found = counts_.find(chain);
    return found != counts_.end() && count <= found->second;
  }

 private:
  std::map<Chain, std::uint64_t> counts_;
};

/// A race of two works that may run at the same time; `now` and `before` name them.
std::optional<emulator::Finding> find_race(const std::string& now, const emulator::Footprint& of_now,
                                           const std::string& before, const emulator::Footprint& of_before);

/// How work that the host has not waited for uses memory.
struct PendingUse {
  std::uint64_t begin = 0, end = 0;  // the bytes; none: 0, 0
  bool is_write = false;             // otherwise a read
  std::string name;                  // of the work
};

/// The accesses of work that the host has not waited for. All host threads count as one, so that a wait of one of them
/// counts for all.
class StreamOrder {
 public:
  /// Returns the clock of the work that the host has waited for.
  const StreamClock& host() const { return host_; }
  void host_waits(const StreamClock& clock);
  void host_waits_for_all();
  /// A chain of its own, for the nodes of a graph.
  Chain new_chain() { return next_chain_++; }

  /// Adds work to a chain. `clock` has what happens before it, and reaches the work then. `name` says what it is, for
  /// findings. Returns the first race that it is part of.
  std::optional<emulator::Finding> add(const std::string& name, Chain chain, StreamClock& clock,
                                       emulator::Footprint footprint);
  /// Must be called when memory is allocated, because earlier accesses to its addresses were to other memory.
  void forget(std::uint64_t begin, std::uint64_t end);

  /// Changes with every add(), forget() and wait.
  std::uint64_t version() const { return version_; }
  /// The most bytes of [begin, end) that work which the host has not waited for writes or, if there are none, reads.
  /// Work that updates memory of the host by atomics or volatile writes may tell the host by them that it is done, and
  /// is left out.
  PendingUse pending_use(std::uint64_t begin, std::uint64_t end) const;
  /// Memory that host code can access.
  void add_host_memory(std::uint64_t begin, std::uint64_t end);
  void remove_host_memory(std::uint64_t begin, std::uint64_t end) { host_memory_.remove(begin, end); }

 private:
  struct Work {
    std::string name;
    std::uint64_t count = 0;  // in its chain
    emulator::Footprint footprint;
    bool may_signal_host = false;  // updates memory of the host by atomics or volatile writes
  };

  std::map<Chain, std::deque<Work>> chains_;
  std::map<Chain, std::uint64_t> counts_;
  StreamClock host_;
  emulator::ByteRanges host_memory_;
  std::uint64_t version_ = 1;
  Chain next_chain_ = Chain{1} << 32;  // streams have smaller numbers
};

}  // namespace tilewright::cuda_runtime
