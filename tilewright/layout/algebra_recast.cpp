// Upcast, downcast and recast.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "tilewright/base/error.hpp"
#include "tilewright/layout/algebra.hpp"
#include "tilewright/layout/conditions.hpp"
#include "tilewright/layout/modes.hpp"

namespace tilewright::layout {
namespace {

void require_positive(const char* verb, const Layout& layout, std::int64_t n) {
  if (n < 1) throw InvalidArgument(fmt::format("{} of {} by {}: must be at least 1", verb, to_string(layout), n));
}

bool is_unit(const Number& stride) { return stride == 1 || stride == -1; }

}  // namespace

Layout upcast(const Layout& layout, std::int64_t n) {
  require_positive("upcast", layout, n);
  Modes modes = integer_modes("upcast", layout);
  for (Mode& mode : modes) {
    if (mode.stride == 0) continue;
    const Number step = magnitude(mode.stride);
    const int sign = mode.stride.lower() < 0 ? -1 : 1;
    if (step.is_static() && n % step.value() == 0) {
      mode = {ceil_div(mode.extent, n / step), sign};
      continue;
    }
    require(divides(n, step), [&] {
      return fmt::format("upcast of {} by {}: stride {} neither divides the factor nor is a multiple of it",
                         to_string(layout), n, to_string(mode.stride));
    });
    mode.stride = step / n * sign;
  }
  return with_profile(modes, layout.shape());
}

Layout downcast(const Layout& layout, std::int64_t n) {
  require_positive("downcast", layout, n);
  Modes modes = integer_modes("downcast", layout);
  const bool has_unit = std::any_of(modes.begin(), modes.end(), [](const Mode& m) { return is_unit(m.stride); });
  if (n > 1 && !has_unit)
    throw InvalidArgument(fmt::format("downcast of {} by {}: no stride is 1 or -1", to_string(layout), n));
  for (Mode& mode : modes) {
    if (n > 1 && !mode.stride.is_static())
      require(negation(equal(mode.stride, 1)), [&] {
        return fmt::format("downcast of {} by {}: stride {} must not be 1", to_string(layout), n,
                           to_string(mode.stride));
      });
    Number& grows = is_unit(mode.stride) ? mode.extent : mode.stride;
    grows *= n;
  }
  return with_profile(modes, layout.shape());
}

Layout recast(const Layout& layout, std::int64_t old_bits, std::int64_t new_bits) {
  require_positive("recast", layout, old_bits);
  require_positive("recast", layout, new_bits);
  const std::int64_t unit = std::gcd(old_bits, new_bits);
  const Layout wide = upcast(layout, new_bits / unit);
  return old_bits == unit ? wide : downcast(wide, old_bits / unit);
}

}  // namespace tilewright::layout
