// add sub mul fma mad div min max abs neg sqrt rcp rsqrt ex2 lg2 sin cos tanh copysign testp on f32 and f64.
// .approx instructions use the host's libm, which is more accurate than the GPU.
#include <array>
#include <cmath>
#include <cstring>

#include "tilewright/emulator/instructions/float_environment.hpp"
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

/// A NaN operand is ignored if the other one is a number; -0 is less than +0. Without branches, so that loops
/// vectorise.
template <bool kTakesLarger>
struct Extremum {
  template <class T>
  T operator()(T a, T b) const {
    using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
    const auto of_a = std::bit_cast<Bits>(a), of_b = std::bit_cast<Bits>(b);
    Bits result = (kTakesLarger ? a > b : a < b) ? of_a : of_b;
    result = a == b ? (kTakesLarger ? of_a & of_b : of_a | of_b) : result;
    result = std::isnan(b) ? of_a : result;
    result = std::isnan(a) ? of_b : result;
    if constexpr (sizeof(T) == 8) {
      if (std::isnan(a) && std::isnan(b)) return quieted(b);
    }
    return std::bit_cast<T>(result);
  }
};
using Minimum = Extremum<false>;
using Maximum = Extremum<true>;
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
    const auto root = static_cast<T>(1.0 / std::sqrt(static_cast<double>(a)));
    return a == 0 ? std::copysign(std::numeric_limits<T>::infinity(), a) : root;
  }
};

// Functions that PTX has only as approximations, as polynomials in f64 that loops vectorise. Their errors, before the
// result is rounded to f32, are below 2^-32 of the result; those of sine and cosine below 2^-36.

/// c[kFirst] + x * (c[kFirst + 1] + x * (...)). Recursive, as a loop around std::fma is not unrolled. With std::fma all
/// hosts have the same results.
template <std::size_t kFirst = 0, std::size_t kTerms>
[[gnu::always_inline]] inline double polynomial(const double (&c)[kTerms], double x) {
  if constexpr (kFirst + 1 == kTerms) {
    return c[kFirst];
  } else {
    return std::fma(polynomial<kFirst + 1>(c, x), x, c[kFirst]);
  }
}

