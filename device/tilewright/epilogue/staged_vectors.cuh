// Row and column vectors that an epilogue reads, in shared memory as the compute type: a tile's part of each is loaded
// once by each warpgroup, and read from there at every accumulator.
#pragma once

#include "tilewright/epilogue/epilogue_tensor.cuh"
#include "tilewright/ptx/shared.cuh"
#include "tilewright/types.cuh"

namespace tilewright {

/// Those of kRows rows and kColumns columns of a tile. Epilogue: Compute, kRowVectors, kColumnVectors,
/// for_each_vector(parameters, visitor), which calls visitor.visit<number>(tensor): row vectors and column vectors are
/// numbered from 0 each.
template <class Epilogue, int kRows, int kColumns>
class StagedVectors {
  using Compute = typename Epilogue::Compute;
  using Parameters = typename Epilogue::Parameters;
  static constexpr int kThreads = 128;
  static constexpr int kElementBytes = sizeof(Compute);
  static constexpr int kColumnVectorsFrom = Epilogue::kRowVectors * kColumns * kElementBytes;

 public:
  static constexpr int kBytes = kColumnVectorsFrom + Epilogue::kColumnVectors * kRows * kElementBytes;

  /// `shared` is the address of kBytes.
  __device__ __forceinline__ explicit StagedVectors(uint32_t shared) : shared_(shared) {}

  /// By all threads of the warpgroup: brings what the tile at `at` reads. A barrier of these must come after the last
  /// load() of the tile before, and another before the first of this one.
  __device__ __forceinline__ void bring(const Parameters& parameters, int thread, const EpiloguePlace& at) const {
    Epilogue::for_each_vector(parameters, Bring{*this, thread, at});
  }

  /// Of neighbours in a row of the tile.
  template <int kNumber, bool kIsRow, int kCount>
  __device__ __forceinline__ void load(Compute (&values)[kCount], int row, int column) const {
    if constexpr (kIsRow) {
      const auto read = ptx::load_shared<Vector<Compute, kCount>>(address<true>(kNumber, column));
#pragma unroll
      for (int i = 0; i < kCount; ++i) values[i] = read.element[i];
    } else {
      const Compute value = ptx::load_shared<Vector<Compute, 1>>(address<false>(kNumber, row)).element[0];
#pragma unroll
      for (int i = 0; i < kCount; ++i) values[i] = value;
    }
  }

 private:
  struct Bring {
    const StagedVectors& vectors;
    int thread;
    const EpiloguePlace& at;

    template <int kNumber, class Tensor>
    __device__ __forceinline__ void visit(const Tensor& tensor) const {
      constexpr bool kIsRow = Tensor::kIsRowVector;
#pragma unroll 1
      for (int i = thread; i < (kIsRow ? kColumns : kRows); i += kThreads) {
        EpiloguePlace element = at;
        (kIsRow ? element.column : element.row) += i;
        Compute value[1];
        tensor.load(value, element);
        ptx::store_shared(vectors.template address<kIsRow>(kNumber, i), Vector<Compute, 1>{value[0]});
      }
    }
  };

  template <bool kIsRow>
  __device__ __forceinline__ uint32_t address(int number, int i) const {
    return shared_ +
           (kIsRow ? number * kColumns * kElementBytes : kColumnVectorsFrom + number * kRows * kElementBytes) +
           i * kElementBytes;
  }

  uint32_t shared_;
};

/// A place in a tile whose vectors are staged, and in a buffer of outputs: (buffer_row, buffer_column) of it.
template <class Vectors, class Reductions, class OutputBuffer>
struct StagedPlace : EpiloguePlace {
  Vectors vectors;
  Reductions& reductions;
  uint32_t outputs;  // in shared memory
  int buffer_row, buffer_column;
  int tile_row, tile_column;
  bool is_other_row, is_first_atom;  // of the thread's rows, of the warpgroup's

  template <int kNumber, class Tensor, class Compute, int kCount>
  __device__ __forceinline__ void load(const Tensor& tensor, Compute (&values)[kCount]) const {
    if constexpr (Tensor::kIsRowVector || Tensor::kIsColumnVector) {
      vectors.template load<kNumber, Tensor::kIsRowVector>(values, tile_row, tile_column);
    } else {
      tensor.load(values, *this);
    }
  }
  /// Of an output that leaves by TMA.
  template <class Output, class Compute>
  __device__ __forceinline__ void store(const Compute (&values)[2]) const {
    OutputBuffer::template store<Output>(outputs, buffer_row, buffer_column, values);
  }
  template <class Reduction, class Compute>
  __device__ __forceinline__ void reduce(const Compute (&values)[2]) const {
    reductions.template add<Reduction>(values, *this, tile_column, is_other_row, is_first_atom);
  }
};

}  // namespace tilewright
