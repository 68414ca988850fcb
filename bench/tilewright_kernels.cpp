// Finds, compiles together, prepares.
#include "tilewright_kernels.hpp"

#include <memory>

namespace tilewright::bench {

std::vector<Contender> tilewright_contenders(engine::Engine& engine, const Problem& problem, const OperandSets& sets,
                                             int most) {
  const auto wanted = [&](const registry::KernelMetadata& metadata) {
    return registry::kernel_name(metadata).find(problem.kernel) != std::string::npos;
  };
  std::vector<registry::KernelPtr> kernels;
  for (const engine::RankedKernel& ranked : engine.find_kernels(sets.gemm(0), wanted)) {
    if (most != 0 && static_cast<int>(kernels.size()) == most) break;
    kernels.push_back(ranked.kernel);
  }
  engine.compile(kernels);

  std::vector<Contender> contenders;
  for (const registry::KernelPtr& kernel : kernels) {
    auto prepared = std::make_shared<std::vector<engine::PreparedGemm>>();
    for (int set = 0; set < sets.count(); ++set) prepared->push_back(engine.prepare(sets.gemm(set), kernel));
    contenders.push_back({"tilewright", kernel->name(), [prepared](int set, runtime::StreamHandle stream) {
                            (*prepared)[static_cast<std::size_t>(set)].run(stream);
                          }});
  }
  return contenders;
}

}  // namespace tilewright::bench
