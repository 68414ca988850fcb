// Whether a kernel says how it computes.
#pragma once

#include "tilewright/registry/metadata.hpp"

namespace tilewright::registry {

/// The kernel's design, or null if its author stated none: then it is the default FlatDesign, whose tile and stages are
/// not those of the kernel.
const plan::Design* stated_design(const KernelMetadata& metadata);

}  // namespace tilewright::registry
