// The parameters of the filter gradients of depthwise convolutions, and the sums of a thread: how the threads of a CTA
// and the CTAs of a tile add them, and how they are stored.
#pragma once

#include "tilewright/epilogue/epilogue_tensor.cuh"
#include "tilewright/numeric/convert.cuh"
#include "tilewright/operand/im2col_matrix.cuh"
#include "tilewright/ptx/global.cuh"
#include "tilewright/types.cuh"

namespace tilewright {

/// plan/depthwise_wgrad writes these fields; the emitted text asserts their offsets. Matrix is the Im2colMatrix of one
/// channel of the images. The channels are adjacent in memory, in the gradient of the output and in the images. A unit
/// is a group of Plan::kTaps taps of one row of the filter; a tile is channels_of_tile channels and a block of units.
template <class EpilogueParameters, class Matrix>
struct DepthwiseWgradParameters {
  Matrix matrix;
  const void* gradient;  // of the output
  const void* images;
  const void* c;
  void* d;
  char* workspace;                // null if there is one part
  int64_t ldc, ldd;               // from the filter of a channel to the next, elements
  int gradient_pitch, pitch;      // from a pixel to the next, in the gradient and in a row of the images, bytes
  int channels, channel_tiles;    // channel_tiles: groups of channels_of_tile channels
  int vectors, channels_of_tile;  // threads along the channels, and their channels
  int units, units_of_tile;       // of the filter, and of a tile at most
  int unit_tiles, tap_groups;     // blocks of units, and units of one row of the filter
  int lanes;                      // threads with the same taps and channels, which take different segments
  int segments, segments_of_row;  // of positions of one row of the output: in all images, and in a row
  int positions_of_segment;       // at most
  int segments_of_part, parts;    // of a CTA; and the number of CTAs of a tile
  Divisor by_segments_of_row;
  EpilogueParameters epilogue;
};

/// A thread sums the products of some channels and taps of its CTA, for some of the CTA's segments.
struct DepthwiseShare {
  int channel;     // the first of kVector
  int unit;        // of the taps
  int begin, end;  // the CTA's segments, of which the thread takes every lanes-th
  int lane;        // of the thread
  bool is_any;     // else the thread has nothing to sum
};

/// Plan: ElementC, ElementD, Accumulator, Matrix, kVector (channels of a thread), kTaps (of a thread), kStep, kThreads,
/// kPartsFrom and kCounters (offsets in the workspace). Where kStep is not 0, the taps of a thread are adjacent pixels.
template <class Plan, class Epilogue>
class DepthwiseSums {
  using Accumulator = typename Plan::Accumulator;
  using C = typename Plan::ElementC;
  using D = typename Plan::ElementD;
  using Compute = typename Epilogue::Compute;
  using Matrix = typename Plan::Matrix;
  using Parameters = DepthwiseWgradParameters<typename Epilogue::Parameters, Matrix>;
  static constexpr int kVector = Plan::kVector;
  static constexpr int kTaps = Plan::kTaps;
  static constexpr int kItem = minimum(kVector, 16 / static_cast<int>(sizeof(Accumulator)));
  static constexpr int kItems = kTaps * kVector / kItem;  // of the sums of a thread
  static constexpr int kHalf = Plan::kThreads / 2;
  using Item = Vector<Accumulator, kItem>;

 public:
  using Sums = Accumulator[kTaps][kVector];

  __device__ __forceinline__ explicit DepthwiseSums(const Parameters& parameters)
      : parameters_(parameters), thread_(static_cast<int>(threadIdx.x)) {
    const int tiles = parameters.channel_tiles * parameters.unit_tiles;
    part_ = static_cast<int>(blockIdx.x) / tiles;
    tile_ = static_cast<int>(blockIdx.x) - part_ * tiles;
    const int unit_tile = tile_ / parameters.channel_tiles;
    first_channel_ = (tile_ - unit_tile * parameters.channel_tiles) * parameters.channels_of_tile;
    first_unit_ = unit_tile * parameters.units_of_tile;
    const int slot = thread_ / parameters.vectors;
    vector_ = thread_ - slot * parameters.vectors;
    lane_ = slot / parameters.units_of_tile;
    unit_ = slot - lane_ * parameters.units_of_tile;
  }

  __device__ __forceinline__ DepthwiseShare share() const {
    const int channel = first_channel_ + vector_ * kVector, unit = first_unit_ + unit_;
    const int begin = part_ * parameters_.segments_of_part;
    return {channel, unit,
            begin,   minimum(parameters_.segments, begin + parameters_.segments_of_part),
            lane_,   has_lane() && channel < parameters_.channels && unit < parameters_.units};
  }

  /// Adds the sums of all threads of all CTAs of the tile, and stores them as elements of D.
  __device__ __forceinline__ void add_and_store(Sums& sums) const {
    extern __shared__ __align__(16) unsigned char shared_memory[];
    auto* const shared = reinterpret_cast<Item*>(shared_memory);
    add_lanes(sums, shared);
    if (parameters_.parts > 1) {
      store_part(sums);
      if (!is_last(reinterpret_cast<uint32_t*>(shared_memory))) return;
      load_parts(sums);
      add_lanes(sums, shared);
    }
    store(sums, shared);
  }

 private:
  __device__ __forceinline__ const Matrix& matrix() const { return parameters_.matrix; }
  __device__ __forceinline__ bool has_lane() const { return lane_ < parameters_.lanes; }
  /// Threads of one lane: the number of vectors of sums of the tile.
  __device__ __forceinline__ int lane_threads() const { return parameters_.units_of_tile * parameters_.vectors; }

