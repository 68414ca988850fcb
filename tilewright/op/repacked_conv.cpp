#include "tilewright/op/repacked_conv.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "tilewright/base/rounding.hpp"
#include "tilewright/base/tensor_map.hpp"
#include "tilewright/op/epilogue_tensors.hpp"
#include "tilewright/op/packed.hpp"

namespace tilewright::op {
namespace {

constexpr std::int64_t kBufferAlignment = 256;                 // bytes
constexpr std::int64_t kMaxBlock = 64, kMaxPadding = 1 << 20;  // pixels, so that numbers of filters and taps are small

/// Elements that TMA and vectors need a row to be a multiple of.
std::int64_t row_unit(const Tensor& tensor) { return std::max(1, kTmaAlignment / bytes(tensor.dtype)); }

/// Whether a vector of 16 bytes can move the channels of every pixel.
bool has_aligned_rows(const Tensor& tensor) {
  const std::int64_t unit = row_unit(tensor);
  bool is_aligned = tensor.address % kTmaAlignment == 0;
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

bool uses_index(const Epilogue& epilogue) {
  return std::ranges::any_of(epilogue.nodes, [](const EpilogueNode& node) {
    return node.op == EpilogueOp::row_index || node.op == EpilogueOp::column_index;
  });
}

/// A call of repack().
struct Call {
  const Conv2d& conv;
  const ConvRepacking& how;
  bool reads_source;
};

/// The caller's convolution, without copies.
RepackedConv unchanged(const Call& call) { return {.inner = call.conv, .before = {}, .after = {}}; }

/// Tensors that follow each other in memory, from an address on.
class Workspace {
 public:
  explicit Workspace(std::uint64_t address) : address_(address) {}

  std::int64_t bytes() const { return bytes_; }

  /// Memory for a tensor of this type and shape. If it is larger than any memory, `bytes` becomes so large that
  /// repack() refuses it.
  Tensor tensor(const Tensor& like, const Dims& shape) {
    constexpr std::int64_t kTooLarge = std::int64_t{1} << 60;
    double needed = tilewright::bytes(like.dtype);
    for (int mode = 0; mode < shape.rank(); ++mode) needed *= static_cast<double>(shape[mode]);
    if (needed + static_cast<double>(bytes_) > static_cast<double>(kTooLarge)) {
      bytes_ = kTooLarge;
      return packed_tensor(address_, like.dtype, {1, 1, 1, 1}, like.device);
    }
    const Tensor made = packed_tensor(address_ + static_cast<std::uint64_t>(bytes_), like.dtype, shape, like.device);
    bytes_ += round_up(static_cast<std::int64_t>(needed), kBufferAlignment);
    return made;
  }

 private:
  std::uint64_t address_;
  std::int64_t bytes_ = 0;
};

/// A tensor of the inner convolution, and the copy that writes it.
struct CopiedTensor {
  Tensor tensor;
  ConvCopy copy;
};

/// Makes the inner convolution read a copy in place of `operand`, which is one of its tensors.
void read_copy(RepackedConv& result, Tensor& operand, const CopiedTensor& copied) {
  operand = copied.tensor;
  result.before.push_back(copied.copy);
}

/// The extents of a copy's first mode and of its channels. If the channels are several groups, each group is followed
/// by its share of the zeros behind them.
struct PaddedExtents {
  std::int64_t first = 0, channels = 0;
  std::int64_t groups = 1;
};

/// Copies `tensor` with zeros behind its first mode and its channels.
Result<CopiedTensor> pad(Workspace& workspace, std::string_view role, const Tensor& tensor, const PaddedExtents& to) {
  const std::optional<std::int64_t> line = stride_of_lines(tensor);
  if (!line || (to.groups != 1 && tensor.shape[2] != 1 && tensor.stride[2] != tensor.shape[3])) {
    return refuse("the rows of {} have several strides, {}", role, to_string(tensor.stride))
        .as(RefusalCode::strides)
        .of(role);
  }
  const Tensor copy = workspace.tensor(tensor, {to.first, tensor.shape[1], tensor.shape[2], to.channels});
  const std::int64_t element = bytes(tensor.dtype), rows = tensor.shape[2] * to.groups;
  const std::int64_t row = tensor.shape[3] / to.groups * element;
  const std::int64_t step = to.groups != 1 || tensor.shape[2] == 1 ? row : tensor.stride[2] * element;
  return CopiedTensor{copy,
                      {role, RowCopy{.from = tensor.address,
                                     .to = copy.address,
                                     .lines = tensor.shape[0] * tensor.shape[1],
                                     .line_pitch = *line * element,
                                     .line_bytes = (rows - 1) * step + row,
                                     .rows = rows,
                                     .step = step,
                                     .row_bytes = row,
                                     .to_bytes = to.channels / to.groups * element,
                                     .zero_rows = (to.first - tensor.shape[0]) * tensor.shape[1] * rows}}};
}

/// Refuses epilogues that use more of an output of other rows or columns than its elements.
Support check_epilogue_of_other_output(const Conv2d& conv) {
  if (conv.tensors.empty() && !uses_index(conv.epilogue) && conv.epilogue.columns_per_element() == 1) return {};
  return refuse("the output is another matrix, so that its epilogue can have neither tensors, indices nor pairs")
      .as(RefusalCode::epilogue);
}

/// Refuses calls that need more of an output that is copied than its elements.
Support check_copied_output(const Call& call) {
  if (const Support fits = check_epilogue_of_other_output(call.conv); !fits) return fits;
  if (!call.reads_source) return {};
  return refuse("the output is copied, so that C cannot be read: beta must be 0, got {}", call.conv.beta)
      .as(RefusalCode::scalars)
      .of("C");
}

/// Copies C and the tensors that the epilogue reads as the output is copied. `copy(role, tensor)` returns the copy of
/// one, nothing if the tensor itself serves, or a refusal.
template <class Copy>
Support copy_inputs_of_epilogue(const Call& call, RepackedConv& result, const Copy& copy) {
  const Conv2d& conv = call.conv;
  if (uses_index(conv.epilogue) || conv.epilogue.columns_per_element() != 1) {
    return refuse("the output is another matrix, so that its epilogue can have neither indices nor pairs")
        .as(RefusalCode::epilogue);
  }
  const auto copy_one = [&](std::string_view role, const Tensor& tensor, Tensor& operand) -> Support {
    const Result<std::optional<CopiedTensor>> copied = copy(role, tensor);
    if (!copied) return copied.refusal();
    if (*copied) read_copy(result, operand, **copied);
    return {};
  };
  result.inner.c = {};
  if (call.reads_source) {
    if (const Support fits = copy_one("C", conv.c, result.inner.c); !fits) return fits;
  }
  for (std::size_t i = 0; i < conv.tensors.size(); ++i) {
    const auto& [name, tensor] = conv.tensors[i];
    if (is_output(conv.epilogue, name)) {
      return refuse("the output is copied, but not '{}', which the epilogue writes, too", name)
          .as(RefusalCode::epilogue)
          .of(name);
    }
    if (const Support fits = copy_one(name, tensor, result.inner.tensors[i].tensor); !fits) return fits;
  }
  return {};
}

/// Copies the inputs of the epilogue of an output with `channels` channels, of which those of the call come first.
Support pad_inputs_of_epilogue(const Call& call, RepackedConv& result, Workspace& workspace, std::int64_t channels) {
  const auto copy = [&](std::string_view role, const Tensor& tensor) -> Result<std::optional<CopiedTensor>> {
    const bool is_broadcast = tensor.shape[3] != call.conv.written().shape[3];
    if (is_broadcast) return std::optional<CopiedTensor>();
    if (channels * bytes(tensor.dtype) % kTmaAlignment != 0) {
      return refuse("rows of {} channels of '{}' are no multiple of 16 bytes", channels, role)
          .as(RefusalCode::alignment)
          .of(role);
    }
    Result<CopiedTensor> padded = pad(workspace, role, tensor, {.first = tensor.shape[0], .channels = channels});
    if (!padded) return padded.refusal();
    return std::optional(*std::move(padded));
  };
  return copy_inputs_of_epilogue(call, result, copy);
}

/// The copy to the caller's output from `output`, that of the inner convolution. Pixels of a block follow each other.
PixelBlocks copy_of_output(const Conv2d& conv, const Tensor& output, const std::array<std::int64_t, 2>& block) {
  const Tensor& written = conv.written();
  const std::int64_t element = bytes(written.dtype);
  const std::int64_t pixel = written.shape[2] > 1   ? written.stride[2]
                             : written.shape[1] > 1 ? written.stride[1]
                                                    : written.shape[3];
  return {.from = output.address,
          .to = written.address,
          .images = written.shape[0],
          .h = written.shape[1],
          .w = written.shape[2],
          .row_bytes = written.shape[3] * element,
          .block_h = block[0],
          .block_w = block[1],
          .from_bytes = output.shape[3] * element,
          .image_bytes = written.stride[0] * element,
          .to_bytes = pixel * element};
}

/// Makes the inner convolution write `output`, from which the channels of the caller's output are copied.
void write_copy(const Conv2d& conv, RepackedConv& result, const Tensor& output) {
  result.inner.written() = output;
  result.after.push_back({conv.written_name(), copy_of_output(conv, output, {1, 1})});
}

Result<RepackedConv> pad_channels_of_fprop(const Call& call, Workspace& workspace) {
  RepackedConv result = unchanged(call);
  const Tensor &x = call.conv.x, &w = call.conv.w;
  const std::int64_t groups = call.conv.groups, channels = w.shape[3], padded = round_up(channels, call.how.unit);
  if (padded != channels || !has_aligned_rows(x)) {
    const PaddedExtents to{.first = x.shape[0], .channels = groups * padded, .groups = groups};
    const Result<CopiedTensor> copied = pad(workspace, "x", x, to);
    if (!copied) return copied.refusal();
    read_copy(result, result.inner.x, *copied);
  }
  if (padded == channels && has_aligned_rows(w)) return result;
  const Result<CopiedTensor> copied = pad(workspace, "w", w, {.first = w.shape[0], .channels = padded});
  if (!copied) return copied.refusal();
  read_copy(result, result.inner.w, *copied);
  return result;
}

Result<RepackedConv> pad_channels_of_dgrad(const Call& call, Workspace& workspace) {
  RepackedConv result = unchanged(call);
  const Tensor &x = call.conv.x, &w = call.conv.w, &y = call.conv.y;
  Conv2d& inner = result.inner;
  const std::int64_t channels = x.shape[3], filters = w.shape[0], padded = round_up(filters, call.how.unit);
  // A tensor map of dgrad has rows of w, whose channels may end anywhere.
  const bool copies_y = padded != filters || !has_aligned_rows(y);
  if (copies_y) {
    const Result<CopiedTensor> copied = pad(workspace, "y", y, {.first = y.shape[0], .channels = padded});
    if (!copied) return copied.refusal();
    read_copy(result, inner.y, *copied);
  }
  const std::int64_t rows = round_up(channels, row_unit(w));
  if (!copies_y && rows == channels && has_aligned_rows(w)) return result;
  const Result<CopiedTensor> copied = pad(workspace, "w", w, {.first = padded, .channels = rows});
  if (!copied) return copied.refusal();
  read_copy(result, inner.w, *copied);
  // TMA stores the pixels of a class if there is a stride, and other stores take rows of any length.
  const std::int64_t stored = round_up(channels, row_unit(x));
  if ((call.conv.stride[0] == 1 && call.conv.stride[1] == 1) || (stored == channels && has_aligned_rows(x))) {
    inner.w.shape[3] = channels;
    return result;
  }
  if (stored > rows) return refuse("x has smaller elements than w").as(RefusalCode::types);
  inner.w.shape[3] = stored;
  write_copy(call.conv, result, workspace.tensor(x, {x.shape[0], x.shape[1], x.shape[2], stored}));
  if (const Support fits = pad_inputs_of_epilogue(call, result, workspace, stored); !fits) return fits.refusal();
  return result;
}

Result<RepackedConv> pad_channels_of_wgrad(const Call& call, Workspace& workspace) {
  RepackedConv result = unchanged(call);
  const Tensor &x = call.conv.x, &w = call.conv.w, &y = call.conv.y;
  const std::int64_t channels = x.shape[3], filters = w.shape[0], padded = round_up(channels, call.how.unit);
  if (!has_aligned_rows(y)) {
    const PaddedExtents to{.first = y.shape[0], .channels = round_up(filters, row_unit(y))};
    const Result<CopiedTensor> copied = pad(workspace, "y", y, to);
    if (!copied) return copied.refusal();
    read_copy(result, result.inner.y, *copied);
    result.inner.y.shape[3] = filters;
  }
  if (padded == channels && has_aligned_rows(x)) return result;
  const Result<CopiedTensor> copied = pad(workspace, "x", x, {.first = x.shape[0], .channels = padded});
  if (!copied) return copied.refusal();
  read_copy(result, result.inner.x, *copied);
  if (padded == channels) return result;
  write_copy(call.conv, result, workspace.tensor(w, {filters, w.shape[1], w.shape[2], padded}));
  if (const Support fits = pad_inputs_of_epilogue(call, result, workspace, padded); !fits) return fits.refusal();
  return result;
}

Result<RepackedConv> pad_channels(const Call& call, Workspace& workspace) {
  switch (call.conv.pass) {
    case ConvPass::fprop:
      return pad_channels_of_fprop(call, workspace);
    case ConvPass::dgrad:
      return pad_channels_of_dgrad(call, workspace);
    case ConvPass::wgrad:
      return pad_channels_of_wgrad(call, workspace);
  }
  TILEWRIGHT_CHECK(false, "no pass {}", static_cast<int>(call.conv.pass));
}

Result<RepackedConv> copy_window_rows(const Call& call, Workspace& workspace) {
  RepackedConv result = unchanged(call);
  const Conv2d& conv = call.conv;
  const Tensor &x = conv.x, &w = conv.w;
  const std::int64_t channels = x.shape[3], taps = w.shape[2], element = bytes(x.dtype);
  if (conv.pass != ConvPass::fprop || conv.dilation[1] != 1 || conv.mode != ConvMode::cross_correlation || taps == 1) {
    return refuse("rows of a window are copied in fprop of cross-correlations without dilation, with several columns")
        .as(RefusalCode::shape);
  }
  const std::optional<std::int64_t> line_of_x = stride_of_lines(x), line_of_w = stride_of_lines(w);
  if (!line_of_x || !line_of_w || (x.shape[2] > 1 && x.stride[2] != channels) || w.stride[2] != channels)
    return refuse("the pixels of a line must be contiguous").as(RefusalCode::strides);
  const std::int64_t padded = round_up(taps * channels, call.how.unit), positions = conv.y.shape[2];
  Conv2d& inner = result.inner;
  inner.x = workspace.tensor(x, {x.shape[0], x.shape[1], positions, padded});
  inner.w = workspace.tensor(w, {w.shape[0], w.shape[1], 1, padded});
  inner.padding[1] = 0;
  inner.stride[1] = 1;
  result.before.push_back({"x", RowCopy{.from = x.address,
                                        .to = inner.x.address,
                                        .lines = x.shape[0] * x.shape[1],
                                        .line_pitch = *line_of_x * element,
                                        .line_bytes = x.shape[2] * channels * element,
                                        .rows = positions,
                                        .step = conv.stride[1] * channels * element,
                                        .offset = -conv.padding[1] * channels * element,
                                        .row_bytes = taps * channels * element,
                                        .to_bytes = padded * element}});
  result.before.push_back({"w", RowCopy{.from = w.address,
                                        .to = inner.w.address,
                                        .lines = w.shape[0] * w.shape[1],
                                        .line_pitch = *line_of_w * element,
                                        .line_bytes = taps * channels * element,
                                        .row_bytes = taps * channels * element,
                                        .to_bytes = padded * element}});
  return result;
}

Support check_merged(const Call& call) {
  if (call.how.merged >= 1 && call.conv.groups % call.how.merged == 0) return {};
  return refuse("{} groups cannot be merged to groups of {}", call.conv.groups, call.how.merged).as(RefusalCode::shape);
}

Result<RepackedConv> merge_groups(const Call& call, Workspace& workspace) {
  RepackedConv result = unchanged(call);
  const Conv2d& conv = call.conv;
  const Tensor& w = conv.w;
  const std::int64_t merged = call.how.merged;
  if (merged == 1) return refuse("groups are merged to groups of 1, which they are").as(RefusalCode::shape);
  if (const Support fits = check_merged(call); !fits) return fits.refusal();
  const std::int64_t filters = w.shape[0] / conv.groups, channels = w.shape[3];
  result.inner.groups = conv.groups / merged;
  if (conv.pass != ConvPass::wgrad) {
    Result<CopiedTensor> copied = pad(workspace, "w", w, {.first = w.shape[0], .channels = channels * merged});
    if (!copied) return copied.refusal();
    if (channels * merged % row_unit(w) != 0)
      return refuse("rows of {} channels are no multiple of 16 bytes", channels * merged).as(RefusalCode::shape);
    CopiedTensor made = *std::move(copied);
    auto& rows = std::get<RowCopy>(made.copy.copy);
    rows.lines_of_part = filters * w.shape[1];
    rows.parts = merged;
    read_copy(result, result.inner.w, made);
    return result;
  }
  if (const Support fits = check_copied_output(call); !fits) return fits.refusal();
  result.inner.c = {};
  result.inner.w = workspace.tensor(w, {w.shape[0], w.shape[1], w.shape[2], channels * merged});
  PixelBlocks pixels = copy_of_output(conv, result.inner.w, {1, 1});
  pixels.images_of_part = filters;
  pixels.parts = merged;
  result.after.push_back({conv.written_name(), pixels});
  return result;
}

/// The copy that exchanges the first and the last mode of `images`: (N, H, W, C) becomes (C, H, W, N), with zeros
/// behind the N elements of a row if `to` has more.
FilterBlocks transposing(const Tensor& images, const Tensor& to) {
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

Result<RepackedConv> make_images_channels(const Call& call, Workspace& workspace) {
  RepackedConv result = unchanged(call);
  const Conv2d& conv = call.conv;
  if (conv.pass != ConvPass::wgrad)
    return refuse("images become channels in gradients of filters only").as(RefusalCode::shape);
  const Tensor &x = conv.x, &w = conv.w, &y = conv.y;
  if (!is_packed(w))
    return refuse("the filter must be packed, got {}", to_string(w.stride)).as(RefusalCode::strides).of("w");
  Conv2d& inner = result.inner;
  const std::int64_t images = round_up(x.shape[0], call.how.unit), filters = w.shape[0], channels = x.shape[3];
  inner.pass = ConvPass::fprop;
  inner.mode = ConvMode::cross_correlation;
  std::swap(inner.stride, inner.dilation);
  inner.epilogue = transposed(conv.epilogue);
  inner.x = workspace.tensor(x, {channels, x.shape[1], x.shape[2], images});
  inner.w = workspace.tensor(y, {filters, y.shape[1], y.shape[2], images});
  inner.y = workspace.tensor(w, {channels, w.shape[1], w.shape[2], filters});
  result.before.push_back({"x", transposing(x, inner.x)});
  result.before.push_back({"y", transposing(y, inner.w)});
  FilterBlocks back = transposing(inner.y, w);
  back.h.is_reversed = back.w.is_reversed = conv.mode == ConvMode::convolution;
  result.after.push_back({"w", back});
  const auto copy = [&](std::string_view role, const Tensor& tensor) -> Result<std::optional<CopiedTensor>> {
    if (conv.mode == ConvMode::convolution)
      return refuse("the taps of '{}' are those of w in reverse order", role).as(RefusalCode::epilogue).of(role);
    if (bytes(tensor.dtype) > 4)
      return refuse("'{}' has elements of {} bytes", role, bytes(tensor.dtype)).as(RefusalCode::types).of(role);
    const Dims shape{tensor.shape[3], tensor.shape[1], tensor.shape[2], tensor.shape[0]};
    const Tensor copied = workspace.tensor(tensor, shape);
    return std::optional(CopiedTensor{copied, {role, transposing(tensor, copied)}});
  };
  if (const Support fits = copy_inputs_of_epilogue(call, result, copy); !fits) return fits.refusal();
  return result;
}

/// Whether the gradient is the fprop with the same taps in reverse order, as far apart as those of w.
bool keeps_dilation(const Call& call, std::size_t axis) {
  const Conv2d& conv = call.conv;
  const std::int64_t taps = conv.w.shape[static_cast<int>(axis) + 1];
  return call.how.block[axis] == 1 && conv.stride[axis] == 1 && conv.padding[axis] <= (taps - 1) * conv.dilation[axis];
}

FilterBlocks::Axis axis_of_taps(const Call& call, std::size_t axis) {
  const int mode = static_cast<int>(axis) + 1;
  return {.block = call.how.block[axis],
          .dilation = call.conv.dilation[axis],
          .taps = call.conv.w.shape[mode],
          .tap_stride = call.conv.w.stride[mode],
          .is_reversed = call.conv.mode == ConvMode::convolution};
}

/// The position of y, relative to that of a block of x, which tap 0 of the copy of a gradient's filter meets.
std::int64_t first_position(const Call& call, std::size_t axis) {
  const Conv2d& conv = call.conv;
  const std::int64_t reach = (conv.w.shape[static_cast<int>(axis) + 1] - 1) * conv.dilation[axis];
  if (keeps_dilation(call, axis)) return conv.padding[axis] - reach;
  // The padding of a convolution is not negative.
  return std::min<std::int64_t>(0, ceil_div(conv.padding[axis] - reach, conv.stride[axis]));
}

/// Pixel i * block + a of x and tap t of the copy meet at pixel i * block / stride + first_position() + t of y, where
/// tap (a + padding - stride * (first_position() + t)) / dilation of w meets them, too.
FilterBlocks::Axis axis_of_gradient(const Call& call, std::size_t axis) {
  FilterBlocks::Axis result = axis_of_taps(call, axis);
  const std::int64_t padding = call.conv.padding[axis], stride = call.conv.stride[axis];
  result.pixel_step = 1;
  if (keeps_dilation(call, axis)) {
    result.tap_step = -1;
    result.offset = result.taps - 1;
    result.dilation = 1;
    result.copied_taps = result.taps;
    return result;
  }
  const std::int64_t first = first_position(call, axis);
  result.tap_step = -stride;
  result.offset = padding - stride * first;
  result.copied_taps = std::max<std::int64_t>(1, floor_div(result.block - 1 + padding, stride) - first + 1);
  return result;
}

/// Pixel i * block + a of y meets tap t of the copy, and tap (t - a * stride) / dilation of w, at pixel
/// i * block * stride + t - padding of x.
FilterBlocks::Axis axis_of_product(const Call& call, std::size_t axis) {
  FilterBlocks::Axis result = axis_of_taps(call, axis);
  result.pixel_step = -call.conv.stride[axis];
  result.copied_taps = (result.block - 1) * call.conv.stride[axis] + (result.taps - 1) * result.dilation + 1;
  return result;
}

Support check_blocks(const Call& call) {
  const Conv2d& conv = call.conv;
  if (conv.pass == ConvPass::wgrad) return refuse("a filter has no blocks of pixels").as(RefusalCode::shape);
  for (std::size_t axis = 0; axis < 2; ++axis) {
    const std::int64_t block = call.how.block[axis];
    const bool is_multiple = conv.pass == ConvPass::fprop || block % conv.stride[axis] == 0;
    if (!is_multiple || block > kMaxBlock) {
      return refuse("blocks of {} pixels are no multiple of the stride {}, or more than {}", block, conv.stride[axis],
                    kMaxBlock)
          .as(RefusalCode::shape);
    }
    if (conv.padding[axis] > kMaxPadding || conv.stride[axis] > kMaxPadding) {
      return refuse("the padding is {} and the stride {}, at most {} is allowed", conv.padding[axis], conv.stride[axis],
                    kMaxPadding)
          .as(RefusalCode::shape);
    }
  }
  return check_merged(call);
}

/// The tensor of which the pixels of a block are multiplied: x of fprop and y of dgrad.
const Tensor& multiplied_images(const Conv2d& conv) { return conv.pass == ConvPass::dgrad ? conv.y : conv.x; }

/// The copy of w with the taps of each pixel of a block; `to` and copied_rows are left out.
FilterBlocks block_filter(const Call& call) {
  const Conv2d& conv = call.conv;
  const Tensor& w = conv.w;
  const bool is_dgrad = conv.pass == ConvPass::dgrad;
  FilterBlocks filter;
  filter.from = w.address;
  filter.element_bytes = bytes(w.dtype);
  filter.groups = conv.groups;
  filter.group_stride = w.shape[0] / conv.groups * w.stride[0];
  filter.outputs = conv.written().shape[3] / conv.groups;
  filter.inputs = multiplied_images(conv).shape[3] / conv.groups;
  filter.output_stride = is_dgrad ? 1 : w.stride[0];
  filter.input_stride = is_dgrad ? w.stride[0] : 1;
  filter.h = is_dgrad ? axis_of_gradient(call, 0) : axis_of_product(call, 0);
  filter.w = is_dgrad ? axis_of_gradient(call, 1) : axis_of_product(call, 1);
  filter.merged = call.how.merged;
  filter.copied_inputs = round_up(filter.inputs * call.how.merged, call.how.unit);
  return filter;
}

/// Gives the inner convolution, whose outputs are blocks of pixels, its strides, dilations, padding and groups.
void set_block_geometry(const Call& call, Conv2d& inner) {
  const Conv2d& conv = call.conv;
  inner.pass = ConvPass::fprop;
  inner.mode = ConvMode::cross_correlation;
  inner.groups = conv.groups / call.how.merged;
  for (std::size_t axis = 0; axis < 2; ++axis) {
    const std::int64_t block = call.how.block[axis];
    inner.dilation[axis] = 1;
    if (conv.pass == ConvPass::dgrad) {
      if (keeps_dilation(call, axis)) inner.dilation[axis] = conv.dilation[axis];
      inner.stride[axis] = block / conv.stride[axis];
      inner.padding[axis] = -first_position(call, axis);
    } else {
      inner.stride[axis] = block * conv.stride[axis];
    }
  }
}

/// Whether a block of pixels is a part of a line of pixels without gaps.
bool block_is_part_of_a_row(const ConvRepacking& how, const Tensor& images) {
  return how.block[0] == 1 && images.shape[2] % how.block[1] == 0 && images.stride[2] == images.shape[3];
}

/// The images with the pixels of a block as channels of one pixel. @pre block_is_part_of_a_row(how, images)
Tensor pixels_as_channels(const ConvRepacking& how, const Tensor& images) {
  Tensor result = images;
  result.shape[2] /= how.block[1];
  result.shape[3] *= how.block[1];
  result.stride[2] = result.shape[3];
  return result;
}

/// Whether the rows of the inner convolution's output, and of C, are those of the caller's tensors.
bool stores_in_place(const Call& call) {
  if (call.how.block[0] == 1 && call.how.block[1] == 1) return true;
  return call.conv.groups == 1 && block_is_part_of_a_row(call.how, call.conv.written()) &&
         (!call.reads_source || block_is_part_of_a_row(call.how, call.conv.c));
}

/// Makes the inner convolution store blocks of pixels where they belong, or in the workspace. `rows` are the columns
/// that a group has there.
Support place_blocks(const Call& call, std::int64_t rows, RepackedConv& result, Workspace& workspace) {
  const Conv2d& conv = call.conv;
  const ConvRepacking& how = call.how;
  const Tensor& written = conv.written();
  Conv2d& inner = result.inner;
  if (how.block[0] == 1 && how.block[1] == 1) {  // C and the tensors of the epilogue stay those of the caller
    inner.y = written;
    return {};
  }
  if (stores_in_place(call)) {
    if (const Support fits = check_epilogue_of_other_output(conv); !fits) return fits;
    inner.y = pixels_as_channels(how, written);
    inner.c = call.reads_source ? pixels_as_channels(how, conv.c) : Tensor();
    return {};
  }
  if (const Support fits = check_copied_output(call); !fits) return fits;
  inner.c = {};
  inner.y = workspace.tensor(written, {written.shape[0], ceil_div(written.shape[1], how.block[0]),
                                       ceil_div(written.shape[2], how.block[1]), conv.groups * rows});
  PixelBlocks pixels = copy_of_output(conv, inner.y, how.block);
  pixels.groups = conv.groups;
  pixels.row_bytes /= conv.groups;
  pixels.group_bytes = rows * bytes(written.dtype);
  result.after.push_back({conv.written_name(), pixels});
  return {};
}

Result<RepackedConv> make_pixel_blocks(const Call& call, Workspace& workspace) {
  RepackedConv result = unchanged(call);
  if (const Support fits = check_blocks(call); !fits) return fits.refusal();
  const Conv2d& conv = call.conv;
  const Tensor& images = multiplied_images(conv);
  FilterBlocks filter = block_filter(call);
  Conv2d& inner = result.inner;
  set_block_geometry(call, inner);
  inner.x = images;
  const std::int64_t channels = inner.groups * filter.copied_inputs;
  if (channels != images.shape[3] || !has_aligned_rows(images)) {
    const PaddedExtents to{.first = images.shape[0], .channels = channels, .groups = inner.groups};
    const Result<CopiedTensor> copied = pad(workspace, conv.pass == ConvPass::dgrad ? "y" : "x", images, to);
    if (!copied) return copied.refusal();
    read_copy(result, inner.x, *copied);
  }
  const std::int64_t columns = call.how.block[0] * call.how.block[1] * filter.outputs;
  filter.copied_rows = stores_in_place(call) ? columns : round_up(columns, row_unit(conv.written()));
  inner.w = workspace.tensor(
      conv.w, {conv.groups * filter.copied_rows, filter.h.copied_taps, filter.w.copied_taps, filter.copied_inputs});
  filter.to = inner.w.address;
  result.before.push_back({"w", filter});
  if (const Support fits = place_blocks(call, filter.copied_rows, result, workspace); !fits) return fits.refusal();
  return result;
}

/// The convolution of the copies in the workspace.
Result<RepackedConv> apply(const Call& call, Workspace& workspace) {
  switch (call.how.method) {
    case ConvRepacking::Method::padded_channels:
      return pad_channels(call, workspace);
    case ConvRepacking::Method::window_rows:
      return copy_window_rows(call, workspace);
    case ConvRepacking::Method::pixel_blocks:
      return make_pixel_blocks(call, workspace);
    case ConvRepacking::Method::merged_groups:
      return merge_groups(call, workspace);
    case ConvRepacking::Method::images_as_channels:
      return make_images_channels(call, workspace);
  }
  TILEWRIGHT_CHECK(false, "no method {}", static_cast<int>(call.how.method));
}

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
  Workspace tensors(workspace);
  Result<RepackedConv> result = apply({conv, repacking, all.reads_source}, tensors);
  if (!result) return result.refusal();
  if (result->before.empty() && result->after.empty()) return refuse("no tensor changes").as(RefusalCode::shape);
  if (tensors.bytes() > max_bytes) {
    return refuse("copies of {} need {} bytes of workspace, at most {} are allowed", to_string(repacking),
                  tensors.bytes(), max_bytes)
        .as(RefusalCode::memory);
  }
  if (const Support valid = validate(result->inner); !valid) return valid.refusal();
  RepackedConv repacked = *std::move(result);
  repacked.workspace_bytes = tensors.bytes();
  return repacked;
}

}  // namespace tilewright::op
