// Instructions that change tensor maps: tensormap.replace, tensormap.cp_fenceproxy, fence.proxy.tensormap.
#include <array>
#include <bit>
#include <cstring>
#include <memory>
#include <optional>
#include <string>

#include "tilewright/emulator/access.hpp"
#include "tilewright/emulator/cluster.hpp"
#include "tilewright/emulator/instructions/control.hpp"
#include "tilewright/emulator/instructions/instruction_set.hpp"
#include "tilewright/emulator/tensor_map_encoding.hpp"
#include "tilewright/emulator/written_tensor_maps.hpp"

namespace tilewright::emulator {
namespace {

constexpr std::uint32_t kMapBytes = sizeof(EncodedTensorMap);
constexpr AccessSize kMap{kMapBytes, kMapBytes};

/// The fields that tensormap.replace changes, in the order of kFieldNames.
enum class Field : std::uint8_t {
  global_address,
  rank,
  box_extent,
  extent,
  stride,
  element_stride,
  type,
  interleave,
  swizzle,
  swizzle_atomicity,
  fill,
};

/// The element types of tensormap.replace.elemtype, by their number.
constexpr std::array kElementTypes = {
    TensorMapType::u8,   TensorMapType::u16,  TensorMapType::u32,      TensorMapType::s32,     TensorMapType::u64,
    TensorMapType::s64,  TensorMapType::f16,  TensorMapType::f32,      TensorMapType::f32_ftz, TensorMapType::f64,
    TensorMapType::bf16, TensorMapType::tf32, TensorMapType::tf32_ftz,
};

/// What is wrong with a value for a field, as "extent 0 of mode 1"; empty if nothing is.
std::string wrong_value(const EditedTensorMap& edited, Field field, std::size_t mode, std::uint64_t value) {
  constexpr std::uint64_t kAlignment = 16;
  constexpr std::uint32_t kMaxElementStride = 8;
  // A map that is built from zeros may get its rank after the other fields.
  const std::size_t modes = edited.begun_with_zeros ? kMaxTensorMapRank : static_cast<std::size_t>(edited.map.rank);
  const auto in_rank = [&](std::string_view what, bool is_valid, std::size_t of) {
    if (is_valid && of < modes) return std::string();
    return fmt::format("{} {} of mode {} of a tensor map of rank {}", what, value, of, edited.map.rank);
  };
  switch (field) {
    case Field::global_address:
      if (value % kAlignment == 0) return {};
      return fmt::format("the global address {:#x} of a tensor map, which must be a multiple of {}", value, kAlignment);
    case Field::rank:
      if (value < kMaxTensorMapRank) return {};
      return fmt::format("rank {} of a tensor map less one, which must be below {}", value, kMaxTensorMapRank);
    case Field::box_extent:
      return in_rank("box extent", value >= 1 && value <= kMaxBoxExtent, mode);
    case Field::extent:
      return in_rank("extent", value != 0, mode);
    case Field::element_stride:
      return in_rank("element stride", value >= 1 && value <= kMaxElementStride, mode);
    case Field::stride:
      if (value % kAlignment == 0 && value < kTensorMapStrideLimit && mode + 1 < modes) return {};
      return fmt::format("stride {} of {} bytes in a tensor map of rank {}, which must be a multiple of {}", mode,
                         value, edited.map.rank, kAlignment);
    case Field::type:
    case Field::interleave:
    case Field::swizzle:
    case Field::swizzle_atomicity:
    case Field::fill:
      return {};  // immediates, which decode_replace() has checked
  }
  return {};
}

void set_field(TensorMap& map, Field field, std::size_t mode, std::uint64_t value) {
  switch (field) {
    case Field::global_address:
      map.address = value;
      break;
    case Field::rank:
      map.rank = static_cast<int>(value) + 1;
      break;
    case Field::box_extent:
      map.box[mode] = static_cast<std::uint32_t>(value);
      break;
    case Field::extent:
      map.extents[mode] = value;
      break;
    case Field::stride:
      map.strides[mode + 1] = value;  // number 0 is the stride of mode 1
      break;
    case Field::element_stride:
      map.element_strides[mode] = static_cast<std::uint32_t>(value);
      break;
    case Field::type:
      map.type = kElementTypes[value];
      break;
    case Field::swizzle:
      map.swizzle = static_cast<TensorMapSwizzle>(value);
      break;
    case Field::fill:
      map.fill = static_cast<TensorMapFill>(value);
      break;
    case Field::interleave:
    case Field::swizzle_atomicity:
      break;  // only 0 is accepted
  }
}

/// A tensormap.replace writes this field of a tensor map.
struct Replacement {
  Field field;
  std::size_t mode;  // or the number of the stride
  Space space;
  bool is_wide;  // the value has 64 bits
  std::optional<std::uint64_t> immediate;
};

/// Operands: tensor map, and the new value if it is not an immediate.
void execute_replace(Warp& warp, const Instruction& in, Mask lanes) {
  const auto& what = *static_cast<const Replacement*>(in.table);
  const Slot value_slot = what.immediate ? Slot{} : in.op[in.address[0].operand + 1];
  LanePointers at;
  for (; lanes != 0; lanes &= lanes - 1) {
    const int lane = std::countr_zero(lanes);
    const Mask only = Mask{1} << lane;
    resolve(warp, in, only, what.space, 0, kMap, AccessKind::read, at);
    std::optional<EditedTensorMap> edited = decode_edited(at.at[lane]);
    if (!edited) {
      warp.fail(FindingKind::bad_descriptor, in, lane, at.address[lane],
                fmt::format("no tensor map at address {:#x}: it must be a copy of one that this device encoded, or of "
                            "zeros",
                            at.address[lane]));
    }
    const std::uint64_t value = what.immediate ? *what.immediate
                                : what.is_wide ? warp.reg<std::uint64_t>(value_slot)[lane]
                                               : warp.reg<std::uint32_t>(value_slot)[lane];
    const std::string wrong = wrong_value(*edited, what.field, what.mode, value);
    if (!wrong.empty()) warp.fail(FindingKind::bad_descriptor, in, lane, value, wrong);
    set_field(edited->map, what.field, what.mode, value);
    resolve(warp, in, only, what.space, 0, kMap, AccessKind::write, at);
    if (what.space == Space::global) warp.cta().launch().tensor_maps->write(warp, in, lane, at.address[lane]);
    const EncodedTensorMap encoded = encode_edited(*edited);
    std::memcpy(at.at[lane], encoded.bytes.data(), kMapBytes);
  }
}

/// Operands: destination in global memory, source in shared memory. The lanes copy one tensor map together.
void execute_publish(Warp& warp, const Instruction& in, Mask lanes) {
  if (!warp.converge(in, lanes, warp.present())) return;
  LanePointers to, from;
  resolve(warp, in, lanes, Space::shared, 1, kMap, AccessKind::unshadowed, from);
  resolve(warp, in, lanes, Space::global, 0, kMap, AccessKind::unshadowed, to);
  const int first = std::countr_zero(lanes);
  for (Mask rest = lanes; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    if (to.address[lane] == to.address[first] && from.address[lane] == from.address[first]) continue;
    warp.fail(FindingKind::barrier_divergence, in, lane, to.address[lane],
              fmt::format("lane {} copies the tensor map at {:#x} to {:#x}, but lane {} the one at {:#x} to {:#x}",
                          lane, from.address[lane], to.address[lane], first, from.address[first], to.address[first]));
  }
  const Mask only = Mask{1} << first;
  resolve(warp, in, only, Space::shared, 1, kMap, AccessKind::read, from);
  if (const auto map = decode_tensor_map(from.at[first]); !map) {
    warp.fail(FindingKind::bad_descriptor, in, first, from.address[first],
              fmt::format("no valid tensor map at address {:#x}: {}", from.address[first], map.reason()));
  }
  resolve(warp, in, only, Space::global, 0, kMap, AccessKind::write, to);
  warp.cta().launch().tensor_maps->write(warp, in, first, to.address[first]);
  std::memcpy(to.at[first], from.at[first], kMapBytes);
  warp.release(MemoryScope::gpu);
}

/// Operand: the tensor map.
void execute_acquire(Warp& warp, const Instruction& in, Mask lanes) {
  LanePointers at;
  resolve(warp, in, lanes, Space::generic, 0, kMap, AccessKind::unshadowed, at);
  for (; lanes != 0; lanes &= lanes - 1) {
    const int lane = std::countr_zero(lanes);
    warp.cta().launch().tensor_maps->acquire(warp, lane, at.address[lane]);
  }
}

// Decoders ---------------------------------------------------------------------------------------------------------

void expect_map_bytes(InstructionReader& reader, std::size_t operand) {
  const std::uint64_t bytes = reader.number(reader.operand(operand));
  if (bytes != kMapBytes) reader.refuse(fmt::format("a tensor map of {} bytes, which must be {}", bytes, kMapBytes));
}

/// The immediate of an enumerated field. Values from `end` on are refused.
std::uint64_t enumerator(InstructionReader& reader, std::string_view field, std::uint64_t end) {
  const std::uint64_t value = reader.number(reader.operand(1));
  if (value >= end) reader.refuse(fmt::format("tensormap.replace.{} of the value {}", field, value));
  return value;
}

/// tensormap.replace.tile.global_address.shared::cta.b1024.b64 [map], address;
/// tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [map], mode, extent;
/// tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [map], number, stride;
/// tensormap.replace.tile.elemtype.shared::cta.b1024.b32 [map], type;
void decode_replace(InstructionReader& reader) {
  static constexpr std::array<std::string_view, 11> kFieldNames = {
      "global_address", "rank",     "box_dim",           "global_dim",   "global_stride",
      "element_stride", "elemtype", "interleave_layout", "swizzle_mode", "swizzle_atomicity",
      "fill_mode"};
  static constexpr std::array<std::uint64_t, 11> kEnumerators = {0, 0, 0, 0, 0, 0, kElementTypes.size(), 1, 4, 1, 2};
  if (!reader.take("tile")) reader.refuse("tensormap.replace without .tile");
  std::size_t index = 0;
  while (index < kFieldNames.size() && !reader.take(kFieldNames[index])) ++index;
  if (index == kFieldNames.size()) reader.refuse("tensormap.replace without a field that it knows");
  Replacement what{
      .field = static_cast<Field>(index), .mode = 0, .space = Space::generic, .is_wide = false, .immediate = {}};
  what.is_wide = what.field == Field::global_address || what.field == Field::stride;
  switch (reader.take_one_of({"shared::cta", "global"})) {
    case 0:
      what.space = Space::shared;
      break;
    case 1:
      what.space = Space::global;
      break;
    default:
      reader.refuse("tensormap.replace in another state space than .shared::cta and .global");
  }
  const std::string_view type = what.is_wide ? "b64" : "b32";
  if (!reader.take("b1024") || !reader.take(type))
    reader.refuse(fmt::format("tensormap.replace.{} without .b1024.{}", kFieldNames[index], type));
  reader.finish();
  const bool has_mode = what.field == Field::box_extent || what.field == Field::extent || what.field == Field::stride ||
                        what.field == Field::element_stride;
  reader.expect_operands(has_mode ? 3 : 2);
  reader.address(reader.operand(0), what.space);
  if (kEnumerators[index] != 0) {
    what.immediate = enumerator(reader, kFieldNames[index], kEnumerators[index]);
  } else {
    if (has_mode) what.mode = reader.number(reader.operand(1));
    if (what.mode >= kMaxTensorMapRank) reader.refuse("tensormap.replace of a mode above 4");
    reader.source(reader.operand(has_mode ? 2 : 1), what.is_wide ? PtxType::b64 : PtxType::b32);
  }
  reader.out().table = reader.keep(std::make_shared<const Replacement>(what));
  reader.out().execute = &execute_replace;
}

/// tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned
void decode_publish(InstructionReader& reader) {
  const bool copies = reader.take("global") && reader.take("shared::cta");
  const bool releases = reader.take("tensormap::generic") && reader.take("release");
  if (!copies || !releases || reader.take_one_of({"cta", "cluster", "gpu", "sys"}) < 0)
    reader.refuse("this form of tensormap.cp_fenceproxy");
  if (!reader.take("sync") || !reader.take("aligned")) reader.refuse("tensormap.cp_fenceproxy without .sync.aligned");
  reader.finish();
  reader.expect_operands(3);
  expect_map_bytes(reader, 2);
  reader.address(reader.operand(0), Space::global);
  reader.address(reader.operand(1), Space::shared);
  reader.out().execute = &execute_publish;
}

/// fence.proxy.tensormap::generic.acquire.gpu [map], 128, and .release.gpu, which orders plain stores to tensor maps:
/// the emulator does not track these.
void decode_fence(InstructionReader& reader) {
  const int kind = reader.take_one_of({"acquire", "release"});
  if (kind < 0 || reader.take_one_of({"cta", "cluster", "gpu", "sys"}) < 0) reader.refuse("this tensor-map fence");
  reader.finish();
  constexpr int kRelease = 1;
  if (kind == kRelease) {
    reader.expect_operands(0);
    reader.out().execute = &execute_nothing;
    return;
  }
  reader.expect_operands(2);
  expect_map_bytes(reader, 1);
  reader.address(reader.operand(0), Space::generic);
  reader.out().execute = &execute_acquire;
}

constexpr std::array kOpcodes = {
    OpcodeRow{"tensormap.replace", OperandClass::any, decode_replace},
    OpcodeRow{"tensormap.cp_fenceproxy", OperandClass::any, decode_publish},
    OpcodeRow{"fence.proxy.tensormap::generic", OperandClass::any, decode_fence},
};

}  // namespace

std::span<const OpcodeRow> tensor_map_opcodes() { return kOpcodes; }

}  // namespace tilewright::emulator
