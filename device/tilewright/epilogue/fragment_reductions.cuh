// Reductions of a warpgroup's wgmma accumulators. Rows are reduced in registers, columns by shuffles and in shared
// memory.
#pragma once

#include "tilewright/epilogue/reduction.cuh"
#include "tilewright/ptx/shared.cuh"
#include "tilewright/ptx/shuffle.cuh"
#include "tilewright/ptx/warpgroup.cuh"
#include "tilewright/types.cuh"

namespace tilewright {

/// The state of one thread of a warpgroup that reduces kAtoms * 64 rows by kColumns columns. Rows (from the plan):
/// row(thread) is the row of a thread's first accumulators, and kOtherRow the distance to the thread's second row. Tile
/// is the scheduler's.
template <class Epilogue, class Rows, int kAtoms, int kColumns, class Tile>
class FragmentReductions {
  using Compute = typename Epilogue::Compute;
  static constexpr int kThreads = 128;
  static constexpr int kWarps = kThreads / 32;
  static constexpr int kElementBytes = sizeof(Compute);
  static constexpr int kColumnBytes = Epilogue::kColumnResults * kWarps * kColumns * kElementBytes;
  static constexpr int kSingleBytes = Epilogue::kSingleResults * kWarps * kElementBytes;
  /// Whether the warpgroup counts its tiles of a matrix and arrives once for all of them. An arrival waits until the
  /// partial results are visible to other SMs, and then for the counter, which takes about 2 us (H200, 2026-11-26).
  static constexpr bool kArrivesOnce =
      Epilogue::kReductions > 0 && Epilogue::kSingleResults == Epilogue::kReductions&& is_same<Tile, TileOrigin>;

 public:
  using Parts = ReductionParts<Epilogue, kAtoms * 64, kColumns, 1, kThreads, Tile>;
  using Block = typename Parts::Block;
  /// Shared memory, in bytes: each warp's partial results of the column and full reductions.
  static constexpr int kPartsFrom = ceil_div(kColumnBytes + kSingleBytes, 16) * 16;  // offset of the memory of Parts
  static constexpr int kBytes = Epilogue::kReductions == 0 ? 0 : kPartsFrom + ceil_div(Parts::kSharedBytes, 16) * 16;

  __device__ __forceinline__ FragmentReductions(uint32_t shared, int thread) : shared_(shared), thread_(thread) {}

  /// Must be called before a tile's first element.
  template <class Parameters>
  __device__ __forceinline__ void begin(const Parameters& parameters) {
    Epilogue::for_each_reduction(parameters, Begin<false>{*this});
  }
  /// Must be called before the first element of 64 rows.
  template <class Parameters>
  __device__ __forceinline__ void begin_rows(const Parameters& parameters) {
    Epilogue::for_each_reduction(parameters, Begin<true>{*this});
  }

  /// Adds two adjacent values of a row. All threads must call it for the same column of the tile, `column`, first for
  /// their first row and then for their second one. `other_row` and `is_first_atom` must be constants once loops are
  /// unrolled.
  template <class Reduction>
  __device__ __forceinline__ void add(const Compute (&values)[2], const EpiloguePlace& at, int column, bool other_row,
                                      bool is_first_atom) {
    using Fold = typename Reduction::Fold;
    Compute pair[2] = {values[0], values[1]};
    mask_outside(pair, at, Fold::identity());
    if constexpr (Reduction::kResults == Results::rows) {
      Compute& row = rows_[Reduction::kOfKind][other_row];
      row = Fold::combine(row, Fold::combine(pair[0], pair[1]));
    } else if constexpr (Reduction::kResults == Results::single) {
      Compute& single = singles_[Reduction::kOfKind];
      single = Fold::combine(single, Fold::combine(pair[0], pair[1]));
    } else if (!other_row) {
      pairs_[Reduction::kOfKind][0] = pair[0];
      pairs_[Reduction::kOfKind][1] = pair[1];
    } else {
      const Compute low = Fold::combine(pairs_[Reduction::kOfKind][0], pair[0]);
      const Compute high = Fold::combine(pairs_[Reduction::kOfKind][1], pair[1]);
      add_columns<Reduction>(low, high, column, is_first_atom);
    }
  }

  /// Must be called after the last element of 64 rows, the first of which is row `row` of D.
  template <class Parameters>
  __device__ __forceinline__ void end_rows(const Parameters& parameters, const Parts& parts, const Block& block,
                                           int row, int m) {
    if constexpr (Epilogue::kRowResults > 0)
      Epilogue::for_each_reduction(parameters, EndRows{*this, parts, block, row, m});
  }

  /// Must be called after a tile's last element. Stores the tile's partial results to the workspace; if they are the
  /// last ones of a result, also stores the result, unless finish() does. `barrier()` must be a barrier of the
  /// warpgroup.
  template <class Parameters, class Barrier>
  __device__ __forceinline__ void end(const Parameters& parameters, const Parts& parts, const Block& block, int n,
                                      const Barrier& barrier) {
    if constexpr (Epilogue::kSingleResults > 0) Epilogue::for_each_reduction(parameters, EndSingles{*this});
    barrier();
    Epilogue::for_each_reduction(parameters, Leave{*this, parts, block, n});
    if constexpr (kArrivesOnce) {
      if (block.tile.batch != batch_) finish(parts, barrier);
      batch_ = block.tile.batch;
      ++tiles_;
    } else {
      parts.meet(block, barrier);
    }
  }

