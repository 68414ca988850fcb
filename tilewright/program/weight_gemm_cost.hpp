// The designs of weight_gemm() that suit a problem, and how long they take.
#pragma once

#include <cstdint>
#include <vector>

#include "tilewright/program/weight_gemm.hpp"

namespace tilewright::program {

/// The extents of D[m, n] = sum over k of weights[m, k] * activations[n, k].
struct WeightGemmExtents {
  std::int64_t m = 0, n = 0, k = 0;
};

/// Estimated microseconds on the target of `description`, including the launch. Only for ranking.
double predicted_us(const WeightGemmDescription& description, const WeightGemmExtents& extents);

/// At most `count` descriptions with the types and the group of `description`, the one with the least predicted time
/// first. Tiles along n have all tokens, up to 256, or half or a quarter of them. Few tiles are computed with split-K,
/// and by several CTAs per SM. TMA stores D where `description` wants it and it can.
std::vector<WeightGemmDescription> weight_gemm_designs(const WeightGemmDescription& description,
                                                       const WeightGemmExtents& extents, std::size_t count);

}  // namespace tilewright::program
