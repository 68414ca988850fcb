#include "tilewright/op/reduce_split_k.hpp"

#include <limits>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "tilewright/base/power_of_two.hpp"
#include "tilewright/op/epilogue_tensors.hpp"

namespace tilewright::op {
namespace {

// A type whose products have this accumulator: the operands of a GEMM with the same outputs.
DType operand_of(DType accumulator) {
  if (accumulator == DType::s32) return DType::s8;
  return accumulator == DType::f64 ? DType::f64 : DType::f32;
}

bool is_read(const ReduceSplitK& reduction, EpilogueOp leaf) {
  const std::optional<std::string> gate = reduction.epilogue.gate(leaf);
  return !gate || scalar_value(reduction.epilogue, *gate, reduction.alpha, reduction.beta) != 0.0;
}

Support check_part_types(DType parts, DType accumulator) {
  switch (parts) {
    case DType::f64:
    case DType::f32:
    case DType::f16:
    case DType::bf16:
    case DType::s32:
      break;
    default:
      return refuse("parts are {}: must be f64, f32, f16, bf16 or s32", name(parts)).as(RefusalCode::types).of("parts");
  }
  if (accumulator == sum_accumulator(parts)) return {};
  return refuse("{} parts accumulate in {}, got {}", name(parts), name(sum_accumulator(parts)), name(accumulator))
      .as(RefusalCode::types);
}

// The reduction reads and writes strided matrices only.
Support check_strided(const ReduceSplitK& reduction) {
  for (const auto& [role, tensor, is_used] : {std::tuple{"parts", &reduction.parts, true},
                                              {"C", &reduction.c, reads_source(reduction)},
                                              {"D", &reduction.d, true}}) {
    if (!is_used) continue;
    if (tensor->is_pointer_array()) {
      return refuse("{} is an array of pointers, which reduce_split_k does not take", quoted(role))
          .as(RefusalCode::strides)
          .of(role);
    }
    if (tensor->interleaved != InterleavedMode::none) {
      return refuse("{} is interleaved, but reduce_split_k takes only row-major and column-major matrices",
                    quoted(role))
          .as(RefusalCode::strides)
          .of(role);
    }
  }
  return {};
}

Support check_strided(const ReduceSplitKSignature& signature) {
  for (const auto& [role, tensor] : {std::pair{"parts", &signature.parts}, {"C", &signature.c}, {"D", &signature.d}}) {
    if (!tensor->is_pointer_array && !is_interleaved(tensor->layout)) continue;
    return refuse("{} is {}: reduce_split_k takes only row-major and column-major matrices", quoted(role),
                  to_string(*tensor))
        .as(RefusalCode::strides)
        .of(role);
  }
  return {};
}

Support check_parts(const ReduceSplitK& reduction) {
  if (const Result<MatrixView> view = view_matrix(reduction.parts, "parts"); !view) return view.refusal();
  if (const Support fits = check_part_types(reduction.parts.dtype, reduction.accumulator); !fits) return fits;
  if (reduction.count() > std::numeric_limits<std::int32_t>::max())
    return refuse("the number of parts must be below 2^31, got {}", reduction.count()).as(RefusalCode::shape);
  return {};
}

// The GEMM with k = 0, so that it reads neither A nor B, that has the same C, D and epilogue.
Gemm gemm_with_same_outputs(const ReduceSplitK& reduction) {
  const DType operand = operand_of(reduction.accumulator);
  return {.a = matrix(std::uint64_t{0}, operand, reduction.m(), 0),
          .b = matrix(std::uint64_t{0}, operand, 0, reduction.n()),
          .c = reduction.c,
          .d = reduction.d,
          .alpha = reduction.alpha,
          .beta = reduction.beta,
          .accumulator = reduction.accumulator,
          .epilogue = reduction.epilogue,
          .tensors = reduction.tensors};
}

// `Problem` is ReduceSplitK or const ReduceSplitK.
template <class TensorPointer, class Problem>
std::vector<BasicOperand<TensorPointer>> operands_of(Problem& reduction) {
  std::vector<BasicOperand<TensorPointer>> operands{
      {"parts", &reduction.parts, Access::read, reads_parts(reduction)},
      {"C", &reduction.c, Access::read, reads_source(reduction), true},
      {"D", &reduction.d, Access::write},
  };
  for (auto& [name, tensor] : reduction.tensors) operands.push_back(tensor_operand(reduction.epilogue, name, &tensor));
  return operands;
}

}  // namespace

DType sum_accumulator(DType parts) { return parts == DType::f64 || parts == DType::s32 ? parts : DType::f32; }

bool reads_source(const ReduceSplitK& reduction) {
  return reduction.epilogue.reads_source() && is_read(reduction, EpilogueOp::source);
}

bool reads_parts(const ReduceSplitK& reduction) {
  return reduction.count() != 0 && is_read(reduction, EpilogueOp::accumulator);
}

Support validate(const ReduceSplitK& reduction) {
  if (const Support strided = check_strided(reduction); !strided) return strided;
  if (const Support valid = check_parts(reduction); !valid) return valid;
  if (const Support valid = validate(gemm_with_same_outputs(reduction)); !valid) return valid;
  if (reduction.d.batch() != 1)
    return refuse("D must be a single matrix, got a batch of {}", reduction.d.batch()).as(RefusalCode::shape).of("D");
  return reduction.is_empty() ? Support() : check_memory(operands(reduction));
}

std::vector<Operand> operands(ReduceSplitK& reduction) { return operands_of<Tensor*>(reduction); }
std::vector<ConstOperand> operands(const ReduceSplitK& reduction) { return operands_of<const Tensor*>(reduction); }

GemmView outputs_view(const ReduceSplitK& reduction) {
  const DType operand = operand_of(reduction.accumulator);
  const bool is_shape_only = reduction.d.device.kind == MemoryDevice::Kind::shape;
  const bool has_c = reduction.c.address != 0 || (is_shape_only && reduction.c.shape.rank() != 0);
  return {.a = OperandView::of(matrix(std::uint64_t{0}, operand, reduction.m(), reduction.count())),
          .b = OperandView::of(matrix(std::uint64_t{0}, operand, reduction.count(), reduction.n())),
          .c = OperandView::of(reduction.c),
          .d = OperandView::of(reduction.d),
          .alpha = reduction.alpha,
          .beta = reduction.beta,
          .accumulator = reduction.accumulator,
          .epilogue = &reduction.epilogue,
          .tensors = reduction.tensors,
          .has_source = reduction.epilogue.reads_source() && has_c,
          .reads_source = reads_source(reduction),
          .reads_product = reads_parts(reduction)};
}

ReduceSplitKSignature describe(const ReduceSplitK& reduction) {
  GemmSignature outputs = describe(outputs_view(reduction));
  return {.parts = describe_operand(OperandView::of(reduction.parts), "parts"),
          .c = outputs.c,
          .d = outputs.d,
          .accumulator = outputs.accumulator,
          .epilogue = std::move(outputs.epilogue),
          .tensors = std::move(outputs.tensors),
          .has_c = outputs.has_c};
}

Support validate(const ReduceSplitKSignature& signature) {
  if (const Support strided = check_strided(signature); !strided) return strided;
  if (const Support fits = check_part_types(signature.parts.element, signature.accumulator); !fits) return fits;
  if (!is_power_of_two(signature.parts.alignment)) {
    return refuse("alignment of parts must be a power of two, got {}", signature.parts.alignment)
        .as(RefusalCode::alignment)
        .of("parts");
  }
  return validate(outputs_signature(signature));
}

GemmSignature outputs_signature(const ReduceSplitKSignature& signature) {
  const TensorSignature operand{.element = operand_of(signature.accumulator)};
  return {.a = operand,
          .b = operand,
          .c = signature.c,
          .d = signature.d,
          .accumulator = signature.accumulator,
          .epilogue = signature.epilogue,
          .tensors = signature.tensors,
          .has_c = signature.has_c};
}

ReduceSplitKSignature transposed(const ReduceSplitKSignature& signature) {
  GemmSignature outputs = transposed(outputs_signature(signature));
  ReduceSplitKSignature result = signature;
  result.parts.layout = transposed(signature.parts.layout);
  result.c = outputs.c;
  result.d = outputs.d;
  result.epilogue = std::move(outputs.epilogue);
  result.tensors = std::move(outputs.tensors);
  return result;
}

double operations(const ReduceSplitK& reduction) {
  return static_cast<double>(reduction.count()) * static_cast<double>(reduction.m()) *
         static_cast<double>(reduction.n());
}

}  // namespace tilewright::op
