// The rules of tensor maps.
#include "tilewright/base/tensor_map.hpp"

#include <limits>

namespace tilewright {
namespace {

struct TypeRow {
  std::string_view name;
  int bytes;
  bool is_float;
};

constexpr std::array<TypeRow, 13> kTypes = {{
    {"u8", 1, false},
    {"u16", 2, false},
    {"u32", 4, false},
    {"s32", 4, false},
    {"u64", 8, false},
    {"s64", 8, false},
    {"f16", 2, true},
    {"f32", 4, true},
    {"f64", 8, true},
    {"bf16", 2, true},
    {"f32_ftz", 4, true},
    {"tf32", 4, true},
    {"tf32_ftz", 4, true},
}};
static_assert(kTypes.size() == static_cast<std::size_t>(TensorMapType::tf32_ftz) + 1);

const TypeRow& row(TensorMapType type) { return kTypes[static_cast<std::size_t>(type)]; }

constexpr std::uint64_t kAlignment = 16;  // of the address, the strides and the rows of the box
constexpr std::uint64_t kMaxExtent = std::uint64_t{1} << 32;
constexpr std::uint32_t kMaxElementStride = 8;
constexpr int kMinIm2colRank = 3;
constexpr std::uint32_t kMaxChannelsPerPixel = 256;
constexpr std::uint32_t kMaxPixelsPerColumn = 1024;

/// Width of the signed corners of a bounding box with 1, 2 or 3 spatial modes.
constexpr std::array<int, 3> kCornerBits{16, 8, 5};

Support check_enumerators(const TensorMap& map) {
  if (map.type > TensorMapType::tf32_ftz || map.swizzle > TensorMapSwizzle::bytes_128 ||
      map.promotion > TensorMapPromotion::bytes_256 || map.fill > TensorMapFill::nan) {
    return refuse("a tensor map of unknown type {}, swizzle {}, L2 promotion {} or fill {}", static_cast<int>(map.type),
                  static_cast<int>(map.swizzle), static_cast<int>(map.promotion), static_cast<int>(map.fill));
  }
  if (map.fill == TensorMapFill::nan && !is_float(map.type)) {
    return refuse("a tensor map that fills with NaN must have a floating-point type, got {}", name(map.type));
  }
  return {};
}

Support check_rank(const TensorMap& map) {
  const int least = map.im2col ? kMinIm2colRank : 1;
  if (map.rank >= least && map.rank <= kMaxTensorMapRank) return {};
  return refuse("{} tensor map must have {} to {} modes, got {}", map.im2col ? "an im2col" : "a", least,
                kMaxTensorMapRank, map.rank);
}

Support check_mode(const TensorMap& map, std::size_t mode) {
  if (map.extents[mode] < 1 || map.extents[mode] > kMaxExtent) {
    return refuse("mode {} of a tensor map must have an extent from 1 to 2^32, got {}", mode, map.extents[mode]);
  }
  if (map.element_strides[mode] < 1 || map.element_strides[mode] > kMaxElementStride) {
    return refuse("mode {} of a tensor map must have an element stride from 1 to {}, got {}", mode, kMaxElementStride,
                  map.element_strides[mode]);
  }
  if (mode == 0) return {};
  if (map.strides[mode] % kAlignment != 0) {
    return refuse("the stride of mode {} of a tensor map must be a multiple of {} bytes, got {}", mode, kAlignment,
                  map.strides[mode]);
  }
  if (map.strides[mode] >= kTensorMapStrideLimit) {
    return refuse("the stride of mode {} of a tensor map must be below 2^40 bytes, got {}", mode, map.strides[mode]);
  }
  return {};
}

Support check_box(const TensorMap& map) {
  for (std::size_t mode = 0; mode < static_cast<std::size_t>(map.rank); ++mode) {
    if (map.box[mode] < 1 || map.box[mode] > kMaxBoxExtent) {
      return refuse("mode {} of a box must have an extent from 1 to {}, got {}", mode, kMaxBoxExtent, map.box[mode]);
    }
  }
  return {};
}

Support check_corner(std::string_view corner, std::int32_t value, std::size_t mode, int rank) {
  const std::int32_t limit = std::int32_t{1} << (kCornerBits[static_cast<std::size_t>(rank - kMinIm2colRank)] - 1);
  if (value >= -limit && value < limit) return {};
  return refuse("the {} corner of mode {} must be from {} to {} in an im2col tensor map of {} modes, got {}", corner,
                mode, -limit, limit - 1, rank, value);
}

/// Checks the bounding box along the spatial modes, which are all but the first and the last.
Support check_corners(const TensorMap& map, const Im2colBox& box) {
  for (std::size_t mode = 1; mode < static_cast<std::size_t>(map.rank) - 1; ++mode) {
    const std::int32_t lower = box.lower_corner[mode - 1];
    const std::int32_t upper = box.upper_corner[mode - 1];
    if (Support fits = check_corner("lower", lower, mode, map.rank); !fits) return fits;
    if (Support fits = check_corner("upper", upper, mode, map.rank); !fits) return fits;
    const std::int64_t end = static_cast<std::int64_t>(map.extents[mode]) + upper;
    if (end <= lower) {
      return refuse("the bounding box of an im2col tensor map must have pixels along mode {}, got {} up to {}", mode,
                    lower, end);
    }
    // The driver computes this sum in 32 bits: it refuses most larger ones (driver 580.159, H200), and accepts those
    // that wrap around to a position after the lower corner.
    if (end > std::numeric_limits<std::int32_t>::max()) {
      return refuse("the bounding box of an im2col tensor map must end before 2^31 along mode {}, got {}", mode, end);
    }
  }
  return {};
}

Support check_im2col(const TensorMap& map, const Im2colBox& box) {
  if (box.channels_per_pixel < 1 || box.channels_per_pixel > kMaxChannelsPerPixel) {
    return refuse("an im2col tensor map must copy 1 to {} channels per pixel, got {}", kMaxChannelsPerPixel,
                  box.channels_per_pixel);
  }
  if (box.pixels_per_column < 1 || box.pixels_per_column > kMaxPixelsPerColumn) {
    return refuse("an im2col tensor map must copy 1 to {} pixels per column, got {}", kMaxPixelsPerColumn,
                  box.pixels_per_column);
  }
  return check_corners(map, box);
}

/// Elements of a row in shared memory.
std::uint32_t row_elements(const TensorMap& map) { return map.im2col ? map.im2col->channels_per_pixel : map.box[0]; }

Support check_row(const TensorMap& map) {
  const std::uint64_t row_bytes = std::uint64_t{row_elements(map)} * static_cast<std::uint64_t>(bytes(map.type));
  if (row_bytes % kAlignment != 0) {
    return refuse("the rows of a box must be a multiple of {} bytes, got {} of {} {}", kAlignment, row_bytes,
                  row_elements(map), name(map.type));
  }
  const auto limit = static_cast<std::uint64_t>(width(map.swizzle));
  if (limit != 0 && row_bytes > limit) {
    return refuse("the rows of a box with the {}-byte swizzle must be at most {} bytes, got {} of {} {}", limit, limit,
                  row_bytes, row_elements(map), name(map.type));
  }
  return {};
}

}  // namespace

int bytes(TensorMapType type) { return row(type).bytes; }
bool is_float(TensorMapType type) { return row(type).is_float; }
std::string_view name(TensorMapType type) { return row(type).name; }

Result<TensorMapType> tensor_map_type(DType element) {
  switch (element) {
    case DType::f64:
      return TensorMapType::f64;
    case DType::f32:
      return TensorMapType::f32;
    case DType::tf32:
      return TensorMapType::tf32;
    case DType::f16:
      return TensorMapType::f16;
    case DType::bf16:
      return TensorMapType::bf16;
    case DType::s32:
      return TensorMapType::s32;
    case DType::s8:
    case DType::u8:
    case DType::e4m3:
    case DType::e5m2:
      return TensorMapType::u8;
    case DType::s4:
    case DType::u4:
    case DType::b1:
      break;
  }
  return refuse("TMA copies elements of 8, 16, 32 or 64 bits, got {} of {}", name(element), bits(element));
}

Support check(const TensorMap& map) {
  if (Support known = check_enumerators(map); !known) return known;
  if (Support rank = check_rank(map); !rank) return rank;
  if (map.address % kAlignment != 0) {
    return refuse("the address of a tensor map must be a multiple of {} bytes, got {:#x}", kAlignment, map.address);
  }
  for (std::size_t mode = 0; mode < static_cast<std::size_t>(map.rank); ++mode) {
    if (Support one = check_mode(map, mode); !one) return one;
  }
  if (Support box = map.im2col ? check_im2col(map, *map.im2col) : check_box(map); !box) return box;
  return check_row(map);
}

std::uint32_t box_elements(const TensorMap& map, int mode) {
  const auto m = static_cast<std::size_t>(mode);
  return m == 0 ? map.box[0] : (map.box[m] + map.element_strides[m] - 1) / map.element_strides[m];
}

std::uint64_t box_bytes(const TensorMap& map) {
  auto all = static_cast<std::uint64_t>(bytes(map.type));
  if (map.im2col) return all * map.im2col->channels_per_pixel * map.im2col->pixels_per_column;
  for (int mode = 0; mode < map.rank; ++mode) all *= box_elements(map, mode);
  return all;
}

std::uint64_t footprint(const TensorMap& map) {
  std::uint64_t all = map.extents[0] * static_cast<std::uint64_t>(bytes(map.type));
  for (std::size_t mode = 1; mode < static_cast<std::size_t>(map.rank); ++mode) {
    all += (map.extents[mode] - 1) * map.strides[mode];
  }
  return all;
}

}  // namespace tilewright
