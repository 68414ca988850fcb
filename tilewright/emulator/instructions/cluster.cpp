// barrier.cluster, and the addresses of distributed shared memory: mapa and getctarank.
#include <array>
#include <bit>

#include "tilewright/emulator/cluster.hpp"
#include "tilewright/emulator/instructions/instruction_set.hpp"
#include "tilewright/emulator/instructions/lanes.hpp"

namespace tilewright::emulator {
namespace {

constexpr std::uint8_t kAligned = 1;
constexpr std::uint8_t kRelaxed = 2;

void execute_arrive(Warp& warp, const Instruction& in, Mask lanes) {
  if ((in.mode & kAligned) != 0 && !warp.converge(in, lanes, warp.present() & ~warp.exited())) return;
  Cluster& cluster = warp.cta().cluster();
  for (Mask left = lanes; left != 0; left &= left - 1) {
    const int lane = std::countr_zero(left);
    if (warp.cluster_arrivals[lane] != warp.cluster_waits[lane]) {
      warp.fail(FindingKind::barrier_divergence, in, lane, 0,
                fmt::format("arrival {} of the thread at the cluster's barrier, before it has waited for arrival {}",
                            warp.cluster_arrivals[lane] + 1, warp.cluster_arrivals[lane]));
    }
    ++warp.cluster_arrivals[lane];
  }
  cluster.barrier().arrival_clocks.join((in.mode & kRelaxed) != 0 ? warp.released.at(MemoryScope::cluster)
                                                                  : warp.clocks);
  warp.advance_clock();
  cluster.barrier().arrived += static_cast<std::uint32_t>(std::popcount(lanes));
  cluster.note_event();
  cluster.try_complete_barrier();
}

void execute_wait(Warp& warp, const Instruction& in, Mask lanes) {
  if ((in.mode & kAligned) != 0 && !warp.converge(in, lanes, warp.present() & ~warp.exited())) return;
  const ClusterBarrier& barrier = warp.cta().cluster().barrier();
  Mask missing = 0;
  for (Mask left = lanes; left != 0; left &= left - 1) {
    const int lane = std::countr_zero(left);
    if (warp.cluster_arrivals[lane] == warp.cluster_waits[lane]) {
      warp.fail(FindingKind::barrier_divergence, in, lane, 0,
                fmt::format("wait {} of the thread at the cluster's barrier, after {} arrivals of it",
                            warp.cluster_waits[lane] + 1, warp.cluster_arrivals[lane]));
    }
    if (barrier.phase < warp.cluster_arrivals[lane]) missing |= Mask{1} << lane;
  }
  if (missing != 0) return warp.wait_at_cluster_barrier(in, lanes, barrier.phase);
  each_lane(lanes, [&](int l) { ++warp.cluster_waits[l]; });
  warp.clocks.join(barrier.completed_clocks);
  warp.cta().note_cluster_barrier();
}

void decode_arrive(InstructionReader& reader) {
  std::uint8_t mode = 0;
  if (reader.take_one_of({"release", "relaxed"}) == 1) mode |= kRelaxed;
  if (reader.take("aligned")) mode |= kAligned;
  reader.finish();
  reader.expect_operands(0);
  reader.out().mode = mode;
  reader.out().execute = &execute_arrive;
}

void decode_wait(InstructionReader& reader) {
  reader.take("acquire");
  reader.out().mode = reader.take("aligned") ? kAligned : 0;
  reader.finish();
  reader.expect_operands(0);
  reader.out().execute = &execute_wait;
}

/// Operands: d, a, rank. The address keeps its generic window and offset.
template <class T>
void execute_mapa(Warp& warp, const Instruction& in, Mask lanes) {
  T* const d = warp.reg<T>(in.op[0]);
  const T* const a = warp.reg<T>(in.op[1]);
  const auto* const rank = warp.reg<std::uint32_t>(in.op[2]);
  const auto size = static_cast<std::uint32_t>(warp.cta().cluster().size());
  for (; lanes != 0; lanes &= lanes - 1) {
    const int lane = std::countr_zero(lanes);
    if (rank[lane] >= size) {
      warp.fail(FindingKind::out_of_bounds_shared, in, lane, a[lane],
                fmt::format("mapa to the CTA of rank {} in a cluster of {} CTAs", rank[lane], size));
    }
    const auto window = static_cast<T>(T{a[lane]} & static_cast<T>(kWindowMask));
    d[lane] = static_cast<T>(window | (static_cast<T>(rank[lane]) << kClusterRankShift) |
                             (a[lane] & static_cast<T>(kSharedOffsetMask)));
  }
}

template <class T>
void execute_getctarank(Warp& warp, const Instruction& in, Mask lanes) {
  auto* const d = warp.reg<std::uint32_t>(in.op[0]);
  const T* const a = warp.reg<T>(in.op[1]);
  each_lane(lanes, [&](int l) {
    d[l] = static_cast<std::uint32_t>((a[l] & ~static_cast<T>(kWindowMask)) >> kClusterRankShift);
  });
}

void decode_mapa(InstructionReader& reader) {
  reader.take("shared::cluster");
  const PtxType type = reader.type();
  reader.finish();
  reader.expect_operands(3);
  reader.destination(reader.operand(0), type);
  reader.source(reader.operand(1), type);
  reader.source(reader.operand(2), PtxType::u32);
  reader.out().execute = bytes(type) == 8 ? &execute_mapa<std::uint64_t> : &execute_mapa<std::uint32_t>;
}

void decode_getctarank(InstructionReader& reader) {
  reader.take("shared::cluster");
  const PtxType type = reader.type();
  reader.finish();
  reader.expect_operands(2);
  reader.destination(reader.operand(0), PtxType::u32);
  reader.source(reader.operand(1), type);
  reader.out().execute = bytes(type) == 8 ? &execute_getctarank<std::uint64_t> : &execute_getctarank<std::uint32_t>;
}

constexpr std::array kOpcodes = {
    OpcodeRow{"barrier.cluster.arrive", OperandClass::any, decode_arrive},
    OpcodeRow{"barrier.cluster.wait", OperandClass::any, decode_wait},
    OpcodeRow{"mapa", OperandClass::any, decode_mapa},
    OpcodeRow{"getctarank", OperandClass::any, decode_getctarank},
};

}  // namespace

std::span<const OpcodeRow> cluster_opcodes() { return kOpcodes; }

}  // namespace tilewright::emulator
