// Gradients of the filters of depthwise convolutions on CUDA cores: each channel has a filter of its own, and its
// gradient sums over all output pixels. A thread keeps the sums of some taps of one row of the filter, for a vector of
// channels, and walks along rows of the output; several threads of a CTA have the same taps and take different rows.
// Each CTA sums a range of rows. The last CTA of a tile to arrive adds the partial sums of all of them in a fixed
// order.
#pragma once

#include "tilewright/conv/channel_vector.cuh"
#include "tilewright/epilogue/epilogue_tensor.cuh"
#include "tilewright/numeric/convert.cuh"
#include "tilewright/operand/im2col_matrix.cuh"
#include "tilewright/ptx/global.cuh"
#include "tilewright/types.cuh"

namespace tilewright {

/// plan/depthwise_wgrad writes these fields; the emitted text asserts their offsets. Matrix is the Im2colMatrix of one
/// channel of the images. The channels are adjacent in memory, in the gradient of the output and in the images. A unit
/// is a group of Plan::kTaps taps of one row of the filter; a tile is Plan::kChannels channels and a block of units.
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
  int channels, channel_tiles;    // channel_tiles: groups of kChannels channels
  int units, units_of_tile;       // of all rows of the filter, and of a tile at most
  int unit_tiles, tap_groups;     // blocks of units, and units of one row of the filter
  int lanes;                      // threads with the same taps and channels, which take different rows
  int rows, rows_of_part, parts;  // rows of the output, of all images; those of a CTA; and the number of CTAs of a tile
  EpilogueParameters epilogue;
};

/// Plan: Gradient, Image, ElementC, ElementD, Accumulator, Matrix, kVector (channels of a thread), kTaps (of a thread),
/// kStep, kChannels (of a CTA), kThreads, kPartsFrom and kCounters (offsets in the workspace). If kStep is not 0, the
/// taps are adjacent pixels and kStep is the distance of the windows of two positions.
template <class Plan, class Epilogue>
class DepthwiseWgrad {
  using Gradient = typename Plan::Gradient;
  using Image = typename Plan::Image;
  using Accumulator = typename Plan::Accumulator;
  using C = typename Plan::ElementC;
  using D = typename Plan::ElementD;
  using Compute = typename Epilogue::Compute;
  using Matrix = typename Plan::Matrix;
  using Parameters = DepthwiseWgradParameters<typename Epilogue::Parameters, Matrix>;
  static constexpr int kVector = Plan::kVector;
  static constexpr int kTaps = Plan::kTaps;
  static constexpr int kStep = Plan::kStep;
  static constexpr bool kHasWindow = kStep != 0;
  static constexpr int kVectors = Plan::kChannels / kVector;   // threads along the channels
  static constexpr int kOld = kHasWindow ? kTaps - kStep : 0;  // pixels of a window that the one before it has, too
  static constexpr int kNew = kTaps - kOld;                    // pixels that a thread loads for each position
  /// A window is a ring of kTaps pixels, so that after as many positions each pixel is at its place again.
  static constexpr int kRound = kHasWindow ? kTaps : 2;
  /// Positions that are loaded ahead: fewer where each needs two pixels, for which a thread has no registers.
  static constexpr int kAhead = kNew == 1 || !kHasWindow ? kRound : minimum(kRound, 4);
  static constexpr int kItem = minimum(kVector, 16 / static_cast<int>(sizeof(Accumulator)));
  static constexpr int kItems = kTaps * kVector / kItem;  // of the sums of a thread
  static constexpr int kHalf = Plan::kThreads / 2;
  static_assert(Plan::kChannels % kVector == 0 && Plan::kThreads % kVectors == 0);
  static_assert(kOld >= 0, "windows that have no pixel in common");
  using Pixel = ChannelVector<Image, kVector>;
  using Item = Vector<Accumulator, kItem>;
  using Values = Accumulator[kVector];
  using Sums = Accumulator[kTaps][kVector];

  /// The elements that are loaded for one position.
  struct Loaded {
    ChannelVector<Gradient, kVector> gradient;
    Pixel pixel[kNew];
  };
  /// One row of the output and the row of the images that meets it at this thread's row of the filter.
  struct Row {
    const char* gradient;
    const char* line;
    int first;  // coordinate of the window's first pixel at position 0; without windows, of the first tap
  };

