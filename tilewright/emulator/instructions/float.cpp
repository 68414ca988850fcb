// add sub mul fma mad div min max abs neg sqrt rcp rsqrt ex2 lg2 sin cos tanh copysign testp on f32 and f64.
// .approx instructions use the host's libm, which is more accurate than the GPU.
#include <array>
#include <cmath>

#include "tilewright/emulator/instructions/hardware_fma.hpp"
#include "tilewright/emulator/instructions/instruction_set.hpp"
#include "tilewright/emulator/instructions/lanes.hpp"
#include "tilewright/emulator/instructions/rounding.hpp"

namespace tilewright::emulator {
namespace {

struct Add {
  template <class T>
  T operator()(T a, T b) const {
    return a + b;
  }
};
struct Subtract {
  template <class T>
  T operator()(T a, T b) const {
    return a - b;
  }
};
struct Multiply {
  template <class T>
  T operator()(T a, T b) const {
    return a * b;
  }
};
struct Divide {
  template <class T>
  T operator()(T a, T b) const {
    return a / b;
  }
};
struct MultiplyAdd {
  template <class T>
  T operator()(T a, T b, T c) const {
    return std::fma(a, b, c);
  }
};

/// A NaN operand is ignored if the other one is a number; -0 is less than +0.
struct Minimum {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_same_v<T, double>) {
      if (std::isnan(a) && std::isnan(b)) return quieted(b);
    }
    if (std::isnan(a)) return b;
    if (std::isnan(b)) return a;
    if (a == b) return std::signbit(a) ? a : b;
    return a < b ? a : b;
  }
};
struct Maximum {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_same_v<T, double>) {
      if (std::isnan(a) && std::isnan(b)) return quieted(b);
    }
    if (std::isnan(a)) return b;
    if (std::isnan(b)) return a;
    if (a == b) return std::signbit(a) ? b : a;
    return a > b ? a : b;
  }
};
template <class Op>
struct PropagatesNan {
  template <class T>
  T operator()(T a, T b) const {
    return std::isnan(a) || std::isnan(b) ? std::numeric_limits<T>::quiet_NaN() : Op()(a, b);
  }
};
/// .xorsign.abs: the extremum of the magnitudes, with the product of the signs.
template <class Op>
struct OfMagnitudes {
  template <class T>
  T operator()(T a, T b) const {
    const T result = Op()(std::fabs(a), std::fabs(b));
    return std::isnan(result) ? result : std::copysign(result, std::signbit(a) != std::signbit(b) ? T(-1) : T(1));
  }
};

template <class Op, bool kMagnitudes>
struct OfThree {
  template <class T>
  T operator()(T a, T b, T c) const {
    if constexpr (kMagnitudes) return Op()(Op()(std::fabs(a), std::fabs(b)), std::fabs(c));
    return Op()(Op()(a, b), c);
  }
};

/// abs and neg of f64 keep the sign of a NaN.
struct Absolute {
  float operator()(float a) const { return std::fabs(a); }
  double operator()(double a) const { return std::isnan(a) ? quieted(a) : std::fabs(a); }
};
struct Negate {
  float operator()(float a) const { return -a; }
  double operator()(double a) const { return std::isnan(a) ? quieted(a) : -a; }
};
struct SquareRoot {
  template <class T>
  T operator()(T a) const {
    return std::sqrt(a);
  }
};
struct Reciprocal {
  template <class T>
  T operator()(T a) const {
    return T(1) / a;
  }
};
struct ReciprocalSquareRoot {
  template <class T>
  T operator()(T a) const {
    if (a == 0) return std::copysign(std::numeric_limits<T>::infinity(), a);
    return static_cast<T>(1.0 / std::sqrt(static_cast<double>(a)));
  }
};
struct Exp2 {
  float operator()(float a) const { return std::exp2(a); }
};
struct Log2 {
  float operator()(float a) const { return std::log2(a); }
};
/// The fraction of a turn, of which the GPU computes the sine and cosine: the product is rounded to f32, so that large
/// angles have none.
double turn(float angle) {
  const double turns = angle * 0.15915494309189535F;
  return turns - std::nearbyint(turns);
}
constexpr double kTwoPi = 6.283185307179586;
struct Sine {
  float operator()(float a) const {
    return std::copysign(1.0F, a) * static_cast<float>(std::sin(kTwoPi * turn(std::fabs(a))));
  }
};
struct Cosine {
  float operator()(float a) const { return static_cast<float>(std::cos(kTwoPi * turn(a))); }
};
struct HyperbolicTangent {
  float operator()(float a) const { return std::tanh(a); }
};
/// The magnitude of b with the sign of a.
struct CopySign {
  template <class T>
  T operator()(T a, T b) const {
    return std::copysign(b, a);
  }
};

