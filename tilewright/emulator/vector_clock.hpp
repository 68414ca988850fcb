// Happens-before, as vector clocks over the agents that access shared memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tilewright::emulator {

/// Identifies one source of accesses to the shared memory of a cluster. Agents come in pairs: 2i accesses memory
/// through the generic proxy, 2i + 1 through the async proxy. A pair stands for a warp (its instructions; its wgmma),
/// for an mbarrier (the cp.async and the bulk copies that complete on it), or for the bulk groups of one thread.
using Agent = std::uint32_t;

constexpr bool is_async(Agent agent) { return (agent & 1) != 0; }
constexpr Agent async_of(Agent generic) { return generic | 1; }

/// One clock per agent: accesses of that agent with a clock up to this value happen before what the owner does next. A
/// warp's own clock grows by one at each release. The clock of an asynchronous agent counts the completed phases of its
/// mbarrier, or the retired groups of its warp or thread.
class VectorClock {
 public:
  std::uint32_t operator[](Agent agent) const {
    const Agent index = agent - first_;
    return index < at_.size() ? at_[index] : 0;
  }
  std::uint32_t& operator[](Agent agent) {
    if (agent - first_ >= at_.size()) include(agent, 1);
    return at_[agent - first_];
  }
  void join(const VectorClock& other);
  void raise(Agent agent, std::uint32_t to) {
    std::uint32_t& own = (*this)[agent];
    if (own < to) own = to;
  }
  void clear() { at_.clear(); }
  /// The clocks of the agents from first() on; those of the others are 0.
  std::span<const std::uint32_t> clocks() const { return at_; }
  Agent first() const { return first_; }

 private:
  /// Makes at_ include the agents from `agent` on.
  void include(Agent agent, std::size_t count);

  Agent first_ = 0;  // the warps of a CTA are agents that follow each other, of up to 2048
  std::vector<std::uint32_t> at_;
};

/// The accesses that happen before the next instruction of a warp, or that a barrier releases to the warps that wait.
struct Clocks {
  VectorClock ordered;
  VectorClock proxy_fenced;     // the part of `ordered` that a fence.proxy.async has made visible to the async proxy
  VectorClock completed_reads;  // the part of `ordered` whose reads of shared memory are complete, see UnusedLoads
  VectorClock grid;  // `ordered` for global memory: one agent per warp of a cooperative launch, see GlobalShadow
  VectorClock grid_proxy_fenced;  // the part of `grid` that a fence.proxy.async has made visible to the async proxy
  bool follows_grids = false;     // a griddepcontrol.wait happens before: the grids before this one are complete

  void join(const Clocks& other) {
    ordered.join(other.ordered);
    proxy_fenced.join(other.proxy_fenced);
    completed_reads.join(other.completed_reads);
    grid.join(other.grid);
    grid_proxy_fenced.join(other.grid_proxy_fenced);
    follows_grids |= other.follows_grids;
  }
  bool is_empty() const {
    return ordered.clocks().empty() && proxy_fenced.clocks().empty() && completed_reads.clocks().empty() &&
           grid.clocks().empty() && grid_proxy_fenced.clocks().empty() && !follows_grids;
  }
  void clear() {
    ordered.clear();
    proxy_fenced.clear();
    completed_reads.clear();
    grid.clear();
    grid_proxy_fenced.clear();
    follows_grids = false;
  }
};

/// The threads that a fence or a strong operation orders: those of its CTA, of its cluster, or all of them. There is
/// one GPU, so that .sys is the same as .gpu.
enum class MemoryScope : std::uint8_t { cta, cluster, gpu };

/// The clocks of a warp at its last fences: a relaxed operation that follows publishes, to the threads of each scope,
/// what the last fence of that scope or a wider one covers.
class ReleasedClocks {  // NOLINT(bugprone-reserved-identifier): of the implicit copy of an array
 public:
  void fence(MemoryScope scope, const Clocks& clocks);
  const Clocks& at(MemoryScope scope) const {
    return is_split_ && scope != MemoryScope::gpu ? narrow_[static_cast<std::size_t>(scope)] : gpu_;
  }
  /// A number that has changed whenever at() has.
  std::uint32_t version() const { return version_; }
  bool is_empty() const { return !is_split_ && gpu_.is_empty(); }
  /// Whether some threads get more than others.
  bool is_split() const { return is_split_; }
  void join(const ReleasedClocks& other);
  void clear();

 private:
  void split();

  Clocks gpu_;
  Clocks narrow_[2];  // for cta and cluster; unused unless is_split_
  bool is_split_ = false;
  std::uint32_t version_ = 0;
};

}  // namespace tilewright::emulator
