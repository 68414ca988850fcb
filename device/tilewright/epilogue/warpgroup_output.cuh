// Stores accumulators of wgmma to D, one epilogue subtile at a time. The epilogue is applied in registers, the results
// are stored to a swizzled shared-memory buffer, and TMA stores the buffer to D while the next subtile or the next tile
// is computed. If D's lines do not begin and end at multiples of 16 bytes, plain stores of whole lines replace TMA, and
// if D is folded, plain stores of vectors. C is loaded into the same buffers first.
#pragma once

#include "tilewright/epilogue/epilogue_tensor.cuh"
#include "tilewright/epilogue/fragment_reductions.cuh"
#include "tilewright/epilogue/line_store.cuh"
#include "tilewright/epilogue/output_panel.cuh"
#include "tilewright/epilogue/source_buffers.cuh"
#include "tilewright/epilogue/staged_vectors.cuh"
#include "tilewright/epilogue/tma_output.cuh"
#include "tilewright/numeric/convert.cuh"
#include "tilewright/operand/folded_matrix.cuh"
#include "tilewright/operand/global_matrix.cuh"
#include "tilewright/operand/matrix_of_batch.cuh"
#include "tilewright/operand/pixel_output.cuh"
#include "tilewright/operand/tap_columns.cuh"
#include "tilewright/operand/tma_im2col.cuh"
#include "tilewright/operand/tma_matrix.cuh"
#include "tilewright/ptx/shared.cuh"
#include "tilewright/ptx/tma.cuh"
#include "tilewright/ptx/warpgroup.cuh"
#include "tilewright/types.cuh"

namespace tilewright {

/// A warpgroup has kAtoms * 64 rows. Plan: ElementD, Output (TmaMatrix, TmaIm2colClasses, GlobalMatrix, FoldedOutput,
/// PixelOutput or TapColumns), kDIsRowMajor, kDIsPointerArray, kAccumulatesInHalf, AccumulatorTile, kTileN, PanelOfD,
/// kPanelColumns, kSubtilePanels (panels per subtile), kStoreBytes (which divides the length of D's lines in bytes),
/// kTmaOutputs and kTmaOutputBytes (the number of other outputs that TMA stores, and the bytes of their parts of a
/// buffer), kReductionCounters (an offset in the workspace), and the members that SourceBuffers uses. Parameters of the
/// kernel: c, d, outputs, m, n, batches, batch_step_c, workspace, reduction_parts, epilogue; with groups also groups.
/// Tile is the scheduler's. A subtile that lies partly behind the end of its group is stored with plain stores, because
/// TMA would overwrite the next group.
template <class Plan, class Epilogue, class Parameters, int kAtoms, class Tile>
class WarpgroupOutput {
  using C = typename Plan::ElementC;
  using D = typename Plan::ElementD;
  using Compute = typename Epilogue::Compute;
  using Panel = OutputPanel<D, typename Plan::PanelOfD, Plan::kDIsRowMajor>;
  using Source = SourceBuffers<Plan>;
  using Rows = typename Plan::AccumulatorTile;
  using Vectors = StagedVectors<Epilogue, kAtoms * 64, Plan::kTileN>;
  using Reductions = FragmentReductions<Epilogue, Rows, kAtoms, Plan::kTileN, Tile>;
  using OtherOutputs = TmaOutputBuffer<Plan>;
  using Place = StagedPlace<Vectors, Reductions, OtherOutputs>;
  static constexpr int kThreads = 128;
  static constexpr int kBuffers = Source::kBuffers;
  static constexpr int kBytesOfD = maximum(Plan::kSubtilePanels * Panel::kBytes, Source::kBufferBytes);  // and of C
  static constexpr int kPanelsBytes = Plan::kTmaOutputs == 0 ? kBytesOfD : OtherOutputs::part(kBytesOfD);
  static constexpr int kBufferBytes = kPanelsBytes + Plan::kTmaOutputBytes;
  static constexpr int kSubtileColumns = Plan::kSubtilePanels * Plan::kPanelColumns;
  static constexpr int kPerElement = Epilogue::kColumnsPerElement;
  static constexpr int kTileColumns = Plan::kTileN / kPerElement;            // of D
  static constexpr int kSubtiles = ceil_div(kTileColumns, kSubtileColumns);  // of buffers, for 64 rows
  static_assert(kTileColumns % Plan::kPanelColumns == 0, "panels cover the columns");
  static_assert(kPerElement == 1 || !Epilogue::kReadsSource, "an epilogue that pairs columns reads no C");
  static constexpr bool kHasClasses = kIsTmaIm2col<typename Plan::Output>;  // of rows; see ClassTiles
  static constexpr bool kByTma = is_same<typename Plan::Output, TmaMatrix> || kHasClasses;
  static constexpr int kLaneRows = Rows::kLaneRows;
  static constexpr int kOtherRow = Rows::kOtherRow;
  static constexpr bool kPairsAreLines = kOtherRow == 1 && !Plan::kDIsRowMajor;
  static constexpr bool kHasGroups = Tile::kHasGroup;
  static_assert(!kHasGroups || (!Source::kByTma && Plan::kTmaOutputs == 0), "TMA knows no ends of groups");
  static_assert(!kHasClasses || (Plan::kDIsRowMajor && Plan::kTmaOutputs == 0), "the rows of D are pixels");

