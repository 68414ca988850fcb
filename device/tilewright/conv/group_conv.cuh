// Convolutions that have few channels, or whose groups have, and the gradients of their inputs, on mma.sync. A CTA
// computes several adjacent groups, so that it copies pixels with enough adjacent channels: it keeps the filters of its
// groups in shared memory, and takes one block of output pixels after another. A warp multiplies pixels by the filters
// of one group, and loads fragments straight from the pixels in shared memory: no im2col matrix is formed.
#pragma once

#include "tilewright/conv/image_blocks.cuh"
#include "tilewright/epilogue/output_tile.cuh"
#include "tilewright/gemm/parameters.cuh"
#include "tilewright/operand/im2col_matrix.cuh"
#include "tilewright/ptx/cp_async.cuh"
#include "tilewright/ptx/global.cuh"
#include "tilewright/ptx/mma_f16.cuh"
#include "tilewright/ptx/shared.cuh"
#include "tilewright/ptx/thread.cuh"
#include "tilewright/scheduler/tile_origin.cuh"
#include "tilewright/types.cuh"

namespace tilewright {

/// Plan: Element (of the images and the filters); MatrixB, a StridedMatrix whose filters are contiguous, or the
/// Im2colMatrix of the filter of dgrad; kWarps; kRows and kPositions, the output rows of a block and the adjacent
/// positions of each of them; kWarpTiles, the tiles of 16 positions that a warp multiplies at a time; kGroups, the
/// groups of a CTA; kChannels, the channels of a group, a multiple of 8; kTileN, the filters of a group, filled up to a
/// multiple of 16, or some of them if a CTA has one group; kOctets, groups of 8 elements along K; kSteps, steps of 16;
/// kPixel, bytes from a pixel to the next in shared memory; kFilterLine, bytes of a filter; filter_place(filter),
/// fragment_place(lane) and kFragmentPair, byte offsets in the filters of a group; kLaneColumns, adjacent columns of D
/// that a lane has; and the members that OutputTile uses. The values come from plan/group_conv.
template <class Plan, class Epilogue>
class GroupConv {
  using Element = typename Plan::Element;
  using Mma = ptx::Mma<16, 8, 16, Element, Element, float>;
  using Parameters =
      GemmParameters<typename Epilogue::Parameters, NoGroups, Im2colMatrix<false>, typename Plan::MatrixB>;
  using Output = OutputTile<Plan, Epilogue, Parameters>;
  using Pixels =
      ImageBlocks<Element, Plan::kRows, Plan::kPositions, Plan::kGroups * Plan::kChannels, Plan::kPixel, Plan::kWarps>;
  using Block = typename Pixels::Block;
  static constexpr int kThreads = 32 * Plan::kWarps;
  static constexpr int kBytes = 2;
  static constexpr int kTilesN = Plan::kTileN / 8;
  static constexpr int kChannelOctets = Plan::kChannels / 8;
  static constexpr int kTilesOfRow = Plan::kPositions / 16;
  static constexpr int kTiles = Plan::kRows * kTilesOfRow;               // of a block
  static constexpr int kTeams = Plan::kWarps / Plan::kGroups;            // warps of a group
  static constexpr int kFilterBytes = Plan::kTileN * Plan::kFilterLine;  // of a group
  static constexpr int kTableBytes = Plan::kSteps * 8;
  static constexpr int kLinesFrom = (Plan::kGroups * kFilterBytes + kTableBytes + 15) / 16 * 16;
  static_assert(sizeof(Element) == kBytes && Plan::kChannels % 8 == 0 && Plan::kTileN % 16 == 0);
  static_assert(Plan::kWarps % Plan::kGroups == 0 && Plan::kPositions % 16 == 0);

 public:
  __device__ __forceinline__ explicit GroupConv(const Parameters& parameters)
      : parameters_(parameters),
        pixels_(matrix_of(parameters.matrix_a), parameters.a),
        lane_(static_cast<int>(threadIdx.x) % 32),
        warp_(static_cast<int>(threadIdx.x) / 32),
        reads_product_(parameters.k > 0) {}

