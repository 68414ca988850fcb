// Comparisons and selections: setp set selp slct.
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "tilewright/emulator/instructions/hardware_fma.hpp"
#include "tilewright/emulator/instructions/instruction_set.hpp"
#include "tilewright/emulator/instructions/lanes.hpp"
#include "tilewright/emulator/instructions/rounding.hpp"

namespace tilewright::emulator {
namespace {

template <class T>
auto comparable(T value) {
  if constexpr (kIsSmallFloat<T>) {
    return value.value();
  } else {
    return value;
  }
}

// Each comparison takes two numbers, or two vectors by reference, as the ABI of vectors depends on the target; `holds`
// is then a vector of all ones and zeros. kPredicate is the number of the comparison in vcmpps, and kIntegerPredicate
// that in vpcmpd (Intel's manual, VCMPPS and VPCMPD).

struct Equal {
  static constexpr int kPredicate = 0, kIntegerPredicate = 0;
  template <class T, class Holds>
  [[gnu::always_inline]] static void compare(const T& a, const T& b, Holds& holds) {
    holds = a == b;
  }
};
struct NotEqual {  // ordered: false when an operand is NaN
  static constexpr int kPredicate = 12, kIntegerPredicate = 4;
  template <class T, class Holds>
  [[gnu::always_inline]] static void compare(const T& a, const T& b, Holds& holds) {
    if constexpr (std::is_integral_v<T>) {
      holds = a != b;
    } else {
      holds = (a < b) | (a > b);
    }
  }
};
struct Less {
  static constexpr int kPredicate = 17, kIntegerPredicate = 1;
  template <class T, class Holds>
  [[gnu::always_inline]] static void compare(const T& a, const T& b, Holds& holds) {
    holds = a < b;
  }
};
struct LessOrEqual {
  static constexpr int kPredicate = 18, kIntegerPredicate = 2;
  template <class T, class Holds>
  [[gnu::always_inline]] static void compare(const T& a, const T& b, Holds& holds) {
    holds = a <= b;
  }
};
struct Greater {
  static constexpr int kPredicate = 30, kIntegerPredicate = 6;
  template <class T, class Holds>
  [[gnu::always_inline]] static void compare(const T& a, const T& b, Holds& holds) {
    holds = a > b;
  }
};
struct GreaterOrEqual {
  static constexpr int kPredicate = 29, kIntegerPredicate = 5;
  template <class T, class Holds>
  [[gnu::always_inline]] static void compare(const T& a, const T& b, Holds& holds) {
    holds = a >= b;
  }
};
struct EitherNan {
  static constexpr int kPredicate = 3;
  template <class T, class Holds>
  [[gnu::always_inline]] static void compare(const T& a, const T& b, Holds& holds) {
    holds = (a != a) | (b != b);
  }
};
struct NeitherNan {
  static constexpr int kPredicate = 7;
  template <class T, class Holds>
  [[gnu::always_inline]] static void compare(const T& a, const T& b, Holds& holds) {
    holds = (a == a) & (b == b);
  }
};
/// True when an operand is NaN, else the ordered comparison.
template <class Ordered>
struct OrUnordered {
  static constexpr int kPredicate = Ordered::kPredicate ^ 8;
  template <class T, class Holds>
  [[gnu::always_inline]] static void compare(const T& a, const T& b, Holds& holds) {
    Holds unordered;
    EitherNan::compare(a, b, unordered);
    Ordered::compare(a, b, holds);
    holds = holds | unordered;
  }
};

/// .ftz: subnormal inputs count as zero. Values of f16 are compared as f32.
template <class T, class Comparison>
struct AfterFlush {
  static constexpr float kSmallest = std::is_same_v<T, F16> ? 0x1p-14F : std::numeric_limits<float>::min();
  static constexpr int kPredicate = Comparison::kPredicate;
  template <class V>
  [[gnu::always_inline]] static void flush(const V& value, V& to) {
    to = ((value > -kSmallest) & (value < kSmallest)) ? V{} : value;
  }
  template <class V, class Holds>
  [[gnu::always_inline]] static void compare(const V& a, const V& b, Holds& holds) {
    V flushed_a, flushed_b;
    flush(a, flushed_a);
    flush(b, flushed_b);
    Comparison::compare(flushed_a, flushed_b, holds);
  }
};

/// The bit of each lane: the loop below vectorises with these in memory.
constexpr auto kLaneBits = [] {
  std::array<Mask, kWarpSize> bits{};
  for (std::size_t l = 0; l < bits.size(); ++l) bits[l] = Mask{1} << l;
  return bits;
}();

using CompareLanes = Mask (*)(Warp& warp, Slot a, Slot b);

/// The type in which values of T are compared.
template <class T>
using Compared = std::conditional_t<
    kIsSmallFloat<T>, float,
    std::conditional_t<sizeof(T) == 2, std::conditional_t<std::is_signed_v<T>, std::int32_t, std::uint32_t>, T>>;

/// The values of the lanes. A register has kPacked values of T, of which number kPart is compared.
template <class T, int kPacked, int kPart>
[[gnu::always_inline]] inline void take_compared(const T* a, Compared<T>* to) {
  for (int l = 0; l < kWarpSize; ++l) to[l] = comparable(a[l * kPacked + kPart]);
}

template <class T, class Comparison>
Mask compare_each(const T* a, const T* b) {
  Mask all = 0;
  for (int l = 0; l < kWarpSize; ++l) {
    bool holds = false;
    Comparison::compare(a[l], b[l], holds);
    all |= holds ? kLaneBits[static_cast<std::size_t>(l)] : 0;
  }
  return all;
}

#if defined(__x86_64__)
/// As compare_each(), with vectors.
template <class T, class Comparison>
TILEWRIGHT_TARGET_FMA Mask compare_vectors(const T* a, const T* b) {
  using Vector [[gnu::vector_size(32)]] = T;
  using Floats [[gnu::vector_size(32)]] = float;
  using Doubles [[gnu::vector_size(32)]] = double;
  constexpr int kLanes = 32 / sizeof(T);
  Mask all = 0;
  for (int l = 0; l < kWarpSize; l += kLanes) {
    Vector x, y;
    std::memcpy(&x, a + l, sizeof(x));
    std::memcpy(&y, b + l, sizeof(y));
    decltype(x == y) holds;
    Comparison::compare(x, y, holds);
    int bits = 0;
    if constexpr (sizeof(T) == 4) {
      bits = __builtin_ia32_movmskps256(reinterpret_cast<Floats>(holds));
    } else {
      bits = __builtin_ia32_movmskpd256(reinterpret_cast<Doubles>(holds));
    }
    all |= static_cast<Mask>(bits) << l;
  }
  return all;
}

/// The lanes of 64 bytes of `a` and `b` whose comparison holds, one bit each.
template <class Comparison>
TILEWRIGHT_TARGET_AVX512 unsigned compare_block(const float* a, const float* b) {
  __m512 x = _mm512_loadu_ps(a), y = _mm512_loadu_ps(b);
  if constexpr (requires { Comparison::kSmallest; }) {
    const __m512 smallest = _mm512_set1_ps(Comparison::kSmallest);
    x = _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(_mm512_abs_ps(x), smallest, _CMP_NLT_UQ), x);
    y = _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(_mm512_abs_ps(y), smallest, _CMP_NLT_UQ), y);
  }
  return _mm512_cmp_ps_mask(x, y, Comparison::kPredicate);
}
template <class Comparison>
TILEWRIGHT_TARGET_AVX512 unsigned compare_block(const double* a, const double* b) {
  return _mm512_cmp_pd_mask(_mm512_loadu_pd(a), _mm512_loadu_pd(b), Comparison::kPredicate);
}
template <class Comparison, class T>
TILEWRIGHT_TARGET_AVX512 unsigned compare_block(const T* a, const T* b) {
  constexpr int kPredicate = Comparison::kIntegerPredicate;
  const __m512i x = _mm512_loadu_si512(a), y = _mm512_loadu_si512(b);
  if constexpr (std::is_same_v<T, std::int32_t>) return _mm512_cmp_epi32_mask(x, y, kPredicate);
  if constexpr (std::is_same_v<T, std::uint32_t>) return _mm512_cmp_epu32_mask(x, y, kPredicate);
  if constexpr (std::is_same_v<T, std::int64_t>) return _mm512_cmp_epi64_mask(x, y, kPredicate);
  if constexpr (std::is_same_v<T, std::uint64_t>) return _mm512_cmp_epu64_mask(x, y, kPredicate);
}
template <class T, class Comparison>
TILEWRIGHT_TARGET_AVX512 Mask compare_blocks(const T* a, const T* b) {
  constexpr int kLanes = 64 / sizeof(T);
  Mask all = 0;
  for (int l = 0; l < kWarpSize; l += kLanes) all |= Mask{compare_block<Comparison>(a + l, b + l)} << l;
  return all;
}

