// A kernel that computes a problem by another kernel, on copies of operands in its workspace.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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

/// The kernels that the families offer for the problem of the copies, and their estimates in microseconds, the fastest
/// first.
std::vector<std::pair<double, registry::KernelPtr>> fastest_kernels(std::span<const registry::ProviderPtr> families,
                                                                    const op::Problem& inner, const Target& target);

/// Says why a provider of such kernels makes none from a design: the copies depend on the problem's `tensors`, such as
/// "operands of a contraction".
Refusal refuse_to_make(const op::Signature& signature, std::string_view tensors);

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

}  // namespace tilewright::kernels
