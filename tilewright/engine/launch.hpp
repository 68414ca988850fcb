// From a kernel's integers to a launch on a stream: tensor maps are encoded, a workspace is found.
#pragma once

#include <cstddef>

#include "tilewright/op/problem.hpp"
#include "tilewright/plan/launch.hpp"
#include "tilewright/registry/kernel.hpp"
#include "tilewright/runtime/device.hpp"

namespace tilewright::engine {

class Workspaces;

/// Where one run goes.
struct RunOptions {
  runtime::StreamHandle stream = nullptr;
  /// Device memory of the caller's to use in place of the engine's, of Kernel::workspace_bytes() at least and aligned
  /// to 256 bytes. Must be zeroed before its first use. May be reused only by launches ordered after each other.
  runtime::DeviceAddress workspace = 0;
  std::size_t workspace_bytes = 0;
};

/// Refuses operands that are not on the device.
Support check_place(const op::Problem& problem, const runtime::Device& device);

runtime::LaunchConfig launch_config(const plan::Launch& launch);

/// Enqueues a launch whose tensor maps are encoded. @pre it needs no workspace, or has it
void launch(runtime::LoadedKernel& loaded, runtime::LaunchConfig config, const plan::Launch& packed,
            const RunOptions& options);

/// Gives the launch the caller's workspace, or one of `workspaces`, and enqueues it.
/// @throws InvalidArgument for a caller's workspace that is too small or misaligned
void launch_with_workspace(runtime::LoadedKernel& loaded, Workspaces& workspaces, plan::Launch& packed,
                           const RunOptions& options);

/// Packs the problem's launch, encodes its tensor maps, and enqueues it.
void pack_and_launch(const registry::Kernel& kernel, runtime::LoadedKernel& loaded, Workspaces& workspaces,
                     const op::Problem& problem, const RunOptions& options);

}  // namespace tilewright::engine