template <class T, int kPacked, int kPart>
TILEWRIGHT_TARGET_FMA void take_compared_with_hardware(const T* a, Compared<T>* to) {
  take_compared<T, kPacked, kPart>(a, to);
}
/// setp without a second result or a predicate that is combined. Operands: those of execute_setp().
template <class T, class Comparison>
TILEWRIGHT_TARGET_AVX512 void execute_plain_setp(Warp& warp, const Instruction& in, Mask lanes) {
  warp.set_predicate(in.op[0], compare_blocks<T, Comparison>(warp.reg<T>(in.op[2]), warp.reg<T>(in.op[3])), lanes);
}
#endif

template <class T, class Comparison, int kPacked = 1, int kPart = 0>
Mask compare_lanes(Warp& warp, Slot first, Slot second) {
  const T* const a = warp.reg<T>(first);
  const T* const b = warp.reg<T>(second);
#if defined(__x86_64__)
  if (has_hardware_fma()) {
    if constexpr (std::is_same_v<T, Compared<T>>) {
      return has_avx512() ? compare_blocks<T, Comparison>(a, b) : compare_vectors<T, Comparison>(a, b);
    } else {  // the converted values are stored in vectors of 32 bytes, from which no load of 64 bytes is forwarded
      alignas(32) Compared<T> of_a[kWarpSize], of_b[kWarpSize];
      take_compared_with_hardware<T, kPacked, kPart>(a, of_a);
      take_compared_with_hardware<T, kPacked, kPart>(b, of_b);
      return compare_vectors<Compared<T>, Comparison>(of_a, of_b);
    }
  }
#endif
  Compared<T> of_a[kWarpSize], of_b[kWarpSize];
  take_compared<T, kPacked, kPart>(a, of_a);
  take_compared<T, kPacked, kPart>(b, of_b);
  return compare_each<Compared<T>, Comparison>(of_a, of_b);
}

