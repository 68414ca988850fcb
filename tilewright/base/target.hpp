// A GPU target as compilers name it (sm_80, sm_90a, sm_100f), and which code it can run.
//
// Source of the rules: CUDA C++ Programming Guide, "Compute Capabilities", sections "Feature Set Compiler Targets" and
// "Feature Availability"; PTX ISA, directive .target.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "tilewright/base/support.hpp"

namespace tilewright {

/// The feature set that code may use on an architecture. Each set contains the ones before it.
enum class FeatureSet : std::uint8_t {
  baseline,               // sm_100: every later architecture has these features too
  family_specific,        // sm_100f: later architectures of the same major version have them too
  architecture_specific,  // sm_100a: only this architecture is sure to have them
};

struct Target {
  int sm = 80;  // 10 * major + minor
  FeatureSet features = FeatureSet::baseline;

  auto operator<=>(const Target&) const = default;

  int major() const { return sm / 10; }
  /// "sm_90a"
  std::string name() const;
  /// "compute_90a"
  std::string virtual_name() const;

  /// Whether every instruction of `other` exists here: what the PTX ISA calls "`other` or higher" (baseline), "`other`
  /// or higher in the same family" (f), and `other` alone (a).
  bool has_features_of(const Target& other) const;

  /// Whether a GPU with this target runs PTX compiled for `code`, after just-in-time compilation: baseline PTX runs on
  /// that architecture and all later ones, sm_XYf on the same major version from minor version Y on, sm_XYa on XY only.
  bool runs_ptx(const Target& code) const { return has_features_of(code); }

  /// Whether a GPU with this target runs a cubin compiled for `code`. As for PTX, but a baseline cubin needs the same
  /// major version.
  bool runs_cubin(const Target& code) const { return major() == code.major() && has_features_of(code); }
};

inline constexpr Target kSm80{80};
inline constexpr Target kSm90a{90, FeatureSet::architecture_specific};

/// The target of a GPU with compute capability sm / 10 . sm % 10: with all its features, so sm_80, sm_90a, sm_100a.
Target device_target(int sm);

/// "sm_80", "sm_90", "sm_90a", "sm_100f". Also a compute capability without its dot, "90" or "90a", which is that of a
/// GPU: device_target(). Refuses what CUDA 13.0 does not compile for, and sm_75, which no kernel supports.
Result<Target> parse_target(std::string_view text);

}  // namespace tilewright
