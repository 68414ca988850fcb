// The table of kinds, the formats of floating-point numbers, and the values that are drawn.
#include "operand_kind.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <span>
#include <stdexcept>
#include <vector>

namespace tilewright::differential {
namespace {

struct Layout {
  int exponent_bits = 0;
  int fraction_bits = 0;
  bool has_infinity = true;  // e4m3 has only one NaN with the largest exponent, of each sign

  int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  int sign_bit() const { return exponent_bits + fraction_bits; }
  std::uint64_t fraction_mask() const { return (std::uint64_t{1} << fraction_bits) - 1; }
  std::uint64_t exponent_mask() const { return (std::uint64_t{1} << exponent_bits) - 1; }
  std::uint64_t number(std::uint64_t exponent, std::uint64_t fraction) const {
    return exponent << fraction_bits | (fraction & fraction_mask());
  }
};

Layout layout_of(NumberFormat format) {
  switch (format) {
    case NumberFormat::f16:
      return {5, 10};
    case NumberFormat::bf16:
      return {8, 7};
    case NumberFormat::f32:
      return {8, 23};
    case NumberFormat::f64:
      return {11, 52};
    case NumberFormat::e4m3:
      return {4, 3, false};
    case NumberFormat::e5m2:
      return {5, 2};
    default:
      return {};
  }
}

struct KindRow {
  std::string_view name;
  NumberFormat format;
  int register_bits;
  int elements;
};

constexpr std::array kKinds = {
    KindRow{"i16", NumberFormat::integer, 16, 1},    KindRow{"i32", NumberFormat::integer, 32, 1},
    KindRow{"i64", NumberFormat::integer, 64, 1},    KindRow{"p", NumberFormat::predicate, 32, 1},
    KindRow{"f16", NumberFormat::f16, 16, 1},        KindRow{"bf16", NumberFormat::bf16, 16, 1},
    KindRow{"f16x2", NumberFormat::f16, 32, 2},      KindRow{"bf16x2", NumberFormat::bf16, 32, 2},
    KindRow{"f32", NumberFormat::f32, 32, 1},        KindRow{"f64", NumberFormat::f64, 64, 1},
    KindRow{"e4m3x4", NumberFormat::e4m3, 32, 4},    KindRow{"e5m2x4", NumberFormat::e5m2, 32, 4},
    KindRow{"amount", NumberFormat::integer, 32, 1}, KindRow{"lane", NumberFormat::integer, 32, 1},
    KindRow{"2of4", NumberFormat::integer, 32, 1},   KindRow{"1of2", NumberFormat::integer, 32, 1},
};

constexpr std::array<std::pair<std::string_view, Values>, 6> kValues = {{{"integer", Values::integer},
                                                                         {"unit", Values::unit},
                                                                         {"finite", Values::finite},
                                                                         {"rare", Values::rare},
                                                                         {"angle", Values::angle},
                                                                         {"large_angle", Values::large_angle}}};

std::uint64_t low_bits(int count) { return count >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1; }

/// The bits of a number that the format has exactly, or the nearest below in magnitude.
std::uint64_t encode(const Layout& layout, double value) {
  const std::uint64_t sign = std::signbit(value) ? std::uint64_t{1} << layout.sign_bit() : 0;
  if (value == 0) return sign;
  int exponent = 0;
  const double significand = std::frexp(std::fabs(value), &exponent) * 2;  // [1, 2)
  const int biased = exponent - 1 + layout.bias();
  if (biased <= 0) return sign;
  return sign | layout.number(static_cast<std::uint64_t>(biased),
                              static_cast<std::uint64_t>(std::ldexp(significand - 1, layout.fraction_bits)));
}

std::vector<std::uint64_t> special_floats(NumberFormat format) {
  const Layout layout = layout_of(format);
  const std::uint64_t one = layout.number(static_cast<std::uint64_t>(layout.bias()), 0);
  const std::uint64_t top = layout.number(layout.exponent_mask(), 0);  // infinity, where there is one
  std::vector<std::uint64_t> values{0,
                                    1,                       // the smallest subnormal number
                                    layout.fraction_mask(),  // the largest one
                                    layout.number(1, 0),     // the smallest normal number
                                    layout.number(1, 1),
                                    one,
                                    one + 1,
                                    one - 1,
                                    encode(layout, 0.5),
                                    encode(layout, 1.5),
                                    encode(layout, 2.5),
                                    encode(layout, 3),
                                    top - 1,
                                    top,
                                    top + 1,                                               // a signalling NaN
                                    top | std::uint64_t{1} << (layout.fraction_bits - 1),  // a quiet one
                                    low_bits(layout.sign_bit())};
  if (layout.sign_bit() == 15) values.push_back(0x7ff7);  // what a tensor copy fills in outside the tensor, see fma.oob
  if (layout.exponent_bits >= 8) {
    for (const double value : {255.5, 65504.0, 65519.0, 65520.0, 0x1p-14, 0x1p-24, 0x1p-25, 0x1p31, 0x1p32, 0x1p63,
                               0x1p126, 0x1p-100, 1 + 0x1p-11, 1 + 0x1.8p-8, 3.14159265358979}) {
      values.push_back(encode(layout, value));
    }
  }
  if (format == NumberFormat::f64) {
    for (const double value :
         {0x1p-149, 0x1.ffffffffp-127, 0x1p-126, 0x1.fffffep127, 0x1.ffffffp127, 0x1p128, 1 + 0x1p-24}) {
      values.push_back(encode(layout, value));
    }
  }
  const std::size_t positive = values.size();
  for (std::size_t i = 0; i < positive; ++i) values.push_back(values[i] | std::uint64_t{1} << layout.sign_bit());
  return values;
}

std::vector<std::uint64_t> special_integers(int bits) {
  const std::uint64_t all = low_bits(bits);
  const std::uint64_t top = std::uint64_t{1} << (bits - 1);
  std::vector<std::uint64_t> values{0,  1,   2,   3,   7,   8,   15,     16,     31,  32,      33,  63,      64,
                                    65, 127, 128, 129, 255, 256, 0x7fff, 0x8000, all, all - 1, top, top - 1, top + 1};
  if (bits > 16) values.insert(values.end(), {0xffff, 0x10000, 0xff00ff, 0x80008000, 0x7fffffff, 0xffffff, 0x1000000});
  if (bits > 32) values.insert(values.end(), {0x80000000, 0xffffffff, 0x100000000, 0xffff000000000000});
  return values;
}

std::span<const std::uint64_t> specials(const OperandKind& kind) {
  static const auto floats = [] {
    std::array<std::vector<std::uint64_t>, 8> all;
    for (const KindRow& row : kKinds) {
      if (is_float(row.format)) all[static_cast<std::size_t>(row.format)] = special_floats(row.format);
    }
    return all;
  }();
  static const std::array integers{special_integers(16), special_integers(32), special_integers(64)};
  if (is_float(kind.format)) return floats[static_cast<std::size_t>(kind.format)];
  return integers[kind.register_bits == 16 ? 0 : kind.register_bits == 32 ? 1 : 2];
}

/// Eight times four bits of metadata, each one of `choices`.
std::uint64_t metadata(std::span<const std::uint64_t> choices, Random& random) {
  std::uint64_t bits = 0;
  for (int i = 0; i < 8; ++i) bits |= choices[random.below(choices.size())] << (4 * i);
  return bits;
}

std::uint64_t random_integer(const OperandKind& kind, Random& random) {
  static constexpr std::array<std::uint64_t, 6> kTwoOfFour = {0b0100, 0b1000, 0b1100, 0b1001, 0b1101, 0b1110};
  static constexpr std::array<std::uint64_t, 2> kOneOfTwo = {0b0100, 0b1110};
  if (kind.values == Values::two_of_four) return metadata(kTwoOfFour, random);
  if (kind.values == Values::one_of_two) return metadata(kOneOfTwo, random);
  if (kind.values == Values::amount) {
    const std::uint64_t choice = random.below(16);
    if (choice == 0) return low_bits(static_cast<int>(random.below(33)));
    return choice == 1 ? random() & low_bits(32) : random.below(70);
  }
  if (kind.values == Values::lane) return random.below(32);
  if (kind.format == NumberFormat::predicate) return random() & 1;
  const std::uint64_t value = random();
  switch (random.below(8)) {
    case 0:
      return specials(kind)[value % specials(kind).size()];
    case 1:
    case 2:
      return value >> random.below(64);
    case 3:
      return ~(value >> random.below(64));
    default:
      return value;
  }
}

/// A number with an exponent from `lowest` to `highest` and a random fraction.
std::uint64_t with_exponent(const Layout& layout, int lowest, int highest, Random& random) {
  const auto spread = static_cast<std::uint64_t>(highest - lowest + 1);
  const int exponent = std::max(lowest + static_cast<int>(random.below(spread)) + layout.bias(), 0);
  const std::uint64_t sign = (random() & 1) << layout.sign_bit();
  return sign | layout.number(static_cast<std::uint64_t>(exponent), random());
}

std::uint64_t angle(const Layout& layout, double limit, Random& random) {
  const double fraction = static_cast<double>(random() >> 11) * 0x1p-53;
  return encode(layout, (2 * fraction - 1) * limit);
}

std::uint64_t random_float(const OperandKind& kind, Random& random) {
  const Layout layout = layout_of(kind.format);
  const std::uint64_t bits = random() & low_bits(layout.sign_bit() + 1);
  const std::uint64_t choice = random.below(256);
  const auto special = [&] { return specials(kind)[random.below(specials(kind).size())]; };
  switch (kind.values) {
    case Values::integer:
      return encode(layout, static_cast<double>(random.below(9)) - 4);
    case Values::unit:
      return with_exponent(layout, -8, -1, random);
    case Values::finite: {
      const bool largest = (bits >> layout.fraction_bits & layout.exponent_mask()) == layout.exponent_mask();
      const bool ends = is_nan(kind.format, bits) || (layout.has_infinity && largest);
      return ends ? bits ^ std::uint64_t{1} << (layout.sign_bit() - 1) : bits;
    }
    case Values::rare:
      return choice == 0 ? special() : with_exponent(layout, -layout.bias() / 2, layout.bias() / 2, random);
    case Values::angle:
    case Values::large_angle: {
      const double limit = kind.values == Values::angle ? 6.2831853 : 314.159265;
      const std::uint64_t other = special();
      const double value = std::fabs(to_number(kind.format, other));
      const bool is_special = choice < 8 && (value <= limit || value > 0x1.fffffep127);
      return is_special ? other : angle(layout, limit, random);
    }
    default:
      break;
  }
  if (choice < 32) return special();
  if (choice < 144) return bits;
  if (choice < 176) return encode(layout, static_cast<double>(random.below(2049)) / 8 - 128);
  return with_exponent(layout, -6, 6, random);
}

}  // namespace

std::uint64_t Random::operator()() {  // SplitMix64
  state_ += 0x9e3779b97f4a7c15;
  std::uint64_t z = state_;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return z ^ z >> 31;
}

OperandKind parse_operand_kind(std::string_view name) {
  const std::size_t colon = name.find(':');
  const std::string_view base = name.substr(0, colon);
  const auto* const row = std::ranges::find(kKinds, base, &KindRow::name);
  if (row == kKinds.end()) throw std::invalid_argument(fmt::format("unknown kind of operand '{}'", name));
  OperandKind kind{std::string(name), row->format, row->register_bits, row->elements, Values::all};
  if (base == "amount") kind.values = Values::amount;
  if (base == "lane") kind.values = Values::lane;
  if (base == "2of4") kind.values = Values::two_of_four;
  if (base == "1of2") kind.values = Values::one_of_two;
  if (colon == std::string_view::npos) return kind;
  const auto* const values =
      std::ranges::find(kValues, name.substr(colon + 1), &std::pair<std::string_view, Values>::first);
  if (values == kValues.end()) throw std::invalid_argument(fmt::format("unknown kind of operand '{}'", name));
  kind.values = values->second;
  return kind;
}

std::uint64_t OperandKind::sign_bits() const {
  if (!is_float(format)) return 0;
  std::uint64_t bits = 0;
  for (int i = 1; i <= elements; ++i) bits |= std::uint64_t{1} << (i * element_bits() - 1);
  return bits;
}

bool is_float(NumberFormat format) { return format != NumberFormat::integer && format != NumberFormat::predicate; }

double to_number(NumberFormat format, std::uint64_t bits) {
  const Layout layout = layout_of(format);
  const auto exponent = static_cast<int>(bits >> layout.fraction_bits & layout.exponent_mask());
  const auto fraction = static_cast<double>(bits & layout.fraction_mask());
  const bool negative = (bits >> layout.sign_bit() & 1) != 0;
  const double whole = exponent == 0 ? fraction : fraction + std::ldexp(1, layout.fraction_bits);
  const double magnitude = std::ldexp(whole, std::max(exponent, 1) - layout.bias() - layout.fraction_bits);
  return negative ? -magnitude : magnitude;
}

bool is_nan(NumberFormat format, std::uint64_t bits) {
  if (!is_float(format)) return false;
  const Layout layout = layout_of(format);
  const std::uint64_t magnitude = bits & low_bits(layout.sign_bit());
  return layout.has_infinity ? magnitude > layout.number(layout.exponent_mask(), 0)
                             : magnitude == low_bits(layout.sign_bit());
}

double unit_in_last_place(NumberFormat format, double value) {
  const Layout layout = layout_of(format);
  int exponent = 0;
  std::frexp(value, &exponent);
  return std::ldexp(1, std::max(exponent - 1, 1 - layout.bias()) - layout.fraction_bits);
}

std::uint64_t special_count(const OperandKind& kind) {
  if (kind.format == NumberFormat::predicate) return 2;
  if (kind.values == Values::lane) return 32;
  if (kind.values != Values::all) return 0;
  return specials(kind).size();
}

std::uint64_t special_register(const OperandKind& kind, std::uint64_t index, Random& random) {
  if (kind.format == NumberFormat::predicate || kind.values == Values::lane) return index;
  const auto values = specials(kind);
  std::uint64_t bits = values[index] & low_bits(kind.element_bits());
  for (int i = 1; i < kind.elements; ++i) bits |= values[random.below(values.size())] << (i * kind.element_bits());
  return bits & low_bits(kind.register_bits);
}

std::uint64_t random_register(const OperandKind& kind, Random& random) {
  if (!is_float(kind.format)) return random_integer(kind, random) & low_bits(kind.register_bits);
  std::uint64_t bits = 0;
  for (int i = 0; i < kind.elements; ++i) {
    bits |= (random_float(kind, random) & low_bits(kind.element_bits())) << (i * kind.element_bits());
  }
  return bits;
}

}  // namespace tilewright::differential