 public:
  static constexpr int kBytes = kBuffers * kBufferBytes;  // of the buffers of a warpgroup
  static constexpr int kStagingBytes = Vectors::kBytes + Reductions::kBytes;
  static constexpr int kBarrierBytes = kBuffers * ptx::kMbarrierBytes;

  /// Must be called by one thread of the CTA before any other use of `barriers`. ptx::fence_mbarrier_init and a barrier
  /// must follow.
  static __device__ __forceinline__ void initialise(uint32_t barriers) { Source::initialise(barriers); }

  /// `buffers`, `vectors` and `barriers` are shared addresses of kBytes, kStagingBytes and kBarrierBytes for each
  /// consumer warpgroup. `barrier` is this warpgroup's named barrier; the first consumer has number 1.
  __device__ __forceinline__ WarpgroupOutput(const Parameters& parameters, uint32_t buffers, uint32_t vectors,
                                             uint32_t barriers, int thread, int barrier)
      : parameters_(parameters),
        buffers_(buffers),
        vectors_(vectors),
        barriers_(barriers),
        thread_(thread),
        barrier_(barrier),
        reductions_(vectors + (barrier - 1) * kStagingBytes + Vectors::kBytes, thread) {}

  /// Must be called before a tile's mainloop, with the arguments of the next store(): issues the loads of C.
  __device__ __forceinline__ void begin(int row, int column, const Tile& tile) {
    vectors().bring(parameters_.epilogue, thread_, {row, column, tile.batch, end_m(tile), end_n(tile)});
    if constexpr (Source::kByTma) {
      if (!reads_source() || thread_ != 0) return;
      ptx::tma_store_wait_read<0>();
#pragma unroll
      for (int subtile = 0; subtile < minimum(kBuffers, kAtoms * kSubtiles); ++subtile)
        request(subtile, subtiles_ + subtile, row, column, tile.batch);
    }
  }

  /// Stores the warpgroup's rows from `row` on and kTileN columns from `column` on.
  template <class Accumulators>
  __device__ __forceinline__ void store(const Accumulators (&accumulators)[kAtoms], int row, int column,
                                        const Tile& tile) {
    // The vectors that begin() staged must be complete.
    if constexpr (Vectors::kBytes > 0) ptx::named_barrier(barrier_, kThreads);
    if constexpr (Epilogue::kReductions > 0) reductions_.begin(parameters_.epilogue);
    store_from<0>(accumulators, row, column, tile);
    if constexpr (Epilogue::kReductions > 0) {
      if (row >= end_m(tile) || column >= end_n(tile)) return;
      reductions_.end(parameters_.epilogue, parts(), {row, column, tile, 0}, end_n(tile), barrier());
    }
  }

  /// Must be called before the CTA ends: ends the reductions and waits until the stores have read shared memory.
  __device__ __forceinline__ void finish() {
    if constexpr (Epilogue::kReductions > 0) reductions_.finish(parts(), barrier());
    if constexpr (kByTma) {
      if (thread_ == 0) ptx::tma_store_wait_read<0>();
    }
  }

