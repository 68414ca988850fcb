// Convolutions of images with few channels on mma.sync, such as the first convolution (the stem) of a network. The taps
// of one row of a filter are adjacent in memory, and so are the pixels that they multiply. A CTA copies the lines of
// the images that a block of output pixels needs to shared memory, and loads fragments of A straight from these lines:
// no im2col matrix is formed. The filters of the CTA stay in shared memory while it takes one block after another.
#pragma once

#include "tilewright/conv/image_lines.cuh"
#include "tilewright/epilogue/output_tile.cuh"
#include "tilewright/gemm/parameters.cuh"
#include "tilewright/operand/im2col_matrix.cuh"
#include "tilewright/ptx/cp_async.cuh"
#include "tilewright/ptx/mma_f16.cuh"
#include "tilewright/ptx/shared.cuh"
#include "tilewright/ptx/thread.cuh"
#include "tilewright/scheduler/tile_origin.cuh"
#include "tilewright/types.cuh"

namespace tilewright {

/// Plan: Element (of the images and the filters); kWarps, which is the number of output rows of a block; kPositions,
/// the adjacent positions of each of these rows; kWarpTiles, the tiles of 16 positions that a warp multiplies at a
/// time; kTileN, filters of a CTA, a multiple of 32; kTaps, the rows of the window; kRowK, the elements of a row of the
/// window, filled up to a multiple of 8; kStep, elements from a position's window to the next; kLine, elements of a
/// line in shared memory; kSteps, steps of 16 along K; kFilterBytes; filter_place(filter, k), fragment_place(lane),
/// kFragmentPair and kFragmentStep, byte offsets in the filters' shared memory; and the members that OutputTile uses.
/// The values come from plan/stem_conv.
///
/// Before the elements of a row of the window there may be one more, so that fragments are loaded in aligned pairs, and
/// after them those that fill it up. The elements of A there are pixels outside the window, which may be infinities or
/// NaNs, so that the fragments are masked.
template <class Plan, class Epilogue>
class StemConv {
  using Element = typename Plan::Element;
  using Mma = ptx::Mma<16, 8, 16, Element, Element, float>;
  using Parameters = GemmParameters<typename Epilogue::Parameters, NoGroups, Im2colMatrix<false>>;
  using Output = OutputTile<Plan, Epilogue, Parameters>;
  static constexpr int kThreads = 32 * Plan::kWarps;
  static constexpr int kTilesN = Plan::kTileN / 8;
  static constexpr int kGroups = Plan::kRowK / 8;  // of 8 elements, in a row of the window
  static constexpr int kVector = 8;                // adjacent columns of D that a lane has
  static constexpr int kBytes = 2;
  using Lines = ImageLines<Element, Plan::kWarps, Plan::kPositions, Plan::kTaps, Plan::kStep, Plan::kLine, kThreads>;
  using Block = typename Lines::Block;
  static constexpr bool kPairsAreAligned = Lines::kPairsAreAligned;
  static_assert(sizeof(Element) == kBytes && Plan::kTileN % 32 == 0 && Plan::kRowK % 8 == 0 &&
                Plan::kPositions % 16 == 0);
  static_assert(Plan::kSteps == ceil_div(Plan::kTaps * kGroups, 2) && Plan::kLine % 8 == 0);

 public:
  __device__ __forceinline__ explicit StemConv(const Parameters& parameters)
      : parameters_(parameters),
        lines_(matrix_of(parameters.matrix_a), parameters.a),
        lane_(static_cast<int>(threadIdx.x) % 32),
        warp_(static_cast<int>(threadIdx.x) / 32) {
    reads_product_ = parameters.k > 0;
    const int k = lane_ % 4 * 2;  // of the lane's pairs, in a group of 8
    first_mask_ = lines_.lead() == 1 && k == 0 ? 0xffff0000U : ~0U;
    // Elements of the last group from the lane's on.
    const int last = lines_.lead() + matrix().w.taps * matrix().channels - (kGroups - 1) * 8 - k;
    last_mask_ = (last > 0 ? 0xffffU : 0U) | (last > 1 ? 0xffff0000U : 0U);
  }

