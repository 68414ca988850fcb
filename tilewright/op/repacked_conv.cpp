#include "tilewright/op/repacked_conv.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "tilewright/base/rounding.hpp"
#include "tilewright/op/epilogue_tensors.hpp"

namespace tilewright::op {
namespace {

constexpr std::int64_t kRowAlignment = 16;                     // bytes
constexpr std::int64_t kBufferAlignment = 256;                 // bytes
constexpr std::int64_t kMaxBlock = 64, kMaxPadding = 1 << 20;  // pixels, so that numbers of filters and taps are small

/// Elements that TMA and vectors need a row to be a multiple of.
std::int64_t row_unit(const Tensor& tensor) { return std::max<std::int64_t>(1, kRowAlignment / bytes(tensor.dtype)); }

/// Whether a vector of 16 bytes can move the channels of every pixel.
bool has_aligned_rows(const Tensor& tensor) {
  const std::int64_t unit = row_unit(tensor);
  bool is_aligned = tensor.address % kRowAlignment == 0;
  for (int mode = 0; mode < 3; ++mode) is_aligned &= tensor.shape[mode] == 1 || tensor.stride[mode] % unit == 0;
  return is_aligned;
}

/// The stride of the modes 0 and 1 as one mode.
std::optional<std::int64_t> stride_of_lines(const Tensor& tensor) {
  if (tensor.shape[0] == 1) return tensor.stride[1];
  if (tensor.shape[1] == 1) return tensor.stride[0];
  if (tensor.stride[0] != tensor.stride[1] * tensor.shape[1]) return std::nullopt;
  return tensor.stride[1];
}

bool is_packed(const Tensor& tensor) {
  std::int64_t elements = 1;
  for (int mode = tensor.shape.rank() - 1; mode >= 0; --mode) {
    if (tensor.shape[mode] != 1 && tensor.stride[mode] != elements) return false;
    elements *= tensor.shape[mode];
  }
  return true;
}

bool uses_index(const Epilogue& epilogue) {
  return std::ranges::any_of(epilogue.nodes, [](const EpilogueNode& node) {
    return node.op == EpilogueOp::row_index || node.op == EpilogueOp::column_index;
  });
}

class Repacking {
 public:
  Repacking(const Conv2d& conv, const ConvRepacking& how, std::uint64_t workspace, bool reads_source)
      : conv_(conv),
        how_(how),
        workspace_(workspace),
        reads_source_(reads_source),
        result_{.inner = conv, .before = {}, .after = {}} {}

  Result<RepackedConv> run(std::int64_t max_bytes) && {
    const Support fits = apply();
    if (!fits) return fits.refusal();
    if (result_.before.empty() && result_.after.empty()) return refuse("no tensor changes").as(RefusalCode::shape);
    if (result_.workspace_bytes > max_bytes) {
      return refuse("copies of {} need {} bytes of workspace, at most {} are allowed", to_string(how_),
                    result_.workspace_bytes, max_bytes)
          .as(RefusalCode::memory);
    }
    if (const Support valid = validate(result_.inner); !valid) return valid.refusal();
    return std::move(result_);
  }

 private:
  Support apply() {
    switch (how_.method) {
      case ConvRepacking::Method::padded_channels:
        return padded_channels();
      case ConvRepacking::Method::window_rows:
        return window_rows();
      case ConvRepacking::Method::pixel_blocks:
        return pixel_blocks();
      case ConvRepacking::Method::merged_groups:
        return merged_groups();
      case ConvRepacking::Method::images_as_channels:
        return images_as_channels();
    }
    TILEWRIGHT_CHECK(false, "no method {}", static_cast<int>(how_.method));
  }

  /// Memory for a tensor of this type and shape. If it is larger than any memory, run() refuses it.
  Tensor buffer(const Tensor& like, const Dims& shape) {
    constexpr std::int64_t kTooLarge = std::int64_t{1} << 60;
    double bytes_of = bytes(like.dtype);
    for (int mode = 0; mode < shape.rank(); ++mode) bytes_of *= static_cast<double>(shape[mode]);
    if (bytes_of + static_cast<double>(result_.workspace_bytes) > static_cast<double>(kTooLarge)) {
      result_.workspace_bytes = kTooLarge;
      return packed_tensor(workspace_, like.dtype, {1, 1, 1, 1}, like.device);
    }
    const Tensor made =
        packed_tensor(workspace_ + static_cast<std::uint64_t>(result_.workspace_bytes), like.dtype, shape, like.device);
    result_.workspace_bytes += round_up(static_cast<std::int64_t>(bytes_of), kBufferAlignment);
    return made;
  }