  /// Must be called after the last tile.
  template <class Barrier>
  __device__ __forceinline__ void finish(const Parts& parts, const Barrier& barrier) {
    if constexpr (kArrivesOnce) {
      if (tiles_ > 0) parts.meet_all({0, 0, {0, 0, batch_}, 0}, tiles_, barrier);
      tiles_ = 0;
    }
  }

 private:
  /// Combines the thread's values of two columns, over both its rows, with those of the lanes that hold the same
  /// columns. Half of the lanes keep the first column, the others the second.
  template <class Reduction>
  __device__ __forceinline__ void add_columns(Compute low, Compute high, int column, bool is_first_atom) const {
    using Fold = typename Reduction::Fold;
    const int lane = thread_ % 32;
    const bool keeps_high = lane >= 16;
    Compute kept = Fold::combine(keeps_high ? high : low, ptx::shuffle_xor(keeps_high ? low : high, 16));
    kept = Fold::combine(kept, ptx::shuffle_xor(kept, 8));
    kept = Fold::combine(kept, ptx::shuffle_xor(kept, 4));
    if (lane % 16 < 4) {
      const uint32_t to = column_address(Reduction::kOfKind, thread_ / 32, column + (keeps_high ? 1 : 0));
      if (!is_first_atom) kept = Fold::combine(ptx::load_shared<Compute>(to), kept);
      ptx::store_shared(to, kept);
    }
  }

  template <bool kOfRows>
  struct Begin {
    FragmentReductions& all;

    template <class Reduction, class Tensor>
    __device__ __forceinline__ void visit(const Tensor& /*tensor*/) const {
      const Compute identity = Reduction::Fold::identity();
      if constexpr (kOfRows && Reduction::kResults == Results::rows)
        all.rows_[Reduction::kOfKind][0] = all.rows_[Reduction::kOfKind][1] = identity;
      if constexpr (!kOfRows && Reduction::kResults == Results::single) all.singles_[Reduction::kOfKind] = identity;
    }
  };

  struct EndRows {
    const FragmentReductions& all;
    const Parts& parts;
    const Block& block;
    int row, m;

    template <class Reduction, class Tensor>
    __device__ __forceinline__ void visit(const Tensor& /*tensor*/) const {
      if constexpr (Reduction::kResults == Results::rows) {
        using Fold = typename Reduction::Fold;
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          Compute value = all.rows_[Reduction::kOfKind][half];
          value = Fold::combine(value, ptx::shuffle_xor(value, 1));
          value = Fold::combine(value, ptx::shuffle_xor(value, 2));
          const int at = row + Rows::row(all.thread_) + half * Rows::kOtherRow;
          if (all.thread_ % 4 == 0 && at < m) parts.template leave<Reduction>(block, at, value);
        }
      }
    }
  };

  struct EndSingles {
    const FragmentReductions& all;

    template <class Reduction, class Tensor>
    __device__ __forceinline__ void visit(const Tensor& /*tensor*/) const {
      if constexpr (Reduction::kResults == Results::single) {
        using Fold = typename Reduction::Fold;
        const Compute value = fold_lanes<Fold>(all.singles_[Reduction::kOfKind]);
        if (all.thread_ % 32 == 0) ptx::store_shared(all.single_address(Reduction::kOfKind, all.thread_ / 32), value);
      }
    }
  };

  struct Leave {
    const FragmentReductions& all;
    const Parts& parts;
    const Block& block;
    int n;

    template <class Reduction, class Tensor>
    __device__ __forceinline__ void visit(const Tensor& /*tensor*/) const {
      if constexpr (Reduction::kResults == Results::columns) {
#pragma unroll 1
        for (int column = all.thread_; column < kColumns; column += kThreads) {
          if (block.column + column >= n) break;
          parts.template leave<Reduction>(block, block.column + column, all.template of_warps<Reduction>([&](int warp) {
            return all.column_address(Reduction::kOfKind, warp, column);
          }));
        }
      } else if constexpr (Reduction::kResults == Results::single) {
        if (all.thread_ == 0) {
          parts.template leave_single<Reduction>(block, all.template of_warps<Reduction>([&](int warp) {
            return all.single_address(Reduction::kOfKind, warp);
          }));
        }
      }
    }
  };

  template <class Reduction, class Address>
  __device__ __forceinline__ Compute of_warps(const Address& address) const {
    Compute value = ptx::load_shared<Compute>(address(0));
#pragma unroll
    for (int warp = 1; warp < kWarps; ++warp)
      value = Reduction::Fold::combine(value, ptx::load_shared<Compute>(address(warp)));
    return value;
  }

  __device__ __forceinline__ uint32_t column_address(int number, int warp, int column) const {
    return shared_ + ((number * kWarps + warp) * kColumns + column) * kElementBytes;
  }
  __device__ __forceinline__ uint32_t single_address(int number, int warp) const {
    return shared_ + kColumnBytes + (number * kWarps + warp) * kElementBytes;
  }

  uint32_t shared_;
  int thread_;
  Compute rows_[maximum(Epilogue::kRowResults, 1)][2];  // results of the current 64 rows
  Compute singles_[maximum(Epilogue::kSingleResults, 1)];
  Compute pairs_[maximum(Epilogue::kColumnResults, 1)][2];  // values of the first row until the second row is added
  uint32_t tiles_ = 0;                                      // of matrix batch_ for which the warpgroup has not arrived
  int batch_ = 0;
};

}  // namespace tilewright
