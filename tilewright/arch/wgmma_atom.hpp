// wgmma (sm_90a): one row for each combination of types and source of A.
#pragma once

#include <string>
#include <vector>

#include "tilewright/arch/mma_atom.hpp"

namespace tilewright::arch {

/// Where A is read from; B is always in shared memory.
enum class OperandSource : std::uint8_t { shared_memory, registers };

/// wgmma.mma_async by a warpgroup: C[64,n] += A[64,k] * B[n,k], for every n that supports_n() accepts.
///
/// PTX operands in order: registers of C; descriptor or registers of A; descriptor of B; the predicate scale-d (false:
/// C is overwritten); imm-scale-a and imm-scale-b (1 or -1) if takes_scales; imm-trans-a if a_may_be_mn_major and
/// imm-trans-b if b_may_be_mn_major (1: MN-major).
struct WgmmaAtom {
  std::string name;  // "wgmma_k16_f32_f16_f16_ss": accumulator, a, b, sources of A and B
  int m = 64;
  int k = 0;
  DType a{};
  DType b{};
  DType c{};  // accumulator
  OperandSource a_source = OperandSource::shared_memory;
  int n_step_past_32 = 8;          // n is 8, 16, 24, 32 and then every multiple of this up to 256
  bool a_may_be_mn_major = false;  // 16-bit types in shared memory only
  bool b_may_be_mn_major = false;
  bool takes_scales = true;
  int a_registers = 0;  // 32-bit registers per thread; 0: A is given by a descriptor

  bool operator==(const WgmmaAtom&) const = default;
};

/// f16 (accumulator f16 or f32), bf16 (f32), tf32 (f32), e4m3, e5m2 and mixed (f16 or f32), s8, u8 and mixed (s32);
/// each with A in shared memory and with A in registers.
const std::vector<WgmmaAtom>& wgmma_atoms();
/// The row of those types, or null.
const WgmmaAtom* find_wgmma_atom(DType a, DType b, DType c, OperandSource a_source);
/// "m64nNk16 f16, m64nNk16 f32": the shapes and accumulators for these operand types; "none" if there is no row.
std::string known_wgmma(DType a, DType b);

/// Whether there is an instruction with this n.
Support supports_n(const WgmmaAtom& atom, int n);
/// All n of a row in ascending order.
std::vector<int> n_values(const WgmmaAtom& atom);

/// The atom for one n, named "wgmma_m64n128k16_f32_f16_f16_ss", with K-major operands. Register fragments of A and C
/// are those of the PTX ISA, "Register Fragments" of wgmma.mma_async. Refused: an n that supports_n() refuses.
Result<MmaAtom> instruction(const WgmmaAtom& atom, int n);

/// Whether a row is consistent: it has at least one n, and the atom of each n is consistent.
Support check(const WgmmaAtom& atom);

}  // namespace tilewright::arch
