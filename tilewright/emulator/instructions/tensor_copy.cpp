// cp.async.bulk.tensor in .tile and .im2col mode, and cp.reduce.async.bulk.tensor in .tile mode.
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "tilewright/emulator/instructions/async_copy.hpp"
#include "tilewright/emulator/instructions/instruction_set.hpp"
#include "tilewright/emulator/instructions/lanes.hpp"
#include "tilewright/emulator/instructions/shared_matrix.hpp"
#include "tilewright/emulator/tensor_map_encoding.hpp"
#include "tilewright/emulator/written_tensor_maps.hpp"

namespace tilewright::emulator {
namespace {

constexpr std::uint32_t kChunk = 16;
constexpr std::uint32_t kBoxAlignment = 128;
constexpr std::size_t kMaxRowBytes = 256 * 8;

/// A row of the box along mode 0. Its elements [first, first + count) are inside the tensor.
struct BoxRow {
  std::uint32_t offset = 0;   // from the box's start in shared memory, before the swizzle
  std::uint64_t address = 0;  // of element `first` in global memory
  std::uint32_t first = 0;
  std::uint32_t count = 0;
};

/// The box of one copy: the tensor map, and the coordinates of the box's first element. In .im2col mode its rows are
/// the channels of pixels.
class Box {
 public:
  /// `offsets` are those of the taps in .im2col mode, W first; null in the other modes, where taps have no offsets.
  Box(Warp& warp, const Instruction& in, int lane, std::size_t map_address, const Slot* coordinates, int rank,
      bool is_im2col, const Slot* offsets = nullptr) {
    LanePointers at;
    resolve(warp, in, Mask{1} << lane, Space::generic, map_address, AccessSize{sizeof(EncodedTensorMap), 64},
            AccessKind::unshadowed, at);
    map_address_ = at.address[lane];
    warp.cta().launch().tensor_maps->check_acquired(warp, in, lane, map_address_);
    const auto map = decode_tensor_map(at.at[lane]);
    if (!map) {
      warp.fail(FindingKind::bad_descriptor, in, lane, at.address[lane],
                fmt::format("no valid tensor map at address {:#x}: {}", at.address[lane], map.reason()));
    }
    if (map->rank != rank) {
      warp.fail(FindingKind::bad_descriptor, in, lane, at.address[lane],
                fmt::format("a {}d copy with a tensor map of rank {}", rank, map->rank));
    }
    if (map->im2col.has_value() != is_im2col) {
      warp.fail(FindingKind::bad_descriptor, in, lane, at.address[lane],
                map->im2col ? "a copy in .tile mode with an im2col map" : "a copy in .im2col mode with a tiled map");
    }
    map_ = *map;
    for (std::size_t mode = 0; mode < static_cast<std::size_t>(rank); ++mode) {
      start_[mode] = warp.reg<std::int32_t>(coordinates[mode])[lane];
    }
    check_first_mode(warp, in, lane);
    if (!map_.im2col) return;
    map_.box[0] = map_.im2col->channels_per_pixel;
    for (std::size_t mode = 1; mode + 1 < static_cast<std::size_t>(rank); ++mode) {
      if (offsets != nullptr) offsets_[mode] = warp.reg<std::uint16_t>(offsets[mode - 1])[lane];
      check_start(warp, in, lane, mode);
    }
  }

  /// A tiled store that starts before the tensor in mode 0 is an illegal instruction on an H200 (measured 2026-11-26: a
  /// copy of bf16 from coordinate -8, which is byte -16), although a load from there is legal. The PTX ISA does not say
  /// it. Reductions, im2col stores and the other modes were not tried and are not refused.
  void check_store_start(Warp& warp, const Instruction& in, int lane) const {
    if (start_[0] >= 0) return;
    warp.fail(FindingKind::bad_descriptor, in, lane, map_address_,
              fmt::format("a tensor store that starts at coordinate {} of mode 0: it must not be negative", start_[0]));
  }

