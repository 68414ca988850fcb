#include "tilewright/lower/cuda/epilogue.hpp"

namespace tilewright::lower::cuda {
namespace {

// Exact: hexadecimal for floats.
std::string literal(double value, DType compute) {
  if (compute == DType::s32) return fmt::format("{}", static_cast<std::int64_t>(value));
  return fmt::format("{:a}{}", value, compute == DType::f32 ? "f" : "");
}

std::string expression(const op::EpilogueNode& node, DType compute) {
  switch (node.op) {
    case op::EpilogueOp::accumulator:
      return "accumulator";
    case op::EpilogueOp::source:
      return "source";
    case op::EpilogueOp::scalar:
      return "scalars." + node.label;
    case op::EpilogueOp::constant:
      return literal(node.value, compute);
    default: {
      std::string call = fmt::format("tilewright::numeric::{}(x{}", op::name(node.op), node.inputs[0]);
      if (op::arity(node.op) == 2) call += fmt::format(", x{}", node.inputs[1]);
      return call + ")";
    }
  }
}

}  // namespace

void write_epilogue(SourceWriter& out, const op::Epilogue& epilogue, bool has_c) {
  const std::vector<std::string> scalars = epilogue.scalars();
  const bool reads_source = has_c && epilogue.reads_source();
  const std::optional<std::string> gate = reads_source ? epilogue.gate(op::EpilogueOp::source) : std::nullopt;
  out.line("// {}", op::signature(epilogue));
  out.line("struct Epilogue {{").indent();
  out.line("using Compute = {};", cuda_name(epilogue.compute));
  out.line("struct Scalars {{").indent();
  for (const std::string& label : scalars) out.line("Compute {};", label);
  out.dedent().line("}};");
  out.line("static constexpr bool kReadsSource = {};", reads_source);
  out.line("static __device__ __forceinline__ bool reads_source([[maybe_unused]] const Scalars& scalars) {{").indent();
  if (gate) {
    out.line("return scalars.{} != Compute(0);", *gate);
  } else {
    out.line("return kReadsSource;");
  }
  out.dedent().line("}}");
  out.line("static __device__ __forceinline__ Compute apply([[maybe_unused]] Compute accumulator,");
  out.line("                                               [[maybe_unused]] Compute source,");
  out.line("                                               [[maybe_unused]] const Scalars& scalars) {{").indent();
  for (std::size_t i = 0; i < epilogue.nodes.size(); ++i) {
    out.line("const Compute x{} = {};", i, expression(epilogue.nodes[i], epilogue.compute));
  }
  out.line("return x{};", epilogue.nodes.size() - 1);
  out.dedent().line("}}");
  out.dedent().line("}};");
}

}  // namespace tilewright::lower::cuda
