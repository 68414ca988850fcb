// Gradients of the filters of convolutions whose groups have few channels, on mma.sync. A CTA copies blocks of pixels
// of several adjacent groups, of the gradient of the output and of the images, to shared memory. A warp keeps the sums
// of some taps of one group, and loads fragments of both operands straight from these pixels. CTAs take blocks in turn,
// and then sum their parts.
#pragma once

#include "tilewright/conv/image_blocks.cuh"
#include "tilewright/conv/part_sums.cuh"
#include "tilewright/conv/wgrad_parameters.cuh"
#include "tilewright/ptx/mma_f16.cuh"
#include "tilewright/ptx/thread.cuh"

namespace tilewright {

/// A slab has the groups of a CTA; the tiles of D are slabs.
///
/// Plan: Element (of the images and the gradient), ElementC, ElementD; kRows and kPositions, the output rows of a block
/// and the adjacent positions of each of them; kGroups, the groups of a CTA; kChannels, a multiple of 8, and kFilters,
/// a multiple of 16, of a group; kTaps, and kTapsOfWarp of them for each of kUnits warps; kTeams, sets of warps that
/// take different rows of a block; kPixel and kGradientPixel, bytes from a pixel to the next in shared memory;
/// fragment_place(lane), kFragmentTile and kFragmentStep, byte offsets of the gradient's fragments; kBarrier and
/// kPartsFrom, offsets in the workspace. The values come from plan/group_wgrad.
template <class Plan, class Epilogue>
class GroupWgrad {
  using Element = typename Plan::Element;
  using Mma = ptx::Mma<16, 8, 16, Element, Element, float>;
  using Parameters = WgradParameters<typename Epilogue::Parameters>;
  static constexpr int kUnitsOfTeam = Plan::kGroups * Plan::kUnits;
  static constexpr int kWarps = kUnitsOfTeam * Plan::kTeams;
  static constexpr int kThreads = 32 * kWarps;
  using Pixels =
      ImageBlocks<Element, Plan::kRows, Plan::kPositions, Plan::kGroups * Plan::kChannels, Plan::kPixel, kWarps>;
  using Block = typename Pixels::Block;
  static constexpr int kTilesM = Plan::kFilters / 16;
  static constexpr int kChannelOctets = Plan::kChannels / 8;
  static constexpr int kOctets = Plan::kTapsOfWarp * kChannelOctets;  // groups of 8 columns of a warp
  static constexpr int kPairs = (kOctets + 1) / 2;
  static constexpr int kQuads = kUnitsOfTeam * kTilesM * kOctets * 32;  // of the sums of a slab
  static constexpr int kGradientBytes = Plan::kRows * Plan::kPositions * Plan::kGradientPixel;
  static_assert(sizeof(Element) == 2 && Plan::kChannels % 8 == 0 && Plan::kFilters % 16 == 0);
  static_assert(Plan::kPositions % 16 == 0 && Plan::kUnits * Plan::kTapsOfWarp >= Plan::kTaps);
  using Sums = float[kTilesM][kOctets][4];
  using Parts = PartSums<kQuads, kWarps>;
  using Quad = typename Parts::Quad;

  struct Fragments {
    uint32_t gradient[kTilesM][4];
    uint32_t pixels[kPairs][4];  // two octets of columns, each in two registers
  };

 public:
  __device__ __forceinline__ explicit GroupWgrad(const Parameters& parameters)
      : parameters_(parameters),
        pixels_(parameters.matrix, parameters.images),
        lane_(static_cast<int>(threadIdx.x) % 32),
        warp_(static_cast<int>(threadIdx.x) / 32) {
    const int cta = static_cast<int>(blockIdx.x);
    parts_ = static_cast<int>(gridDim.x) / parameters.tiles;
    part_ = cta / parameters.tiles;
    slab_ = cta - part_ * parameters.tiles;
    const int unit = warp_ / Plan::kGroups % Plan::kUnits;
#pragma unroll
    for (int j = 0; j < kPairs; ++j) {
      const int octet = minimum(2 * j + lane_ / 16, kOctets - 1);
      const int tap = minimum(unit * Plan::kTapsOfWarp + octet / kChannelOctets, Plan::kTaps - 1);
      offsets_[j] = pixels_.tap_offset(tap) + static_cast<uint32_t>(octet % kChannelOctets * 16);
    }
  }

