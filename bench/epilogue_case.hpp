// The epilogues that are measured: one row each, with its text (docs/epilogues.md) and the matching cuBLASLt epilogue.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "tilewright/base/dtype.hpp"
#include "tilewright/op/epilogue.hpp"

namespace tilewright::bench {

/// The element type of a tensor, relative to that of D.
enum class CaseType : std::uint8_t {
  as_d,
  wide,  // as_d, but bf16 if D is an 8-bit float, because cuBLASLt takes bf16 then
  f32,
};

/// The attribute of cuBLASLt's descriptor that takes the tensor's address.
enum class CublasLtRole : std::uint8_t { none, bias, aux, scale_of_d, amax_of_d };

/// The values of cublasLtEpilogue_t; `none` if no epilogue of cuBLASLt matches.
enum class CublasLtEpilogue : std::uint32_t {
  none = 0,
  plain = 1,
  relu = 2,
  bias = 4,
  relu_bias = relu | bias,
  gelu = 32,
  gelu_bias = gelu | bias,
  gelu_aux = gelu | 128,
  gelu_aux_bias = gelu_aux | bias,
};

/// A tensor that the epilogue reads or writes, other than C and D. The text determines its shape.
struct CaseTensor {
  std::string_view label;
  CaseType type;
  CublasLtRole role = CublasLtRole::none;
  std::optional<double> value = {};  // of every element; nullopt: random elements from N(0,1)
  double steepest = 1.0;             // largest derivative of its elements with respect to an accumulator
};

struct EpilogueCase {
  std::string_view name;  // in problem files
  std::string_view text;  // in the language of docs/epilogues.md
  std::vector<CaseTensor> tensors = {};
  double beta = 0.0;
  CublasLtEpilogue cublaslt = CublasLtEpilogue::none;
  double approximation = 0.0;  // relative error of cuBLASLt's function if it is approximate
  double steepest = 1.0;       // largest derivative of D by an accumulator, per unit of the other factors
  int factors = 1;             // D is a product of this many functions, each of another accumulator
};

inline constexpr std::size_t kMaxCaseTensors = 4;

/// All cases, in the order of reports. A case has at most kMaxCaseTensors tensors.
std::span<const EpilogueCase> epilogue_cases();
/// Null if no case has this name.
const EpilogueCase* find_epilogue_case(std::string_view name);

/// The graph of the case's text.
op::Epilogue graph(const EpilogueCase& one, DType compute);

/// The element type that `type` stands for if D has type `out`.
DType case_type(CaseType type, DType out);

}  // namespace tilewright::bench
