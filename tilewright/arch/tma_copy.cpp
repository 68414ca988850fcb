// Construction of TMA copies. composition(coordinates of the tile, right_inverse(layout in shared memory)) maps an
// offset in shared memory to a coordinate of the tensor; its first modes are the box. CuTe's construct_tma_gbasis does
// the same, but does not split modes of more than 256.
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
constexpr std::size_t kMaxModes = kMaxTensorMapRank;

/// A mode extent:value@basis.
struct Leaf {
  std::int64_t extent = 1;
  std::int64_t value = 0;
  Basis basis;
};

/// Refuses a negative stride of a tensor.
Support check_stride(std::size_t mode_of_map, const Leaf& leaf) {
  if (leaf.value >= 0) return {};
  return refuse("the stride of mode {} of a tensor map must be at least 0, got {} elements", mode_of_map, leaf.value);
}

/// @pre no mode is nested
std::vector<Leaf> flat_leaves(const Layout& layout) {
  std::vector<Leaf> result;
  for (int i = 0; i < layout.rank(); ++i) {
    const IntTuple& stride = layout.stride()[i];
    result.push_back({layout.shape()[i].value(), stride.basis_value(), stride.basis()});
  }
  return result;
}

/// The layout of these modes.
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

/// Sets the extent of a mode of the map, and its stride unless it is mode 0. @pre the stride is not negative
void set_mode(TensorMap& map, std::size_t at, const MapMode& mode) {
  map.extents[at] = static_cast<std::uint64_t>(mode.extent);
  if (at > 0) map.strides[at] = static_cast<std::uint64_t>(mode.stride) * static_cast<std::uint64_t>(bytes(map.type));
}

/// Several modes of the tensor as one mode: its stride is the gcd of their strides, its extent reaches their last
/// element.
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

/// The leaves of the tensor: extents, strides as values, and the bases of their coordinates.
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

/// Chooses the box, then the modes of the tensor map, then the layouts of coordinates.
class Planner {
 public:
  explicit Planner(const TmaRequest& request) : request_(request) {}

  Result<TmaCopy> plan() {
    Support support = find_coordinates_of_smem();
    if (!support) return Refusal{support.reason()};
    take_boxes();
    support = choose_modes();
    if (!support) return Refusal{support.reason()};
    fill_layouts();
    support = slice_boxes();
    if (support) support = check_shared_alignment();
    if (support) support = check(copy_.map);
    if (!support) return Refusal{support.reason()};
    copy_.transaction_bytes = layout::size(request_.smem.layout) * bytes(copy_.map.type);
    return std::move(copy_);
  }

 private:
  Support find_coordinates_of_smem() {
    const Result<SwizzleMode> mode = swizzle_mode(request_.smem.swizzle, bits(request_.element));
    if (!mode) return mode.refusal();
    const Result<TensorMapType> type = tensor_map_type(request_.element);
    if (!type) return type.refusal();
    if (request_.smem.offset != 0)
      return refuse("a tile must start at offset 0 of its swizzle, got {}", request_.smem.offset.value());
    if (request_.global.shape().is_leaf())
      return refuse("the tensor must have a tuple of modes, got {}", layout::to_string(request_.global));
    copy_.map.type = *type;
    copy_.map.rank = 0;
    copy_.map.address = request_.global_address;
    copy_.map.swizzle = swizzle_of_width(width_bytes(*mode));
    tensor_ = tensor_leaves(request_.global);
    try {
      const Layout tile = tile_coordinates();
      const Layout inverse = layout::right_inverse(request_.smem.layout);
      const std::int64_t size = layout::size(request_.smem.layout);
      if (layout::size(tile) != size)
        return refuse("the tile {} has {} elements, but its layout in shared memory has {}",
                      layout::to_string(request_.tile), layout::size(tile), size);
      if (layout::size(inverse) != size)
        return refuse("shared memory {} is not a bijection onto its {} elements",
                      layout::to_string(request_.smem.layout), size);
      coordinates_of_smem_ = flat_leaves(layout::coalesce(layout::composition(tile, inverse)));
    } catch (const InvalidArgument& error) {
      return refuse("the tile {} of {} does not correspond to shared memory {}: {}", layout::to_string(request_.tile),
                    layout::to_string(request_.global), layout::to_string(request_.smem.layout), error.what());
    }
    if (coordinates_of_smem_.front().value != 1)
      return refuse("shared memory starts along {}@, which is not a whole mode of the tensor {}",
                    layout::to_string(
                        IntTuple::scaled_basis(coordinates_of_smem_.front().value, coordinates_of_smem_.front().basis)),
                    layout::to_string(request_.global));
    return {};
  }

