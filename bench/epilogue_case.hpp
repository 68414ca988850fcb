// The epilogues that are measured: a row each, with its text in our language and cuBLASLt's own that matches.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "tilewright/base/dtype.hpp"
#include "tilewright/op/epilogue.hpp"

namespace tilewright::bench {

/// Of a tensor, by the type of D.
enum class CaseType : std::uint8_t {
  as_d,
  wide,  // as_d; where D is an 8-bit float, bf16: what cuBLASLt takes beside such a D
  f32,
};

/// How cuBLASLt is told of a tensor: as this attribute of its descriptor.
enum class CublasLtRole : std::uint8_t { none, bias, aux, scale_of_d, amax_of_d };

/// cublasLtEpilogue_t, and none where cuBLASLt has no epilogue that matches.
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

/// A tensor that the epilogue reads or writes beside C and D. Its shape is what the text says.
struct CaseTensor {
  std::string_view label;
  CaseType type;
  CublasLtRole role = CublasLtRole::none;
  std::optional<double> value = {};  // of every element; N(0,1) without
  double steepest = 1.0;             // largest slope over the accumulator of what is stored to it, or reduced
};

struct EpilogueCase {
  std::string_view name;  // as a problem file says it
  std::string_view text;  // docs/epilogues.md
  std::vector<CaseTensor> tensors = {};
  double beta = 0.0;
  CublasLtEpilogue cublaslt = CublasLtEpilogue::none;
  double approximation = 0.0;  // relative error of cuBLASLt's function, where it has one that is not exact
  double steepest = 1.0;       // largest slope of D over an accumulator, for each unit of those in the other factors
  int factors = 1;             // that D is a product of, each a function of another accumulator
};

inline constexpr std::size_t kMostCaseTensors = 4;

/// In the order of reports. A case has at most kMostCaseTensors tensors.
std::span<const EpilogueCase> epilogue_cases();
/// Null where there is none of that name.
const EpilogueCase* find_epilogue_case(std::string_view name);

/// Of its text.
op::Epilogue graph(const EpilogueCase& one, DType compute);

/// For a D of type `out`.
DType case_type(CaseType type, DType out);

}  // namespace tilewright::bench