/// The NaN results of f64 sums and products: the last operand that is a NaN, quieted; of fma, b before c before a.
/// Measured on an H200 and an H100.
template <class Op>
constexpr bool kTakesLastNan = std::is_same_v<Op, Add> || std::is_same_v<Op, Subtract> ||
                               std::is_same_v<Op, Multiply> || std::is_same_v<Op, MultiplyAdd>;

inline double last_nan(double result) { return result; }
template <class... T>
double last_nan(double result, double first, T... rest) {
  return last_nan(std::isnan(first) ? quieted(first) : result, rest...);
}

template <class Op>
struct Canonical {
  template <class... T>
  float operator()(float a, T... operands) const {
    return canonical(Op()(a, operands...));
  }
  template <class... T>
  double operator()(double a, T... operands) const {
    const double result = Op()(a, operands...);
    if constexpr (kTakesLastNan<Op>) return std::isnan(result) ? nan_of(result, a, operands...) : result;
    return result;
  }

 private:
  static double nan_of(double result, double a, double b) { return last_nan(result, a, b); }
  static double nan_of(double result, double a, double b, double c) { return last_nan(result, a, c, b); }
};

template <class T, class Op, int kOperands>
constexpr Handler plain_handler() {
  if constexpr (kOperands == 1) return &unary<T, T, Canonical<Op>>;
  if constexpr (kOperands == 2) return &binary<T, T, T, Canonical<Op>>;
  if constexpr (kOperands == 3) return &ternary<T, T, T, T, Canonical<Op>>;
}

/// The result for one lane in the host's rounding mode. `volatile` keeps the arithmetic inside the RoundingScope.
template <class T, class Op, int kOperands>
T computed(T a, T b, T c) {
  volatile T x = a;
  volatile T y = b;
  volatile T z = c;
  volatile T result = T();
  if constexpr (kOperands == 1) result = Canonical<Op>()(T(x));
  if constexpr (kOperands == 2) result = Canonical<Op>()(T(x), T(y));
  if constexpr (kOperands == 3) result = Canonical<Op>()(T(x), T(y), T(z));
  return T(result);
}

/// div.approx computes a * (1 / b), and the reciprocal of a large b is flushed: PTX ISA, div.
struct ApproximateDivide {
  float operator()(float a, float b) const {
    const bool flushes = std::fabs(b) > 0x1p126F && !std::isinf(b);
    return flushes ? a * std::copysign(0.0F, b) : a / b;
  }
};

/// Whether .ftz flushes a result of the least normal magnitude: it does if the result, rounded as if the exponent had
/// no least value, is smaller. The operands are therefore scaled. Other sums that are so small are exact. Measured on
/// an H100.
template <class Op, int kOperands, class T>
bool is_rounded_up_to_normal(T a, T b, T c) {
  constexpr T kScale = static_cast<T>(0x1p64);
  constexpr bool kMultiplies =
      std::is_same_v<Op, Multiply> || std::is_same_v<Op, Divide> || std::is_same_v<Op, ApproximateDivide>;
  if constexpr (!kMultiplies && !std::is_same_v<Op, MultiplyAdd>) return false;
  const T scaled = computed<T, Op, kOperands>(a * kScale, b, kMultiplies ? c : c * kScale);
  return std::fabs(scaled) < std::numeric_limits<T>::min() * kScale;
}

