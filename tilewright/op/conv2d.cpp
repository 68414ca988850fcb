#include "tilewright/op/conv2d.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "tilewright/op/epilogue_tensors.hpp"
#include "tilewright/op/im2col.hpp"

namespace tilewright::op {
namespace {

constexpr int kRank = 4;         // of tensors with the channels last
constexpr int kBlockedRank = 5;  // of NC32HW32 and C32RSK32
// Kernels compute coordinates in 32 bits, and mark pixels outside the matrix by -2^30.
constexpr std::int64_t kMaxCoordinate = std::int64_t{1} << 30;

/// Whether the channels are in blocks of kInterleaved.
bool is_blocked(const Tensor& tensor) { return tensor.shape.rank() == kBlockedRank; }

/// x or y with the channels last: (N, H, W, C), or (N, H, W, C/32, 32) of NC32HW32.
Tensor channels_last(const Tensor& images) {
  if (!is_blocked(images)) return images;
  constexpr std::array<int, kBlockedRank> kOrder{0, 2, 3, 1, 4};
  Tensor result = images;
  for (int mode = 0; mode < kBlockedRank; ++mode) {
    result.shape[mode] = images.shape[kOrder[static_cast<std::size_t>(mode)]];
    result.stride[mode] = images.stride[kOrder[static_cast<std::size_t>(mode)]];
  }
  return result;
}

std::int64_t channels_of_image(const Tensor& images) {
  return is_blocked(images) ? images.shape[1] * images.shape[4] : images.shape[3];
}
std::int64_t channels_of_filter(const Tensor& w) { return is_blocked(w) ? w.shape[0] * w.shape[4] : w.shape[3]; }
std::int64_t filters_of(const Tensor& w) { return w.shape[is_blocked(w) ? 3 : 0]; }

/// The extents of a convolution, by their usual names. `channels` and `filters` are those of one group.
struct Extents {
  explicit Extents(const Conv2d& conv)
      : n(conv.x.shape[0]),
        image{channels_last(conv.x).shape[1], channels_last(conv.x).shape[2]},
        positions{channels_last(conv.y).shape[1], channels_last(conv.y).shape[2]},
        taps{conv.w.shape[1], conv.w.shape[2]},
        channels(channels_of_filter(conv.w)),
        filters(filters_of(conv.w) / conv.groups) {}

