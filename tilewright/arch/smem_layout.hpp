// Shared memory of Ampere-style kernels: the swizzles that keep fragment loads free of bank conflicts, and the count of
// conflicts that proves it.
#pragma once

#include <cstdint>
#include <span>

#include "tilewright/base/support.hpp"
#include "tilewright/layout/swizzle.hpp"

namespace tilewright::arch {

inline constexpr int kSmemBanks = 32;
inline constexpr int kSmemBankBytes = 4;
/// One row of banks: what shared memory delivers in one clock.
inline constexpr int kSmemLineBytes = kSmemBanks * kSmemBankBytes;

/// How the lanes served together walk a panel, a stack of rows of bytes.
enum class SmemAccess : std::uint8_t {
  /// 16 bytes of each of 8 consecutive rows: ldmatrix with and without .trans, and 4-byte scalar loads of K-major
  /// fragments (row = lane / 4, k = lane % 4).
  rows_of_16_bytes,
  /// 32 bytes of each of 4 consecutive rows: 4-byte scalar loads of MN-major fragments (8 lanes along a row, 4 rows of
  /// k), and 8-byte ones, K-major (4 lanes along a row) or MN-major, of which a half warp is served at a time.
  rows_of_32_bytes,
};

/// The swizzle of byte offsets in a panel for which such an access has no bank conflict: Sw<log2(row) - c, c, 7 - c>,
/// where 2^c is the access's 16 or 32 bytes. E.g. rows of 128 bytes: Sw<3,4,3>, Sw<2,5,2>; of 64: Sw<2,4,3>, Sw<1,5,2>.
/// Chunks of 2^c bytes stay whole, so 16-byte cp.async fills the panel; these are conflict-free too, 8 lanes a line.
/// Panels start at multiples of size(swizzle) bytes, at most 1024; the row at which an access starts is a multiple of
/// its number of rows. Refused: rows that are not a power of two of 16 or 32 to 128 bytes (split wider tiles into
/// panels).
Result<layout::Swizzle> swizzle_for(int row_bytes, SmemAccess access);

/// A panel of rows x row_elements, row by row, swizzled for the access: (row, element) -> offset in elements.
/// Refused: as swizzle_for; element_bytes not 1, 2, 4, 8 or 16.
Result<layout::ComposedLayout> smem_panel(int rows, int row_elements, int element_bytes, SmemAccess access);

/// Clocks that shared memory needs for one access of a warp: lane i reads or writes `access_bytes` (1, 2, 4, 8 or 16)
/// at byte_offsets[i]. Served whole up to 4 bytes, by half warps at 8, by quarter warps at 16; within one such group,
/// as many clocks as the most different words that one bank must deliver. The same word is delivered to all lanes at
/// once. For ldmatrix: 16 bytes, the row addresses. @throws InvalidArgument: more than 32 lanes, misaligned or negative
/// offset.
int smem_wavefronts(std::span<const std::int64_t> byte_offsets, int access_bytes);
/// Wavefronts beyond the one that each group of lanes needs; 0 is conflict-free.
int bank_conflicts(std::span<const std::int64_t> byte_offsets, int access_bytes);

}  // namespace tilewright::arch
