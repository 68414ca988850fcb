// Tiling of operands by instructions. Offsets are strides of the tiled layout in units of 16 bytes. They are added to
// the start address, which wgmma swizzles, so they need no swizzle themselves.
#include "tilewright/arch/wgmma_tile.hpp"

#include <fmt/format.h>

#include <vector>

#include "tilewright/base/error.hpp"
#include "tilewright/layout/algebra.hpp"

namespace tilewright::arch {
namespace {

using layout::ComposedLayout;
using layout::Layout;

constexpr int kChunkBits = 128;
constexpr int kInstructionKBits = 256;

Support check_extents(const ComposedLayout& smem, std::int64_t instruction_mn, std::int64_t instruction_k) {
  const int rank = smem.layout.rank();
  if (rank != 2 && rank != 3)
    return refuse("an operand tile must have modes (mn, k) or (mn, k, stage), got {}", layout::to_string(smem.layout));
  const std::int64_t mn = layout::size(smem.layout.mode(0));
  const std::int64_t k = layout::size(smem.layout.mode(1));
  if (instruction_mn < 1 || mn % instruction_mn != 0)
    return refuse("an instruction takes {} rows, which do not divide the tile's {}", instruction_mn, mn);
  if (k % instruction_k != 0)
    return refuse("an instruction takes {} of k, which do not divide the tile's {}", instruction_k, k);
  return {};
}

/// An operand tile divided by instructions.
struct Divided {
  Layout instruction;  // (mn, k) of the first instruction
  Layout steps;        // (mn, k[, stage]) of the instructions
};

Result<Divided> divide(const Layout& smem, std::int64_t instruction_mn, std::int64_t instruction_k) {
  try {
    const Layout mn = smem.mode(0);
    const Layout k = smem.mode(1);
    const auto steps = [](const Layout& mode, std::int64_t extent) {
      const std::int64_t count = layout::size(mode) / extent;
      return count == 1 ? Layout() : layout::composition(mode, Layout(count, extent));
    };
    std::vector<Layout> all_steps{steps(mn, instruction_mn), steps(k, instruction_k)};
    if (smem.rank() == 3) all_steps.push_back(smem.mode(2));
    return Divided{layout::concatenate({layout::composition(mn, Layout(instruction_mn, 1)),
                                        layout::composition(k, Layout(instruction_k, 1))}),
                   layout::concatenate(all_steps)};
  } catch (const InvalidArgument& error) {
    return refuse("instructions of {} rows and {} of k do not divide {}: {}", instruction_mn, instruction_k,
                  layout::to_string(smem), error.what());
  }
}

Support check_majors(const WgmmaAtom& atom, const WgmmaOperandTile& a, const WgmmaOperandTile& b) {
  if (atom.a_source == OperandSource::registers)
    return refuse("{} has A in registers: tile only B, by wgmma_operand", atom.name);
  if (a.major == Major::mn && !atom.a_may_be_mn_major)
    return refuse("{} reads A K-major only: MN-major operands must have 16-bit types, got {}", atom.name, name(atom.a));
  if (b.major == Major::mn && !atom.b_may_be_mn_major)
    return refuse("{} reads B K-major only: MN-major operands must have 16-bit types, got {}", atom.name, name(atom.b));
  return {};
}

}  // namespace

Result<WgmmaOperand> wgmma_operand(Major major, const ComposedLayout& smem, int element_bits,
                                   std::int64_t instruction_mn) {
  const Result<SwizzleMode> mode = swizzle_mode(smem.swizzle, element_bits);
  if (!mode) return mode.refusal();
  const std::int64_t instruction_k = kInstructionKBits / element_bits;
  const Support extents = check_extents(smem, instruction_mn, instruction_k);
  if (!extents) return Refusal{extents.reason()};

  const Result<Divided> divided = divide(smem.layout, instruction_mn, instruction_k);
  if (!divided) return divided.refusal();
  const Result<SmemDescriptor> descriptor =
      make_descriptor(major, ComposedLayout{smem.swizzle, smem.offset, divided->instruction}, element_bits);
  if (!descriptor) return descriptor.refusal();

  const std::int64_t per_chunk = kChunkBits / element_bits;
  for (const std::int64_t stride : leaves(divided->steps.stride())) {
    if (stride % per_chunk != 0)
      return refuse("instructions must be multiples of 16 bytes apart, got {} elements of {} bits", stride,
                    element_bits);
  }
  return WgmmaOperand{*descriptor, layout::upcast(divided->steps, per_chunk)};
}

std::uint64_t descriptor_bits(const WgmmaOperand& operand, std::int64_t mn, std::int64_t k, std::int64_t stage,
                              std::int64_t address) {
  SmemDescriptor descriptor = operand.descriptor;
  if (address % base_alignment(descriptor.mode) != 0)
    throw InvalidArgument(fmt::format("the address of a tile with {} must be a multiple of {}, got {}",
                                      name(descriptor.mode), base_alignment(descriptor.mode), address));
  TILEWRIGHT_CHECK(operand.offset.rank() == 3 || stage == 0, "stage {} of an operand with one stage", stage);
  const std::int64_t chunks = operand.offset.rank() == 3 ? operand.offset(mn, k, stage) : operand.offset(mn, k);
  descriptor.start_address += address + chunks * kChunkBits / 8;
  return encode(descriptor);
}

Result<WgmmaTile> wgmma_tile(const WgmmaAtom& atom, int n, const WgmmaOperandTile& a, const WgmmaOperandTile& b) {
  Support support = supports_n(atom, n);
  if (support) support = check_majors(atom, a, b);
  if (!support) return Refusal{support.reason()};
  Result<WgmmaOperand> a_operand = wgmma_operand(a.major, a.smem, bits(atom.a), atom.m);
  if (!a_operand) return refuse("A: {}", a_operand.reason());
  Result<WgmmaOperand> b_operand = wgmma_operand(b.major, b.smem, bits(atom.b), n);
  if (!b_operand) return refuse("B: {}", b_operand.reason());
  const auto count = [](const WgmmaOperand& operand, int mode) { return layout::size(operand.offset.mode(mode)); };
  if (count(*a_operand, 1) != count(*b_operand, 1))
    return refuse("A has {} instructions along k, but B has {}", count(*a_operand, 1), count(*b_operand, 1));
  return WgmmaTile{count(*a_operand, 0), count(*b_operand, 0), count(*a_operand, 1), *std::move(a_operand),
                   *std::move(b_operand)};
}

}  // namespace tilewright::arch
