// wgmma over a CTA tile: how many instructions, and the matrix descriptor of each as a layout.
#pragma once

#include <cstdint>

#include "tilewright/arch/smem_descriptor.hpp"
#include "tilewright/arch/wgmma_atom.hpp"
#include "tilewright/arch/wgmma_smem.hpp"
#include "tilewright/base/support.hpp"
#include "tilewright/layout/swizzle.hpp"

namespace tilewright::arch {

/// An operand in shared memory.
struct WgmmaOperand {
  /// Of instruction (0, 0) of stage 0, in a tile at shared-memory address 0.
  SmemDescriptor descriptor;
  /// (mn, k) or (mn, k, stage) of an instruction -> what to add to the descriptor's low word, in units of 16 bytes. A
  /// layout, because no one step leads along a k of several swizzle widths: f16 128x128 K-major has k (4,2):(2,1024).
  layout::Layout offset;

  bool operator==(const WgmmaOperand&) const = default;
};

/// The operand (mn, k) or (mn, k, stage) of `element_bits` wide elements for instructions that take `instruction_mn`
/// rows of it. Refused: an extent that the instruction does not divide; whatever make_descriptor refuses; steps that
/// are no multiples of 16 bytes.
Result<WgmmaOperand> wgmma_operand(Major major, const layout::ComposedLayout& smem, int element_bits,
                                   std::int64_t instruction_mn);

/// The bits of the descriptor of instruction (mn, k, stage) in a tile at a shared-memory address.
/// @throws InvalidArgument: an address that is not a multiple of base_alignment, or beyond the 2^18 bytes that the
/// format reaches.
std::uint64_t descriptor_bits(const WgmmaOperand& operand, std::int64_t mn, std::int64_t k, std::int64_t stage = 0,
                              std::int64_t address = 0);

/// An operand tile as it lies in shared memory.
struct WgmmaOperandTile {
  Major major = Major::k;
  layout::ComposedLayout smem;
};

/// C[m,n] += A[m,k] * B[n,k] of one CTA, both operands in shared memory.
struct WgmmaTile {
  /// Instructions along each mode of one stage; of m, those of all warpgroups.
  std::int64_t m_count = 0;
  std::int64_t n_count = 0;
  std::int64_t k_count = 0;
  WgmmaOperand a;
  WgmmaOperand b;

  bool operator==(const WgmmaTile&) const = default;
};

/// Refused: an n that the atom lacks; A in registers (tile B alone by wgmma_operand); MN-major operands that the atom
/// cannot read; tiles that the instruction does not divide or whose k differ; whatever wgmma_operand refuses.
Result<WgmmaTile> wgmma_tile(const WgmmaAtom& atom, int n, const WgmmaOperandTile& a, const WgmmaOperandTile& b);

}  // namespace tilewright::arch