  __device__ __forceinline__ void run() const {
    extern __shared__ __align__(16) unsigned char shared_memory[];
    const uint32_t filters = ptx::shared_address(shared_memory), lines = filters + kLinesFrom;
    const uint32_t buffer_bytes = pixels_.bytes();
    // A slab has the channels of kGroups groups, and kTileN filters of each.
    const int tiles_n = Plan::kGroups > 1 ? 1 : ceil_div(parameters_.n, Plan::kTileN);
    const int slabs = static_cast<int>(parameters_.batch) / Plan::kGroups * tiles_n;
    const int cta = static_cast<int>(blockIdx.x), step = static_cast<int>(gridDim.x) / slabs;
    const int slab = cta % slabs, first_group = slab / tiles_n * Plan::kGroups;
    const int first_filter = slab % tiles_n * Plan::kTileN;
    const int blocks = parameters_.m / (matrix().h.positions * matrix().w.positions) * pixels_.blocks_of_image();
    Block block = pixels_.block(cta / slabs);
    uint32_t buffer = 0;
    pixels_.copy(block, first_group * Plan::kChannels, lines, reads_product_);
    write_table(filters + Plan::kGroups * kFilterBytes);
    load_filters(filters, first_group, first_filter);
    ptx::cp_async_commit();
#pragma unroll 1
    for (int number = cta / slabs; number < blocks; number += step) {
      const Block next = pixels_.block(number + step);
      if (number + step < blocks)
        pixels_.copy(next, first_group * Plan::kChannels, lines + (buffer_bytes - buffer), reads_product_);
      ptx::cp_async_commit();
      ptx::cp_async_wait<1>();
      __syncthreads();  // this block's pixels have arrived, and at first the filters
      compute(block, lines + buffer, filters, first_group, first_filter);
      __syncthreads();  // the pixels have been read: the next copy may overwrite them
      buffer = buffer_bytes - buffer;
      block = next;
    }
    ptx::cp_async_wait<0>();
  }

 private:
  __device__ __forceinline__ const Im2colMatrix<false>& matrix() const { return matrix_of(parameters_.matrix_a); }

  /// Writes the offset of each 8 elements along K from the first pixel of a window.
  __device__ __forceinline__ void write_table(uint32_t table) const {
#pragma unroll 1
    for (int octet = ptx::thread(); octet < 2 * Plan::kSteps; octet += kThreads) {
      const uint32_t offset = pixels_.tap_offset(octet / kChannelOctets) + octet % kChannelOctets * 16;
      ptx::store_shared(table + static_cast<uint32_t>(octet * 4), octet < Plan::kOctets ? offset : 0U);
    }
  }

  /// Copies the filters of the CTA's groups to lines along K, with zeros where they are filled up.
  __device__ __forceinline__ void load_filters(uint32_t filters, int first_group, int first_filter) const {
    const auto* const all = static_cast<const Element*>(parameters_.b);
    if constexpr (is_same<typename Plan::MatrixB, StridedMatrix>) {
      constexpr int kVectors = 2 * Plan::kSteps;
#pragma unroll 4
      for (int i = ptx::thread(); i < Plan::kGroups * Plan::kTileN * kVectors; i += kThreads) {
        const int octet = i % kVectors, filter = i / kVectors % Plan::kTileN, group = i / (kVectors * Plan::kTileN);
        const bool is_inside = reads_product_ && octet < Plan::kOctets && first_filter + filter < parameters_.n;
        const Element* const from = all + (first_group + group) * parameters_.batch_stride_b +
                                    (first_filter + filter) * parameters_.ldb + octet * 8;
        const auto to = static_cast<uint32_t>(group * kFilterBytes + octet * 16) + Plan::filter_place(filter);
        ptx::cp_async_zfill<16>(filters + to, is_inside ? from : all, is_inside ? 16 : 0);
      }
    } else {
      const Im2colMatrix<false>& matrix = matrix_of(parameters_.matrix_b);
      constexpr int kK = 16 * Plan::kSteps, kVectors = Plan::kTileN / 8;
#pragma unroll 4
      for (int i = ptx::thread(); i < Plan::kGroups * kK * kVectors; i += kThreads) {
        const int first = i % kVectors * 8, k = i / kVectors % kK, group = i / (kVectors * kK);
        const int tap = k / Plan::kChannels, row = tap / matrix.h.positions;
        const bool is_inside = reads_product_ && k < 8 * Plan::kOctets && first_filter + first < parameters_.n;
        Vector<Element, 8> filter{};
        if (is_inside) {
          filter = ptx::load_global<Vector<Element, 8>>(reinterpret_cast<const char*>(
              all + (first_group + group) * parameters_.batch_stride_b + row * matrix.image_stride +
              (tap - row * matrix.h.positions) * matrix.h.stride + k % Plan::kChannels * matrix.w.stride +
              first_filter + first));
        }
#pragma unroll
        for (int j = 0; j < 8; ++j) {
          ptx::store_shared(
              filters + static_cast<uint32_t>(group * kFilterBytes + k * kBytes) + Plan::filter_place(first + j),
              filter.element[j]);
        }
      }
    }
  }

