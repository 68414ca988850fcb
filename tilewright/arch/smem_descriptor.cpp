// Matrix descriptors: encoding, and recognition of canonical layouts. Sources: PTX ISA, "Matrix Descriptor Format" and
// "Strides" of wgmma; CuTe's make_gmma_desc, which has the same canonical layouts.
#include "tilewright/arch/smem_descriptor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "tilewright/base/error.hpp"
#include "tilewright/layout/algebra.hpp"

namespace tilewright::arch {
namespace {

using layout::Layout;

constexpr std::int64_t kChunkBits = 128;
constexpr std::int64_t kChunkBytes = kChunkBits / 8;
constexpr std::int64_t kFieldBytes = std::int64_t{1} << 18;
constexpr std::int64_t kRows = 8;
constexpr int kInstructionKBits = 256;

/// A bit field of the descriptor.
struct Field {
  int first;
  int bits;
  std::uint64_t ones() const { return (std::uint64_t{1} << bits) - 1; }
  std::uint64_t get(std::uint64_t word) const { return word >> first & ones(); }
  std::uint64_t put(std::uint64_t value) const { return value << first; }
};
constexpr Field kStart{0, 14};
constexpr Field kLeading{16, 14};
constexpr Field kStride{32, 14};
constexpr Field kBaseOffset{49, 3};
constexpr Field kMode{62, 2};

/// The value in the descriptor, by SwizzleMode. The table is its own inverse.
constexpr std::array kDescriptorSwizzle{0, 3, 2, 1};

Support check_field(std::string_view name, std::int64_t bytes) {
  if (bytes >= 0 && bytes < kFieldBytes && bytes % kChunkBytes == 0) return {};
  return refuse("the {} of a descriptor must be a multiple of {} bytes below {}, got {}", name, kChunkBytes,
                kFieldBytes, bytes);
}

Support check_fields(const SmemDescriptor& d) {
  Support support = check_field("start address", d.start_address);
  if (support) support = check_field("leading byte offset", d.leading_byte_offset);
  if (support) support = check_field("stride byte offset", d.stride_byte_offset);
  if (support && (d.base_offset < 0 || d.base_offset > 7))
    return refuse("the base offset of a descriptor must be from 0 to 7, got {}", d.base_offset);
  return support;
}

std::uint64_t chunks(std::int64_t bytes) { return static_cast<std::uint64_t>(bytes / kChunkBytes); }

/// A coalesced mode in units of 16-byte chunks.
struct Chunks {
  std::vector<std::int64_t> extents;
  std::vector<std::int64_t> strides;
};

/// A mode as groups of chunks: the stride in a group, and the stride of groups.
struct SplitMode {
  std::int64_t inner_stride = 0;
  std::int64_t outer_stride = 0;  // 0 if there is one group
};

/// The operand of one instruction in units of 16-byte chunks.
class Operand {
 public:
  Operand(Major major, const Layout& elements, int element_bits)
      : major_(major), elements_(elements), per_chunk_(kChunkBits / element_bits) {}

  /// Sets the leading and stride byte offsets. Refused: a layout that is not canonical for descriptor.mode.
  Support describe(SmemDescriptor& descriptor) {
    Support support = both_to_chunks();
    if (!support) return support;
    return major_ == Major::k ? describe_k_major(descriptor) : describe_mn_major(descriptor);
  }

 private:
  Support both_to_chunks() {
    if (elements_.rank() != 2) return fail("it must have modes (mn, k)", "rank {}", elements_.rank());
    const std::int64_t k_extent = layout::size(elements_.mode(1));
    if (k_extent != 2 * per_chunk_)
      return fail(fmt::format("k must be {} bits wide, {} elements", kInstructionKBits, 2 * per_chunk_), "{}",
                  k_extent);
    Support support = to_chunks(0, major_ == Major::mn);
    if (support) support = to_chunks(1, major_ == Major::k);
    return support;
  }

