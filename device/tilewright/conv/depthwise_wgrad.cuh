// Gradients of the filters of depthwise convolutions on CUDA cores: each channel has a filter of its own, and its
// gradient sums over all output pixels. A thread keeps the sums of some taps of one row of the filter, for a vector of
// channels, and walks along segments of rows of the output; several threads of a CTA have the same taps and take
// different segments. Each CTA sums a range of segments.
#pragma once

#include "tilewright/conv/channel_vector.cuh"
#include "tilewright/conv/depthwise_sums.cuh"
#include "tilewright/types.cuh"

namespace tilewright {

/// Plan: that of DepthwiseSums, Gradient and Image. If kStep is not 0, the taps of a thread are adjacent pixels and
/// kStep is the distance of the windows of two positions.
template <class Plan, class Epilogue>
class DepthwiseWgrad {
  using Gradient = typename Plan::Gradient;
  using Image = typename Plan::Image;
  using Accumulator = typename Plan::Accumulator;
  using Matrix = typename Plan::Matrix;
  static constexpr int kVector = Plan::kVector;
  static constexpr int kTaps = Plan::kTaps;
  static constexpr int kStep = Plan::kStep;
  static constexpr bool kHasWindow = kStep != 0;
  static constexpr int kOld = kHasWindow ? kTaps - kStep : 0;  // pixels of a window that the one before it has, too
  static constexpr int kNew = kTaps - kOld;                    // pixels that a thread loads for each position
  /// A window is a ring of kTaps pixels, so that after as many positions each pixel is at its place again.
  static constexpr int kRound = kHasWindow ? kTaps : 2;
  /// Positions that are loaded ahead: fewer where each needs two pixels, for which a thread has no registers.
  static constexpr int kAhead = kNew == 1 || !kHasWindow ? kRound : minimum(kRound, 4);
  static_assert(kOld >= 0, "windows that have no pixel in common");
  using Pixel = ChannelVector<Image, kVector>;
  using Values = Accumulator[kVector];
  using AllSums = DepthwiseSums<Plan, Epilogue>;
  using Sums = typename AllSums::Sums;
  using Parameters = DepthwiseWgradParameters<typename Epilogue::Parameters, Matrix>;

  /// The elements that are loaded for one position.
  struct Loaded {
    ChannelVector<Gradient, kVector> gradient;
    Pixel pixel[kNew];
  };
  /// A segment of a row of the output and the row of the images that meets it at this thread's row of the filter.
  struct Segment {
    const char* gradient;  // at position 0, which is the segment's first
    const char* line;
    int first;  // coordinate of the window's first pixel at position 0; without windows, of the first tap
    int positions;
  };

 public:
  __device__ __forceinline__ explicit DepthwiseWgrad(const Parameters& parameters) : parameters_(parameters) {}

  __device__ __forceinline__ void run() const {
    const AllSums all(parameters_);
    Sums sums = {};
    const DepthwiseShare share = all.share();
    if (share.is_any) sum(sums, share);
    all.add_and_store(sums);
  }

 private:
  __device__ __forceinline__ const Matrix& matrix() const { return parameters_.matrix; }

  /// Adds the products of the thread's share.
  __device__ __forceinline__ void sum(Sums& sums, const DepthwiseShare& share) const {
    const int r = share.unit / parameters_.tap_groups, tap = (share.unit - r * parameters_.tap_groups) * kTaps;
    const int first = kHasWindow && matrix().w.tap_step < 0 ? -(tap + kTaps - 1) : tap * matrix().w.tap_step;
#pragma unroll 1
    for (int i = share.begin + share.lane; i < share.end; i += parameters_.lanes) {
      const int row = parameters_.by_segments_of_row.quotient(i);
      const int image = matrix().h.by_positions.quotient(row);
      int y = (row - image * matrix().h.positions) * matrix().h.step + r * matrix().h.tap_step + matrix().h.offset;
      if (Matrix::is_inside(matrix().h, y)) {
        const int begin = (i - row * parameters_.segments_of_row) * parameters_.positions_of_segment;
        const auto* const gradient = static_cast<const Gradient*>(parameters_.gradient) + share.channel;
        const auto* const line = static_cast<const Image*>(parameters_.images) + image * matrix().image_stride +
                                 y * matrix().h.stride + share.channel;
        const int64_t pixel = static_cast<int64_t>(row) * matrix().w.positions + begin;
        sum_segment(sums, {reinterpret_cast<const char*>(gradient) + pixel * parameters_.gradient_pitch,
                           reinterpret_cast<const char*>(line), first + matrix().w.offset + begin * matrix().w.step,
                           minimum(parameters_.positions_of_segment, matrix().w.positions - begin)});
      }
    }
  }

  __device__ __forceinline__ void sum_segment(Sums& sums, const Segment& segment) const {
    const int positions = segment.positions;
    Pixel old[maximum(kOld, 1)];
#pragma unroll
    for (int i = 0; i < kOld; ++i) load_pixel(old[i], segment, segment.first + i);
    Loaded ahead[kRound];  // of which kAhead are in use
#pragma unroll
    for (int t = 0; t < kAhead; ++t) load(ahead[t], segment, t);
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
        load(ahead[(t + kAhead) % kRound], segment, position + t + kAhead);
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
      if (t + kAhead < kRound - 1) load(ahead[t + kAhead], segment, position + t + kAhead);
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
  /// zeros; the gradient beyond the end of the segment is not loaded and not used.
  __device__ __forceinline__ void load(Loaded& loaded, const Segment& segment, int position) const {
    loaded.gradient.load_if(position < segment.positions,
                            segment.gradient + static_cast<int64_t>(position) * parameters_.gradient_pitch);
    const int x = position * (kHasWindow ? kStep : matrix().w.step) + segment.first + kOld;
#pragma unroll
    for (int i = 0; i < kNew; ++i) load_pixel(loaded.pixel[i], segment, x + (kHasWindow ? i : i * matrix().w.tap_step));
  }

  __device__ __forceinline__ void load_pixel(Pixel& pixel, const Segment& segment, int x) const {
    pixel.load_if(static_cast<uint32_t>(x) < static_cast<uint32_t>(matrix().w.extent),
                  segment.line + static_cast<int64_t>(x) * parameters_.pitch);
  }

  const Parameters& parameters_;
};

}  // namespace tilewright
