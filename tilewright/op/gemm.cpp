#include "tilewright/op/gemm.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <tuple>
#include <utility>

#include "tilewright/base/power_of_two.hpp"
#include "tilewright/op/epilogue_tensors.hpp"
#include "tilewright/op/fill.hpp"
#include "tilewright/op/gemm_view.hpp"
#include "tilewright/op/grouped_gemm.hpp"

namespace tilewright::op {
namespace {

constexpr std::array<std::pair<MathOperation, std::string_view>, 6> kMathOperations{{
    {MathOperation::multiply_add, "multiply_add"},
    {MathOperation::multiply_add_tf32, "multiply_add_tf32"},
    {MathOperation::multiply_add_fast_f16, "multiply_add_fast_f16"},
    {MathOperation::multiply_add_fast_bf16, "multiply_add_fast_bf16"},
    {MathOperation::multiply_add_fast_f32, "multiply_add_fast_f32"},
    {MathOperation::multiply_add_fast_accumulate, "multiply_add_fast_accumulate"},
}};

bool is_byte(DType type) { return type == DType::s8 || type == DType::u8; }

// Types that only instructions support: no kernel loads or stores them.
bool is_narrow(DType type) { return type == DType::s4 || type == DType::u4 || type == DType::b1; }

bool are_multiplied(DType a, DType b) { return a == b || (is_byte(a) && is_byte(b)) || (is_fp8(a) && is_fp8(b)); }

// A leaf is read unless its gate is 0.
bool is_read(const Gemm& gemm, EpilogueOp leaf) {
  const std::optional<std::string> gate = gemm.epilogue.gate(leaf);
  return !gate || scalar_value(gemm.epilogue, *gate, gemm.alpha, gemm.beta) != 0.0;
}

Support check_math(const Gemm& gemm) {
  const DType a = gemm.a.dtype;
  if (gemm.math == MathOperation::multiply_add) return {};
  if (gemm.math != MathOperation::multiply_add_fast_accumulate) {
    return a == DType::f32 ? Support()
                           : refuse("{} takes f32 operands, got {}", name(gemm.math), name(a)).as(RefusalCode::math);
  }
  if (!is_fp8(a))
    return refuse("{} takes e4m3 and e5m2 operands, got {}", name(gemm.math), name(a)).as(RefusalCode::math);
  if (gemm.accumulator != DType::f32) {
    return refuse("{} accumulates in f32, got {}", name(gemm.math), name(gemm.accumulator)).as(RefusalCode::math);
  }
  return {};
}

// Programs use few graphs many times; comparing with the last valid graph takes a tenth of the time of validating it.
Support check_graph(const Epilogue& epilogue) {
  thread_local Epilogue last_valid = linear_combination();
  if (epilogue == last_valid) return {};
  if (const Support valid = validate(epilogue); !valid) return valid;
  last_valid = epilogue;
  return {};
}

// A scalar may be infinite or NaN, but a finite scalar must stay finite in the compute type.
Support check_scalar_range(const Gemm& gemm) {
  for (const EpilogueNode& node : gemm.epilogue.nodes) {
    if (node.op != EpilogueOp::scalar) continue;
    const double value = scalar_value(gemm.epilogue, node.label, gemm.alpha, gemm.beta);
    const bool may_overflow = std::fabs(value) > std::numeric_limits<float>::max() && std::isfinite(value);
    if (!may_overflow || std::isfinite(round_to(gemm.epilogue.compute, value))) continue;
    return refuse("{} is {}, beyond the range of the epilogue's compute type {}", node.label, value,
                  name(gemm.epilogue.compute))
        .as(RefusalCode::scalars)
        .of(node.label);
  }
  return {};
}

// @pre validate(gemm.epilogue)
Support check_epilogue(const Gemm& gemm) {
  const DType compute = gemm.epilogue.compute;
  if ((compute == DType::f64) != (gemm.accumulator == DType::f64)) {
    return refuse("an {} accumulator needs an epilogue with compute type {}, got {}", name(gemm.accumulator),
                  gemm.accumulator == DType::f64 ? "f64" : "f32 or s32", name(compute))
        .as(RefusalCode::epilogue);
  }
  if (compute != DType::s32) return check_scalar_range(gemm);
  if (gemm.accumulator != DType::s32)
    return refuse("an epilogue with compute type s32 needs an s32 accumulator, got {}", name(gemm.accumulator))
        .as(RefusalCode::epilogue);
  for (const std::string& label : gemm.epilogue.scalars()) {
    const double value = scalar_value(gemm.epilogue, label, gemm.alpha, gemm.beta);
    const bool fits = value == std::trunc(value) && std::fabs(value) <= std::numeric_limits<std::int32_t>::max();
    if (!fits)
      return refuse("{} must be a 32-bit integer if the epilogue's compute type is s32, got {}; use f32 instead", label,
                    value)
          .as(RefusalCode::scalars)
          .of(label);
  }
  return {};
}

/// Kernels read and store only the interleaved layouts of CUTLASS's integer GEMMs: A and B have blocks of 32 along K.
Support check_interleaved(const Gemm& gemm) {
  const bool reads_c = reads_source(gemm);
  for (const auto& [role, tensor] : {std::pair{"A", &gemm.a}, {"B", &gemm.b}, {"C", &gemm.c}, {"D", &gemm.d}}) {
    if (tensor->interleaved == InterleavedMode::none || (tensor == &gemm.c && !reads_c)) continue;
    const MatrixLayout layout = view_matrix(*tensor, role)->layout;
    if (!is_byte(gemm.a.dtype)) {
      return refuse("{} is {}: interleaved layouts are for s8 and u8 operands, got {}", role, name(layout),
                    name(gemm.a.dtype))
          .as(RefusalCode::types)
          .of(role);
    }
    const bool blocks_n_or_m = (tensor == &gemm.a && layout == MatrixLayout::row_interleaved) ||
                               (tensor == &gemm.b && layout == MatrixLayout::column_interleaved);
    if (blocks_n_or_m) {
      return refuse("{} is {}: its blocks of {} must be along k, so make it {}", role, name(layout), kInterleaved,
                    name(transposed(layout)))
          .as(RefusalCode::strides)
          .of(role);
    }
  }
  return {};
}

Support check_shapes(const Gemm& gemm) {
  const auto shape = [](const Tensor& tensor) { return Dims{tensor.rows(), tensor.columns()}; };
  const auto mismatch = [&](std::string_view what, const Tensor& x, const Tensor& y) {
    return refuse("{}: {} and {}", what, to_string(shape(x)), to_string(shape(y))).as(RefusalCode::shape);
  };
  if (gemm.k() != gemm.b.rows()) return mismatch("columns of A and rows of B differ", gemm.a, gemm.b);
  const bool is_gated = gemm.epilogue.is_gated();
  if (is_gated && gemm.n() % 2 != 0)
    return refuse("the epilogue pairs columns of A*B: n must be even, got {}", gemm.n()).as(RefusalCode::shape).of("B");
  if (shape(gemm.d) != Dims{gemm.m(), gemm.d_columns()}) {
    return refuse("D must be ({},{}){}, got {}", gemm.m(), gemm.d_columns(), is_gated ? ", one column per pair" : "",
                  to_string(shape(gemm.d)))
        .as(RefusalCode::shape)
        .of("D");
  }
  if (reads_source(gemm) && shape(gemm.c) != shape(gemm.d)) return mismatch("shapes of C and D differ", gemm.c, gemm.d);
  constexpr std::int64_t kLimit = std::numeric_limits<std::int32_t>::max();
  for (const auto& [role, extent] :
       {std::pair{"m", gemm.m()}, {"n", gemm.n()}, {"k", gemm.k()}, {"batch", gemm.batch()}}) {
    if (extent > kLimit) return refuse("{} must be below 2^31, got {}", role, extent).as(RefusalCode::shape);
  }
  return {};
}

Support check_batches(const Gemm& gemm) {
  for (const auto& [role, tensor, used] :
       {std::tuple{'A', &gemm.a, true}, {'B', &gemm.b, true}, {'C', &gemm.c, reads_source(gemm)}}) {
    if (!used || tensor->batch() == gemm.batch()) continue;
    if (tensor->is_pointer_array()) {
      return refuse("{} has {} matrices, but D has {}: they must be equal", role, tensor->batch(), gemm.batch())
          .as(RefusalCode::shape)
          .of(role);
    }
    if (tensor->batch() == 1) continue;
    return refuse("{} has a batch of {}, D a batch of {}: they must be equal, or {} a single matrix", role,
                  tensor->batch(), gemm.batch(), role)
        .as(RefusalCode::shape)
        .of(role);
  }
  return gemm.d.is_pointer_array() ? Support() : check_distinct(gemm.d, "D");
}

Support check_operands(const Gemm& gemm) { return gemm.is_empty() ? Support() : check_memory(operands(gemm)); }

// `Problem` is Gemm or const Gemm.
template <class TensorPointer, class Problem>
std::vector<BasicOperand<TensorPointer>> operands_of(Problem& gemm) {
  const bool reads_operands = reads_product(gemm);
  std::vector<BasicOperand<TensorPointer>> operands{
      {"A", &gemm.a, Access::read, reads_operands},
      {"B", &gemm.b, Access::read, reads_operands},
      {"C", &gemm.c, Access::read, reads_source(gemm), true},
      {"D", &gemm.d, Access::write},
  };
  for (auto& [name, tensor] : gemm.tensors) operands.push_back(tensor_operand(gemm.epilogue, name, &tensor));
  return operands;
}

}  // namespace

Support check_types(const Gemm& gemm) {
  const DType a = gemm.a.dtype;
  const DType b = gemm.b.dtype;
  for (const auto& [role, type] : {std::pair{"A", a}, {"B", b}, {"C", gemm.c.dtype}, {"D", gemm.d.dtype}}) {
    if (type == DType::tf32)
      return refuse("{} is tf32, which is only a math type: use f32 elements and multiply_add_tf32", role)
          .as(RefusalCode::math);
    if (is_narrow(type))
      return refuse("{} is {}: must be f64, f32, f16, bf16, e4m3, e5m2, s32, s8 or u8", role, name(type))
          .as(RefusalCode::types);
  }
  if (a == DType::s32 || b == DType::s32)
    return refuse("A and B must be f64, f32, f16, bf16, e4m3, e5m2, s8 or u8, got {} and {}", name(a), name(b))
        .as(RefusalCode::types);
  if (!are_multiplied(a, b))
    return refuse("A is {} and B is {}: they must have the same type", name(a), name(b)).as(RefusalCode::types);
  const bool may_be_half = a == DType::f16 || is_fp8(a);
  if (gemm.accumulator != default_accumulator(a) && !(may_be_half && gemm.accumulator == DType::f16)) {
    return refuse("{} operands accumulate in {}{}, got {}", name(a), name(default_accumulator(a)),
                  may_be_half ? " or f16" : "", name(gemm.accumulator))
        .as(RefusalCode::types);
  }
  if (const Support fits = check_math(gemm); !fits) return fits;
  const auto storable = [&](DType type) {
    if (a == DType::f64) return type == DType::f64;
    if (is_byte(a)) return type != DType::f64 && !is_fp8(type);
    return type == DType::f32 || type == DType::f16 || type == DType::bf16 || is_fp8(type);
  };
  for (const auto& [role, type] : {std::pair{"C", gemm.c.dtype}, {"D", gemm.d.dtype}}) {
    const bool used = role[0] == 'D' || reads_source(gemm);
    if (used && !storable(type))
      return refuse("{} is {}, which is not supported with {} operands", role, name(type), name(a))
          .as(RefusalCode::types)
          .of(role);
  }
  return {};
}

std::string_view name(MathOperation math) { return kMathOperations[static_cast<std::size_t>(math)].second; }

std::optional<MathOperation> parse_math_operation(std::string_view text) {
  for (const auto& [math, label] : kMathOperations) {
    if (text == label) return math;
  }
  return std::nullopt;
}

DType default_accumulator(DType a) {
  if (a == DType::f64) return DType::f64;
  return is_float(a) ? DType::f32 : DType::s32;
}

DType default_output(DType a) {
  if (is_integer(a)) return DType::s32;
  return is_fp8(a) ? DType::bf16 : a;
}

DType default_compute(DType accumulator, DType d) {
  if (accumulator == DType::f64) return DType::f64;
  return accumulator == DType::s32 && d == DType::s32 ? DType::s32 : DType::f32;
}

bool reads_source(const Gemm& gemm) { return gemm.epilogue.reads_source() && is_read(gemm, EpilogueOp::source); }

bool reads_product(const Gemm& gemm) { return gemm.k() != 0 && is_read(gemm, EpilogueOp::accumulator); }

bool is_shape_only(const Gemm& gemm) { return gemm.d.device.kind == MemoryDevice::Kind::shape; }

std::vector<Operand> operands(Gemm& gemm) { return operands_of<Tensor*>(gemm); }
std::vector<ConstOperand> operands(const Gemm& gemm) { return operands_of<const Tensor*>(gemm); }

Support check_matrices(const Gemm& gemm) {
  for (const auto& [role, tensor] : {std::pair{"A", &gemm.a}, {"B", &gemm.b}, {"D", &gemm.d}}) {
    if (const Result<MatrixView> view = view_matrix(*tensor, role); !view) return view.refusal();
  }
  if (const Support epilogue = check_graph(gemm.epilogue); !epilogue) return epilogue;
  if (reads_source(gemm)) {
    if (gemm.c.address == 0 && gemm.c.shape.rank() == 0)
      return refuse("C is missing: beta is {}", gemm.beta).as(RefusalCode::memory).of("C");
    if (const Result<MatrixView> view = view_matrix(gemm.c, "C"); !view) return view.refusal();
  }
  for (const auto& check : {check_types, check_interleaved, check_epilogue, check_shapes}) {
    if (const Support support = check(gemm); !support) return support;
  }
  return {};
}

Support validate(const Gemm& gemm) {
  if (const Support matrices = check_matrices(gemm); !matrices) return matrices;
  if (const Support batches = check_batches(gemm); !batches) return batches;
  if (const Support tensors = check_epilogue_tensors(gemm); !tensors) return tensors;
  return check_operands(gemm);
}

std::string to_string(const TensorSignature& signature) {
  const std::string shared = signature.shared_taps == 0
                                 ? std::string()
                                 : fmt::format(":shared_{}x{}", signature.shared_taps, signature.shared_step);
  const std::string im2col = signature.im2col == Im2colAccess::none
                                 ? std::string()
                                 : fmt::format(":{}:{}{}{}", name(signature.im2col), signature.tap_row,
                                               signature.has_padded_taps ? ":padded" : "", shared) +
                                       (signature.has_many_classes ? ":many_classes" : "");
  const std::string folded =
      signature.folded_modes == 0 ? std::string() : fmt::format(":folded_{}", signature.folded_modes);
  return fmt::format("{}:{}:{}{}{}{}", name(signature.element), name(signature.layout), signature.alignment,
                     signature.is_pointer_array ? ":pointers" : "", im2col, folded);
}

std::string_view name(Im2colAccess access) {
  constexpr std::array<std::string_view, 4> kNames{"none", "im2col", "im2col_divided", "im2col_blocks"};
  return kNames[static_cast<std::size_t>(access)];
}

GemmSignature describe(const Gemm& gemm) { return describe(view(gemm)); }

// Validates an empty problem that has this signature.
Support validate(const GemmSignature& signature) {
  const auto empty = [](const TensorSignature& tensor) {
    return matrix(std::uint64_t{0}, tensor.element, 0, 0, tensor.layout);
  };
  const std::vector<EpilogueTensor> tensors_of_epilogue = epilogue_tensors(signature.epilogue);
  if (tensors_of_epilogue.size() != signature.tensors.size()) {
    return refuse("the epilogue has {} tensors, the signature has {}", tensors_of_epilogue.size(),
                  signature.tensors.size())
        .as(RefusalCode::epilogue);
  }
  std::vector<NamedTensor> tensors;
  for (std::size_t i = 0; i < tensors_of_epilogue.size(); ++i) {
    const Broadcast& broadcast = tensors_of_epilogue[i].broadcast;
    const auto layout =
        signature.tensors[i].contiguous == ContiguousMode::rows ? MatrixLayout::column_major : MatrixLayout::row_major;
    tensors.push_back({std::string(tensors_of_epilogue[i].label),
                       matrix(std::uint64_t{0}, signature.tensors[i].element, broadcast.along_m ? 0 : 1,
                              broadcast.along_n ? 0 : 1, layout)});
  }
  const Gemm gemm{.a = empty(signature.a),
                  .b = empty(signature.b),
                  .c = empty(signature.c),
                  .d = empty(signature.d),
                  .beta = signature.has_c ? 1.0 : 0.0,
                  .accumulator = signature.accumulator,
                  .math = signature.math,
                  .epilogue = signature.epilogue,
                  .tensors = std::move(tensors)};
  if (const Support valid = validate(gemm); !valid) return valid;
  if (const Support grouped = check_grouped_epilogue(signature.groups, signature.epilogue); !grouped) return grouped;
  if (signature.groups == GroupedMode::independent &&
      !(signature.a.is_pointer_array && signature.b.is_pointer_array && signature.d.is_pointer_array)) {
    return refuse("operands of independent groups are arrays of pointers").as(RefusalCode::strides);
  }
  if (!signature.has_c && reads_source(gemm))
    return refuse("the epilogue reads C without a gate such as beta, but has_c is false").as(RefusalCode::epilogue);
  for (const auto& [role, alignment] : {std::pair{'A', signature.a.alignment},
                                        {'B', signature.b.alignment},
                                        {'C', signature.c.alignment},
                                        {'D', signature.d.alignment}}) {
    if (!is_power_of_two(alignment)) {
      return refuse("alignment of {} must be a power of two, got {}", role, alignment)
          .as(RefusalCode::alignment)
          .of(role);
    }
  }
  return {};
}

Gemm transposed(const Gemm& gemm) {
  Gemm result = gemm;
  result.a = transposed(gemm.b);
  result.b = transposed(gemm.a);
  result.d = transposed(gemm.d);
  if (gemm.c.shape.rank() >= 2) result.c = transposed(gemm.c);
  result.epilogue = transposed(gemm.epilogue);
  for (NamedTensor& each : result.tensors) each.tensor = transposed(each.tensor);
  return result;
}

GemmSignature transposed(const GemmSignature& signature) {
  const auto flip = [](TensorSignature tensor) {
    tensor.layout = transposed(tensor.layout);
    return tensor;
  };
  GemmSignature result = signature;
  result.a = flip(signature.b);
  result.b = flip(signature.a);
  result.c = flip(signature.c);
  result.d = flip(signature.d);
  result.epilogue = transposed(signature.epilogue);
  result.groups = transposed(signature.groups);
  for (EpilogueTensorSignature& tensor : result.tensors) {
    if (tensor.contiguous == ContiguousMode::none) continue;
    tensor.contiguous = tensor.contiguous == ContiguousMode::rows ? ContiguousMode::columns : ContiguousMode::rows;
  }
  return result;
}

Gemm slice(const Gemm& gemm, std::int64_t index) {
  Gemm result = gemm;
  result.a = slice(gemm.a, index);
  result.b = slice(gemm.b, index);
  result.d = slice(gemm.d, index);
  if (gemm.c.shape.rank() >= 2) result.c = slice(gemm.c, index);
  for (NamedTensor& each : result.tensors) each.tensor = slice(each.tensor, index);
  return result;
}

double operations(const Gemm& gemm) { return operations(view(gemm)); }

}  // namespace tilewright::op