/// Handler of instructions with a FloatMode.
template <class T, class Op, int kOperands>
void execute_with_mode(Warp& warp, const Instruction& in, Mask lanes) {
  const FloatMode mode = FloatMode::unpack(in.mode);
  const RoundingScope scope(mode.rounding);
  T* const d = warp.reg<T>(in.op[0]);
  const T* const a = warp.reg<T>(in.op[1]);
  const T* const b = warp.reg<T>(in.op[kOperands > 1 ? 2 : 1]);
  const T* const c = warp.reg<T>(in.op[kOperands > 2 ? 3 : 1]);
  const auto input = [&](T value) { return mode.flush ? flushed(value) : value; };
  for (; lanes != 0; lanes &= lanes - 1) {
    const int l = std::countr_zero(lanes);
    const T x = input(a[l]), y = input(b[l]), z = input(c[l]);
    T result = input(computed<T, Op, kOperands>(x, y, z));
    if (mode.flush && std::fabs(result) == std::numeric_limits<T>::min() &&
        is_rounded_up_to_normal<Op, kOperands>(x, y, z)) {
      result = std::copysign(T(), result);
    }
    d[l] = mode.saturate ? saturated(result) : result;
  }
}

/// The same for f32 that is rounded to nearest, which the compiler vectorises: all lanes are computed at once, and the
/// results of `lanes` are kept.
template <class Op, int kOperands, bool kFlushes, bool kSaturates>
[[gnu::always_inline]] inline void nearest_lanes(Warp& warp, const Instruction& in, Mask lanes) {
  constexpr int kFewLanes = kWarpSize / 4;
  if (std::popcount(lanes) < kFewLanes) return execute_with_mode<float, Op, kOperands>(warp, in, lanes);
  const auto* const a = warp.reg<float>(in.op[1]);
  const auto* const b = warp.reg<float>(in.op[kOperands > 1 ? 2 : 1]);
  const auto* const c = warp.reg<float>(in.op[kOperands > 2 ? 3 : 1]);
  alignas(64) float x[kWarpSize], y[kWarpSize], z[kWarpSize], result[kWarpSize];
  for (int l = 0; l < kWarpSize; ++l) {
    x[l] = kFlushes ? flushed(a[l]) : a[l];
    y[l] = kFlushes ? flushed(b[l]) : b[l];
    z[l] = kFlushes ? flushed(c[l]) : c[l];
  }
  std::uint32_t least = 0;  // whether a result is the smallest normal number, perhaps by rounding
  for (int l = 0; l < kWarpSize; ++l) {
    if constexpr (kOperands == 1) result[l] = Canonical<Op>()(x[l]);
    if constexpr (kOperands == 2) result[l] = Canonical<Op>()(x[l], y[l]);
    if constexpr (kOperands == 3) result[l] = Canonical<Op>()(x[l], y[l], z[l]);
  }
  for (int l = 0; l < kWarpSize; ++l) {
    if constexpr (kFlushes) {
      least |= std::fabs(result[l]) == std::numeric_limits<float>::min() ? 1U : 0U;
      result[l] = flushed(result[l]);
    }
    if constexpr (kSaturates) result[l] = saturated(result[l]);
  }
  if (least != 0) return execute_with_mode<float, Op, kOperands>(warp, in, lanes);
  auto* const d = warp.reg<float>(in.op[0]);
  each_lane(lanes, [&](int l) { d[l] = result[l]; });
}

