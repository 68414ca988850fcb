#include "tilewright/op/fused_products.hpp"

namespace tilewright::op {

std::vector<int> fused_products(const Epilogue& epilogue) {
  std::vector<int> fused(epilogue.nodes.size(), kNoProduct);
  if (epilogue.compute == DType::s32) return fused;
  std::vector<int> uses(epilogue.nodes.size(), 0);
  const auto use = [&](int node) { ++uses[static_cast<std::size_t>(node)]; };
  for (const EpilogueNode& node : epilogue.nodes) {
    for (int side = 0; side < arity(node.op); ++side) use(node.inputs[static_cast<std::size_t>(side)]);
  }
  for (const EpilogueOutput& output : epilogue.outputs) use(output.node);
  use(epilogue.node_of_d());
  for (std::size_t i = 0; i < fused.size(); ++i) {
    const EpilogueNode& node = epilogue.nodes[i];
    if (node.op != EpilogueOp::add && node.op != EpilogueOp::subtract) continue;
    for (const int input : {node.inputs[1], node.inputs[0]}) {
      const auto place = static_cast<std::size_t>(input);
      if (epilogue.nodes[place].op == EpilogueOp::multiply && uses[place] == 1) fused[i] = input;
    }
  }
  return fused;
}

}  // namespace tilewright::op
