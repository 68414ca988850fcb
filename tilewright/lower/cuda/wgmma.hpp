// Writes one wgmma instruction as a device function. An asm statement lists up to 128 accumulators as operands, and a
// template cannot vary their number, so the function is emitted for each kernel.
#pragma once

#include "tilewright/arch/wgmma_atom.hpp"
#include "tilewright/arch/wgmma_smem.hpp"
#include "tilewright/base/text.hpp"

namespace tilewright::lower::cuda {

/// Writes `struct Wgmma` with kK, Accumulator, kRegisters and fma(accumulators, a, descriptor_b, accumulate). `a` is a
/// descriptor, or the thread's registers if the atom takes A from registers. @pre arch::supports_n(atom, n)
void write_wgmma(SourceWriter& out, const arch::WgmmaAtom& atom, int n, arch::Major major_a, arch::Major major_b);

}  // namespace tilewright::lower::cuda
