// Gradients of the filters of convolutions with few channels on mma.sync, such as the first convolution (the stem) of a
// network. A warp keeps the sums of one row of the window for all filters of the CTA. For each output row it multiplies
// the gradient of that row, transposed, by windows that it loads straight from a line of the image. CTAs take blocks of
// output pixels in turn, and then wait for each other; each sums the partial sums of all of them for a share of D, in a
// fixed order.
#pragma once

#include "tilewright/conv/image_lines.cuh"
#include "tilewright/conv/part_sums.cuh"
#include "tilewright/conv/wgrad_parameters.cuh"
#include "tilewright/ptx/mma_f16.cuh"
#include "tilewright/ptx/permute.cuh"

namespace tilewright {

/// Plan: Element (of the images and the gradient), ElementC, ElementD; kRows and kPositions, the output rows of a block
/// and the adjacent positions of each of them; kTaps, the rows of the window; kRowK, the elements of a row of the
/// window, filled up to a multiple of 8; kStep, elements from a position's window to the next; kLine, elements of a
/// line in shared memory; kTileM, filters of a CTA, a multiple of 16; kGroups, groups of kTaps warps, which take
/// different rows of a block; kGradientLine, bytes from a pixel of the gradient to the next in shared memory;
/// fragment_place(lane), kFragmentTile and kFragmentStep, byte offsets of the gradient's fragments; kBarrier and
/// kPartsFrom, offsets in the workspace. The values come from plan/stem_wgrad.
template <class Plan, class Epilogue>
class StemWgrad {
  using Element = typename Plan::Element;
  using Mma = ptx::Mma<16, 8, 16, Element, Element, float>;
  using Parameters = WgradParameters<typename Epilogue::Parameters>;
  static constexpr int kWarps = Plan::kTaps * Plan::kGroups;
  static constexpr int kThreads = 32 * kWarps;
  using Lines = ImageLines<Element, Plan::kRows, Plan::kPositions, Plan::kTaps, Plan::kStep, Plan::kLine, kThreads>;
  using Block = typename Lines::Block;
  using Quad = Vector<float, 4>;
  static constexpr int kBytes = 2;
  static constexpr int kTilesM = Plan::kTileM / 16;
  static constexpr int kTilesN = Plan::kRowK / 8;
  /// Pairs of tiles along N share loads: the first has the even elements of 16, the second the odd ones.
  static constexpr int kPairs = Lines::kPairsAreAligned ? kTilesN / 2 : 0;
  static constexpr int kQuads = Plan::kTaps * kTilesM * kTilesN * 32;  // of the sums of a tile of D
  static constexpr int kGradientBytes = Plan::kRows * Plan::kPositions * Plan::kGradientLine;
  static_assert(sizeof(Element) == kBytes && Plan::kTileM % 16 == 0 && Plan::kRowK % 8 == 0);
  static_assert(Plan::kPositions % 16 == 0 && Plan::kGradientLine >= Plan::kTileM * kBytes);
  using Sums = float[kTilesM][kTilesN][4];

  struct Fragments {
    uint32_t gradient[kTilesM][4];
    uint32_t window[kTilesN][2];
  };

 public:
  __device__ __forceinline__ explicit StemWgrad(const Parameters& parameters)
      : parameters_(parameters),
        lines_(parameters.matrix, parameters.images),
        lane_(static_cast<int>(threadIdx.x) % 32),
        warp_(static_cast<int>(threadIdx.x) / 32) {
    const int cta = static_cast<int>(blockIdx.x);
    parts_ = static_cast<int>(gridDim.x) / parameters.tiles;
    part_ = cta / parameters.tiles;
    tile_ = cta - part_ * parameters.tiles;
    row_ = warp_ % Plan::kTaps;
    group_ = warp_ / Plan::kTaps;
  }

