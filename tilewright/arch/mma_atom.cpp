// The table of multiply-accumulate instructions. Thread-value layouts are those of the PTX ISA, "Matrix Fragments" of
// each mma.sync shape: groups of 4 lanes hold a row of A and C or a column of B.
#include "tilewright/arch/mma_atom.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace tilewright::arch {
namespace {

using layout::Layout;

/// The layouts of one shape, shared by the types of one width.
struct Fragments {
  int m, n, k;
  Layout a, b, c;
};

/// C of m16n8 tiles: two neighbours of a row in lane / 4, two of the row 8 below.
Layout c_m16n8() { return Layout({{4, 8}, {2, 2}}, {{32, 1}, {16, 8}}); }

Fragments m16n8k8_16bit() { return {16, 8, 8, c_m16n8(), Layout({{4, 8}, 2}, {{16, 1}, 8}), c_m16n8()}; }
Fragments m16n8k16_16bit() {
  return {16,
          8,
          16,
          Layout({{4, 8}, {2, 2, 2}}, {{32, 1}, {16, 8, 128}}),
          Layout({{4, 8}, {2, 2}}, {{16, 1}, {8, 64}}),
          c_m16n8()};
}
Fragments m16n8k16_8bit() {
  return {16, 8, 16, Layout({{4, 8}, {4, 2}}, {{64, 1}, {16, 8}}), Layout({{4, 8}, 4}, {{32, 1}, 8}), c_m16n8()};
}
Fragments m16n8k32_8bit() {
  return {16,
          8,
          32,
          Layout({{4, 8}, {4, 2, 2}}, {{64, 1}, {16, 8, 256}}),
          Layout({{4, 8}, {4, 2}}, {{32, 1}, {8, 128}}),
          c_m16n8()};
}
/// tf32 and f64 place elements alike: one k to a lane.
Fragments m16n8k4_word() {
  return {16, 8, 4, Layout({{4, 8}, 2}, {{16, 1}, 8}), Layout({{4, 8}, 1}, {{8, 1}, 0}), c_m16n8()};
}
Fragments m16n8k8_word() {
  return {16, 8, 8, Layout({{4, 8}, {2, 2}}, {{16, 1}, {8, 64}}), Layout({{4, 8}, 2}, {{8, 1}, 32}), c_m16n8()};
}
Fragments m16n8k16_word() {
  return {16, 8, 16, Layout({{4, 8}, {2, 4}}, {{16, 1}, {8, 64}}), Layout({{4, 8}, 4}, {{8, 1}, 32}), c_m16n8()};
}
Fragments m8n8k4_word() {
  const Layout operand({{4, 8}, 1}, {{8, 1}, 0});
  return {8, 8, 4, operand, operand, Layout({{4, 8}, 2}, {{16, 1}, 8})};
}

Fragments m1n1k1() { return {1, 1, 1, Layout(), Layout(), Layout()}; }

/// Registers that hold the values of one thread; a value narrower than a register that is alone in it takes it whole.
int registers(const Layout& tv, DType type, int register_bits) {
  const std::int64_t values = tv.rank() == 2 ? size(tv.mode(1)) : 1;
  return static_cast<int>(layout::ceil_div(values * bits(type), register_bits));
}

struct Row {
  std::string_view name;
  Fragments fragments;
  DType c, a, b;
  int min_sm;
  std::string_view ptx;
};

std::vector<MmaAtom> build(const std::vector<Row>& rows) {
  std::vector<MmaAtom> atoms;
  for (const Row& row : rows) {
    const Fragments& f = row.fragments;
    const int register_bits = row.c == DType::f64 ? 64 : 32;
    atoms.push_back({.name = row.name,
                     .m = f.m,
                     .n = f.n,
                     .k = f.k,
                     .a = row.a,
                     .b = row.b,
                     .c = row.c,
                     .min_sm = row.min_sm,
                     .ptx = row.ptx,
                     .register_bits = register_bits,
                     .a_registers = registers(f.a, row.a, register_bits),
                     .b_registers = registers(f.b, row.b, register_bits),
                     .c_registers = registers(f.c, row.c, register_bits),
                     .a_tv = f.a,
                     .b_tv = f.b,
                     .c_tv = f.c});
  }
  return atoms;
}

using enum DType;

std::vector<MmaAtom> build_mma_atoms() {
  return build({
      {"mma_m16n8k8_f16_f16_f16", m16n8k8_16bit(), f16, f16, f16, 80,
       "mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16"},
      {"mma_m16n8k8_f32_f16_f16", m16n8k8_16bit(), f32, f16, f16, 80,
       "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32"},
      {"mma_m16n8k16_f16_f16_f16", m16n8k16_16bit(), f16, f16, f16, 80,
       "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16"},
      {"mma_m16n8k16_f32_f16_f16", m16n8k16_16bit(), f32, f16, f16, 80,
       "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"},
      {"mma_m16n8k8_f32_bf16_bf16", m16n8k8_16bit(), f32, bf16, bf16, 80,
       "mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32"},
      {"mma_m16n8k16_f32_bf16_bf16", m16n8k16_16bit(), f32, bf16, bf16, 80,
       "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"},
      {"mma_m16n8k4_f32_tf32_tf32", m16n8k4_word(), f32, tf32, tf32, 80,
       "mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32"},
      {"mma_m16n8k8_f32_tf32_tf32", m16n8k8_word(), f32, tf32, tf32, 80,
       "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"},
      {"mma_m16n8k16_s32_s8_s8", m16n8k16_8bit(), s32, s8, s8, 80, "mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32"},
      {"mma_m16n8k16_s32_s8_u8", m16n8k16_8bit(), s32, s8, u8, 80, "mma.sync.aligned.m16n8k16.row.col.s32.s8.u8.s32"},
      {"mma_m16n8k16_s32_u8_s8", m16n8k16_8bit(), s32, u8, s8, 80, "mma.sync.aligned.m16n8k16.row.col.s32.u8.s8.s32"},
      {"mma_m16n8k16_s32_u8_u8", m16n8k16_8bit(), s32, u8, u8, 80, "mma.sync.aligned.m16n8k16.row.col.s32.u8.u8.s32"},
      {"mma_m16n8k32_s32_s8_s8", m16n8k32_8bit(), s32, s8, s8, 80, "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32"},
      {"mma_m16n8k32_s32_s8_u8", m16n8k32_8bit(), s32, s8, u8, 80, "mma.sync.aligned.m16n8k32.row.col.s32.s8.u8.s32"},
      {"mma_m16n8k32_s32_u8_s8", m16n8k32_8bit(), s32, u8, s8, 80, "mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32"},
      {"mma_m16n8k32_s32_u8_u8", m16n8k32_8bit(), s32, u8, u8, 80, "mma.sync.aligned.m16n8k32.row.col.s32.u8.u8.s32"},
      {"mma_m8n8k4_f64_f64_f64", m8n8k4_word(), f64, f64, f64, 80, "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64"},
      {"mma_m16n8k4_f64_f64_f64", m16n8k4_word(), f64, f64, f64, 90,
       "mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64"},
      {"mma_m16n8k8_f64_f64_f64", m16n8k8_word(), f64, f64, f64, 90,
       "mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64"},
      {"mma_m16n8k16_f64_f64_f64", m16n8k16_word(), f64, f64, f64, 90,
       "mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64"},
  });
}

std::vector<MmaAtom> build_simt_atoms() {
  return build({
      {"fma_f64_f64_f64", m1n1k1(), f64, f64, f64, 80, "fma.rn.f64"},
      {"fma_f32_f32_f32", m1n1k1(), f32, f32, f32, 80, "fma.rn.f32"},
      {"fma_f32_f16_f16", m1n1k1(), f32, f16, f16, 80, "fma.rn.f32"},
      {"fma_f32_bf16_bf16", m1n1k1(), f32, bf16, bf16, 80, "fma.rn.f32"},
      {"fma_f16_f16_f16", m1n1k1(), f16, f16, f16, 80, "fma.rn.f16"},
      {"mad_s32_s8_s8", m1n1k1(), s32, s8, s8, 80, "mad.lo.s32"},
      {"mad_s32_s8_u8", m1n1k1(), s32, s8, u8, 80, "mad.lo.s32"},
      {"mad_s32_u8_s8", m1n1k1(), s32, u8, s8, 80, "mad.lo.s32"},
      {"mad_s32_u8_u8", m1n1k1(), s32, u8, u8, 80, "mad.lo.s32"},
  });
}

/// One operand of a row: what it is called, its layout, the tile it must cover, what carries it.
struct Operand {
  std::string_view name;
  const Layout& tv;
  int tile;
  DType type;
  int registers;
};

Support check_operand(const MmaAtom& atom, const Operand& operand) {
  if (layout::size(operand.tv) != operand.tile)
    return refuse("{}: {} has {} threads x values for a tile of {}", atom.name, operand.name, layout::size(operand.tv),
                  operand.tile);
  std::vector<bool> covered(static_cast<std::size_t>(operand.tile));
  for (std::int64_t i = 0; i < operand.tile; ++i) {
    const std::int64_t offset = operand.tv(i);
    if (offset < 0 || offset >= operand.tile || covered[static_cast<std::size_t>(offset)])
      return refuse("{}: {} maps thread x value {} to offset {}, outside the tile or twice", atom.name, operand.name, i,
                    offset);
    covered[static_cast<std::size_t>(offset)] = true;
  }
  if (operand.registers != registers(operand.tv, operand.type, atom.register_bits))
    return refuse("{}: {} needs {} registers of {} bits, the row says {}", atom.name, operand.name,
                  registers(operand.tv, operand.type, atom.register_bits), atom.register_bits, operand.registers);
  return {};
}

const MmaAtom* find(const std::vector<MmaAtom>& atoms, auto&& matches) {
  const auto found = std::find_if(atoms.begin(), atoms.end(), matches);
  return found == atoms.end() ? nullptr : &*found;
}

}  // namespace

