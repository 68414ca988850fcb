// A tensor map of the emulated device: a magic number, then the fields of the description.
#include "tilewright/emulator/tensor_map_encoding.hpp"

#include <algorithm>
#include <cstring>

namespace tilewright::emulator {
namespace {

using runtime::TensorMapDescription;

constexpr std::uint64_t kMagic = 0x70616d2d77742d31;  // "1-tw-map"

/// The layout of the 128 bytes.
struct EncodedMap {
  std::uint64_t magic;
  std::uint64_t address;
  std::uint64_t strides[runtime::kMaxTensorMapRank];
  std::uint32_t last[runtime::kMaxTensorMapRank];  // extent - 1, so that 2^32 fits
  std::uint16_t box[runtime::kMaxTensorMapRank];
  std::uint8_t element_strides[runtime::kMaxTensorMapRank];
  std::uint8_t type, rank, swizzle, promotion, fill;
  std::uint8_t reserved[32];
};
static_assert(sizeof(EncodedMap) == sizeof(runtime::TensorMap));

}  // namespace

runtime::TensorMap encode_tensor_map(const TensorMapDescription& d) {
  EncodedMap encoded{};
  encoded.magic = kMagic;
  encoded.address = d.address;
  for (std::size_t mode = 0; mode < static_cast<std::size_t>(d.rank); ++mode) {
    encoded.strides[mode] = d.strides[mode];
    encoded.last[mode] = static_cast<std::uint32_t>(d.extents[mode] - 1);
    encoded.box[mode] = static_cast<std::uint16_t>(d.box[mode]);
    encoded.element_strides[mode] = static_cast<std::uint8_t>(mode == 0 ? 1 : d.element_strides[mode]);
  }
  encoded.type = static_cast<std::uint8_t>(d.type);
  encoded.rank = static_cast<std::uint8_t>(d.rank);
  encoded.swizzle = static_cast<std::uint8_t>(d.swizzle);
  encoded.promotion = static_cast<std::uint8_t>(d.promotion);
  encoded.fill = static_cast<std::uint8_t>(d.fill);
  runtime::TensorMap map;
  std::memcpy(map.bytes.data(), &encoded, sizeof(encoded));
  return map;
}

std::optional<TensorMapDescription> decode_tensor_map(const std::byte* bytes) {
  EncodedMap encoded;
  std::memcpy(&encoded, bytes, sizeof(encoded));
  if (encoded.magic != kMagic) return std::nullopt;
  TensorMapDescription d;
  d.type = static_cast<runtime::TensorMapType>(encoded.type);
  d.rank = encoded.rank;
  d.address = encoded.address;
  for (std::size_t mode = 0; mode < runtime::kMaxTensorMapRank; ++mode) {
    d.strides[mode] = encoded.strides[mode];
    d.extents[mode] = std::uint64_t{encoded.last[mode]} + 1;
    d.box[mode] = encoded.box[mode];
    d.element_strides[mode] = encoded.element_strides[mode];
  }
  d.swizzle = static_cast<runtime::TensorMapSwizzle>(encoded.swizzle);
  d.promotion = static_cast<runtime::TensorMapPromotion>(encoded.promotion);
  d.fill = static_cast<runtime::TensorMapFill>(encoded.fill);
  if (!runtime::check(d)) return std::nullopt;
  return d;
}

}  // namespace tilewright::emulator
