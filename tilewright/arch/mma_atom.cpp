// The table of multiply-accumulate instructions. Thread-value layouts are those of the PTX ISA, "Matrix Fragments" of
// each mma.sync shape.
#include "tilewright/arch/mma_atom.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

#include "tilewright/arch/fragment.hpp"

namespace tilewright::arch {
namespace {

using layout::Layout;
using enum DType;

constexpr int kRegisterBits = 32;
constexpr int kWarp = 32;

struct Shape {
  int m, n, k;
};

std::string text(const Shape& shape) { return fmt::format("m{}n{}k{}", shape.m, shape.n, shape.k); }

struct Types {
  DType c, a, b;
};

std::string text(const Types& types) { return fmt::format("{}_{}_{}", name(types.c), name(types.a), name(types.b)); }

/// ".row.col.f32.f16.f16.f32"
std::string qualifiers(const Types& types, bool a_is_k_major = true, bool b_is_k_major = true) {
  return fmt::format(".{}.{}.{}.{}.{}.{}", a_is_k_major ? "row" : "col", b_is_k_major ? "col" : "row", name(types.c),
                     name(types.a), name(types.b), name(types.c));
}

/// Sets shape, types and target, and the numbers of registers from the layouts.
void fill(MmaAtom& atom, const Shape& shape, const Types& types, const Target& min_target) {
  std::tie(atom.m, atom.n, atom.k) = std::tie(shape.m, shape.n, shape.k);
  std::tie(atom.c, atom.a, atom.b) = std::tie(types.c, types.a, types.b);
  atom.min_target = min_target;
  atom.register_bits = types.c == f64 ? 64 : kRegisterBits;
  atom.a_registers = fragment_registers(atom.a_tv, atom.a, atom.register_bits);
  atom.b_registers = fragment_registers(atom.b_tv, atom.b, atom.register_bits);
  atom.c_registers = fragment_registers(atom.c_tv, atom.c, atom.register_bits);
}

/// A row of mma.sync. Operands narrower than a register are packed.
MmaAtom mma(const Shape& shape, const Types& types, const Target& min_target) {
  const int packed = std::max(1, kRegisterBits / bits(types.a));
  MmaAtom atom{.name = fmt::format("mma_{}_{}", text(shape), text(types)),
               .ptx = fmt::format("mma.sync.aligned.{}{}", text(shape), qualifiers(types)),
               .thread_ids = Layout(kWarp, 1),
               .a_tv = fragment(shape.m, shape.k, packed),
               .b_tv = fragment(shape.n, shape.k, packed),
               .c_tv = fragment(shape.m, shape.n, 2)};
  fill(atom, shape, types, min_target);
  return atom;
}

MmaAtom bit_mma(const Shape& shape, MmaOp op, const Target& min_target) {
  const std::string_view bitwise = op == MmaOp::xor_popc ? "xor" : "and";
  MmaAtom atom = mma(shape, {s32, b1, b1}, min_target);
  atom.op = op;
  atom.name += fmt::format("_{}_popc", bitwise);
  atom.ptx += fmt::format(".{}.popc", bitwise);
  return atom;
}

/// The rows of one width of operands: shapes with the architecture that introduced them, and types.
struct Family {
  std::vector<std::pair<Shape, int>> shapes;
  std::vector<DType> operands;  // any of them as A with any of them as B
  std::vector<DType> accumulators;
};

void append(std::vector<MmaAtom>& atoms, const Family& family) {
  for (const auto& [shape, min_sm] : family.shapes) {
    for (const DType a : family.operands) {
      for (const DType b : family.operands) {
        for (const DType c : family.accumulators) atoms.push_back(mma(shape, {c, a, b}, Target{min_sm}));
      }
    }
  }
}

std::vector<MmaAtom> build_mma_atoms() {
  const std::vector<Family> families{
      {{{{16, 8, 8}, 75}, {{16, 8, 16}, 80}}, {f16}, {f16, f32}},
      {{{{16, 8, 8}, 80}, {{16, 8, 16}, 80}}, {bf16}, {f32}},
      {{{{16, 8, 4}, 80}, {{16, 8, 8}, 80}}, {tf32}, {f32}},
      {{{{8, 8, 16}, 75}, {{16, 8, 16}, 80}, {{16, 8, 32}, 80}}, {s8, u8}, {s32}},
      {{{{8, 8, 32}, 75}, {{16, 8, 32}, 80}, {{16, 8, 64}, 80}}, {s4, u4}, {s32}},
      {{{{16, 8, 16}, 89}, {{16, 8, 32}, 89}}, {e4m3, e5m2}, {f16, f32}},
      {{{{8, 8, 4}, 80}, {{16, 8, 4}, 90}, {{16, 8, 8}, 90}, {{16, 8, 16}, 90}}, {f64}, {f64}},
  };
  std::vector<MmaAtom> atoms;
  for (const Family& family : families) append(atoms, family);
  for (const MmaOp op : {MmaOp::xor_popc, MmaOp::and_popc}) {
    atoms.push_back(bit_mma({8, 8, 128}, op, op == MmaOp::xor_popc ? Target{75} : kSm80));
    atoms.push_back(bit_mma({16, 8, 128}, op, kSm80));
    atoms.push_back(bit_mma({16, 8, 256}, op, kSm80));
  }
  return atoms;
}

/// K-major: thread t of the quad pair holds row t, all 4 of k. MN-major: thread t holds k = t % 4 of rows 4 * (t / 4)
/// to 4 * (t / 4) + 3.
Layout quad_pair_operand(bool is_k_major) {
  return is_k_major ? Layout({8, 4}, {1, 8}) : Layout({{4, 2}, 4}, {{8, 4}, 1});
}

/// f16: each thread holds one row. f32: bits 0 and 2 of the thread and bit 1 of the value select the row.
Layout quad_pair_accumulator(DType c) {
  return c == f16 ? Layout({8, 8}, {1, 8}) : Layout({{2, 2, 2}, {2, 2, 2}}, {{1, 16, 4}, {8, 2, 32}});
}

std::vector<MmaAtom> build_quad_pair_atoms() {
  constexpr Shape kShape{8, 8, 4};
  std::vector<MmaAtom> atoms;
  for (const DType c : {f16, f32}) {
    for (const bool a_is_k_major : {true, false}) {
      for (const bool b_is_k_major : {true, false}) {
        const Types types{c, f16, f16};
        MmaAtom atom{
            .name = fmt::format("mma_{}_{}_{}_{}", text(kShape), text(types), a_is_k_major ? "row" : "col",
                                b_is_k_major ? "col" : "row"),
            .a_is_k_major = a_is_k_major,
            .b_is_k_major = b_is_k_major,
            .ptx = fmt::format("mma.sync.aligned.{}{}", text(kShape), qualifiers(types, a_is_k_major, b_is_k_major)),
            .thread_ids = Layout({4, 2}, {1, 16}),
            .a_tv = quad_pair_operand(a_is_k_major),
            .b_tv = quad_pair_operand(b_is_k_major),
            .c_tv = quad_pair_accumulator(c)};
        fill(atom, kShape, types, Target{70});
        atoms.push_back(std::move(atom));
      }
    }
  }
  return atoms;
}

std::vector<MmaAtom> build_simt_atoms() {
  const std::vector<std::pair<Types, std::string_view>> rows{
      {{f64, f64, f64}, "fma.rn.f64"},   {{f32, f32, f32}, "fma.rn.f32"}, {{f32, f16, f16}, "fma.rn.f32"},
      {{f32, bf16, bf16}, "fma.rn.f32"}, {{f16, f16, f16}, "fma.rn.f16"}, {{s32, s8, s8}, "mad.lo.s32"},
      {{s32, s8, u8}, "mad.lo.s32"},     {{s32, u8, s8}, "mad.lo.s32"},   {{s32, u8, u8}, "mad.lo.s32"},
  };
  std::vector<MmaAtom> atoms;
  for (const auto& [types, ptx] : rows) {
    MmaAtom atom;
    atom.name = fmt::format("{}_{}", ptx.substr(0, 3), text(types));
    atom.ptx = ptx;
    fill(atom, {1, 1, 1}, types, kSm80);
    atoms.push_back(std::move(atom));
  }
  return atoms;
}

/// One operand of a row: its name, layout, tile size, type and registers.
struct Operand {
  std::string_view name;
  const Layout& tv;
  int tile;
  DType type;
  int registers;
};

/// layout(i) for all i, computed leaf by leaf, which is faster than evaluating the layout at each index.
std::vector<std::int64_t> offsets(const Layout& layout) {
  const std::vector<std::int64_t> extents = layout::leaves(layout.shape());
  const std::vector<std::int64_t> strides = layout::leaves(layout.stride());
  std::vector<std::int64_t> all{0};
  for (std::size_t leaf = 0; leaf < extents.size(); ++leaf) {
    const std::size_t before = all.size();
    for (std::int64_t i = 1; i < extents[leaf]; ++i) {
      for (std::size_t j = 0; j < before; ++j) all.push_back(all[j] + i * strides[leaf]);
    }
  }
  return all;
}

/// Whether `layout` is a bijection onto the tile. `coordinates` names its domain in messages.
Support check_bijection(const MmaAtom& atom, const Operand& operand, const Layout& layout,
                        std::string_view coordinates) {
  const std::vector<std::int64_t> reached = offsets(layout);
  if (static_cast<std::int64_t>(reached.size()) != operand.tile)
    return refuse("{}: {} has {} {} for a tile of {}", atom.name, operand.name, reached.size(), coordinates,
                  operand.tile);
  std::vector<bool> covered(reached.size());
  for (std::size_t i = 0; i < reached.size(); ++i) {
    const std::int64_t offset = reached[i];
    if (offset < 0 || offset >= operand.tile || covered[static_cast<std::size_t>(offset)])
      return refuse("{}: {} maps {} {} to offset {}, which is outside the tile or reached twice", atom.name,
                    operand.name, coordinates, i, offset);
    covered[static_cast<std::size_t>(offset)] = true;
  }
  return {};
}

Support check_descriptor(const MmaAtom& atom, const Operand& operand) {
  const bool is_shared = operand.tv.rank() == 2 && cosize(operand.tv.mode(0)) == 1;
  if (!is_shared)
    return refuse("{}: {} is in shared memory, but threads hold different elements", atom.name, operand.name);
  return check_bijection(atom, operand, operand.tv.mode(1), "values");
}

Support check_operand(const MmaAtom& atom, const Operand& operand) {
  const std::int64_t held_by = operand.tv.rank() == 2 ? size(operand.tv.mode(0)) : 1;
  if (held_by != threads(atom))
    return refuse("{}: {} is held by {} threads of {}", atom.name, operand.name, held_by, threads(atom));
  if (operand.registers == 0) return check_descriptor(atom, operand);
  const Support bijection = check_bijection(atom, operand, operand.tv, "threads x values");
  if (!bijection) return bijection;
  const int registers = fragment_registers(operand.tv, operand.type, atom.register_bits);
  if (operand.registers != registers)
    return refuse("{}: {} needs {} registers of {} bits, but the row has {}", atom.name, operand.name, registers,
                  atom.register_bits, operand.registers);
  return {};
}

const MmaAtom* find(const std::vector<MmaAtom>& atoms, auto&& matches) {
  const auto found = std::find_if(atoms.begin(), atoms.end(), matches);
  return found == atoms.end() ? nullptr : &*found;
}

}  // namespace

int threads(const MmaAtom& atom) { return static_cast<int>(layout::size(atom.thread_ids)); }

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

const MmaAtom* find_mma_atom(int m, int n, int k, DType a, DType b, DType c, MmaOp op) {
  return find(mma_atoms(), [&](const MmaAtom& x) {
    return x.m == m && x.n == n && x.k == k && x.a == a && x.b == b && x.c == c && x.op == op;
  });
}

std::string known_instructions(DType a, DType b) {
  std::string text;
  for (const MmaAtom& atom : mma_atoms()) {
    if (atom.a != a || atom.b != b) continue;
    text += fmt::format("{}m{}n{}k{} {}", text.empty() ? "" : ", ", atom.m, atom.n, atom.k, name(atom.c));
    if (atom.op != MmaOp::multiply_add) text += atom.op == MmaOp::xor_popc ? " xor" : " and";
    if (atom.min_target > kSm80) text += fmt::format(" ({})", atom.min_target.name());
  }
  return text.empty() ? "none" : text;
}

const std::vector<MmaAtom>& quad_pair_atoms() {
  static const std::vector<MmaAtom> atoms = build_quad_pair_atoms();
  return atoms;
}

const MmaAtom* find_quad_pair_atom(DType c, bool a_is_k_major, bool b_is_k_major) {
  return find(quad_pair_atoms(), [&](const MmaAtom& x) {
    return x.c == c && x.a_is_k_major == a_is_k_major && x.b_is_k_major == b_is_k_major;
  });
}

const std::vector<MmaAtom>& simt_atoms() {
  static const std::vector<MmaAtom> atoms = build_simt_atoms();
  return atoms;
}

const MmaAtom* find_simt_atom(DType a, DType b, DType c) {
  return find(simt_atoms(), [&](const MmaAtom& x) { return x.a == a && x.b == b && x.c == c; });
}

}  // namespace tilewright::arch