/// 2^x for |x| <= 1000.
[[gnu::always_inline]] inline double power_of_two(double x) {
  // The coefficients are ln(2)^i / i!.
  constexpr double kSeries[] = {1.0,
                                0.6931471805599453,
                                0.2402265069591007,
                                0.05550410866482158,
                                0.009618129107628477,
                                0.0013333558146428443,
                                0.00015403530393381608,
                                1.5252733804059841e-05,
                                1.321548679014431e-06};
  constexpr double kRounder = 0x1.8p52;  // added to a number, leaves its nearest integer in the low bits
  const double shifted = x + kRounder;
  const double power = std::bit_cast<double>((std::bit_cast<std::uint64_t>(shifted) + 1023) << 52);
  return polynomial(kSeries, x - (shifted - kRounder)) * power;
}
struct Exp2 {
  float operator()(float a) const {
    constexpr double kLimit = 200;  // beyond, the result is infinite or zero
    double x = a;
    x = x > kLimit ? kLimit : x;
    x = x < -kLimit ? -kLimit : x;
    const auto result = static_cast<float>(power_of_two(x));
    return std::isnan(a) ? a : result;
  }
};
struct Log2 {
  float operator()(float a) const {
    // a is m * 2^e with m in [sqrt(1/2), sqrt(2)). log2(m) is 2 / ln(2) * atanh(s) with s = (m - 1) / (m + 1). The
    // polynomial of s^2 has the least largest relative error, 2^-37.8, for these m (Remez' algorithm).
    constexpr double kSeries[] = {2.8853900817900864, 0.9617966733416883, 0.5770835849751289, 0.41167271876779726,
                                  0.34073010669082104};
    constexpr std::uint64_t kSquareRootOfHalf = 0x3fe6a09e667f3bcd;
    const auto bits = std::bit_cast<std::uint64_t>(static_cast<double>(a));
    const std::uint64_t above = bits - kSquareRootOfHalf;
    const std::uint64_t exponent_bits = above & 0xfff0000000000000;
    const double m = std::bit_cast<double>(bits - exponent_bits);
    // The exponent as a number, without an instruction that converts 64-bit integers.
    const double exponent =
        std::bit_cast<double>(((exponent_bits + 0x4000000000000000) >> 52) + 0x4330000000000000) - (0x1p52 + 0x400);
    const double s = (m - 1) / (m + 1);
    const auto result = static_cast<float>(exponent + s * polynomial(kSeries, s * s));
    const float of_zero = -std::numeric_limits<float>::infinity();
    float special = a == 0 ? of_zero : result;
    special = a == std::numeric_limits<float>::infinity() ? a : special;
    return a < 0 || std::isnan(a) ? std::numeric_limits<float>::quiet_NaN() : special;
  }
};
/// The fraction of a turn, of which the GPU computes the sine and cosine: the product is rounded to f32, so that large
/// angles have none.
inline double turn(float angle) {
  const double turns = angle * 0.15915494309189535F;
  constexpr double kRounder = 0x1.8p52;  // leaves the nearest integer; larger numbers have no fraction
  const double nearest = std::fabs(turns) < 0x1p51 ? (turns + kRounder) - kRounder : turns;
  return turns - nearest;
}
/// The sine of a fraction of a turn from -1/4 to 1/4.
[[gnu::always_inline]] inline double sine_of_quarter(double turns) {
  // The coefficients are (-1)^i * (2 * pi)^(2i + 1) / (2i + 1)!.
  constexpr double kSeries[] = {6.283185307179586,  -41.341702240399755, 81.60524927607504,
                                -76.70585975306136, 42.058693944897655,  -15.094642576822984,
                                3.8199525848482816, -0.7181223017785006, 0.10422916220813976};
  return turns * polynomial(kSeries, turns * turns);
}
struct Sine {
  float operator()(float a) const {
    const double x = turn(std::fabs(a));
    const double folded = std::fabs(x) > 0.25 ? std::copysign(0.5, x) - x : x;
    return std::copysign(1.0F, a) * static_cast<float>(sine_of_quarter(folded));
  }
};
struct Cosine {
  float operator()(float a) const { return static_cast<float>(sine_of_quarter(0.25 - std::fabs(turn(a)))); }
};
struct HyperbolicTangent {
  float operator()(float a) const {
    // For small angles, x - x^3 / 3 + 2 x^5 / 15; else 1 - 2 / (e^2x + 1), with the sign of the angle.
    constexpr double kSmall = 0x1p-6, kLimit = 40;  // beyond, the result is 1
    constexpr double kSeries[] = {1.0, -1.0 / 3, 2.0 / 15, -17.0 / 315};
    double x = std::fabs(static_cast<double>(a));
    x = x > kLimit ? kLimit : x;
    const double large = 1 - 2 / (power_of_two(x * 2.8853900817779268) + 1);
    const double small = x * polynomial(kSeries, x * x);
    const auto result = static_cast<float>(x < kSmall ? small : large);
    return std::isnan(a) ? a : std::copysign(result, a);
  }
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

/// The registers of an instruction's sources; those that it does not have are the first one.
template <class T, int kOperands>
struct FloatOperands {
  const T* a;
  const T* b;
  const T* c;

