// How long an sm90_gemm kernel should take, without measuring: to rank candidates by, not to quote.
#pragma once

#include <cstdint>

#include "tilewright/arch/limits.hpp"
#include "tilewright/op/gemm.hpp"
#include "tilewright/plan/design.hpp"
#include "tilewright/plan/gemm_tile.hpp"

namespace tilewright::plan {

/// What the model needs to know of a design on one problem. Extents are of the problem as computed.
struct Sm90CostInput {
  std::int64_t m = 0, n = 0, k = 0, batches = 1;
  TileShape tile;
  int stages = 2;
  int cluster_m = 1, cluster_n = 1;  // CTAs that share operands
  int split_k = 1;                   // CTAs that share a tile
  Schedule schedule = Schedule::cooperative;
  int row_bytes_a = 128, row_bytes_b = 128;  // of a tile, together in memory: the width of its swizzle
  bool walks_along_m = false;                // tiles that follow each other: they share B, else A
  int reads_a = 0, reads_b = 0;              // of a byte of an operand by threads that gather it; 0 by TMA
  int plain_load_words = 0;                  // that each of them has in flight
  int subtiles = 1;                          // of buffers of D, that one warpgroup stores of a tile; 0 of slices
  int element_bytes = 2, d_bytes = 2;
  int beside_bytes = 0;              // that the epilogue reads and writes beside C and D, for each element of A*B
  double function_instructions = 0;  // of the epilogue, for each: see function_instructions()
  double fma_per_clock = 0;          // of one SM's tensor cores
  double repacked_bytes = 0;         // of operands, that are copied first
  double exposed_clocks = 0;         // of a step, while nothing multiplies: promotion, or loads of fragments
  bool loads_fragments = false;      // of A, by threads
};

/// Instructions of the functions of an epilogue for one element; none of plain arithmetic, which is as nothing.
double function_instructions(const op::Epilogue& epilogue);
/// Bytes of tensors of m x n, of A*B, that an epilogue reads and writes beside C and D, for one element.
int beside_bytes(const op::GemmSignature& operands);

/// Microseconds, launch included: a persistent CTA's tiles one after another, each as many steps of K, each step as
/// long as the slowest of multiplying, its bytes from L2, the latency that its stages hide, and gathering; at least
/// what DRAM takes; then the last tile's epilogue. Before them, the copies of operands.
double estimate_us(const arch::ArchLimits& limits, const Sm90CostInput& input);

}  // namespace tilewright::plan
