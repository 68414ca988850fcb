// Reductions of an epilogue's nodes: the operators that combine two values, and the combination of the partial results
// of several blocks of D.
#pragma once

#include "tilewright/epilogue/epilogue_tensor.cuh"
#include "tilewright/numeric/functions.cuh"
#include "tilewright/ptx/global.cuh"
#include "tilewright/ptx/shared.cuh"
#include "tilewright/ptx/shuffle.cuh"
#include "tilewright/scheduler/tile_origin.cuh"
#include "tilewright/types.cuh"

namespace tilewright {

/// A reduction operator ("fold") has combine(x, y) and identity(), its neutral element.
template <class Compute>
struct Sum {
  static __device__ __forceinline__ Compute identity() { return Compute(0); }
  static __device__ __forceinline__ Compute combine(Compute x, Compute y) { return numeric::add(x, y); }
};
template <class Compute>
struct Maximum {
  static __device__ __forceinline__ Compute identity() { return numeric::lowest<Compute>(); }
  static __device__ __forceinline__ Compute combine(Compute x, Compute y) { return numeric::max(x, y); }
};
template <class Compute>
struct Minimum {
  static __device__ __forceinline__ Compute identity() { return numeric::highest<Compute>(); }
  static __device__ __forceinline__ Compute combine(Compute x, Compute y) { return numeric::min(x, y); }
};

/// The results of a reduction: one for each column (a row vector), one for each row, or a single one.
enum class Results { columns, rows, single };

/// One reduction of an epilogue. It has number kNumberOfAll among all reductions and number kNumberOfKind among those
/// with the same Results. FoldOfTwo is Sum, Maximum or Minimum.
template <int kNumberOfAll, int kNumberOfKind, Results kResultsLeft, class FoldOfTwo>
struct Reduction {
  static constexpr int kNumber = kNumberOfAll, kOfKind = kNumberOfKind;
  static constexpr Results kResults = kResultsLeft;
  using Fold = FoldOfTwo;
};

/// Combines the values of kLanes adjacent lanes, a power of two; each of them gets the result. All lanes of the warp
/// must call it.
template <class Fold, int kLanes = 32, class Compute>
__device__ __forceinline__ Compute fold_lanes(Compute value) {
#pragma unroll
  for (int distance = kLanes / 2; distance > 0; distance /= 2)
    value = Fold::combine(value, ptx::shuffle_xor(value, distance));
  return value;
}

/// Replaces the values outside D among a node's adjacent values of a row by `identity`.
template <class Compute, int kCount>
__device__ __forceinline__ void mask_outside(Compute (&values)[kCount], const EpiloguePlace& at, Compute identity) {
  if (at.is_inside) return;
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    if (at.row >= at.m || at.column + i >= at.n) values[i] = identity;
  }
}

/// Combines the partial results of the blocks of D. A block has kBlockM x kBlockN elements. With split-K it is computed
/// in kShares shares by different CTAs; a share is the work of kThreads threads. Each share stores its partial results
/// to the workspace. The last share to arrive in a row or column of blocks combines the partial results of all of them,
/// in an order that only their number determines, so that the result does not depend on which share is last. Epilogue:
/// Compute, Parameters, kReductions, kColumnResults, kRowResults and kSingleResults (the numbers of reductions with
/// these Results), and for_each_reduction(parameters, visitor), which calls visitor.visit<Reduction>(tensor). Tile is
/// the scheduler's.
///
/// Each group has results of its own. If groups are stacked along M, the blocks of a group are counted from
/// begin / kBlockM + group on, where `begin` is its first row: as a group has at most size / kBlockM + 1 blocks, no two
/// groups share a number, and there are at most m / kBlockM + groups of them. The same holds along N.
template <class Epilogue, int kBlockM, int kBlockN, int kShares, int kThreads, class Tile = TileOrigin>
class ReductionParts {
  using Compute = typename Epilogue::Compute;
  using Parameters = typename Epilogue::Parameters;
  static constexpr int kWarps = kThreads / 32;
  static constexpr int kInFlight = 8;  // loads that a thread has in flight
  static constexpr uint32_t kLastOfColumns = 1, kLastOfRows = 2, kLastOfAll = 4;

 public:
  /// Shared memory in bytes: 8 for the threads together and 8 for each warp.
  static constexpr int kSharedBytes = (1 + kWarps) * 8;

  /// `counters` count arrivals and must be zero between launches. Partial results begin at `parts`. `shared` is the
  /// shared address of kSharedBytes.
  __device__ __forceinline__ ReductionParts(const Parameters& parameters, char* counters, char* parts, int m, int n,
                                            int batches, uint32_t shared, int thread)
      : parameters_(parameters),
        counters_(counters),
        parts_(parts),
        m_(m),
        n_(n),
        batches_(batches),
        shared_(shared),
        thread_(thread) {}

