// Tensor maps of a launch: from the plan's request to the device's opaque form.
#pragma once

#include "tilewright/plan/launch.hpp"
#include "tilewright/runtime/device.hpp"

namespace tilewright::engine {

/// Encodes every map that the launch requests and puts it among its parameters, but those in its workspace.
/// @throws InvalidArgument where a request breaks a rule of tensor maps.
void encode_tensor_maps(runtime::Device& device, plan::Launch& launch);

/// The address of the workspace, and the maps in it.
void set_workspace(runtime::Device& device, plan::Launch& launch, runtime::DeviceAddress address);

}  // namespace tilewright::engine