  __device__ __forceinline__ void run() const {
    extern __shared__ __align__(16) unsigned char shared_memory[];
    const uint32_t buffers = ptx::shared_address(shared_memory);
    const uint32_t buffer_bytes = kGradientBytes + pixels_.bytes();
    const Parts parts(parameters_.workspace + Plan::kPartsFrom, parameters_.workspace + Plan::kBarrier,
                      parameters_.tiles, Plan::kTeams);
    Sums sums = {};
    uint32_t buffer = 0;
    Block block{};
    if (part_ < parameters_.blocks) {  // an empty output has no blocks
      block = pixels_.block(part_);
      copy(block, buffers);
    }
    ptx::cp_async_commit();
#pragma unroll 1
    for (int number = part_; number < parameters_.blocks; number += parts_) {
      const Block next = pixels_.block(number + parts_);
      if (number + parts_ < parameters_.blocks) copy(next, buffers + (buffer_bytes - buffer));
      ptx::cp_async_commit();
      ptx::cp_async_wait<1>();
      __syncthreads();  // this block has arrived
      add_block(sums, block, buffers + buffer);
      __syncthreads();  // this block has been read: the next copy may overwrite it
      buffer = buffer_bytes - buffer;
      block = next;
    }
    ptx::cp_async_wait<0>();
    const int first = warp_ % kUnitsOfTeam * kTilesM * kOctets * 32 + lane_;
#pragma unroll
    for (int i = 0; i < kTilesM * kOctets; ++i)
      parts.put(sums[i / kOctets][i % kOctets], warp_ / kUnitsOfTeam, first + i * 32);
    parts.share(buffers, [this](const Quad& sum, int quad) { store(sum, quad); });
  }

 private:
  __device__ __forceinline__ const Im2colMatrix<false>& matrix() const { return parameters_.matrix; }

  /// Begins to copy the pixels of a block; each warp copies some lines. The gradient is zero outside the output.
  __device__ __forceinline__ void copy(const Block& block, uint32_t to) const {
    constexpr int kSlabFilters = Plan::kGroups * Plan::kFilters;
    const auto* const gradient = static_cast<const Element*>(parameters_.gradient) + slab_ * kSlabFilters;
    const int left = matrix().w.positions - block.first_position;
#pragma unroll 1
    for (int line = warp_; line < Plan::kRows + pixels_.lines(); line += kWarps) {
      if (line >= Plan::kRows) {
        pixels_.copy_line(block, line - Plan::kRows, slab_ * Plan::kGroups * Plan::kChannels, to + kGradientBytes,
                          true);
        continue;
      }
      const int row = block.first_row + line;
      const int64_t pixel =
          static_cast<int64_t>(block.image * matrix().h.positions + row) * matrix().w.positions + block.first_position;
      copy_pixel_line<kSlabFilters / 8, Plan::kGradientPixel>(
          gradient + pixel * parameters_.pitch, parameters_.pitch, Plan::kPositions, 0,
          row < matrix().h.positions ? left : 0,
          to + static_cast<uint32_t>(line * Plan::kPositions * Plan::kGradientPixel));
    }
  }

