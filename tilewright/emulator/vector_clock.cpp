// Joins of vector clocks.
#include "tilewright/emulator/vector_clock.hpp"

#include <algorithm>

namespace tilewright::emulator {

void VectorClock::join(const VectorClock& other) {
  if (at_.size() < other.at_.size()) at_.resize(other.at_.size());
  for (std::size_t i = 0; i < other.at_.size(); ++i) at_[i] = std::max(at_[i], other.at_[i]);
}

}  // namespace tilewright::emulator
