#include "tilewright/base/target_features.hpp"

#include <algorithm>
#include <string>

namespace tilewright {
namespace {

using enum TargetFeature;

constexpr Target family(int sm) { return {sm, FeatureSet::family_specific}; }
constexpr Target only(int sm) { return {sm, FeatureSet::architecture_specific}; }

// Source: PTX ISA 9.0, "Target ISA Notes" of each instruction. tests/unit/arch/ptxas_test.cpp compares every row with
// what ptxas accepts.
std::vector<TargetFeatureRow> build_target_features() {
  return {
      {cp_async, "cp.async", {{80}}},
      {stmatrix, "stmatrix", {{90}}},
      {griddepcontrol, "griddepcontrol", {{90}}},
      {clusters, "a cluster launch", {{90}}},
      {tma, "TMA", {{90}}},
      {wgmma, "wgmma", {only(90)}},
      {setmaxnreg, "setmaxnreg", {only(90), family(100), family(110), family(120)}},
      {tensormap_replace, "tensormap.replace", {only(90), family(100), family(110), family(120)}},
      {cluster_launch_control, "clusterlaunchcontrol", {{100}}},
      {tcgen05, "tcgen05", {family(100), family(110)}},
      {tcgen05_i8, "tcgen05.mma.kind::i8", {only(100), only(110)}},
      {block_scaled_mma, "block-scaled mma.sync", {family(120)}},
  };
}

const TargetFeatureRow& row(TargetFeature feature) {
  const TargetFeatureRow& found = target_features()[static_cast<std::size_t>(feature)];
  TILEWRIGHT_CHECK(found.feature == feature, "the row of {} is out of order", found.name);
  return found;
}

}  // namespace

const std::vector<TargetFeatureRow>& target_features() {
  static const std::vector<TargetFeatureRow> rows = build_target_features();
  return rows;
}

bool has_feature(const Target& target, TargetFeature feature) {
  return std::ranges::any_of(row(feature).required,
                             [&](const Target& required) { return target.has_features_of(required); });
}

Support check_feature(const Target& target, TargetFeature feature) {
  if (has_feature(target, feature)) return {};
  std::string required;
  for (const Target& each : row(feature).required) {
    if (!required.empty()) required += " or ";
    required += each.name();
  }
  return refuse("{} needs {}, the target is {}", row(feature).name, required, target.name())
      .as(RefusalCode::architecture);
}

}  // namespace tilewright
