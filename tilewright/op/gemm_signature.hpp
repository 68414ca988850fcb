// The part of a GEMM problem that selects code: types, layouts, alignments, math and epilogue. Extents, leading
// dimensions and pointers are launch arguments and are not here.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tilewright/op/grouped_mode.hpp"
#include "tilewright/op/math_operation.hpp"
#include "tilewright/op/named_epilogue.hpp"
#include "tilewright/op/tensor.hpp"

namespace tilewright::op {

/// Whether an operand is an im2col matrix, and whether its coordinates are divided, or its channels are several blocks:
/// see Im2col.
enum class Im2colAccess : std::uint8_t { none, direct, divided, blocks };

/// "none", "im2col", "im2col_divided", "im2col_blocks"
std::string_view name(Im2colAccess access);

/// The classes of rows of a gradient with a stride of 2; see plan/sm90/row_classes.hpp.
inline constexpr int kFewRowClasses = 4;

/// The bytes of the longest row of an im2col matrix that a kernel copies at once: the widest swizzle of shared memory.
inline constexpr int kMaxTapRow = 128;

/// The properties of one operand that a kernel is specialized for.
struct TensorSignature {
  DType element = DType::f32;
  MatrixLayout layout = MatrixLayout::row_major;
  /// Elements, a power of two; divides the addresses, ld and batch stride, and for D the row length. It is 1 if groups
  /// are stacked along the contiguous mode, since each may begin anywhere, and for D if groups end along it.
  int alignment = 1;
  /// The matrices of a batch lie at the addresses in an array, instead of one stride apart.
  bool is_pointer_array = false;
  /// The contiguous mode of an im2col matrix is that of taps and channels.
  Im2colAccess im2col = Im2colAccess::none;
  /// The length in elements of the rows in which an im2col matrix can be copied without crossing the end of a tap: the
  /// largest power of two of at most kMaxTapRow bytes that divides the channels of a tap. It is 0 for other matrices.
  int tap_row = 0;
  /// Whether zeros follow the channels of each tap, up to a multiple of tap_row; see op/padded_taps.hpp.
  bool has_padded_taps = false;
  /// The number of taps of a row of the window that share pixels, and the positions from the pixels of one tap to those
  /// of the next; see op/shared_pixels.hpp. 0 if pixels are not shared.
  int shared_taps = 0, shared_step = 0;
  /// Whether the coordinates of an im2col matrix are divided such that it has more than kFewRowClasses classes of rows.
  bool has_many_classes = false;
  /// 0, or for a folded operand the number of coordinates of rows, columns and batch that the kernel can tell apart, of
  /// which a problem may use fewer: 2, 4 or 8. `layout` then names the mode whose first coordinate has stride 1; if no
  /// coordinate has, the alignment is 1.
  int folded_modes = 0;

  bool operator==(const TensorSignature&) const = default;
};

/// "f16:row:8", "f16:row:8:pointers" for a pointer array, "f16:row:8:im2col:64", where 64 is tap_row,
/// "f16:row:8:im2col:64:padded", "f16:row:8:im2col:64:shared_3x1", "f16:row:8:im2col_divided:64:many_classes", or
/// "f16:row:8:folded_2".
std::string to_string(const TensorSignature& signature);

/// The mode of an epilogue tensor that has stride 1: `rows` is M (column-major), `columns` is N (row-major).
enum class ContiguousMode : std::uint8_t { none, rows, columns };

std::string_view name(ContiguousMode mode);

/// The properties of an epilogue tensor that a kernel is specialized for.
struct EpilogueTensorSignature {
  DType element = DType::f32;
  ContiguousMode contiguous = ContiguousMode::none;
  int alignment = 1;  // elements along the contiguous mode, a power of two

  bool operator==(const EpilogueTensorSignature&) const = default;
};

/// "f32:columns:4"
std::string to_string(const EpilogueTensorSignature& signature);
std::string to_string(std::span<const EpilogueTensorSignature> signatures);

/// Everything in a problem that selects code. The batch count is an extent: one kernel computes single matrices and
/// batches.
struct GemmSignature {
  TensorSignature a, b, c, d;
  DType accumulator = DType::f32;
  MathOperation math = MathOperation::multiply_add;
  Epilogue epilogue = linear_combination();
  std::vector<EpilogueTensorSignature> tensors = {};  // one for each of Epilogue::tensors(), then for each output
  bool has_c = true;                                  // false: the kernel has no code that reads C, and `c` equals `d`
  GroupedMode groups = GroupedMode::none;             // see GroupedGemm; their number is an extent

  bool operator==(const GemmSignature&) const = default;
};

/// Refuses a signature that no valid problem has, with the reason, and alignments that are not powers of two. Accepts
/// every result of describe().
Support validate(const GemmSignature& signature);

/// The signature of the transposed problem, D' = B' * A'.
GemmSignature transposed(const GemmSignature& signature);

}  // namespace tilewright::op
