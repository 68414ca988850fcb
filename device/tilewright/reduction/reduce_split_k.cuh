// The reduction of split-K in parallel mode: sums the parts of each element of D in ascending order, applies the
// epilogue, and stores D with plain stores. One CTA computes one tile, in bands of rows.
#pragma once

#include "tilewright/epilogue/output_tile.cuh"
#include "tilewright/operand/matrix_parameters.cuh"
#include "tilewright/ptx/shared.cuh"
#include "tilewright/ptx/thread.cuh"
#include "tilewright/types.cuh"

namespace tilewright {

/// D is row-major: if the caller's is column-major, all matrices are transposed. plan/reduce_split_k writes these
/// fields; the emitted text asserts their offsets.
template <class EpilogueParameters>
struct ReduceSplitKParameters {
  [[no_unique_address]] MatrixParameters<StridedMatrix, 'C'> matrix_c;  // OutputTile reads them
  [[no_unique_address]] MatrixParameters<StridedMatrix, 'D'> matrix_d;
  const void* parts;
  const void* c;
  void* d;
  int64_t ld_parts;     // elements
  int64_t part_stride;  // elements from one part to the next
  int64_t ldc, ldd;
  int64_t batch_stride_c, batch_stride_d;  // 0; OutputTile reads them
  int m, n;                                // n counts the columns of the parts
  int count;                               // number of parts
  int tiles_n;
  uint32_t batch;           // 1
  char* workspace;          // counters and partial results of epilogues with reductions; else null
  int64_t reduction_parts;  // offset of the partial results in it, bytes
  EpilogueParameters epilogue;
};

/// Plan: ElementParts, kPartsAreRowMajor, Accumulator, kVector (adjacent columns that a thread computes together),
/// kPartVector (elements of one load; divides kVector), kPartsAtOnce (parts that a thread loads before it adds them),
/// kThreadsM and kThreadsN, row(thread) and column(thread) in a band, kSharedBytes, and the members that OutputTile
/// uses. The values come from plan/reduce_split_k.
template <class Plan, class Epilogue>
class ReduceSplitK {
  using Element = typename Plan::ElementParts;
  using Accumulator = typename Plan::Accumulator;
  using Parameters = ReduceSplitKParameters<typename Epilogue::Parameters>;
  using Output = OutputTile<Plan, Epilogue, Parameters>;
  static constexpr int kVector = Plan::kVector;
  static constexpr int kLoad = Plan::kPartVector;
  static constexpr int kLoads = kVector / kLoad;
  static constexpr int kThreads = Plan::kThreadsM * Plan::kThreadsN;
  using Reductions = typename Output::template Reductions<Plan::kThreadsM, kThreads>;
  using Read = Vector<Element, kLoad>;

  static_assert(Plan::kTileN == Plan::kThreadsN * kVector && Plan::kTileM % Plan::kThreadsM == 0);
  static_assert(kVector % kLoad == 0 && (Plan::kPartsAreRowMajor || kLoad == 1));
  static_assert(Plan::kSharedBytes == Reductions::kBytes);

 public:
  __device__ __forceinline__ explicit ReduceSplitK(const Parameters& parameters)
      : parameters_(parameters), parts_(static_cast<const Element*>(parameters.parts)) {}

  __device__ __forceinline__ void run() const {
    extern __shared__ __align__(16) unsigned char shared_memory[];
    const int thread = static_cast<int>(threadIdx.x);
    const int tile = static_cast<int>(blockIdx.x);
    const int first_row = tile / parameters_.tiles_n * Plan::kTileM;
    const int first_column = tile % parameters_.tiles_n * Plan::kTileN;
    const int band_row = Plan::row(thread), band_column = Plan::column(thread);

    const Output output(parameters_, TileOrigin{first_row, first_column, 0});
    const Reductions reductions =
        Output::template reductions<Plan::kThreadsM, kThreads>(parameters_, ptx::shared_address(shared_memory));
    const typename Reductions::Block block{first_row, first_column, TileOrigin{first_row, first_column, 0}, 0};
    reductions.begin(parameters_.epilogue);
#pragma unroll 1
    for (int band = first_row; band < first_row + Plan::kTileM; band += Plan::kThreadsM) {
      const int row = band + band_row, column = first_column + band_column;
      Accumulator sums[kVector] = {};
      if (row < parameters_.m) add_parts(sums, row, column);
      output.store(row, column, sums, reductions, band_row, band_column);
      const auto row_of = [&](int of_band) { return band + of_band; };
      reductions.end_band(parameters_.epilogue, block, row_of, ptx::Synchronize{});
    }
    reductions.end(parameters_.epilogue, block, 0, ptx::Synchronize{});
  }

 private:
  /// Adds the parts of kVector adjacent columns, from part 0 on. A part beyond the last counts as 0, which changes no
  /// sum.
  __device__ __forceinline__ void add_parts(Accumulator (&sums)[kVector], int row, int column) const {
    constexpr int kAtOnce = Plan::kPartsAtOnce;
#pragma unroll 1
    for (int part = 0; part < parameters_.count; part += kAtOnce) {
      Read read[kAtOnce][kLoads];
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
#pragma unroll
        for (int j = 0; j < kLoads; ++j)
          read[i][j] = load(part + i, row, column + j * kLoad, part + i < parameters_.count);
      }
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
#pragma unroll
        for (int j = 0; j < kVector; ++j) sums[j] += convert<Accumulator>(read[i][j / kLoad].element[j % kLoad]);
      }
    }
  }

  /// Loads kLoad adjacent columns of one part, and zeros outside the matrix or if not `exists`.
  __device__ __forceinline__ Read load(int part, int row, int column, bool exists) const {
    Read read{};
    const Element* const matrix = parts_ + part * parameters_.part_stride;
    if constexpr (Plan::kPartsAreRowMajor) {
      const Element* const at = matrix + row * parameters_.ld_parts + column;
      if (exists && column + kLoad <= parameters_.n) {
        read = *reinterpret_cast<const Read*>(at);
      } else if (exists) {
#pragma unroll
        for (int i = 0; i < kLoad - 1; ++i) {
          if (column + i < parameters_.n) read.element[i] = at[i];
        }
      }
    } else if (exists && column < parameters_.n) {
      read.element[0] = matrix[row + column * parameters_.ld_parts];
    }
    return read;
  }

  const Parameters& parameters_;
  const Element* parts_;
};

}  // namespace tilewright