  Support to_chunks(int i, bool is_major) {
    const Layout mode = layout::coalesce(elements_.mode(i));
    const std::vector<std::int64_t> extents = leaves(mode.shape());
    const std::vector<std::int64_t> strides = leaves(mode.stride());
    Chunks& chunks = chunks_[static_cast<std::size_t>(i)];
    for (std::size_t leaf = 0; leaf < extents.size(); ++leaf) {
      const bool contiguous = is_major && leaf == 0;
      if (contiguous && (strides[leaf] != 1 || extents[leaf] % per_chunk_ != 0))
        return fail(fmt::format("16 bytes ({} elements) must be contiguous along {}", per_chunk_, i == 1 ? "k" : "mn"),
                    "{}:{}", extents[leaf], strides[leaf]);
      if (!contiguous && extents[leaf] > 1 && strides[leaf] % per_chunk_ != 0)
        return fail(fmt::format("other strides must be multiples of 16 bytes ({} elements)", per_chunk_), "{}:{}",
                    extents[leaf], strides[leaf]);
      const std::int64_t extent = contiguous ? extents[leaf] / per_chunk_ : extents[leaf];
      if (extent == 1) continue;
      chunks.extents.push_back(extent);
      chunks.strides.push_back(contiguous ? 1 : strides[leaf] / per_chunk_);
    }
    return {};
  }

  Support describe_k_major(SmemDescriptor& descriptor) const {
    const std::int64_t width = width_bytes(descriptor.mode) / kChunkBytes;
    SplitMode rows;
    Support support = split("mn", chunks_[0], kRows, rows);
    if (!support) return support;
    if (rows.inner_stride != width)
      return fail(fmt::format("rows must be {} bytes apart", width * kChunkBytes), "{}",
                  rows.inner_stride * kChunkBytes);
    const bool swizzled = descriptor.mode != SwizzleMode::none;
    const std::int64_t next_chunk = chunks_[1].strides.front();
    if (swizzled && next_chunk != 1)
      return fail("the two 16-byte chunks of k must be adjacent", "{} bytes apart", next_chunk * kChunkBytes);
    descriptor.leading_byte_offset = next_chunk * kChunkBytes;
    descriptor.stride_byte_offset = rows.outer_stride * kChunkBytes;
    return {};
  }

  Support describe_mn_major(SmemDescriptor& descriptor) const {
    const std::int64_t width = width_bytes(descriptor.mode) / kChunkBytes;
    SplitMode row;
    SplitMode ks;
    Support support = split("mn", chunks_[0], width, row);
    if (support) support = split("k", chunks_[1], kRows, ks);
    if (!support) return support;
    if (ks.inner_stride != width)
      return fail(fmt::format("steps of k must be {} bytes apart", width * kChunkBytes), "{}",
                  ks.inner_stride * kChunkBytes);
    if (descriptor.mode == SwizzleMode::none) std::swap(row.outer_stride, ks.outer_stride);
    if (descriptor.mode != SwizzleMode::none && row.inner_stride != 1)
      return fail(fmt::format("{} bytes along mn must be contiguous", width * kChunkBytes), "chunks {} bytes apart",
                  row.inner_stride * kChunkBytes);
    descriptor.leading_byte_offset = row.outer_stride * kChunkBytes;
    descriptor.stride_byte_offset = ks.outer_stride * kChunkBytes;
    return {};
  }

  Support split(const char* mode_name, const Chunks& mode, std::int64_t inner, SplitMode& result) const {
    const std::size_t leaves = mode.extents.size();
    if (leaves == 0 && inner == 1) return {};
    if (leaves == 1 && mode.extents[0] % inner == 0) {
      const bool whole = mode.extents[0] == inner;
      result = {mode.strides[0], whole ? 0 : mode.strides[0] * inner};
      return {};
    }
    if (leaves == 2 && mode.extents[0] == inner) {
      result = {mode.strides[0], mode.strides[1]};
      return {};
    }
    return fail(fmt::format("{} must be groups of {} at one stride", mode_name, inner),
                "({}):({}) in chunks of 16 bytes", fmt::join(mode.extents, ","), fmt::join(mode.strides, ","));
  }