  /// A share of the block that begins at (row, column) of D, in a tile.
  struct Block {
    int row, column;
    Tile tile;
    int share;
  };

  /// Stores this share's partial result of the row or column `row_or_column` of D, which must be inside D.
  template <class Reduction>
  __device__ __forceinline__ void leave(const Block& block, int row_or_column, Compute value) const {
    static_assert(Reduction::kResults != Results::single, "a single result has no row or column");
    const int64_t number = Reduction::kResults == Results::columns ? block_m(block) : block_n(block);
    const int64_t results = Reduction::kResults == Results::columns ? n_ : m_;
    *at<Reduction>((number * kShares + block.share) * results + row_or_column) = value;
  }
  template <class Reduction>
  __device__ __forceinline__ void leave_single(const Block& block, Compute value) const {
    *at<Reduction>(single_part(block, rows_before(block), columns_before(block)) + block.share) = value;
  }

  /// Must be called by all threads when each has stored its partial results of the block. `barrier()` must be a barrier
  /// of these threads.
  template <class Barrier>
  __device__ __forceinline__ void meet(const Block& block, const Barrier& barrier) const {
    barrier();
    if (thread_ == 0) ptx::store_shared(shared_, arrive(block));
    finish_last(block, barrier);
  }

  /// The same for `blocks` blocks of the matrix of `block`, if all reductions are full ones.
  template <class Barrier>
  __device__ __forceinline__ void meet_all(const Block& block, uint32_t blocks, const Barrier& barrier) const {
    barrier();
    if (thread_ == 0) ptx::store_shared(shared_, arrive_all(block, blocks));
    finish_last(block, barrier);
  }

 private:
  static constexpr bool kStacks = Tile::kStacksM || Tile::kStacksN;

  /// Number of blocks along M, and along N, in a matrix of D, or in the stack of all groups.
  __device__ __forceinline__ int blocks_m() const {
    return Tile::kStacksM ? m_ / kBlockM + batches_ : ceil_div(m_, kBlockM);
  }
  __device__ __forceinline__ int blocks_n() const {
    return Tile::kStacksN ? n_ / kBlockN + batches_ : ceil_div(n_, kBlockN);
  }
  /// Number of blocks along M, and along N, in the matrix or the group of a block.
  __device__ __forceinline__ int own_blocks_m(const Block& block) const {
    return ceil_div(block.tile.end_m(m_) - block.tile.begin_m(), kBlockM);
  }
  __device__ __forceinline__ int own_blocks_n(const Block& block) const {
    return ceil_div(block.tile.end_n(n_) - block.tile.begin_n(), kBlockN);
  }
  /// Number of blocks along M, and along N, before the block in its matrix or group.
  static __device__ __forceinline__ int rows_before(const Block& block) {
    return (block.row - block.tile.begin_m()) / kBlockM;
  }
  static __device__ __forceinline__ int columns_before(const Block& block) {
    return (block.column - block.tile.begin_n()) / kBlockN;
  }
  /// The number along M, and along N, of the first block of the matrix or group among those of all.
  __device__ __forceinline__ int64_t first_block_m(const Block& block) const {
    if constexpr (Tile::kStacksM) return block.tile.begin_m() / kBlockM + block.tile.batch;
    return kStacks ? 0 : static_cast<int64_t>(block.tile.batch) * blocks_m();
  }
  __device__ __forceinline__ int64_t first_block_n(const Block& block) const {
    if constexpr (Tile::kStacksN) return block.tile.begin_n() / kBlockN + block.tile.batch;
    return kStacks ? 0 : static_cast<int64_t>(block.tile.batch) * blocks_n();
  }
  __device__ __forceinline__ int64_t block_m(const Block& block) const {
    return first_block_m(block) + rows_before(block);
  }
  __device__ __forceinline__ int64_t block_n(const Block& block) const {
    return first_block_n(block) + columns_before(block);
  }
  /// The first share's partial result of a full reduction in the block that has `rows` and `columns` blocks before it
  /// in the matrix or group of `block`.
  __device__ __forceinline__ int64_t single_part(const Block& block, int rows, int columns) const {
    const int64_t along_n = (Tile::kStacksN ? first_block_n(block) : 0) + columns;
    return ((first_block_m(block) + rows) * blocks_n() + along_n) * kShares;
  }
  /// Number of partial results of all results of one matrix, or of the stack.
  template <class Reduction>
  __device__ __forceinline__ int64_t parts_of_matrix() const {
    if constexpr (Reduction::kResults == Results::columns) return static_cast<int64_t>(blocks_m()) * kShares * n_;
    if constexpr (Reduction::kResults == Results::rows) return static_cast<int64_t>(blocks_n()) * kShares * m_;
    return static_cast<int64_t>(blocks_m()) * blocks_n() * kShares;
  }

