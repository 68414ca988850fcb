// One wgmma instruction as a device function: its accumulators are up to 128 operands of one asm statement, which no
// template can spell, so each kernel's text has the one it needs.
#pragma once

#include "tilewright/arch/wgmma_atom.hpp"
#include "tilewright/arch/wgmma_smem.hpp"
#include "tilewright/base/text.hpp"

namespace tilewright::lower::cuda {

/// Writes `struct Wgmma` with kK, Accumulator, kRegisters and fma(accumulators, a, descriptor_b, accumulate), where a
/// is a descriptor or, where the atom takes A from registers, the thread's. @pre arch::supports_n(atom, n)
void write_wgmma(SourceWriter& out, const arch::WgmmaAtom& atom, int n, arch::Major major_a, arch::Major major_b);

}  // namespace tilewright::lower::cuda
