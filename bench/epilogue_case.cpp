// The table.
#include "epilogue_case.hpp"

#include <algorithm>

#include "tilewright/op/epilogue_text.hpp"

namespace tilewright::bench {
namespace {

/// tanh.approx.f32 has a relative error of 2^-11 (PTX ISA); twice that. Should cuBLASLt compute the erf form, the two
/// differ by less than 5e-4.
constexpr double kGeluApproximation = 0x1p-10;
constexpr double kGeluSteepest = 1.13;
constexpr double kSiluSteepest = 1.1;

/// Of sums of 8192 products of N(0,1), with it none saturates: 448 is almost 20 standard deviations.
constexpr double kScale = 0.25;

}  // namespace

// cuBLASLt sees our D transposed: its bias has an element for each row of that, which is one for each of our columns.
// Its GELU is the tanh form. Its scale of D multiplies before the rounding, as here.
//
// cublasLt.h has AMAX_D_POINTER "set to the maximum of absolute values in the output matrix" and does not say whether
// before or after D's scale. Before is what a scale can be chosen by, so amax is of the accumulator here; were it
// after, the verifier would find cuBLASLt's to be kScale times ours.
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
