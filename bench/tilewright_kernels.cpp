// Finds the kernels, compiles them in parallel and prepares their calls.
#include "tilewright_kernels.hpp"

#include <algorithm>
#include <memory>
#include <span>

#include "tilewright/engine/host_operands.hpp"

namespace tilewright::bench {
namespace {

Result<std::vector<registry::KernelPtr>> find_kernels(const engine::Engine& engine, const op::Gemm& arguments,
                                                      const std::string& wanted) {
  const auto has_name = [&](const registry::KernelMetadata& metadata) {
    return registry::kernel_name(metadata).find(wanted) != std::string::npos;
  };
  std::vector<registry::KernelPtr> kernels;
  for (const engine::RankedKernel& ranked : engine.find_kernels(arguments, has_name)) kernels.push_back(ranked.kernel);
  if (!kernels.empty()) return kernels;
  if (!wanted.empty()) return refuse("no kernel for this problem has \"{}\" in its name", wanted);
  std::string reasons;
  for (const registry::RefusedKernel& refused : engine.explain(arguments).refused)
    reasons += fmt::format("; {}: {}", refused.name, refused.reason());
  return refuse("no kernel of Tilewright can compute this problem{}", reasons);
}

}  // namespace

Result<OurKernels> tilewright_contenders(engine::Engine& engine, const Problem& problem, const OperandSets& sets,
                                         int most) {
  const op::MemoryDevice here = engine::memory_device(engine.device()->properties());
  std::vector<op::Gemm> calls;
  for (int set = 0; set < sets.count(); ++set) {
    Result<op::Gemm> call = gemm(problem, sets.addresses(set), here);
    if (!call) return call.refusal();
    calls.push_back(*std::move(call));
  }
  const Result<std::vector<registry::KernelPtr>> found = find_kernels(engine, calls.front(), problem.kernel);
  if (!found) return found.refusal();
  const auto limit = most == 0 ? found->size() : std::min(found->size(), static_cast<std::size_t>(most));
  const std::span kernels = std::span(*found).first(limit);
  engine.compile(kernels);

  OurKernels ours{.contenders = {}, .found = static_cast<int>(found->size())};
  for (const registry::KernelPtr& kernel : kernels) {
    auto prepared = std::make_shared<std::vector<engine::PreparedCall>>();
    for (const op::Gemm& call : calls) prepared->push_back(engine.prepare(call, kernel));
    const auto run = [prepared](int set, runtime::StreamHandle stream) {
      (*prepared)[static_cast<std::size_t>(set)].run(stream);
    };
    ours.contenders.push_back(
        {.name = "tilewright", .detail = kernel->name(), .run = run, .applies_epilogue = problem.epilogue != nullptr});
  }
  return ours;
}

}  // namespace tilewright::bench
