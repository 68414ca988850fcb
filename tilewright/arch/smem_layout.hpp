// Shared memory of sm_80 kernels: swizzles for fragment loads without bank conflicts, and a model that counts bank
// conflicts.
#pragma once

#include <cstdint>
#include <span>

#include "tilewright/base/support.hpp"
#include "tilewright/layout/swizzle.hpp"

namespace tilewright::arch {

inline constexpr int kSmemBanks = 32;
inline constexpr int kSmemBankBytes = 4;
/// The bytes that shared memory delivers per clock.
inline constexpr int kSmemLineBytes = kSmemBanks * kSmemBankBytes;

/// The access pattern in a panel (consecutive rows of bytes) of the lanes that are served together.
enum class SmemAccess : std::uint8_t {
  /// 16 bytes of each of 8 consecutive rows: ldmatrix with and without .trans, and 4-byte scalar loads of K-major
  /// fragments (row = lane / 4, k = lane % 4).
  rows_of_16_bytes,
  /// 32 bytes of each of 4 consecutive rows: 4-byte scalar loads of MN-major fragments (8 lanes along a row, 4 rows of
  /// k), and 8-byte scalar loads, which are served by half warps, of K-major (4 lanes along a row) or MN-major
  /// fragments.
  rows_of_32_bytes,
};

/// The swizzle of byte offsets in a panel for which the access has no bank conflicts: Sw<log2(row) - c, c, 7 - c>,
/// where 2^c is the access's 16 or 32 bytes. For example, rows of 128 bytes: Sw<3,4,3>, Sw<2,5,2>; of 64 bytes:
/// Sw<2,4,3>, Sw<1,5,2>. Chunks of 2^c bytes stay contiguous, so 16-byte cp.async can fill the panel, also without bank
/// conflicts. Panels must start at multiples of size(swizzle) bytes (at most 1024), and an access at a row that is a
/// multiple of its number of rows. Refused: rows that are not a power of two from 16 (or 32) to 128 bytes; wider tiles
/// need several panels.
Result<layout::Swizzle> swizzle_for(int row_bytes, SmemAccess access);

/// The number of wavefronts (clocks) of one shared-memory access of a warp, in which lane i accesses `access_bytes` (1,
/// 2, 4, 8 or 16) at byte_offsets[i]. A warp is served whole up to 4 bytes, by half warps at 8, by quarter warps at 16
/// bytes. Each such group needs as many wavefronts as the largest number of different words in one bank; lanes that
/// read the same word share it. For ldmatrix, pass the row addresses and 16 bytes.
/// @throws InvalidArgument for more than 32 lanes, or a misaligned or negative offset
int smem_wavefronts(std::span<const std::int64_t> byte_offsets, int access_bytes);
/// Wavefronts beyond one for each group of lanes; 0 means no bank conflict.
int bank_conflicts(std::span<const std::int64_t> byte_offsets, int access_bytes);

}  // namespace tilewright::arch
