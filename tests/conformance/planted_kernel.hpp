// A kernel with a planted fault. Its source contains the text of the device headers, so that they can be changed.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tilewright/emulator/checks.hpp"
#include "tilewright/registry/kernel.hpp"

namespace tilewright::conformance {

/// A replacement in the text of a device header.
struct Substitution {
  std::string_view header;  // "pipeline/tma_ring.cuh", below device/tilewright
  std::string_view from;    // must occur exactly once
  std::string_view to;
};

/// A copy of a kernel with another source: the original's text, in which every device header replaces its first
/// #include, with the given replacements. #line directives keep the headers' names and line numbers.
class PlantedKernel final : public registry::Kernel {
 public:
  /// `launches_cooperatively`: also if the original does not. The emulator checks global memory for races, and runs the
  /// CTAs in turn, in cooperative launches only.
  /// @throws InvalidArgument if a header, or a text in it, does not occur exactly once
  PlantedKernel(registry::KernelPtr original, std::span<const Substitution> planted,
                bool launches_cooperatively = false);

  /// The lines of device code at a location, innermost first, without leading blanks.
  std::vector<std::string> lines_at(const emulator::CodeLocation& location) const;

 protected:
  Support do_supports(const op::Problem& problem) const override { return original_->supports(problem); }
  compile::Source do_source() const override {
    compile::Source source;
    source.symbol = symbol_;
    source.text = text_;
    return source;
  }
  std::vector<std::string> symbol_suffixes() const override { return original_->symbol_suffixes(); }
  bool has_several_steps() const override { return original_->has_several_steps(); }
  std::vector<registry::LaunchStep> do_launch_steps(const op::Problem& problem,
                                                    std::uint64_t workspace) const override {
    return original_->launch_steps(problem, workspace);
  }
  plan::Launch do_launch(const op::Problem& problem) const override {
    plan::Launch launch = original_->launch(problem);
    launch.cooperative |= launches_cooperatively_;
    return launch;
  }
  double do_estimate_us(const op::Problem& problem) const override { return original_->estimate_us(problem); }

 private:
  registry::KernelPtr original_;
  std::span<const Substitution> planted_;
  bool launches_cooperatively_;
  std::string symbol_, text_;
};

}  // namespace tilewright::conformance
