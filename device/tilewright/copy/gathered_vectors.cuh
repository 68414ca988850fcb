// Where the vectors of a tile of a matrix that is not strided lie in global memory.
#pragma once

#include "tilewright/types.cuh"

namespace tilewright {

/// A tile of a K-major operand consists of lines along M or N, whose elements lie along K; a tile of an MN-major one of
/// lines along K. Operand: Element, Matrix (Im2colMatrix or FoldedMatrix), kIsKMajor and Copy, as OperandCopy and
/// PanelCopy describe them. Matrix has Line and line(index), Along and along(index), which is the place along a line,
/// element(line, along), which combines them, and outside(), a line without elements. kVector elements, a vector, are
/// adjacent in memory: they never cross the end of a tap's channels, or of a folded mode's first coordinate.
///
/// The indices are computed from scratch for each vector, with divisions. Those that all tiles share, the lines of a
/// K-major operand and the places along the lines of an MN-major one, are kept in registers if there are few passes.
template <class Operand, int kVector, int kTileK>
class GatheredVectors {
  using Element = typename Operand::Element;
  using Matrix = typename Operand::Matrix;
  using Copy = typename Operand::Copy;
  static constexpr bool kKeeps = Copy::kPasses <= 4;  // as plan::gathered_registers() assumes
  using Kept = Select<Operand::kIsKMajor, typename Matrix::Line, typename Matrix::Along>;

 public:
  /// `matrix_of_batch` is where the matrix or its images begin, `begin_k` is where the first tile begins, `mn` the
  /// first row or column of the tile along M or N, and `mn_extent` the matrix's extent along the same mode.
  __device__ __forceinline__ GatheredVectors(const Element* matrix_of_batch, int64_t /*ld*/, const Matrix& matrix,
                                             int begin_k, int mn, int mn_extent, int thread)
      : from_(matrix_of_batch),
        matrix_(matrix),
        k_(begin_k),
        mn_left_(mn_extent - mn),
        line_(Copy::line(thread)),
        first_(Copy::element(thread)),
        mn_(mn) {
    if constexpr (kKeeps) {
#pragma unroll
      for (int pass = 0; pass < Copy::kPasses; ++pass) kept_[pass] = along_mn(pass);
    }
  }

  struct Source {
    const Element* from;  // some element if there is none
    int count;            // elements inside the matrix, up to kVector; the others are zeros
  };
  /// The thread's vector in `pass` of the next tile, which has `k_left` elements of K; it may be negative.
  __device__ __forceinline__ Source source(int pass, int k_left) const {
    const int line = line_ + Copy::pass_line(pass), element = first_ + Copy::pass_element(pass);
    const int lines_left = Operand::kIsKMajor ? mn_left_ : k_left;
    const int of_line = min(max((Operand::kIsKMajor ? k_left : mn_left_) - element, 0), kVector);
    const Kept at_mn = kKeeps ? kept_[kKeeps ? pass : 0] : along_mn(pass);
    typename Matrix::Element found;
    if constexpr (Operand::kIsKMajor) {
      found = matrix_.element(at_mn, matrix_.along(k_ + element));
    } else {
      found = matrix_.element(matrix_.line(k_ + line), at_mn);
    }
    return {from_ + found.offset, found.is_inside && line < lines_left ? of_line : 0};
  }

  /// Moves to the next tile, kTileK elements further along K.
  __device__ __forceinline__ void advance() { k_ += kTileK; }

 private:
  /// The line, or the place along lines, of a pass along M or N.
  __device__ __forceinline__ Kept along_mn(int pass) const {
    if constexpr (Operand::kIsKMajor) {
      const int line = line_ + Copy::pass_line(pass);
      return line < mn_left_ ? matrix_.line(mn_ + line) : Matrix::outside();
    } else {
      return matrix_.along(mn_ + first_ + Copy::pass_element(pass));
    }
  }

  const Element* from_;
  const Matrix& matrix_;
  int k_;             // where the next tile begins
  int mn_left_;       // rows or columns from the tile's origin to the matrix's end
  int line_, first_;  // this thread's line, and element of the line, in pass 0
  int mn_;            // the tile's origin
  Kept kept_[kKeeps ? Copy::kPasses : 1];
};

}  // namespace tilewright
