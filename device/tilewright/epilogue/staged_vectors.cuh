// The row and column vectors that an epilogue reads, staged in shared memory in the compute type: each warpgroup loads
// a tile's part of each once, and reads it there for every accumulator.
#pragma once

#include "tilewright/epilogue/epilogue_tensor.cuh"
#include "tilewright/ptx/shared.cuh"
#include "tilewright/types.cuh"

namespace tilewright {

/// The warpgroup has kRows rows and kColumns columns of a tile. Epilogue: Compute, kRowVectors, kColumnVectors, and
/// for_each_vector(parameters, visitor), which calls visitor.visit<number>(tensor). Row vectors are numbered from 0,
/// and so are column vectors.
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

  /// Must be called by all threads of the warpgroup. Loads the elements that the tile at `at` reads. There must be a
  /// barrier of the warpgroup between the previous tile's last load() and this call, and between this call and the
  /// first load().
  __device__ __forceinline__ void bring(const Parameters& parameters, int thread, const EpiloguePlace& at) const {
    Epilogue::for_each_vector(parameters, Bring{*this, thread, at});
  }

  /// Loads the elements of a vector for adjacent columns from (row, column) of the tile on.
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

/// An EpiloguePlace in a tile whose vectors are staged. The values go to (buffer_row, buffer_column) of the output
/// buffer.
template <class Vectors, class Reductions, class OutputBuffer>
struct StagedPlace : EpiloguePlace {
  Vectors vectors;
  Reductions& reductions;
  uint32_t outputs;  // shared address of the further outputs
  int buffer_row, buffer_column;
  int tile_row, tile_column;
  bool is_other_row;   // the thread's second row, not its first one
  bool is_first_atom;  // the warpgroup's first instruction along M

  template <int kNumber, class Tensor, class Compute, int kCount>
  __device__ __forceinline__ void load(const Tensor& tensor, Compute (&values)[kCount]) const {
    if constexpr (Tensor::kIsRowVector || Tensor::kIsColumnVector) {
      vectors.template load<kNumber, Tensor::kIsRowVector>(values, tile_row, tile_column);
    } else {
      tensor.load(values, *this);
    }
  }
  /// Stores to the buffer of an output that TMA stores.
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
