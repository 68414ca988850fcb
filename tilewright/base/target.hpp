// A GPU architecture, as compilers name it: sm_80, sm_90a.
#pragma once

#include <compare>
#include <string>
#include <string_view>

#include "tilewright/base/support.hpp"

namespace tilewright {

struct Target {
  int sm = 80;                 // major * 10 + minor
  bool arch_specific = false;  // the "a" of sm_90a: its wgmma, setmaxnreg, tensor-map forms

  auto operator<=>(const Target&) const = default;

  /// "sm_90a"
  std::string name() const;
  /// "compute_90a"
  std::string virtual_name() const;

  /// Code for `other` runs here: same sm for arch-specific code, else the same major and not a newer minor (cubin
  /// rule).
  bool runs(const Target& other) const;
};

/// "sm_80", "80", "sm_90a" -> Target; sm_90 becomes sm_90a, the form every Hopper GPU runs.
Result<Target> parse_target(std::string_view text);

}  // namespace tilewright
