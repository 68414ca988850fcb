// The targets that have an instruction group: one row each, so that no code compares a target with a number.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "tilewright/base/support.hpp"
#include "tilewright/base/target.hpp"

namespace tilewright {

enum class TargetFeature : std::uint8_t {
  cp_async,                // cp.async: asynchronous copies from global to shared memory
  stmatrix,                // stmatrix
  griddepcontrol,          // griddepcontrol.wait and .launch_dependents: programmatic dependent launch
  clusters,                // .reqnctapercluster, barrier.cluster, mapa
  tma,                     // cp.async.bulk.tensor, with tensor maps
  wgmma,                   // wgmma.mma_async
  setmaxnreg,              // setmaxnreg.inc and .dec
  tensormap_replace,       // tensormap.replace: changes a tensor map on the device
  cluster_launch_control,  // clusterlaunchcontrol.try_cancel and .query_cancel
  tcgen05,                 // tcgen05.alloc, .ld, .st, .cp, .mma, .commit
  tcgen05_i8,              // tcgen05.mma.kind::i8
  block_scaled_mma,        // mma.sync.kind::mxf8f6f4 and its like, with .block_scale
};

struct TargetFeatureRow {
  TargetFeature feature;
  std::string_view name;  // in messages
  /// The PTX ISA's "Target ISA Notes" of the instructions: a target has the feature if has_features_of() holds for at
  /// least one of these.
  std::vector<Target> required;
};

/// One row for each TargetFeature, in the order of the enumeration.
const std::vector<TargetFeatureRow>& target_features();

bool has_feature(const Target& target, TargetFeature feature);

/// "wgmma needs sm_90a, the target is sm_80" (RefusalCode::architecture).
Support check_feature(const Target& target, TargetFeature feature);

}  // namespace tilewright
