// Split-K: the part of K that a CTA multiplies.
#pragma once

#include "tilewright/types.cuh"

namespace tilewright {

/// `tiles` tiles of K, which begin at element `begin` and have `extent` elements; both may be 0.
struct KPart {
  int begin, extent, tiles;
};

/// Part number `part` of `kParts` parts, whose numbers of tiles differ by at most one.
template <int kTileK, int kParts>
__device__ __forceinline__ KPart k_part(int k, int part) {
  const int tiles = ceil_div(k, kTileK);
  if constexpr (kParts == 1) {
    return {0, k, tiles};
  } else {
    const int begin = (tiles / kParts * part + min(part, tiles % kParts)) * kTileK;
    const int own = tiles / kParts + (part < tiles % kParts ? 1 : 0);
    return {begin, min(k - begin, own * kTileK), own};
  }
}

}  // namespace tilewright
