// Tensor maps, which describe to TMA a tensor in global memory and the part of it that one instruction copies: the
// arguments of cuTensorMapEncodeTiled and cuTensorMapEncodeIm2col, the driver's rules for them, and the encoded 128
// bytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "tilewright/base/dtype.hpp"
#include "tilewright/base/support.hpp"

namespace tilewright {

/// TMA needs addresses, and strides of all modes but the first, that are multiples of this number of bytes.
inline constexpr int kTmaAlignment = 16;

// The enumerators below have the values of cuda.h.

/// The element types of tensor maps. `_ftz` flushes subnormals; loads of `tf32` round f32 to tf32.
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

/// The type in which TMA copies these elements; u8 for all types of 8 bits. Refused: types of less than 8 bits.
Result<TensorMapType> tensor_map_type(DType element);

/// The width of the rows of shared memory within which 16-byte chunks change places.
enum class TensorMapSwizzle : std::uint8_t { none, bytes_32, bytes_64, bytes_128 };
/// Bytes that one miss brings into L2.
enum class TensorMapPromotion : std::uint8_t { none, bytes_64, bytes_128, bytes_256 };
/// The value that a load writes for out-of-bounds elements.
enum class TensorMapFill : std::uint8_t { zeros, nan };

/// The width of the swizzle in bytes; 0 for none.
constexpr int width(TensorMapSwizzle swizzle) {
  return swizzle == TensorMapSwizzle::none ? 0 : 16 << static_cast<int>(swizzle);
}
/// The swizzle of that width in bytes; none for other numbers.
constexpr TensorMapSwizzle swizzle_of_width(int bytes) {
  return bytes == 128  ? TensorMapSwizzle::bytes_128
         : bytes == 64 ? TensorMapSwizzle::bytes_64
         : bytes == 32 ? TensorMapSwizzle::bytes_32
                       : TensorMapSwizzle::none;
}

inline constexpr int kMaxTensorMapRank = 5;
inline constexpr std::uint32_t kMaxBoxExtent = 256;
/// The strides of a tensor map must be below this number of bytes.
inline constexpr std::uint64_t kTensorMapStrideLimit = std::uint64_t{1} << 40;

/// The pixels that one im2col copy visits and the channels that it copies of each. A pixel is a coordinate of the
/// spatial modes W, H and D and of N. The copy visits pixels of the bounding box in the order W, H, D, N.
/// The corners have one entry per spatial mode, W first, although cuda.h calls them {D, H, W}; CUTLASS passes W first
/// too (make_im2col_tma_copy_desc).
struct Im2colBox {
  std::array<std::int32_t, 3> lower_corner{};  // the bounding box begins at this coordinate
  std::array<std::int32_t, 3> upper_corner{};  // and ends before the extent of the mode plus this number
  std::uint32_t channels_per_pixel = 0;
  std::uint32_t pixels_per_column = 0;
  bool operator==(const Im2colBox&) const = default;
};

/// A tensor in global memory, and what one instruction copies of it. Mode 0 is contiguous. The interleave is none.
struct TensorMap {
  TensorMapType type = TensorMapType::f16;
  int rank = 1;
  std::uint64_t address = 0;                                                    // in global memory
  std::array<std::uint64_t, kMaxTensorMapRank> extents{};                       // elements
  std::array<std::uint64_t, kMaxTensorMapRank> strides{};                       // bytes; that of mode 0 is ignored
  std::array<std::uint32_t, kMaxTensorMapRank> box{};                           // elements; unused with im2col
  std::array<std::uint32_t, kMaxTensorMapRank> element_strides{1, 1, 1, 1, 1};  // that of mode 0 has no effect
  /// Set for instructions in .im2col mode. The modes of the tensor are then C, W, H, D, N; those of a tensor without D
  /// or H are C, W, H, N or C, W, N.
  std::optional<Im2colBox> im2col;
  TensorMapSwizzle swizzle = TensorMapSwizzle::none;
  TensorMapPromotion promotion = TensorMapPromotion::bytes_128;
  TensorMapFill fill = TensorMapFill::zeros;
  bool operator==(const TensorMap&) const = default;
};

/// Whether the driver can encode the tensor map. Source: CUDA driver API, cuTensorMapEncodeTiled (confirmed on an H200)
/// and cuTensorMapEncodeIm2col. An im2col map without pixels or channels is refused too, as is one whose channels of a
/// pixel are not a multiple of 16 bytes, of which the documentation says nothing.
Support check(const TensorMap& map);

/// The number of elements that a copy transfers along a mode: every element_strides[mode]-th one of the box.
/// @pre 0 <= mode < rank; the map is tiled
std::uint32_t box_elements(const TensorMap& map, int mode);
/// Bytes of one copy for the expect_tx of its mbarrier, including out-of-bounds elements.
std::uint64_t box_bytes(const TensorMap& map);
/// Bytes from the first element to the end of the last one. @pre check(map)
std::uint64_t footprint(const TensorMap& map);

/// An opaque tensor map, made by runtime::Device::encode(). Kernels take it as a 64-byte aligned parameter, const
/// __grid_constant__.
struct alignas(64) EncodedTensorMap {
  std::array<std::byte, 128> bytes{};
  bool operator==(const EncodedTensorMap&) const = default;
};
static_assert(sizeof(EncodedTensorMap) == 128);

}  // namespace tilewright
