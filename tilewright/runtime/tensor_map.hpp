// Tensor maps of TMA: their description, its checks, and the encoded 128 bytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "tilewright/base/support.hpp"

namespace tilewright::runtime {

/// The element types of tensor maps, in the order of cuda.h's CUtensorMapDataType. `_ftz` flushes subnormals.
enum class TensorMapType : std::uint8_t {
  u8,
  u16,
  u32,
  s32,
  u64,
  s64,
  f16,
  f32,
  f64,
  bf16,
  f32_ftz,
  tf32,
  tf32_ftz,
};

/// Width in memory.
int bytes(TensorMapType type);
bool is_float(TensorMapType type);
std::string_view name(TensorMapType type);

// The values of the next three are those of cuda.h.

/// Over how many bytes 16-byte chunks change places in shared memory.
enum class TensorMapSwizzle : std::uint8_t { none, bytes_32, bytes_64, bytes_128 };
/// Bytes that one miss brings into L2.
enum class TensorMapPromotion : std::uint8_t { none, bytes_64, bytes_128, bytes_256 };
/// The value that a load writes for out-of-bounds elements.
enum class TensorMapFill : std::uint8_t { zeros, nan };

/// The width of the swizzle in bytes; 0 for none.
constexpr int width(TensorMapSwizzle swizzle) {
  return swizzle == TensorMapSwizzle::none ? 0 : 16 << static_cast<int>(swizzle);
}

inline constexpr int kMaxTensorMapRank = 5;

/// A tensor in global memory, and the box that one instruction copies. Mode 0 is contiguous.
struct TensorMapDescription {
  TensorMapType type = TensorMapType::f16;
  int rank = 1;
  std::uint64_t address = 0;                                                    // in global memory
  std::array<std::uint64_t, kMaxTensorMapRank> extents{};                       // elements
  std::array<std::uint64_t, kMaxTensorMapRank> strides{};                       // bytes; that of mode 0 is ignored
  std::array<std::uint32_t, kMaxTensorMapRank> box{};                           // elements
  std::array<std::uint32_t, kMaxTensorMapRank> element_strides{1, 1, 1, 1, 1};  // that of mode 0 has no effect
  TensorMapSwizzle swizzle = TensorMapSwizzle::none;
  TensorMapPromotion promotion = TensorMapPromotion::bytes_128;
  TensorMapFill fill = TensorMapFill::zeros;
  bool operator==(const TensorMapDescription&) const = default;
};

/// Whether the driver can encode it. Source: CUDA driver API, cuTensorMapEncodeTiled; confirmed on an H200. Also
/// refuses a null address, which the driver accepts.
Support check(const TensorMapDescription& description);

/// The number of elements that a copy transfers along a mode: every element_strides[mode]-th one of the box.
/// @pre 0 <= mode < rank
std::uint32_t box_elements(const TensorMapDescription& description, int mode);
/// Bytes of one copy for the expect_tx of its mbarrier, including out-of-bounds elements.
std::uint64_t box_bytes(const TensorMapDescription& description);
/// Bytes from the first element to the end of the last one. @pre check(description)
std::uint64_t footprint(const TensorMapDescription& description);

/// An opaque tensor map, made by Device::encode(). Kernels take it as a 64-byte aligned parameter, const
/// __grid_constant__.
struct alignas(64) TensorMap {
  std::array<std::byte, 128> bytes{};
  bool operator==(const TensorMap&) const = default;
};
static_assert(sizeof(TensorMap) == 128);

}  // namespace tilewright::runtime
