// The product with narrow weights for a few tokens, without shared memory for its operands: threads load packed weights
// from global memory straight to the fragments of mma.sync. The time of such a product is latency, which TMA, mbarriers
// and clusters add to.
#pragma once

#include <string>

#include "tilewright/base/support.hpp"
#include "tilewright/base/target.hpp"
#include "tilewright/program/program.hpp"

namespace tilewright::program {

/// The same operands as those of a WeightGemmDescription, with D contiguous along m.
struct WeightGemvDescription {
  Target target = kSm90a;
  DType weights = DType::s4;        // s4, s8, e4m3, packed as packed_layout() says
  DType activations = DType::bf16;  // f16, bf16
  DType scales = DType::bf16;       // f16, bf16, f32
  DType d = DType::bf16;            // f16, bf16, f32
  /// Number of consecutive k with one scale, a multiple of the k of a chunk, or of 16 that divides it; 0: each row has
  /// one scale.
  int group = 128;
  int tile_n = 8;       // tokens of a CTA, 8 or 16
  int rows = 16;        // of a CTA, 16, 32 or 64
  int warps_k = 16;     // warps with the same rows, each with a part of k
  int unrolled = 2;     // chunks of packed weights that a warp loads at once
  int ctas_per_sm = 2;  // for which registers are left
  /// Whether k is a multiple of the k of a chunk, so that no thread compares its k with the end.
  bool whole_chunks = true;
};

/// A kernel D[m, n] = sum over k of weights[m, k] * scales[k / group, m] * activations[n, k]. The sums are f32, and
/// scales multiply them, so that no weight is rounded. Its launch has the integers and addresses of weight_gemm()'s;
/// k and ld_activations are even, and with whole_chunks k is a multiple of that of a chunk. Refused, with the number,
/// for numbers outside of those above.
Result<Program> weight_gemv(std::string symbol, const WeightGemvDescription& description);

}  // namespace tilewright::program