 private:
  __device__ __forceinline__ int end_m(const Tile& tile) const { return tile.end_m(parameters_.m); }
  __device__ __forceinline__ int end_n(const Tile& tile) const { return tile.end_n(parameters_.n); }

  /// A barrier of the warpgroup.
  __device__ __forceinline__ auto barrier() const {
    return [this] { ptx::named_barrier(barrier_, kThreads); };
  }

  // These values are recomputed at each use, which costs less than the registers to keep them.
  __device__ __forceinline__ bool reads_source() const {
    return Epilogue::kReadsSource && Epilogue::reads_source(parameters_.epilogue);
  }
  __device__ __forceinline__ uint32_t buffer(uint32_t use) const {
    return buffers_ + (barrier_ - 1) * kBytes + use % kBuffers * kBufferBytes;
  }
  __device__ __forceinline__ Vectors vectors() const { return Vectors(vectors_ + (barrier_ - 1) * kStagingBytes); }
  __device__ __forceinline__ typename Reductions::Parts parts() const {
    return {parameters_.epilogue,
            parameters_.workspace + Plan::kReductionCounters,
            parameters_.workspace + parameters_.reduction_parts,
            parameters_.m,
            parameters_.n,
            parameters_.batches,
            vectors_ + (barrier_ - 1) * kStagingBytes + Vectors::kBytes + Reductions::kPartsFrom,
            thread_};
  }
  __device__ __forceinline__ Source source() const { return Source(barriers_ + (barrier_ - 1) * kBarrierBytes); }

  /// Groups of 8 columns that are stored together: stmatrix.x4 takes two.
  static constexpr bool kByMatrices = sizeof(D) == 2 && !kPairsAreLines;
  static constexpr int kGroups = kByMatrices && Plan::kPanelColumns % 16 == 0 ? 2 : 1;
  static_assert(Plan::kPanelColumns % (8 * kGroups) == 0, "a panel is whole stores");

  /// Stores the subtiles from number kSubtile on. This is a recursion because accumulators are registers, which a loop
  /// that the compiler does not unroll would index in memory.
  template <int kSubtile, class Accumulators>
  __device__ __forceinline__ void store_from(const Accumulators (&accumulators)[kAtoms], int row, int column,
                                             const Tile& tile) {
    if constexpr (kSubtile < kAtoms * kSubtiles) {
      constexpr int kFirst = kSubtile % kSubtiles * kSubtileColumns;  // column of D's tile
      constexpr int kColumns = minimum(kSubtileColumns, kTileColumns - kFirst);
      const int first_row = row + kSubtile / kSubtiles * 64;
      if (first_row >= end_m(tile)) return;
      if constexpr (Epilogue::kRowResults > 0 && kSubtile % kSubtiles == 0)
        reductions_.begin_rows(parameters_.epilogue);
      const uint32_t buffer = this->buffer(subtiles_);
      const int first_column = column + kFirst * kPerElement;
      // Reductions leave out the elements outside D. Without their comparisons, a subtile inside D takes less: absmax
      // of e4m3 10368x29504x16 took 319 us with them and 270 us without (H200, 2026-11-26).
      if (Epilogue::kReductions > 0 && first_row + 64 <= end_m(tile) &&
          first_column + kColumns * kPerElement <= end_n(tile)) {
        compute_subtile<kSubtile, true>(accumulators[kSubtile / kSubtiles], buffer, first_row, first_column, tile);
      } else {
        compute_subtile<kSubtile, false>(accumulators[kSubtile / kSubtiles], buffer, first_row, first_column, tile);
      }
      if constexpr (kByTma) ptx::fence_proxy_async();
      ptx::named_barrier(barrier_, kThreads);
      ++subtiles_;
      const bool by_tma = kByTma && is_whole<kColumns * kPerElement>(first_row, column + kFirst * kPerElement, tile);
      if (!by_tma || thread_ == 0) {
        if constexpr (Source::kByTma && kSubtile + 1 >= kBuffers && kSubtile + 1 < kAtoms * kSubtiles) {
          if (reads_source()) {
            ptx::tma_store_wait_read<0>();
            request(kSubtile + 1, subtiles_, row, column, tile.batch);
          }
        }
        send<kColumns / Plan::kPanelColumns>(by_tma, buffer, first_row, column / kPerElement + kFirst, tile);
      }
      if constexpr (Epilogue::kRowResults > 0 && kSubtile % kSubtiles == kSubtiles - 1) {
        if (column < end_n(tile))
          reductions_.end_rows(parameters_.epilogue, parts(), {row, column, tile, 0}, first_row, end_m(tile));
      }
      store_from<kSubtile + 1>(accumulators, row, column, tile);
    }
  }

