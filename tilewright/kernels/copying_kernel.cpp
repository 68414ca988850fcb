#include "tilewright/kernels/copying_kernel.hpp"

#include <algorithm>

#include "tilewright/base/rounding.hpp"
#include "tilewright/kernels/requirements.hpp"

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

std::vector<std::pair<double, registry::KernelPtr>> fastest_kernels(std::span<const registry::ProviderPtr> families,
                                                                    const op::Problem& inner, const Target& target) {
  registry::Discovery offered;
  for (const registry::ProviderPtr& family : families) {
    if (family->runs_on(target)) family->discover(inner, target, offered);
  }
  std::vector<std::pair<double, registry::KernelPtr>> ranked;
  for (registry::KernelPtr& kernel : offered.kernels) {
    const double estimate_us = kernel->estimate_us(inner);
    ranked.emplace_back(estimate_us, std::move(kernel));
  }
  std::ranges::stable_sort(ranked, {}, [](const auto& each) { return each.first; });
  return ranked;
}

Refusal refuse_to_make(const op::Signature& signature, std::string_view tensors) {
  if (const Result<const op::GemmSignature*> gemm = gemm_of(signature); !gemm) return gemm.refusal();
  return refuse("copies are chosen for the {}: its kernels are found by discovery only", tensors)
      .as(RefusalCode::operation);
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

}  // namespace tilewright::kernels
