// Joins of vector clocks.
#include "tilewright/emulator/vector_clock.hpp"

#include <algorithm>

namespace tilewright::emulator {

void VectorClock::join(const VectorClock& other) {
  if (at_.size() < other.at_.size()) at_.resize(other.at_.size());
  for (std::size_t i = 0; i < other.at_.size(); ++i) at_[i] = std::max(at_[i], other.at_[i]);
}

void ReleasedClocks::split() {
  if (is_split_) return;
  for (Clocks& each : narrow_) each = gpu_;
  is_split_ = true;
}

void ReleasedClocks::fence(MemoryScope scope, const Clocks& clocks) {
  if (scope == MemoryScope::gpu) {
    gpu_ = clocks;
    is_split_ = false;
    return;
  }
  split();
  for (std::size_t i = 0; i <= static_cast<std::size_t>(scope); ++i) narrow_[i] = clocks;
}

void ReleasedClocks::join(const ReleasedClocks& other) {
  if (other.is_split_) split();
  if (is_split_) {
    narrow_[0].join(other.at(MemoryScope::cta));
    narrow_[1].join(other.at(MemoryScope::cluster));
  }
  gpu_.join(other.gpu_);
}

ReleasedClocks ReleasedClocks::of_grid() const {
  ReleasedClocks result;
  result.gpu_.ordered = gpu_.grid;
  result.is_split_ = is_split_;
  for (std::size_t i = 0; is_split_ && i < 2; ++i) result.narrow_[i].ordered = narrow_[i].grid;
  return result;
}

void ReleasedClocks::clear() {
  gpu_.clear();
  is_split_ = false;
}

}  // namespace tilewright::emulator