struct ComparisonRow {
  std::string_view name;
  CompareLanes compare = nullptr;
  CompareLanes compare_upper = nullptr;  // of the upper halves, for f16x2 and bf16x2
  Handler plain_setp = nullptr;          // for CPUs with AVX-512, where there is one
};

template <class T, class Comparison>
constexpr Handler plain_setp() {
#if defined(__x86_64__)
  if constexpr (std::is_same_v<T, Compared<T>>) return &execute_plain_setp<T, Comparison>;
#endif
  return nullptr;
}

template <class T, class Comparison>
constexpr ComparisonRow integer_row(std::string_view name) {
  return {name, &compare_lanes<T, Comparison>, nullptr, plain_setp<T, Comparison>()};
}

template <class T>
constexpr std::array kIntegerComparisons = {
    integer_row<T, Equal>("eq"),          integer_row<T, NotEqual>("ne"),    integer_row<T, Less>("lt"),
    integer_row<T, LessOrEqual>("le"),    integer_row<T, Greater>("gt"),     integer_row<T, GreaterOrEqual>("ge"),
    integer_row<T, Less>("lo"),           integer_row<T, LessOrEqual>("ls"), integer_row<T, Greater>("hi"),
    integer_row<T, GreaterOrEqual>("hs"),
};

template <class T, class Comparison, int kPacked, bool kFlushes>
constexpr ComparisonRow float_row(std::string_view name) {
  using Applied = std::conditional_t<kFlushes, AfterFlush<T, Comparison>, Comparison>;
  return {name, &compare_lanes<T, Applied, kPacked, 0>,
          kPacked == 1 ? nullptr : &compare_lanes<T, Applied, kPacked, kPacked - 1>, plain_setp<T, Applied>()};
}