  /// Whether the group has all rows and columns of the subtile at (row, column) of A*B, so that TMA may store it. TMA
  /// leaves out those behind the end of D.
  template <int kColumns>
  __device__ __forceinline__ bool is_whole(int row, int column, const Tile& tile) const {
    if constexpr (kHasGroups) {  // an end that is not the group's is that of D, which TMA knows
      return row + 64 <= tile.end_m(row + 64) && column + kColumns <= tile.end_n(column + kColumns);
    } else {
      return true;
    }
  }

  /// Waits until the buffer of the next subtile is no longer read.
  __device__ __forceinline__ void free_buffer() const {
    if constexpr (kByTma) {
      if (thread_ == 0) ptx::tma_store_wait_read<kBuffers - 1>();
    }
    ptx::named_barrier(barrier_, kThreads);
  }

  /// Must be called by one thread: issues the loads of C for subtile number `subtile` of the tile, to the buffer of
  /// subtile number `use` of all.
  __device__ __forceinline__ void request(int subtile, uint32_t use, int row, int column, int batch) const {
    const int first_row = row + subtile / kSubtiles * 64;
    if (first_row >= parameters_.m) return;
    source().request(parameters_.c, use, buffer(use), first_row, column + subtile % kSubtiles * kSubtileColumns,
                     batch * parameters_.batch_step_c);
  }

  /// Waits until TMA has loaded this subtile's part of C to `buffer`, or loads it there with plain loads.
  __device__ __forceinline__ void bring_source(uint32_t buffer, int row, int column, const Tile& tile) const {
    if constexpr (Source::kByTma) {
      source().wait(subtiles_);
    } else {
      free_buffer();
      const GlobalMatrix& c = parameters_.c;
      source().copy({c.address, tile.ldc(c.ld), c.batch_stride}, end_m(tile), end_n(tile), buffer, thread_, row, column,
                    tile.batch);
      ptx::named_barrier(barrier_, kThreads);
    }
  }

  /// Applies the epilogue to subtile number kSubtile of the tile, which begins at (row, column) of A*B, and stores the
  /// result to `buffer`. If kIsInside, the whole subtile lies inside D.
  template <int kSubtile, bool kIsInside, class Accumulators>
  __device__ __forceinline__ void compute_subtile(const Accumulators& accumulators, uint32_t buffer, int row,
                                                  int column, const Tile& tile) {
    if (reads_source()) {
      bring_source(buffer, row, column, tile);
      compute<kSubtile, true, kIsInside>(accumulators, buffer, row, column, tile);
    } else {
      free_buffer();
      if constexpr (kPerElement == 2) {
        compute_pairs<kSubtile, kIsInside>(accumulators, buffer, row, column, tile);
      } else {
        compute<kSubtile, false, kIsInside>(accumulators, buffer, row, column, tile);
      }
    }
  }