  __device__ __forceinline__ void run() const {
    extern __shared__ __align__(16) unsigned char shared_memory[];
    const uint32_t buffers = ptx::shared_address(shared_memory);
    const uint32_t buffer_bytes = kGradientBytes + lines_.bytes();
    const PartSums<kQuads, kWarps> parts(parameters_.workspace + Plan::kPartsFrom,
                                         parameters_.workspace + Plan::kBarrier, parameters_.tiles, Plan::kGroups);
    Sums sums = {};
    uint32_t buffer = 0;
    int block = part_;
    if (block < parameters_.blocks) copy(lines_.block(block), buffers);
    ptx::cp_async_commit();
#pragma unroll 1
    for (; block < parameters_.blocks; block += parts_) {
      if (block + parts_ < parameters_.blocks) copy(lines_.block(block + parts_), buffers + (buffer_bytes - buffer));
      ptx::cp_async_commit();
      ptx::cp_async_wait<1>();
      __syncthreads();  // this block has arrived
      add_block(sums, lines_.block(block), buffers + buffer);
      __syncthreads();  // this block has been read: the next copy may overwrite it
      buffer = buffer_bytes - buffer;
    }
    ptx::cp_async_wait<0>();
#pragma unroll
    for (int i = 0; i < kTilesM * kTilesN; ++i)
      parts.put(sums[i / kTilesN][i % kTilesN], group_, (row_ * kTilesM * kTilesN + i) * 32 + lane_);
    parts.share(buffers, [this](const Quad& sum, int quad) { store(sum, quad); });
  }

 private:
  __device__ __forceinline__ const Im2colMatrix<false>& matrix() const { return parameters_.matrix; }

  /// Begins to copy the gradient and the lines of a block. The gradient is zero outside the output.
  __device__ __forceinline__ void copy(const Block& block, uint32_t to) const {
    constexpr int kVectors = Plan::kTileM / 8;
    const auto* const gradient = static_cast<const Element*>(parameters_.gradient);
    const int positions = matrix().w.positions, first_filter = tile_ * Plan::kTileM;
#pragma unroll 4
    for (int i = ptx::thread(); i < Plan::kRows * Plan::kPositions * kVectors; i += kThreads) {
      const int pixel = i / kVectors, filter = first_filter + (i - pixel * kVectors) * 8;
      const int row = block.first_row + pixel / Plan::kPositions;
      const int position = block.first_position + pixel % Plan::kPositions;
      const bool is_inside = row < matrix().h.positions && position < positions && filter < parameters_.filters;
      const int64_t number = static_cast<int64_t>(block.image * matrix().h.positions + row) * positions + position;
      const Element* const from = is_inside ? gradient + number * parameters_.pitch + filter : gradient;
      ptx::cp_async_zfill<16>(to + static_cast<uint32_t>(pixel * Plan::kGradientLine + i % kVectors * 16), from,
                              is_inside ? 16 : 0);
    }
    lines_.copy(block, to + kGradientBytes, true);
  }

  /// Adds the products of this warp's rows of a block.
  __device__ __forceinline__ void add_block(Sums& sums, const Block& block, uint32_t from) const {
    const int positions = minimum(Plan::kPositions, matrix().w.positions - block.first_position);
    const uint32_t lines = from + kGradientBytes;
#pragma unroll 1
    for (int row = group_; row < Plan::kRows && block.first_row + row < matrix().h.positions; row += Plan::kGroups) {
      const int line = row * matrix().h.step + row_, y = block.first_y + line;
      if (static_cast<uint32_t>(y) >= static_cast<uint32_t>(matrix().h.extent)) continue;
      const uint32_t gradient =
          from + Plan::fragment_place(lane_) + static_cast<uint32_t>(row * Plan::kPositions * Plan::kGradientLine);
      const int element = line * Plan::kLine + block.shift + lane_ % 4 * 2 * Plan::kStep;
      const uint32_t window = lines + static_cast<uint32_t>(element * kBytes);
      add_row(sums, gradient, window, positions);
    }
  }

  /// Adds the products of one output row. `gradient` is the address of this lane's row of the first fragment, `window`
  /// that of the window of this lane's first position.
  __device__ __forceinline__ void add_row(Sums& sums, uint32_t gradient, uint32_t window, int positions) const {
    const int steps = positions / 16;
    Fragments fragments[2];
    load(fragments[0], gradient, window, 0);
#pragma unroll 1
    for (int step = 0; step + 1 < steps; step += 2) {
      load(fragments[1], gradient, window, step + 1);
      multiply(sums, fragments[0]);
      // Behind the last position of a block there is shared memory, too, but what is loaded there is not used.
      load(fragments[0], gradient, window, minimum(step + 2, Plan::kPositions / 16 - 1));
      multiply(sums, fragments[1]);
    }
    if (steps % 2 != 0) multiply(sums, fragments[0]);
    if (positions % 16 != 0) {
      load(fragments[0], gradient, window, steps);
      // The gradient is zero behind the last position, but the pixels there may be infinities or NaNs.
      const int left = positions % 16 - lane_ % 4 * 2;
      const uint32_t mask[2] = {mask_of(left), mask_of(left - 8)};
#pragma unroll
      for (int j = 0; j < kTilesN; ++j) {
        fragments[0].window[j][0] &= mask[0];
        fragments[0].window[j][1] &= mask[1];
      }
      multiply(sums, fragments[0]);
    }
  }

