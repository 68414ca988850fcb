#include "tilewright/plan/epilogue_cost.hpp"

namespace tilewright::plan {

double function_instructions(const op::Epilogue& epilogue) {
  // These counts approximate the code that CUDA 13 generates for sm_90. nvdisasm shows 3 instructions for rsqrt, 4 for
  // logistic, 7 for rcp, 9 for exp, 16 for tanh, 25 for log, 27 for erf, 30 for log1p and 93 for pow; a division or a
  // square root has 9 and a branch for subnormals. Instructions of the special function unit take eight times as long
  // as others.
  double sum = 0;
  for (const op::EpilogueNode& node : epilogue.nodes) {
    using enum op::EpilogueOp;
    switch (node.op) {
      case reciprocal:
      case reciprocal_square_root:
        sum += 4;
        break;
      case exp:
      case square_root:
        sum += 8;
        break;
      case logistic:
        sum += 12;
        break;
      case divide:
      case log:
        sum += 16;
        break;
      case tanh:
      case log1p:
        sum += 24;
        break;
      case erf:
        sum += 32;
        break;
      case power:
        sum += 64;
        break;
      default:
        break;
    }
  }
  return sum;
}

int beside_bytes(const op::GemmSignature& operands) {
  int sum = operands.has_c && operands.epilogue.reads_source() ? bytes(operands.c.element) : 0;
  std::size_t index = 0;
  for (const op::EpilogueNode* source : operands.epilogue.tensors()) {
    const int element_bytes = bytes(operands.tensors[index++].element);
    if (source->broadcast == op::kFull) sum += element_bytes;
  }
  for (const op::EpilogueOutput& output : operands.epilogue.outputs) {
    const int element_bytes = bytes(operands.tensors[index++].element);
    if (output.broadcast == op::kFull) sum += element_bytes;
  }
  return sum;
}

int slow_source_bytes(const op::GemmSignature& operands) {
  constexpr int kVectorBytes = 16;
  if (!operands.has_c || !operands.epilogue.reads_source()) return 0;
  const op::TensorSignature& c = operands.c;
  const int element_bytes = bytes(c.element);
  return c.alignment * element_bytes >= kVectorBytes && c.layout == operands.d.layout ? 0 : element_bytes;
}

}  // namespace tilewright::plan