  /// Applies the epilogue to subtile number kSubtile of the tile, which begins at (row, column) of D, and stores the
  /// result to `buffer`, which holds the subtile's part of C until then. If C and D have the same layout in the buffer,
  /// each thread overwrites the elements that it read itself; otherwise a barrier separates all reads from all writes.
  template <int kSubtile, bool kReads, bool kIsInside, class Accumulators>
  __device__ __forceinline__ void compute(const Accumulators& accumulators, uint32_t buffer, int row, int column,
                                          const Tile& tile) {
    constexpr int kFirst = kSubtile % kSubtiles * kSubtileColumns;  // column of the tile
    constexpr int kColumns = minimum(kSubtileColumns, Plan::kTileN - kFirst);
    constexpr bool kInPlace = kReads && sizeof(C) == sizeof(D);
    constexpr int kPiece = kReads && !kInPlace ? kColumns : 8 * kGroups;  // columns
#pragma unroll
    for (int piece = 0; piece < kColumns; piece += kPiece) {
      Vector<D, 2> out[kPiece / 4];
#pragma unroll
      for (int i = 0; i < kPiece / 4; ++i) {
        Vector<C, 2> read{};
        if constexpr (kReads) read = source().read(buffer, thread_, piece + i / 2 * 8, i % 2);
        Compute pair[2], source[2];
#pragma unroll
        for (int j = 0; j < 2; ++j) {
          pair[j] = convert<Compute>(element(accumulators, (kFirst + piece) / 2 + 2 * i + j));
          source[j] = kReads ? convert<Compute>(read.element[j]) : Compute(0);
        }
        Epilogue::apply(
            pair, source, parameters_.epilogue,
            place<kSubtile, kIsInside>(buffer, row, column, tile, i % 2, piece + i / 2 * 8 + Rows::column(thread_)));
        out[i] = convert_pair<D>(pair[0], pair[1]);
      }
      if constexpr (kReads && !kInPlace) ptx::named_barrier(barrier_, kThreads);
      stage<!kInPlace>(out, buffer, piece);
    }
  }

  /// The same for an epilogue that computes one element of D from two columns of A*B, which are in the same thread.
  /// `column` counts columns of A*B.
  template <int kSubtile, bool kIsInside, class Accumulators>
  __device__ __forceinline__ void compute_pairs(const Accumulators& accumulators, uint32_t buffer, int row, int column,
                                                const Tile& tile) {
    constexpr int kFirst = kSubtile % kSubtiles * kSubtileColumns;
    constexpr int kColumns = minimum(kSubtileColumns, kTileColumns - kFirst);
#pragma unroll
    for (int i = 0; i < kColumns / 2; ++i) {  // four columns of D for every 8 of A*B, in two rows
      const int along = i / 2 * 8, half = i % 2;
      Compute pair[2];
#pragma unroll
      for (int j = 0; j < 2; ++j) pair[j] = convert<Compute>(element(accumulators, kFirst + 2 * i + j));
      const Compute no_source[2] = {Compute(0), Compute(0)};
      Epilogue::apply(pair, no_source, parameters_.epilogue,
                      place<kSubtile, kIsInside>(buffer, row, column, tile, half, along + Rows::column(thread_)));
      const uint32_t panel = buffer + along / 2 / Plan::kPanelColumns * Panel::kBytes;
      const int in_panel = along / 2 % Plan::kPanelColumns + Rows::column(thread_) / 2;
      ptx::store_shared(panel + Panel::offset(Rows::row(thread_) + half * kOtherRow, in_panel), convert<D>(pair[0]));
    }
  }

  /// The place of the thread's row number `half` and column `along` in a subtile that begins at (row, column) of A*B.
  template <int kSubtile, bool kIsInside>
  __device__ __forceinline__ Place place(uint32_t buffer, int row, int column, const Tile& tile, int half, int along) {
    const int down = Rows::row(thread_) + half * kOtherRow;
    return {{row + down, column + along, tile.batch, end_m(tile), end_n(tile), kIsInside},
            vectors(),
            reductions_,
            buffer + kPanelsBytes,
            down,
            along,
            kSubtile / kSubtiles * 64 + down,
            kSubtile % kSubtiles * kSubtileColumns * kPerElement + along,
            half == 1,
            kSubtile < kSubtiles};
  }

  /// Stores `out`, the columns from `first` on, to the buffer.
  template <bool kMayUseMatrices, int kPairs>
  __device__ __forceinline__ void stage(const Vector<D, 2> (&out)[kPairs], uint32_t buffer, int first) const {
    constexpr bool kUsesMatrices = kMayUseMatrices && kByMatrices;
    constexpr int kTogether = kUsesMatrices ? kGroups : 1;
#pragma unroll
    for (int group = 0; group < kPairs / 2; group += kTogether) {
      const int column = first + group * 8;
      const uint32_t panel = buffer + column / Plan::kPanelColumns * Panel::kBytes;
      const int in_panel = column % Plan::kPanelColumns;
      Vector<D, 2> stored[2 * kTogether];
#pragma unroll
      for (int i = 0; i < 2 * kTogether; ++i) stored[i] = out[2 * group + i];
      if constexpr (kUsesMatrices) {
        store_matrices(stored, panel, thread_ / 32 * 16, in_panel);
      } else {
        store_pairs(stored, panel, Rows::row(thread_), in_panel + Rows::column(thread_));
      }
    }
  }

