// The engines of this process: one for each device, made at its first use.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <optional>
#include <string>

#include "python/bindings/arguments.hpp"
#include "tilewright/engine/engine.hpp"

namespace tilewright::python {

/// The registry that all engines of this process use.
const std::shared_ptr<registry::Registry>& shared_registry();

/// The engine of the GPU that holds the arrays; for host arrays and shapes without memory, the engine of the device
/// that TILEWRIGHT_DEVICE names. May be called with or without the GIL.
std::shared_ptr<engine::Engine> engine_for(const op::MemoryDevice& memory);

/// The arguments `deterministic` and `batch_invariant`. None leaves the promise to the engine's options.
struct Required {
  std::optional<bool> deterministic, batch_invariant;

  registry::Promises of(const engine::Engine& engine) const;
};

/// Computes the problem with the best kernel, on the `stream` that the caller gave, which may be None. @pre the GIL is
/// held
void run(const OperationArguments& arguments, nanobind::handle stream, const Required& required);

/// Sets the workspace of `options` to an array in GPU memory; None leaves them unchanged.
/// @throws InvalidArgument if the array is not on a GPU or is read-only
void read_workspace(nanobind::handle workspace, engine::RunOptions& options);

/// Reads a target's name ("sm_90a"), the compute capability of a GPU (90; any number from 0 to 999), or None, which is
/// nullopt. @throws InvalidArgument
std::optional<Target> read_target(nanobind::handle target);

void bind_engine(nanobind::module_& module);

}  // namespace tilewright::python
