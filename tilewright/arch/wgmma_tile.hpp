// wgmma over a CTA tile: the number of instructions, and their matrix descriptors as a layout.
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
  /// The descriptor of instruction (0, 0) of stage 0, for a tile at shared-memory address 0.
  SmemDescriptor descriptor;
  /// (mn, k) or (mn, k, stage) of an instruction -> the number to add to the low word of the descriptor (units of 16
  /// bytes). Not one stride per mode, because k may span several swizzle atoms: f16 128x128 K-major has k
  /// (4,2):(2,1024).
  layout::Layout offset;

  bool operator==(const WgmmaOperand&) const = default;
};

/// The operand `smem`, (mn, k) or (mn, k, stage), for instructions with an extent of `instruction_mn` along mn.
/// Refused: an extent that the instruction does not divide; what make_descriptor refuses; distances of instructions
/// that are not multiples of 16 bytes.
Result<WgmmaOperand> wgmma_operand(Major major, const layout::ComposedLayout& smem, int element_bits,
                                   std::int64_t instruction_mn);

/// The descriptor of instruction (mn, k, stage) in a tile at `address` in shared memory.
/// @throws InvalidArgument for an address that is not a multiple of base_alignment(), or not below 2^18
std::uint64_t descriptor_bits(const WgmmaOperand& operand, std::int64_t mn, std::int64_t k, std::int64_t stage = 0,
                              std::int64_t address = 0);

/// An operand tile in shared memory.
struct WgmmaOperandTile {
  Major major = Major::k;
  layout::ComposedLayout smem;
};

/// C[m,n] += A[m,k] * B[n,k] of one CTA, both operands in shared memory.
struct WgmmaTile {
  /// The number of instructions along each mode of one stage; m_count is for all warpgroups together.
  std::int64_t m_count = 0;
  std::int64_t n_count = 0;
  std::int64_t k_count = 0;
  WgmmaOperand a;
  WgmmaOperand b;

  bool operator==(const WgmmaTile&) const = default;
};

/// Refused: an n that the atom does not have; A in registers (use wgmma_operand for B); MN-major operands that the atom
/// cannot read; tiles that the instruction does not divide or whose k differ; what wgmma_operand refuses.
Result<WgmmaTile> wgmma_tile(const WgmmaAtom& atom, int n, const WgmmaOperandTile& a, const WgmmaOperandTile& b);

}  // namespace tilewright::arch
