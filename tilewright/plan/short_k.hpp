// The order of the tiles of a product with a short K, most of whose time DRAM takes to write D.
#pragma once

#include <cstdint>

#include "tilewright/arch/limits.hpp"
#include "tilewright/plan/design.hpp"

namespace tilewright::plan {

/// A product with tiles of `tile`. All members are of the same problem: the caller's, or the one that is computed.
struct ProductShape {
  std::int64_t m = 0, n = 0, k = 0;
  TileShape tile;
  int element_bytes = 0;  // of A and B
  bool d_is_row_major = true;
  std::int64_t bytes_of_d = 0;  // of all matrices
};

/// Whether DRAM takes most of the time to write D: a row of A has at most 1024 bytes, and D more than half of L2.
bool has_short_k(const arch::ArchLimits& limits, const ProductShape& product);

/// The raster order for a short K. DRAM writes D faster if the tiles of a wave are whole lines of D, as long as the
/// operand that is read again for each of these lines stays in L2. @pre has_short_k()
Raster raster_of_short_k(const arch::ArchLimits& limits, const ProductShape& product);

}  // namespace tilewright::plan