  __device__ __forceinline__ void run() const {
    extern __shared__ __align__(16) unsigned char shared_memory[];
    const uint32_t filters = ptx::shared_address(shared_memory), lines = filters + Plan::kFilterBytes;
    const uint32_t buffer_bytes = lines_.bytes();
    const int tiles = ceil_div(parameters_.n, Plan::kTileN);
    const int cta = static_cast<int>(blockIdx.x), step = static_cast<int>(gridDim.x) / tiles;
    const int first_filter = cta % tiles * Plan::kTileN;
    const int blocks = parameters_.m / (matrix().h.positions * matrix().w.positions) * lines_.blocks_of_image();
    int block = cta / tiles;
    uint32_t buffer = 0;
    lines_.copy(lines_.block(block), lines, reads_product_);
    ptx::cp_async_commit();
    load_filters(filters, first_filter);
#pragma unroll 1
    for (; block < blocks; block += step) {
      if (block + step < blocks)
        lines_.copy(lines_.block(block + step), lines + (buffer_bytes - buffer), reads_product_);
      ptx::cp_async_commit();
      ptx::cp_async_wait<1>();
      __syncthreads();  // this block's lines have arrived, and at first the filters
      compute(lines_.block(block), lines + buffer, filters, first_filter);
      __syncthreads();  // the lines have been read: the next copy may overwrite them
      buffer = buffer_bytes - buffer;
    }
    ptx::cp_async_wait<0>();
  }

 private:
  /// Copies the filters of the CTA to shared memory, with zeros where a row of the window is filled up.
  __device__ __forceinline__ void load_filters(uint32_t filters, int first_filter) const {
    constexpr int kK = Plan::kSteps * 16, kElements = Plan::kTileN * kK;
    constexpr int kTogether = 16;  // loads that a thread has in flight
#pragma unroll 1
    for (int first = ptx::thread(); first < kElements; first += kThreads * kTogether) {
      Element elements[kTogether];
#pragma unroll
      for (int j = 0; j < kTogether; ++j) {
        const int i = first + j * kThreads;
        elements[j] = filter_element(first_filter + i / kK, i % kK);
      }
#pragma unroll
      for (int j = 0; j < kTogether; ++j) {
        const int i = first + j * kThreads;
        if (i < kElements) ptx::store_shared(filters + Plan::filter_place(i / kK, i % kK), elements[j]);
      }
    }
  }

  __device__ __forceinline__ Element filter_element(int filter, int k) const {
    const Im2colAxis &h = matrix().h, &w = matrix().w;
    const int channels = matrix().channels, row_elements = w.taps * channels;
    int row = k / Plan::kRowK, element = k % Plan::kRowK - lines_.lead();
    const bool is_inside = row < Plan::kTaps && static_cast<uint32_t>(element) < static_cast<uint32_t>(row_elements);
    if (!is_inside || filter >= parameters_.n || !reads_product_) return Element{};
    if (h.tap_step < 0) row = Plan::kTaps - 1 - row;
    if (w.tap_step < 0) {
      const int tap = matrix().by_channels.quotient(element);
      element += (w.taps - 1 - 2 * tap) * channels;
    }
    return static_cast<const Element*>(parameters_.b)[filter * parameters_.ldb + row * row_elements + element];
  }

  /// Each warp computes one output row of the block.
  __device__ __forceinline__ void compute(const Block& block, uint32_t lines, uint32_t filters,
                                          int first_filter) const {
    const int row = block.first_row + warp_;
    if (row >= matrix().h.positions) return;
    const int positions = minimum(Plan::kPositions, matrix().w.positions - block.first_position);
    const int pixel = (block.image * matrix().h.positions + row) * matrix().w.positions + block.first_position;
    const int element = warp_ * matrix().h.step * Plan::kLine + block.shift + lane_ / 4 * Plan::kStep + lane_ % 4 * 2;
    const uint32_t window = lines + static_cast<uint32_t>(element * kBytes);
    const uint32_t fragments = filters + Plan::fragment_place(lane_);
    constexpr int kRun = Plan::kWarpTiles * 16;
    int first = 0;
#pragma unroll 1
    for (; first + kRun <= (positions + 15) / 16 * 16; first += kRun)
      compute_tiles<Plan::kWarpTiles>(window, fragments, first, positions, pixel, first_filter);
    if constexpr (Plan::kWarpTiles > 1) {
#pragma unroll 1
      for (; first < positions; first += 16) compute_tiles<1>(window, fragments, first, positions, pixel, first_filter);
    }
  }

  template <int kTiles>
  struct Fragments {
    uint32_t a[kTiles][4];
    uint32_t b[kTilesN][2];
  };

