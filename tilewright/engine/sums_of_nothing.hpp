// The outputs that a problem whose D has no elements stores nevertheless.
#pragma once

#include "tilewright/op/problem.hpp"
#include "tilewright/runtime/device.hpp"

namespace tilewright::engine {

/// Stores the sums over no elements, which are 0, on `stream` unless they are in host memory. No other byte is written.
/// Does nothing for shapes without memory. @pre op::validate(problem), op::is_empty(problem)
/// @throws InvalidArgument if there are sums in memory of another device
void store_sums_of_nothing(const op::Problem& problem, runtime::Device& device, runtime::StreamHandle stream);

}  // namespace tilewright::engine
