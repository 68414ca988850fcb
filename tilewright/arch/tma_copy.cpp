// TMA plans. Shared memory is walked in order and followed into the tensor: composition(tile of coordinates,
// right_inverse(shared memory)) says which coordinate each element of shared memory comes from, and its first modes are
// the box. CuTe's construct_tma_gbasis does the same; it does not split modes of more than 256.
#include "tilewright/arch/tma_copy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "tilewright/base/error.hpp"
#include "tilewright/layout/algebra.hpp"

namespace tilewright::arch {
namespace {

using layout::Basis;
using layout::IntTuple;
using layout::Layout;

constexpr std::int64_t kSharedAlignment = 128;

/// extent:value@basis
struct Leaf {
  std::int64_t extent = 1;
  std::int64_t value = 0;
  Basis basis;
};

/// @pre no mode is nested
std::vector<Leaf> flat_leaves(const Layout& layout) {
  std::vector<Leaf> result;
  for (int i = 0; i < layout.rank(); ++i) {
    const IntTuple& stride = layout.stride()[i];
    result.push_back({layout.shape()[i].value(), stride.basis_value(), stride.basis()});
  }
  return result;
}

/// Modes of the tensor map that the tile has, and the places to put boxes of them.
Layout from_leaves(const std::vector<Leaf>& leaves) {
  if (leaves.empty()) return {};
  std::vector<IntTuple> shape;
  std::vector<IntTuple> stride;
  for (const Leaf& leaf : leaves) {
    shape.emplace_back(leaf.extent);
    stride.push_back(IntTuple::scaled_basis(leaf.value, leaf.basis));
  }
  return {IntTuple::tuple(std::move(shape)), IntTuple::tuple(std::move(stride))};
}

/// The largest divisor of n that is at most `limit`.
std::int64_t largest_divisor(std::int64_t n, std::int64_t limit) {
  std::int64_t divisor = std::min(n, limit);
  while (n % divisor != 0) --divisor;
  return divisor;
}

/// A mode of the tensor map: extent and stride, in elements.
struct MapMode {
  std::int64_t extent = 1;
  std::int64_t stride = 0;
};

/// Several modes of the tensor as one: at the common divisor of their strides, and as long as it takes to reach the
/// last of their elements.
MapMode grouped(const std::vector<Leaf>& modes) {
  MapMode result;
  for (const Leaf& mode : modes) result.stride = std::gcd(result.stride, mode.value);
  if (result.stride == 0) return {modes.front().extent, 0};
  for (const Leaf& mode : modes) result.extent += (mode.extent - 1) * (mode.value / result.stride);
  return result;
}

void collect_leaves(const IntTuple& shape, const IntTuple& stride, const Basis& path, std::vector<Leaf>& leaves) {
  if (shape.is_leaf()) {
    leaves.push_back({shape.value(), stride.value(), path});
    return;
  }
  for (int i = 0; i < shape.rank(); ++i) collect_leaves(shape[i], stride[i], path.child(i), leaves);
}

/// The tensor's leaves, each with the basis of its coordinate and its stride as the value.
std::vector<Leaf> tensor_leaves(const Layout& global) {
  std::vector<Leaf> result;
  collect_leaves(global.shape(), global.stride(), {}, result);
  return result;
}

std::optional<std::size_t> find(const std::vector<Leaf>& leaves, const Basis& basis) {
  const auto found = std::find_if(leaves.begin(), leaves.end(), [&](const Leaf& leaf) { return leaf.basis == basis; });
  if (found == leaves.end()) return std::nullopt;
  return static_cast<std::size_t>(found - leaves.begin());
}

/// Finds boxes, then the tensor map, then the layouts of coordinates.
class Planner {
 public:
  explicit Planner(const TmaRequest& request) : request_(request) {}

  Result<TmaCopy> plan() {
    Support support = follow_shared_memory();
    if (!support) return Refusal{support.reason()};
    take_boxes();
    support = choose_modes();
    if (!support) return Refusal{support.reason()};
    fill_layouts();
    support = slice_boxes();
    if (support) support = check_shared_alignment();
    if (support) support = check(copy_.map, request_.global_address);
    if (!support) return Refusal{support.reason()};
    copy_.transaction_bytes = layout::size(request_.smem.layout) * request_.element_bits / 8;
    return std::move(copy_);
  }