  /// A copy of `tensor` with `channels` channels and `first` of its first mode, those behind its own being zeros. If
  /// the channels are several groups, each group is followed by its share of these zeros.
  Support pad(std::string_view role, const Tensor& tensor, std::int64_t first, std::int64_t channels, Tensor& copy,
              std::int64_t groups = 1) {
    const std::optional<std::int64_t> line = stride_of_lines(tensor);
    if (!line || (groups != 1 && tensor.shape[2] != 1 && tensor.stride[2] != tensor.shape[3])) {
      return refuse("the rows of {} have several strides, {}", role, to_string(tensor.stride))
          .as(RefusalCode::strides)
          .of(role);
    }
    copy = buffer(tensor, {first, tensor.shape[1], tensor.shape[2], channels});
    const std::int64_t element = bytes(tensor.dtype), rows = tensor.shape[2] * groups;
    const std::int64_t row = tensor.shape[3] / groups * element;
    const std::int64_t step = groups != 1 || tensor.shape[2] == 1 ? row : tensor.stride[2] * element;
    result_.before.push_back({role, RowCopy{.from = tensor.address,
                                            .to = copy.address,
                                            .lines = tensor.shape[0] * tensor.shape[1],
                                            .line_pitch = *line * element,
                                            .line_bytes = (rows - 1) * step + row,
                                            .rows = rows,
                                            .step = step,
                                            .row_bytes = row,
                                            .to_bytes = channels / groups * element,
                                            .zero_rows = (first - tensor.shape[0]) * tensor.shape[1] * rows}});
    return {};
  }

  /// Refuses epilogues that use more of an output of other rows or columns than its elements.
  Support check_epilogue_of_other_output() const {
    if (conv_.tensors.empty() && !uses_index(conv_.epilogue) && conv_.epilogue.columns_per_element() == 1) return {};
    return refuse("the output is another matrix, so that its epilogue can have neither tensors, indices nor pairs")
        .as(RefusalCode::epilogue);
  }

  /// Whether a block of pixels is a part of a line of pixels without gaps.
  bool block_is_part_of_a_row(const Tensor& images) const {
    return how_.block[0] == 1 && images.shape[2] % how_.block[1] == 0 && images.stride[2] == images.shape[3];
  }
  Tensor pixels_as_channels(const Tensor& images) const {
    Tensor result = images;
    result.shape[2] /= how_.block[1];
    result.shape[3] *= how_.block[1];
    result.stride[2] = result.shape[3];
    return result;
  }

  /// Refuses calls that need more of an output that is copied than its elements.
  Support check_copied_output() const {
    if (const Support fits = check_epilogue_of_other_output(); !fits) return fits;
    if (!reads_source_) return {};
    return refuse("the output is copied, so that C cannot be read: beta must be 0, got {}", conv_.beta)
        .as(RefusalCode::scalars)
        .of("C");
  }

  /// Copies C and the tensors that the epilogue reads as the output is copied. `copy(role, tensor, copied)` copies one,
  /// or refuses it.
  template <class Copy>
  Support copy_inputs_of_epilogue(const Copy& copy) {
    if (uses_index(conv_.epilogue) || conv_.epilogue.columns_per_element() != 1) {
      return refuse("the output is another matrix, so that its epilogue can have neither indices nor pairs")
          .as(RefusalCode::epilogue);
    }
    result_.inner.c = {};
    if (reads_source_) {
      if (const Support fits = copy("C", conv_.c, result_.inner.c); !fits) return fits;
    }
    for (std::size_t i = 0; i < conv_.tensors.size(); ++i) {
      const auto& [name, tensor] = conv_.tensors[i];
      if (is_output(conv_.epilogue, name)) {
        return refuse("the output is copied, but not '{}', which the epilogue writes, too", name)
            .as(RefusalCode::epilogue)
            .of(name);
      }
      if (const Support fits = copy(name, tensor, result_.inner.tensors[i].tensor); !fits) return fits;
    }
    return {};
  }