  /// The mask of a register that holds two positions: it keeps the first `left` of them, which are before the end.
  static __device__ __forceinline__ uint32_t mask_of(int left) {
    return (left > 0 ? 0xffffU : 0U) | (left > 1 ? 0xffff0000U : 0U);
  }

  /// Loads the fragments of 16 positions.
  __device__ __forceinline__ void load(Fragments& fragments, uint32_t gradient, uint32_t window, int step) const {
    gradient += static_cast<uint32_t>(step * Plan::kFragmentStep);
#pragma unroll
    for (int i = 0; i < kTilesM; ++i)
      ptx::ldmatrix_x4<true>(fragments.gradient[i], gradient + static_cast<uint32_t>(i * Plan::kFragmentTile));
    window += static_cast<uint32_t>(step * 16 * Plan::kStep * kBytes);
    const int column = lane_ / 4;
#pragma unroll
    for (int half = 0; half < 2; ++half) {  // the first and the last 8 positions
      const uint32_t first = window + static_cast<uint32_t>(half * 8 * Plan::kStep * kBytes);
      const uint32_t second = first + Plan::kStep * kBytes;  // of the next position
#pragma unroll
      for (int pair = 0; pair < kPairs; ++pair) {
        const auto at = static_cast<uint32_t>((pair * 16 + column * 2) * kBytes);
        const uint32_t low = ptx::load_shared_b32(first + at), high = ptx::load_shared_b32(second + at);
        fragments.window[2 * pair][half] = ptx::permute_bytes(low, high, 0x5410);
        fragments.window[2 * pair + 1][half] = ptx::permute_bytes(low, high, 0x7632);
      }
#pragma unroll
      for (int j = 2 * kPairs; j < kTilesN; ++j) {
        const auto at = static_cast<uint32_t>((j * 8 + column) * kBytes);
        const uint32_t low = ptx::load_shared<uint16_t>(first + at), high = ptx::load_shared<uint16_t>(second + at);
        fragments.window[j][half] = low | high << 16;
      }
    }
  }

  static __device__ __forceinline__ void multiply(Sums& sums, const Fragments& fragments) {
#pragma unroll
    for (int i = 0; i < kTilesM; ++i) {
#pragma unroll
      for (int j = 0; j < kTilesN; ++j) Mma::fma(sums[i][j], fragments.gradient[i], fragments.window[j]);
    }
  }

  /// The element of a row of the window, from its lead on, that column `column` of tile `tile` along N has.
  static __device__ __forceinline__ int element_of(int tile, int column) {
    return tile < 2 * kPairs ? tile / 2 * 16 + column * 2 + tile % 2 : tile * 8 + column;
  }

  __device__ __forceinline__ void store(const Quad& sum, int quad) const {
    const int lane = quad % 32, number = quad / 32, tap = number / (kTilesM * kTilesN);
    const int tile_m = number / kTilesN % kTilesM, tile_n = number % kTilesN;
    const Im2colAxis &h = matrix().h, &w = matrix().w;
    const int channels = matrix().channels, row_elements = w.taps * channels;
    const int row = h.tap_step < 0 ? Plan::kTaps - 1 - tap : tap;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int filter = tile_ * Plan::kTileM + tile_m * 16 + lane / 4 + i / 2 * 8;
      int element = element_of(tile_n, lane % 4 * 2 + i % 2) - lines_.lead();
      if (filter >= parameters_.filters || static_cast<uint32_t>(element) >= static_cast<uint32_t>(row_elements))
        continue;
      if (w.tap_step < 0) element += (w.taps - 1 - 2 * matrix().by_channels.quotient(element)) * channels;
      const int column = row * row_elements + element;
      store_gradient<Plan, Epilogue>(parameters_, sum.element[i], 0, filter, column, Plan::kTaps * row_elements);
    }
  }

  const Parameters& parameters_;
  Lines lines_;
  int lane_, warp_;
  int parts_, part_, tile_;  // CTAs of a tile of filters, and which of them this one is
  int row_, group_;          // of this warp: a row of the window, and which rows of a block it takes
};

}  // namespace tilewright