 private:
  Support follow_shared_memory() {
    const Result<SwizzleMode> mode = swizzle_mode(request_.smem.swizzle, request_.element_bits);
    if (!mode) return mode.refusal();
    if (request_.smem.offset != 0)
      return refuse("a tile starts at offset 0 of its swizzle, got {}", request_.smem.offset);
    if (request_.global.shape().is_leaf())
      return refuse("the tensor has a tuple of modes, got {}", layout::to_string(request_.global));
    copy_.map.element_bits = request_.element_bits;
    copy_.map.swizzle = *mode;
    tensor_ = tensor_leaves(request_.global);
    try {
      const Layout tile = tile_coordinates();
      const Layout inverse = layout::right_inverse(request_.smem.layout);
      const std::int64_t size = layout::size(request_.smem.layout);
      if (layout::size(tile) != size)
        return refuse("the tile {} has {} elements and shared memory {}", layout::to_string(request_.tile),
                      layout::size(tile), size);
      if (layout::size(inverse) != size)
        return refuse("shared memory {} is no bijection onto its {} elements", layout::to_string(request_.smem.layout),
                      size);
      places_ = flat_leaves(layout::coalesce(layout::composition(tile, inverse)));
    } catch (const InvalidArgument& error) {
      return refuse("the tile {} of {} does not follow shared memory {}: {}", layout::to_string(request_.tile),
                    layout::to_string(request_.global), layout::to_string(request_.smem.layout), error.what());
    }
    if (places_.front().value != 1)
      return refuse("shared memory starts along {}@, which is no whole mode of the tensor {}",
                    layout::to_string(IntTuple::scaled_basis(places_.front().value, places_.front().basis)),
                    layout::to_string(request_.global));
    return {};
  }

  /// The tensor's coordinates in the tile: composition of its identity layout and the tile.
  Layout tile_coordinates() const {
    const IntTuple& shape = request_.global.shape();
    if (request_.tile.is_leaf() || request_.tile.rank() > shape.rank())
      throw InvalidArgument(fmt::format("the tile has 1 to {} modes", shape.rank()));
    std::vector<Layout> modes;
    for (int i = 0; i < request_.tile.rank(); ++i) {
      const IntTuple& extent = request_.tile[i];
      const bool plain = shape[i].is_leaf() && extent.is_leaf();
      modes.push_back(
          plain ? Layout(extent, IntTuple::scaled_basis(1, Basis{i}))
                : layout::composition(layout::make_identity_layout(shape).mode(i), layout::make_tiler(extent)));
    }
    return layout::concatenate(modes);
  }

  /// Splits places_ into the box and the places of boxes.
  void take_boxes() {
    bool open = true;
    for (const Leaf& leaf : places_) {
      open = open && leaf.value == 1 && !find(box_, leaf.basis) && static_cast<int>(box_.size()) < kTensorMapModes;
      if (!open) {
        boxes_.push_back(leaf);
        continue;
      }
      const std::int64_t taken = largest_divisor(leaf.extent, kBoxExtent);
      box_.push_back({taken, 1, leaf.basis});
      if (taken == leaf.extent) continue;
      boxes_.push_back({leaf.extent / taken, taken, leaf.basis});
      open = false;
    }
  }

  Support choose_modes() {
    std::vector<Leaf> chosen;
    for (const Leaf& leaf : box_) chosen.push_back(tensor_[*find(tensor_, leaf.basis)]);
    for (const Leaf& leaf : tensor_) {
      const bool matters = (leaf.extent != 1 && leaf.value != 0) || find(boxes_, leaf.basis);
      if (matters && !find(chosen, leaf.basis)) chosen.push_back(leaf);
    }
    if (chosen.front().value != 1)
      return refuse("the mode that is contiguous in shared memory has stride 1 in the tensor, got {} in {}",
                    chosen.front().value, layout::to_string(request_.global));
    if (static_cast<int>(box_.size()) == kTensorMapModes && static_cast<int>(chosen.size()) > kTensorMapModes)
      return refuse("a box of {} modes leaves none of a tensor map's {} for the tensor's other {}", box_.size(),
                    kTensorMapModes, chosen.size() - box_.size());
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      if (i < kTensorMapModes) {
        groups_.push_back({chosen[i]});
      } else {
        groups_.back().push_back(chosen[i]);
      }
    }
    for (std::size_t i = 0; i < groups_.size(); ++i) add_mode(groups_[i], i < box_.size() ? box_[i].extent : 1);
    return {};
  }

