// The operation "weight_gemm", a linear layer with narrow weights, and the provider of its kernels.
#pragma once

#include <memory>

#include "tilewright/op/custom.hpp"
#include "tilewright/registry/provider.hpp"

namespace tilewright::kernels {

/// out[token, output] = sum over inputs of weights[output, input] * scales[input / group, output] * x[token, input].
///
/// Operands: `weights`, the bytes that program::pack_weights() makes of outputs x inputs weights: u8 for s4, s8, or
/// e4m3; `scales` (groups, outputs) of f16, bf16 or f32; `x` (tokens, inputs) of f16 or bf16; `out` (tokens, outputs)
/// of f16, bf16 or f32. Scalar: `group`, the number of inputs with one scale; 0: one scale for each output, so one
/// group.
op::OperationPtr weight_gemm_operation();

/// Offers kernels for weight_gemm_operation() on sm_90a.
std::unique_ptr<registry::Provider> make_weight_gemm_provider();

}  // namespace tilewright::kernels