template <class Op, int kOperands, bool kFlushes, bool kSaturates>
void execute_nearest(Warp& warp, const Instruction& in, Mask lanes) {
  nearest_lanes<Op, kOperands, kFlushes, kSaturates>(warp, in, lanes);
}
template <class Op, int kOperands, bool kFlushes, bool kSaturates>
TILEWRIGHT_TARGET_FMA void execute_nearest_with_hardware(Warp& warp, const Instruction& in, Mask lanes) {
  nearest_lanes<Op, kOperands, kFlushes, kSaturates>(warp, in, lanes);
}

template <class Op, int kOperands, bool kFlushes, bool kSaturates>
Handler nearest_handler() {
  return has_hardware_fma() ? &execute_nearest_with_hardware<Op, kOperands, kFlushes, kSaturates>
                            : &execute_nearest<Op, kOperands, kFlushes, kSaturates>;
}

template <class T>
[[gnu::always_inline]] inline void fma_lanes(Warp& warp, const Instruction& in, Mask lanes) {
  T* const d = warp.reg<T>(in.op[0]);
  const T* const a = warp.reg<T>(in.op[1]);
  const T* const b = warp.reg<T>(in.op[2]);
  const T* const c = warp.reg<T>(in.op[3]);
  if (lanes == kAllLanes) {
    TILEWRIGHT_INDEPENDENT_ITERATIONS
    for (int l = 0; l < kWarpSize; ++l) d[l] = Canonical<MultiplyAdd>()(a[l], b[l], c[l]);
  } else {
    for (; lanes != 0; lanes &= lanes - 1) {
      const int l = std::countr_zero(lanes);
      d[l] = Canonical<MultiplyAdd>()(a[l], b[l], c[l]);
    }
  }
}

TILEWRIGHT_TARGET_FMA void execute_fma_f32_with_hardware(Warp& warp, const Instruction& in, Mask lanes) {
  fma_lanes<float>(warp, in, lanes);
}
TILEWRIGHT_TARGET_FMA void execute_fma_f64_with_hardware(Warp& warp, const Instruction& in, Mask lanes) {
  fma_lanes<double>(warp, in, lanes);
}

template <class T>
Handler fma_handler() {
  if (!has_hardware_fma()) return plain_handler<T, MultiplyAdd, 3>();
  return std::is_same_v<T, float> ? &execute_fma_f32_with_hardware : &execute_fma_f64_with_hardware;
}

FloatMode take_mode(InstructionReader& reader) {
  FloatMode mode;
  const int rounding = reader.take_one_of({"rn", "rz", "rm", "rp"});
  if (rounding > 0) mode.rounding = static_cast<Rounding>(rounding);
  mode.flush = reader.take("ftz");
  mode.saturate = reader.take("sat");
  return mode;
}

template <class T, class Op, int kOperands>
Handler handler_for(const FloatMode& mode) {
  if (mode.pack() == FloatMode().pack()) return plain_handler<T, Op, kOperands>();
  if constexpr (std::is_same_v<T, float>) {
    if (mode.rounding == Rounding::nearest) {
      if (!mode.saturate) return nearest_handler<Op, kOperands, true, false>();
      return mode.flush ? nearest_handler<Op, kOperands, true, true>() : nearest_handler<Op, kOperands, false, true>();
    }
  }
  return &execute_with_mode<T, Op, kOperands>;
}

template <class Op, int kOperands>
void decode_typed(InstructionReader& reader, PtxType type, const FloatMode& mode) {
  reader.out().mode = mode.pack();
  const Handler handler =
      type == PtxType::f64 ? handler_for<double, Op, kOperands>(mode) : handler_for<float, Op, kOperands>(mode);
  decode_uniform(reader, type, kOperands + 1, handler);
}

