// How products are computed: in the operands' own type, or rounded to a type that tensor cores support.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace tilewright::op {

/// How products are computed and accumulated. multiply_add_tf32, _fast_f16, _fast_bf16 and _fast_f32 compute a GEMM
/// with f32 operands on tensor cores.
///
/// Hopper's tensor cores accumulate products of 8-bit floats with about 14 bits (DeepSeek-V3 Technical Report, 2024,
/// section 3.3.2). multiply_add therefore promotes the partial sum to an f32 accumulator after at most
/// kFp8PromotionInterval products; multiply_add_fast_accumulate accumulates all of K in the tensor core, like
/// CUBLASLT_MATMUL_DESC_FAST_ACCUM of cuBLASLt.
enum class MathOperation : std::uint8_t {
  multiply_add,                  // in the operands' own type
  multiply_add_tf32,             // f32 operands rounded to tf32 (10 fraction bits)
  multiply_add_fast_f16,         // f32 operands rounded to f16
  multiply_add_fast_bf16,        // f32 operands rounded to bf16
  multiply_add_fast_f32,         // 3xTF32: each operand split in two tf32 parts, three products, close to f32
  multiply_add_fast_accumulate,  // 8-bit floats, accumulated by the tensor core without promotion
};

/// The number of products of 8-bit floats that multiply_add accumulates in a tensor core before promotion to f32.
inline constexpr int kFp8PromotionInterval = 128;

std::string_view name(MathOperation math);
std::optional<MathOperation> parse_math_operation(std::string_view text);

}  // namespace tilewright::op
