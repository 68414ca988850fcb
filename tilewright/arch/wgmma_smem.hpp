// Shared memory as wgmma and TMA read it: swizzle modes, the atoms of each mode, and operand tiles made of atoms.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "tilewright/base/support.hpp"
#include "tilewright/layout/swizzle.hpp"

namespace tilewright::arch {

/// How the 16-byte chunks of shared memory are permuted, by bits of the byte address: none; within 32 bytes
/// (bit 4 ^= bit 7), 64 bytes (bits 5:4 ^= bits 8:7) or 128 bytes (bits 6:4 ^= bits 9:7).
enum class SwizzleMode : std::uint8_t { none, bytes_32, bytes_64, bytes_128 };

/// The mode of an operand that is contiguous in memory: K of A and B, or M of A and N of B.
enum class Major : std::uint8_t { k, mn };

/// "no swizzle", "32-byte swizzle", ...
std::string_view name(SwizzleMode mode);
/// "K-major", "MN-major"
std::string_view name(Major major);

/// The contiguous bytes of an atom's row: 16, 32, 64, 128.
int width_bytes(SwizzleMode mode);
/// The period of the pattern, which the address of a tile must be a multiple of: 128, 256, 512, 1024 bytes. It is also
/// the size of an atom, eight rows of width_bytes.
int base_alignment(SwizzleMode mode);

/// The permutation of byte addresses: Sw<0..3,4,3>.
layout::Swizzle byte_swizzle(SwizzleMode mode);
/// The mode of a swizzle of offsets counted in elements. Refused: what is not one of the four modes; elements of other
/// than 1, 2, 4, ... 128 bits.
Result<SwizzleMode> swizzle_mode(const layout::Swizzle& swizzle, int element_bits);

/// Eight rows of width_bytes: (mn, k) -> offset in elements. E.g. K-major 128 bytes of 16-bit elements:
/// Sw<3,3,3> o 0 o (8,64):(64,1); MN-major: Sw<3,3,3> o 0 o (64,8):(1,64).
/// Refused: elements of other than 1, 2, 4, ... 128 bits.
Result<layout::ComposedLayout> smem_atom(Major major, SwizzleMode mode, int element_bits);

/// The widest mode whose rows divide the tile's extent along `major`; its eight rows must divide the other extent.
/// Refused: a tile that not even 16-byte rows divide.
Result<SwizzleMode> widest_swizzle(Major major, int element_bits, std::int64_t mn, std::int64_t k);

/// Which way atoms follow each other in memory.
enum class AtomOrder : std::uint8_t { mn_first, k_first };

/// An operand tile of one stage.
struct SmemTile {
  Major major = Major::k;
  SwizzleMode mode = SwizzleMode::bytes_128;
  int element_bits = 16;
  std::int64_t mn = 0;
  std::int64_t k = 0;
  /// Left out: the order in which a TMA box covers whole columns of atoms, mn_first for K-major and k_first for
  /// MN-major tiles. (An MN-major tile in mn_first order takes one box for each atom.)
  std::optional<AtomOrder> order = std::nullopt;
};

/// The atom repeated over the tile: (mn, k) -> offset in elements, a bijection of the tile. It is
/// tile_to_shape(smem_atom(...), (mn, k), order).
/// Refused: an extent that the atom does not divide; elements as in smem_atom.
Result<layout::ComposedLayout> smem_tile(const SmemTile& tile);

/// `stages` tiles one after the other: (mn, k, stage) -> offset in elements.
/// @pre the tile is a bijection, as smem_tile returns it. @throws InvalidArgument: fewer than one stage.
layout::ComposedLayout smem_stages(const layout::ComposedLayout& tile, std::int64_t stages);

}  // namespace tilewright::arch
