// add, min and max on u16x2 and s16x2, and min and max with .relu.
#include <algorithm>
#include <array>

#include "tilewright/emulator/instructions/instruction_set.hpp"
#include "tilewright/emulator/instructions/lanes.hpp"

namespace tilewright::emulator {
namespace {

struct Sum {
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>(a + b);
  }
};
template <bool kRelu>
struct Minimum {
  template <class T>
  T operator()(T a, T b) const {
    return kRelu ? std::max(std::min(a, b), T{0}) : std::min(a, b);
  }
};
template <bool kRelu>
struct Maximum {
  template <class T>
  T operator()(T a, T b) const {
    return kRelu ? std::max({a, b, T{0}}) : std::max(a, b);
  }
};

/// Op on the two halves of 32 bits.
template <class T, class Op>
struct Halves {
  std::uint32_t operator()(std::uint32_t a, std::uint32_t b) const {
    const auto half = [](T value) { return std::uint32_t{static_cast<std::uint16_t>(value)}; };
    return half(Op()(static_cast<T>(a), static_cast<T>(b))) |
           half(Op()(static_cast<T>(a >> 16), static_cast<T>(b >> 16))) << 16;
  }
};

template <class T, class Op>
void decode_halves(InstructionReader& reader) {
  using U = std::uint32_t;
  decode_uniform(reader, PtxType::b32, 3, &binary<U, U, U, Halves<T, Op>>);
}

template <class Op>
void decode_word(InstructionReader& reader) {
  using I = std::int32_t;
  decode_uniform(reader, PtxType::s32, 3, &binary<I, I, I, Op>);
}

using S = std::int16_t;
using U = std::uint16_t;

constexpr std::array kOpcodes = {
    OpcodeRow{"add.u16x2", OperandClass::any, decode_halves<U, Sum>},
    OpcodeRow{"add.s16x2", OperandClass::any, decode_halves<S, Sum>},
    OpcodeRow{"min.u16x2", OperandClass::any, decode_halves<U, Minimum<false>>},
    OpcodeRow{"min.s16x2", OperandClass::any, decode_halves<S, Minimum<false>>},
    OpcodeRow{"max.u16x2", OperandClass::any, decode_halves<U, Maximum<false>>},
    OpcodeRow{"max.s16x2", OperandClass::any, decode_halves<S, Maximum<false>>},
    OpcodeRow{"min.relu.s16x2", OperandClass::any, decode_halves<S, Minimum<true>>},
    OpcodeRow{"max.relu.s16x2", OperandClass::any, decode_halves<S, Maximum<true>>},
    OpcodeRow{"min.relu.s32", OperandClass::any, decode_word<Minimum<true>>},
    OpcodeRow{"max.relu.s32", OperandClass::any, decode_word<Maximum<true>>},
    // The order of CUDA's headers, which ptxas accepts too.
    OpcodeRow{"min.s16x2.relu", OperandClass::any, decode_halves<S, Minimum<true>>},
    OpcodeRow{"max.s16x2.relu", OperandClass::any, decode_halves<S, Maximum<true>>},
    OpcodeRow{"min.s32.relu", OperandClass::any, decode_word<Minimum<true>>},
    OpcodeRow{"max.s32.relu", OperandClass::any, decode_word<Maximum<true>>},
};

}  // namespace

std::span<const OpcodeRow> packed_integer_opcodes() { return kOpcodes; }

}  // namespace tilewright::emulator