  std::int64_t n;
  std::array<std::int64_t, 2> image, positions, taps;
  std::int64_t channels, filters;
};

/// Axis 0 (height) or 1 (width) of the im2col matrix of x: position p and tap r meet at a coordinate of x.
Im2colAxis axis_of_x(const Conv2d& conv, std::size_t axis) {
  const Extents extents(conv);
  const bool is_reversed = conv.mode == ConvMode::convolution;
  const std::int64_t taps = extents.taps[axis], dilation = conv.dilation[axis];
  return {.positions = extents.positions[axis],
          .taps = taps,
          .extent = extents.image[axis],
          .stride = channels_last(conv.x).stride[static_cast<int>(axis) + 1],
          .step = conv.stride[axis],
          .tap_step = is_reversed ? -dilation : dilation,
          .offset = (is_reversed ? (taps - 1) * dilation : 0) - conv.padding[axis]};
}

/// Axis 0 or 1 of the im2col matrix of y, for dgrad: position h of x and tap r meet at the coordinate p of y at which p
/// and r meet at h.
Im2colAxis axis_of_y(const Conv2d& conv, std::size_t axis) {
  const Im2colAxis of_x = axis_of_x(conv, axis);
  return {.positions = of_x.extent,
          .taps = of_x.taps,
          .extent = of_x.positions,
          .stride = conv.y.stride[static_cast<int>(axis) + 1],
          .step = 1,
          .tap_step = -of_x.tap_step,
          .offset = -of_x.offset,
          .divisor = of_x.step};
}

Im2col im2col_of_x(const Conv2d& conv) {
  const Extents extents(conv);
  Im2col im2col{.images = extents.n,
                .image_stride = conv.x.stride[0],
                .h = axis_of_x(conv, 0),
                .w = axis_of_x(conv, 1),
                .channels = extents.channels};
  if (is_blocked(conv.x)) {
    im2col.channels = kInterleaved;
    im2col.blocks = conv.x.shape[1];
    im2col.block_stride = conv.x.stride[1];
  }
  return im2col;
}

Im2col im2col_of_y(const Conv2d& conv) {
  const Extents extents(conv);
  return {.images = extents.n,
          .image_stride = conv.y.stride[0],
          .h = axis_of_y(conv, 0),
          .w = axis_of_y(conv, 1),
          .channels = extents.filters};
}

Im2colAxis whole_axis(std::int64_t extent, std::int64_t stride) {
  return {.positions = extent, .extent = extent, .stride = stride};
}

/// The filter as dgrad multiplies it: row (r, s, k), column c.
Im2col im2col_of_w(const Conv2d& conv) {
  const Extents extents(conv);
  return {.images = extents.taps[0],
          .image_stride = conv.w.stride[1],
          .h = whole_axis(extents.taps[1], conv.w.stride[2]),
          .w = whole_axis(extents.filters, conv.w.stride[0]),
          .channels = extents.channels};
}

/// The stride of modes `first` to `last` as one mode, if they have one; of modes with extent 1, 0.
std::optional<std::int64_t> common_stride(const Tensor& tensor, int first, int last) {
  std::int64_t stride = 0, elements = 1;
  for (int mode = last; mode >= first; --mode) {
    if (tensor.shape[mode] == 1) continue;
    if (elements == 1) stride = tensor.stride[mode];
    if (tensor.stride[mode] != stride * elements) return std::nullopt;
    elements *= tensor.shape[mode];
  }
  return stride;
}

std::int64_t elements(const Tensor& tensor, int first, int last) {
  std::int64_t count = 1;
  for (int mode = first; mode <= last; ++mode) count *= tensor.shape[mode];
  return count;
}

/// The tensor as one matrix for each group, or as a single matrix if there is one group, or if the mode that differs
/// between the groups has extent 1 in a tensor that is broadcast. Its first `row_modes` modes are the rows.
/// @pre both groups of modes have a common stride
Tensor matrix_of(const Tensor& tensor, int row_modes, std::int64_t groups, bool splits_rows) {
  const int last = tensor.shape.rank() - 1;
  std::int64_t rows = elements(tensor, 0, row_modes - 1), columns = elements(tensor, row_modes, last);
  const bool is_empty = tensor.is_empty();  // then the strides have no meaning
  const std::int64_t row_stride =
      is_empty ? std::max<std::int64_t>(columns, 1) : *common_stride(tensor, 0, row_modes - 1);
  const std::int64_t column_stride = is_empty ? 1 : *common_stride(tensor, row_modes, last);
  Tensor matrix = tensor;
  std::int64_t& split = splits_rows ? rows : columns;
  if (groups == 1 || split % groups != 0) {
    matrix.shape = {rows, columns};
    matrix.stride = {row_stride, column_stride};
  } else {
    split /= groups;
    matrix.shape = {groups, rows, columns};
    matrix.stride = {split * (splits_rows ? row_stride : column_stride), row_stride, column_stride};
  }
  return matrix;
}

/// How the written tensor is a matrix: the pixels of x and y, or the filters of w, are its rows.
int row_modes(ConvPass pass) { return pass == ConvPass::wgrad ? 1 : kRank - 1; }

Tensor output_matrix(const Conv2d& conv, const Tensor& tensor) {
  return matrix_of(channels_last(tensor), row_modes(conv.pass), conv.groups, conv.pass == ConvPass::wgrad);
}

/// The written tensor, or C, as an operand: with blocks of channels its columns have two coordinates, and its rows two
/// if there are several images.
OperandView output_operand(const Conv2d& conv, const Tensor& tensor) {
  if (!is_blocked(tensor)) return OperandView::of(output_matrix(conv, tensor));
  const Tensor last = channels_last(tensor);
  return OperandView::folded(
      tensor, {{last.shape[2], last.shape[1], last.shape[0]}, {last.stride[2], last.stride[1], last.stride[0]}},
      {{last.shape[4], last.shape[3]}, {last.stride[4], last.stride[3]}});
}

/// y as the matrix that wgrad multiplies: (K, N*P*Q) for each group.
Tensor transposed_y(const Conv2d& conv) { return transposed(matrix_of(conv.y, kRank - 1, conv.groups, false)); }
/// w as the matrix that fprop multiplies: (R*S*C, K) for each group. C32RSK32 is such a matrix, interleaved by rows,
/// whose rows are in the order (C/32, R, S, 32), as the columns of the im2col matrix of NC32HW32.
Tensor transposed_w(const Conv2d& conv) {
  const Tensor& w = conv.w;
  if (!is_blocked(w)) return transposed(matrix_of(w, 1, conv.groups, true));
  const std::int64_t ld = w.is_empty() ? 0 : *common_stride(w, 0, 2);
  return matrix(w.address, w.dtype, elements(w, 0, 2) * w.shape[4], w.shape[3], MatrixLayout::row_interleaved, ld,
                w.device);
}

std::pair<OperandView, OperandView> product_operands(const Conv2d& conv) {
  const Extents extents(conv);
  const std::int64_t groups = conv.groups;
  switch (conv.pass) {
    case ConvPass::fprop:
      return {OperandView::gathered(conv.x, im2col_of_x(conv), groups, extents.channels),
              OperandView::of(transposed_w(conv))};
    case ConvPass::dgrad:
      return {OperandView::gathered(conv.y, im2col_of_y(conv), groups, extents.filters),
              OperandView::gathered(conv.w, im2col_of_w(conv), groups, extents.filters * conv.w.stride[0])};
    case ConvPass::wgrad:
      return {OperandView::of(transposed_y(conv)),
              OperandView::gathered(conv.x, im2col_of_x(conv), groups, extents.channels)};
  }
  TILEWRIGHT_CHECK(false, "no pass {}", static_cast<int>(conv.pass));
}

std::pair<const Tensor*, const Tensor*> inputs(const Conv2d& conv) {
  switch (conv.pass) {
    case ConvPass::fprop:
      return {&conv.x, &conv.w};
    case ConvPass::dgrad:
      return {&conv.y, &conv.w};
    case ConvPass::wgrad:
      return {&conv.y, &conv.x};
  }
  TILEWRIGHT_CHECK(false, "no pass {}", static_cast<int>(conv.pass));
}

std::pair<std::string_view, std::string_view> input_names(ConvPass pass) {
  return {pass == ConvPass::fprop ? "x" : "y", pass == ConvPass::wgrad ? "x" : "w"};
}

/// The types, scalars and epilogue of the convolution, with operands that have only types.
Gemm scalars_and_types(const Conv2d& conv) {
  const auto typed = [](DType type) { return matrix(std::uint64_t{0}, type, 0, 0); };
  const auto [a, b] = inputs(conv);
  return {.a = typed(a->dtype),
          .b = typed(b->dtype),
          .c = typed(conv.c.dtype),
          .d = typed(conv.written().dtype),
          .alpha = conv.alpha,
          .beta = conv.beta,
          .accumulator = conv.accumulator,
          .math = conv.math,
          .epilogue = conv.epilogue};
}

bool reads_c(const Conv2d& conv) {
  if (!conv.epilogue.reads_source()) return false;
  const std::optional<std::string> gate = conv.epilogue.gate(EpilogueOp::source);
  return !gate || scalar_value(conv.epilogue, *gate, conv.alpha, conv.beta) != 0.0;
}

bool reads_inputs(const Conv2d& conv) {
  const auto [a, b] = inputs(conv);
  if (a->is_empty() || b->is_empty()) return false;
  const std::optional<std::string> gate = conv.epilogue.gate(EpilogueOp::accumulator);
  return !gate || scalar_value(conv.epilogue, *gate, conv.alpha, conv.beta) != 0.0;
}

Support check_tensor(const Tensor& tensor, std::string_view role, std::string_view modes,
                     std::string_view blocked_modes) {
  const int rank = tensor.shape.rank();
  if ((rank != kRank && rank != kBlockedRank) || tensor.stride.rank() != rank) {
    return refuse("{} must have four modes {}, or five {}, got {}", role, modes, blocked_modes, to_string(tensor.shape))
        .as(RefusalCode::shape)
        .of(role);
  }
  if (rank == kBlockedRank && tensor.shape[kBlockedRank - 1] != kInterleaved) {
    return refuse("{} has five modes {}, so that the last must be {}, got {}", role, blocked_modes, kInterleaved,
                  to_string(tensor.shape))
        .as(RefusalCode::shape)
        .of(role);
  }
  if (tensor.is_pointer_array() || tensor.interleaved != InterleavedMode::none)
    return refuse("{} must be a strided tensor with contiguous channels", role).as(RefusalCode::strides).of(role);
  if (const Support valid = check_modes(tensor, role); !valid) return valid;
  const int channels = rank - 1;
  if (!tensor.is_empty() && tensor.shape[channels] > 1 && tensor.stride[channels] != 1) {
    return refuse("{} must have contiguous channels, but their stride is {}", role, tensor.stride[channels])
        .as(RefusalCode::strides)
        .of(role);
  }
  return {};
}

Support check_numbers(const Conv2d& conv) {
  constexpr std::array<std::string_view, 2> kAxes{"height", "width"};
  for (std::size_t axis = 0; axis < 2; ++axis) {
    const auto refuse_pair = [&](std::string_view what, std::string_view must, std::int64_t got) {
      return refuse("{} along the {} must be {}, got {}", what, kAxes[axis], must, got).as(RefusalCode::shape);
    };
    if (conv.stride[axis] < 1) return refuse_pair("stride", "at least 1", conv.stride[axis]);
    if (conv.dilation[axis] < 1) return refuse_pair("dilation", "at least 1", conv.dilation[axis]);
    if (conv.padding[axis] < 0) return refuse_pair("padding", "at least 0", conv.padding[axis]);
  }
  if (conv.groups < 1) return refuse("groups must be at least 1, got {}", conv.groups).as(RefusalCode::shape);
  return {};
}

/// Refuses coordinates that do not fit the kernels' integers.
Support check_coordinates(const Conv2d& conv) {
  const Extents extents(conv);
  for (std::size_t axis = 0; axis < 2; ++axis) {
    const auto too_large = [](std::int64_t count, std::int64_t step, std::int64_t& sum) {
      std::int64_t reach = 0;
      return __builtin_mul_overflow(count, step, &reach) || __builtin_add_overflow(sum, reach, &sum) ||
             sum > kMaxCoordinate;
    };
    std::int64_t sum = 0;
    if (too_large(extents.positions[axis], conv.stride[axis], sum) ||
        too_large(extents.taps[axis], conv.dilation[axis], sum) || too_large(1, conv.padding[axis], sum) ||
        too_large(extents.image[axis], 1, sum)) {
      return refuse(
                 "{} positions * stride {} + {} taps * dilation {} + padding {} + {} pixels along the {} must be at "
                 "most 2^30",
                 extents.positions[axis], conv.stride[axis], extents.taps[axis], conv.dilation[axis],
                 conv.padding[axis], extents.image[axis], axis == 0 ? "height" : "width")
          .as(RefusalCode::shape);
    }
  }
  return {};
}

Support check_shapes(const Conv2d& conv) {
  const auto mismatch = [](std::string_view what, std::int64_t x, std::int64_t y) {
    return refuse("{}: {} and {}", what, x, y).as(RefusalCode::shape);
  };
  if (conv.x.shape[0] != conv.y.shape[0]) return mismatch("x and y differ in N", conv.x.shape[0], conv.y.shape[0]);
  for (const auto& [what, count] :
       {std::pair{"C, the channels of x,", channels_of_image(conv.x)}, {"K, the filters of w,", filters_of(conv.w)}}) {
    if (count % conv.groups != 0)
      return refuse("{} must be a multiple of {} groups, got {}", what, conv.groups, count).as(RefusalCode::shape);
  }
  const std::int64_t channels = channels_of_image(conv.x) / conv.groups, all_filters = filters_of(conv.w);
  if (channels_of_filter(conv.w) != channels) {
    return refuse("w must have {} channels, those of x in each of {} groups, got {}", channels, conv.groups,
                  channels_of_filter(conv.w))
        .as(RefusalCode::shape)
        .of("w");
  }
  if (conv.w.shape[1] < 1 || conv.w.shape[2] < 1)
    return refuse("w must have at least one tap, got {}", to_string(conv.w.shape)).as(RefusalCode::shape).of("w");
  const int paired = conv.epilogue.columns_per_element();
  if (paired != 1 && conv.pass != ConvPass::fprop)
    return refuse("the epilogue pairs channels of the output, which only fprop supports").as(RefusalCode::epilogue);
  const std::int64_t filters = all_filters / conv.groups;
  if (filters % paired != 0) {
    return refuse("the epilogue pairs channels: the filters of a group must be even, got {}", filters)
        .as(RefusalCode::shape)
        .of("w");
  }
  if (channels_of_image(conv.y) != all_filters / paired) {
    return refuse("y must have {} channels, {} of w, got {}", all_filters / paired,
                  paired == 1 ? "one for each filter" : "one for each pair of filters", channels_of_image(conv.y))
        .as(RefusalCode::shape)
        .of("y");
  }
  return {};
}

/// Refuses a tensor whose first `rows` modes, or whose others, have no common stride.
Support check_matrix(const Tensor& tensor, int rows, std::string_view role) {
  if (tensor.is_empty()) return {};
  const std::optional<std::int64_t> row_stride = common_stride(tensor, 0, rows - 1);
  const std::optional<std::int64_t> column_stride = common_stride(tensor, rows, kRank - 1);
  const std::int64_t columns = elements(tensor, rows, kRank - 1);
  const bool has_rows = row_stride && (elements(tensor, 0, rows - 1) == 1 || *row_stride >= columns);
  if (has_rows && column_stride && (columns == 1 || *column_stride == 1)) return {};
  return refuse("{} of shape {} has strides {}, but in this pass {} must follow each other without gaps", role,
                to_string(tensor.shape), to_string(tensor.stride),
                rows == 1 ? "the taps and channels of each filter" : "its pixels")
      .as(RefusalCode::strides)
      .of(role);
}

/// Refuses C32RSK32 whose filters, or whose blocks and taps, have gaps.
Support check_blocked_filter(const Tensor& w) {
  if (w.is_empty()) return {};
  const std::optional<std::int64_t> line = common_stride(w, 0, 2);
  const bool has_lines = line && (elements(w, 0, 2) == 1 || *line >= w.shape[3] * kInterleaved);
  if (has_lines && (w.shape[3] == 1 || w.stride[3] == kInterleaved)) return {};
  return refuse(
             "w of shape {} has strides {}, but its filters must be {} elements apart, and its blocks and taps must "
             "follow each other without gaps",
             to_string(w.shape), to_string(w.stride), kInterleaved)
      .as(RefusalCode::strides)
      .of("w");
}

/// Refuses NC32HW32 whose elements overlap, or whose modes are in another order.
Support check_blocked_output(const Tensor& tensor, std::string_view role) {
  if (tensor.is_empty()) return {};
  std::int64_t least = 1;
  for (int mode = kBlockedRank - 1; mode >= 0; --mode) {
    if (tensor.shape[mode] == 1) continue;
    if (tensor.stride[mode] < least) {
      return refuse("{} of shape {} has strides {}, but that of mode {} must be at least {}", role,
                    to_string(tensor.shape), to_string(tensor.stride), mode, least)
          .as(RefusalCode::strides)
          .of(role);
    }
    least = tensor.stride[mode] * tensor.shape[mode];
  }
  return {};
}

/// Refuses layouts with blocks of channels where no kernel has them.
Support check_blocks(const Conv2d& conv) {
  const Tensor* blocked = nullptr;
  std::string_view role;
  for (const auto& [name, tensor] : {std::pair{std::string_view("x"), &conv.x}, {"w", &conv.w}, {"y", &conv.y}}) {
    if (!is_blocked(*tensor)) continue;
    blocked = tensor;
    role = name;
  }
  if (blocked == nullptr) return {};
  const auto refuse_blocks = [&](std::string_view what) {
    return refuse("{} has blocks of {} channels, {}", role, kInterleaved, what).as(RefusalCode::shape).of(role);
  };
  if (conv.pass != ConvPass::fprop) return refuse_blocks(fmt::format("which are for fprop, got {}", name(conv.pass)));
  if (conv.groups != 1)
    return refuse_blocks(fmt::format("which convolutions with groups do not have, got {} groups", conv.groups));
  for (const auto& [name, tensor] : {std::pair{std::string_view("x"), &conv.x}, {"w", &conv.w}}) {
    if (tensor->dtype == DType::s8 || tensor->dtype == DType::u8) continue;
    return refuse_blocks(
        fmt::format("which are for s8 and u8 operands, but {} is {}", name, tilewright::name(tensor->dtype)));
  }
  if (is_blocked(conv.x) != is_blocked(conv.w)) {
    return refuse(
               "x and w must both have blocks of {} channels, as (N, C/32, H, W, 32) and (C/32, R, S, K, 32), "
               "got {} and {}",
               kInterleaved, to_string(conv.x.shape), to_string(conv.w.shape))
        .as(RefusalCode::shape)
        .of(is_blocked(conv.x) ? "w" : "x");
  }
  if (is_blocked(conv.y) && conv.epilogue.columns_per_element() != 1)
    return refuse_blocks("so that its epilogue cannot pair channels");
  return {};
}

Support check_layouts(const Conv2d& conv) {
  if (conv.pass == ConvPass::fprop) {
    const Support fits = is_blocked(conv.w) ? check_blocked_filter(conv.w) : check_matrix(conv.w, 1, "w");
    if (!fits) return fits;
  }
  if (conv.pass == ConvPass::wgrad) {
    if (const Support fits = check_matrix(conv.y, kRank - 1, "y"); !fits) return fits;
  }
  const Tensor& written = conv.written();
  const bool has_blocks = is_blocked(written);
  const std::string_view role = conv.written_name();
  const Support fits =
      has_blocks ? check_blocked_output(written, role) : check_matrix(written, row_modes(conv.pass), role);
  if (!fits || !reads_c(conv)) return fits;
  if (const Support valid = check_tensor(conv.c, "C", "like the output", "like it"); !valid) return valid;
  if (conv.c.shape != conv.written().shape) {
    return refuse("C must have the shape {} of {}, got {}", to_string(conv.written().shape), conv.written_name(),
                  to_string(conv.c.shape))
        .as(RefusalCode::shape)
        .of("C");
  }
  return has_blocks ? Support() : check_matrix(conv.c, row_modes(conv.pass), "C");
}

Support check_types(const Conv2d& conv) {
  const auto [a, b] = inputs(conv);
  const auto [name_a, name_b] = input_names(conv.pass);
  for (const auto& [role, type] :
       {std::pair{name_a, a->dtype}, {name_b, b->dtype}, {conv.written_name(), conv.written().dtype}}) {
    if (type != DType::tf32) continue;
    return refuse("{} is tf32, which is only a math type: use f32 elements and multiply_add_tf32", role)
        .as(RefusalCode::math)
        .of(role);
  }
  const Support fits = check_matrices(scalars_and_types(conv));
  if (fits) return {};
  return refuse("{} (A is {}, B is {} and D is {})", fits.reason(), name_a, name_b, conv.written_name())
      .as(fits.refusal().code);
}

/// The extents of the four modes that the epilogue's full tensors have.
Dims product_shape(const Conv2d& conv) {
  Dims shape = conv.written().shape;
  if (conv.pass == ConvPass::fprop && !is_blocked(conv.y)) shape[kRank - 1] = filters_of(conv.w);
  return shape;
}

Support check_auxiliary(const Conv2d& conv, const NamedTensor& tensor) {
  const Dims whole = product_shape(conv);
  const bool has_blocks = is_blocked(conv.written());
  const std::string& role = tensor.name;
  if (tensor.tensor.shape.rank() != whole.rank() || tensor.tensor.stride.rank() != whole.rank()) {
    return refuse("'{}' must have {} modes, as {} has, got {}", role, has_blocks ? "five" : "four", conv.written_name(),
                  to_string(tensor.tensor.shape))
        .as(RefusalCode::shape)
        .of(role);
  }
  if (tensor.tensor.is_pointer_array() || tensor.tensor.interleaved != InterleavedMode::none)
    return refuse("'{}' must be a strided tensor", role).as(RefusalCode::strides).of(role);
  if (const Support valid = check_modes(tensor.tensor, role); !valid) return valid;
  const int rows = row_modes(conv.pass);
  const Tensor last_channels = channels_last(tensor.tensor);
  Tensor whole_tensor = tensor.tensor;
  whole_tensor.shape = whole;
  const Dims whole_last = channels_last(whole_tensor).shape;
  for (const auto& [first, last] : {std::pair{0, rows - 1}, {rows, whole.rank() - 1}}) {
    bool is_whole = true, is_single = true;
    for (int mode = first; mode <= last; ++mode) {
      is_whole &= last_channels.shape[mode] == whole_last[mode];
      is_single &= last_channels.shape[mode] == 1;
    }
    const bool has_stride = tensor.tensor.is_empty() || common_stride(last_channels, first, last);
    if (is_single || (is_whole && has_stride)) continue;
    if (has_blocks) {
      return refuse(
                 "'{}' must be {}, or 1 along {}, and these must have one stride, which with blocks of channels only C "
                 "need not have; got {}:{}",
                 role, to_string(whole), first == 0 ? "N, H and W" : "the channels", to_string(tensor.tensor.shape),
                 to_string(tensor.tensor.stride))
          .as(RefusalCode::shape)
          .of(role);
    }
    if (first == last) {
      return refuse("'{}' must have {} {}, or 1, got {}", role, whole[first],
                    conv.pass == ConvPass::wgrad ? "filters" : "channels", tensor.tensor.shape[first])
          .as(RefusalCode::shape)
          .of(role);
    }
    return refuse("'{}' must be {}, or 1 in modes {} to {}, which must follow each other without gaps, got {}:{}", role,
                  to_string(whole), first, last, to_string(tensor.tensor.shape), to_string(tensor.tensor.stride))
        .as(RefusalCode::shape)
        .of(role);
  }
  return {};
}

std::vector<NamedTensor> matrices_of_tensors(const Conv2d& conv) {
  std::vector<NamedTensor> all;
  for (const NamedTensor& each : conv.tensors) all.push_back({each.name, output_matrix(conv, each.tensor)});
  return all;
}

/// Refuses what an epilogue of a convolution with groups would compute for each group as if there were no others.
Support check_groups_of_epilogue(const Conv2d& conv) {
  if (conv.groups == 1) return {};
  const bool splits_rows = conv.pass == ConvPass::wgrad;
  for (const EpilogueNode& node : conv.epilogue.nodes) {
    if (node.op == (splits_rows ? EpilogueOp::row_index : EpilogueOp::column_index))
      return refuse("the epilogue uses the index of the {}, which convolutions with groups do not support",
                    splits_rows ? "filter" : "channel")
          .as(RefusalCode::epilogue);
  }
  for (const EpilogueOutput& output : conv.epilogue.outputs) {
    if (splits_rows ? output.broadcast.along_m : output.broadcast.along_n) continue;
    return refuse("the epilogue reduces '{}' over the {}s of all groups, which is not supported", output.label,
                  splits_rows ? "filter" : "channel")
        .as(RefusalCode::epilogue)
        .of(output.label);
  }
  return {};
}

Support check_tensors(const Conv2d& conv) {
  if (const Support fits = check_groups_of_epilogue(conv); !fits) return fits;
  if (conv.tensors.empty() && epilogue_tensors(conv.epilogue).empty()) return {};
  for (const NamedTensor& each : conv.tensors) {
    if (const Support fits = check_auxiliary(conv, each); !fits) return fits;
  }
  // The extents of A and B give m and n; the strides have no meaning here.
  const GemmView all = view(conv);
  Gemm gemm = scalars_and_types(conv);
  gemm.a = matrix(std::uint64_t{0}, gemm.a.dtype, all.m(), all.k());
  gemm.b = matrix(std::uint64_t{0}, gemm.b.dtype, all.k(), all.n());
  gemm.d =
      all.d.access == OperandAccess::folded ? matrix(std::uint64_t{0}, gemm.d.dtype, all.m(), all.n()) : all.d.tensor;
  gemm.tensors = matrices_of_tensors(conv);
  return check_epilogue_tensors(gemm);
}

// `Problem` is Conv2d or const Conv2d.
template <class TensorPointer, class Problem>
std::vector<BasicOperand<TensorPointer>> operands_of(Problem& conv) {
  const bool reads = reads_inputs(conv);
  std::vector<BasicOperand<TensorPointer>> operands;
  for (const auto& [name, tensor, reader] : {std::tuple{std::string_view("x"), &conv.x, ConvPass::dgrad},
                                             {std::string_view("w"), &conv.w, ConvPass::wgrad},
                                             {std::string_view("y"), &conv.y, ConvPass::fprop}}) {
    if (conv.pass != reader) operands.push_back({name, tensor, Access::read, reads});
  }
  operands.push_back({"C", &conv.c, Access::read, reads_c(conv), true});
  operands.push_back({conv.written_name(), &conv.written(), Access::write});
  for (auto& [name, tensor] : conv.tensors) operands.push_back(tensor_operand(conv.epilogue, name, &tensor));
  return operands;
}

}  // namespace

std::string_view name(ConvPass pass) {
  constexpr std::array<std::string_view, 3> kNames{"fprop", "dgrad", "wgrad"};
  return kNames[static_cast<std::size_t>(pass)];
}
std::string_view name(ConvMode mode) {
  return mode == ConvMode::cross_correlation ? "cross_correlation" : "convolution";
}

Tensor packed_tensor(std::uint64_t address, DType dtype, const Dims& shape, MemoryDevice device) {
  Tensor tensor{.address = address, .dtype = dtype, .shape = shape, .stride = shape, .device = device};
  std::int64_t stride = 1;
  for (int mode = shape.rank() - 1; mode >= 0; --mode) {
    tensor.stride[mode] = stride;
    stride *= std::max<std::int64_t>(shape[mode], 1);
  }
  return tensor;
}

std::int64_t conv_positions(std::int64_t extent, std::int64_t padding_before, std::int64_t padding_after,
                            std::int64_t taps, std::int64_t stride, std::int64_t dilation) {
  const std::int64_t last = extent + padding_before + padding_after - ((taps - 1) * dilation + 1);
  return last < 0 ? 0 : last / stride + 1;
}

Support validate(const Conv2d& conv) {
  for (const auto& [role, tensor, modes, blocked_modes] :
       {std::tuple{"x", &conv.x, "(N, H, W, C)", "(N, C/32, H, W, 32)"},
        {"w", &conv.w, "(K, R, S, C/groups)", "(C/32, R, S, K, 32)"},
        {"y", &conv.y, "(N, P, Q, K)", "(N, K/32, P, Q, 32)"}}) {
    if (const Support valid = check_tensor(*tensor, role, modes, blocked_modes); !valid) return valid;
  }
  for (const auto& check :
       {check_numbers, check_blocks, check_types, check_shapes, check_coordinates, check_layouts, check_tensors}) {
    if (const Support valid = check(conv); !valid) return valid;
  }
  return conv.is_empty() ? Support() : check_memory(operands(conv));
}

std::vector<Operand> operands(Conv2d& conv) { return operands_of<Tensor*>(conv); }
std::vector<ConstOperand> operands(const Conv2d& conv) { return operands_of<const Tensor*>(conv); }

GemmView view(const Conv2d& conv) {
  auto [a, b] = product_operands(conv);
  const OperandView d = output_operand(conv, conv.written());
  const bool is_shape = conv.written().device.kind == MemoryDevice::Kind::shape;
  const bool has_c = conv.c.shape.rank() == conv.written().shape.rank() && (conv.c.address != 0 || is_shape);
  GemmView view{.a = a,
                .b = b,
                .c = reads_c(conv) ? output_operand(conv, conv.c) : d,
                .d = d,
                .alpha = conv.alpha,
                .beta = conv.beta,
                .accumulator = conv.accumulator,
                .math = conv.math,
                .epilogue = &conv.epilogue,
                .has_source = conv.epilogue.reads_source() && has_c,
                .reads_source = reads_c(conv),
                .reads_product = reads_inputs(conv)};
  if (!conv.tensors.empty()) {
    auto tensors = std::make_shared<const std::vector<NamedTensor>>(matrices_of_tensors(conv));
    view.tensors = *tensors;
    view.keeps = std::move(tensors);
  }
  return view;
}

}  // namespace tilewright::op