  /// An im2col store whose bounding box ends behind the tensor is an illegal instruction on an H200 (measured
  /// 2026-11-26), although a load with that box is legal. The PTX ISA does not say it.
  void check_store_corners(Warp& warp, const Instruction& in, int lane) const {
    if (!map_.im2col) return;
    for (std::size_t mode = 1; mode + 1 < static_cast<std::size_t>(map_.rank); ++mode) {
      const std::int64_t beyond = map_.im2col->upper_corner[mode - 1];
      if (beyond <= 0) continue;
      warp.fail(FindingKind::bad_descriptor, in, lane, map_address_,
                fmt::format("an im2col store whose bounding box ends {} pixels behind the tensor in mode {}: it must "
                            "not end behind it",
                            beyond, mode));
    }
  }

  const TensorMap& map() const { return map_; }
  std::uint64_t map_address() const { return map_address_; }
  /// Bytes of the box, which are also the bytes of complete_tx.
  std::uint32_t bytes() const { return static_cast<std::uint32_t>(box_bytes(map_)); }
  std::uint32_t row_bytes() const { return map_.box[0] * element_bytes(); }
  /// Distance of rows in shared memory; at least the swizzle width, even for narrower rows (measured on an H200).
  std::uint32_t row_pitch() const { return std::max(row_bytes(), static_cast<std::uint32_t>(width(map_.swizzle))); }
  std::uint32_t rows() const { return bytes() / row_bytes(); }
  /// Bytes of shared memory from the first row to the end of the last one.
  std::uint32_t shared_bytes() const { return (rows() - 1) * row_pitch() + row_bytes(); }
  std::uint32_t element_bytes() const { return static_cast<std::uint32_t>(tilewright::bytes(map_.type)); }

  /// Calls f(row) for each row of the box, in the order they lie in shared memory.
  template <class F>
  void each_row(F&& f) const {
    if (map_.im2col) return each_pixel(f);
    std::array<std::uint32_t, kMaxTensorMapRank> at{};
    const auto rank = static_cast<std::size_t>(map_.rank);
    for (std::uint32_t i = 0; i < rows(); ++i) {
      f(row(i * row_pitch(), at));
      for (std::size_t mode = 1; mode < rank; ++mode) {
        if (++at[mode] < box_elements(map_, static_cast<int>(mode))) break;
        at[mode] = 0;
      }
    }
  }

 private:
  // The bounding box of the pixels, to which the offsets of taps are added, along a spatial mode.
  std::int64_t lower(std::size_t mode) const { return map_.im2col->lower_corner[mode - 1]; }
  std::int64_t upper(std::size_t mode) const {
    return static_cast<std::int64_t>(map_.extents[mode]) + map_.im2col->upper_corner[mode - 1];
  }

  /// The PTX ISA does not say it, but an H100 and an H200 raise an illegal instruction at any other coordinate, in all
  /// modes and with all swizzles (2026-11-26).
  void check_first_mode(Warp& warp, const Instruction& in, int lane) const {
    constexpr std::int64_t kBytes = 16;
    const std::int64_t at = start_[0] * element_bytes();
    if (at % kBytes == 0) return;
    warp.fail(
        FindingKind::bad_descriptor, in, lane, map_address_,
        fmt::format("a tensor copy that starts at coordinate {} of mode 0, which is byte {}: it must be a multiple "
                    "of {} bytes",
                    start_[0], at, kBytes));
  }

  /// PTX ISA, "Tensor im2col mode": the coordinates must be in the bounding box. From a start between the pixels that
  /// steps from the lower corner visit, the first row of pixels would have another length than the others.
  void check_start(Warp& warp, const Instruction& in, int lane, std::size_t mode) const {
    const std::int64_t from = start_[mode] - lower(mode);
    const bool is_inside = from >= 0 && start_[mode] < upper(mode);
    if (is_inside && from % map_.element_strides[mode] == 0) return;
    warp.fail(
        FindingKind::bad_descriptor, in, lane, map_address_,
        fmt::format("an im2col copy that starts at coordinate {} of mode {}, but pixels are from {} to {}, {} apart",
                    start_[mode], mode, lower(mode), upper(mode) - 1, map_.element_strides[mode]));
  }