 public:
  __device__ __forceinline__ explicit DepthwiseWgrad(const Parameters& parameters)
      : parameters_(parameters), thread_(static_cast<int>(threadIdx.x)) {
    const int tiles = parameters.channel_tiles * parameters.unit_tiles;
    part_ = static_cast<int>(blockIdx.x) / tiles;
    tile_ = static_cast<int>(blockIdx.x) - part_ * tiles;
    const int unit_tile = tile_ / parameters.channel_tiles;
    first_channel_ = (tile_ - unit_tile * parameters.channel_tiles) * Plan::kChannels;
    first_unit_ = unit_tile * parameters.units_of_tile;
    const int slot = thread_ / kVectors;
    lane_ = slot / parameters.units_of_tile;
    unit_ = slot - lane_ * parameters.units_of_tile;
  }

  __device__ __forceinline__ void run() const {
    extern __shared__ __align__(16) unsigned char shared_memory[];
    auto* const shared = reinterpret_cast<Item*>(shared_memory);
    Sums sums = {};
    sum_rows(sums);
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
  __device__ __forceinline__ int lane_threads() const { return parameters_.units_of_tile * kVectors; }
  __device__ __forceinline__ bool is_reversed() const { return matrix().w.tap_step < 0; }

  /// Sums the products of this thread's rows of the CTA's part.
  __device__ __forceinline__ void sum_rows(Sums& sums) const {
    const int channel = first_channel_ + thread_ % kVectors * kVector, unit = first_unit_ + unit_;
    if (!has_lane() || channel >= parameters_.channels || unit >= parameters_.units) return;
    const int r = unit / parameters_.tap_groups, tap = (unit - r * parameters_.tap_groups) * kTaps;
    const int first = kHasWindow && is_reversed() ? -(tap + kTaps - 1) : tap * matrix().w.tap_step;
    const int end = min(parameters_.rows, (part_ + 1) * parameters_.rows_of_part);
#pragma unroll 1
    for (int row = part_ * parameters_.rows_of_part + lane_; row < end; row += parameters_.lanes) {
      const int image = matrix().h.by_positions.quotient(row);
      int y = (row - image * matrix().h.positions) * matrix().h.step + r * matrix().h.tap_step + matrix().h.offset;
      if (Matrix::is_inside(matrix().h, y)) {
        const auto* const gradient = static_cast<const Gradient*>(parameters_.gradient) + channel;
        const auto* const line = static_cast<const Image*>(parameters_.images) + image * matrix().image_stride +
                                 y * matrix().h.stride + channel;
        const int64_t pixel = static_cast<int64_t>(row) * matrix().w.positions;
        sum_row(sums, {reinterpret_cast<const char*>(gradient) + pixel * parameters_.gradient_pitch,
                       reinterpret_cast<const char*>(line), first + matrix().w.offset});
      }
    }
  }

  __device__ __forceinline__ void sum_row(Sums& sums, const Row& row) const {
    const int positions = matrix().w.positions;
    Pixel old[maximum(kOld, 1)];
#pragma unroll
    for (int i = 0; i < kOld; ++i) load_pixel(old[i], row, row.first + i);
    Loaded ahead[kRound];  // of which kAhead are in use
#pragma unroll
    for (int t = 0; t < kAhead; ++t) load(ahead[t], row, t);
    Values window[kTaps];
#pragma unroll
    for (int i = 0; i < kOld; ++i) old[i].convert_to(window[i]);
    int position = 0;
#pragma unroll 1
    for (; position + kRound <= positions; position += kRound) {
#pragma unroll
      for (int t = 0; t < kRound; ++t) {
        Values gradient;
        take(gradient, window, ahead[t], t);
        load(ahead[(t + kAhead) % kRound], row, position + t + kAhead);
        add_products(sums, gradient, window, t);
      }
    }
    // The last positions are not part of the loop: ptxas would copy what was loaded at each place where the loop may
    // end, and so wait for it.
#pragma unroll
    for (int t = 0; t < kRound - 1; ++t) {
      if (position + t >= positions) break;
      Values gradient;
      take(gradient, window, ahead[t], t);
      if (t + kAhead < kRound - 1) load(ahead[t + kAhead], row, position + t + kAhead);
      add_products(sums, gradient, window, t);
    }
  }

  /// Place of the window's first pixel in the ring, for the t-th position of a round.
  static constexpr __device__ __forceinline__ int begin_of(int t) { return t * (kHasWindow ? kStep : kTaps); }

  /// Converts what was loaded for the t-th position of a round.
  static __device__ __forceinline__ void take(Values& gradient, Values (&window)[kTaps], const Loaded& loaded, int t) {
    loaded.gradient.convert_to(gradient);
#pragma unroll
    for (int i = 0; i < kNew; ++i) loaded.pixel[i].convert_to(window[(begin_of(t) + kOld + i) % kTaps]);
  }

  static __device__ __forceinline__ void add_products(Sums& sums, const Values& gradient, const Values (&window)[kTaps],
                                                      int t) {
#pragma unroll
    for (int s = 0; s < kTaps; ++s) {
#pragma unroll
      for (int i = 0; i < kVector; ++i) sums[s][i] += gradient[i] * window[(begin_of(t) + s) % kTaps][i];
    }
  }

  /// Loads what a position needs beside the pixels of the window before it. Pixels that are not inside the image are
  /// zeros; the gradient beyond the end of its row is not loaded and not used.
  __device__ __forceinline__ void load(Loaded& loaded, const Row& row, int position) const {
    loaded.gradient.load_if(position < matrix().w.positions,
                            row.gradient + static_cast<int64_t>(position) * parameters_.gradient_pitch);
    const int x = position * (kHasWindow ? kStep : matrix().w.step) + row.first + kOld;
#pragma unroll
    for (int i = 0; i < kNew; ++i) load_pixel(loaded.pixel[i], row, x + (kHasWindow ? i : i * matrix().w.tap_step));
  }

  __device__ __forceinline__ void load_pixel(Pixel& pixel, const Row& row, int x) const {
    pixel.load_if(static_cast<uint32_t>(x) < static_cast<uint32_t>(matrix().w.extent),
                  row.line + static_cast<int64_t>(x) * parameters_.pitch);
  }

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
    const bool reads_source = Epilogue::kReadsSource && Epilogue::reads_source(parameters_.epilogue);
    const int taps_of_channel = parameters_.units_of_tile * kTaps, columns = matrix().h.taps * matrix().w.taps;
#pragma unroll 1
    for (int index = thread_; index < Plan::kChannels * taps_of_channel; index += Plan::kThreads) {
      const int in_tile = index / taps_of_channel, rest = index - in_tile * taps_of_channel;
      const int unit = rest / kTaps, i = rest % kTaps, r = (first_unit_ + unit) / parameters_.tap_groups;
      const int s = (first_unit_ + unit - r * parameters_.tap_groups) * kTaps + i, channel = first_channel_ + in_tile;
      if (channel >= parameters_.channels || first_unit_ + unit >= parameters_.units || s >= matrix().w.taps) continue;
      const int of_thread = (kHasWindow && is_reversed() ? kTaps - 1 - i : i) * kVector + in_tile % kVector;
      const Item& sum = shared[of_thread / kItem * kHalf + unit * kVectors + in_tile / kVector];
      const int column = r * matrix().w.taps + s;
      C source{};
      if (reads_source) source = static_cast<const C*>(parameters_.c)[channel * parameters_.ldc + column];
      // The channels are the batch of the GEMM, each of whose matrices has one row.
      Compute value[1] = {convert<Compute>(sum.element[of_thread % kItem])}, of_c[1] = {convert<Compute>(source)};
      Epilogue::apply(value, of_c, parameters_.epilogue, EpiloguePlace{0, column, channel, 1, columns});
      static_cast<D*>(parameters_.d)[channel * parameters_.ldd + column] = convert<D>(value[0]);
    }
  }

  const Parameters& parameters_;
  int thread_;
  int tile_, part_;                 // a CTA's
  int first_channel_, first_unit_;  // of the tile
  int lane_, unit_;                 // of this thread; lanes from parameters_.lanes on have nothing to do
};

}  // namespace tilewright
