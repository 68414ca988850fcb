// Finds the kernels, compiles them in parallel and prepares their calls.
#include "tilewright_kernels.hpp"

#include <algorithm>
#include <memory>
#include <span>

#include "tilewright/engine/host_operands.hpp"

namespace tilewright::bench {
namespace {

/// Appends the kernels of the designs that can compute the problem and are not in `kernels` yet.
void add_designs(const engine::Engine& engine, const op::Gemm& call, std::span<const plan::FlatDesign> designs,
                 std::vector<engine::RankedKernel>& kernels) {
  for (const plan::FlatDesign& design : designs) {
    registry::KernelPtr kernel;
    try {
      kernel = engine.make_kernel(op::describe(op::Problem(call)), design);
    } catch (const InvalidArgument&) {
      continue;  // a list of designs is for problems of many types and shapes
    }
    const bool is_known = std::ranges::any_of(
        kernels, [&](const engine::RankedKernel& known) { return known.kernel->name() == kernel->name(); });
    if (!is_known && kernel->supports(call)) kernels.push_back({kernel, kernel->estimate_us(call)});
  }
}

/// Compiles the kernels in parallel. If some of them fail, compiles each alone, to find out which.
std::vector<std::string> compile_errors(engine::Engine& engine, std::span<const engine::RankedKernel> ranked) {
  std::vector<registry::KernelPtr> kernels;
  for (const engine::RankedKernel& one : ranked) kernels.push_back(one.kernel);
  std::vector<std::string> errors(kernels.size());
  try {
    engine.compile(kernels);
    return errors;
  } catch (const CompileError&) {
  }
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    try {
      engine.compile(kernels[i]);
    } catch (const CompileError& error) {
      if (i == 0) throw;
      errors[i] = error.what();
    }
  }
  return errors;
}

}  // namespace

Result<FoundKernels> find_kernels(const engine::Engine& engine, const op::Gemm& call, const std::string& wanted,
                                  const KernelChoice& choice) {
  const auto has_name = [&](const registry::KernelMetadata& metadata) {
    return registry::kernel_name(metadata).find(wanted) != std::string::npos;
  };
  FoundKernels found;
  found.kernels = engine.find_kernels(call, has_name);
  found.found = static_cast<int>(found.kernels.size());
  if (!found.kernels.empty()) {
    if (choice.most != 0 && choice.most < found.found) found.kernels.resize(static_cast<std::size_t>(choice.most));
    add_designs(engine, call, choice.designs, found.kernels);
    return found;
  }
  if (!wanted.empty()) return refuse("no kernel for this problem has \"{}\" in its name", wanted);
  std::string reasons;
  for (const registry::RefusedKernel& refused : engine.explain(call).refused)
    reasons += fmt::format("; {}: {}", refused.name, refused.reason());
  return refuse("no kernel of Tilewright can compute this problem{}", reasons);
}

Addresses placeholder_addresses() {
  constexpr std::uint64_t kApart = std::uint64_t{1} << 40;
  Addresses addresses{.a = kApart, .b = 2 * kApart, .d = 3 * kApart, .plain = 4 * kApart, .c = 5 * kApart};
  addresses.product = 6 * kApart;
  for (std::size_t i = 0; i < addresses.tensors.size(); ++i) addresses.tensors[i] = (7 + i) * kApart;
  return addresses;
}

Result<OurKernels> tilewright_contenders(engine::Engine& engine, const Problem& problem, const OperandSets& sets,
                                         const KernelChoice& choice) {
  const op::MemoryDevice here = engine::memory_device(engine.device()->properties());
  std::vector<op::Gemm> calls;
  for (int set = 0; set < sets.count(); ++set) {
    Result<op::Gemm> call = gemm(problem, sets.addresses(set), here);
    if (!call) return call.refusal();
    calls.push_back(*std::move(call));
  }
  const Result<FoundKernels> found = find_kernels(engine, calls.front(), problem.kernel, choice);
  if (!found) return found.refusal();
  const std::vector<std::string> errors = compile_errors(engine, found->kernels);

  OurKernels ours{.contenders = {}, .kernels = {}, .failed = {}, .found = found->found};
  for (std::size_t i = 0; i < found->kernels.size(); ++i) {
    const registry::KernelPtr& kernel = found->kernels[i].kernel;
    if (!errors[i].empty()) {
      ours.failed.push_back({kernel->name(), errors[i]});
      continue;
    }
    auto prepared = std::make_shared<std::vector<engine::PreparedCall>>();
    for (const op::Gemm& call : calls) prepared->push_back(engine.prepare(call, kernel));
    const auto run = [prepared](int set, runtime::StreamHandle stream) {
      (*prepared)[static_cast<std::size_t>(set)].run(stream);
    };
    ours.contenders.push_back(
        {.name = "tilewright", .detail = kernel->name(), .run = run, .applies_epilogue = problem.epilogue != nullptr});
    ours.kernels.push_back(found->kernels[i]);
  }
  return ours;
}

}  // namespace tilewright::bench
