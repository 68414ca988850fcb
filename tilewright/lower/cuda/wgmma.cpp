#include "tilewright/lower/cuda/wgmma.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

namespace tilewright::lower::cuda {
namespace {

constexpr int kOperandsPerLine = 8;

/// Writes `count` operands separated by commas, kOperandsPerLine per line. `print(i)` is the text of operand i; each
/// line begins with `open` and ends with `close`, which are quotes inside a string literal.
template <class Print>
void write_operands(SourceWriter& out, int count, std::string_view open, std::string_view close, Print&& print) {
  for (int first = 0; first < count; first += kOperandsPerLine) {
    std::string line;
    for (int i = first; i < std::min(count, first + kOperandsPerLine); ++i) {
      line += print(i);
      if (i + 1 < count) line += ", ";
    }
    while (line.ends_with(' ') && open.empty()) line.pop_back();
    out.line("{}{}{}", open, line, close);
  }
}

/// The immediates after scale-d: those of imm-scale-a, imm-scale-b, imm-trans-a and imm-trans-b that the instruction
/// has.
std::string immediates(const arch::WgmmaAtom& atom, arch::Major major_a, arch::Major major_b) {
  std::string text;
  if (atom.takes_scales) text += ", 1, 1";
  if (atom.a_may_be_mn_major) text += major_a == arch::Major::mn ? ", 1" : ", 0";
  if (atom.b_may_be_mn_major) text += major_b == arch::Major::mn ? ", 1" : ", 0";
  return text;
}

/// A in the instruction's text: the number of the descriptor's asm operand, or a list of `count` registers from number
/// `first` on.
std::string a_text(bool is_in_registers, int first, int count) {
  if (!is_in_registers) return fmt::format("%{}", first);
  std::string text;
  for (int i = 0; i < count; ++i) text += fmt::format("{}%{}", i == 0 ? "" : ", ", first + i);
  return "{" + text + "}";
}

/// The input constraints of A in the asm statement.
std::string a_inputs(bool is_in_registers, int count) {
  if (!is_in_registers) return "\"l\"(a)";
  std::string text;
  for (int i = 0; i < count; ++i) text += fmt::format("{}\"r\"(a[{}])", i == 0 ? "" : ", ", i);
  return text;
}

}  // namespace

void write_wgmma(SourceWriter& out, const arch::WgmmaAtom& atom, int n, arch::Major major_a, arch::Major major_b) {
  const arch::MmaAtom instruction = arch::instruction(atom, n).value_or_throw();
  const int registers = instruction.c_registers;
  const bool is_float = atom.c == DType::f32;
  const std::string_view type = is_float               ? "float"
                                : atom.c == DType::s32 ? "tilewright::int32_t"
                                                       : "tilewright::uint32_t";
  out.line("struct Wgmma {{").indent();
  out.line("using Accumulator = {};", type);
  out.line("static constexpr int kK = {}, kRegisters = {};", atom.k, registers);
  // The asm operands are numbered in this order: accumulators, A, the descriptor of B, `accumulate`.
  const bool is_a_in_registers = atom.a_source == arch::OperandSource::registers;
  const int a_operands = is_a_in_registers ? atom.a_registers : 1;
  const std::string a_type = is_a_in_registers ? fmt::format("const tilewright::uint32_t (&a)[{}]", a_operands)
                                               : std::string("tilewright::uint64_t a");
  out.line("static __device__ __forceinline__ void fma({} (&d)[{}], {}, tilewright::uint64_t b,", type, registers,
           a_type);
  out.line("                                           int accumulate) {{").indent();
  out.line("asm volatile(\"{{\\n.reg .pred p;\\nsetp.ne.b32 p, %{}, 0;\\n\"", registers + a_operands + 1).indent();
  out.line("\"{} {{\"", instruction.ptx);
  write_operands(out, registers, "\"", "\"", [](int i) { return fmt::format("%{}", i); });
  out.line("\"}}, {}, %{}, p{};\\n}}\"", a_text(is_a_in_registers, registers, a_operands), registers + a_operands,
           immediates(atom, major_a, major_b));
  out.line(":");
  write_operands(out, registers, "", "", [&](int i) { return fmt::format("\"+{}\"(d[{}])", is_float ? 'f' : 'r', i); });
  out.line(": {}, \"l\"(b), \"r\"(accumulate));", a_inputs(is_a_in_registers, a_operands));
  out.dedent().dedent().line("}}");
  out.dedent().line("}};");
}

}  // namespace tilewright::lower::cuda