  void add_mode(const std::vector<Leaf>& group, std::int64_t box) {
    const MapMode mode = group.size() == 1 ? MapMode{group[0].extent, group[0].value} : grouped(group);
    copy_.map.global_dim.push_back(mode.extent);
    if (copy_.map.rank() > 1) copy_.map.global_strides.push_back(mode.stride * request_.element_bits / 8);
    copy_.map.box_dim.push_back(box);
    copy_.map.element_strides.push_back(1);
    std::vector<Basis> bases;
    for (const Leaf& leaf : group) bases.push_back(leaf.basis);
    copy_.modes.push_back(std::move(bases));
    group_strides_.push_back(mode.stride);
  }

  /// value@basis of the tensor as a coordinate of the map; 0 for modes that the map lacks.
  IntTuple to_map(std::int64_t value, const Basis& basis) const {
    for (std::size_t i = 0; i < groups_.size(); ++i) {
      const std::optional<std::size_t> at = find(groups_[i], basis);
      if (!at) continue;
      const bool alone = groups_[i].size() == 1 || group_strides_[i] == 0;
      const std::int64_t scale = alone ? 1 : groups_[i][*at].value / group_strides_[i];
      return IntTuple::scaled_basis(value * scale, Basis{static_cast<int>(i)});
    }
    return 0;
  }

  void fill_layouts() {
    std::size_t next = 0;
    copy_.coordinates =
        Layout(request_.global.shape(), layout::transform_leaves(request_.global.stride(), [&](const IntTuple&) {
                 return to_map(1, tensor_[next++].basis);
               }));
    box_elements_ = 1;
    for (const Leaf& leaf : box_) box_elements_ *= leaf.extent;
    std::vector<Leaf> coordinates;
    std::vector<Leaf> offsets;
    std::int64_t offset = box_elements_;
    for (const Leaf& leaf : boxes_) {
      const IntTuple step = to_map(leaf.value, leaf.basis);
      coordinates.push_back({leaf.extent, step.basis_value(), step.basis()});
      offsets.push_back({leaf.extent, offset, {}});
      offset *= leaf.extent;
    }
    copy_.box_coordinate = from_leaves(coordinates);
    copy_.box_offset = from_leaves(offsets);
  }

  /// Cuts boxes from their last mode on, so that slices follow each other in shared memory.
  Support slice_boxes() {
    std::int64_t left = request_.multicast;
    if (left < 1) return refuse("a tile is loaded by at least one CTA, got {}", left);
    std::vector<Leaf> coordinates;
    std::vector<Leaf> offsets;
    std::int64_t above = box_elements_;  // elements of the modes not cut yet
    for (int i = static_cast<int>(box_.size()) - 1; i >= 0 && left > 1; --i) {
      std::int64_t& extent = copy_.map.box_dim[static_cast<std::size_t>(i)];
      const std::int64_t cuts = std::min(left, extent);
      if (extent % cuts != 0 || left % cuts != 0) break;
      extent /= cuts;
      left /= cuts;
      above /= cuts;
      coordinates.insert(coordinates.begin(), {cuts, extent, Basis{i}});
      offsets.insert(offsets.begin(), {cuts, above, {}});
      if (extent > 1) break;
      above /= extent;
    }
    if (left > 1)
      return refuse("{} CTAs cannot load equal slices of a box of {}", request_.multicast,
                    fmt::join(box_extents(), "x"));
    copy_.slice_coordinate = from_leaves(coordinates);
    copy_.slice_offset = from_leaves(offsets);
    return {};
  }

  Support check_shared_alignment() const {
    const std::int64_t box_bytes = box_elements_ * request_.element_bits / 8;
    if (!boxes_.empty() && box_bytes % kSharedAlignment != 0)
      return refuse("boxes are multiples of {} bytes, got {} of {}", kSharedAlignment, box_bytes,
                    fmt::join(box_extents(), "x"));
    const std::int64_t slice_bytes = box_bytes / request_.multicast;
    if (request_.multicast > 1 && slice_bytes % kSharedAlignment != 0)
      return refuse("slices of a multicast are multiples of {} bytes, got {} for {} CTAs", kSharedAlignment,
                    slice_bytes, request_.multicast);
    return {};
  }

