// Coalesce and filter.
#include <fmt/format.h>

#include "tilewright/base/error.hpp"
#include "tilewright/layout/algebra.hpp"
#include "tilewright/layout/modes.hpp"

namespace tilewright::layout {
namespace {

/// verb applied to each mode that is a leaf of the profile. Modes past the profile are kept.
template <class Verb>
Layout by_profile(const char* name, const Layout& layout, const IntTuple& profile, Verb&& verb) {
  if (profile.is_leaf()) return verb(layout);
  if (profile.rank() > layout.rank())
    throw InvalidArgument(fmt::format("{} of {} by profile {}: the layout has only {} modes", name, to_string(layout),
                                      to_string(profile), layout.rank()));
  return transform_first_modes(layout, profile.rank(),
                               [&](const Layout& mode, int i) { return by_profile(name, mode, profile[i], verb); });
}

}  // namespace

Layout coalesce(const Layout& layout) {
  Modes modes = flat_modes(layout);
  merge(modes);
  return from_modes(modes);
}

Layout coalesce(const Layout& layout, const IntTuple& profile) {
  return by_profile("coalesce", layout, profile, [](const Layout& mode) { return coalesce(mode); });
}

Layout coalesce_past_end(const Layout& layout) {
  Modes modes = flat_modes(layout);
  merge_past_end(modes);
  return from_modes(modes);
}

Layout filter_zeros(const Layout& layout) {
  Modes modes = flat_modes(layout);
  for (Mode& mode : modes) {
    if (mode.stride == 0) mode.extent = 1;
  }
  return with_profile(modes, layout.shape());
}

Layout filter(const Layout& layout) {
  Modes modes = flat_modes(layout);
  erase_if(modes, [](const Mode& mode) { return mode.stride == 0; });
  merge(modes);
  return from_modes(modes);
}

Layout filter(const Layout& layout, const IntTuple& profile) {
  return by_profile("filter", layout, profile, [](const Layout& mode) { return filter(mode); });
}

}  // namespace tilewright::layout