  /// Calls f(row) for the pixels in the order of the walk: W first, then H and D within the bounding box, then N.
  template <class F>
  void each_pixel(F&& f) const {
    const auto images = static_cast<std::size_t>(map_.rank) - 1;
    std::array<std::int64_t, kMaxTensorMapRank> at = start_;
    for (std::uint32_t i = 0; i < map_.im2col->pixels_per_column; ++i) {
      std::array<std::int64_t, kMaxTensorMapRank> pixel = at;
      for (std::size_t mode = 1; mode < images; ++mode) pixel[mode] += offsets_[mode];
      f(row_at(i * row_pitch(), pixel));
      std::size_t mode = 1;
      for (; mode < images; ++mode) {
        at[mode] += map_.element_strides[mode];
        if (at[mode] < upper(mode)) break;
        at[mode] = lower(mode);
      }
      if (mode == images) at[images] += map_.element_strides[images];
    }
  }

  BoxRow row(std::uint32_t offset, const std::array<std::uint32_t, kMaxTensorMapRank>& at) const {
    std::array<std::int64_t, kMaxTensorMapRank> coordinates = start_;
    for (std::size_t mode = 1; mode < static_cast<std::size_t>(map_.rank); ++mode)
      coordinates[mode] += std::int64_t{at[mode]} * map_.element_strides[mode];
    return row_at(offset, coordinates);
  }

  /// The row that begins at these coordinates.
  BoxRow row_at(std::uint32_t offset, const std::array<std::int64_t, kMaxTensorMapRank>& at) const {
    BoxRow row{offset, map_.address, 0, 0};
    for (std::size_t mode = 1; mode < static_cast<std::size_t>(map_.rank); ++mode) {
      const std::int64_t coordinate = at[mode];
      if (coordinate < 0 || static_cast<std::uint64_t>(coordinate) >= map_.extents[mode]) return row;
      row.address += static_cast<std::uint64_t>(coordinate) * map_.strides[mode];
    }
    const std::int64_t begin = std::max<std::int64_t>(start_[0], 0);
    const std::int64_t end =
        std::min(start_[0] + std::int64_t{map_.box[0]}, static_cast<std::int64_t>(map_.extents[0]));
    if (begin >= end) return row;
    row.first = static_cast<std::uint32_t>(begin - start_[0]);
    row.count = static_cast<std::uint32_t>(end - begin);
    row.address += static_cast<std::uint64_t>(begin) * element_bytes();
    return row;
  }

  TensorMap map_;
  std::uint64_t map_address_ = 0;
  std::array<std::int64_t, kMaxTensorMapRank> start_{};
  std::array<std::int64_t, kMaxTensorMapRank> offsets_{};  // of the tap, by mode
};

/// Calls f(swizzled shared address, offset in the row) for each 16-byte chunk of a row.
template <class F>
void each_chunk(const Box& box, std::uint32_t base, const BoxRow& row, F&& f) {
  const auto span = static_cast<std::uint32_t>(std::max(width(box.map().swizzle), int{kChunk}));
  for (std::uint32_t at = 0; at < box.row_bytes(); at += kChunk) f(swizzled(base + row.offset + at, span), at);
}

/// Fills the elements outside the tensor: zeros, or a NaN of which every 16 bits are 0x7ff7 (measured on an H200).
void fill_row(const Box& box, std::byte* row) {
  const bool nan = box.map().fill == TensorMapFill::nan;
  for (std::uint32_t i = 0; i < box.row_bytes(); i += 2) {
    row[i] = nan ? std::byte{0xf7} : std::byte{0};
    row[i + 1] = nan ? std::byte{0x7f} : std::byte{0};
  }
}

/// Loads of tf32 round as cvt.rn.tf32.f32 does; the _ftz type does the same (measured on an H200).
void round_row(const Box& box, const BoxRow& part, std::byte* row) {
  if (box.map().type != TensorMapType::tf32 && box.map().type != TensorMapType::tf32_ftz) return;
  for (std::uint32_t i = part.first; i < part.first + part.count; ++i) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, row + 4 * i, 4);
    const bool nan = (bits & 0x7fffffffU) > 0x7f800000U;
    bits = nan ? 0x7fffe000U : (bits + 0xfffU + ((bits >> 13) & 1U)) & 0xffffe000U;
    std::memcpy(row + 4 * i, &bits, 4);
  }
}

