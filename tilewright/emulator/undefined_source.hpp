// Finds the bytes that a load of several lanes has read although nothing was written there.
#pragma once

#include <cstdint>

#include "tilewright/emulator/access.hpp"
#include "tilewright/emulator/undefined_values.hpp"

namespace tilewright::emulator {

class GlobalShadow;

/// The bytes that a load has read, in lanes of which LanePointers::undefined says that they read undefined bytes.
class UndefinedSource {
 public:
  UndefinedSource(Warp& warp, const LanePointers& from);

  /// Whether some of the bytes from the lane's address + offset on are undefined.
  bool is_undefined(int lane, std::uint64_t offset, std::uint32_t bytes) const;
  /// The undefined bits of the byte at the lane's address + offset.
  std::uint8_t undefined_bits(int lane, std::uint64_t offset) const;
  /// An origin for the values of the load, which reads `bytes` bytes per lane.
  std::uint32_t new_origin(UndefinedValues& values, const Instruction& in, std::uint32_t bytes) const;

 private:
  enum class Memory : std::uint8_t { shared, local, global };
  Memory memory_of(int lane) const;

  Warp& warp_;
  const LanePointers& from_;
};

}  // namespace tilewright::emulator
