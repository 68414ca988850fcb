// Loops over the lanes of a warp, and handlers built from a function of one lane.
#pragma once

#include <bit>
#include <cstdint>

#include "tilewright/emulator/instruction_reader.hpp"
#include "tilewright/emulator/warp.hpp"

/// Precedes a loop whose iterations are independent, so that it vectorises. Empty for clang, whose pragma warns about
/// loops that it cannot vectorise.
#if defined(__clang__)
#define TILEWRIGHT_INDEPENDENT_ITERATIONS
#else
#define TILEWRIGHT_INDEPENDENT_ITERATIONS _Pragma("GCC ivdep")
#endif

namespace tilewright::emulator {

/// A value of .b128.
struct Quadword {
  std::uint64_t low = 0, high = 0;
};

/// Calls f(lane) for each lane of the mask. With all lanes active, the loop vectorises.
template <class F>
inline void each_lane(Mask lanes, F&& f) {
  if (lanes == kAllLanes) {
    TILEWRIGHT_INDEPENDENT_ITERATIONS
    for (int lane = 0; lane < kWarpSize; ++lane) f(lane);
  } else {
    for (; lanes != 0; lanes &= lanes - 1) f(std::countr_zero(lanes));
  }
}

// Handlers of d = Op(a, b, c) for one to three sources. Operands: d, a, b, c. Op is stateless.

template <class D, class A, class Op>
void unary(Warp& warp, const Instruction& in, Mask lanes) {
  D* const d = warp.reg<D>(in.op[0]);
  const A* const a = warp.reg<A>(in.op[1]);
  each_lane(lanes, [=](int l) { d[l] = Op()(a[l]); });
}

template <class D, class A, class B, class Op>
void binary(Warp& warp, const Instruction& in, Mask lanes) {
  D* const d = warp.reg<D>(in.op[0]);
  const A* const a = warp.reg<A>(in.op[1]);
  const B* const b = warp.reg<B>(in.op[2]);
  each_lane(lanes, [=](int l) { d[l] = Op()(a[l], b[l]); });
}

template <class D, class A, class B, class C, class Op>
void ternary(Warp& warp, const Instruction& in, Mask lanes) {
  D* const d = warp.reg<D>(in.op[0]);
  const A* const a = warp.reg<A>(in.op[1]);
  const B* const b = warp.reg<B>(in.op[2]);
  const C* const c = warp.reg<C>(in.op[3]);
  each_lane(lanes, [=](int l) { d[l] = Op()(a[l], b[l], c[l]); });
}

/// Decodes `count` operands of one type, of which the first is the destination, and sets the handler.
inline void decode_uniform(InstructionReader& reader, PtxType type, std::size_t count, Handler handler) {
  reader.finish();
  reader.expect_operands(count);
  reader.destination(reader.operand(0), type);
  for (std::size_t i = 1; i < count; ++i) reader.source(reader.operand(i), type);
  reader.out().execute = handler;
}

/// Calls f with a value of the host type that corresponds to the PTX integer type; refuses other types.
template <class F>
Handler for_integer(InstructionReader& reader, PtxType type, F&& f) {
  switch (type) {
    case PtxType::b16:
    case PtxType::u16:
      return f(std::uint16_t());
    case PtxType::s16:
      return f(std::int16_t());
    case PtxType::b32:
    case PtxType::u32:
      return f(std::uint32_t());
    case PtxType::s32:
      return f(std::int32_t());
    case PtxType::b64:
    case PtxType::u64:
      return f(std::uint64_t());
    case PtxType::s64:
      return f(std::int64_t());
    default:
      reader.refuse(fmt::format("type .{} of {}", name(type), reader.parsed().opcode));
  }
}

/// Calls f with a value of the unsigned host type of the PTX type's width.
template <class F>
Handler for_bits(InstructionReader& reader, PtxType type, F&& f) {
  switch (bytes(type)) {
    case 2:
      return f(std::uint16_t());
    case 4:
      return f(std::uint32_t());
    case 8:
      return f(std::uint64_t());
    default:
      reader.refuse(fmt::format("type .{} of {}", name(type), reader.parsed().opcode));
  }
}

}  // namespace tilewright::emulator
