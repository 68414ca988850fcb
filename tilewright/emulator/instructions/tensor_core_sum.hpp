// How tensor cores add products of floating-point numbers. NVIDIA does not specify it; the model here is the one that
// is published in "MMA-Sim: Bit-Accurate Reference Model of Tensor Cores and Matrix Cores" (arXiv:2511.10909):
// - The products of one block of K and the accumulator are added at once. Each is exact, and is aligned to the largest
//   exponent among them, which for a product is the sum of the exponents of its factors; what is then more than
//   `fraction_bits` bits below that exponent is cut off.
// - The exact sum of what is left is rounded: to f16 to nearest even, to f32 toward zero.
// tests/differential compares it with a GPU.
#pragma once

#include <cstdint>

#include "tilewright/base/target.hpp"

namespace tilewright::emulator {

enum class SumRounding : std::uint8_t {
  f16_nearest,
  f32_toward_zero,
  f32_of_13_bits,  // toward zero, with 13 fraction bits
};

struct TensorCoreSum {
  int fraction_bits = 25;
  int block_bytes = 32;  // of a row of A
  SumRounding rounding = SumRounding::f32_toward_zero;
};

/// The arithmetic of mma.sync (or wmma) and of wgmma on a target. `element_bytes`: of an element of A.
TensorCoreSum sum_of_mma(const Target& target, int element_bytes, bool f16_result);
TensorCoreSum sum_of_wgmma(int element_bytes, bool f16_result);

inline constexpr int kTileRows = 16;

/// D = A * B + C, with C in the place of D. The numbers are those of the operands' types, which f32 has all. All tiles
/// are column-major; A and C have kTileRows rows, of which those that are not used must be zero.
struct ProductTiles {
  int n = 0, k = 0;
  const float* a = nullptr;     // element (m, k) at k * kTileRows + m
  const float* b = nullptr;     // (k, n) at n * k + k
  float* c = nullptr;           // (m, n) at n * kTileRows + m
  int element_bytes = 0;        // of A and B
  int least_exponent_a = -126;  // of a normal number of the type; subnormal numbers count as having it
  int least_exponent_b = -126;
  int least_exponent_c = -126;
  bool b_has_rows =
      false;  // B differs from row to row of A, as in sparse products: (m, k, n) at (n * k + k) * kTileRows + m
};

/// n is at most 256, k is even and at most 32, n * k is a multiple of 16; all tiles are aligned to 64 bytes.
void multiply_add(const ProductTiles& tiles, const TensorCoreSum& how);

/// The product of mma.sync, mma.sp and wmma on a target. 8-bit floats on sm_90 are not those of sum_of_mma: compute
/// capability 9.0 has no such instruction, and ptxas converts the operands to f16 and multiplies them with two mma
/// whose sum starts at zero, first the elements k with k % 4 < 2, then the others; it adds C last (machine code of
/// CUDA 13.0).
void multiply_add_of_mma(const ProductTiles& tiles, const Target& target, bool f16_result);

/// The same for integers of which all sums are less than 2^24: exact. Only the tiles and their sizes are read.
void multiply_add_integers(const ProductTiles& tiles);

}  // namespace tilewright::emulator
