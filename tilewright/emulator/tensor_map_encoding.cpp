// A tensor map of the emulated device: the address, a magic number, then the other fields of the value.
#include "tilewright/emulator/tensor_map_encoding.hpp"

#include <algorithm>
#include <cstring>

namespace tilewright::emulator {
namespace {

/// "2-Tw-mAp". Bit 21 is 0, because CUTLASS clears that bit of the second 64-bit word of the tensor maps that it
/// encodes.
constexpr std::uint64_t kMagic = 0x70416d2d77542d32;
static_assert((kMagic >> 21 & 1) == 0);
/// In the place of kMagic in maps that a kernel has built from zeros.
constexpr std::uint64_t kBuiltMagic = kMagic + 1;
constexpr std::size_t kModes = kMaxTensorMapRank;
constexpr std::size_t kSpatialModes = std::tuple_size_v<decltype(Im2colBox::lower_corner)>;

/// The layout of the 128 bytes.
struct EncodedMap {
  std::uint64_t address;
  std::uint64_t magic;
  std::uint64_t strides[kModes];
  std::uint32_t last[kModes];  // extent - 1, so that 2^32 fits
  std::uint16_t box[kModes];
  std::uint8_t element_strides[kModes];
  std::uint8_t type, rank, swizzle, promotion, fill;
  std::int16_t lower_corner[kSpatialModes];
  std::int16_t upper_corner[kSpatialModes];
  std::uint16_t channels_per_pixel, pixels_per_column;
  std::uint8_t is_im2col;
  std::uint8_t reserved[15];
};
static_assert(sizeof(EncodedMap) == sizeof(EncodedTensorMap));

void encode_im2col(EncodedMap& encoded, const Im2colBox& box) {
  encoded.is_im2col = 1;
  for (std::size_t mode = 0; mode < kSpatialModes; ++mode) {
    encoded.lower_corner[mode] = static_cast<std::int16_t>(box.lower_corner[mode]);
    encoded.upper_corner[mode] = static_cast<std::int16_t>(box.upper_corner[mode]);
  }
  encoded.channels_per_pixel = static_cast<std::uint16_t>(box.channels_per_pixel);
  encoded.pixels_per_column = static_cast<std::uint16_t>(box.pixels_per_column);
}

Im2colBox decode_im2col(const EncodedMap& encoded) {
  Im2colBox box;
  std::ranges::copy(encoded.lower_corner, box.lower_corner.begin());
  std::ranges::copy(encoded.upper_corner, box.upper_corner.begin());
  box.channels_per_pixel = encoded.channels_per_pixel;
  box.pixels_per_column = encoded.pixels_per_column;
  return box;
}

EncodedTensorMap encode(const TensorMap& map, std::uint64_t magic) {
  EncodedMap encoded{};
  encoded.magic = magic;
  encoded.address = map.address;
  for (std::size_t mode = 0; mode < kModes; ++mode) {
    encoded.strides[mode] = map.strides[mode];
    encoded.last[mode] = static_cast<std::uint32_t>(map.extents[mode] - 1);
    encoded.box[mode] = static_cast<std::uint16_t>(map.box[mode]);
    encoded.element_strides[mode] = static_cast<std::uint8_t>(map.element_strides[mode]);
  }
  encoded.type = static_cast<std::uint8_t>(map.type);
  encoded.rank = static_cast<std::uint8_t>(map.rank);
  encoded.swizzle = static_cast<std::uint8_t>(map.swizzle);
  encoded.promotion = static_cast<std::uint8_t>(map.promotion);
  encoded.fill = static_cast<std::uint8_t>(map.fill);
  if (map.im2col) encode_im2col(encoded, *map.im2col);
  EncodedTensorMap result;
  std::memcpy(result.bytes.data(), &encoded, sizeof(encoded));
  return result;
}

TensorMap decode(const EncodedMap& encoded) {
  TensorMap map;
  map.type = static_cast<TensorMapType>(encoded.type);
  map.rank = encoded.rank;
  map.address = encoded.address;
  for (std::size_t mode = 0; mode < kModes; ++mode) {
    map.strides[mode] = encoded.strides[mode];
    map.extents[mode] = std::uint64_t{encoded.last[mode]} + 1;
    map.box[mode] = encoded.box[mode];
    map.element_strides[mode] = encoded.element_strides[mode];
  }
  map.swizzle = static_cast<TensorMapSwizzle>(encoded.swizzle);
  map.promotion = static_cast<TensorMapPromotion>(encoded.promotion);
  map.fill = static_cast<TensorMapFill>(encoded.fill);
  if (encoded.is_im2col != 0) map.im2col = decode_im2col(encoded);
  return map;
}

/// Sets the fields of the modes beyond the rank to the values that they have in a default TensorMap.
void clear_unused_modes(TensorMap& map) {
  const TensorMap empty;
  for (auto mode = static_cast<std::size_t>(map.rank); mode < kModes; ++mode) {
    map.strides[mode] = empty.strides[mode];
    map.extents[mode] = empty.extents[mode];
    map.box[mode] = empty.box[mode];
    map.element_strides[mode] = empty.element_strides[mode];
  }
}

}  // namespace

EncodedTensorMap encode_tensor_map(const TensorMap& map) { return encode(map, kMagic); }

Result<TensorMap> decode_tensor_map(const std::byte* bytes) {
  const std::optional<EditedTensorMap> edited = decode_edited(bytes);
  if (!edited || edited->map.rank > kMaxTensorMapRank) {
    return refuse(
        "it must be encoded by this device and reach the kernel unchanged, or be a copy of such a one or of "
        "zeros, changed by tensormap.replace");
  }
  TensorMap map = edited->map;
  if (Support valid = check(map); !valid) return valid.refusal();
  clear_unused_modes(map);
  return map;
}

std::optional<EditedTensorMap> decode_edited(const std::byte* bytes) {
  EncodedMap encoded;
  std::memcpy(&encoded, bytes, sizeof(encoded));
  const bool is_zero = std::all_of(bytes, bytes + sizeof(encoded), [](std::byte each) { return each == std::byte{}; });
  if (!is_zero && encoded.magic != kMagic && encoded.magic != kBuiltMagic) return std::nullopt;
  EditedTensorMap edited{decode(encoded), encoded.magic != kMagic};
  if (is_zero) edited.map.rank = 1;
  return edited;
}

EncodedTensorMap encode_edited(const EditedTensorMap& edited) {
  return encode(edited.map, edited.begun_with_zeros ? kBuiltMagic : kMagic);
}

}  // namespace tilewright::emulator