/// rcp.approx.ftz.f64 and rsqrt.approx.ftz.f64 read and write the upper words only.
template <class Op>
struct OfUpperWord {
  static constexpr std::uint64_t kUpper = 0xffffffff00000000;
  static double flushed_upper(double value) {
    const double upper = std::bit_cast<double>(std::bit_cast<std::uint64_t>(value) & kUpper);
    return std::fabs(upper) < std::numeric_limits<double>::min() ? std::copysign(0.0, upper) : upper;
  }
  double operator()(double a) const { return flushed_upper(Op()(flushed_upper(a))); }
};

template <class Op>
void decode_reciprocal(InstructionReader& reader) {
  const FloatMode mode = take_mode(reader);
  const bool approximates = reader.take_one_of({"approx"}) == 0;
  const PtxType type = reader.type();
  if (approximates && type == PtxType::f64 && mode.flush) {
    return decode_uniform(reader, type, 2, plain_handler<double, OfUpperWord<Op>, 1>());
  }
  decode_typed<Op, 1>(reader, type, mode);
}

void decode_divide(InstructionReader& reader) {
  const FloatMode mode = take_mode(reader);
  const int kind = reader.take_one_of({"approx", "full"});
  const PtxType type = reader.type();
  if (kind != 0 || type != PtxType::f32) return decode_typed<Divide, 2>(reader, type, mode);
  reader.out().mode = mode.pack();
  decode_uniform(reader, type, 3, handler_for<float, ApproximateDivide, 2>(mode));
}

template <class Op, int kOperands>
void decode_float(InstructionReader& reader) {
  const FloatMode mode = take_mode(reader);
  reader.take_one_of({"approx", "full"});
  decode_typed<Op, kOperands>(reader, reader.type(), mode);
}

void decode_fma(InstructionReader& reader) {
  const FloatMode mode = take_mode(reader);
  const PtxType type = reader.type();
  decode_typed<MultiplyAdd, 3>(reader, type, mode);
  if (mode.pack() != FloatMode().pack()) return;
  reader.out().execute = type == PtxType::f64 ? fma_handler<double>() : fma_handler<float>();
}

template <class Op>
void decode_extremum_of_three(InstructionReader& reader, const FloatMode& mode) {
  reader.require(Target{100});
  const bool magnitudes = reader.take("abs");
  const PtxType type = reader.type();
  if (magnitudes) {
    decode_typed<OfThree<Op, true>, 3>(reader, type, mode);
  } else {
    decode_typed<OfThree<Op, false>, 3>(reader, type, mode);
  }
}

template <class Op>
void decode_extremum(InstructionReader& reader) {
  const FloatMode mode = take_mode(reader);
  const bool propagates_nan = reader.take("NaN");
  if (reader.operands() == 4) {
    return propagates_nan ? decode_extremum_of_three<PropagatesNan<Op>>(reader, mode)
                          : decode_extremum_of_three<Op>(reader, mode);
  }
  const bool magnitudes = reader.take("xorsign") && reader.take("abs");
  const PtxType type = reader.type();
  if (magnitudes && propagates_nan) {
    decode_typed<OfMagnitudes<PropagatesNan<Op>>, 2>(reader, type, mode);
  } else if (magnitudes) {
    decode_typed<OfMagnitudes<Op>, 2>(reader, type, mode);
  } else if (propagates_nan) {
    decode_typed<PropagatesNan<Op>, 2>(reader, type, mode);
  } else {
    decode_typed<Op, 2>(reader, type, mode);
  }
}

/// copysign moves bits: a NaN keeps its payload.
void decode_copysign(InstructionReader& reader) {
  const PtxType type = reader.type();
  decode_uniform(reader, type, 3,
                 type == PtxType::f64 ? Handler{&binary<double, double, double, CopySign>}
                                      : &binary<float, float, float, CopySign>);
}

/// Functions that PTX has only as .approx.f32.
template <class Op>
void decode_f32_function(InstructionReader& reader) {
  const FloatMode mode = take_mode(reader);
  if (!reader.take("approx")) reader.refuse("this function without .approx");
  const PtxType type = reader.type();
  if (type != PtxType::f32) reader.refuse("this function on a type other than .f32");
  reader.out().mode = mode.pack();
  decode_uniform(reader, type, 2, handler_for<float, Op, 1>(mode));
}

