#include "tilewright/base/target.hpp"

#include <array>
#include <charconv>

namespace tilewright {
namespace {

// What NVRTC 13.0 compiles for (nvrtcGetSupportedArchs) and our kernels know: cp.async begins with sm_80.
constexpr std::array kKnown{80, 86, 87, 88, 89, 90};

}  // namespace

std::string Target::name() const { return fmt::format("sm_{}{}", sm, arch_specific ? "a" : ""); }
std::string Target::virtual_name() const { return fmt::format("compute_{}{}", sm, arch_specific ? "a" : ""); }

bool Target::runs(const Target& other) const {
  if (other.arch_specific) return arch_specific && sm == other.sm;
  return sm / 10 == other.sm / 10 && sm >= other.sm;
}

Result<Target> parse_target(std::string_view text) {
  std::string_view digits = text;
  if (digits.starts_with("sm_")) digits.remove_prefix(3);
  if (digits.ends_with("a")) digits.remove_suffix(1);
  int sm = 0;
  const auto [end, status] = std::from_chars(digits.data(), digits.data() + digits.size(), sm);
  const bool is_number = status == std::errc() && end == digits.data() + digits.size();
  for (const int known : kKnown) {
    if (is_number && sm == known) return Target{sm, sm == 90};
  }
  return refuse("unknown target '{}': known are sm_80, sm_86, sm_87, sm_88, sm_89, sm_90a", text);
}

}  // namespace tilewright
