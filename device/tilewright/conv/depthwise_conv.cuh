// Depthwise convolutions on CUDA cores: each channel has a filter of its own. A CTA keeps the filters of its channels
// in shared memory and takes one band of output pixels after another. A thread computes adjacent positions of a row of
// the output, for a vector of channels, so that it loads each pixel of a row of the window once. Where the window
// slides down the image, the thread computes the same positions of several rows, and loads each row of pixels once for
// all rows of the window.
#pragma once

#include "tilewright/conv/channel_vector.cuh"
#include "tilewright/epilogue/epilogue_tensor.cuh"
#include "tilewright/numeric/convert.cuh"
#include "tilewright/operand/im2col_matrix.cuh"
#include "tilewright/types.cuh"

namespace tilewright {

/// plan/depthwise_conv writes these fields; the emitted text asserts their offsets. Matrix is the Im2colMatrix of one
/// channel of the images; the channels are adjacent in memory, in the images and in C and D.
template <class EpilogueParameters, class Matrix>
struct DepthwiseConvParameters {
  Matrix matrix;
  const void* images;
  const void* filter;
  const void* c;
  void* d;
  int64_t filter_stride, tap_stride;  // from the filter of a channel to the next, and from a tap to the next, elements
  int64_t ldc, ldd;                   // from a pixel to the next, elements
  int channels;
  int channel_tiles;  // groups of kChannels channels
  int pixels;         // of the output: images, rows and positions of a row
  int segments;       // of consecutive rows of the output, of all images
  int segments_per_image, rows_per_segment;
  Divisor by_segments_per_image;
  int groups_per_row;  // of kPixels positions
  Divisor by_groups_per_row;
  EpilogueParameters epilogue;
};

/// Plan: Element (of the images and the filter), Accumulator, ElementC, ElementD, Matrix, kVector (channels of a
/// thread), kPixels (positions of a thread), kChannels (channels of a CTA), kThreads, kTaps, kStep and
/// kRowsAhead. If kTaps is not 0, it is the number of taps along the width, whose pixels are adjacent, and kStep the
/// distance of two positions. If kRowsAhead is not 0, the window slides: the height has as many adjacent taps and the
/// same step. Else a segment is one row.
template <class Plan, class Epilogue>
class DepthwiseConv {
  using Element = typename Plan::Element;
  using Accumulator = typename Plan::Accumulator;
  using C = typename Plan::ElementC;
  using D = typename Plan::ElementD;
  using Compute = typename Epilogue::Compute;
  using Matrix = typename Plan::Matrix;
  using Parameters = DepthwiseConvParameters<typename Epilogue::Parameters, Matrix>;
  static constexpr int kVector = Plan::kVector;
  static constexpr int kPixels = Plan::kPixels;
  static constexpr int kVectors = Plan::kChannels / kVector;  // threads along the channels
  static constexpr int kBand = Plan::kThreads / kVectors;     // groups of positions that a CTA computes at once
  static_assert(Plan::kChannels % kVector == 0 && Plan::kThreads % kVectors == 0);
  using Pixel = ChannelVector<Element, kVector>;
  using Sums = Accumulator[kPixels][kVector];

 public:
  __device__ __forceinline__ explicit DepthwiseConv(const Parameters& parameters) : parameters_(parameters) {}