void load_box(AsyncCopy& copy, const Box& box, const SharedLocation& to) {
  copy.use_tensor_map(box.map_address());
  std::byte row[kMaxRowBytes];
  box.each_row([&](const BoxRow& part) {
    if (part.count < box.map().box[0]) fill_row(box, row);
    if (part.count != 0) {
      const std::uint32_t bytes = part.count * box.element_bytes();
      std::memcpy(row + part.first * box.element_bytes(), copy.read_global(part.address, bytes, "bulk tensor read"),
                  bytes);
      round_row(box, part, row);
    }
    each_chunk(box, to.address, part, [&](std::uint32_t address, std::uint32_t at) {
      copy.write_shared({to.cta, address}, row + at, kChunk);
      // The part of the chunk that is inside the tensor.
      const std::uint32_t begin = std::max(at, part.first * box.element_bytes());
      const std::uint32_t end = std::min(at + kChunk, (part.first + part.count) * box.element_bytes());
      if (begin < end) {
        copy.follow_undefined({to.cta, address + (begin - at)},
                              part.address + (begin - part.first * box.element_bytes()), end - begin);
      }
    });
  });
}

constexpr std::uint8_t kMulticast = 1, kIm2col = 2;

/// Operands: destination, tensor map and coordinates, mbarrier, offsets in .im2col mode, CTA mask. element_bytes: the
/// rank; mode: kMulticast, kIm2col.
void execute_load(Warp& warp, const Instruction& in, Mask lanes) {
  const int rank = in.element_bytes;
  const bool is_im2col = (in.mode & kIm2col) != 0;
  const Slot* const after_barrier = in.op + in.address[2].operand + 1;
  for (; lanes != 0; lanes &= lanes - 1) {
    const int lane = std::countr_zero(lanes);
    const Box box(warp, in, lane, 1, in.op + in.address[1].operand + 1, rank, is_im2col,
                  is_im2col ? after_barrier : nullptr);
    const SharedLocation to =
        resolve_shared_location(warp, in, lane, 0, {box.shared_bytes(), kBoxAlignment}, "bulk tensor write");
    const MbarrierObject at = find_mbarrier(warp, in, lane, 2);
    Profile* const profile = warp.cta().launch().profile;
    if ((in.mode & kMulticast) == 0) {
      if (profile != nullptr) profile->count_bulk_load(warp.code_index(in), box.bytes(), 1);
      AsyncCopy copy(warp, in, lane, at.barrier);
      load_box(copy, box, to);
      complete_on(warp, in, lane, at, box.bytes());
      continue;
    }
    std::uint32_t mask = warp.reg<std::uint16_t>(after_barrier[is_im2col ? rank - 2 : 0])[lane];
    check_multicast(warp, in, lane, mask);
    if (profile != nullptr) profile->count_bulk_load(warp.code_index(in), box.bytes(), std::popcount(mask));
    for (; mask != 0; mask &= mask - 1) {
      Cta& cta = warp.cta().cluster().cta(std::countr_zero(mask));
      const MbarrierObject there = find_mbarrier(warp, in, lane, SharedLocation{&cta, at.location.address});
      AsyncCopy copy(warp, in, lane, there.barrier);
      load_box(copy, box, {&cta, to.address});
      complete_on(warp, in, lane, there, box.bytes());
    }
  }
}