  /// The layout from the tile to coordinates of the tensor: the identity layout composed with the tile.
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

  /// Splits coordinates_of_smem_ into the modes of the box and those that enumerate boxes.
  void take_boxes() {
    bool open = true;
    for (const Leaf& leaf : coordinates_of_smem_) {
      open = open && leaf.value == 1 && !find(box_, leaf.basis) && box_.size() < kMaxModes;
      if (!open) {
        boxes_.push_back(leaf);
        continue;
      }
      const std::int64_t taken = largest_divisor(leaf.extent, kMaxBoxExtent);
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
      const bool is_needed = (leaf.extent != 1 && leaf.value != 0) || find(boxes_, leaf.basis);
      if (is_needed && !find(chosen, leaf.basis)) chosen.push_back(leaf);
    }
    if (chosen.front().value != 1)
      return refuse("the mode that is contiguous in shared memory must have stride 1 in the tensor, got {} in {}",
                    chosen.front().value, layout::to_string(request_.global));
    if (box_.size() == kMaxModes && chosen.size() > kMaxModes)
      return refuse("a box of {} modes takes all {} modes of the tensor map, but the tensor has {} more", box_.size(),
                    kMaxModes, chosen.size() - box_.size());
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      if (i < kMaxModes) {
        groups_.push_back({chosen[i]});
      } else {
        groups_.back().push_back(chosen[i]);
      }
    }
    for (std::size_t i = 0; i < groups_.size(); ++i) {
      if (const Support mode = add_mode(groups_[i], i < box_.size() ? box_[i].extent : 1); !mode) return mode;
    }
    return {};
  }

  Support add_mode(const std::vector<Leaf>& group, std::int64_t box) {
    const MapMode mode = group.size() == 1 ? MapMode{group[0].extent, group[0].value} : grouped(group);
    const auto at = static_cast<std::size_t>(copy_.map.rank++);
    for (const Leaf& leaf : group) {
      if (const Support stride = check_stride(at, leaf); !stride) return stride;
    }
    set_mode(copy_.map, at, mode);
    copy_.map.box[at] = static_cast<std::uint32_t>(box);
    std::vector<Basis> bases;
    for (const Leaf& leaf : group) bases.push_back(leaf.basis);
    copy_.modes.push_back(std::move(bases));
    group_strides_.push_back(mode.stride);
    return {};
  }

  /// The coordinate of the map for value@basis of the tensor; 0 for modes that are not in the map.
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

  /// Splits the box along its last modes, so that each slice is contiguous in shared memory.
  Support slice_boxes() {
    std::int64_t slices = request_.multicast;
    if (slices < 1) return refuse("a tile must be loaded by at least one CTA, got {}", slices);
    std::vector<Leaf> coordinates;
    std::vector<Leaf> offsets;
    std::int64_t above = box_elements_;  // elements of a slice along the modes up to this one
    for (int i = static_cast<int>(box_.size()) - 1; i >= 0 && slices > 1; --i) {
      std::int64_t extent = copy_.map.box[static_cast<std::size_t>(i)];
      const std::int64_t cuts = std::min(slices, extent);
      if (extent % cuts != 0 || slices % cuts != 0) break;
      extent /= cuts;
      copy_.map.box[static_cast<std::size_t>(i)] = static_cast<std::uint32_t>(extent);
      slices /= cuts;
      above /= cuts;
      coordinates.insert(coordinates.begin(), {cuts, extent, Basis{i}});
      offsets.insert(offsets.begin(), {cuts, above, {}});
      if (extent > 1) break;
      above /= extent;
    }
    if (slices > 1)
      return refuse("{} CTAs cannot load equal slices of a box of {}", request_.multicast,
                    fmt::join(box_extents(), "x"));
    copy_.slice_coordinate = from_leaves(coordinates);
    copy_.slice_offset = from_leaves(offsets);
    return {};
  }

  Support check_shared_alignment() const {
    const std::int64_t box_bytes = box_elements_ * bytes(copy_.map.type);
    if (!boxes_.empty() && box_bytes % kSharedAlignment != 0)
      return refuse("boxes must be multiples of {} bytes, got {} of {}", kSharedAlignment, box_bytes,
                    fmt::join(box_extents(), "x"));
    const std::int64_t slice_bytes = box_bytes / request_.multicast;
    if (request_.multicast > 1 && slice_bytes % kSharedAlignment != 0)
      return refuse("slices of a multicast must be multiples of {} bytes, got {} for {} CTAs", kSharedAlignment,
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
  std::vector<Leaf> tensor_;               // the leaves of the tensor
  std::vector<Leaf> coordinates_of_smem_;  // modes of offset in shared memory -> coordinate of the tensor
  std::vector<Leaf> box_;                  // its first modes: the box
  std::vector<Leaf> boxes_;                // the rest: they enumerate boxes
  std::vector<std::vector<Leaf>> groups_;  // the leaves of the tensor for each mode of the map
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
    return refuse("the plan is for tensors with modes {}, got {}", layout::to_string(copy.coordinates.shape()),
                  layout::to_string(global));
  TensorMap map = copy.map;
  map.address = global_address;
  std::vector<Leaf> missing = tensor_leaves(global);
  for (std::size_t i = 0; i < copy.modes.size(); ++i) {
    if (copy.modes[i].size() != 1)
      return refuse("mode {} of the map stands for {} modes of the tensor: a new plan is needed", i,
                    copy.modes[i].size());
    const auto leaf = missing.begin() + static_cast<std::ptrdiff_t>(*find(missing, copy.modes[i][0]));
    if (i == 0 && leaf->value != 1)
      return refuse("the mode that is contiguous in shared memory must have stride 1 in the tensor, got {} in {}",
                    leaf->value, layout::to_string(global));
    if (const Support stride = check_stride(i, *leaf); !stride) return stride.refusal();
    set_mode(map, i, {leaf->extent, leaf->value});
    missing.erase(leaf);
  }
  for (const Leaf& leaf : missing) {
    if (leaf.extent != 1 && leaf.value != 0)
      return refuse("the map has no mode for {}:{} at {} of {}", leaf.extent, leaf.value, layout::to_string(leaf.basis),
                    layout::to_string(global));
  }
  const Support support = check(map);
  if (!support) return Refusal{support.reason()};
  return map;
}

std::vector<std::int64_t> tma_coordinate(const TmaCopy& copy, const IntTuple& tile_at, std::int64_t box,
                                         std::int64_t slice) {
  std::vector<std::int64_t> sum(static_cast<std::size_t>(copy.map.rank), 0);
  add_coordinate(sum, layout::coordinate(copy.coordinates, tile_at));
  add_coordinate(sum, layout::coordinate(copy.box_coordinate, box));
  add_coordinate(sum, layout::coordinate(copy.slice_coordinate, slice));
  return sum;
}

std::int64_t tma_smem_bytes(const TmaCopy& copy, std::int64_t box, std::int64_t slice) {
  return (copy.box_offset(box) + copy.slice_offset(slice)) * bytes(copy.map.type);
}

std::uint16_t multicast_mask(const Layout& cluster, int mode, std::int64_t cta_rank) {
  if (layout::size(cluster) > 16)
    throw InvalidArgument(fmt::format("a cluster has at most 16 CTAs, got {}", layout::size(cluster)));
  if (mode < 0 || mode >= cluster.rank())
    throw InvalidArgument(fmt::format("no mode {} in the cluster {}", mode, layout::to_string(cluster)));
  const Layout along = cluster.mode(mode);
  const IntTuple at = layout::flat_coord(cluster, cta_rank);
  const std::int64_t first = cta_rank - along(at[mode]);
  unsigned mask = 0;
  for (std::int64_t i = 0; i < layout::size(along); ++i) mask |= 1u << (first + along(i));
  return static_cast<std::uint16_t>(mask);
}

}  // namespace tilewright::arch
