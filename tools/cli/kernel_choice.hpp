// Chooses the kernel that the options of the command line select.
#pragma once

#include <string>

#include "tilewright/engine/engine.hpp"
#include "tools/cli/problem_options.hpp"

namespace tilewright::cli {

/// Options of an engine for the device that `options` names; all others come from the environment.
engine::Options engine_options(const KernelOptions& options);

/// The target to find kernels for: that of --target, or else the device's.
Target choose_target(const engine::Engine& engine, const KernelOptions& options);

struct ChosenKernel {
  registry::KernelPtr kernel;
  std::string origin;  // how it was chosen: "number 1 of 12, predicted 4.4 us" or "explicit design"
};

/// @throws InvalidArgument if no kernel can compute the problem, if the design is impossible (with the number that
/// failed), or if no kernel has the name (with the nearest names).
ChosenKernel choose_kernel(const engine::Engine& engine, const op::Problem& problem, const KernelOptions& options);

}  // namespace tilewright::cli
