// How sm80_gemm's threads access shared memory, by the plan's layouts: copies fill a tile once, lanes get the elements
// that the instruction wants, and no access has a bank conflict.
#include <gtest/gtest.h>

#include <algorithm>
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

/// One operand of one plan, and how threads access it.
struct OperandUse {
  SmemOperand operand;
  bool is_a = true;
  int threads = 0, warps_m = 0;
  int warp_tile = 0;
  int instruction_mn = 0;
  TileCopy copy;
  MmaFragmentLoads loads;

  int tile_mn() const { return operand.is_k_major ? operand.strided : operand.contiguous; }
  int tile_k() const { return operand.is_k_major ? operand.contiguous : operand.strided; }
  int element_bytes() const { return bytes(operand.element); }
  /// The first row or column of a warp's tile.
  int warp_mn(int warp) const { return (is_a ? warp % warps_m : warp / warps_m) * warp_tile; }
};

std::string to_string(const Sm80GemmPlan& plan, bool is_a) {
  const SmemOperand& o = is_a ? plan.a : plan.b;
  const bool rounds = plan.operands.math == op::MathOperation::multiply_add_fast_f16 ||
                      plan.operands.math == op::MathOperation::multiply_add_fast_bf16;
  return fmt::format("{} {} k-major {} {}x{} panels {} aligned {} ldmatrix {} {}, warps {}x{}, warp tile {}, {}{}",
                     is_a ? 'A' : 'B', name(o.element), o.is_k_major, o.strided, o.contiguous, o.panel_bytes,
                     o.alignment_bytes, o.uses_ldmatrix, layout::to_string(o.swizzle), plan.warps_m, plan.warps_n,
                     is_a ? plan.warp_tile_m() : plan.warp_tile_n(), plan.atom->name, rounds ? " rounded" : "");
}

OperandUse use_of(const Sm80GemmPlan& plan, bool is_a) {
  OperandUse use;
  use.operand = is_a ? plan.a : plan.b;
  use.is_a = is_a;
  use.threads = plan.threads();
  use.warps_m = plan.warps_m;
  use.warp_tile = is_a ? plan.warp_tile_m() : plan.warp_tile_n();
  use.instruction_mn = is_a ? plan.atom->m : plan.atom->n;
  use.copy = tile_copy(plan, use.operand);
  use.loads = fragment_loads(plan, is_a);
  return use;
}

/// device/tilewright/operand/swizzle.cuh
std::int64_t moved(const layout::Swizzle& swizzle, std::int64_t offset, std::int64_t step) {
  const std::int64_t target = layout::target_bits(swizzle);
  return (offset ^ (step & target)) + (step & ~target);
}

/// Each different use of shared memory by any design, type, layout, alignment and target.
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
                const std::string text = to_string(*plan, is_a);
                if (!found.contains(text)) found.emplace(text, use_of(*plan, is_a));
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

TEST(SmemLayout, CopiesFillTheTileOnceWithoutBankConflicts) {
  for (const auto& [text, use] : all_uses()) {
    const SmemOperand& operand = use.operand;
    const TileCopy& copy = use.copy;
    const layout::ComposedLayout layout = smem_layout(operand);
    const int vector = operand.alignment_bytes / use.element_bytes();
    std::vector<int> writes(static_cast<std::size_t>(operand.tile_bytes() / operand.alignment_bytes));
    for (int pass = 0; pass < copy.passes; ++pass) {
      for (int warp = 0; warp < use.threads / kLanes; ++warp) {
        std::vector<std::int64_t> addresses;
        for (int thread = warp * kLanes; thread < std::min((warp + 1) * kLanes, copy.active_threads); ++thread) {
          const std::int64_t address = copy.smem(thread, pass);
          ASSERT_EQ(address, moved(operand.swizzle, copy.smem(thread, 0), copy.smem(0, pass))) << text;
          const layout::IntTuple at = layout::coordinate(copy.coordinates, {thread, pass});
          for (int i = 0; i < vector; ++i) {
            ASSERT_EQ(address + i * use.element_bytes(), layout(at[0].value(), at[1].value() + i)) << text;
          }
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

/// Elements that `lane` has in one register, lowest bits first, after ldmatrix of `matrix` (of 4) at the lanes'
/// addresses.
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

/// The element of the tile that the instructions of `warp` want as value number `value` of `lane`, where the values of
/// all its instruction tiles follow each other.
Element wanted(const OperandUse& use, int warp, int lane, int value, int step) {
  const auto values = static_cast<int>(layout::size(use.loads.tv.mode(1)));
  const auto at = static_cast<int>(use.loads.tv(lane, value % values));
  return {use.warp_mn(warp) + value / values * use.instruction_mn + at % use.instruction_mn,
          step * use.loads.step_k + at / use.instruction_mn};
}

/// One load of a warp: checks bank conflicts and what every lane receives.
void check_load(const OperandUse& use, const std::vector<Element>& image, int warp, int load, int step) {
  std::vector<std::int64_t> addresses;
  for (int lane = 0; lane < kLanes; ++lane) {
    const int thread = warp * kLanes + lane;
    addresses.push_back(use.loads.offset(thread, load, step));
    ASSERT_EQ(addresses.back(),
              moved(use.operand.swizzle, use.loads.offset(thread, 0, 0), use.loads.offset(0, load, step)));
  }
  const bool uses_ldmatrix = use.operand.uses_ldmatrix;
  ASSERT_EQ(arch::bank_conflicts(addresses, uses_ldmatrix ? 16 : use.element_bytes()), 0);
  for (int lane = 0; lane < kLanes; ++lane) {
    std::vector<Element> received;
    for (int matrix = 0; uses_ldmatrix && matrix < 4; ++matrix) {
      for (const Element& element : ldmatrix(use, image, addresses, matrix, lane)) received.push_back(element);
    }
    if (!uses_ldmatrix) {
      const std::int64_t address = addresses[static_cast<std::size_t>(lane)];
      received.push_back(image.at(static_cast<std::size_t>(address / use.element_bytes())));
    }
    const auto count = static_cast<int>(received.size());
    for (int i = 0; i < count; ++i) {
      ASSERT_EQ(received[static_cast<std::size_t>(i)], wanted(use, warp, lane, load * count + i, step))
          << "lane " << lane << " value " << load * count + i;
    }
  }
}

TEST(SmemLayout, LanesGetTheirFragmentsWithoutBankConflicts) {
  for (const auto& [text, use] : all_uses()) {
    SCOPED_TRACE(text);
    const std::vector<Element> elements = image(use);
    const auto values = static_cast<int>(layout::size(use.loads.tv.mode(1)));
    const int values_per_load = use.operand.uses_ldmatrix ? 16 / use.element_bytes() : 1;
    ASSERT_EQ(use.loads.loads() * values_per_load, use.warp_tile / use.instruction_mn * values);
    ASSERT_EQ(use.loads.steps() * use.loads.step_k, use.tile_k());
    std::map<int, int> first_warps;  // warps with the same rows or columns load the same
    for (int warp = 0; warp < use.threads / kLanes; ++warp) {
      const auto [first, is_first] = first_warps.emplace(use.warp_mn(warp), warp);
      for (int lane = 0; lane < kLanes; ++lane) {
        ASSERT_EQ(use.loads.offset(warp * kLanes + lane, 0, 0), use.loads.offset(first->second * kLanes + lane, 0, 0));
      }
      if (!is_first) continue;
      for (int load = 0; load < use.loads.loads(); ++load) {
        for (int step = 0; step < use.loads.steps(); ++step) {
          check_load(use, elements, warp, load, step);
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

}  // namespace
}  // namespace tilewright::plan