  /// The same for an output with `channels` channels, of which those of `written` come first.
  Support pad_inputs_of_epilogue(const Tensor& written, std::int64_t channels) {
    return copy_inputs_of_epilogue([&](std::string_view role, const Tensor& tensor, Tensor& copied) -> Support {
      if (tensor.shape[3] != written.shape[3]) return {};  // broadcast along the channels
      if (channels * bytes(tensor.dtype) % kRowAlignment != 0) {
        return refuse("rows of {} channels of '{}' are no multiple of 16 bytes", channels, role)
            .as(RefusalCode::alignment)
            .of(role);
      }
      return pad(role, tensor, tensor.shape[0], channels, copied);
    });
  }

  /// Makes `copy` the output of the other convolution, of which `written` has the channels that follow each other.
  void copy_output(const Tensor& written, std::int64_t block_h, std::int64_t block_w, const Tensor& copy) {
    const std::int64_t element = bytes(written.dtype);
    const std::int64_t pixel = written.shape[2] > 1   ? written.stride[2]
                               : written.shape[1] > 1 ? written.stride[1]
                                                      : written.shape[3];
    const std::string_view role = conv_.pass == ConvPass::fprop ? "y" : conv_.pass == ConvPass::dgrad ? "x" : "w";
    result_.after.push_back({role, PixelBlocks{.from = copy.address,
                                               .to = written.address,
                                               .images = written.shape[0],
                                               .h = written.shape[1],
                                               .w = written.shape[2],
                                               .row_bytes = written.shape[3] * element,
                                               .block_h = block_h,
                                               .block_w = block_w,
                                               .from_bytes = copy.shape[3] * element,
                                               .image_bytes = written.stride[0] * element,
                                               .to_bytes = pixel * element}});
  }

  Support padded_channels() {
    Conv2d& inner = result_.inner;
    const auto padded = [&](std::int64_t channels) { return round_up(channels, how_.unit); };
    const std::int64_t groups = conv_.groups, channels = conv_.x.shape[3] / groups, filters = conv_.w.shape[0];
    if (conv_.pass == ConvPass::fprop) {
      if (padded(channels) != channels || !has_aligned_rows(conv_.x)) {
        const Support fits = pad("x", conv_.x, conv_.x.shape[0], groups * padded(channels), inner.x, groups);
        if (!fits) return fits;
      }
      if (padded(channels) == channels && has_aligned_rows(conv_.w)) return {};
      return pad("w", conv_.w, filters, padded(channels), inner.w);
    }
    if (conv_.pass == ConvPass::wgrad) {
      if (!has_aligned_rows(conv_.y)) {
        const Support fits = pad("y", conv_.y, conv_.y.shape[0], round_up(filters, row_unit(conv_.y)), inner.y);
        if (!fits) return fits;
        inner.y.shape[3] = filters;
      }
      if (padded(channels) == channels && has_aligned_rows(conv_.x)) return {};
      if (const Support fits = pad("x", conv_.x, conv_.x.shape[0], padded(channels), inner.x); !fits) return fits;
      if (padded(channels) == channels) return {};
      inner.w = buffer(conv_.w, {filters, conv_.w.shape[1], conv_.w.shape[2], padded(channels)});
      copy_output(conv_.w, 1, 1, inner.w);
      return pad_inputs_of_epilogue(conv_.w, padded(channels));
    }
    // A tensor map of dgrad has rows of w, whose channels may end anywhere.
    const bool copies_y = padded(filters) != filters || !has_aligned_rows(conv_.y);
    if (copies_y) {
      if (const Support fits = pad("y", conv_.y, conv_.y.shape[0], padded(filters), inner.y); !fits) return fits;
    }
    const std::int64_t rows = round_up(channels, row_unit(conv_.w));
    if (!copies_y && rows == channels && has_aligned_rows(conv_.w)) return {};
    if (const Support fits = pad("w", conv_.w, padded(filters), rows, inner.w); !fits) return fits;
    // TMA stores the pixels of a class if there is a stride, and other stores take rows of any length.
    const std::int64_t stored = round_up(channels, row_unit(conv_.x));
    if ((conv_.stride[0] == 1 && conv_.stride[1] == 1) || (stored == channels && has_aligned_rows(conv_.x))) {
      inner.w.shape[3] = channels;
      return {};
    }
    if (stored > rows) return refuse("x has smaller elements than w").as(RefusalCode::types);
    inner.w.shape[3] = stored;
    inner.x = buffer(conv_.x, {conv_.x.shape[0], conv_.x.shape[1], conv_.x.shape[2], stored});
    copy_output(conv_.x, 1, 1, inner.x);
    return pad_inputs_of_epilogue(conv_.x, stored);
  }

