#include "tilewright/op/tensor.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "tilewright/base/power_of_two.hpp"

namespace tilewright::op {
namespace {

struct LastOffset {
  std::int64_t bytes = 0;
  bool overflows = false;
};

// The offset in bytes of one past the last element, or past the last address of a pointer array.
LastOffset last_offset(const Tensor& given) {
  const Tensor tensor = given.is_pointer_array() ? given : strided_modes(given);
  LastOffset last;
  if (tensor.is_pointer_array()) {
    last.overflows = last_offset(matrix_at(tensor, 0)).overflows ||
                     __builtin_mul_overflow(tensor.batch(), kPointerBytes, &last.bytes);
    if (tensor.is_empty()) last.bytes = 0;
    return last;
  }
  std::int64_t elements = 1;
  for (int mode = 0; mode < tensor.shape.rank(); ++mode) {
    if (tensor.shape[mode] == 0) return {};
    std::int64_t reach = 0;
    last.overflows |= __builtin_mul_overflow(tensor.shape[mode] - 1, tensor.stride[mode], &reach);
    last.overflows |= __builtin_add_overflow(elements, reach, &elements);
  }
  last.overflows |= __builtin_mul_overflow(elements, std::int64_t{bytes(tensor.dtype)}, &last.bytes);
  return last;
}

Support check_pointer_array(const Tensor& tensor, std::string_view role) {
  const int alignment = tensor.pointer_alignment;
  if (alignment == 0) return {};
  if (tensor.shape.rank() != 3) {
    return refuse("{} is an array of pointers to matrices, so that its shape must be (batch, rows, columns), got {}",
                  role, to_string(tensor.shape))
        .as(RefusalCode::shape)
        .of(role);
  }
  if (alignment < bytes(tensor.dtype) || !is_power_of_two(alignment)) {
    return refuse(
               "the declared alignment of the matrices of {} must be a power of two of at least {} bytes, the size of "
               "an element, got {}",
               role, bytes(tensor.dtype), alignment)
        .as(RefusalCode::alignment)
        .of(role);
  }
  if (tensor.stride[0] != 0) {
    return refuse("{} is an array of pointers, so that its batch stride must be 0, got {}", role, tensor.stride[0])
        .as(RefusalCode::strides)
        .of(role);
  }
  return {};
}

}  // namespace

Dims::Dims(std::initializer_list<std::int64_t> values) : rank_(static_cast<int>(values.size())) {
  TILEWRIGHT_CHECK(rank_ <= kMaxRank, "rank {} is more than {}", rank_, kMaxRank);
  std::copy(values.begin(), values.end(), values_.begin());
}

void Dims::append(std::int64_t value) {
  TILEWRIGHT_CHECK(rank_ < kMaxRank, "rank {} is more than {}", rank_ + 1, kMaxRank);
  values_[static_cast<std::size_t>(rank_++)] = value;
}

std::string to_string(const Dims& dims) {
  std::string text = "(";
  for (int mode = 0; mode < dims.rank(); ++mode) text += fmt::format("{}{}", mode == 0 ? "" : ",", dims[mode]);
  return text + ")";
}

std::string to_string(const MemoryDevice& device) {
  switch (device.kind) {
    case MemoryDevice::Kind::host:
      return "host";
    case MemoryDevice::Kind::cuda:
      return fmt::format("cuda:{}", device.ordinal);
    case MemoryDevice::Kind::emulator:
      return device.ordinal == 0 ? "emulator" : fmt::format("emulator (ordinal {})", device.ordinal);
    case MemoryDevice::Kind::shape:
      return "shape";
  }
  return "unknown";
}

std::string_view name(MatrixLayout layout) {
  constexpr std::array<std::string_view, 4> kNames{"row", "column", "row_interleaved_32", "column_interleaved_32"};
  return kNames[static_cast<std::size_t>(layout)];
}

std::optional<MatrixLayout> parse_matrix_layout(std::string_view text) {
  const auto* const found = std::ranges::find(kMatrixLayouts, text, [](MatrixLayout each) { return name(each); });
  return found == kMatrixLayouts.end() ? std::optional<MatrixLayout>() : *found;
}

MatrixLayout transposed(MatrixLayout layout) {
  constexpr std::array<MatrixLayout, 4> kTransposed{MatrixLayout::column_major, MatrixLayout::row_major,
                                                    MatrixLayout::column_interleaved, MatrixLayout::row_interleaved};
  return kTransposed[static_cast<std::size_t>(layout)];
}

bool Tensor::is_empty() const {
  for (int mode = 0; mode < shape.rank(); ++mode) {
    if (shape[mode] == 0) return true;
  }
  return false;
}

Tensor matrix(std::uint64_t address, DType dtype, std::int64_t rows, std::int64_t columns, MatrixLayout layout,
              std::int64_t ld, MemoryDevice device) {
  if (is_interleaved(layout)) {
    const bool by_columns = layout == MatrixLayout::column_interleaved;
    if (ld == 0) ld = kInterleaved * std::max<std::int64_t>(1, by_columns ? rows : columns);
    return Tensor{address,         dtype,
                  {rows, columns}, by_columns ? Dims{kInterleaved, ld} : Dims{ld, kInterleaved},
                  device,          by_columns ? InterleavedMode::columns : InterleavedMode::rows};
  }
  const bool row_major = layout == MatrixLayout::row_major;
  if (ld == 0) ld = std::max<std::int64_t>(1, row_major ? columns : rows);
  return Tensor{address, dtype, {rows, columns}, row_major ? Dims{ld, 1} : Dims{1, ld}, device, {}};
}

Tensor matrix(const void* host_data, DType dtype, std::int64_t rows, std::int64_t columns, MatrixLayout layout,
              std::int64_t ld) {
  return matrix(reinterpret_cast<std::uint64_t>(host_data), dtype, rows, columns, layout, ld, MemoryDevice{});
}

Tensor batched(const Tensor& matrix, std::int64_t batch, std::optional<std::int64_t> stride) {
  // The strides (1, 1) of a single row or column are those of lines of one element, whose layout view_matrix() finds.
  const Result<MatrixView> view = view_matrix(matrix, "matrix");
  const bool is_row_major = view ? view->layout == MatrixLayout::row_major : matrix.column_stride() == 1;
  const bool by_rows =
      matrix.interleaved == InterleavedMode::none ? is_row_major : matrix.interleaved == InterleavedMode::rows;
  const std::int64_t together = matrix.interleaved == InterleavedMode::none ? 1 : kInterleaved;
  const std::int64_t lines = (by_rows ? matrix.rows() : matrix.columns()) / together;
  const std::int64_t ld = by_rows ? matrix.row_stride() : matrix.column_stride();
  Tensor result = matrix;
  result.shape = {batch, matrix.rows(), matrix.columns()};
  result.stride = {stride.value_or(lines * ld), matrix.row_stride(), matrix.column_stride()};
  return result;
}

Tensor pointer_array(const Tensor& matrix, std::uint64_t addresses, std::int64_t batch, int alignment) {
  Tensor result = batched(matrix, batch, 0);
  result.address = addresses;
  result.pointer_alignment = alignment;
  return result;
}

Tensor matrix_at(const Tensor& tensor, std::uint64_t address) {
  Tensor result = tensor;
  result.address = address;
  result.shape = {tensor.rows(), tensor.columns()};
  result.stride = {tensor.row_stride(), tensor.column_stride()};
  result.pointer_alignment = 0;
  return result;
}

Tensor slice(const Tensor& tensor, std::int64_t index) {
  if (!tensor.is_pointer_array()) {
    const std::int64_t offset = index * tensor.batch_stride() * bytes(tensor.dtype);
    return matrix_at(tensor, tensor.address + static_cast<std::uint64_t>(offset));
  }
  if (tensor.address == 0) return matrix_at(tensor, 0);  // a shape without memory, or an operand that is not read
  TILEWRIGHT_CHECK(tensor.device.kind == MemoryDevice::Kind::host, "the host cannot read a pointer array on {}",
                   to_string(tensor.device));
  return matrix_at(tensor, reinterpret_cast<const std::uint64_t*>(tensor.address)[index]);
}

Tensor transposed(const Tensor& tensor) {
  Tensor result = tensor;
  const int columns = tensor.shape.rank() - 1;
  std::swap(result.shape[columns - 1], result.shape[columns]);
  std::swap(result.stride[columns - 1], result.stride[columns]);
  if (tensor.interleaved != InterleavedMode::none) {
    result.interleaved = tensor.interleaved == InterleavedMode::rows ? InterleavedMode::columns : InterleavedMode::rows;
  }
  return result;
}

Tensor strided_modes(const Tensor& tensor) {
  if (tensor.interleaved == InterleavedMode::none) return tensor;
  Tensor result = tensor;
  const int rows = tensor.shape.rank() - 2;
  result.shape[tensor.interleaved == InterleavedMode::rows ? rows : rows + 1] /= kInterleaved;
  result.shape.append(kInterleaved);
  result.stride.append(1);
  result.interleaved = InterleavedMode::none;
  return result;
}

bool are_same_elements(const Tensor& x, const Tensor& y) {
  const auto without_single_elements = [](const Tensor& tensor) {
    Tensor kept = tensor;
    kept.shape = kept.stride = {};
    for (int mode = 0; mode < tensor.shape.rank(); ++mode) {
      if (tensor.shape[mode] == 1) continue;
      kept.shape.append(tensor.shape[mode]);
      kept.stride.append(tensor.stride[mode]);
    }
    return kept;
  };
  if (x.is_pointer_array() || y.is_pointer_array()) return x == y;
  return without_single_elements(x) == without_single_elements(y);
}

std::int64_t MatrixView::lines(const Tensor& tensor) const {
  if (is_interleaved(layout))
    return (layout == MatrixLayout::row_interleaved ? tensor.rows() : tensor.columns()) / kInterleaved;
  return layout == MatrixLayout::row_major ? tensor.rows() : tensor.columns();
}

std::int64_t MatrixView::line(const Tensor& tensor) const {
  if (is_interleaved(layout))
    return (layout == MatrixLayout::row_interleaved ? tensor.columns() : tensor.rows()) * kInterleaved;
  return layout == MatrixLayout::row_major ? tensor.columns() : tensor.rows();
}

namespace {

Result<MatrixView> view_interleaved(const Tensor& tensor, std::string_view role) {
  const bool by_rows = tensor.interleaved == InterleavedMode::rows;
  MatrixView view{by_rows ? MatrixLayout::row_interleaved : MatrixLayout::column_interleaved,
                  by_rows ? tensor.row_stride() : tensor.column_stride()};
  const std::int64_t blocked = by_rows ? tensor.rows() : tensor.columns();
  const std::int64_t within = by_rows ? tensor.column_stride() : tensor.row_stride();
  if (blocked % kInterleaved != 0) {
    return refuse("{} is {}: it needs a multiple of {} {}, got {}", role, name(view.layout), kInterleaved,
                  by_rows ? "rows" : "columns", blocked)
        .as(RefusalCode::shape)
        .of(role);
  }
  if (within != kInterleaved && (by_rows ? tensor.columns() : tensor.rows()) > 1) {
    return refuse("{} is {}: its {} must be {} elements apart, got {}", role, name(view.layout),
                  by_rows ? "columns" : "rows", kInterleaved, within)
        .as(RefusalCode::strides)
        .of(role);
  }
  const std::int64_t line = std::max(view.line(tensor), kInterleaved);
  if (view.lines(tensor) <= 1) view.ld = std::max(view.ld, line);
  if (view.ld >= line) return view;
  return refuse("{} of shape {} is {}: it needs a leading dimension of at least {}, got {}", role,
                to_string(tensor.shape), name(view.layout), line, view.ld)
      .as(RefusalCode::strides)
      .of(role);
}

}  // namespace

Support check_strides(const Tensor& tensor, std::string_view role) {
  const int rank = tensor.shape.rank();
  if (rank < 2 || rank > 3 || tensor.stride.rank() != rank) {
    return refuse("{} must have rank 2, or 3 with the batch first, got shape {} with strides {}", role,
                  to_string(tensor.shape), to_string(tensor.stride))
        .as(RefusalCode::shape)
        .of(role);
  }
  if (const Support valid = check_pointer_array(tensor, role); !valid) return valid;
  return check_modes(tensor, role);
}

Support check_modes(const Tensor& tensor, std::string_view role) {
  if (bits(tensor.dtype) % 8 != 0)
    return refuse("{} is {}: elements must be whole bytes", role, name(tensor.dtype)).as(RefusalCode::types).of(role);
  for (int mode = 0; mode < tensor.shape.rank(); ++mode) {
    if (tensor.shape[mode] < 0)
      return refuse("{} has a negative extent {}", role, tensor.shape[mode]).as(RefusalCode::shape).of(role);
    if (tensor.stride[mode] < 0)
      return refuse("{} has a negative stride {}", role, tensor.stride[mode]).as(RefusalCode::strides).of(role);
  }
  if (last_offset(tensor).overflows) {
    return refuse("{} of shape {} and strides {} spans 2^63 bytes or more", role, to_string(tensor.shape),
                  to_string(tensor.stride))
        .as(RefusalCode::strides)
        .of(role);
  }
  return {};
}

Result<MatrixView> view_matrix(const Tensor& tensor, std::string_view role) {
  if (const Support valid = check_strides(tensor, role); !valid) return valid.refusal();
  if (tensor.interleaved != InterleavedMode::none) return view_interleaved(tensor, role);
  // The contiguous mode has stride 1 or extent 1, and the stride of the other mode is at least its extent.
  const std::array<std::int64_t, 2> extent{tensor.rows(), tensor.columns()};
  const std::array<std::int64_t, 2> stride{tensor.row_stride(), tensor.column_stride()};
  // If `ignores_single`, the stride of a mode of extent 1 may be any.
  const auto fits = [&](std::size_t contiguous, bool ignores_single) {
    const std::size_t other = 1 - contiguous;
    const bool unit = stride[contiguous] == 1 || (ignores_single && extent[contiguous] <= 1);
    return unit &&
           ((ignores_single && extent[other] <= 1) || stride[other] >= std::max<std::int64_t>(1, extent[contiguous]));
  };
  for (const bool ignores_single : {false, true}) {
    for (const std::size_t contiguous : {1U, 0U}) {
      if (!fits(contiguous, ignores_single)) continue;
      const std::int64_t ld = std::max({std::int64_t{1}, extent[contiguous], stride[1 - contiguous]});
      return MatrixView{contiguous == 1 ? MatrixLayout::row_major : MatrixLayout::column_major, ld};
    }
  }
  for (const std::size_t contiguous : {1U, 0U}) {
    if (stride[contiguous] == 1) {
      return refuse("{} of shape {} needs a leading dimension of at least {}, got {}", role, to_string(tensor.shape),
                    extent[contiguous], stride[1 - contiguous])
          .as(RefusalCode::strides)
          .of(role);
    }
  }
  return refuse("{} must have one stride of 1, got {}", role, to_string(tensor.stride))
      .as(RefusalCode::strides)
      .of(role);
}

Tensor with_layout(const Tensor& tensor, MatrixLayout layout) {
  if (tensor.shape.rank() < 2 || tensor.interleaved != InterleavedMode::none || is_interleaved(layout)) return tensor;
  const bool is_row = tensor.rows() == 1 && (tensor.column_stride() == 1 || tensor.columns() == 1);
  const bool is_column = tensor.columns() == 1 && (tensor.row_stride() == 1 || tensor.rows() == 1);
  if (!is_row && !is_column) return tensor;
  const bool row_major = layout == MatrixLayout::row_major;
  // At least 2, so that the strides fit only one layout.
  const std::int64_t past_line = std::max<std::int64_t>(2, std::max(tensor.rows(), tensor.columns()));
  const std::int64_t ld = (row_major ? is_row : is_column) ? past_line : 1;
  Tensor result = tensor;
  const int columns = tensor.shape.rank() - 1;
  result.stride[columns - 1] = row_major ? ld : 1;
  result.stride[columns] = row_major ? 1 : ld;
  return result;
}

Tensor with_longest_lines(const Tensor& tensor) {
  if (tensor.shape.rank() < 2 || tensor.rows() == tensor.columns()) return tensor;
  return with_layout(tensor, tensor.columns() == 1 ? MatrixLayout::column_major : MatrixLayout::row_major);
}

int shared_alignment(const Tensor& tensor, std::span<const std::int64_t> steps) {
  const auto element = static_cast<std::uint64_t>(bytes(tensor.dtype));
  const auto declared = static_cast<std::uint64_t>(tensor.pointer_alignment);
  std::uint64_t all = (tensor.is_pointer_array() ? declared : tensor.address) | 16U;
  for (const std::int64_t step : steps) all |= static_cast<std::uint64_t>(step) * element;
  const std::uint64_t alignment_bytes = std::uint64_t{1} << std::countr_zero(all);
  return static_cast<int>(std::max<std::uint64_t>(1, alignment_bytes / element));
}

bool splits_sectors(const Tensor& tensor) {
  constexpr std::uint64_t kSectorBytes = 32;
  return tensor.device.kind == MemoryDevice::Kind::cuda && !tensor.is_pointer_array() &&
         tensor.address % kSectorBytes == kSectorBytes / 2;
}

std::int64_t span_bytes(const Tensor& tensor) { return last_offset(tensor).bytes; }

}  // namespace tilewright::op
