// The packed format of narrow weights, the A operand of weight_gemm(): the layout that it has, and packing on the host.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tilewright/base/dtype.hpp"
#include "tilewright/base/support.hpp"
#include "tilewright/layout/layout.hpp"

namespace tilewright::program {

/// How weights of one type are packed. A chunk has 64 rows and `chunk_k` columns, and 16 bytes for each of the 128
/// threads of a warpgroup, thread by thread: the elements that the thread holds of `steps` fragments of A of
/// wgmma.m64nNk16. So one ld.shared.v4 loads the fragments of `steps` instructions, without bank conflicts.
struct WeightPacking {
  static constexpr int kRows = 64;
  static constexpr int kBytes = 2048;  // of a chunk

  DType type = DType::s4;
  int steps = 4;     // instructions of 16 k: 4 for s4, 2 for s8 and e4m3
  int chunk_k = 64;  // 16 * steps
  /// (m, k) -> element of the chunk: the right inverse of the layout that maps (element of the thread, thread) to the
  /// place in the tile, which is the thread-value layout of A with the thread's elements in the order of `positions`.
  layout::Layout chunk;
  /// Position of an element in the bytes of one fragment -> its number among the 8 values of the fragment. A pair that
  /// is converted to one register is at the same position of both halves of a 32-bit word, so that one mask selects it.
  layout::Layout positions;
};

/// WeightPacking::steps, without the cost of the layouts. @throws InvalidArgument unless the type is s4, s8 or e4m3
int steps_of_chunk(DType type);
/// @throws InvalidArgument unless the type is s4, s8 or e4m3
WeightPacking weight_packing(DType type);

/// The layout of a packed matrix of `m` x `k` weights: (m, k) -> element, with both extents rounded up to whole chunks.
/// The chunks of 64 rows follow each other along k. Two s4 share a byte; the one with the even number has the low half.
/// @throws InvalidArgument unless m and k are at least 1
layout::Layout packed_layout(DType type, std::int64_t m, std::int64_t k);
/// The size of a packed matrix.
std::int64_t packed_bytes(DType type, std::int64_t m, std::int64_t k);

/// Packs `m` rows of `k` weights, row by row: integers from -8 to 7 for s4, or from -128 to 127 for s8, or the bits of
/// e4m3. Elements past the extents are zeros. Refused, with row and column: an s4 that is out of range; a NaN, which
/// the conversion to bf16 does not keep.
Result<std::vector<std::byte>> pack_weights(DType type, std::int64_t m, std::int64_t k,
                                            std::span<const std::int8_t> weights);
/// The inverse of pack_weights(). @throws InvalidArgument for another number of bytes than packed_bytes()
std::vector<std::int8_t> unpack_weights(DType type, std::int64_t m, std::int64_t k, std::span<const std::byte> packed);

}  // namespace tilewright::program
