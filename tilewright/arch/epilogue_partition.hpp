// From the accumulators of wgmma to a tile in shared memory that TMA stores: which thread stores which of its values
// where.
#pragma once

#include <cstdint>

#include "tilewright/arch/wgmma_smem.hpp"
#include "tilewright/base/support.hpp"
#include "tilewright/layout/swizzle.hpp"

namespace tilewright::arch {

/// Which mode of D is contiguous in memory: n, or m.
enum class OutputOrder : std::uint8_t { row_major, column_major };

/// The accumulators of one or more warpgroups, each 64 rows of m at a time; D leaves through shared memory in passes.
struct EpilogueRequest {
  int element_bits = 16;  // of D: 16, or 32
  OutputOrder order = OutputOrder::row_major;
  std::int64_t m = 0;  // of all warpgroups together, which take turns: rows 0-63 are the first's, 64-127 the next's
  std::int64_t n = 0;  // of one instruction
  std::int64_t warpgroups = 1;
  std::int64_t columns = 0;  // of one pass; 0: all of n
};

enum class SmemStore : std::uint8_t { stmatrix, stmatrix_trans, st_shared };

/// One pass is `size(address.mode(1))` stores of each thread; the next pass has the same addresses.
struct EpiloguePartition {
  SmemStore store = SmemStore::stmatrix;
  /// 32-bit registers that a thread gives to one instruction: x1, x2, x4 of stmatrix; 1 or 2 words of st.shared.
  int registers = 4;
  int element_bits = 16;
  /// (m, column of the pass) -> offset in elements: the tile that TMA stores.
  layout::ComposedLayout smem;
  SwizzleMode mode = SwizzleMode::none;
  /// (value of a store, store, pass) -> the thread's accumulator. Registers take values in order, the low half first
  /// where they pack two.
  layout::Layout accumulator;
  /// (thread, store) -> offset in elements of the address that the thread gives, before smem's swizzle.
  layout::Layout address;

  bool operator==(const EpiloguePartition&) const = default;
};

/// 16-bit values go by stmatrix, transposed for column-major D, in the widest swizzle that the tile allows. 32-bit
/// values go by st.shared: pairs along n in rows of 32 bytes (a half warp writes 32 bytes of 4 rows, which the wider
/// swizzles, of 16-byte chunks, would put in the same banks), or single words along m in the widest swizzle. No store
/// has a bank conflict.
///
/// Refused, with the number: elements of other widths; rows that are no multiple of 64 for each warpgroup; an n that is
/// no multiple of 8 up to 256; columns that do not divide n or are no multiple of 8.
Result<EpiloguePartition> epilogue_partition(const EpilogueRequest& request);

/// The byte offset in the tile, swizzled, that a thread gives to a store.
std::int64_t store_address(const EpiloguePartition& partition, std::int64_t thread, std::int64_t store);
/// Clocks beyond the least that one pass needs, over all warps and stores, by smem_layout.hpp's bank model.
int bank_conflicts(const EpiloguePartition& partition);

}  // namespace tilewright::arch
