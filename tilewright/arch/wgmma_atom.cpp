#include "tilewright/arch/wgmma_atom.hpp"

#include <algorithm>
#include <tuple>

#include "tilewright/arch/fragment.hpp"

namespace tilewright::arch {
namespace {

using layout::Layout;
using enum DType;

constexpr int kM = 64;
constexpr int kThreads = 128;
constexpr int kRegisterBits = 32;
constexpr int kOperandBits = 256;  // bits of k per instruction

Layout whole_tile(int rows, int k) { return {{kThreads, {rows, k}}, {0, {1, rows}}}; }

Layout a_layout(const WgmmaAtom& atom) {
  if (atom.a_source == OperandSource::shared_memory) return whole_tile(kM, atom.k);
  return fragment(kM, atom.k, kRegisterBits / bits(atom.a));
}

/// fragment(64, n, 2), which keeps its last mode also for n = 8.
Layout c_layout(int n) { return {{{4, 8, 4}, {2, 2, n / 8}}, {{128, 1, 16}, {64, 8, 512}}}; }

std::string_view suffix(OperandSource a_source) { return a_source == OperandSource::registers ? "rs" : "ss"; }

WgmmaAtom make_row(DType a, DType b, DType c, OperandSource a_source) {
  WgmmaAtom atom;
  atom.k = kOperandBits / bits(a);
  std::tie(atom.a, atom.b, atom.c, atom.a_source) = std::tie(a, b, c, a_source);
  atom.name = fmt::format("wgmma_k{}_{}_{}_{}_{}", atom.k, name(c), name(a), name(b), suffix(a_source));
  atom.b_may_be_mn_major = bits(b) == 16;
  atom.a_may_be_mn_major = bits(a) == 16 && a_source == OperandSource::shared_memory;
  atom.takes_scales = c != s32;
  atom.n_step_past_32 = c == s32 ? 16 : 8;
  if (a_source == OperandSource::registers) atom.a_registers = fragment_registers(a_layout(atom), a, kRegisterBits);
  return atom;
}

/// Operand types, any of which may be A with any of them as B, and accumulator types.
struct Types {
  std::vector<DType> operands;
  std::vector<DType> accumulators;
};

std::vector<WgmmaAtom> build() {
  const std::vector<Types> families{
      {{f16}, {f16, f32}}, {{bf16}, {f32}}, {{tf32}, {f32}}, {{e4m3, e5m2}, {f16, f32}}, {{s8, u8}, {s32}}};
  std::vector<WgmmaAtom> atoms;
  for (const auto& [operands, accumulators] : families) {
    for (const DType a : operands) {
      for (const DType b : operands) {
        for (const DType c : accumulators) {
          atoms.push_back(make_row(a, b, c, OperandSource::shared_memory));
          atoms.push_back(make_row(a, b, c, OperandSource::registers));
        }
      }
    }
  }
  return atoms;
}

}  // namespace

const std::vector<WgmmaAtom>& wgmma_atoms() {
  static const std::vector<WgmmaAtom> atoms = build();
  return atoms;
}

const WgmmaAtom* find_wgmma_atom(DType a, DType b, DType c, OperandSource a_source) {
  const std::vector<WgmmaAtom>& atoms = wgmma_atoms();
  const auto found = std::find_if(atoms.begin(), atoms.end(), [&](const WgmmaAtom& x) {
    return x.a == a && x.b == b && x.c == c && x.a_source == a_source;
  });
  return found == atoms.end() ? nullptr : &*found;
}

std::string known_wgmma(DType a, DType b) {
  std::string text;
  for (const WgmmaAtom& atom : wgmma_atoms()) {
    if (atom.a != a || atom.b != b || atom.a_source != OperandSource::shared_memory) continue;
    text += fmt::format("{}m{}nNk{} {}", text.empty() ? "" : ", ", atom.m, atom.k, name(atom.c));
  }
  return text.empty() ? "none" : text;
}

Support supports_n(const WgmmaAtom& atom, int n) {
  if (n < 8 || n > 256 || n % 8 != 0)
    return refuse("{}: n must be a multiple of 8 from 8 to 256, got {}", atom.name, n);
  if (n > 32 && n % atom.n_step_past_32 != 0)
    return refuse("{}: n past 32 must be a multiple of {}, got {}", atom.name, atom.n_step_past_32, n);
  return {};
}

std::vector<int> n_values(const WgmmaAtom& atom) {
  std::vector<int> values;
  for (int n = 8; n <= 256; n += 8) {
    if (supports_n(atom, n)) values.push_back(n);
  }
  return values;
}

Result<MmaAtom> instruction(const WgmmaAtom& atom, int n) {
  if (const Support support = supports_n(atom, n); !support) return Refusal{support.reason()};
  MmaAtom result;
  std::tie(result.m, result.n, result.k) = std::tie(kM, n, atom.k);
  std::tie(result.a, result.b, result.c) = std::tie(atom.a, atom.b, atom.c);
  result.min_target = kSm90a;
  const std::string shape = fmt::format("m{}n{}k{}", kM, n, atom.k);
  result.name =
      fmt::format("wgmma_{}_{}_{}_{}_{}", shape, name(atom.c), name(atom.a), name(atom.b), suffix(atom.a_source));
  result.ptx = fmt::format("wgmma.mma_async.sync.aligned.{}.{}.{}.{}", shape, name(atom.c), name(atom.a), name(atom.b));
  result.thread_ids = Layout(kThreads, 1);
  result.a_tv = a_layout(atom);
  result.b_tv = whole_tile(n, atom.k);
  result.c_tv = c_layout(n);
  result.register_bits = kRegisterBits;
  result.a_registers = atom.a_registers;
  result.b_registers = 0;
  result.c_registers = fragment_registers(result.c_tv, atom.c, kRegisterBits);
  return result;
}

Support check(const WgmmaAtom& atom) {
  const std::vector<int> values = n_values(atom);
  if (values.empty()) return refuse("{}: no n is supported", atom.name);
  for (const int n : values) {
    const Result<MmaAtom> one = instruction(atom, n);
    if (const Support support = check(*one); !support) return support;
  }
  return {};
}

}  // namespace tilewright::arch
