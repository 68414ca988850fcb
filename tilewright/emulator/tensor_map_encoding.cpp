// The emulated device's tensor map: a mark, then the fields of the description.
#include "tilewright/emulator/tensor_map_form.hpp"

#include <algorithm>
#include <cstring>

namespace tilewright::emulator {
namespace {

using runtime::TensorMapDescription;

constexpr std::uint64_t kMark = 0x70616d2d77742d31;  // "1-tw-map"

/// The 128 bytes. Extents are one less, so that 2^32 fits.
struct Form {
  std::uint64_t mark;
  std::uint64_t address;
  std::uint64_t strides[runtime::kMaxTensorMapRank];
  std::uint32_t last[runtime::kMaxTensorMapRank];
  std::uint16_t box[runtime::kMaxTensorMapRank];
  std::uint8_t element_strides[runtime::kMaxTensorMapRank];
  std::uint8_t type, rank, swizzle, promotion, fill;
  std::uint8_t reserved[32];
};
static_assert(sizeof(Form) == sizeof(runtime::TensorMap));

}  // namespace

runtime::TensorMap write_tensor_map(const TensorMapDescription& d) {
  Form form{};
  form.mark = kMark;
  form.address = d.address;
  for (std::size_t mode = 0; mode < static_cast<std::size_t>(d.rank); ++mode) {
    form.strides[mode] = d.strides[mode];
    form.last[mode] = static_cast<std::uint32_t>(d.extents[mode] - 1);
    form.box[mode] = static_cast<std::uint16_t>(d.box[mode]);
    form.element_strides[mode] = static_cast<std::uint8_t>(mode == 0 ? 1 : d.element_strides[mode]);
  }
  form.type = static_cast<std::uint8_t>(d.type);
  form.rank = static_cast<std::uint8_t>(d.rank);
  form.swizzle = static_cast<std::uint8_t>(d.swizzle);
  form.promotion = static_cast<std::uint8_t>(d.promotion);
  form.fill = static_cast<std::uint8_t>(d.fill);
  runtime::TensorMap map;
  std::memcpy(map.bytes.data(), &form, sizeof(form));
  return map;
}

std::optional<TensorMapDescription> read_tensor_map(const std::byte* bytes) {
  Form form;
  std::memcpy(&form, bytes, sizeof(form));
  if (form.mark != kMark) return std::nullopt;
  TensorMapDescription d;
  d.type = static_cast<runtime::TensorMapType>(form.type);
  d.rank = form.rank;
  d.address = form.address;
  for (std::size_t mode = 0; mode < runtime::kMaxTensorMapRank; ++mode) {
    d.strides[mode] = form.strides[mode];
    d.extents[mode] = std::uint64_t{form.last[mode]} + 1;
    d.box[mode] = form.box[mode];
    d.element_strides[mode] = form.element_strides[mode];
  }
  d.swizzle = static_cast<runtime::TensorMapSwizzle>(form.swizzle);
  d.promotion = static_cast<runtime::TensorMapPromotion>(form.promotion);
  d.fill = static_cast<runtime::TensorMapFill>(form.fill);
  if (!runtime::check(d)) return std::nullopt;
  return d;
}

}  // namespace tilewright::emulator
