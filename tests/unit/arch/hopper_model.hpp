// Models of the hardware, written from the PTX ISA independently of the layouts under test: wgmma's reads of shared
// memory through a descriptor, and TMA's copies of boxes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <vector>

namespace tilewright::arch::model {

/// The value of memory that no copy has written.
inline constexpr std::int64_t kUnwritten = -1;

/// The swizzles of "Swizzling Modes": 16-byte chunks are permuted within rows of `width` bytes by address bits from bit
/// 7 on.
inline std::int64_t swizzled(std::int64_t address, int width) {
  switch (width) {
    case 32:
      return address ^ ((address >> 7 & 1) << 4);
    case 64:
      return address ^ ((address >> 7 & 3) << 4);
    case 128:
      return address ^ ((address >> 7 & 7) << 4);
    default:
      return address;
  }
}

/// Shared memory with one value for each element, addressed in bytes.
class SharedMemory {
 public:
  SharedMemory(std::int64_t bytes, int element_bytes)
      : element_bytes_(element_bytes), values_(static_cast<std::size_t>(bytes / element_bytes), kUnwritten) {}

  std::int64_t& at(std::int64_t address) {
    if (address < 0 || address % element_bytes_ != 0) throw std::out_of_range("misaligned element");
    return values_.at(static_cast<std::size_t>(address / element_bytes_));
  }
  int element_bytes() const { return element_bytes_; }

 private:
  int element_bytes_;
  std::vector<std::int64_t> values_;
};

/// The fields of "Matrix Descriptor Format".
struct DescriptorFields {
  std::int64_t start, leading, stride;
  int base_offset, width;

  explicit DescriptorFields(std::uint64_t bits)
      : start(static_cast<std::int64_t>(bits & 0x3FFF) * 16),
        leading(static_cast<std::int64_t>(bits >> 16 & 0x3FFF) * 16),
        stride(static_cast<std::int64_t>(bits >> 32 & 0x3FFF) * 16),
        base_offset(static_cast<int>(bits >> 49 & 7)) {
    constexpr int widths[] = {16, 128, 64, 32};
    width = widths[bits >> 62];
  }
};

/// Element (row, k) of the operand of one wgmma, where k is 32 bytes wide: "Shared Memory Matrix Layout". Core matrices
/// are 8 x 16 bytes; with a swizzle, eight rows of `width` bytes form an atom.
inline std::int64_t read_operand(SharedMemory& smem, std::uint64_t bits, bool k_major, std::int64_t row,
                                 std::int64_t k) {
  const DescriptorFields d(bits);
  if (d.base_offset != 0) throw std::logic_error("the model has no base offset");
  const std::int64_t along = (k_major ? k : row) * smem.element_bytes();  // bytes in the contiguous direction
  const std::int64_t across = k_major ? row : k;
  std::int64_t address = d.start;
  if (d.width == 16) {
    address += across % 8 * 16 + along % 16;
    address +=
        k_major ? across / 8 * d.stride + along / 16 * d.leading : across / 8 * d.leading + along / 16 * d.stride;
  } else if (k_major) {
    address += across / 8 * d.stride + across % 8 * d.width + along;
  } else {
    address += across / 8 * d.stride + across % 8 * d.width + along / d.width * d.leading + along % d.width;
  }
  return smem.at(swizzled(address, d.width));
}

/// A tensor map: "Tensors", "Tensor Access Modes" (tiled). Extents and box innermost first; strides of modes 1 and up.
struct TensorMap {
  std::vector<std::int64_t> extents;
  std::vector<std::int64_t> strides_bytes;
  std::vector<std::int64_t> box;
  int width = 16;
};

/// One element of a box: its byte offset in global memory, unless it is out of bounds, and its address in shared
/// memory.
struct BoxElement {
  std::int64_t global_address;
  bool inside;
  std::int64_t shared_address;
};

/// Calls visit(BoxElement) for the elements of the box at `coordinate`. In shared memory the box is compact from
/// `address` on, and swizzled by address bits.
template <class Visit>
void for_each_box_element(const TensorMap& map, const std::vector<std::int64_t>& coordinate, std::int64_t address,
                          int element_bytes, Visit&& visit) {
  if (address % 128 != 0) throw std::logic_error("a box starts at a multiple of 128 bytes");
  if (map.box.size() != map.extents.size() || coordinate.size() != map.extents.size())
    throw std::logic_error("ranks differ");
  std::vector<std::int64_t> place(map.box.size(), 0);
  for (std::int64_t linear = 0;; ++linear) {
    BoxElement element{0, true, swizzled(address + linear * element_bytes, map.width)};
    for (std::size_t i = 0; i < place.size(); ++i) {
      const std::int64_t at = coordinate[i] + place[i];
      element.inside = element.inside && at >= 0 && at < map.extents[i];
      element.global_address += at * (i == 0 ? element_bytes : map.strides_bytes[i - 1]);
    }
    visit(element);
    std::size_t mode = 0;
    while (mode < place.size() && ++place[mode] == map.box[mode]) place[mode++] = 0;
    if (mode == place.size()) return;
  }
}

/// Copies global memory to shared memory, with zeros out of bounds.
template <class GlobalValue>
void tma_load(const TensorMap& map, const std::vector<std::int64_t>& coordinate, std::int64_t address,
              SharedMemory& smem, GlobalValue&& global_value) {
  for_each_box_element(map, coordinate, address, smem.element_bytes(), [&](const BoxElement& element) {
    smem.at(element.shared_address) = element.inside ? global_value(element.global_address) : 0;
  });
}

/// Copies shared memory to global memory; out-of-bounds elements are not written.
template <class Write>
void tma_store(const TensorMap& map, const std::vector<std::int64_t>& coordinate, std::int64_t address,
               SharedMemory& smem, Write&& write) {
  for_each_box_element(map, coordinate, address, smem.element_bytes(), [&](const BoxElement& element) {
    if (element.inside) write(element.global_address, smem.at(element.shared_address));
  });
}

}  // namespace tilewright::arch::model
