// A kernel with a fault put into it: the device headers are written into its source, so that they can be changed.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tilewright/emulator/checks.hpp"
#include "tilewright/registry/kernel.hpp"

namespace tilewright::conformance {

/// A device header's text as it is, and as it becomes.
struct Substitution {
  std::string_view header;  // "pipeline/tma_ring.cuh", below device/tilewright
  std::string_view from;    // occurs once
  std::string_view to;
};

/// Runs as the kernel that it is made from, from a source of its own: that kernel's text with every device header in
/// the place of its first #include, changed as told. Lines keep their headers' names and numbers.
class PlantedKernel final : public registry::Kernel {
 public:
  /// @throws InvalidArgument where a header, or a text in it, does not occur exactly once
  PlantedKernel(registry::KernelPtr original, std::span<const Substitution> planted);

  /// The lines of device code, without leading blanks, that a place is at, innermost first.
  std::vector<std::string> lines_at(const emulator::CodeLocation& location) const;

 protected:
  Support do_supports(const op::Problem& problem) const override { return original_->supports(problem); }
  compile::Source do_source() const override {
    compile::Source source;
    source.text = text_;
    return source;
  }
  plan::Launch do_launch(const op::Problem& problem) const override { return original_->launch(problem); }
  double do_estimate_us(const op::Problem& problem) const override { return original_->estimate_us(problem); }

 private:
  registry::KernelPtr original_;
  std::span<const Substitution> planted_;
  std::string text_;
};

}  // namespace tilewright::conformance
