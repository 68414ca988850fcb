// The 64-bit matrix descriptor of wgmma: address and layout of an operand in shared memory.
#pragma once

#include <cstdint>
#include <string>

#include "tilewright/arch/wgmma_smem.hpp"
#include "tilewright/base/support.hpp"

namespace tilewright::arch {

/// Source: PTX ISA, "Matrix Descriptor Format". Address and offsets are in bytes, multiples of 16 below 2^18.
struct SmemDescriptor {
  std::int64_t start_address = 0;
  /// Distance of adjacent core matrices (8 rows of 16 bytes) along K without a swizzle; of adjacent swizzle atoms along
  /// MN for MN-major with a swizzle. Not used for K-major with a swizzle, 16 by convention.
  std::int64_t leading_byte_offset = 0;
  /// Distance of adjacent core matrices along MN without a swizzle; of adjacent groups of 8 along K for MN-major with a
  /// swizzle; of adjacent groups of 8 rows for K-major with a swizzle.
  std::int64_t stride_byte_offset = 0;
  /// Bits 9:7 of the address where the swizzle pattern begins; 0 if the tile is aligned to base_alignment().
  int base_offset = 0;
  SwizzleMode mode = SwizzleMode::none;

  bool operator==(const SmemDescriptor&) const = default;
};

/// The descriptor's bits: start address at bit 0, leading byte offset at 16, stride byte offset at 32 (14 bits each, in
/// units of 16 bytes), base offset at 49 (3 bits), swizzle mode at 62 (2 bits).
/// @throws InvalidArgument for a value that does not fit its field
std::uint64_t encode(const SmemDescriptor& descriptor);
/// Refused: reserved bits that are not 0.
Result<SmemDescriptor> decode(std::uint64_t bits);

/// The descriptor of the operand of one wgmma: `operand` maps (mn, k) to offsets in elements, where k is 256 bits wide.
/// `address` is the shared-memory address of offset 0.
/// Canonical layouts in units of 16 bytes, where W = width_bytes / 16:
///   K-major:  ((8,m),2):((W,SBO),1); without swizzle ((8,m),2):((1,SBO),LBO)
///   MN-major: ((W,m),(8,k)):((1,LBO),(W,SBO)); without swizzle (m,(8,k)):(SBO,(1,LBO))
/// Refused: other layouts; an address that is not a multiple of base_alignment(); offsets that do not fit their fields.
Result<SmemDescriptor> make_descriptor(Major major, const layout::ComposedLayout& operand, int element_bits,
                                       std::int64_t address = 0);

/// The mode in bits 63:62 of a descriptor: 0 none, 1 128 bytes, 2 64 bytes, 3 32 bytes.
int descriptor_swizzle(SwizzleMode mode);
/// Refused: values that are not one of the four modes.
Result<SwizzleMode> mode_of_descriptor_swizzle(int value);

/// "start 0x0, leading 16, stride 1024, 128-byte swizzle"
std::string to_string(const SmemDescriptor& descriptor);

}  // namespace tilewright::arch