  /// Stores 16-bit elements by stmatrix. Lane l addresses line l%8 of matrix l/8. The first matrix has the lanes' first
  /// rows of one group of 8 columns, the second their second rows; the next two are those of the next group.
  __device__ __forceinline__ void store_matrices(const Vector<D, 2> (&out)[2 * kGroups], uint32_t buffer, int warp_row,
                                                 int column) const {
    const int line = thread_ % 8;
    const int matrix = thread_ % 32 / 8 % (2 * kGroups);
    const int matrix_row = warp_row + matrix % 2 * kOtherRow;
    const int matrix_column = column + matrix / 2 * 8;
    const uint32_t to = buffer + (Plan::kDIsRowMajor ? Panel::offset(matrix_row + line * kLaneRows, matrix_column)
                                                     : Panel::offset(matrix_row, matrix_column + line));
    uint32_t packed[2 * kGroups];
#pragma unroll
    for (int i = 0; i < 2 * kGroups; ++i) packed[i] = __builtin_bit_cast(uint32_t, out[i]);
    if constexpr (kGroups == 2) {
      ptx::stmatrix_x4<!Plan::kDIsRowMajor>(to, packed);
    } else {
      ptx::stmatrix_x2<!Plan::kDIsRowMajor>(to, packed);
    }
  }

