// The limits of cuTensorMapEncodeTiled. Source: CUDA driver API, "Tensor Map Object Management".
#include "tilewright/arch/tensor_map.hpp"

namespace tilewright::arch {
namespace {

constexpr std::int64_t kMaxExtent = std::int64_t{1} << 32;
constexpr std::int64_t kMaxStrideBytes = std::int64_t{1} << 40;
constexpr std::int64_t kGlobalAlignment = 16;

Support check_mode(const TensorMap& map, int i) {
  const auto at = static_cast<std::size_t>(i);
  if (map.global_dim[at] < 1 || map.global_dim[at] > kMaxExtent)
    return refuse("mode {} of a tensor map must have an extent from 1 to 2^32, got {}", i, map.global_dim[at]);
  if (map.box_dim[at] < 1 || map.box_dim[at] > kBoxExtent)
    return refuse("mode {} of a box must have an extent from 1 to {}, got {}", i, kBoxExtent, map.box_dim[at]);
  if (map.element_strides[at] < 1 || map.element_strides[at] > 8)
    return refuse("mode {} of a tensor map must have an element stride from 1 to 8, got {}", i,
                  map.element_strides[at]);
  if (i == 0) return {};
  const std::int64_t stride = map.global_strides[at - 1];
  if (stride % kGlobalAlignment != 0)
    return refuse("the stride of mode {} must be a multiple of {} bytes, got {}", i, kGlobalAlignment, stride);
  if (stride < 0 || stride >= kMaxStrideBytes)
    return refuse("the stride of mode {} must be at least 0 and below 2^40 bytes, got {}", i, stride);
  return {};
}

}  // namespace

Support check(const TensorMap& map, std::uint64_t global_address) {
  const auto rank = static_cast<std::size_t>(map.rank());
  if (map.rank() < 1 || map.rank() > kTensorMapModes)
    return refuse("a tensor map must have 1 to {} modes, got {}", kTensorMapModes, map.rank());
  if (map.global_strides.size() != rank - 1 || map.box_dim.size() != rank || map.element_strides.size() != rank)
    return refuse("a tensor map of {} modes has {} strides, {} box and {} element strides", rank,
                  map.global_strides.size(), map.box_dim.size(), map.element_strides.size());
  if (map.element_bits != 8 && map.element_bits != 16 && map.element_bits != 32 && map.element_bits != 64)
    return refuse("TMA copies elements of 8, 16, 32 or 64 bits, got {}", map.element_bits);
  if (global_address % kGlobalAlignment != 0)
    return refuse("the address of the tensor must be a multiple of {}, got {:#x}", kGlobalAlignment, global_address);
  for (int i = 0; i < map.rank(); ++i) {
    const Support mode = check_mode(map, i);
    if (!mode) return mode;
  }
  const std::int64_t inner_bytes = map.box_dim[0] * map.element_bits / 8;
  if (inner_bytes % kGlobalAlignment != 0)
    return refuse("the rows of a box must be a multiple of {} bytes, got {}", kGlobalAlignment, inner_bytes);
  if (map.swizzle != SwizzleMode::none && inner_bytes > width_bytes(map.swizzle))
    return refuse("the rows of a box with {} must be at most {} bytes, got {}", name(map.swizzle),
                  width_bytes(map.swizzle), inner_bytes);
  return {};
}

}  // namespace tilewright::arch
