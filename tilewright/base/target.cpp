#include "tilewright/base/target.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include "tilewright/base/text.hpp"

namespace tilewright {
namespace {

// `nvcc --list-gpu-code` of CUDA 13.0, from sm_80 on, which is the first with cp.async.
constexpr std::array kArchitectures{80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121};
constexpr int kFirstArchitectureSpecific = 90;  // sm_90a, since CUDA 12.0
constexpr int kFirstFamilySpecific = 100;       // sm_100f, since CUDA 12.9

bool exists(const Target& target) {
  switch (target.features) {
    case FeatureSet::baseline:
      return std::ranges::find(kArchitectures, target.sm) != kArchitectures.end();
    case FeatureSet::family_specific:
      return exists({target.sm}) && target.sm >= kFirstFamilySpecific;
    case FeatureSet::architecture_specific:
      return exists({target.sm}) && target.sm >= kFirstArchitectureSpecific;
  }
  return false;
}

std::string_view suffix(FeatureSet features) {
  constexpr std::array<std::string_view, 3> kSuffixes{"", "f", "a"};
  return kSuffixes[static_cast<std::size_t>(features)];
}

FeatureSet take_suffix(std::string_view& text) {
  for (const FeatureSet features : {FeatureSet::family_specific, FeatureSet::architecture_specific}) {
    if (!text.ends_with(suffix(features))) continue;
    text.remove_suffix(1);
    return features;
  }
  return FeatureSet::baseline;
}

}  // namespace

std::string Target::name() const { return fmt::format("sm_{}{}", sm, suffix(features)); }
std::string Target::virtual_name() const { return fmt::format("compute_{}{}", sm, suffix(features)); }

bool Target::has_features_of(const Target& other) const {
  switch (other.features) {
    case FeatureSet::baseline:
      return sm >= other.sm;
    case FeatureSet::family_specific:
      return major() == other.major() && sm >= other.sm && features >= FeatureSet::family_specific;
    case FeatureSet::architecture_specific:
      return *this == other;
  }
  return false;
}

Target device_target(int sm) {
  return {sm, sm >= kFirstArchitectureSpecific ? FeatureSet::architecture_specific : FeatureSet::baseline};
}

Result<Target> parse_target(std::string_view text) {
  constexpr std::string_view kPrefix = "sm_";
  std::string_view digits = text;
  const bool has_prefix = digits.starts_with(kPrefix);
  if (has_prefix) digits.remove_prefix(kPrefix.size());
  Target target{.sm = 0, .features = take_suffix(digits)};
  const auto [end, status] = std::from_chars(digits.data(), digits.data() + digits.size(), target.sm);
  const bool is_number = status == std::errc() && end == digits.data() + digits.size();
  if (!has_prefix && target.features == FeatureSet::baseline) target = device_target(target.sm);
  if (is_number && exists(target)) return target;
  return refuse(
      "unknown target '{}': known are sm_80, sm_86, sm_87, sm_88, sm_89, sm_90, sm_100, sm_103, sm_110, sm_120, "
      "sm_121, with suffix a from sm_90 on and suffix f from sm_100 on",
      printable(text));
}

}  // namespace tilewright
