// What selects code for a GEMM: types, layouts, alignments, math, epilogue; no extents, no pointers.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tilewright/op/math_operation.hpp"
#include "tilewright/op/named_epilogue.hpp"
#include "tilewright/op/tensor.hpp"

namespace tilewright::op {

/// One operand as a kernel is specialised for it.
struct TensorDescription {
  DType element = DType::f32;
  MatrixLayout layout = MatrixLayout::row_major;
  int alignment = 1;  // elements; a power of two; every row or column starts at a multiple of it, and of D ends at one

  bool operator==(const TensorDescription&) const = default;
};

/// "f16:row:8"
std::string to_string(const TensorDescription& description);

/// Of an epilogue's tensor: which elements lie together in memory.
enum class Neighbours : std::uint8_t { none, rows, columns };  // columns: those of one row

std::string_view name(Neighbours neighbours);

/// A tensor of the epilogue as a kernel is specialised for it.
struct EpilogueTensorDescription {
  DType element = DType::f32;
  Neighbours neighbours = Neighbours::none;
  int alignment = 1;  // elements; of neighbours; a power of two

  bool operator==(const EpilogueTensorDescription&) const = default;
};

/// "f32:columns:4"
std::string to_string(const EpilogueTensorDescription& description);
std::string to_string(std::span<const EpilogueTensorDescription> descriptions);

/// All that selects code on the problem's side: types, layouts, alignments, math, epilogue; no extents, no pointers.
/// A batch is an extent: one kernel computes single matrices and batches.
struct GemmDescription {
  TensorDescription a, b, c, d;
  DType accumulator = DType::f32;
  MathOperation math = MathOperation::multiply_add;
  Epilogue epilogue = linear_combination();
  std::vector<EpilogueTensorDescription> tensors = {};  // of Epilogue::tensors(), then of its outputs, in that order
  bool has_c = true;  // else nothing reads C, and no code for it is compiled; `c` is as `d` then

  bool operator==(const GemmDescription&) const = default;
};

/// Says what is wrong with every problem that it describes, and refuses alignments that are no powers of two. Accepts
/// what describe() gives.
Support validate(const GemmDescription& description);

/// The description of the transposed problem: D' = B' * A'.
GemmDescription transposed(const GemmDescription& description);

}  // namespace tilewright::op