  /// Counts the partial results of the reductions before number kNumber.
  template <int kNumber>
  struct Before {
    const ReductionParts& all;
    int64_t& parts;

    template <class Reduction, class Tensor>
    __device__ __forceinline__ void visit(const Tensor& /*tensor*/) const {
      if constexpr (Reduction::kNumber < kNumber)
        parts += (kStacks ? 1 : all.batches_) * all.template parts_of_matrix<Reduction>();
    }
  };
  template <class Reduction>
  __device__ __forceinline__ Compute* at(int64_t part) const {
    int64_t first = 0;
    Epilogue::for_each_reduction(parameters_, Before<Reduction::kNumber>{*this, first});
    return reinterpret_cast<Compute*>(parts_) + first + part;
  }

  /// Must be called by one thread. Returns the set of reductions for which this was the last arrival.
  __device__ __forceinline__ uint32_t arrive(const Block& block) const {
    uint32_t last = 0;
    const auto count = [&](uint32_t which, int counter, int64_t parts) {
      uint32_t* const at = reinterpret_cast<uint32_t*>(counters_) + counter;
      const auto end = static_cast<uint32_t>(parts - 1);
      if (ptx::increment_to(at, end) == end) last |= which;
    };
    const int own_m = own_blocks_m(block), own_n = own_blocks_n(block);
    const int rows_from = Epilogue::kColumnResults > 0 ? (Tile::kStacksN ? 1 : batches_) * blocks_n() : 0;
    const int all_from = rows_from + (Epilogue::kRowResults > 0 ? (Tile::kStacksM ? 1 : batches_) * blocks_m() : 0);
    if constexpr (Epilogue::kColumnResults > 0) {
      const int of_group = Tile::kStacksN ? static_cast<int>(first_block_n(block)) : block.tile.batch * blocks_n();
      count(kLastOfColumns, of_group + columns_before(block), static_cast<int64_t>(own_m) * kShares);
    }
    if constexpr (Epilogue::kRowResults > 0) {
      const int of_group = Tile::kStacksM ? static_cast<int>(first_block_m(block)) : block.tile.batch * blocks_m();
      count(kLastOfRows, rows_from + of_group + rows_before(block), static_cast<int64_t>(own_n) * kShares);
    }
    if constexpr (Epilogue::kSingleResults > 0)
      count(kLastOfAll, all_from + block.tile.batch, static_cast<int64_t>(own_m) * own_n * kShares);
    return last;
  }

  /// The same for `blocks` blocks of the matrix of `block`, whose reductions are all full ones.
  __device__ __forceinline__ uint32_t arrive_all(const Block& block, uint32_t blocks) const {
    static_assert(Epilogue::kSingleResults == Epilogue::kReductions, "rows and columns have counters of their own");
    uint32_t* const counter = reinterpret_cast<uint32_t*>(counters_) + block.tile.batch;
    const uint32_t all = static_cast<uint32_t>(own_blocks_m(block)) * own_blocks_n(block) * kShares;
    if (ptx::add_to(counter, blocks) + blocks != all) return 0;
    *counter = 0;
    return kLastOfAll;
  }

  /// Must be called by all threads when one has stored what arrive() returned.
  template <class Barrier>
  __device__ __forceinline__ void finish_last(const Block& block, const Barrier& barrier) const {
    barrier();
    const uint32_t last = ptx::load_shared_b32(shared_);
    if (last != 0) Epilogue::for_each_reduction(parameters_, Finish<Barrier>{*this, block, last, barrier});
  }

  template <class Barrier>
  struct Finish {
    const ReductionParts& all;
    const Block& block;
    uint32_t last;
    const Barrier& barrier;

    template <class Reduction, class Tensor>
    __device__ __forceinline__ void visit(const Tensor& tensor) const {
      if constexpr (Reduction::kResults == Results::columns) {
        if (last & kLastOfColumns) all.template finish_columns<Reduction>(tensor, block);
      } else if constexpr (Reduction::kResults == Results::rows) {
        if (last & kLastOfRows) all.template finish_rows<Reduction>(tensor, block);
      } else {
        if (last & kLastOfAll) all.template finish_single<Reduction>(tensor, block, barrier);
      }
    }
  };

