// GEMM kernels as programs: D[m, n] = sum over k of A[m, k] * B[n, k], by one of four mixes of atoms.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tilewright/arch/wgmma_smem.hpp"
#include "tilewright/base/dtype.hpp"
#include "tilewright/base/support.hpp"
#include "tilewright/program/program.hpp"

namespace tilewright::program {

/// The instructions that bring operands to shared memory and multiply them there.
enum class AtomMix : std::uint8_t {
  tma_wgmma,           // cp.async.bulk.tensor; wgmma with both operands in shared memory
  cp_async_wgmma,      // cp.async; the same
  tma_mma,             // cp.async.bulk.tensor; ldmatrix and mma.sync
  tma_register_wgmma,  // cp.async.bulk.tensor; ldmatrix of A, and wgmma with A in registers
};
/// "tma_wgmma"
std::string_view name(AtomMix mix);

struct GemmDescription {
  AtomMix mix = AtomMix::tma_wgmma;
  Target target = kSm90a;
  DType a = DType::f16, b = DType::f16, accumulator = DType::f32, d = DType::f32;
  arch::Major a_major = arch::Major::k, b_major = arch::Major::k;
  int tile_m = 128, tile_n = 128, tile_k = 64;
  int stages = 4;
  int consumers = 2;  // warpgroups that multiply
  int raster = 8;
};

/// The kernel. It is persistent and warp-specialised: one warpgroup copies, the others multiply. Its launch arguments
/// are the integers m, n, k, batch, lda, ldb, ldd (leading dimensions in elements), batch_a, batch_b, batch_d (strides
/// of the batch) and the addresses a, b, d. Refused, with the number: what the atoms and the builders refuse.
Result<Program> gemm(std::string symbol, const GemmDescription& description);

}  // namespace tilewright::program