  Support window_rows() {
    Conv2d& inner = result_.inner;
    const Tensor &x = conv_.x, &w = conv_.w;
    const std::int64_t channels = x.shape[3], taps = w.shape[2], element = bytes(x.dtype);
    if (conv_.pass != ConvPass::fprop || conv_.dilation[1] != 1 || conv_.mode != ConvMode::cross_correlation ||
        taps == 1) {
      return refuse("rows of a window are copied in fprop of cross-correlations without dilation, with several columns")
          .as(RefusalCode::shape);
    }
    const std::optional<std::int64_t> line_of_x = stride_of_lines(x), line_of_w = stride_of_lines(w);
    if (!line_of_x || !line_of_w || (x.shape[2] > 1 && x.stride[2] != channels) || w.stride[2] != channels)
      return refuse("the pixels of a line must be contiguous").as(RefusalCode::strides);
    const std::int64_t padded = round_up(taps * channels, how_.unit), positions = conv_.y.shape[2];
    inner.x = buffer(x, {x.shape[0], x.shape[1], positions, padded});
    inner.w = buffer(w, {w.shape[0], w.shape[1], 1, padded});
    inner.padding[1] = 0;
    inner.stride[1] = 1;
    result_.before.push_back({"x", RowCopy{.from = x.address,
                                           .to = inner.x.address,
                                           .lines = x.shape[0] * x.shape[1],
                                           .line_pitch = *line_of_x * element,
                                           .line_bytes = x.shape[2] * channels * element,
                                           .rows = positions,
                                           .step = conv_.stride[1] * channels * element,
                                           .offset = -conv_.padding[1] * channels * element,
                                           .row_bytes = taps * channels * element,
                                           .to_bytes = padded * element}});
    result_.before.push_back({"w", RowCopy{.from = w.address,
                                           .to = inner.w.address,
                                           .lines = w.shape[0] * w.shape[1],
                                           .line_pitch = *line_of_w * element,
                                           .line_bytes = taps * channels * element,
                                           .row_bytes = taps * channels * element,
                                           .to_bytes = padded * element}});
    return {};
  }

  Support merged_groups() {
    Conv2d& inner = result_.inner;
    const Tensor& w = conv_.w;
    if (how_.merged == 1) return refuse("groups are merged to groups of 1, which they are").as(RefusalCode::shape);
    if (const Support fits = check_merged(); !fits) return fits;
    const std::int64_t filters = w.shape[0] / conv_.groups, channels = w.shape[3];
    inner.groups = conv_.groups / how_.merged;
    if (conv_.pass != ConvPass::wgrad) {
      if (const Support fits = pad("w", w, w.shape[0], channels * how_.merged, inner.w); !fits) return fits;
      if (channels * how_.merged % row_unit(w) != 0)
        return refuse("rows of {} channels are no multiple of 16 bytes", channels * how_.merged).as(RefusalCode::shape);
      auto& rows = std::get<RowCopy>(result_.before.back().copy);
      rows.lines_of_part = filters * w.shape[1];
      rows.parts = how_.merged;
      return {};
    }
    inner.w = buffer(w, {w.shape[0], w.shape[1], w.shape[2], channels * how_.merged});
    if (const Support fits = check_copied_output(); !fits) return fits;
    result_.inner.c = {};
    copy_output(w, 1, 1, inner.w);
    auto& pixels = std::get<PixelBlocks>(result_.after.back().copy);
    pixels.images_of_part = filters;
    pixels.parts = how_.merged;
    return {};
  }

