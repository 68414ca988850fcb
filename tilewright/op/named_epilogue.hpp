// Predefined epilogue graphs, named like PyCUTLASS's functors.
#pragma once

#include "tilewright/op/epilogue.hpp"

namespace tilewright::op {

/// D = accumulator
Epilogue accumulator_alone(DType compute = DType::f32);
/// Whether D is the accumulator and there are no outputs.
bool is_accumulator(const Epilogue& epilogue);

/// alpha * accumulator + beta * C
Epilogue linear_combination(DType compute = DType::f32);

/// clamp(alpha * accumulator + beta * C) to the range of the output type
Epilogue linear_combination_clamp(DType output, DType compute = DType::f32);

enum class Activation : std::uint8_t { identity, relu, leaky_relu, tanh, sigmoid, silu, hardswish, gelu };

std::string_view name(Activation activation);
std::optional<Activation> parse_activation(std::string_view text);

/// activation(alpha * accumulator + beta * C). `slope` is the default of leaky_relu's launch argument.
/// Formulas: leaky_relu max(x,0) + slope*min(x,0); sigmoid 1/(1+e^-x); silu x*sigmoid(x);
/// hardswish x*min(max(x+3,0),6)/6; gelu x/2*(1+erf(x/sqrt(2))).
Epilogue linear_combination_generic(Activation activation, DType compute = DType::f32, double slope = 0.2);

/// "linear_combination", "linear_combination_clamp" (or "clamp"), or an activation's name.
Result<Epilogue> named_epilogue(std::string_view text, DType output, DType compute);

}  // namespace tilewright::op