  template <class... Args>
  Refusal fail(const std::string& rule, fmt::format_string<Args...> got, Args&&... args) const {
    return refuse("{} is not a canonical {} operand: {}, got {}", layout::to_string(elements_), name(major_), rule,
                  fmt::format(got, std::forward<Args>(args)...));
  }

  Major major_;
  const Layout& elements_;
  std::int64_t per_chunk_;
  std::array<Chunks, 2> chunks_;
};

}  // namespace

std::uint64_t encode(const SmemDescriptor& descriptor) {
  check_fields(descriptor).or_throw();
  return kStart.put(chunks(descriptor.start_address)) | kLeading.put(chunks(descriptor.leading_byte_offset)) |
         kStride.put(chunks(descriptor.stride_byte_offset)) |
         kBaseOffset.put(static_cast<std::uint64_t>(descriptor.base_offset)) |
         kMode.put(static_cast<std::uint64_t>(descriptor_swizzle(descriptor.mode)));
}

Result<SmemDescriptor> decode(std::uint64_t bits) {
  const auto bytes = [bits](const Field& field) { return static_cast<std::int64_t>(field.get(bits)) * kChunkBytes; };
  const SmemDescriptor descriptor{.start_address = bytes(kStart),
                                  .leading_byte_offset = bytes(kLeading),
                                  .stride_byte_offset = bytes(kStride),
                                  .base_offset = static_cast<int>(kBaseOffset.get(bits)),
                                  .mode = *mode_of_descriptor_swizzle(static_cast<int>(kMode.get(bits)))};
  if (encode(descriptor) != bits)
    return refuse("{:#x} sets reserved bits {:#x} of a descriptor", bits, bits ^ encode(descriptor));
  return descriptor;
}

Result<SmemDescriptor> make_descriptor(Major major, const layout::ComposedLayout& operand, int element_bits,
                                       std::int64_t address) {
  const Result<SwizzleMode> mode = swizzle_mode(operand.swizzle, element_bits);
  if (!mode) return mode.refusal();
  if (element_bits == kChunkBits) return refuse("wgmma has no {}-bit elements", element_bits);
  if (address % base_alignment(*mode) != 0)
    return refuse("the address of a tile with {} must be a multiple of {}, got {}", name(*mode), base_alignment(*mode),
                  address);
  const std::int64_t offset = operand.offset.value();
  if (offset * element_bits % kChunkBits != 0)
    return refuse("an operand must start at a multiple of 16 bytes, got element {} of {} bits", offset, element_bits);
  SmemDescriptor descriptor{.start_address = address + offset * element_bits / 8, .mode = *mode};
  Support support = Operand(major, operand.layout, element_bits).describe(descriptor);
  if (support) support = check_fields(descriptor);
  if (!support) return Refusal{support.reason()};
  return descriptor;
}

int descriptor_swizzle(SwizzleMode mode) { return kDescriptorSwizzle[static_cast<std::size_t>(mode)]; }

Result<SwizzleMode> mode_of_descriptor_swizzle(int value) {
  const auto found = std::find(kDescriptorSwizzle.begin(), kDescriptorSwizzle.end(), value);
  if (found == kDescriptorSwizzle.end())
    return refuse("the swizzle mode of a descriptor must be from 0 to 3, got {}", value);
  return static_cast<SwizzleMode>(found - kDescriptorSwizzle.begin());
}

std::string to_string(const SmemDescriptor& d) {
  return fmt::format("start {:#x}, leading {}, stride {}, {}", d.start_address, d.leading_byte_offset,
                     d.stride_byte_offset, name(d.mode));
}

}  // namespace tilewright::arch