  /// The copy that exchanges the first and the last mode of `images`: (N, H, W, C) becomes (C, H, W, N), with zeros
  /// behind the N elements of a row if `to` has more.
  static FilterBlocks transposing(const Tensor& images, const Tensor& to) {
    const auto axis = [&](int mode) {
      return FilterBlocks::Axis{
          .taps = images.shape[mode], .copied_taps = images.shape[mode], .tap_stride = images.stride[mode]};
    };
    return {.from = images.address,
            .to = to.address,
            .element_bytes = bytes(images.dtype),
            .h = axis(1),
            .w = axis(2),
            .outputs = images.shape[3],
            .inputs = images.shape[0],
            .output_stride = 1,
            .input_stride = images.stride[0],
            .copied_rows = to.shape[0],
            .copied_inputs = to.shape[3]};
  }

  Support images_as_channels() {
    if (conv_.pass != ConvPass::wgrad)
      return refuse("images become channels in gradients of filters only").as(RefusalCode::shape);
    const Tensor &x = conv_.x, &w = conv_.w, &y = conv_.y;
    if (!is_packed(w))
      return refuse("the filter must be packed, got {}", to_string(w.stride)).as(RefusalCode::strides).of("w");
    Conv2d& inner = result_.inner;
    const std::int64_t images = round_up(x.shape[0], how_.unit), filters = w.shape[0], channels = x.shape[3];
    inner.pass = ConvPass::fprop;
    inner.mode = ConvMode::cross_correlation;
    std::swap(inner.stride, inner.dilation);
    inner.epilogue = transposed(conv_.epilogue);
    inner.x = buffer(x, {channels, x.shape[1], x.shape[2], images});
    inner.w = buffer(y, {filters, y.shape[1], y.shape[2], images});
    inner.y = buffer(w, {channels, w.shape[1], w.shape[2], filters});
    result_.before.push_back({"x", transposing(x, inner.x)});
    result_.before.push_back({"y", transposing(y, inner.w)});
    FilterBlocks back = transposing(inner.y, w);
    back.h.is_reversed = back.w.is_reversed = conv_.mode == ConvMode::convolution;
    result_.after.push_back({"w", back});
    return copy_inputs_of_epilogue([&](std::string_view role, const Tensor& tensor, Tensor& copied) -> Support {
      if (conv_.mode == ConvMode::convolution)
        return refuse("the taps of '{}' are those of w in reverse order", role).as(RefusalCode::epilogue).of(role);
      if (bytes(tensor.dtype) > 4)
        return refuse("'{}' has elements of {} bytes", role, bytes(tensor.dtype)).as(RefusalCode::types).of(role);
      copied = buffer(tensor, {tensor.shape[3], tensor.shape[1], tensor.shape[2], tensor.shape[0]});
      result_.before.push_back({role, transposing(tensor, copied)});
      return {};
    });
  }

  /// Whether the gradient is the fprop with the same taps in reverse order, as far apart as those of w.
  bool keeps_dilation(std::size_t axis) const {
    const std::int64_t taps = conv_.w.shape[static_cast<int>(axis) + 1];
    return how_.block[axis] == 1 && conv_.stride[axis] == 1 && conv_.padding[axis] <= (taps - 1) * conv_.dilation[axis];
  }

  /// Pixel i * block + a of x and tap t of the copy meet at pixel i * block / stride + first + t of y, where tap
  /// (a + padding - stride * (first + t)) / dilation of w meets them, too.
  FilterBlocks::Axis axis_of_gradient(std::size_t axis, std::int64_t& first) const {
    FilterBlocks::Axis result = axis_of_taps(axis);
    const std::int64_t padding = conv_.padding[axis], stride = conv_.stride[axis];
    result.pixel_step = 1;
    if (keeps_dilation(axis)) {
      first = padding - (result.taps - 1) * result.dilation;
      result.tap_step = -1;
      result.offset = result.taps - 1;
      result.dilation = 1;
      result.copied_taps = result.taps;
      return result;
    }
    // The padding of a convolution is not negative.
    first = std::min<std::int64_t>(0, ceil_div(padding - (result.taps - 1) * result.dilation, stride));
    result.tap_step = -stride;
    result.offset = padding - stride * first;
    result.copied_taps = std::max<std::int64_t>(1, floor_div(result.block - 1 + padding, stride) - first + 1);
    return result;
  }

