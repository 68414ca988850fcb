// The table of instructions and targets. tests/differential compares it with what ptxas accepts.
#include "tilewright/emulator/instruction_targets.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "tilewright/base/target_features.hpp"
#include "tilewright/base/text.hpp"

namespace tilewright::emulator {
namespace {

/// An instruction needs the target if it has the opcode and all of the modifiers, each as often as it is listed.
struct TargetRule {
  std::string_view opcode;
  std::string_view modifiers;  // separated by spaces
  int sm = 0;
};

constexpr TargetRule kRules[] = {
    // asynchronous copies and barriers
    {"cp", "async", 80},
    {"cp", "async bulk", 90},
    {"cp", "reduce", 90},
    {"mbarrier", "", 80},
    {"mbarrier", "try_wait", 90},
    {"mbarrier", "expect_tx", 90},
    {"mbarrier", "complete_tx", 90},
    {"fence", "proxy", 90},
    {"fence", "mbarrier_init", 90},
    {"fence", "cluster", 90},
    {"barrier", "cluster", 90},
    {"tensormap", "cp_fenceproxy", 90},
    {"griddepcontrol", "", 90},
    {"elect", "", 90},
    {"mapa", "", 90},
    {"getctarank", "", 90},
    {"st", "async", 90},
    {"red", "async", 90},
    {"multimem", "", 90},
    // caches
    {"createpolicy", "", 80},
    {"applypriority", "", 80},
    {"discard", "", 80},
    {"ld", "L2::cache_hint", 80},
    {"st", "L2::cache_hint", 80},
    {"ld", "L2::256B", 80},
    // arithmetic
    {"redux", "", 80},
    {"add", "u16x2", 90},
    {"add", "s16x2", 90},
    {"min", "u16x2", 90},
    {"min", "s16x2", 90},
    {"max", "u16x2", 90},
    {"max", "s16x2", 90},
    {"min", "relu", 90},
    {"max", "relu", 90},
    {"min", "NaN", 80},
    {"max", "NaN", 80},
    {"min", "xorsign", 86},
    {"max", "xorsign", 86},
    {"fma", "relu", 80},
    {"fma", "oob", 90},
    {"min", "f16", 80},
    {"min", "f16x2", 80},
    {"max", "f16", 80},
    {"max", "f16x2", 80},
    {"fma", "bf16", 80},
    {"fma", "bf16x2", 80},
    {"min", "bf16", 80},
    {"min", "bf16x2", 80},
    {"max", "bf16", 80},
    {"max", "bf16x2", 80},
    {"abs", "bf16", 80},
    {"abs", "bf16x2", 80},
    {"neg", "bf16", 80},
    {"neg", "bf16x2", 80},
    {"add", "bf16", 90},
    {"add", "bf16x2", 90},
    {"sub", "bf16", 90},
    {"sub", "bf16x2", 90},
    {"mul", "bf16", 90},
    {"mul", "bf16x2", 90},
    {"ex2", "bf16", 90},
    {"ex2", "bf16x2", 90},
    {"tanh", "bf16", 90},
    {"tanh", "bf16x2", 90},
    {"setp", "bf16", 90},
    {"setp", "bf16x2", 90},
    {"set", "bf16", 90},
    {"set", "bf16x2", 90},
    {"atom", "bf16", 90},
    {"atom", "bf16x2", 90},
    {"red", "bf16", 90},
    {"red", "bf16x2", 90},
    {"atom", "b128", 90},
    {"atom", "v2", 90},
    {"atom", "v4", 90},
    {"atom", "v8", 90},
    {"red", "v2", 90},
    {"red", "v4", 90},
    {"red", "v8", 90},
    // conversions
    {"cvt", "relu", 80},
    {"cvt", "f16x2 f32", 80},
    {"cvt", "bf16x2 f32", 80},
    {"cvt", "tf32", 80},
    {"cvt", "tf32 rn", 90},
    {"cvt", "tf32 rz", 90},
    {"cvt", "bf16", 80},
    {"cvt", "bf16 ftz", 90},
    {"cvt", "bf16 bf16", 90},
    {"cvt", "bf16 f16", 90},
    {"cvt", "bf16 f64", 90},
    {"cvt", "bf16 u8", 90},
    {"cvt", "bf16 s8", 90},
    {"cvt", "bf16 u16", 90},
    {"cvt", "bf16 s16", 90},
    {"cvt", "bf16 u32", 90},
    {"cvt", "bf16 s32", 90},
    {"cvt", "bf16 u64", 90},
    {"cvt", "bf16 s64", 90},
    {"cvt", "e4m3x2", 89},
    {"cvt", "e5m2x2", 89},
    // matrices
    {"stmatrix", "", 90},
    {"wmma", "bf16", 80},
    {"wmma", "tf32", 80},
    {"wmma", "f64", 80},
};

/// Instructions that later targets do not have.
struct FeatureRule {
  std::string_view opcode;
  std::string_view modifiers;
  TargetFeature feature;
};

constexpr FeatureRule kFeatureRules[] = {
    {"wgmma", "", TargetFeature::wgmma},
    {"setmaxnreg", "", TargetFeature::setmaxnreg},
    {"tensormap", "replace", TargetFeature::tensormap_replace},
    {"clusterlaunchcontrol", "", TargetFeature::cluster_launch_control},
    {"tcgen05", "", TargetFeature::tcgen05},
};

constexpr std::array<std::string_view, 11> kEmulatedTargets{"sm_75", "sm_80",  "sm_86",  "sm_87",   "sm_88",  "sm_89",
                                                            "sm_90", "sm_90a", "sm_100", "sm_100f", "sm_100a"};

bool has_modifiers(std::vector<std::string> modifiers, std::string_view wanted) {
  if (wanted.empty()) return true;
  return std::ranges::all_of(split(std::string(wanted), ' '), [&](const std::string& each) {
    const auto found = std::ranges::find(modifiers, each);
    if (found == modifiers.end()) return false;
    modifiers.erase(found);
    return true;
  });
}

/// ".cluster" as a scope, and addresses in the shared memory of other CTAs.
bool uses_clusters(const std::vector<std::string>& modifiers) {
  return std::ranges::any_of(modifiers,
                             [](const std::string& each) { return each == "shared::cluster" || each == "cluster"; });
}

}  // namespace

Support check_instruction(std::string_view opcode, const Target& target) {
  std::vector<std::string> parts = split(std::string(opcode), '.');
  const std::string name = parts.front();
  parts.erase(parts.begin());
  for (const FeatureRule& rule : kFeatureRules) {
    if (rule.opcode != name || !has_modifiers(parts, rule.modifiers)) continue;
    if (const Support support = check_feature(target, rule.feature); !support) return support;
  }
  int least = uses_clusters(parts) ? 90 : 0;
  for (const TargetRule& rule : kRules) {
    if (rule.opcode == name && rule.sm > least && has_modifiers(parts, rule.modifiers)) least = rule.sm;
  }
  if (target.sm >= least) return {};
  return refuse("{} needs sm_{}, the target is {}", printable(opcode, 80), least, target.name())
      .as(RefusalCode::architecture);
}

std::string emulated_devices() {
  std::string devices;
  for (const std::string_view name : kEmulatedTargets)
    devices += fmt::format("{}emulator:{}", devices.empty() ? "" : ", ", name);
  return devices;
}

Result<Target> parse_emulated_target(std::string_view text) {
  if (text == "sm_75" || text == "75") return Target{75};
  constexpr int kNewest = 100;
  Result<Target> target = parse_target(text);
  if (target && target->sm <= kNewest) return target;
  return refuse("unknown target '{}': the emulator has {}", printable(text), fmt::join(kEmulatedTargets, ", "));
}

}  // namespace tilewright::emulator
