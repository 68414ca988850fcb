#include "separate_epilogue.hpp"

#include <memory>

#include "elementwise_pass.hpp"
#include "tilewright/engine/host_operands.hpp"

namespace tilewright::bench {

Result<std::vector<Contender>> with_separate_epilogue(engine::Engine& engine, const Problem& problem,
                                                      const OperandSets& sets, std::vector<Contender> products) {
  const op::MemoryDevice here = engine::memory_device(engine.device()->properties());
  std::vector<op::Gemm> calls;
  std::vector<op::Tensor> stored;
  for (int set = 0; set < sets.count(); ++set) {
    Result<op::Gemm> call = gemm(problem, sets.addresses(set), here);
    if (!call) return call.refusal();
    calls.push_back(*std::move(call));
    stored.push_back(tensor(sets.addresses(set).product, stored_product(problem), here));
  }
  Result<ElementwisePass> made = ElementwisePass::make(engine, calls, stored);
  if (!made) return made.refusal();
  const auto pass = std::make_shared<const ElementwisePass>(*std::move(made));
  for (Contender& contender : products) {
    contender.run = [product = contender.run, pass](int set, runtime::StreamHandle stream) {
      product(set, stream);
      pass->run(set, stream);
    };
    contender.detail += ", then the elementwise pass";
    contender.applies_epilogue = true;
    contender.rounding = store_error(stored_product(problem).dtype);
  }
  return products;
}

}  // namespace tilewright::bench