  /// Pixel i * block + a of y meets tap t of the copy, and tap (t - a * stride) / dilation of w, at pixel
  /// i * block * stride + t - padding of x.
  FilterBlocks::Axis axis_of_product(std::size_t axis) const {
    FilterBlocks::Axis result = axis_of_taps(axis);
    result.pixel_step = -conv_.stride[axis];
    result.copied_taps = (result.block - 1) * conv_.stride[axis] + (result.taps - 1) * result.dilation + 1;
    return result;
  }

  FilterBlocks::Axis axis_of_taps(std::size_t axis) const {
    const int mode = static_cast<int>(axis) + 1;
    return {.block = how_.block[axis],
            .dilation = conv_.dilation[axis],
            .taps = conv_.w.shape[mode],
            .tap_stride = conv_.w.stride[mode],
            .is_reversed = conv_.mode == ConvMode::convolution};
  }

  Support check_merged() const {
    if (how_.merged >= 1 && conv_.groups % how_.merged == 0) return {};
    return refuse("{} groups cannot be merged to groups of {}", conv_.groups, how_.merged).as(RefusalCode::shape);
  }

  Support check_blocks() const {
    if (conv_.pass == ConvPass::wgrad) return refuse("a filter has no blocks of pixels").as(RefusalCode::shape);
    for (std::size_t axis = 0; axis < 2; ++axis) {
      const bool is_multiple = conv_.pass == ConvPass::fprop || how_.block[axis] % conv_.stride[axis] == 0;
      if (!is_multiple || how_.block[axis] > kMaxBlock) {
        return refuse("blocks of {} pixels are no multiple of the stride {}, or more than {}", how_.block[axis],
                      conv_.stride[axis], kMaxBlock)
            .as(RefusalCode::shape);
      }
      if (conv_.padding[axis] > kMaxPadding || conv_.stride[axis] > kMaxPadding) {
        return refuse("the padding is {} and the stride {}, at most {} is allowed", conv_.padding[axis],
                      conv_.stride[axis], kMaxPadding)
            .as(RefusalCode::shape);
      }
    }
    return {};
  }

  Support pixel_blocks() {
    for (const Support& fits : {check_blocks(), check_merged()}) {
      if (!fits) return fits;
    }
    Conv2d& inner = result_.inner;
    const Tensor &w = conv_.w, &written = conv_.written();
    const bool is_dgrad = conv_.pass == ConvPass::dgrad;
    const Tensor& image = is_dgrad ? conv_.y : conv_.x;
    FilterBlocks filter;
    filter.from = w.address;
    filter.element_bytes = bytes(w.dtype);
    filter.groups = conv_.groups;
    filter.group_stride = w.shape[0] / conv_.groups * w.stride[0];
    filter.outputs = written.shape[3] / conv_.groups;
    filter.inputs = image.shape[3] / conv_.groups;
    filter.output_stride = is_dgrad ? 1 : w.stride[0];
    filter.input_stride = is_dgrad ? w.stride[0] : 1;
    inner.pass = ConvPass::fprop;
    inner.mode = ConvMode::cross_correlation;
    inner.dilation = {1, 1};
    for (std::size_t axis = 0; axis < 2; ++axis) {
      FilterBlocks::Axis& copied = axis == 0 ? filter.h : filter.w;
      if (is_dgrad) {
        std::int64_t first = 0;
        copied = axis_of_gradient(axis, first);
        if (keeps_dilation(axis)) inner.dilation[axis] = conv_.dilation[axis];
        inner.stride[axis] = how_.block[axis] / conv_.stride[axis];
        inner.padding[axis] = -first;
      } else {
        copied = axis_of_product(axis);
        inner.stride[axis] = how_.block[axis] * conv_.stride[axis];
      }
    }
    filter.merged = how_.merged;
    filter.copied_inputs = round_up(filter.inputs * how_.merged, how_.unit);
    inner.groups = conv_.groups / how_.merged;
    inner.x = image;
    const std::int64_t channels = inner.groups * filter.copied_inputs;
    if (channels != image.shape[3] || !has_aligned_rows(image)) {
      const Support fits = pad(is_dgrad ? "y" : "x", image, image.shape[0], channels, inner.x, inner.groups);
      if (!fits) return fits;
    }
    const std::int64_t columns = how_.block[0] * how_.block[1] * filter.outputs;
    const bool is_same_output = how_.block[0] == 1 && how_.block[1] == 1;
    const bool is_in_place = is_same_output || (conv_.groups == 1 && block_is_part_of_a_row(written) &&
                                                (!reads_source_ || block_is_part_of_a_row(conv_.c)));
    filter.copied_rows = is_in_place ? columns : round_up(columns, row_unit(written));
    inner.w = buffer(
        w, {conv_.groups * filter.copied_rows, filter.h.copied_taps, filter.w.copied_taps, filter.copied_inputs});
    filter.to = inner.w.address;
    result_.before.push_back({"w", filter});
    if (is_same_output) {  // C and the tensors of the epilogue stay those of the caller
      inner.y = written;
      return {};
    }
    if (is_in_place) {
      if (const Support fits = check_epilogue_of_other_output(); !fits) return fits;
      inner.y = pixels_as_channels(written);
      inner.c = reads_source_ ? pixels_as_channels(conv_.c) : Tensor();
      return {};
    }
    inner.y = buffer(written, {written.shape[0], ceil_div(written.shape[1], how_.block[0]),
                               ceil_div(written.shape[2], how_.block[1]), conv_.groups * filter.copied_rows});
    if (const Support fits = check_copied_output(); !fits) return fits;
    result_.inner.c = {};
    copy_output(written, how_.block[0], how_.block[1], inner.y);
    auto& pixels = std::get<PixelBlocks>(result_.after.back().copy);
    pixels.groups = conv_.groups;
    pixels.row_bytes /= conv_.groups;
    pixels.group_bytes = filter.copied_rows * bytes(written.dtype);
    return {};
  }

