// Integer arithmetic, which wraps: add sub mul mad mul24 mad24 div rem abs neg min max sad dp4a dp2a.
#include <algorithm>
#include <array>
#include <limits>
#include <type_traits>

#include "tilewright/emulator/instructions/instruction_set.hpp"
#include "tilewright/emulator/instructions/lanes.hpp"

namespace tilewright::emulator {
namespace {

template <class T>
using Unsigned = std::make_unsigned_t<T>;

template <class T>
using Wide = std::conditional_t<
    sizeof(T) == 2, std::conditional_t<std::is_signed_v<T>, std::int32_t, std::uint32_t>,
    std::conditional_t<sizeof(T) == 4, std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>,
                       std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>>>;

template <class T>
struct Add {
  T operator()(T a, T b) const { return static_cast<T>(static_cast<Unsigned<T>>(a) + static_cast<Unsigned<T>>(b)); }
};

template <class T>
struct Subtract {
  T operator()(T a, T b) const { return static_cast<T>(static_cast<Unsigned<T>>(a) - static_cast<Unsigned<T>>(b)); }
};

template <class T>
struct AddSaturating {
  T operator()(T a, T b) const {
    const auto sum = static_cast<Wide<T>>(static_cast<Wide<T>>(a) + b);
    return static_cast<T>(std::clamp<Wide<T>>(sum, std::numeric_limits<T>::min(), std::numeric_limits<T>::max()));
  }
};

template <class T>
struct SubtractSaturating {
  T operator()(T a, T b) const {
    const auto difference = static_cast<Wide<T>>(static_cast<Wide<T>>(a) - b);
    return static_cast<T>(
        std::clamp<Wide<T>>(difference, std::numeric_limits<T>::min(), std::numeric_limits<T>::max()));
  }
};

template <class T>
struct MultiplyLow {
  T operator()(T a, T b) const { return static_cast<T>(static_cast<Wide<T>>(a) * static_cast<Wide<T>>(b)); }
};
// Specialised for 64 bits, as 128-bit arithmetic does not vectorise.
template <>
struct MultiplyLow<std::uint64_t> {
  std::uint64_t operator()(std::uint64_t a, std::uint64_t b) const { return a * b; }
};
template <>
struct MultiplyLow<std::int64_t> {
  std::int64_t operator()(std::int64_t a, std::int64_t b) const {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
  }
};

template <class T>
struct MultiplyHigh {
  T operator()(T a, T b) const {
    return static_cast<T>((static_cast<Wide<T>>(a) * static_cast<Wide<T>>(b)) >> (8 * sizeof(T)));
  }
};

template <class T>
struct MultiplyWide {
  Wide<T> operator()(T a, T b) const { return static_cast<Wide<T>>(a) * static_cast<Wide<T>>(b); }
};

template <class T>
struct MultiplyAddLow {
  T operator()(T a, T b, T c) const { return Add<T>()(MultiplyLow<T>()(a, b), c); }
};

template <class T>
struct MultiplyAddHigh {
  T operator()(T a, T b, T c) const { return Add<T>()(MultiplyHigh<T>()(a, b), c); }
};

template <class T>
struct MultiplyAddWide {
  Wide<T> operator()(T a, T b, Wide<T> c) const { return Add<Wide<T>>()(MultiplyWide<T>()(a, b), c); }
};

/// mul24: multiplies the low 24 bits of a and b, sign-extended for signed types.
template <class T>
struct Multiply24 {
  T operator()(T a, T b) const { return MultiplyLow<T>()(low24(a), low24(b)); }
  static T low24(T v) { return static_cast<T>(static_cast<T>(static_cast<std::uint32_t>(v) << 8) >> 8); }
};

/// mul24.hi: bits 16 to 47 of the product.
template <class T>
struct Multiply24High {
  T operator()(T a, T b) const {
    return static_cast<T>((Wide<T>{Multiply24<T>::low24(a)} * Wide<T>{Multiply24<T>::low24(b)}) >> 16);
  }
};

template <class T>
struct MultiplyAdd24 {
  T operator()(T a, T b, T c) const { return Add<T>()(Multiply24<T>()(a, b), c); }
};

template <class T>
struct MultiplyAdd24High {
  T operator()(T a, T b, T c) const { return Add<T>()(Multiply24High<T>()(a, b), c); }
};

/// .hi.sat.s32: the sum is clamped.
template <template <class> class Product>
struct SaturatingMultiplyAdd {
  std::int32_t operator()(std::int32_t a, std::int32_t b, std::int32_t c) const {
    const std::int64_t sum = std::int64_t{Product<std::int32_t>()(a, b)} + c;
    using Limits = std::numeric_limits<std::int32_t>;
    return static_cast<std::int32_t>(std::clamp<std::int64_t>(sum, Limits::min(), Limits::max()));
  }
};

/// Division by zero and its remainder give all ones, as on an H200; the PTX ISA leaves them undefined. The most
/// negative number divided by -1 wraps.
template <class T>
struct Divide {
  T operator()(T a, T b) const {
    if (b == 0) return static_cast<T>(~T{0});
    if constexpr (std::is_signed_v<T>) {
      if (b == -1) return Subtract<T>()(0, a);
    }
    return static_cast<T>(a / b);
  }
};

template <class T>
struct Remainder {
  T operator()(T a, T b) const {
    if (b == 0) return static_cast<T>(~T{0});
    if constexpr (std::is_signed_v<T>) {
      if (b == -1) return 0;
    }
    return static_cast<T>(a % b);
  }
};

template <class T>
struct Absolute {
  T operator()(T a) const { return a < 0 ? Subtract<T>()(0, a) : a; }
};

template <class T>
struct Negate {
  T operator()(T a) const { return Subtract<T>()(0, a); }
};

template <class T>
struct Minimum {
  T operator()(T a, T b) const { return std::min(a, b); }
};

template <class T>
struct Maximum {
  T operator()(T a, T b) const { return std::max(a, b); }
};

/// c + |a - b|
template <class T>
struct SumOfAbsoluteDifference {
  T operator()(T a, T b, T c) const { return Add<T>()(c, a < b ? Subtract<T>()(b, a) : Subtract<T>()(a, b)); }
};

/// dp4a: the products of four pairs of bytes, added to c.
template <class A, class B>
struct Dp4a {
  std::int32_t operator()(std::uint32_t a, std::uint32_t b, std::int32_t c) const {
    std::uint32_t sum = static_cast<std::uint32_t>(c);
    for (int i = 0; i < 32; i += 8) {
      sum += static_cast<std::uint32_t>(static_cast<std::int32_t>(static_cast<A>(a >> i)) *
                                        static_cast<std::int32_t>(static_cast<B>(b >> i)));
    }
    return static_cast<std::int32_t>(sum);
  }
};

/// dp2a: the products of the two halves of a with two bytes of b, from bit kShift on, added to c.
template <class A, class B, int kShift>
struct Dp2a {
  std::int32_t operator()(std::uint32_t a, std::uint32_t b, std::int32_t c) const {
    std::uint32_t sum = static_cast<std::uint32_t>(c);
    for (int i = 0; i < 2; ++i) {
      sum += static_cast<std::uint32_t>(static_cast<std::int32_t>(static_cast<A>(a >> (16 * i))) *
                                        static_cast<std::int32_t>(static_cast<B>(b >> (kShift + 8 * i))));
    }
    return static_cast<std::int32_t>(sum);
  }
};

template <template <class> class Op>
Handler binary_of(InstructionReader& reader, PtxType type) {
  return for_integer(reader, type, [](auto t) -> Handler {
    using T = decltype(t);
    return &binary<T, T, T, Op<T>>;
  });
}

template <template <class> class Op>
void decode_binary(InstructionReader& reader) {
  const PtxType type = reader.type();
  decode_uniform(reader, type, 3, binary_of<Op>(reader, type));
}

template <template <class> class Op>
void decode_unary(InstructionReader& reader) {
  const PtxType type = reader.type();
  decode_uniform(reader, type, 2, for_integer(reader, type, [](auto t) -> Handler {
                   using T = decltype(t);
                   return &unary<T, T, Op<T>>;
                 }));
}

template <template <class> class Plain, template <class> class Saturating>
void decode_sum(InstructionReader& reader) {
  const bool saturates = reader.take("sat");
  const PtxType type = reader.type();
  if (saturates && type != PtxType::s32) reader.refuse("saturation on a type other than .s32");
  const Handler handler = saturates ? &binary<std::int32_t, std::int32_t, std::int32_t, Saturating<std::int32_t>>
                                    : binary_of<Plain>(reader, type);
  decode_uniform(reader, type, 3, handler);
}

PtxType wide_type(InstructionReader& reader, PtxType type) {
  switch (type) {
    case PtxType::u16:
      return PtxType::u32;
    case PtxType::s16:
      return PtxType::s32;
    case PtxType::u32:
      return PtxType::u64;
    case PtxType::s32:
      return PtxType::s64;
    default:
      reader.refuse("a .wide product of this type");
  }
}

template <template <class> class Op>
Handler wide_handler(InstructionReader& reader, PtxType type, bool ternary_form) {
  return for_integer(reader, type, [&](auto t) -> Handler {
    using T = decltype(t);
    if constexpr (sizeof(T) == 8) {
      reader.refuse("a .wide product of this type");
    } else if constexpr (std::is_invocable_v<Op<T>, T, T>) {
      static_cast<void>(ternary_form);
      return &binary<Wide<T>, T, T, Op<T>>;
    } else {
      return &ternary<Wide<T>, T, T, Wide<T>, Op<T>>;
    }
  });
}

void decode_mul(InstructionReader& reader) {
  const int part = reader.take_one_of({"lo", "hi", "wide"});
  const PtxType type = reader.type();
  if (part != 2) {
    decode_uniform(reader, type, 3,
                   part == 1 ? binary_of<MultiplyHigh>(reader, type) : binary_of<MultiplyLow>(reader, type));
    return;
  }
  reader.finish();
  reader.expect_operands(3);
  reader.out().execute = wide_handler<MultiplyWide>(reader, type, false);
  reader.destination(reader.operand(0), wide_type(reader, type));
  reader.source(reader.operand(1), type);
  reader.source(reader.operand(2), type);
}

template <template <class> class Op>
Handler ternary_of(InstructionReader& reader, PtxType type) {
  return for_integer(reader, type, [](auto t) -> Handler {
    using T = decltype(t);
    return &ternary<T, T, T, T, Op<T>>;
  });
}

template <template <class> class Product>
void decode_saturating_mad(InstructionReader& reader, PtxType type) {
  using S = std::int32_t;
  if (type != PtxType::s32) reader.refuse(".sat with this type");
  decode_uniform(reader, type, 4, &ternary<S, S, S, S, SaturatingMultiplyAdd<Product>>);
}

void decode_mad(InstructionReader& reader) {
  const int part = reader.take_one_of({"lo", "hi", "wide"});
  const bool saturates = part == 1 && reader.take("sat");
  const PtxType type = reader.type();
  if (saturates) return decode_saturating_mad<MultiplyHigh>(reader, type);
  if (part != 2) {
    decode_uniform(reader, type, 4,
                   part == 1 ? ternary_of<MultiplyAddHigh>(reader, type) : ternary_of<MultiplyAddLow>(reader, type));
    return;
  }
  reader.finish();
  reader.expect_operands(4);
  reader.out().execute = wide_handler<MultiplyAddWide>(reader, type, true);
  reader.destination(reader.operand(0), wide_type(reader, type));
  reader.source(reader.operand(1), type);
  reader.source(reader.operand(2), type);
  reader.source(reader.operand(3), wide_type(reader, type));
}

void decode_mul24(InstructionReader& reader) {
  const bool high = reader.take_one_of({"lo", "hi"}) == 1;
  const PtxType type = reader.type();
  if (bytes(type) != 4) reader.refuse("mul24 of this type");
  decode_uniform(reader, type, 3, high ? binary_of<Multiply24High>(reader, type) : binary_of<Multiply24>(reader, type));
}

void decode_mad24(InstructionReader& reader) {
  const bool high = reader.take_one_of({"lo", "hi"}) == 1;
  const bool saturates = high && reader.take("sat");
  const PtxType type = reader.type();
  if (bytes(type) != 4) reader.refuse("mad24 of this type");
  if (saturates) return decode_saturating_mad<Multiply24High>(reader, type);
  decode_uniform(reader, type, 4,
                 high ? ternary_of<MultiplyAdd24High>(reader, type) : ternary_of<MultiplyAdd24>(reader, type));
}

void decode_minimum(InstructionReader& reader) { decode_binary<Minimum>(reader); }
void decode_maximum(InstructionReader& reader) { decode_binary<Maximum>(reader); }

void decode_sad(InstructionReader& reader) {
  const PtxType type = reader.type();
  decode_uniform(reader, type, 4, ternary_of<SumOfAbsoluteDifference>(reader, type));
}

template <template <class, class> class Dot>
Handler dot_handler(bool a_signed, bool b_signed) {
  using I = std::int32_t;
  using U = std::uint32_t;
  if (a_signed) {
    return b_signed ? Handler{&ternary<I, U, U, I, typename Dot<I, I>::type>}
                    : &ternary<I, U, U, I, typename Dot<I, U>::type>;
  }
  return b_signed ? Handler{&ternary<I, U, U, I, typename Dot<U, I>::type>}
                  : &ternary<I, U, U, I, typename Dot<U, U>::type>;
}

template <class T>
using Byte = std::conditional_t<std::is_signed_v<T>, std::int8_t, std::uint8_t>;
template <class T>
using Half = std::conditional_t<std::is_signed_v<T>, std::int16_t, std::uint16_t>;

template <class A, class B>
struct Dp4aOp {
  using type = Dp4a<Byte<A>, Byte<B>>;
};
template <class A, class B>
struct Dp2aLoOp {
  using type = Dp2a<Half<A>, Byte<B>, 0>;
};
template <class A, class B>
struct Dp2aHiOp {
  using type = Dp2a<Half<A>, Byte<B>, 16>;
};

void decode_dot_operands(InstructionReader& reader, Handler handler) {
  decode_uniform(reader, PtxType::b32, 4, handler);
}

void decode_dp4a(InstructionReader& reader) {
  const PtxType a = reader.type();
  const PtxType b = reader.type();
  decode_dot_operands(reader, dot_handler<Dp4aOp>(is_signed(a), is_signed(b)));
}

void decode_dp2a(InstructionReader& reader) {
  const bool high = reader.take_one_of({"lo", "hi"}) == 1;
  const PtxType a = reader.type();
  const PtxType b = reader.type();
  decode_dot_operands(reader, high ? dot_handler<Dp2aHiOp>(is_signed(a), is_signed(b))
                                   : dot_handler<Dp2aLoOp>(is_signed(a), is_signed(b)));
}

constexpr std::array kOpcodes = {
    OpcodeRow{"add", OperandClass::integer, decode_sum<Add, AddSaturating>},
    OpcodeRow{"sub", OperandClass::integer, decode_sum<Subtract, SubtractSaturating>},
    OpcodeRow{"mul", OperandClass::integer, decode_mul},
    OpcodeRow{"mad", OperandClass::integer, decode_mad},
    OpcodeRow{"mul24", OperandClass::integer, decode_mul24},
    OpcodeRow{"mad24", OperandClass::integer, decode_mad24},
    OpcodeRow{"div", OperandClass::integer, decode_binary<Divide>},
    OpcodeRow{"rem", OperandClass::integer, decode_binary<Remainder>},
    OpcodeRow{"abs", OperandClass::integer, decode_unary<Absolute>},
    OpcodeRow{"neg", OperandClass::integer, decode_unary<Negate>},
    OpcodeRow{"min", OperandClass::integer, decode_minimum},
    OpcodeRow{"max", OperandClass::integer, decode_maximum},
    OpcodeRow{"sad", OperandClass::integer, decode_sad},
    OpcodeRow{"dp4a", OperandClass::integer, decode_dp4a},
    OpcodeRow{"dp2a", OperandClass::integer, decode_dp2a},
};

}  // namespace

std::span<const OpcodeRow> integer_opcodes() { return kOpcodes; }

}  // namespace tilewright::emulator
