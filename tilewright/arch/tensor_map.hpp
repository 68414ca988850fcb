// The parameters of a TMA tensor map, and their limits.
#pragma once

#include <cstdint>
#include <vector>

#include "tilewright/arch/wgmma_smem.hpp"
#include "tilewright/base/support.hpp"

namespace tilewright::arch {

/// The largest rank of a tensor map, and the largest extent of a mode of a box.
inline constexpr int kTensorMapModes = 5;
inline constexpr std::int64_t kBoxExtent = 256;

/// The parameters of cuTensorMapEncodeTiled, innermost mode first. Interleave is none; out-of-bounds elements read as
/// zero.
struct TensorMap {
  int element_bits = 16;
  SwizzleMode swizzle = SwizzleMode::none;
  std::vector<std::int64_t> global_dim;
  std::vector<std::int64_t> global_strides;  // in bytes, of modes 1 and up
  std::vector<std::int64_t> box_dim;
  std::vector<std::int64_t> element_strides;

  int rank() const { return static_cast<int>(global_dim.size()); }
  bool operator==(const TensorMap&) const = default;
};

/// Checks the limits of cuTensorMapEncodeTiled: 1 to 5 modes; elements of 8, 16, 32 or 64 bits; address and strides
/// multiples of 16 bytes; strides below 2^40 bytes; extents from 1 to 2^32; box extents from 1 to 256, the innermost a
/// multiple of 16 bytes and at most the swizzle width; element strides from 1 to 8.
Support check(const TensorMap& map, std::uint64_t global_address = 0);

}  // namespace tilewright::arch
