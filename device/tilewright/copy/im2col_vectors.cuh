// Where the vectors of a tile of an im2col matrix lie in global memory.
#pragma once

#include "tilewright/operand/im2col_matrix.cuh"
#include "tilewright/types.cuh"

namespace tilewright {

/// A tile of a K-major operand consists of lines that are pixels, along M or N, with columns along K; a tile of an
/// MN-major one of pixels along K with columns along M or N. Operand: Element, Matrix, kIsKMajor and Copy, as
/// OperandCopy and PanelCopy describe them. kVector elements, a vector, never cross the end of a tap's channels.
///
/// The indices are computed from scratch for each vector, with four divisions. Those that all tiles share, the pixels
/// of a K-major operand and the columns of an MN-major one, are kept in registers if there are few passes.
template <class Operand, int kVector>
class Im2colVectors {
  using Element = typename Operand::Element;
  using Matrix = typename Operand::Matrix;
  using Copy = typename Operand::Copy;
  static constexpr bool kKeeps = Copy::kPasses <= 4;  // as plan::im2col_registers() assumes
  using Kept = Select<Operand::kIsKMajor, typename Matrix::Pixel, typename Matrix::Tap>;

 public:
  /// `images` are those of the matrix of the batch, `begin_k` is where the first tile begins, `mn` the first row or
  /// column of the tile along M or N, and `mn_extent` the matrix's extent along the same mode.
  __device__ __forceinline__ Im2colVectors(const Element* images, const Matrix& matrix, int begin_k, int mn,
                                           int mn_extent, int thread)
      : images_(images),
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
    const Element* from;  // the first element of the images if there is none
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
      found = matrix_.element(at_mn, matrix_.tap(k_ + element));
    } else {
      found = matrix_.element(matrix_.pixel(k_ + line), at_mn);
    }
    return {images_ + found.offset, found.is_inside && line < lines_left ? of_line : 0};
  }

  /// Moves to the next tile, `tile_k` elements further along K.
  __device__ __forceinline__ void advance(int tile_k) { k_ += tile_k; }

 private:
  /// The pixel or the column of a pass, along M or N.
  __device__ __forceinline__ Kept along_mn(int pass) const {
    if constexpr (Operand::kIsKMajor) {
      const int line = line_ + Copy::pass_line(pass);
      return line < mn_left_ ? matrix_.pixel(mn_ + line) : Matrix::outside();
    } else {
      return matrix_.tap(mn_ + first_ + Copy::pass_element(pass));
    }
  }

  const Element* images_;
  const Matrix& matrix_;
  int k_;             // where the next tile begins
  int mn_left_;       // rows or columns from the tile's origin to the matrix's end
  int line_, first_;  // this thread's line, and element of the line, in pass 0
  int mn_;            // the tile's origin
  Kept kept_[kKeeps ? Copy::kPasses : 1];
};

}  // namespace tilewright