  // Item i of a thread's sums.
  static __device__ __forceinline__ Item item(const Sums& sums, int i) {
    Item item;
#pragma unroll
    for (int j = 0; j < kItem; ++j) item.element[j] = sums[i * kItem / kVector][i * kItem % kVector + j];
    return item;
  }
  static __device__ __forceinline__ void add(Sums& sums, int i, const Item& item) {
#pragma unroll
    for (int j = 0; j < kItem; ++j) sums[i * kItem / kVector][i * kItem % kVector + j] += item.element[j];
  }

  /// Adds the sums of all lanes to those of lane 0: in each round, those of the upper half to those of the lower.
  __device__ __forceinline__ void add_lanes(Sums& sums, Item* shared) const {
#pragma unroll 1
    for (int lanes = parameters_.lanes; lanes > 1;) {
      const int half = (lanes + 1) / 2, partner = thread_ - half * lane_threads();
      __syncthreads();
      if (lane_ >= half && lane_ < lanes) {
#pragma unroll
        for (int i = 0; i < kItems; ++i) shared[i * kHalf + partner] = item(sums, i);
      }
      __syncthreads();
      if (lane_ + half < lanes) {
#pragma unroll
        for (int i = 0; i < kItems; ++i) add(sums, i, shared[i * kHalf + thread_]);
      }
      lanes = half;
    }
  }

  /// The first item of a part of this tile, for the threads of one lane.
  __device__ __forceinline__ Item* items_of_part(int part) const {
    const int tiles = parameters_.channel_tiles * parameters_.unit_tiles;
    auto* const items = reinterpret_cast<Item*>(parameters_.workspace + Plan::kPartsFrom);
    return items + (static_cast<int64_t>(tile_) * parameters_.parts + part) * kItems * lane_threads() + thread_ -
           lane_ * lane_threads();
  }

  __device__ __forceinline__ void store_part(const Sums& sums) const {
    if (lane_ != 0) return;
    Item* const items = items_of_part(part_);
#pragma unroll
    for (int i = 0; i < kItems; ++i) items[i * lane_threads()] = item(sums, i);
  }

  /// Whether all other CTAs of this tile have stored their parts. Must be called by all threads.
  __device__ __forceinline__ bool is_last(uint32_t* shared) const {
    __syncthreads();
    if (thread_ == 0) {
      const auto end = static_cast<uint32_t>(parameters_.parts - 1);
      *shared = ptx::increment_to(reinterpret_cast<uint32_t*>(parameters_.workspace + Plan::kCounters) + tile_, end);
    }
    __syncthreads();
    return *shared == static_cast<uint32_t>(parameters_.parts - 1);
  }

  /// Sums the parts of this tile: each lane takes every lanes-th.
  __device__ __forceinline__ void load_parts(Sums& sums) const {
#pragma unroll
    for (int i = 0; i < kItems; ++i) {
#pragma unroll
      for (int j = 0; j < kItem; ++j) sums[i * kItem / kVector][i * kItem % kVector + j] = Accumulator(0);
    }
    if (!has_lane()) return;
#pragma unroll 1
    for (int part = lane_; part < parameters_.parts; part += parameters_.lanes) {
      const Item* const items = items_of_part(part);
#pragma unroll
      for (int i = 0; i < kItems; ++i) {
        const Item part_of_item = items[i * lane_threads()];
        add(sums, i, part_of_item);
      }
    }
  }

  /// Stores the sums of lane 0 as elements of D. The threads share them through shared memory, because a thread's
  /// elements are far apart in D.
  __device__ __forceinline__ void store(const Sums& sums, Item* shared) const {
    __syncthreads();
    if (lane_ == 0) {
#pragma unroll
      for (int i = 0; i < kItems; ++i) shared[i * kHalf + thread_] = item(sums, i);
    }
    __syncthreads();
    const bool is_reversed = Plan::kStep != 0 && matrix().w.tap_step < 0;  // then pixels are in the opposite order
    const bool reads_source = Epilogue::kReadsSource && Epilogue::reads_source(parameters_.epilogue);
    const int taps_of_channel = parameters_.units_of_tile * kTaps, columns = matrix().h.taps * matrix().w.taps;
#pragma unroll 1
    for (int index = thread_; index < parameters_.channels_of_tile * taps_of_channel; index += Plan::kThreads) {
      const int in_tile = index / taps_of_channel, rest = index - in_tile * taps_of_channel;
      const int unit = rest / kTaps, i = rest % kTaps, r = (first_unit_ + unit) / parameters_.tap_groups;
      const int s = (first_unit_ + unit - r * parameters_.tap_groups) * kTaps + i, channel = first_channel_ + in_tile;
      if (channel >= parameters_.channels || first_unit_ + unit >= parameters_.units || s >= matrix().w.taps) continue;
      const int thread_sum = (is_reversed ? kTaps - 1 - i : i) * kVector + in_tile % kVector;
      const Item& sum = shared[thread_sum / kItem * kHalf + unit * parameters_.vectors + in_tile / kVector];
      const int column = r * matrix().w.taps + s;
      C source{};
      if (reads_source) source = static_cast<const C*>(parameters_.c)[channel * parameters_.ldc + column];
      // The channels are the batch of the GEMM, each of whose matrices has one row.
      Compute value[1] = {convert<Compute>(sum.element[thread_sum % kItem])};
      Compute source_value[1] = {convert<Compute>(source)};
      Epilogue::apply(value, source_value, parameters_.epilogue, EpiloguePlace{0, column, channel, 1, columns});
      static_cast<D*>(parameters_.d)[channel * parameters_.ldd + column] = convert<D>(value[0]);
    }
  }

  const Parameters& parameters_;
  int thread_;
  int tile_, part_;                 // a CTA's
  int first_channel_, first_unit_;  // of the tile
  int vector_, lane_, unit_;        // of this thread; lanes from parameters_.lanes on have nothing to do
};

}  // namespace tilewright
