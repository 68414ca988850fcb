// The shared-memory accesses of sm80_gemm, computed thread by thread as in the device code: copies write every element
// of a tile once, lanes load the elements that the instruction needs, and no access has a bank conflict.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <set>
#include <vector>

#include "tests/unit/plan/gemm_cases.hpp"
#include "tilewright/arch/smem_layout.hpp"
#include "tilewright/plan/search.hpp"
#include "tilewright/plan/sm80_gemm.hpp"

namespace tilewright::plan {
namespace {

constexpr int kLanes = 32;

/// Element (mn, k) of an operand's tile.
struct Element {
  int mn = -1, k = -1;
  bool operator==(const Element&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Element& element) {
  return out << "(" << element.mn << "," << element.k << ")";
}

/// One operand of one plan: the values that determine the threads' addresses.
struct OperandUse {
  SmemOperand operand;
  bool is_a = true;
  int threads = 0;
  int warp_tile = 0;
  int atom_mn = 0;
  int load_k = 0;     // k of one load; less than the instruction's if fragments are converted
  int registers = 0;  // registers that one load fills for one instruction tile
  layout::Layout tv;  // (thread, value) layout of the instruction; empty if the kernel permutes k

  int tile_mn() const { return operand.is_k_major ? operand.strided : operand.contiguous; }
  int tile_k() const { return operand.is_k_major ? operand.contiguous : operand.strided; }
  int element_bytes() const { return bytes(operand.element); }
};

std::string to_string(const OperandUse& use) {
  const SmemOperand& o = use.operand;
  return fmt::format(
      "{} {} k-major {} {}x{} panels {} aligned {} ldmatrix {} {}, {} threads, warp tile {}, atom {}, load k {}",
      use.is_a ? 'A' : 'B', name(o.element), o.is_k_major, o.strided, o.contiguous, o.panel_bytes, o.alignment_bytes,
      o.uses_ldmatrix, layout::to_string(o.swizzle), use.threads, use.warp_tile, use.atom_mn, use.load_k);
}

OperandUse use_of(const Sm80GemmPlan& plan, bool is_a) {
  const bool is_fast = plan.operands.math == op::MathOperation::multiply_add_fast_f16 ||
                       plan.operands.math == op::MathOperation::multiply_add_fast_bf16;
  const arch::MmaAtom& atom = *plan.atom;
  OperandUse use;
  use.operand = is_a ? plan.a : plan.b;
  use.is_a = is_a;
  use.threads = plan.threads();
  use.warp_tile = is_a ? plan.warp_tile_m() : plan.warp_tile_n();
  use.atom_mn = is_a ? atom.m : atom.n;
  use.load_k = is_fast ? 8 : atom.k;
  use.registers = is_fast ? use.atom_mn / 4 : (is_a ? atom.a_registers : atom.b_registers);
  if (!is_fast) use.tv = is_a ? atom.a_tv : atom.b_tv;
  return use;
}

/// The different uses of shared memory over all designs, types, layouts, alignments and targets.
const std::map<std::string, OperandUse>& all_uses() {
  static const std::map<std::string, OperandUse> uses = [] {
    std::map<std::string, OperandUse> found;
    for (const TypeCase& types : type_cases()) {
      for (const Layouts& layouts : all_layouts()) {
        for (const int alignment_bytes : {4, 8, 16}) {
          for (const Target& target : {kSm80, kSm90}) {
            const op::GemmSignature description = describe(types, layouts, alignment_bytes);
            for (const Sm80GemmDesign& design : sm80_gemm_designs(description, target)) {
              const Result<Sm80GemmPlan> plan = plan_sm80_gemm(description, design);
              if (!plan) continue;
              for (const bool is_a : {true, false}) {
                OperandUse use = use_of(*plan, is_a);
                found.emplace(to_string(use), std::move(use));
              }
            }
          }
        }
      }
    }
    return found;
  }();
  return uses;
}

/// The plan's layout as a table: byte offset / element bytes -> element.
std::vector<Element> image(const OperandUse& use) {
  const layout::ComposedLayout layout = smem_layout(use.operand);
  std::vector<Element> elements(static_cast<std::size_t>(use.operand.tile_bytes() / use.element_bytes()));
  for (int line = 0; line < use.operand.strided; ++line) {
    for (int i = 0; i < use.operand.contiguous; ++i) {
      const auto at = static_cast<std::size_t>(layout(line, i) / use.element_bytes());
      elements.at(at) = use.operand.is_k_major ? Element{line, i} : Element{i, line};
    }
  }
  return elements;
}

TEST(SmemLayout, IsABijectionOntoTheTile) {
  ASSERT_GT(all_uses().size(), 50U);
  std::set<std::string> seen;
  for (const auto& [text, use] : all_uses()) {
    const layout::ComposedLayout layout = smem_layout(use.operand);
    if (!seen.insert(layout::to_string(layout)).second) continue;
    ASSERT_EQ(size(layout), use.operand.tile_bytes() / use.element_bytes()) << text;
    std::vector<bool> taken(static_cast<std::size_t>(use.operand.tile_bytes()));
    for (std::int64_t i = 0; i < size(layout); ++i) {
      const std::int64_t offset = layout(i);
      ASSERT_EQ(offset % use.element_bytes(), 0) << text;
      ASSERT_TRUE(offset >= 0 && offset < use.operand.tile_bytes()) << text << " offset " << offset;
      ASSERT_FALSE(taken[static_cast<std::size_t>(offset)]) << text << " offset " << offset << " twice";
      taken[static_cast<std::size_t>(offset)] = true;
    }
  }
}

// The addresses are those of device/tilewright/copy/operand_copy.cuh: in each pass a thread copies one chunk; passes
// cover the lines of a panel first, then the next panel.
TEST(SmemLayout, CopiesFillTheTileOnceWithoutBankConflicts) {
  for (const auto& [text, use] : all_uses()) {
    const SmemOperand& operand = use.operand;
    const layout::ComposedLayout layout = smem_layout(operand);
    const int chunks_per_line = operand.panel_bytes / operand.alignment_bytes;
    const int lines_per_pass = use.threads / chunks_per_line;
    const int lines = operand.strided * (operand.contiguous * use.element_bytes() / operand.panel_bytes);
    const int panel_step = operand.strided * operand.panel_bytes;
    std::vector<int> writes(static_cast<std::size_t>(operand.tile_bytes() / operand.alignment_bytes));
    for (int pass = 0; pass * lines_per_pass < lines; ++pass) {
      const int pass_line = pass * lines_per_pass % operand.strided;
      const int pass_panel = pass * lines_per_pass / operand.strided;
      const std::int64_t within = operand.swizzle(std::int64_t{pass_line} * operand.panel_bytes);
      for (int warp = 0; warp < use.threads / kLanes; ++warp) {
        std::vector<std::int64_t> addresses;
        for (int thread = warp * kLanes; thread < (warp + 1) * kLanes; ++thread) {
          if (lines < lines_per_pass && thread / chunks_per_line >= lines) continue;
          const int line = thread / chunks_per_line % operand.strided;
          const int panel = thread / chunks_per_line / operand.strided;
          const int chunk_byte = thread % chunks_per_line * operand.alignment_bytes;
          const std::int64_t at = operand.swizzle(std::int64_t{line} * operand.panel_bytes + chunk_byte);
          const std::int64_t address = ((panel * panel_step + at) ^ within) + pass_panel * panel_step;
          const int contiguous_byte = (panel + pass_panel) * operand.panel_bytes + chunk_byte;
          ASSERT_EQ(address, layout(line + pass_line, contiguous_byte / use.element_bytes())) << text;
          ++writes.at(static_cast<std::size_t>(address / operand.alignment_bytes));
          addresses.push_back(address);
        }
        if (!addresses.empty()) {
          ASSERT_EQ(arch::bank_conflicts(addresses, operand.alignment_bytes), 0) << text << " pass " << pass;
        }
      }
    }
    ASSERT_EQ(writes, std::vector<int>(writes.size(), 1)) << text;
  }
}

/// The address computation of device/tilewright/mma/fragment_loader.cuh.
class Loader {
 public:
  explicit Loader(const OperandUse& use) : use_(use) {
    matrices_k_ = use.load_k * use.element_bytes() / 16;
    matrices_mn_ = 4 / std::max(matrices_k_, 1);
    group_tiles_ = use.operand.uses_ldmatrix ? std::max(matrices_mn_ * 8 / use.atom_mn, 1) : 1;
  }