  /// The warps of a group take its tiles in turn.
  __device__ __forceinline__ void compute(const Block& block, uint32_t lines, uint32_t filters, int first_group,
                                          int first_filter) const {
    const int group = warp_ % Plan::kGroups;
    const uint32_t table = filters + static_cast<uint32_t>(Plan::kGroups * kFilterBytes + lane_ / 16 * 4);
    const uint32_t fragments = filters + static_cast<uint32_t>(group * kFilterBytes) + Plan::fragment_place(lane_);
    lines += static_cast<uint32_t>(group * Plan::kChannels * kBytes);
    const Output output(parameters_, TileOrigin{0, first_filter, first_group + group});
#pragma unroll 1
    for (int tile = warp_ / Plan::kGroups * Plan::kWarpTiles; tile < kTiles; tile += kTeams * Plan::kWarpTiles) {
      if (block.first_row + tile / kTilesOfRow >= matrix().h.positions) break;
      compute_tiles(block, lines, table, fragments, tile, output, first_filter);
    }
  }

  struct Fragments {
    uint32_t a[Plan::kWarpTiles][4];
    uint32_t b[kTilesN][2];
  };

  /// Computes kWarpTiles tiles from number `tile` on. Behind the last tile there is memory of the next line or buffer;
  /// what is loaded there is not stored.
  __device__ __forceinline__ void compute_tiles(const Block& block, uint32_t lines, uint32_t table, uint32_t filters,
                                                int tile, const Output& output, int first_filter) const {
    constexpr int kUnroll = Plan::kSteps <= 18 ? Plan::kSteps : 4;
    uint32_t windows[Plan::kWarpTiles];
#pragma unroll
    for (int i = 0; i < Plan::kWarpTiles; ++i) {
      const int number = minimum(tile + i, kTiles - 1), row = number / kTilesOfRow;
      const int position = number % kTilesOfRow * 16 + lane_ % 16;
      windows[i] = lines + pixels_.window_offset(row, position);
    }
    float accumulators[Plan::kWarpTiles][kTilesN][4] = {};
#pragma unroll kUnroll
    for (int step = 0; step < Plan::kSteps; ++step) {
      Fragments fragments;
      load(fragments, windows, table, filters, step);
      if (Plan::kOctets % 2 != 0 && step == Plan::kSteps - 1) {
#pragma unroll
        for (int i = 0; i < Plan::kWarpTiles; ++i) fragments.a[i][2] = fragments.a[i][3] = 0;
      }
#pragma unroll
      for (int i = 0; i < Plan::kWarpTiles; ++i) {
#pragma unroll
        for (int j = 0; j < kTilesN; ++j) Mma::fma(accumulators[i][j], fragments.a[i], fragments.b[j]);
      }
    }
    store(accumulators, block, tile, output, first_filter);
  }

  __device__ __forceinline__ void load(Fragments& fragments, const uint32_t (&windows)[Plan::kWarpTiles],
                                       uint32_t table, uint32_t filters, int step) const {
    const uint32_t offset = ptx::load_shared_b32(table + static_cast<uint32_t>(step * 8));
#pragma unroll
    for (int i = 0; i < Plan::kWarpTiles; ++i) ptx::ldmatrix_x4<false>(fragments.a[i], windows[i] + offset);
#pragma unroll
    for (int j = 0; j < kTilesN; j += 2) {
      uint32_t matrices[4];
      ptx::ldmatrix_x4<false>(matrices, filters + static_cast<uint32_t>(j / 2 * Plan::kFragmentPair + step * 32));
      fragments.b[j][0] = matrices[0];
      fragments.b[j][1] = matrices[1];
      fragments.b[j + 1][0] = matrices[2];
      fragments.b[j + 1][1] = matrices[3];
    }
  }

  /// The filters are placed such that each lane has kLaneColumns adjacent columns of every four times as many.
  __device__ __forceinline__ void store(const float (&accumulators)[Plan::kWarpTiles][kTilesN][4], const Block& block,
                                        int tile, const Output& output, int first_filter) const {
    constexpr int kColumns = Plan::kLaneColumns;
    const auto reductions = Output::template reductions<1, kThreads>(parameters_, 0);  // there are none
#pragma unroll
    for (int i = 0; i < Plan::kWarpTiles * 2; ++i) {
      const int number = tile + i / 2, row = block.first_row + number / kTilesOfRow;
      const int position = block.first_position + number % kTilesOfRow * 16 + i % 2 * 8 + lane_ / 4;
      if (number >= kTiles || row >= matrix().h.positions || position >= matrix().w.positions) continue;
      const int pixel = (block.image * matrix().h.positions + row) * matrix().w.positions + position;
#pragma unroll
      for (int v = 0; v < Plan::kTileN / (4 * kColumns); ++v) {
        const int column = first_filter + (v * 4 + lane_ % 4) * kColumns;
        if (column >= parameters_.n) continue;
        float values[kColumns];
#pragma unroll
        for (int j = 0; j < kColumns; ++j)
          values[j] = accumulators[i / 2][v * (kColumns / 2) + j / 2][i % 2 * 2 + j % 2];
        output.store(pixel, column, values, reductions, 0, column - first_filter);
      }
    }
  }

  const Parameters& parameters_;
  Pixels pixels_;
  int lane_, warp_;
  bool reads_product_;
};

}  // namespace tilewright