PtxType element_type(TensorMapType type) {
  static constexpr PtxType kTypes[] = {PtxType::u8,  PtxType::u16, PtxType::u32, PtxType::s32, PtxType::u64,
                                       PtxType::s64, PtxType::f16, PtxType::f32, PtxType::f64, PtxType::bf16,
                                       PtxType::f32, PtxType::f32, PtxType::f32};
  return kTypes[static_cast<std::size_t>(type)];
}

constexpr std::uint8_t kStoresIm2col = 0x80;

/// Operands: tensor map and coordinates, source. element_bytes: the rank; mode: kStoresIm2col, and 0 for a copy, else
/// the Reduction + 1.
void execute_store(Warp& warp, const Instruction& in, Mask lanes) {
  for (; lanes != 0; lanes &= lanes - 1) {
    const int lane = std::countr_zero(lanes);
    const Box box(warp, in, lane, 0, in.op + in.address[0].operand + 1, in.element_bytes,
                  (in.mode & kStoresIm2col) != 0);
    const int reduction = in.mode & ~kStoresIm2col;
    if (in.mode == 0) box.check_store_start(warp, in, lane);
    box.check_store_corners(warp, in, lane);
    const SharedLocation from =
        resolve_shared_location(warp, in, lane, 1, {box.shared_bytes(), kBoxAlignment}, "bulk tensor read");
    ReduceElement reduce = nullptr;
    if (reduction != 0) {
      reduce = find_reduction(element_type(box.map().type), static_cast<Reduction>(reduction - 1));
      if (reduce == nullptr) {
        warp.fail(FindingKind::bad_descriptor, in, lane, 0,
                  fmt::format("a reduction that is not defined for the tensor map's type {}", name(box.map().type)));
      }
    }
    AsyncCopy copy(warp, in, lane);
    copy.use_tensor_map(box.map_address());
    std::byte row[kMaxRowBytes];
    std::uint64_t written = 0;
    box.each_row([&](const BoxRow& part) {
      if (part.count == 0) return;
      // Elements outside of the tensor are not read.
      const std::uint32_t begin = part.first * box.element_bytes();
      const std::uint32_t end = begin + part.count * box.element_bytes();
      each_chunk(box, from.address, part, [&](std::uint32_t address, std::uint32_t at) {
        const std::uint32_t low = std::max(at, begin);
        const std::uint32_t high = std::min(at + kChunk, end);
        if (low >= high) return;
        std::memcpy(row + low, copy.read_shared({from.cta, address + (low - at)}, high - low), high - low);
      });
      const std::uint32_t bytes = part.count * box.element_bytes();
      const std::byte* const source = row + part.first * box.element_bytes();
      std::byte* const memory = copy.write_global(part.address, bytes, "bulk tensor write", reduce != nullptr);
      written += bytes;
      if (reduce == nullptr) {
        std::memcpy(memory, source, bytes);
        return;
      }
      for (std::uint32_t i = 0; i < bytes; i += box.element_bytes()) reduce(memory + i, source + i);
    });
    if (Profile* const profile = warp.cta().launch().profile) profile->count_bulk_store(warp.code_index(in), written);
  }
}

// Decoders ---------------------------------------------------------------------------------------------------------

int take_rank(InstructionReader& reader) {
  const int rank = reader.take_one_of({"1d", "2d", "3d", "4d", "5d"}) + 1;
  if (rank == 0) reader.refuse("a tensor of this rank");
  reader.out().element_bytes = static_cast<std::uint8_t>(rank);
  return rank;
}

void take_tensor(InstructionReader& reader, const Operand& operand, int rank) {
  if (reader.tensor_address(operand) != static_cast<std::size_t>(rank)) {
    reader.refuse(fmt::format("a {}d copy with another number of coordinates", rank));
  }
}

