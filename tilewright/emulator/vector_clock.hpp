// What has happened before what: vector clocks over the agents that access shared memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tilewright::emulator {

/// Who acts on the shared memory of a cluster. Numbers come in pairs: 2i through the generic proxy, 2i + 1 through the
/// asynchronous one. A pair belongs to a warp (its instructions; its wgmma), to an mbarrier (the cp.async and the bulk
/// copies that complete on it), or to a thread's bulk groups.
using Agent = std::uint32_t;

constexpr bool is_async(Agent agent) { return (agent & 1) != 0; }
constexpr Agent async_of(Agent generic) { return generic | 1; }

/// For each agent, how far its past is known to have happened. A warp's own entry is its present; it grows by one at
/// each release. That of an asynchronous agent is what was waited for: the phases of an mbarrier, the groups of a warp.
class VectorClock {
 public:
  std::uint32_t operator[](Agent agent) const { return agent < at_.size() ? at_[agent] : 0; }
  std::uint32_t& operator[](Agent agent) {
    if (agent >= at_.size()) at_.resize(agent + 1);
    return at_[agent];
  }
  void join(const VectorClock& other);
  void raise(Agent agent, std::uint32_t to) {
    std::uint32_t& own = (*this)[agent];
    if (own < to) own = to;
  }
  void clear() { at_.clear(); }

 private:
  std::vector<std::uint32_t> at_;
};

/// What a warp, or who synchronises with it, knows.
struct Past {
  VectorClock happened;
  VectorClock fenced;  // of that, what a proxy fence has made visible to the asynchronous proxy
  VectorClock grid;    // the same of all warps of a cooperative launch, numbered as GlobalShadow does

  void join(const Past& other) {
    happened.join(other.happened);
    fenced.join(other.fenced);
    grid.join(other.grid);
  }
  void clear() {
    happened.clear();
    fenced.clear();
    grid.clear();
  }
};

}  // namespace tilewright::emulator
