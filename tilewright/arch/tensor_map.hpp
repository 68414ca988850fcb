// What TMA knows of a tensor: the integers of a tensor map, and the rules they keep.
#pragma once

#include <cstdint>
#include <vector>

#include "tilewright/arch/wgmma_smem.hpp"
#include "tilewright/base/support.hpp"

namespace tilewright::arch {

/// Modes that a tensor map has at most, and the extent of one mode of a box.
inline constexpr int kTensorMapModes = 5;
inline constexpr std::int64_t kBoxExtent = 256;

/// The integers of cuTensorMapEncodeTiled, modes innermost first. The interleave is none, and reads outside of the
/// tensor give zero.
struct TensorMap {
  int element_bits = 16;
  SwizzleMode swizzle = SwizzleMode::none;
  std::vector<std::int64_t> global_dim;
  std::vector<std::int64_t> global_strides;  // bytes; of modes 1 and up
  std::vector<std::int64_t> box_dim;
  std::vector<std::int64_t> element_strides;

  int rank() const { return static_cast<int>(global_dim.size()); }
  bool operator==(const TensorMap&) const = default;
};

/// The rules of cuTensorMapEncodeTiled: 1 to 5 modes; elements of 8, 16, 32 or 64 bits; an address and strides that are
/// multiples of 16 bytes, strides below 2^40; extents of 1 to 2^32; boxes of 1 to 256, the innermost a multiple of 16
/// bytes and no wider than the swizzle; element strides of 1 to 8.
Support check(const TensorMap& map, std::uint64_t global_address = 0);

}  // namespace tilewright::arch
