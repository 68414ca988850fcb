#include "tilewright/kernels/copying_kernel.hpp"

#include <algorithm>

#include "tilewright/base/hash.hpp"
#include "tilewright/base/rounding.hpp"

namespace tilewright::kernels {
namespace {

std::string suffix(std::size_t copy) { return copy == 0 ? "" : fmt::format("_copy{}", copy); }

/// The offset of the copies in the workspace: behind the counters, which other kernels need as they left them, and
/// behind the workspace of the inner kernel.
std::size_t copies_begin(const plan::Launch& inner) {
  constexpr std::size_t kAlignment = CopyingKernel::kBufferAlignment;
  const std::size_t used = std::max(inner.workspace_bytes(), plan::kWorkspaceCounterBytes);
  return round_up(used, kAlignment);
}

}  // namespace

double CopiedProblem::copies_us() const {
  double total_us = 0;
  for (const std::vector<Copy>* const copies : {&before, &after}) {
    for (const Copy& copy : *copies) total_us += copy.estimate_us;
  }
  return total_us;
}

std::vector<std::string> CopyingKernel::symbol_suffixes() const {
  std::vector<std::string> suffixes;
  for (std::size_t copy = 0; copy <= copies_; ++copy) suffixes.push_back(suffix(copy));
  return suffixes;
}

compile::Source CopyingKernel::do_source() const {
  const compile::Source inner = inner_->source();
  compile::Source source;
  source.language = inner.language;
  source.headers = inner.headers;
  source.max_registers = inner.max_registers;
  source.symbol = inner.symbol;
  source.text = inner.text;
  for (std::size_t copy = 1; copy <= copies_; ++copy)
    source.text += "\n" + copy_text(copy, inner.symbol + suffix(copy));
  return source;
}

plan::Launch CopyingKernel::do_launch(const op::Problem& problem) const {
  const CopiedProblem anywhere = copied(problem, kAnyWorkspace);
  plan::Launch launch = inner_->launch(anywhere.inner);
  launch.enlarge_workspace(copies_begin(launch) + static_cast<std::size_t>(anywhere.workspace_bytes));
  return launch;
}

std::vector<registry::LaunchStep> CopyingKernel::do_launch_steps(const op::Problem& problem,
                                                                 std::uint64_t workspace) const {
  const std::size_t begin = copies_begin(inner_->launch(copied(problem, kAnyWorkspace).inner));
  const CopiedProblem all = copied(problem, workspace + begin);
  std::vector<registry::LaunchStep> steps;
  for (const CopiedProblem::Copy& copy : all.before) steps.push_back({copy.kernel, copy.launch});
  steps.push_back({0, inner_->launch(all.inner)});
  for (const CopiedProblem::Copy& copy : all.after) steps.push_back({copy.kernel, copy.launch});
  return steps;
}

double CopyingKernel::do_estimate_us(const op::Problem& problem) const {
  const CopiedProblem all = copied(problem, kAnyWorkspace);
  return inner_->estimate_us(all.inner) + all.copies_us();
}

Result<registry::KernelPtr> CopyingProvider::make(const op::Signature& signature,
                                                  const plan::Design& /*design*/) const {
  if (const Result<const op::GemmSignature*> gemm = gemm_of(signature); !gemm) return gemm.refusal();
  return refuse("copies are chosen for the {}: its kernels are found by discovery only", tensors_)
      .as(RefusalCode::operation);
}

std::vector<EstimatedKernel> CopyingProvider::fastest_kernels(const op::Problem& inner, const Target& target,
                                                              std::size_t most) const {
  registry::Discovery offered;
  for (const registry::ProviderPtr& family : inner_families_) {
    if (family->runs_on(target)) family->discover(inner, target, offered);
  }
  std::vector<EstimatedKernel> ranked;
  for (registry::KernelPtr& kernel : offered.kernels) {
    const double estimate_us = kernel->estimate_us(inner);
    ranked.emplace_back(estimate_us, std::move(kernel));
  }
  std::ranges::stable_sort(ranked, {}, &EstimatedKernel::first);
  if (ranked.size() > most) ranked.resize(most);
  return ranked;
}

registry::KernelMetadata CopyingProvider::metadata_with_copies(const registry::Kernel& inner,
                                                               const op::GemmSignature& signature, std::string_view way,
                                                               std::string_view functions) const {
  const registry::KernelMetadata& inner_metadata = inner.metadata();
  registry::KernelMetadata metadata{family_, signature,
                                    plan::flatten(inner_metadata.design, inner_metadata.signature.gemm())};
  metadata.promises = {.deterministic = inner_metadata.promises.deterministic, .batch_invariant = false};
  const std::string whole = fmt::format("{}{}", op::to_string(metadata.signature), functions);
  metadata.name = fmt::format("{}_{}_{}", way, inner.name(), sha256(whole).hex().substr(0, 8));
  return metadata;
}

void CopyingProvider::offer_fastest(std::vector<EstimatedKernel> kernels, std::size_t most,
                                    registry::Discovery& found) {
  std::ranges::stable_sort(kernels, {}, &EstimatedKernel::first);
  if (kernels.size() > most) kernels.resize(most);
  for (auto& [total_us, kernel] : kernels) found.kernels.push_back(std::move(kernel));
}

}  // namespace tilewright::kernels