  const Conv2d& conv_;
  const ConvRepacking& how_;
  std::uint64_t workspace_;
  bool reads_source_;
  RepackedConv result_;
};

}  // namespace

std::string to_string(const ConvRepacking& repacking) {
  switch (repacking.method) {
    case ConvRepacking::Method::padded_channels:
      return fmt::format("pad{}", repacking.unit);
    case ConvRepacking::Method::window_rows:
      return fmt::format("windows{}", repacking.unit);
    case ConvRepacking::Method::pixel_blocks:
      return fmt::format("blocks{}x{}{}_pad{}", repacking.block[0], repacking.block[1],
                         repacking.merged == 1 ? "" : fmt::format("_groups{}", repacking.merged), repacking.unit);
    case ConvRepacking::Method::merged_groups:
      return fmt::format("groups{}", repacking.merged);
    case ConvRepacking::Method::images_as_channels:
      return fmt::format("images{}", repacking.unit);
  }
  TILEWRIGHT_CHECK(false, "no method {}", static_cast<int>(repacking.method));
}

Result<RepackedConv> repack(const Conv2d& conv, const ConvRepacking& repacking, std::uint64_t workspace,
                            std::int64_t max_bytes) {
  const bool keeps_groups =
      repacking.method == ConvRepacking::Method::merged_groups ||
      repacking.method == ConvRepacking::Method::pixel_blocks ||
      (repacking.method == ConvRepacking::Method::padded_channels && conv.pass == ConvPass::fprop);
  if (conv.groups != 1 && !keeps_groups) {
    return refuse("copies of {} for {} are made without groups, got {}", to_string(repacking), name(conv.pass),
                  conv.groups)
        .as(RefusalCode::shape);
  }
  for (const Tensor* const tensor : {&conv.x, &conv.w, &conv.y}) {
    if (tensor->shape.rank() != 4) return refuse("a tensor has blocks of channels").as(RefusalCode::strides);
    if (tensor->is_empty()) return refuse("a tensor is empty").as(RefusalCode::shape);
  }
  const GemmView all = view(conv);
  if (!all.reads_product) return refuse("the call reads no product").as(RefusalCode::scalars);
  return Repacking(conv, repacking, workspace, all.reads_source).run(max_bytes);
}

}  // namespace tilewright::op
