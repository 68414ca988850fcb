// The table of epilogue cases.
#include "epilogue_case.hpp"

#include <algorithm>

#include "tilewright/op/epilogue_text.hpp"

namespace tilewright::bench {
namespace {

/// Twice 2^-11, the relative error of tanh.approx.f32 (PTX ISA). It also covers the erf form, in case cuBLASLt computes
/// that: the two forms differ by less than 5e-4.
constexpr double kGeluApproximation = 0x1p-10;
constexpr double kGeluSteepest = 1.13;
constexpr double kSiluSteepest = 1.1;

/// The scale of D. With it no sum of up to 8192 products of N(0,1) saturates e4m3, whose largest value, 448, is almost
/// 20 standard deviations of the scaled sum.
constexpr double kScale = 0.25;

}  // namespace

// cuBLASLt computes the transpose of our D, so that its bias, with one element per row, has one element per column of
// D. Its GELU is the tanh form. Its scale of D multiplies before the rounding, as it does here.
//
// cublasLt.h says that AMAX_D_POINTER is "set to the maximum of absolute values in the output matrix", but not whether
// this is before or after the scale of D. Here amax is the maximum before scaling, from which a user can choose a
// scale. If cuBLASLt meant the maximum after scaling, the verifier would find its value to be kScale times ours.
std::span<const EpilogueCase> epilogue_cases() {
  static const std::vector<EpilogueCase> kCases = {
      {.name = "bias",
       .text = "D = acc + row(bias)",
       .tensors = {{"bias", CaseType::wide, CublasLtRole::bias}},
       .cublaslt = CublasLtEpilogue::bias},
      {.name = "bias_relu",
       .text = "D = relu(acc + row(bias))",
       .tensors = {{"bias", CaseType::wide, CublasLtRole::bias}},
       .cublaslt = CublasLtEpilogue::relu_bias},
      {.name = "bias_gelu",
       .text = "D = gelu_tanh(acc + row(bias))",
       .tensors = {{"bias", CaseType::wide, CublasLtRole::bias}},
       .cublaslt = CublasLtEpilogue::gelu_bias,
       .approximation = kGeluApproximation,
       .steepest = kGeluSteepest},
      {.name = "bias_gelu_aux",
       .text = "let t = acc + row(bias); D = gelu_tanh(t); aux = t",
       .tensors = {{"bias", CaseType::wide, CublasLtRole::bias}, {"aux", CaseType::as_d, CublasLtRole::aux}},
       .cublaslt = CublasLtEpilogue::gelu_aux_bias,
       .approximation = kGeluApproximation,
       .steepest = kGeluSteepest},
      {.name = "residual", .text = "D = alpha * acc + beta * C", .beta = 1.0, .cublaslt = CublasLtEpilogue::plain},
      {.name = "quantise",
       .text = "D = acc * single(scale)",
       .tensors = {{"scale", CaseType::f32, CublasLtRole::scale_of_d, kScale}},
       .cublaslt = CublasLtEpilogue::plain,
       .steepest = kScale},
      {.name = "quantise_amax",
       .text = "D = acc * single(scale); amax = absmax(acc)",
       .tensors = {{"scale", CaseType::f32, CublasLtRole::scale_of_d, kScale},
                   {"amax", CaseType::f32, CublasLtRole::amax_of_d}},
       .cublaslt = CublasLtEpilogue::plain,
       .steepest = kScale},
      {.name = "row_sum", .text = "D = acc; column(sums) = sum(D)", .tensors = {{"sums", CaseType::f32}}},
      {.name = "swiglu", .text = "D = swiglu(acc)", .steepest = kSiluSteepest, .factors = 2},
  };
  return kCases;
}

const EpilogueCase* find_epilogue_case(std::string_view name) {
  const auto found = std::ranges::find(epilogue_cases(), name, &EpilogueCase::name);
  return found == epilogue_cases().end() ? nullptr : &*found;
}

op::Epilogue graph(const EpilogueCase& one, DType compute) {
  return op::parse_epilogue(one.text, compute).value_or_throw();
}

DType case_type(CaseType type, DType out) {
  if (type == CaseType::f32) return DType::f32;
  return type == CaseType::wide && is_fp8(out) ? DType::bf16 : out;
}

}  // namespace tilewright::bench