  std::vector<std::int64_t> box_extents() const {
    std::vector<std::int64_t> extents;
    for (const Leaf& leaf : box_) extents.push_back(leaf.extent);
    return extents;
  }

  const TmaRequest& request_;
  TmaCopy copy_;
  std::vector<Leaf> tensor_;               // stride @ coordinate of each leaf of the tensor
  std::vector<Leaf> places_;               // offset in shared memory -> coordinate of the tensor
  std::vector<Leaf> box_;                  // its first modes
  std::vector<Leaf> boxes_;                // and the rest
  std::vector<std::vector<Leaf>> groups_;  // of the tensor's leaves, by mode of the map
  std::vector<std::int64_t> group_strides_;
  std::int64_t box_elements_ = 1;
};

void add_coordinate(std::vector<std::int64_t>& sum, const IntTuple& coordinate) {
  if (coordinate.is_leaf()) return;  // the integer 0
  for (int i = 0; i < coordinate.rank(); ++i) sum[static_cast<std::size_t>(i)] += coordinate[i].value();
}

}  // namespace

std::int64_t box_count(const TmaCopy& copy) { return layout::size(copy.box_offset); }

Result<TmaCopy> make_tma_copy(const TmaRequest& request) { return Planner(request).plan(); }

Result<TensorMap> tensor_map_for(const TmaCopy& copy, const Layout& global, std::uint64_t global_address) {
  if (!congruent(global.shape(), copy.coordinates.shape()))
    return refuse("the plan is for tensors like {}, got {}", layout::to_string(copy.coordinates.shape()),
                  layout::to_string(global));
  TensorMap map = copy.map;
  std::vector<Leaf> missing = tensor_leaves(global);
  for (std::size_t i = 0; i < copy.modes.size(); ++i) {
    if (copy.modes[i].size() != 1)
      return refuse("mode {} of the map is {} modes of the tensor: plan anew", i, copy.modes[i].size());
    const auto leaf = missing.begin() + static_cast<std::ptrdiff_t>(*find(missing, copy.modes[i][0]));
    if (i == 0 && leaf->value != 1)
      return refuse("the mode that is contiguous in shared memory has stride 1 in the tensor, got {} in {}",
                    leaf->value, layout::to_string(global));
    map.global_dim[i] = leaf->extent;
    if (i > 0) map.global_strides[i - 1] = leaf->value * map.element_bits / 8;
    missing.erase(leaf);
  }
  for (const Leaf& leaf : missing) {
    if (leaf.extent != 1 && leaf.value != 0)
      return refuse("the map has no mode for {}:{} at {} of {}", leaf.extent, leaf.value, layout::to_string(leaf.basis),
                    layout::to_string(global));
  }
  const Support support = check(map, global_address);
  if (!support) return Refusal{support.reason()};
  return map;
}

std::vector<std::int64_t> tma_coordinate(const TmaCopy& copy, const IntTuple& tile_at, std::int64_t box,
                                         std::int64_t slice) {
  std::vector<std::int64_t> sum(static_cast<std::size_t>(copy.map.rank()), 0);
  add_coordinate(sum, layout::coordinate(copy.coordinates, tile_at));
  add_coordinate(sum, layout::coordinate(copy.box_coordinate, box));
  add_coordinate(sum, layout::coordinate(copy.slice_coordinate, slice));
  return sum;
}

std::int64_t tma_smem_bytes(const TmaCopy& copy, std::int64_t box, std::int64_t slice) {
  return (copy.box_offset(box) + copy.slice_offset(slice)) * copy.map.element_bits / 8;
}

std::uint16_t multicast_mask(const Layout& cluster, int mode, std::int64_t cta_rank) {
  if (layout::size(cluster) > 16) throw InvalidArgument(fmt::format("a cluster of {} CTAs", layout::size(cluster)));
  if (mode < 0 || mode >= cluster.rank())
    throw InvalidArgument(fmt::format("mode {} of the cluster {}", mode, layout::to_string(cluster)));
  const Layout along = cluster.mode(mode);
  const IntTuple at = layout::flat_coord(cluster, cta_rank);
  const std::int64_t first = cta_rank - along(at[mode]);
  unsigned mask = 0;
  for (std::int64_t i = 0; i < layout::size(along); ++i) mask |= 1u << (first + along(i));
  return static_cast<std::uint16_t>(mask);
}

}  // namespace tilewright::arch
