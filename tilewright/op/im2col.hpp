// The matrix of a convolution that is never stored: each row is a pixel, each column a filter tap and a channel.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "tilewright/op/tensor.hpp"

namespace tilewright::op {

/// One spatial axis of an im2col matrix. Position i and tap t meet at the coordinate
/// (i * step + t * tap_step + offset) / divisor of the image, which is outside if the division leaves a remainder, or
/// if the quotient is not from 0 to extent - 1.
struct Im2colAxis {
  std::int64_t positions = 1, taps = 1;
  std::int64_t extent = 1;  // of the image
  std::int64_t stride = 0;  // of the image, in elements
  std::int64_t step = 1, tap_step = 0, offset = 0;
  std::int64_t divisor = 1;

  /// Whether position i is coordinate i of the image, and there are no other taps.
  bool is_identity() const;
  std::optional<std::int64_t> coordinate(std::int64_t position, std::int64_t tap) const;

  bool operator==(const Im2colAxis&) const = default;
};

/// Row (image, i, j), where j changes fastest, and column (block, r, s, channel), where the channel changes fastest, of
/// the matrix of images with contiguous channels. Elements outside an image are zeros. The channels of most images are
/// one block; those of NC32HW32 are blocks of 32, of which each is an image of its own. Convolutions differ from GEMMs
/// only in that one operand is such a matrix:
///   fprop: A is the im2col of x; its rows are the output's pixels, its columns are k.
///   dgrad: A is the im2col of dy; its rows are the input's pixels, its columns are k.
///   wgrad: B is the im2col of x; its rows, the output's pixels, are k.
/// A matrix with a mode of three strides and no taps is an im2col matrix, too: the filter of dgrad.
/// In a matrix with padded taps (op/padded_taps.hpp), `zeros` columns without elements follow the channels of each tap.
/// In one that shares pixels (op/shared_pixels.hpp), w.positions counts more positions than the output has.
struct Im2col {
  std::int64_t images = 1;
  std::int64_t image_stride = 0;  // elements
  Im2colAxis h, w;
  std::int64_t channels = 1;  // of a block
  std::int64_t blocks = 1;
  std::int64_t block_stride = 0;  // elements
  std::int64_t zeros = 0;
  bool shares_pixels = false;

  std::int64_t rows() const { return images * h.positions * w.positions; }
  std::int64_t taps() const { return h.taps * w.taps; }
  std::int64_t columns_of_tap() const { return channels + zeros; }
  std::int64_t columns() const { return blocks * taps() * columns_of_tap(); }
  /// Whether a coordinate is divided by more than 1, as in the dgrad of a convolution with a stride.
  bool divides() const { return h.divisor != 1 || w.divisor != 1; }
  /// The number of classes of rows whose positions have the same remainders modulo the divisors.
  std::int64_t row_classes() const { return h.divisor * w.divisor; }
  /// The offset of an element from the first element of the images, in elements; nothing if it is outside.
  std::optional<std::int64_t> offset(std::int64_t row, std::int64_t column) const;
  /// The stride of the rows if they have one and no element is outside: then the matrix is a strided one.
  std::optional<std::int64_t> row_stride() const;
  /// The elements of the images relative to those of the matrix, at most 1: most elements are in several rows.
  double distinct_share() const;
  /// The largest power of two in elements, of at most 16 bytes, such that vectors of that length neither cross the end
  /// of a tap's channels nor are misaligned. `images` has the address and the element type.
  int alignment(const Tensor& images, std::int64_t batch_stride) const;
  /// The axis along which the taps of a row of the window share pixels: the width, or the height of a window of one
  /// column.
  const Im2colAxis& shared_axis() const { return w.taps == 1 ? h : w; }
  /// Whether taps along shared_axis() meet the same pixels: there are several, and positions are adjacent pixels.
  bool can_share_pixels() const {
    const Im2colAxis& axis = shared_axis();
    return axis.taps > 1 && axis.step == 1 && axis.tap_step != 0 && !divides() && blocks == 1;
  }
  /// Makes the shared axis the width, in which positions change fastest, and adds as many positions to each line as the
  /// last tap lies behind the first. @pre can_share_pixels()
  void share_pixels();
  /// The largest power of two, at most `longest`, that divides the columns of a tap; `longest` if there is one tap of
  /// one matrix.
  int tap_row(int longest, std::int64_t matrices) const;

  bool operator==(const Im2col&) const = default;
};

}  // namespace tilewright::op
