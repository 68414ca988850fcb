// MMA atoms: multiply-accumulate instructions with shapes, types, registers and thread-value layouts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tilewright/base/dtype.hpp"
#include "tilewright/base/support.hpp"
#include "tilewright/base/target.hpp"
#include "tilewright/layout/layout.hpp"

namespace tilewright::arch {

/// The operation that is summed over k.
enum class MmaOp : std::uint8_t {
  multiply_add,  // a * b
  xor_popc,      // popc(a ^ b) of single bits
  and_popc,      // popc(a & b) of single bits
};

/// One instruction: C[m,n] += A[m,k] * B[n,k].
struct MmaAtom {
  std::string name;  // "mma_m16n8k16_f32_f16_f16": shape, accumulator, a, b; "fma_f32_f16_f16" for a SIMT row
  int m = 1;
  int n = 1;
  int k = 1;
  DType a{};
  DType b{};
  DType c{};  // accumulator
  MmaOp op = MmaOp::multiply_add;
  bool a_is_k_major = true;  // the elements packed in a register are adjacent along k; else along m (A) or n (B)
  bool b_is_k_major = true;
  Target min_target = kSm80;  // a target has the instruction if it has this one's features
  std::string ptx;            // the mnemonic with all qualifiers; operands are d, a, b, c

  int register_bits = 32;  // width of the registers below: 32, or 64 for .f64
  int a_registers = 1;     // registers per thread; 0: the operand is in shared memory, given by a matrix descriptor
  int b_registers = 1;
  int c_registers = 1;

  /// Thread of the layouts below -> lane in the warp, or thread in the warpgroup.
  layout::Layout thread_ids;
  /// (thread, value) -> offset in the column-major tile: (m,k) for A, (n,k) for B, (m,n) for C. Values are in register
  /// order, and from low to high bits in a register. For an operand in shared memory, every thread has the whole tile.
  layout::Layout a_tv;
  layout::Layout b_tv;
  layout::Layout c_tv;

  bool operator==(const MmaAtom&) const = default;
};

/// Threads that execute the instruction together: 32; 8 for a quad pair, 128 for a warpgroup, 1 for fma.
int threads(const MmaAtom& atom);

/// Whether a row is consistent: its layouts are bijections of threads x values onto the tiles (of values alone for an
/// operand in shared memory), the values fill the registers, and A, B and C have the same number of threads.
Support check(const MmaAtom& atom);

/// mma.sync of a whole warp, by operand type. f16 m16n8k8 (sm_75), m16n8k16; bf16 the same; tf32 m16n8k4, m16n8k8;
/// s8, u8 and mixed m8n8k16 (sm_75), m16n8k16, m16n8k32; s4, u4 and mixed m8n8k32 (sm_75), m16n8k32, m16n8k64; b1
/// m8n8k128 (xor sm_75, and sm_80), m16n8k128, m16n8k256; e4m3, e5m2 and mixed m16n8k16, m16n8k32 (sm_89); f64 m8n8k4
/// and m16n8k4, k8, k16 (sm_90). Rows without a target
/// here are sm_80.
const std::vector<MmaAtom>& mma_atoms();
/// The row of that shape and those types, or null.
const MmaAtom* find_mma_atom(int m, int n, int k, DType a, DType b, DType c, MmaOp op = MmaOp::multiply_add);
/// "m16n8k8 f16, m16n8k8 f32, m16n8k16 f16, m16n8k16 f32": the shapes and accumulators for these operand types;
/// "none" if there is no row.
std::string known_instructions(DType a, DType b);

/// m8n8k4 of f16 (sm_70): a warp executes four of them at once, one for each quad pair, lanes {4q, ..., 4q+3} and
/// {16+4q, ..., 16+4q+3}. thread_ids are the lanes of quad pair 0.
const std::vector<MmaAtom>& quad_pair_atoms();
const MmaAtom* find_quad_pair_atom(DType c, bool a_is_k_major, bool b_is_k_major);

/// SIMT rows, m1n1k1: the fma of one thread, with operands converted to the accumulator's type.
const std::vector<MmaAtom>& simt_atoms();
const MmaAtom* find_simt_atom(DType a, DType b, DType c);

}  // namespace tilewright::arch
