// Tensor maps of a launch: from the plan's request to the device's opaque form.
#pragma once

#include "tilewright/plan/launch.hpp"
#include "tilewright/runtime/device.hpp"

namespace tilewright::engine {

/// Encodes every map that the launch requests and puts it among its parameters.
/// @throws InvalidArgument where a request breaks a rule of tensor maps.
void encode_tensor_maps(runtime::Device& device, plan::Launch& launch);

}  // namespace tilewright::engine
