// Upcast, downcast and recast.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "tilewright/base/error.hpp"
#include "tilewright/layout/algebra.hpp"
#include "tilewright/layout/modes.hpp"

namespace tilewright::layout {
namespace {

void require_positive(const char* verb, const Layout& layout, std::int64_t n) {
  if (n < 1) throw InvalidArgument(fmt::format("{} of {} by {}: must be at least 1", verb, to_string(layout), n));
}

bool is_unit(std::int64_t stride) { return std::abs(stride) == 1; }

}  // namespace

Layout upcast(const Layout& layout, std::int64_t n) {
  require_positive("upcast", layout, n);
  Modes modes = integer_modes("upcast", layout);
  for (Mode& mode : modes) {
    if (mode.stride == 0) continue;
    const std::int64_t step = std::abs(mode.stride);
    if (step % n != 0 && n % step != 0)
      throw InvalidArgument(
          fmt::format("upcast of {} by {}: stride {} neither divides the factor nor is a multiple of it",
                      to_string(layout), n, mode.stride));
    mode = {ceil_div(mode.extent, ceil_div(n, step)), ceil_div(step, n) * (mode.stride < 0 ? -1 : 1)};
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
    std::int64_t& grows = is_unit(mode.stride) ? mode.extent : mode.stride;
    grows = checked_product(grows, n);
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