/// The offsets of taps of a copy in .im2col mode, one for each spatial mode.
void take_offsets(InstructionReader& reader, const Operand& operand, int rank) {
  const std::vector<Operand> offsets = reader.elements(operand);
  if (rank < 3 || offsets.size() != static_cast<std::size_t>(rank) - 2)
    reader.refuse(fmt::format("a {}d copy in .im2col mode with {} offsets", rank, offsets.size()));
  for (const Operand& offset : offsets) reader.source(offset, PtxType::u16);
}

void decode_load(InstructionReader& reader, int rank, std::size_t hints) {
  const bool is_im2col = reader.take("im2col");
  if (!is_im2col) reader.take("tile");
  if (!reader.take("mbarrier::complete_tx::bytes"))
    reader.refuse("a tensor load without .mbarrier::complete_tx::bytes");
  const bool multicast = reader.take("multicast::cluster");
  reader.finish();
  const std::size_t offsets = is_im2col ? 1 : 0;
  reader.expect_operands(3 + offsets + (multicast ? 1U : 0U) + hints);
  reader.address(reader.operand(0), Space::generic);
  take_tensor(reader, reader.operand(1), rank);
  reader.address(reader.operand(2), Space::generic);
  if (is_im2col) take_offsets(reader, reader.operand(3), rank);
  if (multicast) reader.source(reader.operand(3 + offsets), PtxType::b16);
  reader.out().mode = static_cast<std::uint8_t>((multicast ? kMulticast : 0) | (is_im2col ? kIm2col : 0));
  reader.out().execute = &execute_load;
}

void decode_store(InstructionReader& reader, int rank, std::size_t hints) {
  const bool is_im2col = reader.take("im2col_no_offs");
  if (is_im2col && rank < 3) reader.refuse(fmt::format("a {}d copy in .im2col_no_offs mode", rank));
  if (!is_im2col) reader.take("tile");
  if (!reader.take("bulk_group")) reader.refuse("a tensor store without .bulk_group");
  reader.finish();
  reader.out().mode = is_im2col ? kStoresIm2col : std::uint8_t{0};
  reader.expect_operands(2 + hints);
  take_tensor(reader, reader.operand(0), rank);
  reader.address(reader.operand(1), Space::generic);
  reader.out().execute = &execute_store;
}

/// The first state space is the destination's.
void decode_copy(InstructionReader& reader) {
  const int rank = take_rank(reader);
  const std::size_t hints = reader.take("L2::cache_hint") ? 1 : 0;
  if (!reader.take("global")) reader.refuse("a tensor copy between these state spaces");
  const bool cluster = reader.take("shared::cluster");
  if (!cluster && !reader.take("shared::cta")) reader.refuse("a tensor copy between these state spaces");
  // A load's first operand is a shared address, a store's is the tensor map with its coordinates.
  const bool loads = reader.operand(0).kind == Operand::Kind::address && reader.operand(0).elements.size() == 1;
  return loads ? decode_load(reader, rank, hints) : decode_store(reader, rank, hints);
}

void decode_reduce(InstructionReader& reader) {
  const int rank = take_rank(reader);
  const std::size_t hints = reader.take("L2::cache_hint") ? 1 : 0;
  const Reduction reduction = take_reduction(reader);
  if (!reader.take("global") || !reader.take("shared::cta")) {
    reader.refuse("a tensor reduction between these state spaces");
  }
  decode_store(reader, rank, hints);
  reader.out().mode |= static_cast<std::uint8_t>(static_cast<int>(reduction) + 1);
}

constexpr std::array kOpcodes = {
    OpcodeRow{"cp.async.bulk.tensor", OperandClass::any, decode_copy},
    OpcodeRow{"cp.reduce.async.bulk.tensor", OperandClass::any, decode_reduce},
};

}  // namespace

std::span<const OpcodeRow> tensor_copy_opcodes() { return kOpcodes; }

}  // namespace tilewright::emulator
