// TMA: the boxes of a tile, and where each comes from and goes to, as layouts.
#pragma once

#include <cstdint>
#include <vector>

#include "tilewright/arch/tensor_map.hpp"
#include "tilewright/base/support.hpp"
#include "tilewright/layout/tiler.hpp"

namespace tilewright::arch {

/// Cache policies of the L2::cache_hint of loads, as createpolicy.fractional makes them for all of an access; the bits
/// are those of CUTLASS's TMA::CacheHintSm90.
constexpr std::uint64_t kEvictNormal = 0x1000000000000000;
constexpr std::uint64_t kEvictFirst = 0x12F0000000000000;

/// A tile to copy between global and shared memory.
struct TmaRequest {
  /// Of the whole tensor, in elements: (m, k), (m, k, batch), ...; modes may be nested.
  layout::Layout global;
  int element_bits = 16;
  std::uint64_t global_address = 0;
  /// The tile in shared memory, one stage of it: a bijection. Coordinates are the tile's.
  layout::ComposedLayout smem;
  /// The tile of the tensor, by mode: (128, 64); modes past it have extent 1 in the tile.
  layout::IntTuple tile;
  /// CTAs of a cluster that read the same tile; each loads a slice of each box for all of them.
  std::int64_t multicast = 1;
};

/// One tile as TMA instructions. Coordinates are those of the tensor map, written with scaled bases: 64@0 is 64 along
/// the innermost mode. A slice is the part of a box that one CTA of a multicast loads: it is what map.box_dim says, and
/// without multicast it is the whole box.
struct TmaCopy {
  TensorMap map;
  /// The tensor's mode, or modes for the last, that each mode of the map is.
  std::vector<std::vector<layout::Basis>> modes;
  /// Coordinate of the tensor -> coordinate of the map. The tile at (m, k) is at coordinate(coordinates, (m, k)).
  layout::Layout coordinates;
  /// box -> coordinate of the map, beyond the tile's; box -> offset in shared memory, in elements, before the swizzle.
  layout::Layout box_coordinate;
  layout::Layout box_offset;
  /// slice -> the same, beyond the box's.
  layout::Layout slice_coordinate;
  layout::Layout slice_offset;
  /// What arrives in shared memory for one tile: what a barrier expects. Elements outside of the tensor count.
  std::int64_t transaction_bytes = 0;

  bool operator==(const TmaCopy&) const = default;
};

/// Instructions that one CTA issues for one tile.
std::int64_t box_count(const TmaCopy& copy);

/// Finds the largest boxes: modes of the tensor that the tile has whole and in the order of shared memory, up to 256
/// each; what is longer is split, and the rest are more boxes.
///
/// The map's modes are those of the boxes, then the tensor's others except for extents of 1 and strides of 0. Where
/// there are more than five, the fifth takes the rest (as CuTe groups them): it has no bounds of its own for each of
/// them, so coordinates along those must lie in the tensor.
///
/// Refused, with the number: a tile of another size than shared memory; shared memory that is no bijection or has a
/// swizzle that TMA lacks; a tile whose contiguous mode is not the tensor's; boxes and slices that are not at multiples
/// of 128 bytes; a multicast that does not divide the box; whatever check(TensorMap) refuses.
Result<TmaCopy> make_tma_copy(const TmaRequest& request);

/// The tensor map for another tensor of the same tree of modes: other extents, strides, address. Boxes stay.
/// Refused: as check; a tensor whose modes of extent 1 or stride 0 are others.
Result<TensorMap> tensor_map_for(const TmaCopy& copy, const layout::Layout& global, std::uint64_t global_address);

/// All coordinates of one instruction, innermost first: of the tile at `tile_at`, its box and its slice.
std::vector<std::int64_t> tma_coordinate(const TmaCopy& copy, const layout::IntTuple& tile_at, std::int64_t box,
                                         std::int64_t slice = 0);
/// Where that instruction writes or reads, in bytes from the start of the tile.
std::int64_t tma_smem_bytes(const TmaCopy& copy, std::int64_t box, std::int64_t slice = 0);

/// The CTAs of a cluster that share the data of one of them: those that differ from it along `mode` only. Bit r is the
/// CTA of rank r. `cluster` maps (m, n, ...) to ranks. CuTe's create_tma_multicast_mask.
/// @throws InvalidArgument: no such mode or rank; more than 16 CTAs.
std::uint16_t multicast_mask(const layout::Layout& cluster, int mode, std::int64_t cta_rank);

}  // namespace tilewright::arch
