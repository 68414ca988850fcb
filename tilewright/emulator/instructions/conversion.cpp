// cvt between all integer and float types, cvt to f16x2 and bf16x2, and cvt.pack.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <type_traits>

#include "tilewright/emulator/instructions/fp8_conversion.hpp"
#include "tilewright/emulator/instructions/instruction_set.hpp"
#include "tilewright/emulator/instructions/lanes.hpp"
#include "tilewright/emulator/instructions/rounding.hpp"

namespace tilewright::emulator {
namespace {

/// The modifiers of a cvt, packed into Instruction::immediate.
struct ConversionMode {
  Rounding rounding = Rounding::nearest;
  bool to_integral = false;  // .rni .rzi .rmi .rpi
  bool saturate = false;     // .sat
  bool flush = false;        // .ftz
  bool relu = false;         // .relu: negative results are 0
  bool finite = false;       // .satfinite: the largest finite value instead of infinity; NaN is canonical
  bool ties_away = false;    // .rna: to nearest, ties away from zero

  std::int64_t pack() const {
    return static_cast<std::int64_t>(rounding) | (to_integral ? 4 : 0) | (saturate ? 8 : 0) | (flush ? 16 : 0) |
           (relu ? 32 : 0) | (finite ? 64 : 0) | (ties_away ? 128 : 0);
  }
  static ConversionMode unpack(std::int64_t mode) {
    return {static_cast<Rounding>(mode & 3),
            (mode & 4) != 0,
            (mode & 8) != 0,
            (mode & 16) != 0,
            (mode & 32) != 0,
            (mode & 64) != 0,
            (mode & 128) != 0};
  }
};

double integral(double value, Rounding rounding) {
  switch (rounding) {
    case Rounding::nearest:
      return std::nearbyint(value);
    case Rounding::zero:
      return std::trunc(value);
    case Rounding::down:
      return std::floor(value);
    case Rounding::up:
      return std::ceil(value);
  }
  return value;
}

/// Clamps to the integer's range. NaN becomes 0, or only the highest bit set for f64 sources and 64-bit destinations
/// (PTX ISA, cvt).
template <class D>
D clamp_to_integer(double value, bool from_f64) {
  constexpr int kBits = std::numeric_limits<std::make_unsigned_t<D>>::digits;
  if (std::isnan(value)) {
    return from_f64 || kBits == 64 ? static_cast<D>(std::make_unsigned_t<D>{1} << (kBits - 1)) : D{0};
  }
  const double limit = std::ldexp(1.0, std::is_signed_v<D> ? kBits - 1 : kBits);  // first value too large
  if (value >= limit) return std::numeric_limits<D>::max();
  if (value <= (std::is_signed_v<D> ? -limit : 0.0)) return std::numeric_limits<D>::min();
  return static_cast<D>(value);
}

template <class D, class S>
D integer_to_integer(S value, const ConversionMode& mode) {
  if (!mode.saturate) return static_cast<D>(value);
  const auto wide = static_cast<__int128>(value);
  const auto low = static_cast<__int128>(std::numeric_limits<D>::min());
  const auto high = static_cast<__int128>(std::numeric_limits<D>::max());
  return static_cast<D>(wide < low ? low : wide > high ? high : wide);
}

template <class S>
double widened(S value, const ConversionMode& mode) {
  if constexpr (kIsSmallFloat<S>) {
    return value.value();
  } else if constexpr (std::is_same_v<S, float>) {
    return mode.flush ? flushed(value) : value;
  } else {
    return static_cast<double>(value);
  }
}

template <class D, class S>
D to_float(S value, const ConversionMode& mode) {
  if constexpr (std::is_integral_v<S>) {
    const RoundingScope scope(mode.rounding);
    volatile const S source = value;
    const volatile D result = static_cast<D>(S(source));
    return mode.saturate ? saturated(D(result)) : D(result);
  } else {
    double source = widened(value, mode);
    if (mode.flush && std::isnan(source) && !std::is_same_v<S, double>) source = canonical(std::nanf(""));
    if (mode.to_integral) source = integral(source, mode.rounding);
    D result = D();
    if (mode.rounding == Rounding::nearest || std::is_same_v<D, double>) {
      result = static_cast<D>(source);
    } else {
      const RoundingScope scope(mode.rounding);
      volatile const double exact = source;
      const volatile D rounded = static_cast<D>(double(exact));
      result = rounded;
    }
    if (mode.flush) result = flushed(result);
    // From f16 and f32 a NaN becomes the canonical one; from bf16 and f64 it keeps its payload, and in a copy.
    if constexpr (std::is_same_v<S, float> && std::is_same_v<D, float>) {
      if (mode.pack() == 0) return value;
    }
    if constexpr (std::is_same_v<S, F16> || std::is_same_v<S, float>) result = canonical(result);
    if constexpr (std::is_same_v<S, double> && std::is_same_v<D, double>) {
      if (mode.to_integral && std::isnan(result)) result = quieted(result);
    }
    return mode.saturate ? saturated(result) : result;
  }
}

/// cvt from f64 keeps the upper payload bits of a NaN, while cvt from f32 gives 0x7fff. Measured on an H200.
template <class D>
D small_nan_of(double nan) {
  const auto bits = std::bit_cast<std::uint64_t>(nan);
  const std::uint64_t quiet = std::is_same_v<D, F16> ? 0x7e00 | ((bits >> 42) & 0x1ff) : 0x7fc0 | ((bits >> 45) & 0x3f);
  return {static_cast<std::uint16_t>(((bits >> 48) & 0x8000) | quiet)};
}

/// The value of a source of cvt to a 16-bit type, which .ftz does not change.
template <class S>
double exact_or_odd(S value) {
  if constexpr (std::is_integral_v<S>) {
    return to_odd(value);
  } else {
    return widened(value, ConversionMode());
  }
}

template <class D, class S>
D to_small_float(S value, const ConversionMode& mode) {
  double source = exact_or_odd(value);
  if (mode.to_integral) source = integral(source, mode.rounding);
  if (mode.saturate) source = saturated(source);
  if (mode.relu && source <= 0) source = 0;
  if constexpr (std::is_same_v<S, double>) {
    if (std::isnan(source)) return small_nan_of<D>(source);
  }
  D result = rounded_to<D>(source, mode.to_integral ? Rounding::nearest : mode.rounding);
  if (mode.finite && std::isinf(result.value())) --result.bits;
  return result;
}

template <class D, class S>
D convert(S value, const ConversionMode& mode) {
  if constexpr (kIsSmallFloat<D>) {
    return to_small_float<D>(value, mode);
  } else if constexpr (std::is_floating_point_v<D>) {
    return to_float<D>(value, mode);
  } else if constexpr (std::is_integral_v<S>) {
    return integer_to_integer<D>(value, mode);
  } else {
    return clamp_to_integer<D>(integral(widened(value, mode), mode.rounding), std::is_same_v<S, double>);
  }
}

/// Writes the low `bytes` bytes of each lane's value to a register of this width.
void store_low_bytes(std::byte* register_of_lanes, const std::uint64_t* values, std::size_t bytes, Mask lanes) {
  const auto store = [&](auto type) {
    auto* const to = reinterpret_cast<decltype(type)*>(register_of_lanes);
    each_lane(lanes, [=](int l) { to[l] = static_cast<decltype(type)>(values[l]); });
  };
  switch (bytes) {
    case 1:
      return store(std::uint8_t());
    case 2:
      return store(std::uint16_t());
    case 4:
      return store(std::uint32_t());
    default:
      return store(std::uint64_t());
  }
}

/// Registers may be wider than the types: the low bytes of a source are read, a result is sign- or zero-extended.
/// element_bytes: width of the destination register; mode: width of the source register.
template <class D, class S>
void execute_cvt(Warp& warp, const Instruction& in, Mask lanes) {
  const ConversionMode mode = ConversionMode::unpack(in.immediate);
  std::byte* const d = warp.reg<std::byte>(in.op[0]);
  const std::byte* const a = warp.reg<std::byte>(in.op[1]);
  if (in.element_bytes == sizeof(D) && in.mode == sizeof(S)) {
    D* const to = reinterpret_cast<D*>(d);
    const S* const from = reinterpret_cast<const S*>(a);
    if (in.immediate == 0) {
      each_lane(lanes, [=](int l) { to[l] = convert<D, S>(from[l], ConversionMode()); });
    } else {
      each_lane(lanes, [=, &mode](int l) { to[l] = convert<D, S>(from[l], mode); });
    }
    return;
  }
  std::uint64_t extended[kWarpSize];
  each_lane(lanes, [&](int l) {
    S source;
    std::memcpy(&source, a + l * in.mode, sizeof(S));
    const D result = convert<D, S>(source, mode);
    if constexpr (std::is_integral_v<D>) {
      extended[l] = static_cast<std::uint64_t>(result);
    } else {
      extended[l] = 0;
      std::memcpy(&extended[l], &result, sizeof(D));
    }
  });
  store_low_bytes(d, extended, in.element_bytes, lanes);
}

template <class D>
Handler from_type(PtxType from) {
  switch (from) {
    case PtxType::u8:
      return &execute_cvt<D, std::uint8_t>;
    case PtxType::s8:
      return &execute_cvt<D, std::int8_t>;
    case PtxType::u16:
      return &execute_cvt<D, std::uint16_t>;
    case PtxType::s16:
      return &execute_cvt<D, std::int16_t>;
    case PtxType::u32:
      return &execute_cvt<D, std::uint32_t>;
    case PtxType::s32:
      return &execute_cvt<D, std::int32_t>;
    case PtxType::u64:
      return &execute_cvt<D, std::uint64_t>;
    case PtxType::s64:
      return &execute_cvt<D, std::int64_t>;
    case PtxType::f16:
      return &execute_cvt<D, F16>;
    case PtxType::bf16:
      return &execute_cvt<D, BF16>;
    case PtxType::f32:
      return &execute_cvt<D, float>;
    case PtxType::f64:
      return &execute_cvt<D, double>;
    default:
      return nullptr;
  }
}

Handler handler_of(PtxType to, PtxType from) {
  switch (to) {
    case PtxType::u8:
      return from_type<std::uint8_t>(from);
    case PtxType::s8:
      return from_type<std::int8_t>(from);
    case PtxType::u16:
      return from_type<std::uint16_t>(from);
    case PtxType::s16:
      return from_type<std::int16_t>(from);
    case PtxType::u32:
      return from_type<std::uint32_t>(from);
    case PtxType::s32:
      return from_type<std::int32_t>(from);
    case PtxType::u64:
      return from_type<std::uint64_t>(from);
    case PtxType::s64:
      return from_type<std::int64_t>(from);
    case PtxType::f16:
      return from_type<F16>(from);
    case PtxType::bf16:
      return from_type<BF16>(from);
    case PtxType::f32:
      return from_type<float>(from);
    case PtxType::f64:
      return from_type<double>(from);
    default:
      return nullptr;
  }
}

/// cvt to f16x2 or bf16x2. The first source becomes the upper half.
template <class Small>
void execute_pack(Warp& warp, const Instruction& in, Mask lanes) {
  const ConversionMode mode = ConversionMode::unpack(in.immediate);
  Small* const d = warp.reg<Small>(in.op[0]);
  const float* const a = warp.reg<float>(in.op[1]);
  const float* const b = warp.reg<float>(in.op[2]);
  each_lane(lanes, [&](int l) {
    const float upper = a[l];
    const float lower = b[l];
    d[2 * l + 1] = convert<Small, float>(upper, mode);
    d[2 * l] = convert<Small, float>(lower, mode);
  });
}

/// Rounds f32 to the 10 fraction bits of tf32; the 13 low bits become zero. NaN becomes 0x7fffe000, but keeps its upper
/// bits with .rna, less one with .satfinite (measured on an H200).
std::uint32_t to_tf32(float value, const ConversionMode& mode) {
  constexpr std::uint32_t kKept = 0xffffe000U;
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (std::isnan(value)) {
    if (!mode.ties_away) return kCanonicalNan & kKept;
    return (bits & kKept) - (mode.finite ? 0x2000U : 0U);
  }
  if (mode.relu && value <= 0) return 0;
  if (std::isinf(value)) return mode.finite ? bits - 0x2000U : bits;
  const std::uint32_t half = mode.ties_away ? 0x1000U : 0xfffU + ((bits >> 13) & 1U);
  const std::uint32_t rounded = (mode.rounding == Rounding::zero ? bits : bits + half) & kKept;
  return mode.finite && (rounded & 0x7fffffffU) == 0x7f800000U ? rounded - 0x2000U : rounded;
}

void execute_to_tf32(Warp& warp, const Instruction& in, Mask lanes) {
  const ConversionMode mode = ConversionMode::unpack(in.immediate);
  auto* const d = warp.reg<std::uint32_t>(in.op[0]);
  const float* const a = warp.reg<float>(in.op[1]);
  each_lane(lanes, [&](int l) { d[l] = to_tf32(a[l], mode); });
}

ConversionMode take_mode(InstructionReader& reader) {
  ConversionMode mode;
  if (const int integral_rounding = reader.take_one_of({"rni", "rzi", "rmi", "rpi"}); integral_rounding >= 0) {
    mode.to_integral = true;
    mode.rounding = static_cast<Rounding>(integral_rounding);
  } else if (const int rounding = reader.take_one_of({"rn", "rz", "rm", "rp"}); rounding >= 0) {
    mode.rounding = static_cast<Rounding>(rounding);
  }
  mode.ties_away = reader.take("rna");
  mode.flush = reader.take("ftz");
  mode.saturate = reader.take("sat");
  mode.finite = reader.take("satfinite");
  mode.relu = reader.take("relu");
  return mode;
}

void decode_pack(InstructionReader& reader, PtxType to, PtxType from) {
  reader.finish();
  if (from != PtxType::f32 || (to != PtxType::f16x2 && to != PtxType::bf16x2)) {
    reader.refuse(fmt::format("conversion of two .{} to .{}", name(from), name(to)));
  }
  reader.destination(reader.operand(0), PtxType::b32);
  reader.source(reader.operand(1), PtxType::f32);
  reader.source(reader.operand(2), PtxType::f32);
  reader.out().execute = to == PtxType::f16x2 ? &execute_pack<F16> : &execute_pack<BF16>;
}

void decode_cvt(InstructionReader& reader) {
  const ConversionMode mode = take_mode(reader);
  const PtxType to = reader.type();
  const PtxType from = reader.type();
  reader.expect_operands(2, 3);
  if (is_fp8_pair(to) || is_fp8_pair(from)) return decode_fp8_conversion(reader, to, from, mode.relu);
  reader.out().immediate = mode.pack();
  if (reader.operands() == 3) return decode_pack(reader, to, from);
  reader.finish();
  if (to == PtxType::tf32) {
    if (from != PtxType::f32) reader.refuse("conversion of this type to .tf32");
    reader.destination(reader.operand(0), PtxType::b32);
    reader.source(reader.operand(1), PtxType::f32);
    reader.out().execute = &execute_to_tf32;
    return;
  }
  const Handler handler = handler_of(to, from);
  if (handler == nullptr || mode.ties_away) {
    reader.refuse(fmt::format("conversion of .{} to .{}", name(from), name(to)));
  }
  const int to_width = reader.destination_of_any_width(reader.operand(0), to);
  const int from_width = reader.source_of_any_width(reader.operand(1), from);
  if (to_width < bytes(to) || from_width < bytes(from)) reader.refuse("a register that is narrower than its type");
  reader.out().element_bytes = static_cast<std::uint8_t>(to_width);
  reader.out().mode = static_cast<std::uint8_t>(from_width);
  reader.out().execute = handler;
}

/// A destination type of cvt.pack.sat, which clamps two s32 to `bits` bits each. Results of less than 32 bits follow
/// the low bits of c, which move up.
struct PackTarget {
  std::string_view name;
  std::int32_t low = 0;
  std::int32_t high = 0;
  int bits = 8;
};

constexpr std::array kPackTargets = {
    PackTarget{"s8", -128, 127, 8},  PackTarget{"u8", 0, 255, 8}, PackTarget{"s16", -32768, 32767, 16},
    PackTarget{"u16", 0, 65535, 16}, PackTarget{"s4", -8, 7, 4},  PackTarget{"u4", 0, 15, 4},
    PackTarget{"s2", -2, 1, 2},      PackTarget{"u2", 0, 3, 2},
};

/// table: the PackTarget.
void execute_saturating_pack(Warp& warp, const Instruction& in, Mask lanes) {
  const auto& target = *static_cast<const PackTarget*>(in.table);
  auto* const d = warp.reg<std::uint32_t>(in.op[0]);
  const auto* const a = warp.reg<std::int32_t>(in.op[1]);
  const auto* const b = warp.reg<std::int32_t>(in.op[2]);
  const auto* const c = warp.reg<std::uint32_t>(in.op[3]);
  const auto clamp = [&](std::int32_t value) {
    const auto clamped = static_cast<std::uint32_t>(std::min(std::max(value, target.low), target.high));
    return clamped & ((1U << target.bits) - 1);
  };
  each_lane(lanes, [&](int l) {
    const std::uint32_t pair = (clamp(a[l]) << target.bits) | clamp(b[l]);
    d[l] = target.bits == 16 ? pair : (c[l] << (2 * target.bits)) | pair;
  });
}

void decode_saturating_pack(InstructionReader& reader) {
  if (!reader.take("sat")) reader.refuse("cvt.pack without .sat");
  const auto* const target =
      std::ranges::find_if(kPackTargets, [&](const PackTarget& each) { return reader.take(each.name); });
  const PtxType from = reader.type();
  reader.try_type();  // the type of c
  reader.finish();
  if (target == std::end(kPackTargets) || from != PtxType::s32) reader.refuse("cvt.pack of these types");
  const bool has_c = target->bits < 16;
  reader.expect_operands(has_c ? 4U : 3U);
  reader.destination(reader.operand(0), PtxType::b32);
  reader.source(reader.operand(1), PtxType::s32);
  reader.source(reader.operand(2), PtxType::s32);
  reader.source(reader.operand(has_c ? 3 : 2), PtxType::b32);
  reader.out().table = target;
  reader.out().execute = &execute_saturating_pack;
}

constexpr std::array kOpcodes = {
    OpcodeRow{"cvt", OperandClass::any, decode_cvt},
    OpcodeRow{"cvt.pack", OperandClass::any, decode_saturating_pack},
};

}  // namespace

std::span<const OpcodeRow> conversion_opcodes() { return kOpcodes; }

}  // namespace tilewright::emulator