template <class T, int kPacked = 1, bool kFlushes = false>
constexpr std::array kFloatComparisons = {
    float_row<T, Equal, kPacked, kFlushes>("eq"),
    float_row<T, NotEqual, kPacked, kFlushes>("ne"),
    float_row<T, Less, kPacked, kFlushes>("lt"),
    float_row<T, LessOrEqual, kPacked, kFlushes>("le"),
    float_row<T, Greater, kPacked, kFlushes>("gt"),
    float_row<T, GreaterOrEqual, kPacked, kFlushes>("ge"),
    float_row<T, OrUnordered<Equal>, kPacked, kFlushes>("equ"),
    float_row<T, OrUnordered<NotEqual>, kPacked, kFlushes>("neu"),
    float_row<T, OrUnordered<Less>, kPacked, kFlushes>("ltu"),
    float_row<T, OrUnordered<LessOrEqual>, kPacked, kFlushes>("leu"),
    float_row<T, OrUnordered<Greater>, kPacked, kFlushes>("gtu"),
    float_row<T, OrUnordered<GreaterOrEqual>, kPacked, kFlushes>("geu"),
    float_row<T, NeitherNan, kPacked, kFlushes>("num"),
    float_row<T, EitherNan, kPacked, kFlushes>("nan"),
};

std::span<const ComparisonRow> comparisons(PtxType type, bool flushes) {
  if (flushes && type == PtxType::f32) return kFloatComparisons<float, 1, true>;
  if (flushes && type == PtxType::f16) return kFloatComparisons<F16, 1, true>;
  if (flushes && type == PtxType::f16x2) return kFloatComparisons<F16, 2, true>;
  switch (type) {
    case PtxType::b16:
    case PtxType::u16:
      return kIntegerComparisons<std::uint16_t>;
    case PtxType::s16:
      return kIntegerComparisons<std::int16_t>;
    case PtxType::b32:
    case PtxType::u32:
      return kIntegerComparisons<std::uint32_t>;
    case PtxType::s32:
      return kIntegerComparisons<std::int32_t>;
    case PtxType::b64:
    case PtxType::u64:
      return kIntegerComparisons<std::uint64_t>;
    case PtxType::s64:
      return kIntegerComparisons<std::int64_t>;
    case PtxType::f16:
      return kFloatComparisons<F16>;
    case PtxType::bf16:
      return kFloatComparisons<BF16>;
    case PtxType::f16x2:
      return kFloatComparisons<F16, 2>;
    case PtxType::bf16x2:
      return kFloatComparisons<BF16, 2>;
    case PtxType::f32:
      return kFloatComparisons<float>;
    case PtxType::f64:
      return kFloatComparisons<double>;
    default:
      return {};
  }
}

const ComparisonRow* take_comparison(InstructionReader& reader, PtxType type, bool flushes) {
  for (const ComparisonRow& row : comparisons(type, flushes)) {
    if (reader.take(row.name)) return &row;
  }
  reader.refuse("this comparison");
}

enum class Combination : std::uint8_t { none, conjunction, disjunction, exclusive };

Combination take_combination(InstructionReader& reader) {
  return static_cast<Combination>(reader.take_one_of({"and", "or", "xor"}) + 1);
}

Mask combine(Combination combination, Mask a, Mask b) {
  switch (combination) {
    case Combination::conjunction:
      return a & b;
    case Combination::disjunction:
      return a | b;
    case Combination::exclusive:
      return a ^ b;
    default:
      return a;
  }
}

