#include "tilewright/registry/stated_design.hpp"

namespace tilewright::registry {

const plan::Design* stated_design(const KernelMetadata& metadata) {
  plan::FlatDesign nothing;
  nothing.target = plan::tiling(metadata.design).target;
  return metadata.design == plan::Design(nothing) ? nullptr : &metadata.design;
}

}  // namespace tilewright::registry