  __device__ __forceinline__ void run() const {
    extern __shared__ __align__(16) unsigned char shared_memory[];
    auto* const filters = reinterpret_cast<Accumulator*>(shared_memory);
    const int thread = static_cast<int>(threadIdx.x), block = static_cast<int>(blockIdx.x);
    const int tile = block % parameters_.channel_tiles, first = block / parameters_.channel_tiles;
    const int step = static_cast<int>(gridDim.x) / parameters_.channel_tiles * kBand;
    const int first_channel = tile * Plan::kChannels;
    load_filters(filters, first_channel, thread);
    __syncthreads();
    const int vector = thread % kVectors * kVector, channel = first_channel + vector;
    if (channel >= parameters_.channels) return;
    const int groups = parameters_.segments * parameters_.groups_per_row;
#pragma unroll 1
    for (int group = first * kBand + thread / kVectors; group < groups; group += step) {
      const int segment = parameters_.by_groups_per_row.quotient(group);
      const int image = parameters_.by_segments_per_image.quotient(segment);
      const int row = (segment - image * parameters_.segments_per_image) * parameters_.rows_per_segment;
      const int position = (group - segment * parameters_.groups_per_row) * kPixels;
      if constexpr (Plan::kRowsAhead != 0) {
        slide(filters + vector, channel, image, row, position);
      } else {
        compute(filters + vector, channel, image, row, position);
      }
    }
  }

 private:
  /// Copies the filters of the CTA's channels to shared memory: tap after tap, with the channels of each.
  __device__ __forceinline__ void load_filters(Accumulator* filters, int first_channel, int thread) const {
    const auto* const from = static_cast<const Element*>(parameters_.filter);
    const int taps = matrix().h.taps * matrix().w.taps;
#pragma unroll 1
    for (int i = thread; i < taps * Plan::kChannels; i += Plan::kThreads) {
      const int tap = i / Plan::kChannels, channel = first_channel + i % Plan::kChannels;
      filters[i] = Accumulator(0);
      if (channel < parameters_.channels)
        filters[i] = convert<Accumulator>(from[channel * parameters_.filter_stride + tap * parameters_.tap_stride]);
    }
  }

  __device__ __forceinline__ const Element* channels_of(int image, int channel) const {
    return static_cast<const Element*>(parameters_.images) + image * matrix().image_stride + channel;
  }

  /// Computes the positions from `position` on of one row of an image of the output.
  __device__ __forceinline__ void compute(const Accumulator* filters, int channel, int image, int row,
                                          int position) const {
    const Element* const images = channels_of(image, channel);
    const int first_y = row * matrix().h.step + matrix().h.offset;
    Sums sums = {};
#pragma unroll 1
    for (int r = 0; r < matrix().h.taps; ++r) {
      const Accumulator* const taps = filters + r * matrix().w.taps * Plan::kChannels;
      int y = first_y + r * matrix().h.tap_step;
      if (!Matrix::is_inside(matrix().h, y)) continue;
      const Element* const line = images + y * matrix().h.stride;
      if constexpr (Plan::kTaps != 0) {
        add_window(sums, line, taps, position);
      } else {
        add_taps(sums, line, taps, position);
      }
    }
    store(sums, channel, image * matrix().h.positions + row, position);
  }

