// The problem D = epilogue(A * B, C): operands, scalars, types. What to compute, not how.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "tilewright/op/named_epilogue.hpp"
#include "tilewright/op/tensor.hpp"

namespace tilewright::op {

/// How a product of two elements is formed and added. multiply_add_tf32, _fast_f16, _fast_bf16 and _fast_f32 take f32
/// operands to tensor cores.
///
/// Tensor cores of Hopper add products of 8-bit floats with about 14 bits (DeepSeek-V3 Technical Report, 2024, section
/// 3.3.2). multiply_add therefore adds at most kFp8PromotionInterval products so, and such sums in f32;
/// multiply_add_fast_accumulate leaves the whole sum to the tensor core, as cuBLASLt's CUBLASLT_MATMUL_DESC_FAST_ACCUM.
enum class MathOperation : std::uint8_t {
  multiply_add,                  // at the operands' own type
  multiply_add_tf32,             // f32 operands rounded to tf32 (10 fraction bits)
  multiply_add_fast_f16,         // f32 operands rounded to f16
  multiply_add_fast_bf16,        // f32 operands rounded to bf16
  multiply_add_fast_f32,         // 3xTF32: each operand split in two tf32 parts, three products, close to f32
  multiply_add_fast_accumulate,  // 8-bit floats accumulated in f32: sums as the tensor core makes them
};

/// Products of 8-bit floats that multiply_add lets a tensor core add before the sum goes to f32.
inline constexpr int kFp8PromotionInterval = 128;

std::string_view name(MathOperation math);
std::optional<MathOperation> parse_math_operation(std::string_view text);

/// A tensor that the epilogue reads or writes under its name.
struct NamedTensor {
  std::string name;
  Tensor tensor;  // as the epilogue's node says: (m, n), (1, n), (m, 1) or (1, 1), or a batch of them; any strides

  bool operator==(const NamedTensor&) const = default;
};

struct Gemm {
  Tensor a;  // (m, k), or a batch of them
  Tensor b;  // (k, n), or a batch
  Tensor c;  // (m, n), or a batch; read only where the epilogue reads it and its gate (beta) is not 0: else may be none
  Tensor d;  // (m, n), or (m, n/2) of an epilogue that pairs columns, or a batch; an input without a batch, or with a
             // batch of 1 or of stride 0, serves all of D's
  double alpha = 1.0;
  double beta = 0.0;
  DType accumulator = DType::f32;
  MathOperation math = MathOperation::multiply_add;
  Epilogue epilogue = linear_combination();
  std::vector<NamedTensor> tensors = {};  // the epilogue's, sources and outputs, in any order

  /// The tensor of that name. @pre it is there: validate() has seen it
  const Tensor& tensor(std::string_view name) const;
  std::int64_t m() const { return a.rows(); }
  std::int64_t n() const { return b.columns(); }
  /// n, or where the epilogue pairs columns half of it: C's and D's.
  std::int64_t d_columns() const { return n() / epilogue.columns_per_element(); }
  std::int64_t k() const { return a.columns(); }
  std::int64_t batch() const { return d.batch(); }
  /// Whether D has no elements, so that there is nothing to compute.
  bool is_empty() const { return m() == 0 || n() == 0 || batch() == 0; }

  bool operator==(const Gemm&) const = default;
};

/// The accumulator that a type of A has unless told otherwise: f64 for f64, s32 for integers, f32 for the rest.
DType default_accumulator(DType a);

/// The compute type of an epilogue unless told otherwise: f64 for f64; s32 where s32 is accumulated and stored, so that
/// no sum is rounded; f32 for the rest.
DType default_compute(DType accumulator, DType d);

/// Whether this call reads C: the epilogue has a source and its gate is not 0.
bool reads_source(const Gemm& gemm);

/// Whether this call reads A and B: k is not 0 and neither is the accumulator's gate (alpha).
bool reads_product(const Gemm& gemm);

/// Whether D is A*B and nothing else: by its graph, or as a linear combination of alpha 1 and beta 0.
bool stores_sums(const Gemm& gemm);

/// Whether the problem's tensors are shapes without memory: it can be planned, compiled and prepared, and not run.
bool is_shape(const Gemm& gemm);

/// Says what is wrong with the problem itself, whatever the kernel: ranks, extents, strides, types, null pointers that
/// would be used, overlap of D with an input (from its first element to its last), of D's matrices with each other,
/// batches that differ, operands on different devices, scalars that the compute type lacks.
/// Accepts m, n, k and batches of 0. C may be the very same matrix, or batch, as D.
Support validate(const Gemm& gemm);

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

/// The largest alignments, up to 16 bytes, that the pointers, leading dimensions and batch strides allow. A C without
/// an address is none; one that is there and not read is described as D. @pre validate(gemm)
GemmDescription describe(const Gemm& gemm);

/// Says what is wrong with every problem of the kind, and refuses alignments that are no powers of two. Holds for
/// describe(gemm).
Support validate(const GemmDescription& description);

/// The same problem transposed: D' = B' * A'. A column-major D becomes row-major.
Gemm transposed(const Gemm& gemm);
GemmDescription transposed(const GemmDescription& description);

/// Matrix `index` of every operand, as a problem of its own. @pre validate(gemm)
Gemm slice(const Gemm& gemm, std::int64_t index);

/// Floating-point or integer operations: 2*m*n*k for each matrix of the batch.
double operations(const Gemm& gemm);

}  // namespace tilewright::op
