// TMA copies of a tile: the tensor map, and for each box its tensor coordinate and its offset in shared memory, as
// layouts.
#pragma once

#include <cstdint>
#include <vector>

#include "tilewright/arch/wgmma_smem.hpp"
#include "tilewright/base/dtype.hpp"
#include "tilewright/base/support.hpp"
#include "tilewright/base/tensor_map.hpp"
#include "tilewright/layout/tiler.hpp"

namespace tilewright::arch {

/// Cache policies for .L2::cache_hint, as createpolicy.fractional returns them for fraction 1. Source of the bits:
/// CUTLASS, TMA::CacheHintSm90.
constexpr std::uint64_t kEvictNormal = 0x1000000000000000;
constexpr std::uint64_t kEvictFirst = 0x12F0000000000000;

/// A tile to copy between global and shared memory.
struct TmaRequest {
  /// The layout of the whole tensor in elements: (m, k), (m, k, batch), ...; modes may be nested.
  layout::Layout global;
  DType element = DType::f16;
  std::uint64_t global_address = 0;
  /// The layout of the tile in shared memory, for one stage: a bijection from the coordinates of the tile.
  layout::ComposedLayout smem;
  /// The extents of the tile by mode: (128, 64). Further modes of the tensor have extent 1 in the tile.
  layout::IntTuple tile;
  /// The number of CTAs of a cluster that read the same tile. Each loads a slice of each box and multicasts it to all.
  std::int64_t multicast = 1;
};

/// A tile as TMA instructions. Coordinates are those of the tensor map, in scaled basis elements: 64@0 is 64 along the
/// innermost mode. A slice is the part of a box that one CTA of a multicast loads, with the extents map.box;
/// without multicast it is the whole box.
struct TmaCopy {
  TensorMap map;
  /// The mode of the tensor for each mode of the map; the last mode of the map may stand for several.
  std::vector<std::vector<layout::Basis>> modes;
  /// Coordinate of the tensor -> coordinate of the map. The tile at (m, k) is at coordinate(coordinates, (m, k)).
  layout::Layout coordinates;
  /// box -> coordinate of the map, relative to the tile; box -> offset in shared memory, in elements, before the
  /// swizzle.
  layout::Layout box_coordinate;
  layout::Layout box_offset;
  /// slice -> the same, relative to the box.
  layout::Layout slice_coordinate;
  layout::Layout slice_offset;
  /// Bytes of one tile that the mbarrier expects (expect_tx). Out-of-bounds elements count.
  std::int64_t transaction_bytes = 0;

  bool operator==(const TmaCopy&) const = default;
};

/// The number of instructions that one CTA issues for a tile.
std::int64_t box_count(const TmaCopy& copy);

/// Finds the largest box: the modes of the tensor in the order of shared memory, up to an extent of 256 each. A longer
/// mode is split; it and the remaining modes become several boxes.
///
/// The modes of the map are those of the box, then the other modes of the tensor without those of extent 1 or stride 0.
/// If there are more than five, the fifth stands for the rest, as in CuTe. TMA does not check bounds within such a
/// group, so coordinates along its modes must be in bounds.
///
/// Refused: a tile and a shared-memory layout of different sizes; a shared-memory layout that is not a bijection, or
/// with a swizzle that TMA does not have; a contiguous mode in shared memory that is not contiguous in the tensor; a
/// negative stride; boxes or slices that are not multiples of 128 bytes; a multicast that does not divide the box; what
/// tensor_map_type() and check(TensorMap) refuse.
Result<TmaCopy> make_tma_copy(const TmaRequest& request);

/// The tensor map, with the same boxes, for another tensor with congruent modes: other extents, strides, address.
/// Refused: what check(TensorMap) refuses; a negative stride; a tensor with other modes of extent 1 or stride 0.
Result<TensorMap> tensor_map_for(const TmaCopy& copy, const layout::Layout& global, std::uint64_t global_address);

/// The coordinate of one instruction, innermost mode first, for the tile at `tile_at`, a box and a slice.
std::vector<std::int64_t> tma_coordinate(const TmaCopy& copy, const layout::IntTuple& tile_at, std::int64_t box,
                                         std::int64_t slice = 0);
/// The byte offset of that instruction in the tile in shared memory.
std::int64_t tma_smem_bytes(const TmaCopy& copy, std::int64_t box, std::int64_t slice = 0);

/// The multicast mask of the CTAs that differ from CTA `cta_rank` along `mode` only; bit r stands for the CTA of rank
/// r. `cluster` maps (m, n, ...) to ranks. CuTe's create_tma_multicast_mask.
/// @throws InvalidArgument if there is no such mode or rank, or for more than 16 CTAs
std::uint16_t multicast_mask(const layout::Layout& cluster, int mode, std::int64_t cta_rank);

}  // namespace tilewright::arch
