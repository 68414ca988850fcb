// The engines of this process: one a device, made when first used.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <string>

#include "python/bindings/arguments.hpp"
#include "tilewright/engine/engine.hpp"

namespace tilewright::python {

/// Where kernels are registered, for every engine of this process.
const std::shared_ptr<registry::Registry>& shared_registry();

/// The engine for arrays that lie there: of that GPU, or where they are on the host, or nowhere, the one that
/// TILEWRIGHT_DEVICE names. The caller holds the GIL, or not.
std::shared_ptr<engine::Engine> engine_for(const op::MemoryDevice& memory);

/// Of an array on the device, None for none.
void read_workspace(nanobind::handle workspace, engine::RunOptions& options);

/// A target's name, "sm_90a"; the compute capability of a GPU, 90 (any from 0 to 999); or None.
std::optional<Target> read_target(nanobind::handle target);

void bind_engine(nanobind::module_& module);

}  // namespace tilewright::python
