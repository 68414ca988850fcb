// The table of copy instructions.
#include "tilewright/arch/copy_atom.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace tilewright::arch {
namespace {

using layout::Layout;

constexpr int kWarp = 32;

bool is_transposed(CopyKind kind) { return kind == CopyKind::ldmatrix_trans || kind == CopyKind::stmatrix_trans; }
bool is_store(CopyKind kind) { return kind == CopyKind::stmatrix || kind == CopyKind::stmatrix_trans; }

CopyAtom one_thread(std::string name, CopyKind kind, std::string_view ptx, int bytes) {
  const Layout bits({1, 8 * bytes}, {0, 1});
  return {.name = std::move(name),
          .kind = kind,
          .ptx = std::string(ptx),
          .bytes = bytes,
          .alignment = bytes,
          .src = bits,
          .dst = bits};
}

/// Lane i < 8 * matrices provides the address of row i % 8 of matrix i / 8. The addresses of other lanes are ignored.
Layout matrix_addresses(int matrices) {
  const int rows = 8 * matrices;
  return rows == kWarp ? Layout({kWarp, 128}, {128, 1}) : Layout({{rows, kWarp / rows}, 128}, {{128, 0}, 1});
}

/// Each lane holds 32 bits of each matrix: elements 2 * (lane % 4) and 2 * (lane % 4) + 1 of row lane / 4; transposed,
/// of column lane / 4.
Layout matrix_registers(int matrices, bool transposed) {
  if (transposed) {
    return matrices == 1 ? Layout({{4, 8}, {16, 2}}, {{256, 16}, {1, 128}})
                         : Layout({{4, 8}, {16, 2, matrices}}, {{256, 16}, {1, 128, 1024}});
  }
  return matrices == 1 ? Layout({kWarp, 32}, {32, 1}) : Layout({kWarp, {32, matrices}}, {32, {1, 1024}});
}

CopyAtom matrices(CopyKind kind, int count) {
  const std::string_view mnemonic = is_store(kind) ? "stmatrix" : "ldmatrix";
  const bool transposed = is_transposed(kind);
  CopyAtom atom{
      .name = fmt::format("{}_x{}{}", mnemonic, count, transposed ? "_trans" : ""),
      .kind = kind,
      .ptx = fmt::format("{}.sync.aligned.m8n8.x{}{}.shared.b16", mnemonic, count, transposed ? ".trans" : ""),
      .bytes = 4 * count,
      .alignment = 16,
      .min_target = Target{is_store(kind) ? 90 : 75},
      .src = matrix_addresses(count),
      .dst = matrix_registers(count, transposed)};
  if (is_store(kind)) std::swap(atom.src, atom.dst);
  return atom;
}

std::vector<CopyAtom> build_copy_atoms() {
  using enum CopyKind;
  std::vector<CopyAtom> atoms;
  for (const int bytes : {4, 8, 16}) {
    atoms.push_back(one_thread(fmt::format("cp_async_ca_{}", bytes), cp_async_ca, "cp.async.ca.shared.global", bytes));
  }
  atoms.push_back(one_thread("cp_async_cg_16", cp_async_cg, "cp.async.cg.shared.global", 16));
  for (const CopyKind kind : {ldmatrix, ldmatrix_trans, stmatrix, stmatrix_trans}) {
    for (const int count : {1, 2, 4}) atoms.push_back(matrices(kind, count));
  }
  for (const auto& [bytes, type] : {std::pair{1, "b8"}, {2, "b16"}, {4, "b32"}, {8, "v2.b32"}, {16, "v4.b32"}}) {
    atoms.push_back(
        one_thread(fmt::format("load_shared_{}", bytes), load_shared, fmt::format("ld.shared.{}", type), bytes));
  }
  return atoms;
}

/// How often a layout reaches each bit; empty if it reaches a bit out of range.
std::vector<int> hits_per_bit(const Layout& layout, std::int64_t bits) {
  std::vector<int> counts(static_cast<std::size_t>(bits));
  for (std::int64_t i = 0; i < layout::size(layout); ++i) {
    const std::int64_t bit = layout(i);
    if (bit < 0 || bit >= bits) return {};
    ++counts[static_cast<std::size_t>(bit)];
  }
  return counts;
}

}  // namespace

int threads(const CopyAtom& atom) { return static_cast<int>(layout::size(atom.dst.mode(0))); }

Support check(const CopyAtom& atom) {
  const bool stores = is_store(atom.kind);
  const Layout& registers = stores ? atom.src : atom.dst;
  const Layout& addresses = stores ? atom.dst : atom.src;
  const std::int64_t bits = layout::size(registers);
  if (layout::size(registers.mode(1)) != 8 * atom.bytes)
    return refuse("{}: a thread holds {} bits, but `bytes` is {}", atom.name, layout::size(registers.mode(1)),
                  atom.bytes);
  if (layout::size(atom.src.mode(0)) != threads(atom))
    return refuse("{}: {} threads in src, but {} in dst", atom.name, layout::size(atom.src.mode(0)), threads(atom));
  const std::vector<int> held = hits_per_bit(registers, bits);
  if (held.empty() || std::any_of(held.begin(), held.end(), [](int n) { return n != 1; }))
    return refuse("{}: the registers of all threads do not hold each of {} bits once", atom.name, bits);
  const std::vector<int> addressed = hits_per_bit(addresses, bits);
  if (addressed.empty() || std::any_of(addressed.begin(), addressed.end(), [](int n) { return n == 0; }))
    return refuse("{}: the addresses of all threads do not cover {} bits", atom.name, bits);
  return {};
}

const std::vector<CopyAtom>& copy_atoms() {
  static const std::vector<CopyAtom> atoms = build_copy_atoms();
  return atoms;
}

const CopyAtom* find_copy_atom(CopyKind kind, int bytes) {
  const std::vector<CopyAtom>& atoms = copy_atoms();
  const auto found = std::find_if(atoms.begin(), atoms.end(),
                                  [&](const CopyAtom& atom) { return atom.kind == kind && atom.bytes == bytes; });
  return found == atoms.end() ? nullptr : &*found;
}

}  // namespace tilewright::arch
