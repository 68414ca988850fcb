// Shared-memory layouts for wgmma and TMA: swizzle modes, their atoms, and operand tiles that consist of atoms.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "tilewright/base/support.hpp"
#include "tilewright/layout/swizzle.hpp"

namespace tilewright::arch {

/// The permutation of 16-byte chunks, in bits of the byte address: none; within 32 bytes (bit 4 ^= bit 7), 64 bytes
/// (bits 5:4 ^= bits 8:7) or 128 bytes (bits 6:4 ^= bits 9:7).
enum class SwizzleMode : std::uint8_t { none, bytes_32, bytes_64, bytes_128 };

/// The contiguous mode of an operand: K, or M (for A) and N (for B).
enum class Major : std::uint8_t { k, mn };

/// "no swizzle", "32-byte swizzle", ...
std::string_view name(SwizzleMode mode);
/// "K-major", "MN-major"
std::string_view name(Major major);

/// The bytes of a row of the atom: 16, 32, 64, 128.
int width_bytes(SwizzleMode mode);
/// The required alignment of a tile in bytes: 128, 256, 512, 1024. It is the period of the swizzle pattern and the size
/// of an atom, eight rows of width_bytes().
int base_alignment(SwizzleMode mode);

/// The permutation of byte addresses: Sw<0..3,4,3>.
layout::Swizzle byte_swizzle(SwizzleMode mode);
/// The mode of a swizzle of offsets in elements. Refused: a swizzle that is not one of the four modes; element_bits
/// other than 1, 2, 4, ... 128.
Result<SwizzleMode> swizzle_mode(const layout::Swizzle& swizzle, int element_bits);

/// The swizzle atom, eight rows of width_bytes(): (mn, k) -> offset in elements. For 128-byte rows of 16-bit elements,
/// K-major: Sw<3,3,3> o 0 o (8,64):(64,1); MN-major: Sw<3,3,3> o 0 o (64,8):(1,64). Refused: element_bits other than 1,
/// 2, 4, ... 128.
Result<layout::ComposedLayout> smem_atom(Major major, SwizzleMode mode, int element_bits);

/// The widest mode, of at most `max_row_bytes`, whose rows divide the extent of the tile along `major`. Eight rows must
/// divide the other extent. Refused: a tile that 16-byte rows do not divide.
Result<SwizzleMode> widest_swizzle(Major major, int element_bits, std::int64_t mn, std::int64_t k,
                                   int max_row_bytes = 128);

/// The order of atoms in memory.
enum class AtomOrder : std::uint8_t { mn_first, k_first };

/// The parameters of an operand tile of one stage.
struct SmemTile {
  Major major = Major::k;
  SwizzleMode mode = SwizzleMode::bytes_128;
  int element_bits = 16;
  std::int64_t mn = 0;
  std::int64_t k = 0;
  /// Default: the order in which one TMA box covers a whole column of atoms, mn_first for K-major and k_first for
  /// MN-major tiles. (An MN-major tile in mn_first order needs one box for each atom.)
  std::optional<AtomOrder> order = std::nullopt;
};

/// tile_to_shape(smem_atom(...), (mn, k), order): (mn, k) -> offset in elements, a bijection.
/// Refused: an extent that the atom does not divide; what smem_atom refuses.
Result<layout::ComposedLayout> smem_tile(const SmemTile& tile);

/// `stages` consecutive tiles: (mn, k, stage) -> offset in elements.
/// @pre the tile is a bijection, as smem_tile() returns it. @throws InvalidArgument for fewer than one stage
layout::ComposedLayout smem_stages(const layout::ComposedLayout& tile, std::int64_t stages);

}  // namespace tilewright::arch
