// Where the vectors of a tile of a strided matrix lie in global memory.
#pragma once

#include "tilewright/operand/matrix_layout.cuh"
#include "tilewright/operand/matrix_parameters.cuh"
#include "tilewright/types.cuh"

namespace tilewright {

/// Does for a StridedMatrix what GatheredVectors does for others. Operand: Element, kIsKMajor, kIsInterleaved (then
/// passes and tiles begin at blocks of K), and Copy, as OperandCopy and PanelCopy describe them. A tile has kTileK
/// elements along K and lines of at most kLine elements.
template <class Operand, int kVector, int kTileK, int kLine>
class StridedVectors {
  using Element = typename Operand::Element;
  using Copy = typename Operand::Copy;
  static constexpr int kElementBytes = sizeof(Element);
  static_assert(!Operand::kIsInterleaved || kTileK % kInterleaved == 0, "a tile begins with a block");

 public:
  /// The matrix has leading dimension `ld`. `begin_k` is where the first tile begins along K, `mn` the first row or
  /// column of the tiles, `mn_extent` the matrix's extent along the same mode.
  __device__ __forceinline__ StridedVectors(const Element* matrix, int64_t ld, const StridedMatrix& /*reach*/,
                                            int begin_k, int mn, int mn_extent, int thread)
      : ld_(ld), mn_left_(mn_extent - mn), line_(Copy::line(thread)), first_(Copy::element(thread)) {
    const int64_t stride = line_stride<Operand>(ld);
    const int64_t origin = Operand::kIsKMajor ? mn * stride : static_cast<int64_t>(mn);
    const int64_t element = Operand::kIsKMajor ? along_k<Operand>(first_, ld) : first_;
    matrix += along_k<Operand>(begin_k, ld);
    global_ = reinterpret_cast<const char*>(matrix) + (origin + line_ * stride + element) * kElementBytes;
    step_bytes_ = Copy::kLineStep * stride * kElementBytes;
  }

  /// This thread's vector in `pass` of the next tile.
  __device__ __forceinline__ const Element* from(int pass) const {
    const int element = Copy::pass_element(pass);
    const int64_t along_line = Operand::kIsInterleaved ? along_k<Operand>(element, ld_) : element;
    return reinterpret_cast<const Element*>(global_ + Copy::pass_line(pass) / Copy::kLineStep * step_bytes_ +
                                            along_line * kElementBytes);
  }

  /// The elements of that vector that are inside the matrix, if `k_left` elements of K are left; it may be negative.
  __device__ __forceinline__ int count(int pass, int k_left) const {
    const int of_line = min(max(elements_left(k_left) - Copy::pass_element(pass), 0), kVector);
    return has_line(pass, k_left) ? of_line : 0;
  }

  /// Whether there is such an element, and whether the vector's line is inside the matrix.
  __device__ __forceinline__ bool is_inside(int pass, int k_left) const {
    return has_line(pass, k_left) && Copy::pass_element(pass) < elements_left(k_left);
  }
  __device__ __forceinline__ bool has_line(int pass, int k_left) const {
    return Copy::pass_line(pass) < (Operand::kIsKMajor ? mn_left_ : k_left) - line_;
  }

  /// Whether vectors of the next tile must be filled up with zeros from count() on. Those that reach beyond the end of
  /// K must, as products with what follows would be added. Products with what follows the end of M or N are not stored:
  /// such vectors may be copied whole, except from the last tile along K, whose last line may be the end of the
  /// matrix's memory.
  __device__ __forceinline__ bool splits_vectors(int k_left) const {
    if constexpr (kVector == 1) return false;
    const int line = Operand::kIsKMajor ? k_left : mn_left_;
    const bool is_last = Operand::kIsKMajor || k_left <= kTileK;
    return is_last && k_left > 0 && line < kLine && line % kVector != 0;
  }

  /// Moves to the next tile.
  __device__ __forceinline__ void advance() { global_ += along_k<Operand>(kTileK, ld_) * kElementBytes; }

 private:
  /// The elements of a line from this thread's vector in pass 0 to the end of the matrix.
  __device__ __forceinline__ int elements_left(int k_left) const {
    return (Operand::kIsKMajor ? k_left : mn_left_) - first_;
  }

  const char* global_;  // this thread's vector in pass 0 of the next tile
  int64_t ld_;
  int64_t step_bytes_;  // of Copy::kLineStep lines
  int mn_left_;         // rows or columns from the tile's origin to the matrix's end
  int line_, first_;    // this thread's line, and element of the line, in pass 0
};

}  // namespace tilewright
