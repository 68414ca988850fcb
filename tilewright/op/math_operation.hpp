// How products are formed: at the operands' own type, or rounded to what tensor cores take.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

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

}  // namespace tilewright::op
