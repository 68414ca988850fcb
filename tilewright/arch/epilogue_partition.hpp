// Partition of the epilogue: how the threads of warpgroups store wgmma accumulators to a tile in shared memory, from
// which TMA stores it.
#pragma once

#include <cstdint>

#include "tilewright/arch/wgmma_smem.hpp"
#include "tilewright/base/support.hpp"
#include "tilewright/layout/swizzle.hpp"

namespace tilewright::arch {

/// The contiguous mode of D in memory: n (row-major) or m (column-major).
enum class OutputOrder : std::uint8_t { row_major, column_major };

/// The accumulators of one or more warpgroups. They are stored in passes of `columns` columns.
struct EpilogueRequest {
  int element_bits = 16;  // bits of an element of D: 16 or 32
  OutputOrder order = OutputOrder::row_major;
  /// Rows of all warpgroups together. Groups of 64 rows go to warpgroups round-robin: rows 0-63 to warpgroup 0, and so
  /// on.
  std::int64_t m = 0;
  std::int64_t n = 0;  // n of one wgmma
  std::int64_t warpgroups = 1;
  std::int64_t columns = 0;  // columns of one pass; 0 stands for n
};

enum class SmemStore : std::uint8_t { stmatrix, stmatrix_trans, st_shared };

/// In one pass, each thread executes size(address.mode(1)) store instructions. All passes use the same addresses.
struct EpiloguePartition {
  SmemStore store = SmemStore::stmatrix;
  /// 32-bit registers of a thread per store instruction: x1, x2 or x4 of stmatrix; 1 or 2 words of st.shared.
  int registers = 4;
  int element_bits = 16;
  /// (m, column of the pass) -> offset in elements, in the tile that TMA stores.
  layout::ComposedLayout smem;
  SwizzleMode mode = SwizzleMode::none;
  /// (value, store, pass) -> index of the accumulator in the thread. Two 16-bit values share a register, the first in
  /// the low half.
  layout::Layout accumulator;
  /// (thread, store) -> offset in elements of the address that the thread provides, before the swizzle of smem.
  layout::Layout address;

  bool operator==(const EpiloguePartition&) const = default;
};

/// 16-bit elements are stored by stmatrix (with .trans for column-major D) in the widest swizzle that the tile allows.
/// 32-bit elements are stored by st.shared: row-major as pairs along n with the 32-byte swizzle (a half warp writes 32
/// bytes of each of 4 rows, which the wider swizzles would map to the same banks), column-major as single words in the
/// widest swizzle. No store has a bank conflict.
///
/// Refused: elements of other widths; rows that are not a multiple of 64 per warpgroup; an n that is not a multiple of
/// 8 up to 256; columns that do not divide n or are not a multiple of 8.
Result<EpiloguePartition> epilogue_partition(const EpilogueRequest& request);

/// The swizzled byte offset in the tile of a thread's address for a store.
std::int64_t store_address(const EpiloguePartition& partition, std::int64_t thread, std::int64_t store);
/// Bank conflicts of one pass, summed over all warps and stores (see smem_layout.hpp).
int bank_conflicts(const EpiloguePartition& partition);

}  // namespace tilewright::arch
