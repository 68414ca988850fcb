// Joins of vector clocks.
#include "tilewright/emulator/vector_clock.hpp"

#include <algorithm>

#include "tilewright/emulator/instructions/hardware_fma.hpp"

namespace tilewright::emulator {
namespace {

[[gnu::always_inline]] inline void raise_all(std::uint32_t* at, const std::uint32_t* to, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) at[i] = std::max(at[i], to[i]);
}

// SSE2 has no maximum of unsigned numbers.
TILEWRIGHT_TARGET_FMA void raise_with_hardware(std::uint32_t* at, const std::uint32_t* to, std::size_t count) {
  raise_all(at, to, count);
}

}  // namespace

void VectorClock::include(Agent agent, std::size_t count) {
  if (at_.empty()) first_ = agent;
  if (agent < first_) {
    at_.insert(at_.begin(), first_ - agent, 0);
    first_ = agent;
  }
  at_.resize(std::max(at_.size(), agent - first_ + count));
}

void VectorClock::join(const VectorClock& other) {
  if (other.at_.empty()) return;
  include(other.first_, other.at_.size());
  std::uint32_t* const at = at_.data() + (other.first_ - first_);
  if (has_hardware_fma()) {
    raise_with_hardware(at, other.at_.data(), other.at_.size());
  } else {
    raise_all(at, other.at_.data(), other.at_.size());
  }
}

void ReleasedClocks::split() {
  if (is_split_) return;
  for (Clocks& each : narrow_) each = gpu_;
  is_split_ = true;
}

void ReleasedClocks::fence(MemoryScope scope, const Clocks& clocks) {
  ++version_;
  if (scope == MemoryScope::gpu) {
    gpu_ = clocks;
    is_split_ = false;
    return;
  }
  split();
  for (std::size_t i = 0; i <= static_cast<std::size_t>(scope); ++i) narrow_[i] = clocks;
}

void ReleasedClocks::join(const ReleasedClocks& other) {
  ++version_;
  if (other.is_split_) split();
  if (is_split_) {
    narrow_[0].join(other.at(MemoryScope::cta));
    narrow_[1].join(other.at(MemoryScope::cluster));
  }
  gpu_.join(other.gpu_);
}

void ReleasedClocks::clear() {
  ++version_;
  gpu_.clear();
  is_split_ = false;
}

}  // namespace tilewright::emulator
