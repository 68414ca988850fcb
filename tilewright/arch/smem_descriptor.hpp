// wgmma's matrix descriptor: 64 bits that say where an operand lies in shared memory and how.
#pragma once

#include <cstdint>
#include <string>

#include "tilewright/arch/wgmma_smem.hpp"
#include "tilewright/base/support.hpp"

namespace tilewright::arch {

/// PTX ISA, "Matrix Descriptor Format". Bytes, each a multiple of 16 below 2^18.
struct SmemDescriptor {
  std::int64_t start_address = 0;
  /// No swizzle: from one core matrix (8 rows of 16 bytes) to the next along K. MN-major with a swizzle: from one atom
  /// to the next along MN. K-major with a swizzle: not read, 16 by convention.
  std::int64_t leading_byte_offset = 0;
  /// No swizzle: from one core matrix to the next along MN. MN-major with a swizzle: from eight k to the next eight.
  /// K-major with a swizzle: from eight rows to the next eight.
  std::int64_t stride_byte_offset = 0;
  /// Bits 9:7 of the address at which the swizzle pattern starts; 0 for tiles at a multiple of base_alignment.
  int base_offset = 0;
  SwizzleMode mode = SwizzleMode::none;

  bool operator==(const SmemDescriptor&) const = default;
};

/// The 64 bits: start address at 0, leading at 16, stride at 32 (14 bits each, without their four zeros), base offset
/// at 49 (3 bits), mode at 62 (2 bits).
/// @throws InvalidArgument: a field that its bits cannot hold.
std::uint64_t encode(const SmemDescriptor& descriptor);
/// Refused: bits set that the format reserves.
Result<SmemDescriptor> decode(std::uint64_t bits);

/// The descriptor of one instruction's operand: `operand` maps (mn, k) to offsets in elements and k is 256 bits wide.
/// `address` is where offset 0 lies.
/// Canonical layouts, in chunks of 16 bytes, W = width_bytes / 16:
///   K-major:  ((8,m),2):((W,SBO),1); without swizzle ((8,m),2):((1,SBO),LBO)
///   MN-major: ((W,m),(8,k)):((1,LBO),(W,SBO)); without swizzle (m,(8,k)):(SBO,(1,LBO))
/// Refused, with the rule that failed: any other layout; an address that is not a multiple of base_alignment; offsets
/// that the fields cannot hold.
Result<SmemDescriptor> make_descriptor(Major major, const layout::ComposedLayout& operand, int element_bits,
                                       std::int64_t address = 0);

/// The mode as bits 63:62 of a descriptor: 0 none, 1 128 bytes, 2 64 bytes, 3 32 bytes.
int descriptor_swizzle(SwizzleMode mode);
/// The mode as CUtensorMapSwizzle: 0 none, 1 32 bytes, 2 64 bytes, 3 128 bytes.
int tensor_map_swizzle(SwizzleMode mode);
/// Refused: values that are none of the four modes.
Result<SwizzleMode> mode_of_descriptor_swizzle(int value);
Result<SwizzleMode> mode_of_tensor_map_swizzle(int value);

/// "start 0x0, leading 16, stride 1024, 128-byte swizzle"
std::string to_string(const SmemDescriptor& descriptor);

}  // namespace tilewright::arch