  template <class Op>
  [[gnu::always_inline]] T result(int l) const {
    if constexpr (kOperands == 1) return Op()(a[l]);
    if constexpr (kOperands == 2) return Op()(a[l], b[l]);
    if constexpr (kOperands == 3) return Op()(a[l], b[l], c[l]);
  }
};
template <class T, int kOperands>
FloatOperands<T, kOperands> operands_of(Warp& warp, const Instruction& in) {
  return {warp.reg<T>(in.op[1]), warp.reg<T>(in.op[kOperands > 1 ? 2 : 1]), warp.reg<T>(in.op[kOperands > 2 ? 3 : 1])};
}

template <class T, class Op, int kOperands>
[[gnu::always_inline]] inline void plain_lanes(Warp& warp, const Instruction& in, Mask lanes) {
  T* const d = warp.reg<T>(in.op[0]);
  const auto operands = operands_of<T, kOperands>(warp, in);
  if (lanes == kAllLanes) {
    TILEWRIGHT_INDEPENDENT_ITERATIONS
    for (int l = 0; l < kWarpSize; ++l) d[l] = operands.template result<Canonical<Op>>(l);
  } else {
    for (; lanes != 0; lanes &= lanes - 1) {
      const int l = std::countr_zero(lanes);
      d[l] = operands.template result<Canonical<Op>>(l);
    }
  }
}

template <class T, class Op, int kOperands>
void execute_plain(Warp& warp, const Instruction& in, Mask lanes) {
  plain_lanes<T, Op, kOperands>(warp, in, lanes);
}
template <class T, class Op, int kOperands>
TILEWRIGHT_TARGET_FMA void execute_plain_with_hardware(Warp& warp, const Instruction& in, Mask lanes) {
  plain_lanes<T, Op, kOperands>(warp, in, lanes);
}
template <class T, class Op, int kOperands>
TILEWRIGHT_TARGET_AVX512 void execute_plain_with_avx512(Warp& warp, const Instruction& in, Mask lanes) {
  plain_lanes<T, Op, kOperands>(warp, in, lanes);
}

template <class T, class Op, int kOperands>
Handler plain_handler() {
  if (has_avx512()) return &execute_plain_with_avx512<T, Op, kOperands>;
  return has_hardware_fma() ? &execute_plain_with_hardware<T, Op, kOperands> : &execute_plain<T, Op, kOperands>;
}

/// div.approx computes a * (1 / b), and the reciprocal of a large b is flushed: PTX ISA, div.
struct ApproximateDivide {
  float operator()(float a, float b) const {
    const bool flushes = std::fabs(b) > 0x1p126F && !std::isinf(b);
    return flushes ? a * std::copysign(0.0F, b) : a / b;
  }
};

/// Whether the flushing of inputs and results makes a difference other than that the result is flushed. It does not if
/// the instruction selects or changes bits, nor for functions that are near their argument for small ones.
template <class Op>
constexpr bool kFlushesInside = true;
template <bool kTakesLarger>
constexpr bool kFlushesInside<Extremum<kTakesLarger>> = false;
template <class Op>
constexpr bool kFlushesInside<PropagatesNan<Op>> = false;
template <class Op>
constexpr bool kFlushesInside<OfMagnitudes<Op>> = false;
template <class Op, bool kMagnitudes>
constexpr bool kFlushesInside<OfThree<Op, kMagnitudes>> = false;
template <>
constexpr bool kFlushesInside<Absolute> = false;
template <>
constexpr bool kFlushesInside<Negate> = false;
template <>
constexpr bool kFlushesInside<Sine> = false;
template <>
constexpr bool kFlushesInside<Cosine> = false;
template <>
constexpr bool kFlushesInside<HyperbolicTangent> = false;

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

/// Handler of instructions with a FloatMode on hosts that cannot flush.
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

/// A vector of so many bytes.
template <int kBytes>
struct VectorOf;
template <>
struct VectorOf<16> {
  using Type = std::uint32_t __attribute__((vector_size(16)));
};
template <>
struct VectorOf<32> {
  using Type = std::uint32_t __attribute__((vector_size(32)));
};
template <>
struct VectorOf<64> {
  using Type = std::uint32_t __attribute__((vector_size(64)));
};

/// Stores the results of `lanes`, in blocks as large as the vectors that later instructions load: a CPU does not
/// forward smaller stores to larger loads.
template <int kVectorBytes, class T>
[[gnu::always_inline]] inline void store_lanes(const T* results, T* d, Mask lanes) {
  if (lanes == kAllLanes) {
    constexpr int kLanes = kVectorBytes / static_cast<int>(sizeof(T));
    for (int l = 0; l < kWarpSize; l += kLanes) {
      typename VectorOf<kVectorBytes>::Type block;
      std::memcpy(&block, results + l, sizeof(block));
      std::memcpy(d + l, &block, sizeof(block));
    }
  } else {
    each_lane(lanes, [&](int l) { d[l] = results[l]; });
  }
}

/// Computes all lanes in the FloatEnvironment of the instruction.
template <class T, class Op, int kOperands>
[[gnu::always_inline]] inline void environment_lanes(Warp& warp, const Instruction& in, Mask lanes) {
  const FloatMode mode = FloatMode::unpack(in.mode);
  const auto operands = operands_of<T, kOperands>(warp, in);
  alignas(64) T results[kWarpSize];
  T* const d = warp.reg<T>(in.op[0]);
  {
    const FloatEnvironment environment(mode);
    for (int l = 0; l < kWarpSize; ++l) results[l] = operands.template result<Canonical<Op>>(l);
    asm volatile("" : : "r"(results) : "memory");  // the results are stored before the environment ends
  }
  for (int l = 0; l < kWarpSize; ++l) {
    if (mode.flush) results[l] = flushed(results[l]);  // of instructions that are no arithmetic
    if (mode.saturate) results[l] = saturated(results[l]);
  }
  each_lane(lanes, [&](int l) { d[l] = results[l]; });
}

template <class T, class Op, int kOperands>
void execute_in_environment(Warp& warp, const Instruction& in, Mask lanes) {
  environment_lanes<T, Op, kOperands>(warp, in, lanes);
}
template <class T, class Op, int kOperands>
TILEWRIGHT_TARGET_FMA void execute_in_environment_with_hardware(Warp& warp, const Instruction& in, Mask lanes) {
  environment_lanes<T, Op, kOperands>(warp, in, lanes);
}

template <class T, class Op, int kOperands>
Handler environment_handler() {
  if (!kHostFlushes) return &execute_with_mode<T, Op, kOperands>;
  return has_hardware_fma() ? &execute_in_environment_with_hardware<T, Op, kOperands>
                            : &execute_in_environment<T, Op, kOperands>;
}

/// A number that is at most kMostDoubtful if `value` is subnormal, or of the least normal magnitude, to which a
/// subnormal result may have been rounded.
inline std::uint32_t certainty(float value) { return (std::bit_cast<std::uint32_t>(value) << 1) - 1; }
constexpr std::uint32_t kMostDoubtful = 0x00ffffff;

/// Arithmetic of f32 that is rounded to nearest. Changing the host's environment takes longer than the arithmetic, so
/// that all lanes are computed without flushing; this is done only if there was something to flush.
template <int kVectorBytes, class Op, int kOperands, bool kFlushes, bool kSaturates>
[[gnu::always_inline]] inline void nearest_lanes(Warp& warp, const Instruction& in, Mask lanes) {
  const auto operands = operands_of<float, kOperands>(warp, in);
  alignas(64) float results[kWarpSize];
  std::uint32_t least = ~std::uint32_t{0};
  for (int l = 0; l < kWarpSize; ++l) {
    const float result = operands.template result<Canonical<Op>>(l);
    if constexpr (kFlushes && kFlushesInside<Op>) {
      std::uint32_t lane = std::min(certainty(operands.a[l]), certainty(result));
      if constexpr (kOperands > 1) lane = std::min(lane, certainty(operands.b[l]));
      if constexpr (kOperands > 2) lane = std::min(lane, certainty(operands.c[l]));
      least = std::min(least, lane);
    }
    results[l] = kFlushes && !kFlushesInside<Op> ? flushed(result) : result;
  }
  if constexpr (kSaturates) {
    for (int l = 0; l < kWarpSize; ++l) results[l] = saturated(results[l]);
  }
  if (least <= kMostDoubtful) return environment_handler<float, Op, kOperands>()(warp, in, lanes);
  store_lanes<kVectorBytes>(results, warp.reg<float>(in.op[0]), lanes);
}

template <class Op, int kOperands, bool kFlushes, bool kSaturates>
void execute_nearest(Warp& warp, const Instruction& in, Mask lanes) {
  nearest_lanes<16, Op, kOperands, kFlushes, kSaturates>(warp, in, lanes);
}
template <class Op, int kOperands, bool kFlushes, bool kSaturates>
TILEWRIGHT_TARGET_FMA void execute_nearest_with_hardware(Warp& warp, const Instruction& in, Mask lanes) {
  nearest_lanes<32, Op, kOperands, kFlushes, kSaturates>(warp, in, lanes);
}

template <class Op, int kOperands, bool kFlushes, bool kSaturates>
TILEWRIGHT_TARGET_AVX512 void execute_nearest_with_avx512(Warp& warp, const Instruction& in, Mask lanes) {
  nearest_lanes<64, Op, kOperands, kFlushes, kSaturates>(warp, in, lanes);
}

template <class Op, int kOperands, bool kFlushes, bool kSaturates>
Handler nearest_handler() {
  if (has_avx512()) return &execute_nearest_with_avx512<Op, kOperands, kFlushes, kSaturates>;
  return has_hardware_fma() ? &execute_nearest_with_hardware<Op, kOperands, kFlushes, kSaturates>
                            : &execute_nearest<Op, kOperands, kFlushes, kSaturates>;
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
  return environment_handler<T, Op, kOperands>();
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
  decode_typed<MultiplyAdd, 3>(reader, reader.type(), mode);
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