/// Operands: p, q, a, b, and the predicate to combine with and the mask to xor it with. q is that of the opposite
/// comparison or, for packed operands, of their upper halves.
void execute_setp(Warp& warp, const Instruction& in, Mask lanes) {
  const auto& row = *static_cast<const ComparisonRow*>(in.table);
  const Mask holds = row.compare(warp, in.op[2], in.op[3]);
  const Mask second = row.compare_upper == nullptr ? ~holds : row.compare_upper(warp, in.op[2], in.op[3]);
  const Mask with = warp.predicate(in.op[4]) ^ warp.predicate(in.op[5]);
  const auto combination = static_cast<Combination>(in.mode);
  warp.set_predicate(in.op[1], combine(combination, second, with), lanes);
  warp.set_predicate(in.op[0], combine(combination, holds, with), lanes);
}

/// Decodes the two compared operands, from operand `first` on, and the predicate that the result is combined with.
void decode_comparison(InstructionReader& reader, PtxType type, std::size_t first, Combination combination) {
  reader.expect_operands(first + (combination == Combination::none ? 2U : 3U));
  reader.source(reader.operand(first), type);
  reader.source(reader.operand(first + 1), type);
  reader.predicate_source(combination == Combination::none ? integer_operand(1) : reader.operand(first + 2));
  reader.out().mode = static_cast<std::uint8_t>(combination);
}

void decode_setp(InstructionReader& reader) {
  const bool flushes = reader.take("ftz");
  const PtxType type = reader.type();
  const ComparisonRow* const row = take_comparison(reader, type, flushes);
  reader.out().table = row;
  const Combination combination = take_combination(reader);
  reader.finish();
  reader.expect_operands(3, 4);
  const Operand& destination = reader.operand(0);
  const bool is_plain = destination.kind != Operand::Kind::pair && combination == Combination::none;
  if (destination.kind == Operand::Kind::pair) {
    reader.destination(destination.elements[0], PtxType::pred);
    reader.destination(destination.elements[1], PtxType::pred);
  } else {
    reader.destination(destination, PtxType::pred);
    reader.destination(Operand(), PtxType::pred);
  }
  decode_comparison(reader, type, 1, combination);
  reader.out().execute = is_plain && has_avx512() && row->plain_setp != nullptr ? row->plain_setp : &execute_setp;
}

/// d = holds ? immediate : 0, in each half of d for packed operands. Operands: d, unused, a, b, predicate and its xor
/// mask.
template <class D>
void execute_set(Warp& warp, const Instruction& in, Mask lanes) {
  const auto& row = *static_cast<const ComparisonRow*>(in.table);
  const Mask with = warp.predicate(in.op[4]) ^ warp.predicate(in.op[5]);
  const auto compared = [&](CompareLanes compare) {
    return combine(static_cast<Combination>(in.mode), compare(warp, in.op[2], in.op[3]), with);
  };
  const Mask result = compared(row.compare);
  const auto value = static_cast<D>(in.immediate);
  if (row.compare_upper == nullptr) {
    D* const d = warp.reg<D>(in.op[0]);
    each_lane(lanes, [&](int l) { d[l] = ((result >> l) & 1) != 0 ? value : D{0}; });
    return;
  }
  const Mask upper = compared(row.compare_upper);
  auto* const d = warp.reg<std::uint16_t>(in.op[0]);
  const auto half = static_cast<std::uint16_t>(value);
  each_lane(lanes, [&](int l) {
    d[2 * l] = ((result >> l) & 1) != 0 ? half : std::uint16_t{0};
    d[2 * l + 1] = ((upper >> l) & 1) != 0 ? half : std::uint16_t{0};
  });
}

/// The value that `set` writes where the comparison holds: 1.0 for a float destination, else all ones.
std::int64_t value_of_true(PtxType type) {
  switch (type) {
    case PtxType::f32:
      return std::bit_cast<std::int32_t>(1.0F);
    case PtxType::f16:
    case PtxType::f16x2:
      return F16::nearest(1.0F).bits;
    case PtxType::bf16:
    case PtxType::bf16x2:
      return BF16::nearest(1.0F).bits;
    default:
      return -1;
  }
}

