// cp.async.bulk of Hopper (sm_90): copies that one thread starts and the TMA unit carries out.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tilewright/arch/copy_atom.hpp"
#include "tilewright/base/dtype.hpp"

namespace tilewright::arch {

/// How global memory is addressed: by a pointer, or by the coordinates of a tensor map.
enum class BulkAddress : std::uint8_t { linear, tile, im2col };

enum class BulkDirection : std::uint8_t {
  global_to_shared,
  shared_to_global,
  shared_to_cluster,  // to the shared memory of another CTA of the cluster
  global_to_l2,
};

enum class Reduction : std::uint8_t { add, min, max, inc, dec, bit_and, bit_or, bit_xor };

/// One family of instructions. PTX operands, in order, what a row does not have left out:
/// - global_to_shared: [smem], [map, {coordinates}] or [pointer], bytes (linear), [mbarrier], {offsets} (im2col),
///   the 16-bit mask of CTAs (multicast);
/// - shared_to_global: [map, {coordinates}] or [pointer], [smem], bytes (linear);
/// - shared_to_cluster: [smem there], [smem], bytes, [mbarrier there];
/// - global_to_l2: [map, {coordinates}], {offsets} (im2col), or [pointer], bytes.
/// Coordinates are `rank` 32-bit integers, contiguous mode first; offsets are rank - 2 of 16 bits.
/// Into shared memory completes on the mbarrier, as bytes of a transaction; into global memory as a bulk group.
struct BulkCopyAtom {
  std::string name;  // "tma_load_multicast", "tma_reduce_add", "bulk_store"
  BulkAddress address{};
  BulkDirection direction{};
  bool is_multicast = false;
  std::optional<Reduction> reduction;
  std::vector<DType> types;  // that a linear reduction has; a tensor map says its own
  int min_rank = 0;          // of the tensor map; 0: none
  int max_rank = 0;
  Target min_target{90};

  bool operator==(const BulkCopyAtom&) const = default;
};

/// TMA of tensor maps: load, load_multicast, store, reduce_{add,min,max,inc,dec,and,or,xor}, prefetch, and the im2col
/// forms of load, load_multicast, prefetch and store. Bulk copies of pointers: load, load_multicast, store,
/// copy_to_cluster, prefetch, and reduce_*.
const std::vector<BulkCopyAtom>& bulk_copy_atoms();
/// The row of that name, or null.
const BulkCopyAtom* find_bulk_copy_atom(std::string_view name);

/// The mnemonic with all its suffixes, for a tensor map of `rank` modes; 0 for rows without one. `type` is the element
/// of a linear reduction, f16 and bf16 add included. Refused: a rank outside the row's, a type that it has not.
Result<std::string> ptx(const BulkCopyAtom& atom, int rank, std::optional<DType> type = std::nullopt);

/// The copy of `bytes` by one instruction, named "tma_load_2d": one thread moves all bits, (1,8*bytes):(0,1).
/// Refused: what ptx refuses; bytes that are not a positive multiple of 16.
Result<CopyAtom> instruction(const BulkCopyAtom& atom, int rank, int bytes, std::optional<DType> type = std::nullopt);

}  // namespace tilewright::arch
