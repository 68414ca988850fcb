#include "tilewright/op/named_epilogue.hpp"

#include <array>
#include <utility>

#include "tilewright/op/expression.hpp"

namespace tilewright::op {
namespace {

constexpr std::array<std::pair<Activation, std::string_view>, 8> kActivations{{
    {Activation::identity, "identity"},
    {Activation::relu, "relu"},
    {Activation::leaky_relu, "leaky_relu"},
    {Activation::tanh, "tanh"},
    {Activation::sigmoid, "sigmoid"},
    {Activation::silu, "silu"},
    {Activation::hardswish, "hardswish"},
    {Activation::gelu, "gelu"},
}};

Expression scaled() { return alpha() * acc() + beta() * c(); }

// The result is not validated: the compute type may lack a function, which the caller's validate() refuses.
Epilogue named(std::string name, DType compute, const Expression& x) {
  return {std::move(name), compute, {x.nodes().begin(), x.nodes().end()}};
}

}  // namespace

Epilogue accumulator_alone(DType compute) { return named("accumulator_alone", compute, acc()); }

bool is_accumulator(const Epilogue& epilogue) {
  return epilogue.outputs.empty() &&
         epilogue.nodes[static_cast<std::size_t>(epilogue.node_of_d())].op == EpilogueOp::accumulator;
}

// The default of every problem, so the graph is built only once.
Epilogue linear_combination(DType compute) {
  static const Epilogue made = named("linear_combination", DType::f32, scaled());
  Epilogue copy = made;
  copy.compute = compute;
  return copy;
}

Epilogue linear_combination_clamp(DType output, DType compute) {
  Expression x = scaled();
  // s32 is not clamped, since f32 cannot represent 2^31 - 1 and the conversion saturates anyway. The conversion to
  // 8-bit floats saturates too.
  if (output == DType::s8) x = call("clamp", {x, -128.0, 127.0});
  if (output == DType::u8) x = call("clamp", {x, 0.0, 255.0});
  if (output == DType::f16) x = call("clamp", {x, -65504.0, 65504.0});
  return named("linear_combination_clamp", compute, x);
}

std::string_view name(Activation activation) { return kActivations[static_cast<std::size_t>(activation)].second; }

std::optional<Activation> parse_activation(std::string_view text) {
  for (const auto& [activation, label] : kActivations) {
    if (text == label) return activation;
  }
  return std::nullopt;
}

Epilogue linear_combination_generic(Activation activation, DType compute, double slope) {
  Expression x = scaled();
  if (activation == Activation::leaky_relu) {
    x = call("leaky_relu", {x, scalar("leaky_alpha", slope)});
  } else if (activation != Activation::identity) {
    x = call(name(activation), {x});
  }
  return named(fmt::format("linear_combination_{}", name(activation)), compute, x);
}

Result<Epilogue> named_epilogue(std::string_view text, DType output, DType compute) {
  constexpr std::string_view kPrefix = "linear_combination";
  std::string_view rest = text;
  if (rest.starts_with(kPrefix)) rest.remove_prefix(kPrefix.size());
  if (rest.starts_with("_")) rest.remove_prefix(1);
  Epilogue epilogue;
  if (rest.empty() && !text.empty()) {
    epilogue = linear_combination(compute);
  } else if (rest == "clamp") {
    epilogue = linear_combination_clamp(output, compute);
  } else if (const std::optional<Activation> activation = parse_activation(rest)) {
    epilogue = linear_combination_generic(*activation, compute);
  } else {
    return refuse(
        "unknown epilogue '{}': known are linear_combination, clamp, relu, leaky_relu, tanh, sigmoid, silu, "
        "hardswish, gelu, identity; a formula is assigned to D, as in 'D = relu(acc)'",
        text);
  }
  if (const Support valid = validate(epilogue); !valid) return valid.refusal();
  return epilogue;
}

}  // namespace tilewright::op