  /// Stores elements of other sizes: two adjacent ones in the thread's first row, `row`, and two in its second row.
  __device__ __forceinline__ void store_pairs(const Vector<D, 2> (&out)[2], uint32_t buffer, int row,
                                              int column) const {
    if constexpr (kPairsAreLines) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        ptx::store_shared(buffer + Panel::offset(row, column + i), Vector<D, 2>{out[0].element[i], out[1].element[i]});
      }
      return;
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      if constexpr (Plan::kDIsRowMajor) {
        ptx::store_shared(buffer + Panel::offset(row + half * kOtherRow, column), out[half]);
      } else {
        ptx::store_shared(buffer + Panel::offset(row + half * kOtherRow, column), out[half].element[0]);
        ptx::store_shared(buffer + Panel::offset(row + half * kOtherRow, column + 1), out[half].element[1]);
      }
    }
  }

  /// Stores kCount panels to D, and the same panels of the other outputs. TMA stores are issued by one thread. Elements
  /// outside D, or outside the group, are not written.
  template <int kCount>
  __device__ __forceinline__ void send([[maybe_unused]] bool by_tma, uint32_t buffer, int row, int column,
                                       const Tile& tile) const {
    if constexpr (Plan::kTmaOutputs > 0)
      Epilogue::for_each_tma_output(SendOther<kCount>{parameters_, buffer + kPanelsBytes, row, column, tile.batch});
    if constexpr (is_same<typename Plan::Output, PixelOutput>) {
      copy_pixels<kCount>(parameters_.d, buffer, row, column, tile);
    } else if constexpr (kIsTapColumns<typename Plan::Output>) {
      copy_taps<kCount>(parameters_.d, buffer, row, column, tile);
    } else if constexpr (kIsFoldedOutput<typename Plan::Output>) {
      copy_vectors<kCount>(parameters_.d, buffer, row, column, tile);
    } else if constexpr (!kByTma) {
      copy<kCount>(parameters_.d, buffer, row, column, tile);
    } else {
      if constexpr (kHasGroups) {
        if (!by_tma) copy<kCount>(parameters_.groups.d, buffer, row, column, tile);
      }
      if (by_tma) send_panels<kCount>(buffer, row, column, tile.batch_of_d());
      // free_buffer() counts one group of stores for each subtile, which may be empty.
      if (by_tma || thread_ == 0) ptx::tma_store_commit();
    }
  }

  template <int kCount>
  __device__ __forceinline__ void send_panels(uint32_t buffer, int row, int column, int batch) const {
#pragma unroll
    for (int panel = 0; panel < kCount; ++panel, column += Plan::kPanelColumns, buffer += Panel::kBytes) {
#pragma unroll
      for (int box = 0; box < Panel::kBoxes; ++box) {
        const uint32_t from = buffer + box * Panel::kBoxBytes;
        const int x = (Plan::kDIsRowMajor ? column : row) + box * Panel::kLine;
        const int y = Plan::kDIsRowMajor ? row : column;
        if constexpr (kHasClasses) {
          const TmaIm2col& rows = parameters_.d.of[batch];
          ptx::tma_store(rows.map, from, rows.box(y, x, 0));
        } else {
          ptx::tma_store(parameters_.d, from, x, y, batch);
        }
      }
    }
  }

  template <int kCount>
  struct SendOther {
    const Parameters& parameters;
    uint32_t buffer;
    int row, column, batch;

    template <class Output>
    __device__ __forceinline__ void visit() const {
      OtherOutputs::template send<Output, kCount>(parameters.outputs.map[Output::kNumber], buffer, row, column, batch);
    }
  };

  /// The offset in bytes of element `along` of line `line` of D in a buffer of panels.
  static __device__ __forceinline__ uint32_t offset_in_panels(int line, int along) {
    const int row = Plan::kDIsRowMajor ? line : along, column = Plan::kDIsRowMajor ? along : line;
    return column / Plan::kPanelColumns * Panel::kBytes + Panel::offset(row, column % Plan::kPanelColumns);
  }

  /// Stores kCount panels, which begin at (row, column) of D, to `to` with plain stores. A line of D runs through all
  /// of them if D is row-major.
  template <int kCount>
  __device__ __forceinline__ void copy(const GlobalMatrix& to, uint32_t buffer, int row, int column,
                                       const Tile& tile) const {
    constexpr int kColumns = kCount * Plan::kPanelColumns;
    constexpr int kLines = Plan::kDIsRowMajor ? 64 : kColumns;
    using Store = LineStore<D, Plan::kDIsRowMajor ? kColumns : 64, 16, Plan::kStoreBytes>;
    const int first_x = Plan::kDIsRowMajor ? column : row, first_y = Plan::kDIsRowMajor ? row : column;
    const int end_x = Plan::kDIsRowMajor ? end_n(tile) / kPerElement : end_m(tile);
    const int end_y = Plan::kDIsRowMajor ? end_m(tile) : end_n(tile) / kPerElement;
    const int64_t ld = tile.ldd(to.ld);
    D* const d =
        matrix_of_batch<Plan::kDIsPointerArray, D>(to.address, to.batch_stride, tile.batch) + first_y * ld + first_x;
    Store::template store<kThreads, kLines>(
        thread_, [&](int line) { return d + line * ld; },
        [&](int line) { return first_y + line < end_y ? end_x - first_x : 0; },
        [&](int line, int chunk) { return buffer + offset_in_panels(line, chunk * Store::kPerVector); });
  }

  /// Does the same for a folded D, whose vectors of 16 bytes do not cross the end of its first mode: each is stored
  /// where its modes say. Adjacent threads store adjacent vectors of a line.
  template <int kCount, class Folded>
  __device__ __forceinline__ void copy_vectors(const Folded& to, uint32_t buffer, int row, int column,
                                               const Tile& tile) const {
    static_assert(Plan::kStoreBytes == 16 && kPerElement == 1, "whole vectors of single columns");
    constexpr int kColumns = kCount * Plan::kPanelColumns;
    constexpr int kLines = Plan::kDIsRowMajor ? 64 : kColumns;
    constexpr int kPerVector = 16 / static_cast<int>(sizeof(D));
    constexpr int kVectors = (Plan::kDIsRowMajor ? kColumns : 64) / kPerVector;  // of a line
    const auto& modes = to.modes.matrix;
    const int first_x = Plan::kDIsRowMajor ? column : row, first_y = Plan::kDIsRowMajor ? row : column;
    const int end_x = Plan::kDIsRowMajor ? end_n(tile) : end_m(tile);
    const int end_y = Plan::kDIsRowMajor ? end_m(tile) : end_n(tile);
    D* const d = static_cast<D*>(const_cast<void*>(to.address)) + modes.batch.offset(tile.batch);
#pragma unroll 2
    for (int i = thread_; i < kLines * kVectors; i += kThreads) {
      const int line = i / kVectors, along = i % kVectors * kPerVector;
      if (first_y + line >= end_y || first_x + along >= end_x) continue;
      *reinterpret_cast<Vector<uint32_t, 4>*>(d + modes.line(first_y + line) + modes.along(first_x + along)) =
          ptx::load_shared<Vector<uint32_t, 4>>(buffer + offset_in_panels(line, along));
    }
  }

  /// Does the same for columns that are stored tap by tap.
  template <int kCount, class Taps>
  __device__ __forceinline__ void copy_taps(const Taps& to, uint32_t buffer, int row, int column,
                                            const Tile& tile) const {
    static_assert(Plan::kStoreBytes == 16 && Plan::kDIsRowMajor && kPerElement == 1, "whole vectors of single columns");
    constexpr int kPerVector = 16 / static_cast<int>(sizeof(D));
    constexpr int kVectors = kCount * Plan::kPanelColumns / kPerVector;  // of a row
    const int end_x = end_n(tile), end_y = end_m(tile);
    D* const d = static_cast<D*>(const_cast<void*>(to.address));
#pragma unroll 2
    for (int i = thread_; i < 64 * kVectors; i += kThreads) {
      const int line = i / kVectors, along = i % kVectors * kPerVector;
      const int place = to.place(column + along);
      if (row + line >= end_y || column + along >= end_x || place < 0) continue;
      *reinterpret_cast<Vector<uint32_t, 4>*>(d + (row + line) * to.row + place) =
          ptx::load_shared<Vector<uint32_t, 4>>(buffer + offset_in_panels(line, along));
    }
  }

  /// Does the same for lines of pixels. A thread has the same channels of every kStep-th position, so that it divides
  /// once: with a division for each vector, the epilogue took twice as long as the mainloop of 64 channels.
  template <int kCount>
  __device__ __forceinline__ void copy_pixels(const PixelOutput& to, uint32_t buffer, int row, int column,
                                              const Tile& tile) const {
    static_assert(Plan::kStoreBytes == 16 && kPerElement == 1, "whole vectors of single columns");
    constexpr int kColumns = kCount * Plan::kPanelColumns;
    constexpr int kPositions = Plan::kDIsRowMajor ? 64 : kColumns;
    constexpr int kPerVector = 16 / static_cast<int>(sizeof(D));
    constexpr int kVectors = (Plan::kDIsRowMajor ? kColumns : 64) / kPerVector;  // of a position
    constexpr int kStep = kThreads / kVectors;
    const int channel = thread_ % kVectors * kPerVector;
    const int first = thread_ / kVectors;
    const int end_x = Plan::kDIsRowMajor ? end_n(tile) : end_m(tile);
    const int end_y = Plan::kDIsRowMajor ? end_m(tile) : end_n(tile);
    const int x = (Plan::kDIsRowMajor ? column : row) + channel;
    if (kThreads % kVectors != 0 && first >= kStep) return;
    if (x >= end_x) return;
    PixelPosition at(to, (Plan::kDIsRowMajor ? row : column) + first);
    D* const d = static_cast<D*>(const_cast<void*>(to.address)) + x;
#pragma unroll
    for (int i = 0; i < ceil_div(kPositions, kStep); ++i, at.advance(to, kStep)) {
      const int position = first + i * kStep;
      if (kPositions % kStep != 0 && position >= kPositions) break;
      if (!at.is_stored(to, end_y)) continue;
      *reinterpret_cast<Vector<uint32_t, 4>*>(d + at.offset()) =
          ptx::load_shared<Vector<uint32_t, 4>>(buffer + offset_in_panels(position, channel));
    }
  }

  /// Accumulator number `i`. A register holds two accumulators of f16.
  template <class Accumulators>
  static __device__ __forceinline__ auto element(const Accumulators& accumulators, int i) {
    if constexpr (Plan::kAccumulatesInHalf) {
      return half_t{static_cast<uint16_t>(accumulators[i / 2] >> (i % 2 * 16))};
    } else {
      return accumulators[i];
    }
  }

  const Parameters& parameters_;
  uint32_t buffers_, vectors_, barriers_;  // for all warpgroups, so that the addresses are constants
  int thread_;
  int barrier_;
  uint32_t subtiles_ = 0;  // number of subtiles so far, which selects the buffer
  Reductions reductions_;
};

}  // namespace tilewright
