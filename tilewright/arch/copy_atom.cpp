// The table of copy instructions.
#include "tilewright/arch/copy_atom.hpp"

#include <algorithm>

#include "tilewright/base/error.hpp"

namespace tilewright::arch {
namespace {

using layout::Layout;

constexpr int kWarp = 32;

CopyAtom one_thread(std::string_view name, CopyKind kind, std::string_view ptx, int bytes) {
  const Layout bits({1, 8 * bytes}, {0, 1});
  return {.name = name, .kind = kind, .ptx = ptx, .bytes = bytes, .alignment = bytes, .src = bits, .dst = bits};
}

/// Lane i < 8 * matrices points at row i % 8 of matrix i / 8; lanes beyond repeat, and are ignored.
/// Every lane receives 32 bits of each matrix: of row lane / 4 the elements 2 * (lane % 4) and the next; transposed, of
/// column lane / 4 the rows 2 * (lane % 4) and the next.
CopyAtom load_matrices(std::string_view name, CopyKind kind, std::string_view ptx, int matrices) {
  const int rows = 8 * matrices;
  const Layout src =
      rows == kWarp ? Layout({kWarp, 128}, {128, 1}) : Layout({{rows, kWarp / rows}, 128}, {{128, 0}, 1});
  const bool transposed = kind == CopyKind::ldmatrix_trans;
  const Layout lane = transposed ? Layout({4, 8}, {256, 16}) : Layout(kWarp, 32);
  const Layout word = transposed ? Layout({16, 2}, {1, 128}) : Layout(32, 1);
  const Layout values = matrices == 1 ? word : layout::concatenate({word, Layout(matrices, 1024)});
  return {.name = name,
          .kind = kind,
          .ptx = ptx,
          .bytes = 4 * matrices,
          .alignment = 16,
          .src = src,
          .dst = layout::concatenate({lane, values})};
}

std::vector<CopyAtom> build_copy_atoms() {
  using enum CopyKind;
  constexpr std::string_view kCa = "cp.async.ca.shared.global";
  constexpr std::string_view kCg = "cp.async.cg.shared.global";
  return {
      one_thread("cp_async_ca_4", cp_async_ca, kCa, 4),
      one_thread("cp_async_ca_8", cp_async_ca, kCa, 8),
      one_thread("cp_async_ca_16", cp_async_ca, kCa, 16),
      one_thread("cp_async_cg_16", cp_async_cg, kCg, 16),
      load_matrices("ldmatrix_x1", ldmatrix, "ldmatrix.sync.aligned.m8n8.x1.shared.b16", 1),
      load_matrices("ldmatrix_x2", ldmatrix, "ldmatrix.sync.aligned.m8n8.x2.shared.b16", 2),
      load_matrices("ldmatrix_x4", ldmatrix, "ldmatrix.sync.aligned.m8n8.x4.shared.b16", 4),
      load_matrices("ldmatrix_x1_trans", ldmatrix_trans, "ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16", 1),
      load_matrices("ldmatrix_x2_trans", ldmatrix_trans, "ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16", 2),
      load_matrices("ldmatrix_x4_trans", ldmatrix_trans, "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16", 4),
      one_thread("load_shared_1", load_shared, "ld.shared.b8", 1),
      one_thread("load_shared_2", load_shared, "ld.shared.b16", 2),
      one_thread("load_shared_4", load_shared, "ld.shared.b32", 4),
      one_thread("load_shared_8", load_shared, "ld.shared.v2.b32", 8),
      one_thread("load_shared_16", load_shared, "ld.shared.v4.b32", 16),
  };
}

/// How often a layout reaches each bit.
std::vector<int> visits(const Layout& layout, std::int64_t bits) {
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
  const std::int64_t bits = layout::size(atom.dst);
  if (layout::size(atom.dst.mode(1)) != 8 * atom.bytes)
    return refuse("{}: a thread receives {} bits, the row says {} bytes", atom.name, layout::size(atom.dst.mode(1)),
                  atom.bytes);
  if (layout::size(atom.src.mode(0)) != threads(atom))
    return refuse("{}: {} threads read and {} receive", atom.name, layout::size(atom.src.mode(0)), threads(atom));
  const std::vector<int> received = visits(atom.dst, bits);
  if (received.empty() || std::any_of(received.begin(), received.end(), [](int n) { return n != 1; }))
    return refuse("{}: what threads receive is not each of {} bits once", atom.name, bits);
  const std::vector<int> read = visits(atom.src, bits);
  if (read.empty() || std::any_of(read.begin(), read.end(), [](int n) { return n == 0; }))
    return refuse("{}: what threads point at does not cover {} bits", atom.name, bits);
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
