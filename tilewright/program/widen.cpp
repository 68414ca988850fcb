#include "tilewright/program/widen.hpp"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "tilewright/base/error.hpp"
#include "tilewright/program/instructions.hpp"

namespace tilewright::program {
namespace {

/// Truth tables of lop3.
constexpr int kAndOr = 0xea;   // (a & b) | c
constexpr int kAndXor = 0x6a;  // (a & b) ^ c
constexpr int kAnd = 0xc0;     // a & b

/// Both halves of a 32-bit word.
std::uint32_t twice(std::uint32_t half) { return half << 16 | half; }

/// `to` = op(`from`, mask, constant), in both halves.
std::string lop3(const std::string& to, const std::string& from, std::uint32_t mask, std::uint32_t constant,
                 int table) {
  return fmt::format("lop3.b32 {}, {}, 0x{:08x}, 0x{:08x}, 0x{:02x};\n", to, from, twice(mask), twice(constant), table);
}

std::string shift(const char* mnemonic, const std::string& from, int bits) {
  return fmt::format("{} t, {}, {};\n", mnemonic, from, bits);
}

std::string result(int j) { return fmt::format("$0.{}", j); }

/// A constant in both halves of register `name`.
std::string constant(const char* name, std::uint32_t half) {
  return fmt::format(".reg .b32 {0};\nmov.b32 {0}, 0x{1:08x};\n", name, twice(half));
}

// In bf16 the numbers from 128 to 255 are 0x4300 + 0 to 127, so that a masked integer in the low bits adds to 128. In
// f16 those from 1024 to 2047 are 0x6400 + 0 to 1023. XOR with the sign bit makes v + 8 of an s4, v + 128 of an s8.

std::string s4_to_bf16() {
  std::string text = constant("c", 0x4308);
  for (int j = 0; j < 4; ++j) {
    if (j > 0) text += shift("shr.u32", "$1", 4 * j);
    text += lop3(result(j), j == 0 ? "$1" : "t", 0x000f, 0x4308, kAndXor);  // 136 + v
    text += fmt::format("sub.rn.bf16x2 {0}, {0}, c;\n", result(j));
  }
  return text;
}

std::string s4_to_f16() {
  std::string text = constant("c", 0x6408) + constant("sixteenth", 0x2c00) + constant("d", 0xd480);
  text += shift("shr.u32", "$1", 8);
  for (int j = 0; j < 4; ++j) {
    const std::string from = j < 2 ? "$1" : "t";
    if (j % 2 == 0) {
      text += lop3(result(j), from, 0x000f, 0x6408, kAndXor);  // 1032 + v
      text += fmt::format("sub.rn.f16x2 {0}, {0}, c;\n", result(j));
    } else {
      text += lop3(result(j), from, 0x00f0, 0x6480, kAndXor);  // 1152 + 16 v
      text += fmt::format("fma.rn.f16x2 {0}, {0}, sixteenth, d;\n", result(j));
    }
  }
  return text;
}

std::string s8_to_bf16() {
  std::string text = ".reg .b32 s;\n";
  for (int j = 0; j < 4; ++j) {
    const std::string word = j < 2 ? "$1" : "$2";
    if (j % 2 == 1) text += shift("shr.u32", word, 8);
    const std::string from = j % 2 == 0 ? word : "t";
    // With the sign bit, which is the lowest bit of the exponent, 128 becomes 256.
    text += lop3("s", from, 0x0080, 0x4300, kAndOr);
    text += lop3(result(j), from, 0x007f, 0x4300, kAndOr);
    text += fmt::format("sub.rn.bf16x2 {0}, {0}, s;\n", result(j));
  }
  return text;
}

std::string s8_to_f16() {
  std::string text = constant("c", 0x6480);
  for (int j = 0; j < 4; ++j) {
    const std::string word = j < 2 ? "$1" : "$2";
    if (j % 2 == 1) text += shift("shr.u32", word, 8);
    text += lop3(result(j), j % 2 == 0 ? word : "t", 0x00ff, 0x6480, kAndXor);  // 1152 + v
    text += fmt::format("sub.rn.f16x2 {0}, {0}, c;\n", result(j));
  }
  return text;
}

std::string e4m3_to_f16() {
  std::string text = ".reg .b16 low, high;\n";
  for (int word = 0; word < 2; ++word) {
    text += fmt::format("prmt.b32 t, ${0}, ${0}, 0x3120;\nmov.b32 {{low, high}}, t;\n", word + 1);
    text += fmt::format("cvt.rn.f16x2.e4m3x2 {}, low;\ncvt.rn.f16x2.e4m3x2 {}, high;\n", result(2 * word),
                        result(2 * word + 1));
  }
  return text;
}

std::string e4m3_to_bf16() {
  // Exponent and mantissa move to the place that they have in bf16. The biases differ by 120, also for subnormals.
  std::string text = ".reg .b32 s;\n" + constant("power", 0x7b80);  // 2^120
  for (int j = 0; j < 4; ++j) {
    const std::string word = j < 2 ? "$1" : "$2";
    std::string sign = word;
    if (j % 2 == 0) {
      text += fmt::format("shl.b32 s, {}, 8;\n", word);
      sign = "s";
    }
    text += lop3("s", sign, 0x8000, 0, kAnd);
    text += j % 2 == 0 ? shift("shl.b32", word, 4) : shift("shr.u32", word, 4);
    text += fmt::format("lop3.b32 {}, t, 0x07f007f0, s, 0x{:02x};\n", result(j), kAndOr);
    text += fmt::format("mul.rn.bf16x2 {0}, {0}, power;\n", result(j));
  }
  return text;
}

std::string conversion(DType from, DType to) {
  if (to == DType::bf16) {
    if (from == DType::s4) return s4_to_bf16();
    if (from == DType::s8) return s8_to_bf16();
    if (from == DType::e4m3) return e4m3_to_bf16();
  } else if (to == DType::f16) {
    if (from == DType::s4) return s4_to_f16();
    if (from == DType::s8) return s8_to_f16();
    if (from == DType::e4m3) return e4m3_to_f16();
  }
  throw InvalidArgument(
      fmt::format("weights of s4, s8 or e4m3 are converted to f16 or bf16, got {} and {}", name(from), name(to)));
}

}  // namespace

Value widen(KernelBuilder& k, DType from, DType to, const std::vector<Value>& packed) {
  const std::string text = conversion(from, to);
  const std::size_t words = from == DType::s4 ? 1 : 2;
  if (packed.size() != words)
    throw InvalidArgument(fmt::format("8 elements of {} are {} words, got {}", name(from), words, packed.size()));
  std::vector<Operand> operands{output(RegisterType::b32, 4)};
  for (const Value& word : packed) operands.push_back(input(word));
  return k.instruction("{\n.reg .b32 t;\n" + text + "}", std::move(operands), Effect::pure).front();
}

Value scale_fragment(KernelBuilder& k, DType type, const Value& fragment, const Value& first, const Value& second) {
  std::string text;
  for (int j = 0; j < 4; ++j) text += fmt::format("mul.rn.{}x2 $0.{}, $1.{}, ${};\n", name(type), j, j, 2 + j % 2);
  return k.instruction(text, {output(RegisterType::b32, 4), input(fragment), input(first), input(second)}, Effect::pure)
      .front();
}

Value duplicate(KernelBuilder& k, const Value& element) {
  return k.instruction("mov.b32 $0, {$1, $1};", {output(RegisterType::b32), input(element)}, Effect::pure).front();
}

}  // namespace tilewright::program
