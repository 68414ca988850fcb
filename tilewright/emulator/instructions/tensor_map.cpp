// Instructions that change tensor maps: tensormap.replace, tensormap.cp_fenceproxy, fence.proxy.tensormap.
#include <array>
#include <bit>
#include <cstring>

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

TensorMap decode_map(Warp& warp, const Instruction& in, int lane, const LanePointers& at) {
  const std::optional<TensorMap> map = decode_tensor_map(at.at[lane]);
  if (!map) {
    warp.fail(FindingKind::bad_descriptor, in, lane, at.address[lane],
              fmt::format("no valid tensor map at address {:#x}: it must be a copy of one that this device encoded",
                          at.address[lane]));
  }
  return *map;
}

/// Calls change(map, lane) for the tensor map of each lane, which is in shared memory.
template <class Change>
void replace(Warp& warp, const Instruction& in, Mask lanes, const Change& change) {
  LanePointers at;
  for (; lanes != 0; lanes &= lanes - 1) {
    const int lane = std::countr_zero(lanes);
    const Mask only = Mask{1} << lane;
    resolve(warp, in, only, Space::shared, 0, kMap, AccessKind::read, at);
    TensorMap map = decode_map(warp, in, lane, at);
    change(map, lane);
    resolve(warp, in, only, Space::shared, 0, kMap, AccessKind::write, at);
    const EncodedTensorMap encoded = encode_tensor_map(map);
    std::memcpy(at.at[lane], encoded.bytes.data(), kMapBytes);
  }
}

/// Operands: tensor map, new address.
void execute_replace_address(Warp& warp, const Instruction& in, Mask lanes) {
  constexpr std::uint64_t kAlignment = 16;
  replace(warp, in, lanes, [&](TensorMap& map, int lane) {
    map.address = warp.reg<std::uint64_t>(in.op[in.address[0].operand + 1])[lane];
    if (map.address % kAlignment == 0) return;
    warp.fail(FindingKind::bad_descriptor, in, lane, map.address,
              fmt::format("the global address {:#x} of a tensor map, which must be a multiple of {}", map.address,
                          kAlignment));
  });
}

/// Operands: tensor map, new extent. The immediate is the mode.
void execute_replace_extent(Warp& warp, const Instruction& in, Mask lanes) {
  replace(warp, in, lanes, [&](TensorMap& map, int lane) {
    const std::uint32_t extent = warp.reg<std::uint32_t>(in.op[in.address[0].operand + 1])[lane];
    if (extent == 0 || in.immediate >= map.rank) {
      warp.fail(FindingKind::bad_descriptor, in, lane, extent,
                fmt::format("extent {} of mode {} of a tensor map of rank {}", extent, in.immediate, map.rank));
    }
    map.extents[static_cast<std::size_t>(in.immediate)] = extent;
  });
}

/// Operands: tensor map, new stride in bytes. The immediate is the stride's number: number 0 is that of mode 1.
void execute_replace_stride(Warp& warp, const Instruction& in, Mask lanes) {
  constexpr std::uint64_t kAlignment = 16;
  replace(warp, in, lanes, [&](TensorMap& map, int lane) {
    const std::uint64_t stride = warp.reg<std::uint64_t>(in.op[in.address[0].operand + 1])[lane];
    if (stride % kAlignment != 0 || stride >= kTensorMapStrideLimit || in.immediate + 1 >= map.rank) {
      warp.fail(FindingKind::bad_descriptor, in, lane, stride,
                fmt::format("stride {} of {} bytes in a tensor map of rank {}, which must be a multiple of {}",
                            in.immediate, stride, map.rank, kAlignment));
    }
    map.strides[static_cast<std::size_t>(in.immediate) + 1] = stride;
  });
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
  static_cast<void>(decode_map(warp, in, first, from));
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

/// tensormap.replace.tile.global_address.shared::cta.b1024.b64 [map], address;
/// tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [map], mode, extent;
/// tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [map], number, stride;
void decode_replace(InstructionReader& reader) {
  if (!reader.take("tile")) reader.refuse("tensormap.replace without .tile");
  const int field = reader.take_one_of({"global_address", "global_dim", "global_stride"});
  if (field < 0)
    reader.refuse("tensormap.replace of a field other than .global_address, .global_dim and .global_stride");
  const bool replaces_address = field == 0, replaces_extent = field == 1;
  if (!reader.take("shared::cta")) reader.refuse("tensormap.replace in another state space than .shared::cta");
  const std::string_view type = replaces_extent ? "b32" : "b64";
  if (!reader.take("b1024") || !reader.take(type))
    reader.refuse(fmt::format("tensormap.replace without .b1024.{}", type));
  reader.finish();
  reader.expect_operands(replaces_address ? 2 : 3);
  reader.address(reader.operand(0), Space::shared);
  if (replaces_address) {
    reader.source(reader.operand(1), PtxType::b64);
    reader.out().execute = &execute_replace_address;
    return;
  }
  reader.out().immediate = static_cast<std::int64_t>(reader.number(reader.operand(1)));
  if (reader.out().immediate >= kMaxTensorMapRank) reader.refuse("tensormap.replace of a mode above 4");
  reader.source(reader.operand(2), replaces_extent ? PtxType::b32 : PtxType::b64);
  reader.out().execute = replaces_extent ? &execute_replace_extent : &execute_replace_stride;
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
