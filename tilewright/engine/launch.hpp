// Launches a kernel on a stream: encodes its tensor maps and provides its workspace.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "tilewright/op/problem.hpp"
#include "tilewright/plan/launch.hpp"
#include "tilewright/registry/kernel.hpp"
#include "tilewright/runtime/device.hpp"

namespace tilewright::engine {

class Call;
class PackedLaunches;
class Workspaces;

/// The kernels of one source, as registry::Kernel::symbol_suffixes() lists them; most sources have one.
using LoadedKernels = std::vector<std::shared_ptr<runtime::LoadedKernel>>;

/// Options of one run.
struct RunOptions {
  runtime::StreamHandle stream = nullptr;
  /// The caller's workspace, to use instead of the engine's; 0: none. If the caller gives no kernel, the best one that
  /// needs no more is chosen. It must have at least Kernel::workspace_bytes()
  /// and be aligned to 256 bytes. It must be zeroed before first use and after a call that threw, and may be reused
  /// only by launches ordered after each other.
  runtime::DeviceAddress workspace = 0;
  std::size_t workspace_bytes = 0;
};

/// Encodes every tensor map that the launch requests and stores it in the launch parameters, except those whose tensor
/// is in the workspace. @throws InvalidArgument if a map violates a rule of check(TensorMap)
void encode_tensor_maps(runtime::Device& device, plan::Launch& launch);

/// Refuses operands that are not on the device.
Support check_place(const op::Problem& problem, const runtime::Device& device);

runtime::LaunchConfig launch_config(const plan::Launch& launch);

/// Enqueues a launch. @pre its tensor maps are encoded and its workspace, if it needs one, is set
void launch(runtime::LoadedKernel& loaded, runtime::LaunchConfig config, const plan::Launch& packed,
            const RunOptions& options);

/// Enqueues the launch with a workspace, if it needs one: the caller's or one of `workspaces`.
/// @throws InvalidArgument if the caller's workspace is too small or misaligned
void launch_with_workspace(runtime::LoadedKernel& loaded, Workspaces& workspaces, const plan::Launch& packed,
                           const RunOptions& options);

/// Packs the call's launch, or all its steps, encodes their tensor maps, and enqueues them.
void pack_and_launch(const registry::KernelPtr& kernel, const LoadedKernels& loaded, PackedLaunches& packed,
                     Workspaces& workspaces, const Call& call, const RunOptions& options);

}  // namespace tilewright::engine
