// A kernel that computes a problem by another kernel, on copies of operands in its workspace.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tilewright/kernels/requirements.hpp"
#include "tilewright/registry/provider.hpp"

namespace tilewright::kernels {

/// The problem of the copies, and the launches that make them.
struct CopiedProblem {
  struct Copy {
    std::size_t kernel = 0;  // an index of Kernel::symbol_suffixes()
    plan::Launch launch;
    double estimate_us = 0;
  };
  op::Problem inner;
  std::vector<Copy> before, after;
  std::int64_t workspace_bytes = 0;  // of all copies

  double copies_us() const;
};

/// A kernel and its estimate in microseconds.
using EstimatedKernel = std::pair<double, registry::KernelPtr>;

/// The copies before the computation of the inner problem and those after it, in this order. Repacked is
/// op::RepackedConv or op::PermutedContraction.
template <class Repacked>
auto all_copies(const Repacked& repacked) {
  auto all = repacked.before;
  all.insert(all.end(), repacked.after.begin(), repacked.after.end());
  return all;
}

/// A derived class says which copies a problem needs, and with which functions they are made.
class CopyingKernel : public registry::Kernel {
 public:
  /// `copies` is the number of functions that copy. They are the functions 1, 2, ... of the source.
  CopyingKernel(registry::KernelMetadata metadata, registry::KernelPtr inner, std::size_t copies)
      : Kernel(std::move(metadata)), inner_(std::move(inner)), copies_(copies) {}

  bool depends_only_on_key() const override { return true; }
  bool writes_whole_outputs() const override { return true; }
  bool has_several_steps() const override { return true; }
  std::vector<std::string> symbol_suffixes() const override;

  static constexpr std::int64_t kBufferAlignment = 256;  // of the copies in the workspace, in bytes
  /// The bytes that the copies of one problem may have.
  static constexpr std::int64_t kMaxCopiedBytes =
      plan::kMaxWorkspaceBytes - static_cast<std::int64_t>(plan::kWorkspaceCounterBytes) - kBufferAlignment;
  /// The address of the workspace while kernels are chosen. No operand overlaps it.
  static constexpr std::uint64_t kAnyWorkspace = std::uint64_t{1} << 62;

 protected:
  /// The problem with copies at `workspace`, a multiple of 256 bytes. @pre do_supports(problem)
  virtual CopiedProblem copied(const op::Problem& problem, std::uint64_t workspace) const = 0;
  /// The text of function `copy`, from 1 on.
  virtual std::string copy_text(std::size_t copy, std::string_view symbol) const = 0;

  compile::Source do_source() const override;
  /// The inner kernel's, with the workspace of all steps.
  plan::Launch do_launch(const op::Problem& problem) const override;
  std::vector<registry::LaunchStep> do_launch_steps(const op::Problem& problem, std::uint64_t workspace) const override;
  double do_estimate_us(const op::Problem& problem) const override;

  const registry::Kernel& inner() const { return *inner_; }

 private:
  registry::KernelPtr inner_;
  std::size_t copies_;
};

/// A provider of such kernels. A derived class finds copies that may help, and gives each to kernels_of().
class CopyingProvider : public registry::Provider {
 public:
  std::string family() const override { return family_; }
  Support runs_on(const Target& target) const override { return check_target(target, kSm80); }
  /// Refuses: the copies depend on the tensors of the problem.
  Result<registry::KernelPtr> make(const op::Signature& signature, const plan::Design& design) const override;

 protected:
  /// `tensors` says what is copied, such as "operands of a contraction".
  CopyingProvider(std::string family, std::string tensors, std::vector<registry::ProviderPtr> inner_families)
      : family_(std::move(family)), tensors_(std::move(tensors)), inner_families_(std::move(inner_families)) {}

  /// At most `most` kernels that the inner families offer for the problem of the copies, the fastest first.
  std::vector<EstimatedKernel> fastest_kernels(const op::Problem& inner, const Target& target, std::size_t most) const;

  /// The metadata of a kernel that computes `signature` by `inner`. `way` names how tensors are copied. `functions`
  /// tells kernels apart whose functions that copy differ.
  registry::KernelMetadata metadata_with_copies(const registry::Kernel& inner, const op::GemmSignature& signature,
                                                std::string_view way, std::string_view functions) const;

  /// Appends the `most` fastest kernels.
  static void offer_fastest(std::vector<EstimatedKernel> kernels, std::size_t most, registry::Discovery& found);

 private:
  std::string family_, tensors_;
  std::vector<registry::ProviderPtr> inner_families_;
};

}  // namespace tilewright::kernels
