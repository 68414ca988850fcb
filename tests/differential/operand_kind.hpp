// Kinds of operands of the differential test: which values are drawn for a register, and how its contents are read.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tilewright::differential {

enum class NumberFormat : std::uint8_t { integer, predicate, f16, bf16, f32, f64, e4m3, e5m2 };

/// The values that are drawn for an operand.
enum class Values : std::uint8_t {
  all,          // special values, random bit patterns and numbers of usual magnitude
  integer,      // small integers, exact in every format
  unit,         // magnitudes from 2^-8 to 1
  finite,       // random bit patterns without infinities and NaN
  rare,         // random bit patterns; special values, infinities and NaN are seldom
  angle,        // from -2 pi to 2 pi, and special values
  large_angle,  // from -100 pi to 100 pi, and special values
  amount,       // of a shift: 0 to 70, and a few large ones
  lane,         // 0 to 31
  two_of_four,  // metadata of a sparse matrix: eight times the places of two of four elements, the first one first
  one_of_two,   // the same of one of two elements of 32 bits
};

struct OperandKind {
  std::string name;  // "f16x2:unit", as the table writes it
  NumberFormat format = NumberFormat::integer;
  int register_bits = 32;  // 16, 32 or 64; predicates are loaded and stored as 32 bits
  int elements = 1;        // numbers that a register packs
  Values values = Values::all;

  int element_bits() const { return register_bits / elements; }
  std::uint64_t sign_bits() const;  // of all elements; 0 for integers
};

/// @throws std::invalid_argument for an unknown kind
OperandKind parse_operand_kind(std::string_view name);

bool is_float(NumberFormat format);
/// The value of one element. Infinity counts as the first number that is too large.
double to_number(NumberFormat format, std::uint64_t bits);
bool is_nan(NumberFormat format, std::uint64_t bits);
/// The distance between the numbers of the format around the value.
double unit_in_last_place(NumberFormat format, double value);

/// A stream of pseudo-random numbers.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t operator()();
  /// Less than `count`.
  std::uint64_t below(std::uint64_t count) { return operator()() % count; }

 private:
  std::uint64_t state_;
};

/// How many special values the kind has: infinities, subnormals, limits, ... 0 if it is drawn at random only.
std::uint64_t special_count(const OperandKind& kind);
/// A register with special value `index` in its first element, and others in the rest.
std::uint64_t special_register(const OperandKind& kind, std::uint64_t index, Random& random);
std::uint64_t random_register(const OperandKind& kind, Random& random);

}  // namespace tilewright::differential