  /// Computes the positions from `position` on of the rows of a segment that begins at `first_row`. A row of pixels is
  /// in the windows of up to kSums rows of the output, whose sums a thread keeps. Rows of pixels are loaded kRowsAhead
  /// rows before they are used.
  __device__ __forceinline__ void slide(const Accumulator* filters, int channel, int image, int first_row,
                                        int position) const {
    constexpr int kTaps = Plan::kTaps, kStep = Plan::kStep, kRowsAhead = Plan::kRowsAhead;
    constexpr int kSums = (kTaps + kStep - 1) / kStep, kPhases = kSums * kStep;
    static_assert(kPhases % kRowsAhead == 0, "each phase has its row of pixels");
    const Element* const images = channels_of(image, channel);
    const int end_row = minimum(first_row + parameters_.rows_per_segment, matrix().h.positions);
    const bool is_reversed = matrix().h.tap_step < 0;
    Accumulator filter[kTaps][kTaps][kVector];
#pragma unroll
    for (int r = 0; r < kTaps; ++r)
      load_filter_row(filter[r], filters + (is_reversed ? kTaps - 1 - r : r) * (kTaps * Plan::kChannels));
    int y = first_row * kStep + matrix().h.offset - (is_reversed ? kTaps - 1 : 0);
    const int end_y = minimum(y + (end_row - 1 - first_row) * kStep + kTaps, matrix().h.extent);
    PixelRow ahead[kRowsAhead];
#pragma unroll
    for (int i = 0; i < kRowsAhead; ++i) load_row(ahead[i], images, y++, end_y, position);
    Sums sums[kSums] = {};
    // The first rows of pixels complete windows of rows before the segment.
    int row = first_row - (kTaps - 1) / kStep;
#pragma unroll 1
    while (row < end_row) {  // an exit within the loop would move the sums to local memory (NVRTC 13.0)
#pragma unroll
      for (int phase = 0; phase < kPhases; ++phase) {
        const PixelRow pixels = ahead[phase % kRowsAhead];
        if (kRowsAhead == 1) load_row(ahead[0], images, y++, end_y, position);
#pragma unroll
        for (int r = 0; r < kTaps; ++r) {
          // The phases since the window began of which this row of pixels has row r of the taps, and whole rounds.
          const int begun = phase - r + kPhases * kTaps;
          if (begun % kStep == 0) add_row(sums[begun / kStep % kSums], pixels, filter[r]);
        }
        if (kRowsAhead > 1) load_row(ahead[phase % kRowsAhead], images, y++, end_y, position);
        const int begun = phase - (kTaps - 1) + kPhases * kTaps;
        if (begun % kStep == 0) {
          Sums& complete = sums[begun / kStep % kSums];
          if (row >= first_row && row < end_row) store(complete, channel, image * matrix().h.positions + row, position);
          ++row;
#pragma unroll
          for (int j = 0; j < kPixels; ++j) {
#pragma unroll
            for (int i = 0; i < kVector; ++i) complete[j][i] = Accumulator(0);
          }
        }
      }
    }
  }

  /// The pixels of a row of the image that the windows of a thread's positions need.
  static constexpr int kLoads = (kPixels - 1) * Plan::kStep + maximum(Plan::kTaps, 1);
  struct PixelRow {
    Pixel pixel[kLoads];
  };
  using FilterRow = Accumulator[maximum(Plan::kTaps, 1)][kVector];

  /// Loads row y of the image, or zeros if it is before the first row or not before `end_y`.
  __device__ __forceinline__ void load_row(PixelRow& to, const Element* images, int y, int end_y, int position) const {
    const bool is_row = y >= 0 && y < end_y;
    load_window(to, images + y * matrix().h.stride, is_row, position);
  }

  __device__ __forceinline__ void load_window(PixelRow& to, const Element* line, bool is_row, int position) const {
    const int first = position * Plan::kStep + matrix().w.offset - (matrix().w.tap_step < 0 ? Plan::kTaps - 1 : 0);
#pragma unroll
    for (int i = 0; i < kLoads; ++i)
      load_pixel(to.pixel[i], line, first + i,
                 is_row && static_cast<uint32_t>(first + i) < static_cast<uint32_t>(matrix().w.extent));
  }

  /// Loads the taps of a row of the filter, in the order of the pixels.
  __device__ __forceinline__ void load_filter_row(FilterRow& filter, const Accumulator* taps) const {
    const bool is_reversed = matrix().w.tap_step < 0;
#pragma unroll
    for (int s = 0; s < Plan::kTaps; ++s)
      load_filter(filter[s], taps + (is_reversed ? Plan::kTaps - 1 - s : s) * Plan::kChannels);
  }

  /// Adds the products of a row of pixels and a row of the filter.
  static __device__ __forceinline__ void add_row(Sums& sums, const PixelRow& pixels, const FilterRow& filter) {
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      Accumulator pixel[kVector];
      pixels.pixel[i].convert_to(pixel);
#pragma unroll
      for (int j = 0; j < kPixels; ++j) {
        const int s = i - j * Plan::kStep;
        if (s >= 0 && s < Plan::kTaps) add(sums[j], pixel, filter[s]);
      }
    }
  }

