// Checks of tensor-map descriptions.
#include "tilewright/runtime/tensor_map.hpp"

namespace tilewright::runtime {
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
constexpr std::uint64_t kStrideLimit = std::uint64_t{1} << 40;
constexpr std::uint32_t kMaxBox = 256;
constexpr std::uint32_t kMaxElementStride = 8;

Support check_mode(const TensorMapDescription& d, std::size_t mode) {
  if (d.extents[mode] < 1 || d.extents[mode] > kMaxExtent) {
    return refuse("extent of mode {} must be 1 to 2^32, got {}", mode, d.extents[mode]);
  }
  if (d.box[mode] < 1 || d.box[mode] > kMaxBox) {
    return refuse("box of mode {} must be 1 to {}, got {}", mode, kMaxBox, d.box[mode]);
  }
  if (d.element_strides[mode] < 1 || d.element_strides[mode] > kMaxElementStride) {
    return refuse("element stride of mode {} must be 1 to {}, got {}", mode, kMaxElementStride,
                  d.element_strides[mode]);
  }
  if (mode == 0) return {};
  if (d.strides[mode] % kAlignment != 0 || d.strides[mode] >= kStrideLimit) {
    return refuse("stride of mode {} must be a multiple of {} bytes below 2^40, got {}", mode, kAlignment,
                  d.strides[mode]);
  }
  return {};
}

/// Checks the rows of the box in shared memory.
Support check_row(const TensorMapDescription& d) {
  const std::uint64_t row_bytes = std::uint64_t{d.box[0]} * static_cast<std::uint64_t>(bytes(d.type));
  if (row_bytes % kAlignment != 0) {
    return refuse("box of mode 0 must be a multiple of {} bytes, got {} of {} ({} bytes)", kAlignment, d.box[0],
                  name(d.type), row_bytes);
  }
  const auto max_bytes = static_cast<std::uint64_t>(width(d.swizzle));
  if (max_bytes != 0 && row_bytes > max_bytes) {
    return refuse("box of mode 0 must fit the {}-byte swizzle, got {} of {} ({} bytes)", max_bytes, d.box[0],
                  name(d.type), row_bytes);
  }
  return {};
}

}  // namespace

int bytes(TensorMapType type) { return row(type).bytes; }
bool is_float(TensorMapType type) { return row(type).is_float; }
std::string_view name(TensorMapType type) { return row(type).name; }

Support check(const TensorMapDescription& d) {
  if (d.type > TensorMapType::tf32_ftz || d.swizzle > TensorMapSwizzle::bytes_128 ||
      d.promotion > TensorMapPromotion::bytes_256 || d.fill > TensorMapFill::nan) {
    return refuse("unknown type {}, swizzle {}, L2 promotion {} or fill {}", static_cast<int>(d.type),
                  static_cast<int>(d.swizzle), static_cast<int>(d.promotion), static_cast<int>(d.fill));
  }
  if (d.rank < 1 || d.rank > kMaxTensorMapRank) {
    return refuse("rank must be 1 to {}, got {}", kMaxTensorMapRank, d.rank);
  }
  if (d.address == 0 || d.address % kAlignment != 0) {
    return refuse("address must be a multiple of {} bytes and not null, got {:#x}", kAlignment, d.address);
  }
  for (std::size_t mode = 0; mode < static_cast<std::size_t>(d.rank); ++mode) {
    if (Support one = check_mode(d, mode); !one) return one;
  }
  if (d.fill == TensorMapFill::nan && !is_float(d.type)) {
    return refuse("NaN fill needs a floating-point type, got {}", name(d.type));
  }
  return check_row(d);
}

std::uint32_t box_elements(const TensorMapDescription& d, int mode) {
  const auto m = static_cast<std::size_t>(mode);
  return m == 0 ? d.box[0] : (d.box[m] + d.element_strides[m] - 1) / d.element_strides[m];
}

std::uint64_t box_bytes(const TensorMapDescription& d) {
  auto all = static_cast<std::uint64_t>(bytes(d.type));
  for (int mode = 0; mode < d.rank; ++mode) all *= box_elements(d, mode);
  return all;
}

std::uint64_t footprint(const TensorMapDescription& d) {
  std::uint64_t all = d.extents[0] * static_cast<std::uint64_t>(bytes(d.type));
  for (std::size_t mode = 1; mode < static_cast<std::size_t>(d.rank); ++mode) {
    all += (d.extents[mode] - 1) * d.strides[mode];
  }
  return all;
}

}  // namespace tilewright::runtime
