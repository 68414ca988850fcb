// A convolution that is computed as another one, on copies of its tensors whose rows a TMA box or a vector can move.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tilewright/op/conv2d.hpp"

namespace tilewright::op {

/// How the tensors are repacked.
struct ConvRepacking {
  enum class Method : std::uint8_t {
    /// Channels, in fprop those of each group, and in gradients filters are followed by zeros up to a multiple of
    /// `unit`.
    padded_channels,
    /// In fprop, the pixels of one row of a window become the channels of one pixel, so that the filter has one column
    /// of S * C channels, which are followed by zeros up to a multiple of `unit`.
    window_rows,
    /// In fprop, a block of `block` pixels of y becomes the channels of one pixel, with a filter that has, for each
    /// pixel of the block, the taps that it meets, and zeros for the others. In dgrad this is a block of pixels of x,
    /// whose gradient is the fprop of y with such a filter. `merged` groups become one, whose filters have zeros for
    /// the channels of the other groups.
    pixel_blocks,
    /// `merged` groups become one, whose filters have zeros for the channels of the other groups.
    merged_groups,
    /// wgrad becomes the fprop whose channels are the images, followed by zeros up to a multiple of `unit`, whose
    /// images are the channels of x, and whose filters are those of y: DW[k,r,s,c] is the sum over (p, q, n) of
    /// y[n,p,q,k] * x[n,h,w,c], where tap (p, q) meets position (r, s) at h = p * stride + r * dilation - padding. Both
    /// operands are then contiguous along K, as wgmma reads elements that are not 16 bits wide.
    images_as_channels,
  };
  Method method = Method::padded_channels;
  std::int64_t unit = 1;                    // elements
  std::array<std::int64_t, 2> block{1, 1};  // in dgrad a multiple of the stride; 1 for the other methods
  std::int64_t merged = 1;                  // divides the groups; of merged_groups and pixel_blocks
  bool operator==(const ConvRepacking&) const = default;
};

/// "pad64", "windows8", "blocks4x4_pad8", "blocks2x2_groups4_pad8", "groups4", "images32"
std::string to_string(const ConvRepacking& repacking);

/// A copy of rows of bytes to rows of another length. Each line of the source has `rows` rows, which may overlap: row i
/// is `row_bytes` bytes from byte i * step + offset of the line on, of which those outside the line are zeros. Rows of
/// the copy follow each other without gaps; their other bytes, and `zero_rows` rows at the end, are zeros.
struct RowCopy {
  std::uint64_t from = 0, to = 0;
  std::int64_t lines = 1, line_pitch = 0, line_bytes = 0;
  std::int64_t rows = 1, step = 0, offset = 0, row_bytes = 0;
  std::int64_t to_bytes = 0;  // of a row of the copy, a multiple of 16
  std::int64_t zero_rows = 0;
  // In row i of the copy, the bytes of line l begin behind l / lines_of_part % parts other parts of `row_bytes`.
  std::int64_t lines_of_part = 1, parts = 1;

  std::int64_t copied_rows() const { return lines * rows + zero_rows; }
  std::int64_t copied_bytes() const { return copied_rows() * to_bytes; }
  bool operator==(const RowCopy&) const = default;
};

/// The filter of ConvRepacking::Method::pixel_blocks or, with blocks of one pixel, the transpose of any tensor: its
/// outputs become the first mode and its inputs the last. Along each axis, pixel `pixel` of a block and tap `tap` of
/// the copy have tap (pixel * pixel_step + tap * tap_step + offset) / dilation of w if that is one, and zeros
/// otherwise. The outputs are the channels of the tensor that has blocks of pixels, and the inputs those over which the
/// products are summed.
struct FilterBlocks {
  struct Axis {
    std::int64_t block = 1, pixel_step = 0, tap_step = 1, offset = 0, dilation = 1;
    std::int64_t taps = 1, copied_taps = 1;
    std::int64_t tap_stride = 0;  // of w, in elements
    bool is_reversed = false;     // ConvMode::convolution
    bool operator==(const Axis&) const = default;
  };
  std::uint64_t from = 0, to = 0;
  int element_bytes = 2;
  Axis h, w;
  std::int64_t outputs = 1, inputs = 1;              // of a group
  std::int64_t output_stride = 1, input_stride = 1;  // of w, in elements; one of them is 1
  // Filters of the copy, for each group: (pixel of the block, output), then zeros.
  std::int64_t copied_rows = 1;
  std::int64_t groups = 1, group_stride = 0;  // of w, in elements
  // Channels of the copy: the inputs of `merged` groups, of which those of other groups are zeros, then zeros.
  std::int64_t copied_inputs = 1, merged = 1;

  std::int64_t copied_elements() const { return groups * copied_rows * h.copied_taps * w.copied_taps * copied_inputs; }
  bool operator==(const FilterBlocks&) const = default;
};

/// The copy from the output of the other convolution to the output: pixel (i, j) of an image is element
/// (i % block_h, j % block_w, channel) of row (i / block_h, j / block_w) of the image's rows. Rows of channels that
/// follow zeros are those of blocks of one pixel.
struct PixelBlocks {
  std::uint64_t from = 0, to = 0;
  std::int64_t images = 1, h = 1, w = 1;  // of the output
  std::int64_t row_bytes = 0;             // of a pixel's channels in the output
  std::int64_t block_h = 1, block_w = 1;
  std::int64_t from_bytes = 0;  // from one row to the next
  // A pixel has `groups` parts of row_bytes; those of a row of the other convolution are group_bytes apart.
  std::int64_t groups = 1, group_bytes = 0;
  // Image i takes part i / images_of_part % parts of a row, each of which has the channels of a whole block.
  std::int64_t images_of_part = 1, parts = 1;
  std::int64_t image_bytes = 0, to_bytes = 0;  // of the output, from one image and from one pixel to the next

  std::int64_t copied_bytes() const { return images * h * w * groups * row_bytes; }
  bool operator==(const PixelBlocks&) const = default;
};

struct ConvCopy {
  std::string_view role;  // "x", "w" or "y"
  std::variant<RowCopy, FilterBlocks, PixelBlocks> copy;
};

struct RepackedConv {
  Conv2d inner;  // of the copies
  std::vector<ConvCopy> before, after;
  std::int64_t workspace_bytes = 0;  // of all copies
};

/// The convolution on copies in a workspace at `workspace`, which is a multiple of 256 bytes. Refused: groups, except
/// by merged_groups, pixel_blocks and, in fprop, padded_channels, blocks of channels, methods that change nothing or do
/// not fit the pass, epilogues that need more of the output than its elements if the output is copied, and copies of
/// more than `max_bytes`. @pre validate(conv), it is not empty
Result<RepackedConv> repack(const Conv2d& conv, const ConvRepacking& repacking, std::uint64_t workspace,
                            std::int64_t max_bytes);

}  // namespace tilewright::op
