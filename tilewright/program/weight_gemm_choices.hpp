// These functions derive the cuts of a stage along k and the panels by which D is stored from the description of a GEMM
// with narrow weights, and check the description. weight_gemm.cpp writes the kernel.
#pragma once

#include "tilewright/program/staged_output.hpp"
#include "tilewright/program/weight_gemm.hpp"

namespace tilewright::program {

inline constexpr int kWarpgroupThreads = 128;
/// The k of one wgmma, and of one fragment of A.
inline constexpr int kInstructionK = 16;
/// Registers of a fragment of A.
inline constexpr int kFragmentRegisters = 4;
/// Registers of a thread for the rows and columns of one 8 x 8 matrix and the one below it.
inline constexpr int kRegistersOfColumns = 4;
inline constexpr int kMaxSplitK = 8;
inline constexpr int kMaxConsumers = 4;
/// The k of activations in one line of 128 bytes, which a swizzle permutes.
inline constexpr int kSwizzledK = 64;

/// @throws InvalidArgument, with the number, for a description that no kernel can have
void check(const WeightGemmDescription& description);

/// Warpgroups that multiply, along m and k; number of parts of k whose sums are added at the end of a tile.
int all_consumers(const WeightGemmDescription& description);
int parts_of_k(const WeightGemmDescription& description);

/// The k of a stage that a warpgroup multiplies.
int part_k(const WeightGemmDescription& description);

/// Number of consecutive k in a stage with one scale.
int segment_of(const WeightGemmDescription& description);

/// Whether two sets of accumulators beside their sum fit in the registers, so that a scale multiplies one set while
/// wgmma writes the other.
bool spans_take_turns(const WeightGemmDescription& description);

/// The panels by which a warpgroup stores its rows of a tile, two at a time.
StagingUse staging_of(const WeightGemmDescription& description);

}  // namespace tilewright::program