  int group_tiles() const { return group_tiles_; }

  std::int64_t lane_offset(int mn, int lane) const {
    int line = 0;
    int byte = 0;
    if (use_.operand.uses_ldmatrix) {
      const int matrix = lane / 8;
      const int matrix_k = use_.is_a ? matrix / matrices_mn_ : matrix % matrices_k_;
      const int matrix_mn = use_.is_a ? matrix % matrices_mn_ : matrix / matrices_k_;
      line = use_.operand.is_k_major ? mn + matrix_mn * 8 + lane % 8 : matrix_k * 8 + lane % 8;
      byte = use_.operand.is_k_major ? matrix_k * 16 : (mn + matrix_mn * 8) * use_.element_bytes();
    } else {
      line = use_.operand.is_k_major ? mn + lane / 4 : lane % 4;
      byte = (use_.operand.is_k_major ? lane % 4 : mn + lane / 4) * use_.element_bytes();
    }
    const int panel_bytes = use_.operand.panel_bytes;
    return byte / panel_bytes * panel_step() + use_.operand.swizzle(line * panel_bytes + byte % panel_bytes);
  }

  std::int64_t address(std::int64_t lane_offset, int mn, int k) const {
    const int line = use_.operand.is_k_major ? mn : k;
    const int byte = (use_.operand.is_k_major ? k : mn) * use_.element_bytes();
    const int panel_bytes = use_.operand.panel_bytes;
    return (lane_offset ^ (byte % panel_bytes)) + byte / panel_bytes * panel_step() + line * panel_bytes;
  }