  /// Adds the products of one row of a window whose taps are adjacent pixels. Each pixel is loaded once, and all are
  /// loaded before the first is used.
  __device__ __forceinline__ void add_window(Sums& sums, const Element* line, const Accumulator* taps,
                                             int position) const {
    PixelRow pixels;
    load_window(pixels, line, true, position);
    FilterRow filter;
    load_filter_row(filter, taps);
    add_row(sums, pixels, filter);
  }

  /// Adds the products of one row of any window.
  __device__ __forceinline__ void add_taps(Sums& sums, const Element* line, const Accumulator* taps,
                                           int position) const {
#pragma unroll 1
    for (int s = 0; s < matrix().w.taps; ++s) {
      Pixel pixels[kPixels];
#pragma unroll
      for (int j = 0; j < kPixels; ++j) {
        int x = (position + j) * matrix().w.step + s * matrix().w.tap_step + matrix().w.offset;
        const bool is_inside = Matrix::is_inside(matrix().w, x);
        load_pixel(pixels[j], line, x, is_inside);
      }
      Accumulator filter[kVector];
      load_filter(filter, taps + s * Plan::kChannels);
#pragma unroll
      for (int j = 0; j < kPixels; ++j) {
        Accumulator pixel[kVector];
        pixels[j].convert_to(pixel);
        add(sums[j], pixel, filter);
      }
    }
  }

  static __device__ __forceinline__ void load_filter(Accumulator (&filter)[kVector], const Accumulator* from) {
    constexpr int kLoad = minimum(kVector, 16 / static_cast<int>(sizeof(Accumulator)));
#pragma unroll
    for (int first = 0; first < kVector; first += kLoad) {
      const auto read = *reinterpret_cast<const Vector<Accumulator, kLoad>*>(from + first);
#pragma unroll
      for (int i = 0; i < kLoad; ++i) filter[first + i] = read.element[i];
    }
  }

  /// Loads the channels of pixel `x` of a line; zeros if it is not inside.
  __device__ __forceinline__ void load_pixel(Pixel& pixel, const Element* line, int x, bool is_inside) const {
    pixel.load_if(is_inside, reinterpret_cast<const char*>(line + x * matrix().w.stride));
  }

  static __device__ __forceinline__ void add(Accumulator (&sum)[kVector], const Accumulator (&pixel)[kVector],
                                             const Accumulator (&filter)[kVector]) {
#pragma unroll
    for (int i = 0; i < kVector; ++i) sum[i] += pixel[i] * filter[i];
  }

  __device__ __forceinline__ void store(const Sums& sums, int channel, int row, int position) const {
    const bool reads_source = Epilogue::kReadsSource && Epilogue::reads_source(parameters_.epilogue);
#pragma unroll
    for (int j = 0; j < kPixels; ++j) {
      if (position + j >= matrix().w.positions) break;
      const int pixel = row * matrix().w.positions + position + j;
      Vector<C, kVector> source{};
      if (reads_source)
        source = *reinterpret_cast<const Vector<C, kVector>*>(static_cast<const C*>(parameters_.c) +
                                                              pixel * parameters_.ldc + channel);
      Vector<D, kVector> out;
#pragma unroll
      for (int i = 0; i < kVector; ++i) {
        // The channels are the batch of the GEMM, each of whose matrices has one column.
        Compute value[1] = {convert<Compute>(sums[j][i])}, of_c[1] = {convert<Compute>(source.element[i])};
        Epilogue::apply(value, of_c, parameters_.epilogue, EpiloguePlace{pixel, 0, channel + i, parameters_.pixels, 1});
        out.element[i] = convert<D>(value[0]);
      }
      *reinterpret_cast<Vector<D, kVector>*>(static_cast<D*>(parameters_.d) + pixel * parameters_.ldd + channel) = out;
    }
  }

  __device__ __forceinline__ const Matrix& matrix() const { return parameters_.matrix; }

  const Parameters& parameters_;
};

}  // namespace tilewright