  template <class Reduction, class Tensor>
  __device__ __forceinline__ void finish_columns(const Tensor& tensor, const Block& block) const {
    const int64_t parts = static_cast<int64_t>(own_blocks_m(block)) * kShares;
    finish_each<Reduction, kBlockN>(
        block.column, block.tile.end_n(n_), parts, n_, at<Reduction>(first_block_m(block) * kShares * n_),
        [&](int column, Compute result) { tensor.store_one(result, 0, column, block.tile.batch); });
  }
  template <class Reduction, class Tensor>
  __device__ __forceinline__ void finish_rows(const Tensor& tensor, const Block& block) const {
    const int64_t parts = static_cast<int64_t>(own_blocks_n(block)) * kShares;
    finish_each<Reduction, kBlockM>(
        block.row, block.tile.end_m(m_), parts, m_, at<Reduction>(first_block_n(block) * kShares * m_),
        [&](int row, Compute result) { tensor.store_one(result, row, 0, block.tile.batch); });
  }
  /// Calls store(i, result) for the results of a block: kResults from number `begin` on, but none from `end` on.
  /// parts_of_all[part * step + i] is partial result number `part` of result number i. If there are at least twice as
  /// many threads as results, adjacent lanes share the partial results of one. With one thread for each, the
  /// reduction took 0.047 us per partial result (f16 4x608x30371, one sum per row, H100, 2026-11-27).
  template <class Reduction, int kResults, class Store>
  __device__ __forceinline__ void finish_each(int begin, int end, int64_t parts, int step, const Compute* parts_of_all,
                                              const Store& store) const {
    constexpr int kLanes = lanes_of_result(kResults);
    const int lane = thread_ % kLanes;
#pragma unroll 1
    for (int i = begin; i < begin + kResults; i += kThreads / kLanes) {
      const int number = i + thread_ / kLanes;
      const bool is_there = number < min(end, begin + kResults);
      const Compute result = fold_lanes<typename Reduction::Fold, kLanes>(fold<Reduction>(
          lane, is_there ? parts : 0, kLanes, [&](int64_t part) { return parts_of_all + part * step + number; }));
      if (is_there && lane == 0) store(number, result);
    }
  }
  /// The number of adjacent lanes, a power of two, that combine the partial results of one of `results` results.
  static __device__ constexpr int lanes_of_result(int results) {
    int lanes = 1;
    while (lanes < 32 && 2 * lanes * results <= kThreads) lanes *= 2;
    return lanes;
  }
  /// Each thread combines some of the partial results, then the lanes of each warp combine theirs, then the warps.
  template <class Reduction, class Tensor, class Barrier>
  __device__ __forceinline__ void finish_single(const Tensor& tensor, const Block& block,
                                                const Barrier& barrier) const {
    using Fold = typename Reduction::Fold;
    const int own_n = own_blocks_n(block);
    const int64_t parts = static_cast<int64_t>(own_blocks_m(block)) * own_n * kShares;
    const Compute* const first = at<Reduction>(single_part(block, 0, 0));
    // A group may have fewer blocks along N than D, so that its partial results are not adjacent.
    const int64_t line = static_cast<int64_t>(own_n) * kShares, step = static_cast<int64_t>(blocks_n()) * kShares;
    const auto place = [&](int64_t part) {
      if constexpr (Tile::kHasGroup || Tile::kIsIndependent) {
        return first + part / line * step + part % line;
      } else {
        return first + part;
      }
    };
    const Compute own = fold_lanes<Fold>(fold<Reduction>(thread_, parts, kThreads, place));
    const uint32_t words = shared_ + 8;
    if (thread_ % 32 == 0) ptx::store_shared(words + thread_ / 32 * 8, own);
    barrier();
    if (thread_ == 0) {
      Compute all = own;
#pragma unroll
      for (int warp = 1; warp < kWarps; ++warp) all = Fold::combine(all, ptx::load_shared<Compute>(words + warp * 8));
      tensor.store_one(all, 0, 0, block.tile.batch);
    }
    barrier();
  }

  /// Combines the partial results number `part`, `part` + `step` and so on below `parts`, which lie at place(number).
  template <class Reduction, class Place>
  static __device__ __forceinline__ Compute fold(int64_t part, int64_t parts, int step, const Place& place) {
    using Fold = typename Reduction::Fold;
    Compute result = Fold::identity();
#pragma unroll 1
    for (; part < parts; part += kInFlight * step) {
      Compute values[kInFlight];
#pragma unroll
      for (int i = 0; i < kInFlight; ++i) {
        values[i] = Fold::identity();
        if (part + i * step < parts) values[i] = ptx::load_global_word(place(part + i * step));
      }
#pragma unroll
      for (int i = 0; i < kInFlight; ++i) result = Fold::combine(result, values[i]);
    }
    return result;
  }

  const Parameters& parameters_;
  char* counters_;
  char* parts_;
  int m_, n_, batches_;
  uint32_t shared_;
  int thread_;
};

}  // namespace tilewright
