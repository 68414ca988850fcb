// Fills a stage with plain loads. Loads are issued ahead of the stores, across the end of a stage too, so that latency
// overlaps.
#pragma once

#include "tilewright/copy/plain_load_operand.cuh"
#include "tilewright/types.cuh"

namespace tilewright {

/// The origin of a stage's operands: the row of A, the column of B, the index along K, the matrix of the batch.
struct StageOrigin {
  int m, n, k, batch;
};

/// OperandA and OperandB have the members that PlainLoadOperand uses; TMA may load one of them. Passes are loaded and
/// stored in batches. A thread loads as many batches ahead as it can with at most kRegisters 32-bit words in flight.
template <class OperandA, class OperandB, int kRegisters>
class PlainLoadStage {
  using A = PlainLoadOperand<OperandA>;
  using B = PlainLoadOperand<OperandB>;
  static constexpr int kWords = maximum(A::kWords, B::kWords);

  static constexpr int kPasses = A::kPasses + B::kPasses;

  /// The number of batches of `batch` passes that a thread keeps in flight. It divides the number of batches in a
  /// stage, so that a batch uses the same registers in every stage. 0 if the operands' passes do not divide into such
  /// batches.
  static constexpr __device__ int batches_ahead(int batch) {
    if (A::kPasses % batch != 0 || B::kPasses % batch != 0) return 0;
    int ahead = kRegisters / (batch * kWords);
    while (ahead > 0 && kPasses / batch % ahead != 0) --ahead;
    return ahead;
  }
  /// The batch size, up to 16 passes, that keeps the most passes in flight; the largest one of several.
  static constexpr __device__ int batch_passes() {
    int best = 1;
    for (int batch = 2; batch <= 16; batch *= 2) {
      if (batch * batches_ahead(batch) >= best * batches_ahead(best)) best = batch;
    }
    return best;
  }
  static constexpr int kBatch = batch_passes();
  static constexpr int kBatches = kPasses / kBatch;
  static constexpr int kBatchesA = A::kPasses / kBatch;
  static constexpr int kAhead = batches_ahead(kBatch);

 public:
  __device__ __forceinline__ PlainLoadStage(const typename OperandA::Source& a, const typename OperandB::Source& b,
                                            int m, int n, int k)
      : a_(a, m, k), b_(b, n, k) {}

  /// Issues the first loads of the first stage.
  __device__ __forceinline__ void begin(const StageOrigin& first) {
    tiles_ = locate(first);
#pragma unroll
    for (int i = 0; i < kAhead; ++i) load(i, tiles_);
  }

  /// Stores the stage at `here`, whose first loads were issued before, to the shared address `to`. With `has_next` it
  /// issues the first loads of the stage at `next`.
  __device__ __forceinline__ void store(uint32_t to, const StageOrigin& here, bool has_next, const StageOrigin& next) {
    const Tiles tiles = tiles_;
    if (has_next) tiles_ = locate(next);
#pragma unroll
    for (int i = 0; i < kBatches; ++i) {
      store(i, tiles, to);
      if (i + kAhead < kBatches) {
        load(i + kAhead, tiles);
      } else if (has_next) {
        load(i + kAhead - kBatches, tiles_);
      }
    }
    a_.finish(to, tiles.a, here.m, here.k);
    b_.finish(to + OperandA::kTileBytes, tiles.b, here.n, here.k);
  }

 private:
  struct Tiles {
    typename A::Tile a;
    typename B::Tile b;
  };

  __device__ __forceinline__ Tiles locate(const StageOrigin& at) const {
    return {a_.locate(at.m, at.k, at.batch), b_.locate(at.n, at.k, at.batch)};
  }

  __device__ __forceinline__ void load(int batch, const Tiles& tiles) {
    if (batch < kBatchesA) {
      a_.load(words_[batch % kAhead], tiles.a, batch * kBatch);
    } else {
      b_.load(words_[batch % kAhead], tiles.b, (batch - kBatchesA) * kBatch);
    }
  }

  __device__ __forceinline__ void store(int batch, const Tiles& tiles, uint32_t to) const {
#pragma unroll
    for (int i = 0; i < kBatch; ++i) {
      const uint32_t(&words)[kWords] = words_[batch % kAhead][i];
      if (batch < kBatchesA) {
        a_.store(words, to, tiles.a.shift, batch * kBatch + i);
      } else {
        b_.store(words, to + OperandA::kTileBytes, tiles.b.shift, (batch - kBatchesA) * kBatch + i);
      }
    }
  }

  A a_;
  B b_;
  Tiles tiles_;  // the tiles of the stage whose first loads are in flight
  uint32_t words_[kAhead][kBatch][kWords] = {};
};

}  // namespace tilewright
