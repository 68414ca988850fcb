// Encodes the tensor maps that a launch requests.
#pragma once

#include "tilewright/plan/launch.hpp"
#include "tilewright/runtime/device.hpp"

namespace tilewright::engine {

/// Encodes every tensor map that the launch requests and stores it in the launch parameters, except those whose tensor
/// is in the workspace. @throws InvalidArgument if a request violates a restriction of tensor maps
void encode_tensor_maps(runtime::Device& device, plan::Launch& launch);

/// Sets the address of the workspace and encodes the tensor maps of tensors in it.
void set_workspace(runtime::Device& device, plan::Launch& launch, runtime::DeviceAddress address);

}  // namespace tilewright::engine
