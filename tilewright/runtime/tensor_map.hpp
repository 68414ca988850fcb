// The tensor map of a bulk tensor copy (TMA): what it describes, its rules, and the 128 bytes that a kernel is given.
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
/// What a load gives for elements outside the tensor.
enum class TensorMapFill : std::uint8_t { zeros, nan };

/// Bytes of the pattern's rows; 0 for none.
constexpr int width(TensorMapSwizzle swizzle) {
  return swizzle == TensorMapSwizzle::none ? 0 : 16 << static_cast<int>(swizzle);
}

inline constexpr int kMaxTensorMapRank = 5;

/// A tensor in global memory, and the box of it that one copy moves. Mode 0 is the contiguous one.
struct TensorMapDescription {
  TensorMapType type = TensorMapType::f16;
  int rank = 1;
  std::uint64_t address = 0;                                                    // in global memory
  std::array<std::uint64_t, kMaxTensorMapRank> extents{};                       // elements
  std::array<std::uint64_t, kMaxTensorMapRank> strides{};                       // bytes; that of mode 0 is not read
  std::array<std::uint32_t, kMaxTensorMapRank> box{};                           // elements spanned
  std::array<std::uint32_t, kMaxTensorMapRank> element_strides{1, 1, 1, 1, 1};  // of mode 0: no effect
  TensorMapSwizzle swizzle = TensorMapSwizzle::none;
  TensorMapPromotion promotion = TensorMapPromotion::bytes_128;
  TensorMapFill fill = TensorMapFill::zeros;
  bool operator==(const TensorMapDescription&) const = default;
};

/// Whether the driver can encode it: the rules of cuTensorMapEncodeTiled (CUDA driver API; tried on an H200), each with
/// what broke it. A null address, which the driver takes, is refused too.
Support check(const TensorMapDescription& description);

/// Elements that a copy moves along a mode: every element_strides[mode]-th one of the box. @pre 0 <= mode < rank
std::uint32_t box_elements(const TensorMapDescription& description, int mode);
/// Bytes that one copy moves: those an mbarrier is told to expect, also where the box leaves the tensor.
std::uint64_t box_bytes(const TensorMapDescription& description);
/// Bytes from the first element to the end of the last. @pre check(description)
std::uint64_t footprint(const TensorMapDescription& description);

/// Made by Device::encode; opaque. A kernel takes it as a parameter (const __grid_constant__), 64-byte aligned.
struct alignas(64) TensorMap {
  std::array<std::byte, 128> bytes{};
  bool operator==(const TensorMap&) const = default;
};
static_assert(sizeof(TensorMap) == 128);

}  // namespace tilewright::runtime