int threads(const MmaAtom& atom) {
  return atom.c_tv.rank() == 2 ? static_cast<int>(layout::size(atom.c_tv.mode(0))) : 1;
}

Support check(const MmaAtom& atom) {
  const std::array operands{Operand{"A", atom.a_tv, atom.m * atom.k, atom.a, atom.a_registers},
                            Operand{"B", atom.b_tv, atom.n * atom.k, atom.b, atom.b_registers},
                            Operand{"C", atom.c_tv, atom.m * atom.n, atom.c, atom.c_registers}};
  for (const Operand& operand : operands) {
    const Support support = check_operand(atom, operand);
    if (!support) return support;
  }
  return {};
}

const std::vector<MmaAtom>& mma_atoms() {
  static const std::vector<MmaAtom> atoms = build_mma_atoms();
  return atoms;
}

const MmaAtom* find_mma_atom(int m, int n, int k, DType a, DType b, DType c) {
  return find(mma_atoms(),
              [&](const MmaAtom& x) { return x.m == m && x.n == n && x.k == k && x.a == a && x.b == b && x.c == c; });
}

std::string known_instructions(DType a, DType b) {
  std::string text;
  for (const MmaAtom& atom : mma_atoms()) {
    if (atom.a != a || atom.b != b) continue;
    text += fmt::format("{}m{}n{}k{} {}", text.empty() ? "" : ", ", atom.m, atom.n, atom.k, name(atom.c));
    if (atom.min_sm > 80) text += fmt::format(" (sm_{})", atom.min_sm);
  }
  return text.empty() ? "none" : text;
}

const std::vector<MmaAtom>& simt_atoms() {
  static const std::vector<MmaAtom> atoms = build_simt_atoms();
  return atoms;
}

const MmaAtom* find_simt_atom(DType a, DType b, DType c) {
  return find(simt_atoms(), [&](const MmaAtom& x) { return x.a == a && x.b == b && x.c == c; });
}

}  // namespace tilewright::arch