  /// Adds the products of this warp's rows of a block.
  __device__ __forceinline__ void add_block(Sums& sums, const Block& block, uint32_t from) const {
    const int positions = minimum(Plan::kPositions, matrix().w.positions - block.first_position);
    const int group = warp_ % Plan::kGroups;
#pragma unroll 1
    for (int row = warp_ / kUnitsOfTeam; row < Plan::kRows; row += Plan::kTeams) {
      if (block.first_row + row >= matrix().h.positions) break;
      uint32_t gradient =
          from + Plan::fragment_place(lane_) +
          static_cast<uint32_t>(row * Plan::kPositions * Plan::kGradientPixel + group * Plan::kFilters * 2);
      uint32_t window = from + kGradientBytes + pixels_.window_offset(row, lane_ % 16) +
                        static_cast<uint32_t>(group * Plan::kChannels * 2);
      const uint32_t window_step = pixels_.window_offset(0, 16);
#pragma unroll 1
      for (int left = positions; left > 0; left -= 16) {
        Fragments fragments;
        load(fragments, gradient, window);
        if (left < 16) mask(fragments, left);
        multiply(sums, fragments);
        gradient += Plan::kFragmentStep;
        window += window_step;
      }
    }
  }

  __device__ __forceinline__ void load(Fragments& fragments, uint32_t gradient, uint32_t window) const {
#pragma unroll
    for (int i = 0; i < kTilesM; ++i)
      ptx::ldmatrix_x4<true>(fragments.gradient[i], gradient + static_cast<uint32_t>(i * Plan::kFragmentTile));
#pragma unroll
    for (int j = 0; j < kPairs; ++j) ptx::ldmatrix_x4<true>(fragments.pixels[j], window + offsets_[j]);
  }

  /// The gradient is zero behind the last of `left` positions, but the pixels there may be infinities or NaNs.
  __device__ __forceinline__ void mask(Fragments& fragments, int left) const {
    const int left_of_lane = left - lane_ % 4 * 2;
    const uint32_t first = mask_of(left_of_lane), second = mask_of(left_of_lane - 8);
#pragma unroll
    for (int j = 0; j < kPairs; ++j) {
#pragma unroll
      for (int i = 0; i < 4; ++i) fragments.pixels[j][i] &= i % 2 == 0 ? first : second;
    }
  }

  /// The mask of a register that holds two positions: it keeps the first `left` of them, which are before the end.
  static __device__ __forceinline__ uint32_t mask_of(int left) {
    return (left > 0 ? 0xffffU : 0U) | (left > 1 ? 0xffff0000U : 0U);
  }

  static __device__ __forceinline__ void multiply(Sums& sums, const Fragments& fragments) {
#pragma unroll
    for (int j = 0; j < kOctets; ++j) {
      const uint32_t b[2] = {fragments.pixels[j / 2][j % 2 * 2], fragments.pixels[j / 2][j % 2 * 2 + 1]};
#pragma unroll
      for (int i = 0; i < kTilesM; ++i) Mma::fma(sums[i][j], fragments.gradient[i], b);
    }
  }

  __device__ __forceinline__ void store(const Quad& sum, int quad) const {
    const int lane = quad % 32, octet = quad / 32 % kOctets, tile = quad / (32 * kOctets) % kTilesM;
    const int unit_of_team = quad / (32 * kOctets * kTilesM);  // the warp's number in its team
    const int group = slab_ * Plan::kGroups + unit_of_team % Plan::kGroups;
    const int tap = unit_of_team / Plan::kGroups * Plan::kTapsOfWarp + octet / kChannelOctets;
    if (tap >= Plan::kTaps) return;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int filter = tile * 16 + lane / 4 + i / 2 * 8;
      const int column = tap * Plan::kChannels + octet % kChannelOctets * 8 + lane % 4 * 2 + i % 2;
      store_gradient<Plan, Epilogue>(parameters_, sum.element[i], group, filter, column, Plan::kTaps * Plan::kChannels);
    }
  }

  const Parameters& parameters_;
  Pixels pixels_;
  int lane_, warp_;
  int parts_, part_, slab_;   // CTAs of a slab, and which of them this one is
  uint32_t offsets_[kPairs];  // of this lane's row of each pair of octets, from the window of a position
};

}  // namespace tilewright