  /// Computes kTiles tiles of 16 positions of a row, from `first` on. `window` is the address of this lane's first pair
  /// at the first position, `pixel` the row of D of that position.
  template <int kTiles>
  __device__ __forceinline__ void compute_tiles(uint32_t window, uint32_t filters, int first, int positions, int pixel,
                                                int first_filter) const {
    window += static_cast<uint32_t>(first * Plan::kStep * kBytes);
    float accumulators[kTiles][kTilesN][4] = {};
    Fragments<kTiles> fragments[2];
    load(fragments[0], window, filters, 0);
#pragma unroll
    for (int step = 0; step < Plan::kSteps; ++step) {
      if (step + 1 < Plan::kSteps) load(fragments[(step + 1) % 2], window, filters, step + 1);
      const Fragments<kTiles>& loaded = fragments[step % 2];
#pragma unroll
      for (int i = 0; i < kTiles; ++i) {
#pragma unroll
        for (int j = 0; j < kTilesN; ++j) {
          const int column = i % 2 == 0 ? j : kTilesN - 1 - j;
          Mma::fma(accumulators[i][column], loaded.a[i], loaded.b[column]);
        }
      }
    }
    store(accumulators, first, positions, pixel, first_filter);
  }

  template <int kTiles>
  __device__ __forceinline__ void load(Fragments<kTiles>& fragments, uint32_t window, uint32_t filters,
                                       int step) const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int group = 2 * step + half, row = group / kGroups, in_row = group % kGroups;
      const bool exists = row < Plan::kTaps;
#pragma unroll
      for (int i = 0; i < kTiles * 2; ++i) {  // each tile's first and last 8 positions
        uint32_t& pair = fragments.a[i / 2][2 * half + i % 2];
        pair = 0;
        if (!exists) continue;
        const int element = row * Plan::kLine + in_row * 8 + i * 8 * Plan::kStep;
        pair = load_pair(window + static_cast<uint32_t>(element * kBytes));
        if (in_row == 0 && kPairsAreAligned) pair &= first_mask_;
        if (in_row == kGroups - 1) pair &= last_mask_;
      }
    }
#pragma unroll
    for (int j = 0; j < kTilesN; j += 2) {
      uint32_t matrices[4];
      ptx::ldmatrix_x4<false>(matrices, filters + static_cast<uint32_t>(j / 2 * Plan::kFragmentPair) +
                                            static_cast<uint32_t>(step * Plan::kFragmentStep));
      fragments.b[j][0] = matrices[0];
      fragments.b[j][1] = matrices[1];
      fragments.b[j + 1][0] = matrices[2];
      fragments.b[j + 1][1] = matrices[3];
    }
  }

  static __device__ __forceinline__ uint32_t load_pair(uint32_t address) {
    if constexpr (kPairsAreAligned) return ptx::load_shared_b32(address);
    const uint32_t low = ptx::load_shared<uint16_t>(address), high = ptx::load_shared<uint16_t>(address + kBytes);
    return low | high << 16;
  }

  /// The filters are placed such that each lane has kVector adjacent columns of every 32.
  template <int kTiles>
  __device__ __forceinline__ void store(const float (&accumulators)[kTiles][kTilesN][4], int first, int positions,
                                        int pixel, int first_filter) const {
    const Output output(parameters_, TileOrigin{0, first_filter, 0});
    const auto reductions = Output::template reductions<1, kThreads>(parameters_, 0);  // there are none
#pragma unroll
    for (int i = 0; i < kTiles * 2; ++i) {
      const int position = first + i * 8 + lane_ / 4;
      if (position >= positions) continue;
#pragma unroll
      for (int v = 0; v < Plan::kTileN / 32; ++v) {
        const int column = v * 32 + lane_ % 4 * kVector;
        if (first_filter + column >= output.end_n()) continue;
        float values[kVector];
#pragma unroll
        for (int j = 0; j < kVector; ++j) values[j] = accumulators[i / 2][v * 4 + j / 2][i % 2 * 2 + j % 2];
        output.store(pixel + position, first_filter + column, values, reductions, 0, column);
      }
    }
  }

  __device__ __forceinline__ const Im2colMatrix<false>& matrix() const { return matrix_of(parameters_.matrix_a); }

  const Parameters& parameters_;
  Lines lines_;
  int lane_, warp_;
  bool reads_product_;
  uint32_t first_mask_, last_mask_;  // of this lane's pairs in the first and the last group of a row of the window
};

}  // namespace tilewright
