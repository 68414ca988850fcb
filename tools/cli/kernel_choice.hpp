// From what the command line says about kernels to one kernel.
#pragma once

#include <string>

#include "tilewright/engine/engine.hpp"
#include "tools/cli/problem_options.hpp"

namespace tilewright::cli {

/// An engine for the device that the options name; the rest is from the environment.
engine::Options engine_options(const KernelOptions& options);

/// The target to find kernels for: asked for, or the device's.
Target choose_target(const engine::Engine& engine, const KernelOptions& options);

struct ChosenKernel {
  registry::KernelPtr kernel;
  std::string origin;  // "1st of 12 ranked", "by name", "explicit design"
};

/// @throws InvalidArgument when no kernel can, when a design is impossible (with the number), or when no kernel has the
/// name: then with the nearest names.
ChosenKernel choose_kernel(const engine::Engine& engine, const op::Problem& problem, const KernelOptions& options);

}  // namespace tilewright::cli
