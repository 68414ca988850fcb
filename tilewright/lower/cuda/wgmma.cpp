#include "tilewright/lower/cuda/wgmma.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

namespace tilewright::lower::cuda {
namespace {

constexpr int kOperandsPerLine = 8;

/// "first, first+1, ...": `count` operands printed by `print`, some to a line, each line of a string literal or not.
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

/// What follows scale-d: imm-scale-a, imm-scale-b, imm-trans-a, imm-trans-b, as far as the instruction has them.
std::string immediates(const arch::WgmmaAtom& atom, arch::Major major_a, arch::Major major_b) {
  std::string text;
  if (atom.takes_scales) text += ", 1, 1";
  if (atom.a_may_be_mn_major) text += major_a == arch::Major::mn ? ", 1" : ", 0";
  if (atom.b_may_be_mn_major) text += major_b == arch::Major::mn ? ", 1" : ", 0";
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
  out.line("static __device__ __forceinline__ void fma({} (&d)[{}], tilewright::uint64_t a, tilewright::uint64_t b,",
           type, registers);
  out.line("                                           int accumulate) {{").indent();
  out.line("asm volatile(\"{{\\n.reg .pred p;\\nsetp.ne.b32 p, %{}, 0;\\n\"", registers + 2).indent();
  out.line("\"{} {{\"", instruction.ptx);
  write_operands(out, registers, "\"", "\"", [](int i) { return fmt::format("%{}", i); });
  out.line("\"}}, %{}, %{}, p{};\\n}}\"", registers, registers + 1, immediates(atom, major_a, major_b));
  out.line(":");
  write_operands(out, registers, "", "", [&](int i) { return fmt::format("\"+{}\"(d[{}])", is_float ? 'f' : 'r', i); });
  out.line(": \"l\"(a), \"l\"(b), \"r\"(accumulate));");
  out.dedent().dedent().line("}}");
  out.dedent().line("}};");
}

}  // namespace tilewright::lower::cuda