// testp ------------------------------------------------------------------------------------------------------------

enum class Property : std::uint8_t { finite, infinite, number, notanumber, normal, subnormal };

template <class T>
bool has_property(T value, Property property) {
  switch (property) {
    case Property::finite:
      return std::isfinite(value);
    case Property::infinite:
      return std::isinf(value);
    case Property::number:
      return !std::isnan(value);
    case Property::notanumber:
      return std::isnan(value);
    case Property::normal:
      return std::isnormal(value) || value == 0;  // a GPU answers true for zero
    case Property::subnormal:
      return std::fpclassify(value) == FP_SUBNORMAL;
  }
  return false;
}

template <class T>
void execute_test_property(Warp& warp, const Instruction& in, Mask lanes) {
  const T* const a = warp.reg<T>(in.op[1]);
  Mask holds = 0;
  each_lane(lanes, [&](int l) {
    if (has_property(a[l], static_cast<Property>(in.mode))) holds |= Mask{1} << l;
  });
  warp.set_predicate(in.op[0], holds, lanes);
}

void decode_test_property(InstructionReader& reader) {
  const int property = reader.take_one_of({"finite", "infinite", "number", "notanumber", "normal", "subnormal"});
  if (property < 0) reader.refuse("testp of this property");
  const PtxType type = reader.type();
  reader.finish();
  reader.expect_operands(2);
  reader.destination(reader.operand(0), PtxType::pred);
  reader.source(reader.operand(1), type);
  reader.out().mode = static_cast<std::uint8_t>(property);
  reader.out().execute = type == PtxType::f64 ? &execute_test_property<double> : &execute_test_property<float>;
}

constexpr std::array kOpcodes = {
    OpcodeRow{"add", OperandClass::floating, decode_float<Add, 2>},
    OpcodeRow{"sub", OperandClass::floating, decode_float<Subtract, 2>},
    OpcodeRow{"mul", OperandClass::floating, decode_float<Multiply, 2>},
    OpcodeRow{"div", OperandClass::floating, decode_divide},
    OpcodeRow{"fma", OperandClass::floating, decode_fma},
    OpcodeRow{"mad", OperandClass::floating, decode_fma},
    OpcodeRow{"min", OperandClass::floating, decode_extremum<Minimum>},
    OpcodeRow{"max", OperandClass::floating, decode_extremum<Maximum>},
    OpcodeRow{"abs", OperandClass::floating, decode_float<Absolute, 1>},
    OpcodeRow{"neg", OperandClass::floating, decode_float<Negate, 1>},
    OpcodeRow{"sqrt", OperandClass::floating, decode_float<SquareRoot, 1>},
    OpcodeRow{"rcp", OperandClass::floating, decode_reciprocal<Reciprocal>},
    OpcodeRow{"rsqrt", OperandClass::floating, decode_reciprocal<ReciprocalSquareRoot>},
    OpcodeRow{"ex2", OperandClass::floating, decode_f32_function<Exp2>},
    OpcodeRow{"lg2", OperandClass::floating, decode_f32_function<Log2>},
    OpcodeRow{"sin", OperandClass::floating, decode_f32_function<Sine>},
    OpcodeRow{"cos", OperandClass::floating, decode_f32_function<Cosine>},
    OpcodeRow{"tanh", OperandClass::floating, decode_f32_function<HyperbolicTangent>},
    OpcodeRow{"copysign", OperandClass::floating, decode_copysign},
    OpcodeRow{"testp", OperandClass::floating, decode_test_property},
};

}  // namespace

std::span<const OpcodeRow> float_opcodes() { return kOpcodes; }

}  // namespace tilewright::emulator
