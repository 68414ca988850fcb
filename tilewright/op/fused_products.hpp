// The sums of an epilogue graph that are computed as fused multiply-adds.
#pragma once

#include <vector>

#include "tilewright/op/epilogue.hpp"

namespace tilewright::op {

inline constexpr int kNoProduct = -1;

/// For each node, the input that is a product and is fused with it, or kNoProduct. All families fuse these, so that
/// their epilogues round alike. Only products that no other node and no output uses are fused; if both inputs of a sum
/// are such products, the first one is. Sums of integers are not fused.
std::vector<int> fused_products(const Epilogue& epilogue);

}  // namespace tilewright::op
