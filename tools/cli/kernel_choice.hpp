// Chooses the kernel that the options of the command line select.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "tilewright/engine/engine.hpp"
#include "tools/cli/problem_options.hpp"

namespace tilewright::cli {

/// Options of an engine for the device that `options` names; all others come from the environment.
engine::Options engine_options(const KernelOptions& options);

/// The target to find kernels for: that of --target, or else the device's.
Target choose_target(const engine::Engine& engine, const KernelOptions& options);

/// The place of a kernel among those that can compute a problem.
struct Rank {
  std::size_t number = 1;     // 1: the best
  std::size_t of = 1;         // how many kernels there are
  double predicted_us = 0.0;  // infinite if the kernel has no estimate
};

struct ChosenKernel {
  registry::KernelPtr kernel;
  std::optional<Rank> rank = {};  // nothing for an explicit design
};

/// How the kernel was chosen: "number 1 of 12, predicted 4.4 us", "number 1 of 1, without a prediction" or
/// "explicit design".
std::string origin(const ChosenKernel& chosen);

/// @throws InvalidArgument if no kernel can compute the problem, if the design is impossible (with the number that
/// failed), or if no kernel has the name (with the nearest names).
ChosenKernel choose_kernel(const engine::Engine& engine, const op::Problem& problem, const KernelOptions& options);

}  // namespace tilewright::cli
