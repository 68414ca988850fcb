#include "tilewright/plan/parameters.hpp"

namespace tilewright::plan {
namespace {

template <class Sink, class Value>
void describe_scalar(Sink& sink, const ParameterName& name, DType compute, const Value& value) {
  switch (compute) {
    case DType::f64:
      return sink.field(name, value);
    case DType::s32:
      return sink.int32(name, value);
    default:
      return sink.field(name, [&] { return static_cast<float>(value()); });
  }
}

/// Describes EpilogueTensor of device/tilewright/epilogue/epilogue_tensor.cuh.
template <class Sink>
void describe_tensor(Sink& sink, std::string_view label, const op::GemmView* arguments, bool is_transposed) {
  const auto tensor = [&]() -> const op::Tensor& { return arguments->tensor(label); };
  const auto stride = [&](bool along_m) {
    return along_m == is_transposed ? tensor().column_stride() : tensor().row_stride();
  };
  sink.begin(label_name(label));
  sink.field("address", [&] { return tensor().address; });
  sink.field("stride_m", [&] { return stride(true); });
  sink.field("stride_n", [&] { return stride(false); });
  sink.field("batch_stride", [&] { return tensor().batch_stride(); });
  sink.end(sizeof(std::int64_t));
}

template <class Sink>
void describe(Sink& sink, const op::Epilogue& epilogue, const op::GemmView* arguments, bool is_transposed) {
  const std::vector<std::string> scalars = epilogue.scalars();
  const std::vector<const op::EpilogueNode*> tensors = epilogue.tensors();
  const bool has_tensors = !tensors.empty() || !epilogue.outputs.empty();
  const int scalar_bytes = scalars.empty() ? 1 : bytes(epilogue.compute);
  const std::size_t alignment = has_tensors ? sizeof(std::int64_t) : static_cast<std::size_t>(scalar_bytes);
  sink.begin("epilogue", alignment);
  for (const std::string& label : scalars) {
    describe_scalar(sink, label_name(label), epilogue.compute, [&] { return arguments->scalar(label); });
  }
  for (const op::EpilogueNode* node : tensors) describe_tensor(sink, node->label, arguments, is_transposed);
  for (const op::EpilogueOutput& output : epilogue.outputs)
    describe_tensor(sink, output.label, arguments, is_transposed);
  if (scalars.empty() && !has_tensors) sink.empty();
  sink.end(alignment);
}

}  // namespace

void describe_epilogue(ParameterWriter& sink, const op::Epilogue& epilogue, const op::GemmView* arguments,
                       bool is_transposed) {
  describe(sink, epilogue, arguments, is_transposed);
}

void describe_epilogue(ParameterRecorder& sink, const op::Epilogue& epilogue, const op::GemmView* arguments,
                       bool is_transposed) {
  describe(sink, epilogue, arguments, is_transposed);
}

}  // namespace tilewright::plan