 private:
  std::int64_t panel_step() const { return std::int64_t{use_.operand.strided} * use_.operand.panel_bytes; }

  const OperandUse& use_;
  int matrices_k_, matrices_mn_, group_tiles_;
};

/// The elements that `lane` has in one register, lowest bits first, after an ldmatrix.x4 at the lanes' addresses;
/// `matrix` is the number of the matrix.
std::vector<Element> ldmatrix(const OperandUse& use, const std::vector<Element>& image,
                              const std::vector<std::int64_t>& addresses, int matrix, int lane) {
  const auto row = [&](int r) { return addresses[static_cast<std::size_t>(matrix * 8 + r)] / use.element_bytes(); };
  const int per_register = 4 / use.element_bytes();
  std::vector<Element> elements;
  for (int i = 0; i < per_register; ++i) {
    const std::int64_t at = use.operand.is_k_major ? row(lane / 4) + lane % 4 * per_register + i
                                                   : row(lane % 4 * per_register + i) + lane / 4;
    elements.push_back(image.at(static_cast<std::size_t>(at)));
  }
  return elements;
}

/// The element that the instruction needs as value `value` of `lane`, in an instruction tile at the origin.
Element wanted(const OperandUse& use, int lane, int value) {
  const std::int64_t offset = use.tv(lane + kLanes * value);
  return {static_cast<int>(offset % use.atom_mn), static_cast<int>(offset / use.atom_mn)};
}

/// Checks one load of a group of instruction tiles: the bank conflicts, and the elements that every lane receives.
void check_load(const OperandUse& use, const std::vector<Element>& image, int warp_mn, int first_tile, int step) {
  const Loader loader(use);
  const int mn = first_tile * use.atom_mn;
  const int k = step * use.load_k;
  const auto expect_value = [&](const Element& got, int lane, int tile, int value) {
    if (use.tv.rank() != 2) return;
    const Element want = wanted(use, lane, value);
    ASSERT_EQ(got, (Element{warp_mn + tile * use.atom_mn + want.mn, k + want.k}))
        << "lane " << lane << " value " << value;
  };
  if (use.operand.uses_ldmatrix) {
    std::vector<std::int64_t> addresses;
    for (int lane = 0; lane < kLanes; ++lane)
      addresses.push_back(loader.address(loader.lane_offset(warp_mn, lane), mn, k));
    ASSERT_EQ(arch::bank_conflicts(addresses, 16), 0);
    for (int lane = 0; lane < kLanes; ++lane) {
      for (int i = 0; i < 4; ++i) {
        const std::vector<Element> elements = ldmatrix(use, image, addresses, i, lane);
        for (int j = 0; j < static_cast<int>(elements.size()); ++j) {
          const int value = i % use.registers * static_cast<int>(elements.size()) + j;
          expect_value(elements[static_cast<std::size_t>(j)], lane, first_tile + i / use.registers, value);
        }
      }
    }
    return;
  }
  for (int i = 0; i < use.registers; ++i) {
    const int halves = use.atom_mn / 8;
    std::vector<std::int64_t> addresses;
    for (int lane = 0; lane < kLanes; ++lane) {
      addresses.push_back(loader.address(loader.lane_offset(warp_mn, lane), mn + i % halves * 8, k + i / halves * 4));
      expect_value(image.at(static_cast<std::size_t>(addresses.back() / use.element_bytes())), lane, first_tile, i);
    }
    ASSERT_EQ(arch::bank_conflicts(addresses, use.element_bytes()), 0) << "register " << i;
  }
}

TEST(SmemLayout, LanesGetTheirFragmentsWithoutBankConflicts) {
  for (const auto& [text, use] : all_uses()) {
    SCOPED_TRACE(text);
    const std::vector<Element> elements = image(use);
    const int group = Loader(use).group_tiles();
    for (int warp_mn = 0; warp_mn < use.tile_mn(); warp_mn += use.warp_tile) {
      for (int tile = 0; tile < use.warp_tile / use.atom_mn; tile += group) {
        for (int step = 0; step < use.tile_k() / use.load_k; ++step) {
          check_load(use, elements, warp_mn, tile, step);
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

}  // namespace
}  // namespace tilewright::plan
