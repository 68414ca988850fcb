// cp.async.bulk and cp.reduce.async.bulk of contiguous bytes, and bulk groups.
#include <algorithm>
#include <array>
#include <bit>

#include "tilewright/emulator/instructions/async_copy.hpp"
#include "tilewright/emulator/instructions/control.hpp"
#include "tilewright/emulator/instructions/instruction_set.hpp"
#include "tilewright/emulator/instructions/lanes.hpp"

namespace tilewright::emulator {
namespace {

constexpr std::uint32_t kBulkAlignment = 16;  // of addresses and sizes

/// Bytes per access that is checked and recorded in the shadow.
constexpr std::uint32_t kBytesPerAccess = 4096;

std::uint32_t size_of(Warp& warp, const Instruction& in, int lane, Slot slot) {
  const std::uint32_t bytes = warp.reg<std::uint32_t>(slot)[lane];
  if (bytes % kBulkAlignment != 0) {
    warp.fail(FindingKind::misaligned_access, in, lane, 0,
              fmt::format("bulk copy of {} bytes; the size must be a multiple of {}", bytes, kBulkAlignment));
  }
  return bytes;
}

std::uint64_t global_address(Warp& warp, const Instruction& in, int lane, std::size_t which) {
  const AddressOperand& operand = in.address[which];
  const std::uint64_t base = operand.register_bytes == 4 ? warp.reg<std::uint32_t>(in.op[operand.operand])[lane]
                                                         : warp.reg<std::uint64_t>(in.op[operand.operand])[lane];
  const std::uint64_t address = base + static_cast<std::uint64_t>(operand.offset);
  if (address % kBulkAlignment != 0) {
    warp.fail(
        FindingKind::misaligned_access, in, lane, address,
        fmt::format("bulk copy at global address {:#x}, which must be a multiple of {}", address, kBulkAlignment));
  }
  return address;
}

template <class F>
void each_access(std::uint32_t bytes, F&& f) {
  for (std::uint32_t at = 0; at < bytes; at += kBytesPerAccess) f(at, std::min(kBytesPerAccess, bytes - at));
}

void copy_to_shared(AsyncCopy& copy, const SharedLocation& to, const std::byte* from, std::uint32_t bytes) {
  each_access(bytes, [&](std::uint32_t at, std::uint32_t size) {
    copy.write_shared({to.cta, to.address + at}, from + at, size);
  });
}

/// Global to shared memory. Operands: destination, source, size, mbarrier, CTA mask. mode: multicast.
void execute_load(Warp& warp, const Instruction& in, Mask lanes) {
  for (; lanes != 0; lanes &= lanes - 1) {
    const int lane = std::countr_zero(lanes);
    const std::uint32_t bytes = size_of(warp, in, lane, in.op[2]);
    const SharedLocation to = resolve_shared_location(warp, in, lane, 0, {bytes, kBulkAlignment}, "bulk write");
    const std::uint64_t from = global_address(warp, in, lane, 1);
    const MbarrierObject at = find_mbarrier(warp, in, lane, 2);
    Profile* const profile = warp.cta().launch().profile;
    if (in.mode == 0) {
      if (profile != nullptr) profile->count_bulk_load(warp.code_index(in), bytes, 1);
      AsyncCopy copy(warp, in, lane, at.barrier);
      copy_to_shared(copy, to, copy.read_global(from, bytes, "bulk read"), bytes);
      copy.follow_undefined(to, from, bytes);
      complete_on(warp, in, lane, at, bytes);
      continue;
    }
    std::uint32_t mask = warp.reg<std::uint16_t>(in.op[4])[lane];
    check_multicast(warp, in, lane, mask);
    if (profile != nullptr) profile->count_bulk_load(warp.code_index(in), bytes, std::popcount(mask));
    for (; mask != 0; mask &= mask - 1) {
      Cta& cta = warp.cta().cluster().cta(std::countr_zero(mask));
      const MbarrierObject there = find_mbarrier(warp, in, lane, SharedLocation{&cta, at.location.address});
      AsyncCopy copy(warp, in, lane, there.barrier);
      copy_to_shared(copy, {&cta, to.address}, copy.read_global(from, bytes, "bulk read"), bytes);
      copy.follow_undefined({&cta, to.address}, from, bytes);
      complete_on(warp, in, lane, there, bytes);
    }
  }
}

/// Shared memory to the shared memory of a CTA of the cluster. Operands: destination, source, size, mbarrier.
/// immediate: the ReduceElement of cp.reduce, else 0; mode: its element's size in bytes.
void execute_shared_to_shared(Warp& warp, const Instruction& in, Mask lanes) {
  for (; lanes != 0; lanes &= lanes - 1) {
    const int lane = std::countr_zero(lanes);
    const std::uint32_t bytes = size_of(warp, in, lane, in.op[2]);
    const SharedLocation to = resolve_shared_location(warp, in, lane, 0, {bytes, kBulkAlignment}, "bulk write");
    const SharedLocation from = resolve_shared_location(warp, in, lane, 1, {bytes, kBulkAlignment}, "bulk read");
    const MbarrierObject at = find_mbarrier(warp, in, lane, 2);
    AsyncCopy copy(warp, in, lane, at.barrier);
    const std::byte* const source = copy.read_shared(from, bytes);
    const auto reduce = reinterpret_cast<ReduceElement>(in.immediate);
    if (reduce == nullptr) {
      copy_to_shared(copy, to, source, bytes);
    } else {
      std::vector<std::byte> reduced(to.cta->shared().at(to.address), to.cta->shared().at(to.address) + bytes);
      for (std::uint32_t i = 0; i < bytes; i += in.mode) reduce(reduced.data() + i, source + i);
      copy_to_shared(copy, to, reduced.data(), bytes);
    }
    complete_on(warp, in, lane, at, bytes);
  }
}

/// Shared to global memory. Operands: destination, source, size. immediate and mode: as above.
void execute_store(Warp& warp, const Instruction& in, Mask lanes) {
  for (; lanes != 0; lanes &= lanes - 1) {
    const int lane = std::countr_zero(lanes);
    const std::uint32_t bytes = size_of(warp, in, lane, in.op[2]);
    const std::uint64_t to = global_address(warp, in, lane, 0);
    const SharedLocation from = resolve_shared_location(warp, in, lane, 1, {bytes, kBulkAlignment}, "bulk read");
    AsyncCopy copy(warp, in, lane);
    const std::byte* const source = copy.read_shared(from, bytes);
    const auto reduce = reinterpret_cast<ReduceElement>(in.immediate);
    std::byte* const memory = copy.write_global(to, bytes, "bulk write", reduce != nullptr);
    if (Profile* const profile = warp.cta().launch().profile) profile->count_bulk_store(warp.code_index(in), bytes);
    if (reduce == nullptr) {
      std::memcpy(memory, source, bytes);
    } else {
      for (std::uint32_t i = 0; i < bytes; i += in.mode) reduce(memory + i, source + i);
    }
  }
}

void execute_commit_group(Warp& warp, const Instruction&, Mask lanes) {
  if (warp.bulk_groups.empty()) warp.bulk_groups.resize(kWarpSize);
  for (; lanes != 0; lanes &= lanes - 1) {
    BulkGroups& groups = warp.bulk_groups[static_cast<std::size_t>(std::countr_zero(lanes))];
    ++groups.committed;
    groups.open = false;
  }
}

/// immediate: how many of the latest groups may remain pending.
void execute_wait_group(Warp& warp, const Instruction& in, Mask lanes) {
  if (warp.bulk_groups.empty()) return;
  for (; lanes != 0; lanes &= lanes - 1) {
    const int lane = std::countr_zero(lanes);
    BulkGroups& groups = warp.bulk_groups[static_cast<std::size_t>(lane)];
    const auto max_pending = static_cast<std::uint32_t>(in.immediate);
    if (groups.committed <= max_pending) continue;
    groups.read = std::max(groups.read, groups.committed - max_pending);
    warp.clocks.ordered.raise(async_of(warp.cta().bulk_agent(warp.index() * kWarpSize + lane)), groups.read);
  }
}

// Decoders ---------------------------------------------------------------------------------------------------------

void decode_addresses_and_size(InstructionReader& reader, Space to, Space from) {
  reader.address(reader.operand(0), to);
  reader.address(reader.operand(1), from);
  reader.source(reader.operand(2), PtxType::u32);
}

void decode_to_shared(InstructionReader& reader, bool from_global, std::size_t hints) {
  const bool multicast = reader.take("multicast::cluster");
  reader.finish();
  reader.expect_operands(4 + (multicast ? 1U : 0U) + hints);
  decode_addresses_and_size(reader, Space::generic, from_global ? Space::global : Space::generic);
  reader.address(reader.operand(3), Space::generic);
  if (multicast) reader.source(reader.operand(4), PtxType::b16);
  reader.out().mode = multicast ? 1 : reader.out().mode;
  reader.out().address[1].shared_cluster = false;
  reader.out().execute = from_global ? &execute_load : &execute_shared_to_shared;
}

/// Decodes the modifiers that copies and reductions share, and the operands.
void decode_transfer(InstructionReader& reader) {
  const std::size_t hints = reader.take("L2::cache_hint") ? 1 : 0;
  const bool to_global = reader.take("bulk_group");
  if (!to_global && !reader.take("mbarrier::complete_tx::bytes"))
    reader.refuse("a bulk copy without .bulk_group or .mbarrier::complete_tx::bytes");
  const bool global = reader.take("global");
  const bool own = reader.take("shared::cta");
  const bool cluster = reader.take("shared::cluster");
  if (to_global) {
    if (!global || !own) reader.refuse("a bulk copy between these state spaces");
    reader.finish();
    reader.expect_operands(3 + hints);
    decode_addresses_and_size(reader, Space::global, Space::generic);
    reader.out().execute = &execute_store;
    return;
  }
  if (global == (own && cluster) || !(own || cluster)) reader.refuse("a bulk copy between these state spaces");
  decode_to_shared(reader, global, hints);
}

void decode_copy(InstructionReader& reader) { decode_transfer(reader); }

void decode_reduce(InstructionReader& reader) {
  const Reduction reduction = take_reduction(reader);
  reader.take("noftz");
  const PtxType type = reader.type();
  const ReduceElement reduce = find_reduction(type, reduction);
  if (reduce == nullptr) reader.refuse(fmt::format("this reduction of .{}", name(type)));
  decode_transfer(reader);
  reader.out().immediate = reinterpret_cast<std::int64_t>(reduce);
  reader.out().mode = static_cast<std::uint8_t>(bytes(type));
}

/// A prefetch into L2 has no effect that a program can observe.
void decode_prefetch(InstructionReader& reader) { reader.out().execute = &execute_nothing; }

void decode_commit_group(InstructionReader& reader) {
  reader.finish();
  reader.expect_operands(0);
  reader.out().execute = &execute_commit_group;
}

/// With or without .read: copies have written global memory at once, so that only reads of shared memory are pending.
void decode_wait_group(InstructionReader& reader) {
  reader.take("read");
  reader.finish();
  reader.expect_operands(1);
  reader.out().immediate = static_cast<std::int64_t>(reader.number(reader.operand(0)) & 0xffff);
  reader.out().execute = &execute_wait_group;
}

constexpr std::array kOpcodes = {
    OpcodeRow{"cp.async.bulk", OperandClass::any, decode_copy},
    OpcodeRow{"cp.reduce.async.bulk", OperandClass::any, decode_reduce},
    OpcodeRow{"cp.async.bulk.prefetch", OperandClass::any, decode_prefetch},
    OpcodeRow{"cp.async.bulk.commit_group", OperandClass::any, decode_commit_group},
    OpcodeRow{"cp.async.bulk.wait_group", OperandClass::any, decode_wait_group},
};

}  // namespace

std::span<const OpcodeRow> bulk_copy_opcodes() { return kOpcodes; }

}  // namespace tilewright::emulator
