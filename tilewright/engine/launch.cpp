#include "tilewright/engine/launch.hpp"

#include "tilewright/engine/host_operands.hpp"
#include "tilewright/engine/packed_launches.hpp"
#include "tilewright/engine/workspaces.hpp"

namespace tilewright::engine {
namespace {

Support check_workspace(std::size_t needed, const RunOptions& options) {
  if (options.workspace_bytes < needed) {
    return refuse("the kernel needs a workspace of {} bytes, got {}", needed, options.workspace_bytes)
        .as(RefusalCode::memory);
  }
  if (options.workspace % runtime::kAllocationAlignment != 0) {
    return refuse("the workspace must be aligned to {} bytes, got address {:#x}", runtime::kAllocationAlignment,
                  options.workspace)
        .as(RefusalCode::alignment);
  }
  return {};
}

/// The caller's workspace, which is checked, or one of `workspaces`.
Workspaces::Lease workspace_of(std::size_t bytes, Workspaces& workspaces, const RunOptions& options) {
  if (options.workspace == 0) return workspaces.lease(bytes, options.stream);
  check_workspace(bytes, options).or_throw();
  return Workspaces::Lease(options.workspace);
}

/// Sets the address of the workspace and encodes the tensor maps of tensors in it.
void set_workspace(runtime::Device& device, plan::Launch& launch, runtime::DeviceAddress address) {
  launch.set_workspace(address);
  for (const plan::TensorMapRequest& request : launch.tensor_maps()) {
    if (!request.is_in_workspace) continue;
    TensorMap map = request.map;
    map.address += address;
    launch.set_tensor_map(request, device.encode(map));
  }
}

}  // namespace

void encode_tensor_maps(runtime::Device& device, plan::Launch& launch) {
  for (const plan::TensorMapRequest& request : launch.tensor_maps()) {
    if (!request.is_in_workspace) launch.set_tensor_map(request, device.encode(request.map));
  }
}

Support check_place(const op::Problem& problem, const runtime::Device& device) {
  const op::MemoryDevice here = memory_device(device.properties());
  const op::MemoryDevice there = op::device(problem);
  if (there == here) return {};
  const bool is_host = there.kind == op::MemoryDevice::Kind::host;
  return refuse("the operands are on {}, but this engine's device is {}{}", op::to_string(there), op::to_string(here),
                is_host ? ": a prepared call copies nothing, Engine::run() does" : "")
      .as(RefusalCode::memory);
}

runtime::LaunchConfig launch_config(const plan::Launch& launch) {
  runtime::LaunchConfig config;
  config.grid = {launch.grid[0], launch.grid[1], launch.grid[2]};
  config.block = {launch.block[0], launch.block[1], launch.block[2]};
  config.cluster = {launch.cluster[0], launch.cluster[1], launch.cluster[2]};
  config.dynamic_smem_bytes = launch.dynamic_smem_bytes;
  config.cooperative = launch.cooperative;
  config.programmatic_stream_serialization = launch.waits_for_last_kernel;
  return config;
}

void launch(runtime::LoadedKernel& loaded, runtime::LaunchConfig config, const plan::Launch& packed,
            const RunOptions& options) {
  config.stream = options.stream;
  config.parameter_offsets = packed.parameter_offsets();
  config.parameter_sizes = packed.parameter_sizes();
  loaded.launch(config, packed.parameters());
}

void launch_with_workspace(runtime::LoadedKernel& loaded, Workspaces& workspaces, const plan::Launch& packed,
                           const RunOptions& options) {
  const plan::WorkspaceNeeds& needs = packed.workspace();
  if (needs.bytes == 0) return launch(loaded, launch_config(packed), packed, options);
  Workspaces::Lease workspace = workspace_of(needs.bytes, workspaces, options);
  plan::Launch with_workspace = packed;
  set_workspace(workspaces.device(), with_workspace, workspace.address());
  if (needs.zeroed_bytes != 0)
    workspaces.device().fill(needs.given(workspace.address()), 0, needs.zeroed_bytes, options.stream);
  launch(loaded, launch_config(with_workspace), with_workspace, options);
  workspace.launched();
}

void pack_and_launch(const registry::KernelPtr& kernel, const LoadedKernels& loaded, PackedLaunches& packed,
                     Workspaces& workspaces, const Call& call, const RunOptions& options) {
  if (kernel->has_several_steps()) {
    const op::Problem& problem = call.problem();
    Workspaces::Lease workspace = workspace_of(kernel->workspace_bytes(problem), workspaces, options);
    for (registry::LaunchStep& step : kernel->launch_steps(problem, workspace.address())) {
      step.launch.waits_for_last_kernel &= packed.overlaps();
      encode_tensor_maps(workspaces.device(), step.launch);
      if (step.launch.workspace_bytes() != 0) set_workspace(workspaces.device(), step.launch, workspace.address());
      launch(*loaded.at(step.kernel), launch_config(step.launch), step.launch, options);
    }
    workspace.launched();
    return;
  }
  launch_with_workspace(*loaded.front(), workspaces, *packed.get(kernel, call), options);
}

}  // namespace tilewright::engine
