// Multiply-accumulate instructions: shapes, types, registers, and which thread holds which element.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tilewright/base/dtype.hpp"
#include "tilewright/base/support.hpp"
#include "tilewright/layout/layout.hpp"

namespace tilewright::arch {

/// One instruction: C[m,n] += A[m,k] * B[n,k].
struct MmaAtom {
  std::string_view name;  // "mma_m16n8k16_f32_f16_f16": shape, accumulator, a, b; "fma_f32_f16_f16" for one thread's
  int m = 1;
  int n = 1;
  int k = 1;
  DType a{};
  DType b{};
  DType c{};  // accumulator
  int min_sm = 80;
  std::string_view ptx;  // the mnemonic with all its suffixes; operands are d, a, b, c

  int register_bits = 32;  // what one register below is: a .b32 (.f32, .s32), or 64 for a .f64
  int a_registers = 1;     // of one thread
  int b_registers = 1;
  int c_registers = 1;

  /// (thread, value) -> offset in the column-major tile: (m,k) for A, (n,k) for B, (m,n) for C.
  /// Values are in register order, low half first where a register packs several.
  layout::Layout a_tv;
  layout::Layout b_tv;
  layout::Layout c_tv;

  bool operator==(const MmaAtom&) const = default;
};

/// Threads that execute the instruction together: 32, or 1 for fma.
int threads(const MmaAtom& atom);

/// Whether a row agrees with itself: its layouts are bijections of threads x values onto the tiles, and the values fill
/// the registers.
Support check(const MmaAtom& atom);

/// mma.sync, in the order of the PTX ISA. f16 and bf16 m16n8k8, m16n8k16; tf32 m16n8k4, m16n8k8; s8, u8 and mixed
/// m16n8k16, m16n8k32; f64 m8n8k4 (sm_80) and m16n8k4, k8, k16 (sm_90).
const std::vector<MmaAtom>& mma_atoms();
/// The row of that shape and those types, or null. known_instructions(a, b) lists what there is.
const MmaAtom* find_mma_atom(int m, int n, int k, DType a, DType b, DType c);
/// "m16n8k8 f16, m16n8k8 f32, m16n8k16 f16, m16n8k16 f32": the shapes and accumulators of these operand types;
/// "none" when there is no row.
std::string known_instructions(DType a, DType b);

/// One thread's fma of two operands converted to the accumulator's type: m1n1k1, every type pair that a tensor may
/// have.
const std::vector<MmaAtom>& simt_atoms();
const MmaAtom* find_simt_atom(DType a, DType b, DType c);

}  // namespace tilewright::arch
