// add sub mul fma min max abs neg ex2 tanh on f16, bf16, f16x2 and bf16x2.
#include <array>
#include <cmath>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "tilewright/emulator/instructions/hardware_fma.hpp"
#include "tilewright/emulator/instructions/instruction_set.hpp"
#include "tilewright/emulator/instructions/lanes.hpp"
#include "tilewright/emulator/instructions/rounding.hpp"

namespace tilewright::emulator {
namespace {

// Sums and products are computed in f32 and rounded again. That gives the correctly rounded result, as f32 has at least
// 2p + 2 significand bits: 24 >= 2 * 11 + 2.

struct Add {
  template <class S>
  S operator()(S a, S b) const {
    return S::nearest(a.value() + b.value());
  }
};
struct Subtract {
  template <class S>
  S operator()(S a, S b) const {
    return S::nearest(a.value() - b.value());
  }
};
struct Multiply {
  template <class S>
  static double exact(S a, S b) {
    return static_cast<double>(a.value()) * b.value();
  }
  template <class S>
  S operator()(S a, S b) const {
    return S::nearest(a.value() * b.value());
  }
};
struct MultiplyAdd {
  template <class S>
  static double exact(S a, S b, S c) {
    return sum_to_odd(static_cast<double>(a.value()) * b.value(), c.value());
  }
  template <class S>
  S operator()(S a, S b, S c) const {
    return S::nearest(exact(a, b, c));
  }
};

/// .oob: the product with what a tensor copy has filled in outside the tensor (see fill_row()), with either sign, makes
/// the result 0. Measured on an H100.
struct MultiplyAddInside {
  template <class S>
  static bool is_outside(S a) {
    constexpr std::uint16_t kFilledIn = 0x7ff7, kMagnitude = 0x7fff;
    return (a.bits & kMagnitude) == kFilledIn;
  }
  template <class S>
  S operator()(S a, S b, S c) const {
    return is_outside(a) || is_outside(b) ? S{0} : MultiplyAdd()(a, b, c);
  }
};

inline constexpr std::uint16_t kNan = 0x7fff;

template <bool kMaximum, bool kPropagatesNan>
struct Extremum {
  template <class S>
  S operator()(S a, S b) const {
    const float x = a.value();
    const float y = b.value();
    if (std::isnan(x) || std::isnan(y)) {
      if (kPropagatesNan || (std::isnan(x) && std::isnan(y))) return {kNan};
      return std::isnan(x) ? b : a;
    }
    if (x == y) return std::signbit(x) != kMaximum ? a : b;
    return (x < y) != kMaximum ? a : b;
  }
};

/// .xorsign.abs: the extremum of the magnitudes, with the product of the signs.
template <class Op>
struct OfMagnitudes {
  template <class S>
  S operator()(S a, S b) const {
    constexpr std::uint16_t kSign = 0x8000;
    const auto magnitude = [](S value) { return S{static_cast<std::uint16_t>(value.bits & ~kSign)}; };
    const S result = Op()(magnitude(a), magnitude(b));
    if (std::isnan(result.value())) return result;
    return {static_cast<std::uint16_t>(result.bits | ((a.bits ^ b.bits) & kSign))};
  }
};

struct Absolute {
  template <class S>
  S operator()(S a) const {
    return std::isnan(a.value()) ? S{kNan} : S{static_cast<std::uint16_t>(a.bits & 0x7fff)};
  }
};
struct Negate {
  template <class S>
  S operator()(S a) const {
    return std::isnan(a.value()) ? S{kNan} : S{static_cast<std::uint16_t>(a.bits ^ 0x8000)};
  }
};
struct Exp2 {
  template <class S>
  S operator()(S a) const {
    return S::nearest(std::exp2(a.value()));
  }
};
struct HyperbolicTangent {
  template <class S>
  S operator()(S a) const {
    return S::nearest(std::tanh(a.value()));
  }
};

/// Instruction::mode of these handlers.
constexpr std::uint8_t kSaturate = 1;  // to [0, 1]
constexpr std::uint8_t kRelu = 2;      // negative numbers become 0; NaN stays NaN
constexpr std::uint8_t kFlush = 4;     // .ftz

template <class S>
S flush(S a) {
  constexpr std::uint16_t kExponent = std::is_same_v<S, F16> ? 0x7c00 : 0x7f80;
  return (a.bits & kExponent) == 0 ? S{static_cast<std::uint16_t>(a.bits & 0x8000)} : a;
}

/// Whether .ftz flushes the result: it does if the result, rounded as if the exponent had no least value, is below the
/// least normal number. Measured on an H100.
template <class Op, class... S>
bool is_tiny(S... operands) {
  if constexpr (requires { Op::exact(operands...); }) {
    return std::fabs(Op::exact(operands...)) < 0x1p-14 - 0x1p-26;  // .ftz is of f16 only
  } else {
    return false;
  }
}

template <class Op, class... S>
auto compute(std::uint8_t mode, S... operands) {
  auto result = Op()(operands...);
  if ((mode & kFlush) != 0 && is_tiny<Op>(operands...)) result.bits &= 0x8000;
  return result;
}

template <class S>
S finish(S a, std::uint8_t mode) {
  if ((mode & kFlush) != 0) a = flush(a);
  if ((mode & kSaturate) != 0) a = S::nearest(saturated(a.value()));
  if ((mode & kRelu) != 0 && (a.bits & 0x8000) != 0 && !std::isnan(a.value())) a.bits = 0;
  return a;
}

/// A register holds kValues values of S; the instruction has kOperands sources.
template <class S, class Op, int kValues, int kOperands>
void execute_small(Warp& warp, const Instruction& in, Mask lanes) {
  S* const d = warp.reg<S>(in.op[0]);
  const S* const a = warp.reg<S>(in.op[1]);
  const S* const b = warp.reg<S>(in.op[kOperands > 1 ? 2 : 1]);
  const S* const c = warp.reg<S>(in.op[kOperands > 2 ? 3 : 1]);
  const auto input = [&](S value) { return (in.mode & kFlush) != 0 ? flush(value) : value; };
  each_lane(lanes, [&](int lane) {
    for (int i = lane * kValues; i < (lane + 1) * kValues; ++i) {
      if constexpr (kOperands == 1) d[i] = finish(compute<Op>(in.mode, input(a[i])), in.mode);
      if constexpr (kOperands == 2) d[i] = finish(compute<Op>(in.mode, input(a[i]), input(b[i])), in.mode);
      if constexpr (kOperands == 3) d[i] = finish(compute<Op>(in.mode, input(a[i]), input(b[i]), input(c[i])), in.mode);
    }
  });
}

// Arithmetic on f16 without modifiers is computed for all values of a warp at once.

/// a + b rounded to odd, so that rounding the result to f16 gives the correctly rounded sum.
inline float sum_to_odd_in_f32(float a, float b) {
  const float sum = a + b;
  const float b_part = sum - a;
  const float error = (a - (sum - b_part)) + (b - b_part);
  const auto bits = std::bit_cast<std::uint32_t>(sum);
  const bool is_odd_or_exact = (bits & 1) != 0 || !(error > 0 || error < 0);
  const std::uint32_t step = (error > 0) == (sum > 0) ? 1 : ~std::uint32_t{0};
  return std::bit_cast<float>(is_odd_or_exact ? bits : bits + step);
}

/// The result in f32, which is rounded to f16 then.
template <class Op>
float in_f32(float a, float b, float c) {
  if constexpr (std::is_same_v<Op, Add>) return a + b;
  if constexpr (std::is_same_v<Op, Subtract>) return a - b;
  if constexpr (std::is_same_v<Op, Multiply>) return a * b;
  if constexpr (std::is_same_v<Op, MultiplyAdd>) return sum_to_odd_in_f32(a * b, c);  // the product is exact
}

template <class Op>
constexpr bool kHasF32Form = std::is_same_v<Op, Add> || std::is_same_v<Op, Subtract> || std::is_same_v<Op, Multiply> ||
                             std::is_same_v<Op, MultiplyAdd>;

#if defined(__x86_64__)
/// @pre has_hardware_fma()
template <class Op, int kValues, int kOperands>
TILEWRIGHT_TARGET_FMA void execute_f16_with_hardware(Warp& warp, const Instruction& in, Mask lanes) {
  constexpr int kCount = kWarpSize * kValues;
  constexpr int kPerVector = 8;
  const auto* const a = warp.reg<std::uint16_t>(in.op[1]);
  const auto* const b = warp.reg<std::uint16_t>(in.op[2]);
  const auto* const c = warp.reg<std::uint16_t>(in.op[kOperands > 2 ? 3 : 1]);
  auto* const d = warp.reg<std::uint16_t>(in.op[0]);
  alignas(64) float results[kCount];
  alignas(64) std::uint16_t rounded[kCount];
  for (int i = 0; i < kCount; ++i) results[i] = in_f32<Op>(f16_value(a[i]), f16_value(b[i]), f16_value(c[i]));
  for (int i = 0; i < kCount; i += kPerVector) {
    const __m128i halves = _mm256_cvtps_ph(_mm256_load_ps(results + i), _MM_FROUND_TO_NEAREST_INT);
    _mm_store_si128(reinterpret_cast<__m128i*>(rounded + i), halves);
  }
  for (int i = 0; i < kCount; ++i) rounded[i] = (rounded[i] & 0x7fff) > 0x7c00 ? kNan : rounded[i];
  if (lanes == kAllLanes) {
    std::memcpy(d, rounded, sizeof(rounded));
  } else {
    each_lane(lanes, [&](int lane) {
      for (int i = lane * kValues; i < (lane + 1) * kValues; ++i) d[i] = rounded[i];
    });
  }
}
#endif

template <class Op, int kValues, int kOperands>
Handler f16_handler(std::uint8_t mode) {
#if defined(__x86_64__)
  if constexpr (kHasF32Form<Op>) {
    if (mode == 0 && has_hardware_fma()) return &execute_f16_with_hardware<Op, kValues, kOperands>;
  }
#endif
  static_cast<void>(mode);
  return &execute_small<F16, Op, kValues, kOperands>;
}

template <class Op, int kOperands>
void decode_typed(InstructionReader& reader) {
  if (reader.take_one_of({"rz", "rm", "rp"}) >= 0) reader.refuse("this rounding mode on this type");
  reader.take_one_of({"rn", "approx"});
  std::uint8_t mode = 0;
  if (reader.take("ftz")) mode |= kFlush;
  if (reader.take("sat")) mode |= kSaturate;
  if (reader.take("relu")) mode |= kRelu;
  reader.out().mode = mode;
  const PtxType type = reader.type();
  Handler handler = nullptr;
  switch (type) {
    case PtxType::f16:
      handler = f16_handler<Op, 1, kOperands>(mode);
      break;
    case PtxType::f16x2:
      handler = f16_handler<Op, 2, kOperands>(mode);
      break;
    case PtxType::bf16:
      handler = &execute_small<BF16, Op, 1, kOperands>;
      break;
    case PtxType::bf16x2:
      handler = &execute_small<BF16, Op, 2, kOperands>;
      break;
    default:
      reader.refuse(fmt::format("type .{} of {}", name(type), reader.parsed().opcode));
  }
  decode_uniform(reader, type, kOperands + 1, handler);
}

template <class Op>
void decode_extremum_of(InstructionReader& reader) {
  if (reader.take("xorsign") && reader.take("abs")) {
    decode_typed<OfMagnitudes<Op>, 2>(reader);
  } else {
    decode_typed<Op, 2>(reader);
  }
}

template <bool kMaximum>
void decode_extremum(InstructionReader& reader) {
  if (reader.take("NaN")) {
    decode_extremum_of<Extremum<kMaximum, true>>(reader);
  } else {
    decode_extremum_of<Extremum<kMaximum, false>>(reader);
  }
}

void decode_fma(InstructionReader& reader) {
  if (reader.take("oob")) {
    decode_typed<MultiplyAddInside, 3>(reader);
  } else {
    decode_typed<MultiplyAdd, 3>(reader);
  }
}

constexpr std::array kOpcodes = {
    OpcodeRow{"add", OperandClass::small_float, decode_typed<Add, 2>},
    OpcodeRow{"sub", OperandClass::small_float, decode_typed<Subtract, 2>},
    OpcodeRow{"mul", OperandClass::small_float, decode_typed<Multiply, 2>},
    OpcodeRow{"fma", OperandClass::small_float, decode_fma},
    OpcodeRow{"min", OperandClass::small_float, decode_extremum<false>},
    OpcodeRow{"max", OperandClass::small_float, decode_extremum<true>},
    OpcodeRow{"abs", OperandClass::small_float, decode_typed<Absolute, 1>},
    OpcodeRow{"neg", OperandClass::small_float, decode_typed<Negate, 1>},
    OpcodeRow{"ex2", OperandClass::small_float, decode_typed<Exp2, 1>},
    OpcodeRow{"tanh", OperandClass::small_float, decode_typed<HyperbolicTangent, 1>},
};

}  // namespace

std::span<const OpcodeRow> small_float_opcodes() { return kOpcodes; }

}  // namespace tilewright::emulator