void decode_set(InstructionReader& reader) {
  const bool flushes = reader.take("ftz");
  const PtxType to = reader.type();
  const PtxType type = reader.type();
  const bool packed = type == PtxType::f16x2 || type == PtxType::bf16x2;
  const bool packed_result = to == PtxType::f16x2 || to == PtxType::bf16x2;
  if ((bytes(to) != 4 && bytes(to) != 2) || (packed && bytes(to) != 4) || (packed_result && to != type)) {
    reader.refuse(fmt::format("set of .{} with a destination of .{}", name(type), name(to)));
  }
  reader.out().table = take_comparison(reader, type, flushes);
  const Combination combination = take_combination(reader);
  reader.finish();
  reader.expect_operands(3, 4);
  reader.destination(reader.operand(0), to);
  reader.destination(Operand(), PtxType::pred);
  decode_comparison(reader, type, 1, combination);
  reader.out().immediate = value_of_true(to);
  reader.out().execute = bytes(to) == 2 ? &execute_set<std::uint16_t> : &execute_set<std::uint32_t>;
}

template <class T>
[[gnu::always_inline]] inline void select_inline(T* d, const T* a, const T* b, Mask chosen) {
  TILEWRIGHT_INDEPENDENT_ITERATIONS
  for (int l = 0; l < kWarpSize; ++l) d[l] = (chosen & kLaneBits[static_cast<std::size_t>(l)]) != 0 ? a[l] : b[l];
}
template <class T>
TILEWRIGHT_TARGET_FMA void select_with_hardware(T* d, const T* a, const T* b, Mask chosen) {
  select_inline(d, a, b, chosen);
}

template <class T>
void execute_selp(Warp& warp, const Instruction& in, Mask lanes) {
  T* const d = warp.reg<T>(in.op[0]);
  const T* const a = warp.reg<T>(in.op[1]);
  const T* const b = warp.reg<T>(in.op[2]);
  const Mask chosen = warp.predicate(in.op[3]) ^ warp.predicate(in.op[4]);
  if (lanes == kAllLanes)
    return has_hardware_fma() ? select_with_hardware(d, a, b, chosen) : select_inline(d, a, b, chosen);
  each_lane(lanes, [=](int l) { d[l] = ((chosen >> l) & 1) != 0 ? a[l] : b[l]; });
}

void decode_selp(InstructionReader& reader) {
  const PtxType type = reader.type();
  reader.finish();
  reader.expect_operands(4);
  reader.destination(reader.operand(0), type);
  reader.source(reader.operand(1), type);
  reader.source(reader.operand(2), type);
  reader.predicate_source(reader.operand(3));
  reader.out().execute = for_bits(reader, type, [](auto t) -> Handler { return &execute_selp<decltype(t)>; });
}

struct SelectBySign {
  template <class T, class C>
  T operator()(T a, T b, C c) const {
    return c >= C(0) ? a : b;
  }
};

struct SelectByFlushedSign {
  template <class T>
  T operator()(T a, T b, float c) const {
    return flushed(c) >= 0 ? a : b;
  }
};

void decode_slct(InstructionReader& reader) {
  const bool flushes = reader.take("ftz");
  const PtxType type = reader.type();
  const PtxType by = reader.type();
  if (by != PtxType::s32 && by != PtxType::f32) reader.refuse("slct with a selector of this type");
  reader.finish();
  reader.expect_operands(4);
  reader.destination(reader.operand(0), type);
  reader.source(reader.operand(1), type);
  reader.source(reader.operand(2), type);
  reader.source(reader.operand(3), by);
  reader.out().execute = for_bits(reader, type, [&](auto t) -> Handler {
    using T = decltype(t);
    if (flushes && by == PtxType::f32) return &ternary<T, T, T, float, SelectByFlushedSign>;
    return by == PtxType::f32 ? Handler{&ternary<T, T, T, float, SelectBySign>}
                              : &ternary<T, T, T, std::int32_t, SelectBySign>;
  });
}

constexpr std::array kOpcodes = {
    OpcodeRow{"setp", OperandClass::any, decode_setp},
    OpcodeRow{"set", OperandClass::any, decode_set},
    OpcodeRow{"selp", OperandClass::any, decode_selp},
    OpcodeRow{"slct", OperandClass::any, decode_slct},
};

}  // namespace

std::span<const OpcodeRow> comparison_opcodes() { return kOpcodes; }

}  // namespace tilewright::emulator
