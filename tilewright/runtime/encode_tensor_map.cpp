#include "tilewright/runtime/encode_tensor_map.hpp"

namespace tilewright::runtime {
namespace {

constexpr int kInterleaveNone = 0;  // CU_TENSOR_MAP_INTERLEAVE_NONE

// Drivers up to CUDA 13.1 set bit 21 of the second 64-bit word in tensor maps of small tensors. CUTLASS clears it
// (copy_traits_sm90_tma.hpp), and so does encode_tensor_map().
constexpr int kLastDriverWithSmallTensorFault = 13010;
constexpr std::uint64_t kSmallTensorBytes = 131072;
constexpr std::size_t kSmallTensorByte = 8 + 21 / 8;
constexpr std::byte kSmallTensorBit{1 << (21 % 8)};

void encode_tiled(Driver& driver, const TensorMap& map, EncodedTensorMap& encoded) {
  driver.tensor_map_encode_tiled(&encoded, static_cast<int>(map.type), static_cast<unsigned>(map.rank), map.address,
                                 map.extents.data(), &map.strides[1], map.box.data(), map.element_strides.data(),
                                 kInterleaveNone, static_cast<int>(map.swizzle), static_cast<int>(map.promotion),
                                 static_cast<int>(map.fill));
}

void encode_im2col(Driver& driver, const TensorMap& map, const Im2colBox& box, EncodedTensorMap& encoded) {
  driver.tensor_map_encode_im2col(&encoded, static_cast<int>(map.type), static_cast<unsigned>(map.rank), map.address,
                                  map.extents.data(), &map.strides[1], box.lower_corner.data(), box.upper_corner.data(),
                                  box.channels_per_pixel, box.pixels_per_column, map.element_strides.data(),
                                  kInterleaveNone, static_cast<int>(map.swizzle), static_cast<int>(map.promotion),
                                  static_cast<int>(map.fill));
}

}  // namespace

EncodedTensorMap encode_tensor_map(Driver& driver, const TensorMap& map) {
  EncodedTensorMap encoded;
  if (map.im2col) {
    encode_im2col(driver, map, *map.im2col, encoded);
  } else {
    encode_tiled(driver, map, encoded);
  }
  int version = 0;
  driver.driver_get_version(&version);
  if (version <= kLastDriverWithSmallTensorFault && footprint(map) < kSmallTensorBytes) {
    encoded.bytes[kSmallTensorByte] &= ~kSmallTensorBit;
  }
  return encoded;
}

}  // namespace tilewright::runtime
