// cp.async.bulk and cp.async.bulk.tensor (sm_90): copies that one thread issues and the TMA unit executes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tilewright/arch/copy_atom.hpp"
#include "tilewright/base/dtype.hpp"

namespace tilewright::arch {

/// How global memory is addressed: by a pointer (linear), or by coordinates of a tensor map (tile, im2col).
enum class BulkAddress : std::uint8_t { linear, tile, im2col };

enum class BulkDirection : std::uint8_t {
  global_to_shared,
  shared_to_global,
  shared_to_cluster,  // to the shared memory of another CTA of the cluster
  global_to_l2,
};

enum class Reduction : std::uint8_t { add, min, max, inc, dec, bit_and, bit_or, bit_xor };

/// A family of instructions. PTX operands in order:
/// - global_to_shared: [smem], [map, {coordinates}] or [pointer], bytes (linear), [mbarrier], {offsets} (im2col),
///   the 16-bit mask of CTAs (multicast);
/// - shared_to_global: [map, {coordinates}] or [pointer], [smem], bytes (linear);
/// - shared_to_cluster: [smem there], [smem], bytes, [mbarrier there];
/// - global_to_l2: [map, {coordinates}], {offsets} (im2col), or [pointer], bytes.
/// Coordinates are `rank` 32-bit integers, contiguous mode first; offsets are rank - 2 of 16 bits.
/// Copies into shared memory complete on the mbarrier (complete_tx::bytes), copies into global memory by a bulk group.
struct BulkCopyAtom {
  std::string name;  // "tma_load_multicast", "tma_reduce_add", "bulk_store"
  BulkAddress address{};
  BulkDirection direction{};
  bool is_multicast = false;
  std::optional<Reduction> reduction;
  std::vector<DType> types;  // element types of a linear reduction; a tensor map has its own element type
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

/// The mnemonic with all qualifiers, for a tensor map of `rank` modes (0 without a tensor map). `type` is the element
/// type of a linear reduction. Refused: a rank or a type that the row does not have.
Result<std::string> ptx(const BulkCopyAtom& atom, int rank, std::optional<DType> type = std::nullopt);

/// The atom of one instruction that copies `bytes`, named "tma_load_2d": one thread copies all bits, (1,8*bytes):(0,1).
/// Refused: what ptx() refuses; bytes that are not a positive multiple of 16.
Result<CopyAtom> instruction(const BulkCopyAtom& atom, int rank, int bytes, std::optional<DType> type = std::nullopt);

}  // namespace tilewright::arch
