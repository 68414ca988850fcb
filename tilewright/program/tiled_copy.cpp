#include "tilewright/program/tiled_copy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "tilewright/base/error.hpp"

namespace tilewright::program {
namespace {

using layout::IntTuple;
using layout::Layout;

constexpr int kVectorBytes = 16;
/// TMA copies need addresses in shared memory that are multiples of this.
constexpr std::int64_t kTmaAlignment = 128;

int contiguous_mode(const Tensor& tensor) {
  for (std::size_t mode = 0; mode < tensor.strides.size(); ++mode) {
    if (tensor.strides[mode].is_static(1)) return static_cast<int>(mode);
  }
  throw InvalidArgument(fmt::format("no mode of the tensor '{}' has stride 1", tensor.name));
}

/// A tensor of static extents that stands for `tensor` where only the order of its modes matters: the contiguous mode
/// first, the others as far apart as in a packed tensor of large extents.
Layout representative(const Tensor& tensor, int contiguous) {
  constexpr std::int64_t kExtent = 1 << 12;
  std::vector<std::int64_t> shape(tensor.extents.size(), kExtent), stride(tensor.extents.size());
  std::int64_t next = kExtent;
  for (std::size_t mode = 0; mode < stride.size(); ++mode) {
    if (static_cast<int>(mode) == contiguous) {
      stride[mode] = 1;
    } else {
      stride[mode] = next;
      next *= kExtent;
    }
  }
  return {IntTuple::tuple(shape), IntTuple::tuple(stride)};
}

/// The coordinates of a mode of the map that a layout with scaled basis strides has at box or slice `index`.
Number along(const Layout& layout, const Number& index, int mode) {
  Number sum = 0;
  Number rest = index;
  const Layout flat = flatten(layout);
  for (int leaf = 0; leaf < flat.rank(); ++leaf) {
    const IntTuple& stride = flat.rank() == 1 && flat.stride().is_leaf() ? flat.stride() : flat.stride()[leaf];
    const std::int64_t extent = (flat.shape().is_leaf() ? flat.shape() : flat.shape()[leaf]).value();
    const Number digit = leaf + 1 == flat.rank() ? rest : rest % extent;
    rest = rest / extent;
    if (stride.is_integer() ? mode == 0 : stride.basis()[0] == mode) sum += digit * stride.basis_value();
  }
  return sum;
}

/// Elements of `element_bits` bits in bytes; those of less than a byte are an even number.
Number in_bytes(const Number& elements, std::int64_t element_bits) {
  return element_bits >= 8 ? elements * (element_bits / 8) : elements * element_bits / 8;
}

/// @throws InvalidArgument unless 16 bytes of the tensor along its contiguous mode are 16 bytes of the tile
void check_lines(const Tensor& tensor, const SharedTile& tile, int mode) {
  if (mode >= tile.layout.rank() || tile.layout.rank() > static_cast<int>(tensor.extents.size())) {
    throw InvalidArgument(
        fmt::format("the tile {} of '{}' has {} modes; it needs the contiguous mode {}, and at most {}",
                    to_string(tile.layout), tensor.name, tile.layout.rank(), mode, tensor.extents.size()));
  }
  const std::int64_t elements = kVectorBytes * 8 / bits(tile.element);
  const std::int64_t extent = size(tile.layout.mode(mode).layout);
  bool is_contiguous = extent % elements == 0;
  for (std::int64_t i = 1; is_contiguous && i < elements; ++i) {
    std::vector<IntTuple> at(static_cast<std::size_t>(tile.layout.rank()), IntTuple(0));
    at[static_cast<std::size_t>(mode)] = i;
    is_contiguous = tile.layout.at(IntTuple::tuple(std::move(at))).is_static(i);
  }
  if (is_contiguous) return;
  throw InvalidArgument(fmt::format(
      "cp.async copies 16 bytes, {} elements that are contiguous along mode {} of '{}': the tile {} does not "
      "have them together in shared memory",
      elements, mode, tensor.name, to_string(tile.layout)));
}

}  // namespace

std::int64_t SharedTile::alignment() const {
  const layout::Swizzle& swizzle = layout.swizzle;
  const int bit = swizzle.bits() == 0 ? 0 : swizzle.base() + swizzle.bits() + std::abs(swizzle.shift());
  return std::max<std::int64_t>((std::int64_t{1} << bit) * bits(element) / 8, kVectorBytes);
}

void SharedTile::check_alignment(const Number& address, std::int64_t bytes) {
  if (address.divisor() % bytes == 0) return;
  throw InvalidArgument(
      fmt::format("the tile must begin at a multiple of {} bytes of shared memory; {} is a multiple of {}", bytes,
                  to_string(address), address.divisor()));
}

TiledCopyBuilder::TiledCopyBuilder(KernelBuilder& k, CopyAtom atom, const Tensor& tensor, const SharedTile& tile,
                                   int threads, int multicast)
    : kernel_(&k), atom_(atom), tensor_(tensor), tile_(tile), threads_(threads), contiguous_(contiguous_mode(tensor)) {
  if (tensor.extents.size() != tensor.strides.size()) {
    throw InvalidArgument(fmt::format("the tensor '{}' has {} extents and {} strides", tensor.name,
                                      tensor.extents.size(), tensor.strides.size()));
  }
  const auto is_number_of = [](DType type) { return is_float(type) && type != DType::f32 && type != DType::tf32; };
  const bool differ = tensor.element != tile.element && is_number_of(tensor.element) && is_number_of(tile.element);
  if (differ || bits(tensor.element) != bits(tile.element)) {
    throw InvalidArgument(fmt::format("the tensor '{}' has elements of {}, its tile in shared memory of {}",
                                      tensor.name, name(tensor.element), name(tile.element)));
  }
  if (atom == CopyAtom::tma) {
    std::vector<IntTuple> extents;
    for (int mode = 0; mode < tile.layout.rank(); ++mode) extents.emplace_back(size(tile.layout.mode(mode).layout));
    arch::TmaCopy copy = arch::make_tma_copy({.global = representative(tensor, contiguous_),
                                              .element = tensor.element,
                                              .smem = tile.layout,
                                              .tile = IntTuple::tuple(std::move(extents)),
                                              .multicast = multicast})
                             .value_or_throw();
    std::vector<Number> map_extents, map_strides;
    for (const std::vector<layout::Basis>& bases : copy.modes) {
      const auto mode = static_cast<std::size_t>(bases.front()[0]);
      modes_.push_back(static_cast<int>(mode));
      map_extents.push_back(tensor.extents[mode]);
      map_strides.push_back(in_bytes(tensor.strides[mode], bits(tensor.element)));
    }
    map_ = k.tensor_map(tensor.name, copy.map, std::move(map_extents), std::move(map_strides), tensor.element);
    k.declare_tensor(tensor.name, tensor.extents, tensor.strides);
    tma_ = std::move(copy);
    return;
  }
  if (multicast != 1) throw InvalidArgument(fmt::format("cp.async has no multicast, got {} CTAs", multicast));
  if (threads < 1) throw InvalidArgument(fmt::format("at least one thread copies the tile, got {}", threads));
  check_lines(tensor, tile, contiguous_);
  base_ = k.address(tensor.name, kVectorBytes, tensor.element);
  k.declare_tensor(tensor.name, tensor.extents, tensor.strides);
  for (std::size_t mode = 0; mode < tensor.strides.size(); ++mode) {
    const std::int64_t elements = kVectorBytes * 8 / bits(tensor.element);
    if (static_cast<int>(mode) != contiguous_ && tensor.strides[mode].divisor() % elements != 0) {
      throw InvalidArgument(
          fmt::format("cp.async of 16 bytes needs strides of '{}' that are multiples of {} elements, "
                      "{} is a multiple of {}",
                      tensor.name, elements, to_string(tensor.strides[mode]), tensor.strides[mode].divisor()));
    }
  }
}

void TiledCopyBuilder::check_rank(const std::vector<Number>& coordinates) const {
  if (coordinates.size() != tensor_.extents.size()) {
    throw InvalidArgument(fmt::format("the tensor '{}' has {} modes, got {} coordinates", tensor_.name,
                                      tensor_.extents.size(), coordinates.size()));
  }
}

void TiledCopyBuilder::store(const std::vector<Number>& coordinates, const Number& from) const {
  if (atom_ != CopyAtom::tma) throw InvalidArgument(fmt::format("cp.async does not store, got '{}'", tensor_.name));
  check_rank(coordinates);
  SharedTile::check_alignment(from, std::max(tile_.alignment(), kTmaAlignment));
  kernel_->check_shared(from, tile_.bytes());
  for (std::int64_t box = 0; box < box_count(*tma_); ++box)
    tma_store(*kernel_, map_, box_at(coordinates, box, 0),
              from + tma_->box_offset.at(IntTuple(box)) * bits(tile_.element) / 8);
}

std::vector<Number> TiledCopyBuilder::box_at(const std::vector<Number>& coordinates, std::int64_t box,
                                             const Number& slice) const {
  std::vector<Number> at;
  for (std::size_t mode = 0; mode < modes_.size(); ++mode) {
    const int of_map = static_cast<int>(mode);
    at.push_back(coordinates[static_cast<std::size_t>(modes_[mode])] + along(tma_->box_coordinate, box, of_map) +
                 along(tma_->slice_coordinate, slice, of_map));
  }
  return at;
}

void TiledCopyBuilder::copy(const std::vector<Number>& coordinates, const Number& to, const Call& call) const {
  check_rank(coordinates);
  SharedTile::check_alignment(to,
                              atom_ == CopyAtom::tma ? std::max(tile_.alignment(), kTmaAlignment) : tile_.alignment());
  kernel_->check_shared(to, tile_.bytes());
  if (atom_ == CopyAtom::tma) {
    if (call.barrier.is_static(0))
      throw InvalidArgument(fmt::format("the copy of '{}' by TMA needs a barrier that counts its bytes", tensor_.name));
    copy_by_tma(coordinates, to, call);
  } else {
    copy_by_cp_async(coordinates, to, call);
  }
}

void TiledCopyBuilder::copy_by_tma(const std::vector<Number>& coordinates, const Number& to, const Call& call) const {
  const std::int64_t element_bits = bits(tile_.element);
  for (std::int64_t box = 0; box < box_count(*tma_); ++box) {
    const Number offset = tma_->box_offset.at(IntTuple(box)) + tma_->slice_offset.at(IntTuple(call.slice));
    tma_load(*kernel_, to + offset * element_bits / 8, map_, box_at(coordinates, box, call.slice), call.barrier,
             call.ctas, call.policy);
  }
}

void TiledCopyBuilder::copy_by_cp_async(const std::vector<Number>& coordinates, const Number& to,
                                        const Call& call) const {
  if (call.thread.lower() != 0 || call.thread.upper() != threads_ - 1) {
    throw InvalidArgument(
        fmt::format("{} threads copy the tile, so that `thread` must be from 0 to {}, got a number from {} to {}",
                    threads_, threads_ - 1, call.thread.lower(), call.thread.upper()));
  }
  const Number& line_begin = coordinates[static_cast<std::size_t>(contiguous_)];
  if (line_begin.lower() < 0) {
    throw InvalidArgument(fmt::format(
        "cp.async copies vectors of 16 bytes, so that the coordinate of '{}' in its contiguous mode {} must "
        "not be negative, got {}, which is from {} to {}",
        tensor_.name, contiguous_, to_string(line_begin), line_begin.lower(), line_begin.upper()));
  }
  KernelBuilder& k = *kernel_;
  const std::int64_t element_bits = bits(tile_.element);
  const std::int64_t elements = kVectorBytes * 8 / element_bits;
  const std::int64_t vectors = tile_.bytes() / kVectorBytes;
  const std::int64_t along_line = size(tile_.layout.mode(contiguous_).layout) / elements;
  for (std::int64_t pass = 0; pass * threads_ < vectors; ++pass) {
    // Consecutive threads take consecutive vectors of a line.
    const Number vector = call.thread + pass * threads_;
    std::vector<Number> in_tile;
    Number line = vector / along_line;
    for (int mode = 0; mode < tile_.layout.rank(); ++mode) {
      const std::int64_t extent = size(tile_.layout.mode(mode).layout);
      if (mode == contiguous_) {
        in_tile.push_back(vector % along_line * elements);
      } else {
        in_tile.push_back(line % extent);
        line = line / extent;
      }
    }
    Number holds = 1, offset = 0;
    for (std::size_t mode = 0; mode < coordinates.size(); ++mode) {
      const Number at = mode < in_tile.size() ? coordinates[mode] + in_tile[mode] : coordinates[mode];
      holds = both(holds, less(at, tensor_.extents[mode]));
      if (at.lower() < 0) holds = both(holds, less(-1, at));
      offset += at * tensor_.strides[mode];
    }
    // The last vector of a line may have elements outside the tensor, which are zeros.
    const Number first =
        coordinates[static_cast<std::size_t>(contiguous_)] + in_tile[static_cast<std::size_t>(contiguous_)];
    const Number& extent = tensor_.extents[static_cast<std::size_t>(contiguous_)];
    const Number whole = less_equal(first + elements, extent);
    const Number left = select(whole, elements, select(holds, extent % elements, 0));
    const Number in_shared = tile_.layout.at(IntTuple::tuple(std::vector<IntTuple>(in_tile.begin(), in_tile.end())));
    // In the last pass, threads that have no vector of the tile do nothing.
    k.branch(less(vector, vectors), [&] {
      cp_async(k, to + in_bytes(in_shared, element_bits), base_, in_bytes(select(holds, offset, 0), element_bits),
               kVectorBytes, in_bytes(select(holds, left, 0), element_bits));
    });
  }
}

}  // namespace tilewright::program
