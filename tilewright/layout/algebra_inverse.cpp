// Complement, inverses and the functions built on them. They visit the coalesced modes in order of increasing stride.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "tilewright/base/error.hpp"
#include "tilewright/layout/algebra.hpp"
#include "tilewright/layout/conditions.hpp"
#include "tilewright/layout/modes.hpp"

namespace tilewright::layout {
namespace {

/// A mode, and its stride in the domain: the index of its coordinate 1.
struct IndexedMode {
  Mode mode;
  Number index_stride = 1;
};
using IndexedModes = SmallVector<IndexedMode, 8>;

/// The coalesced modes in their order.
IndexedModes indexed_modes(const char* verb, const Layout& layout) {
  Modes merged = integer_modes(verb, layout);
  merge(merged);
  IndexedModes modes;
  Number running = 1;
  for (const Mode& mode : merged) {
    modes.push_back({mode, running});
    running *= mode.extent;
  }
  return modes;
}

/// Whether stride a is less than stride b, which is before it. Strides that cannot be compared must be in order.
bool is_below(const char* verb, const Layout& layout, const Number& a, const Number& b) {
  if (a.is_static() && b.is_static()) return a.value() < b.value();
  const Decision decision = decide(less(a, b));
  if (decision != Decision::unknown) return decision == Decision::yes;
  if (holds(less_equal(a, b))) return true;
  require(less_equal(b, a), [&] {
    return fmt::format("{} of {}: stride {} must be at least stride {}, which is before it", verb, to_string(layout),
                       to_string(a), to_string(b));
  });
  return false;
}

/// The coalesced modes in order of increasing stride.
IndexedModes sorted_modes(const char* verb, const Layout& layout) {
  IndexedModes modes = indexed_modes(verb, layout);
  const auto is_less = [&](const IndexedMode& a, const IndexedMode& b) {
    return is_below(verb, layout, a.mode.stride, b.mode.stride);
  };
  for (IndexedMode* next = modes.begin(); next != modes.end(); ++next)  // stable insertion sort: there are few modes
    std::rotate(std::upper_bound(modes.begin(), next, *next, is_less), next, next + 1);
  return modes;
}

/// The first mode of the given stride, or null.
const IndexedMode* mode_of_stride(const IndexedModes& modes, const Number& stride) {
  const auto found =
      std::find_if(modes.begin(), modes.end(), [&](const IndexedMode& m) { return m.mode.stride == stride; });
  return found == modes.end() ? nullptr : found;
}

/// Requires that the stride of `next` is at least `covered`, the cosize of the modes before it.
void require_above(const char* verb, const Layout& layout, const Mode& next, const Number& covered) {
  if (next.stride.lower() < 0)
    throw InvalidArgument(
        fmt::format("{} of {}: stride {} is negative", verb, to_string(layout), to_string(next.stride)));
  require(less_equal(covered, next.stride), [&] {
    return fmt::format("{} of {}: not injective, mode {}:{} starts below offset {}", verb, to_string(layout),
                       to_string(next.extent), to_string(next.stride), to_string(covered));
  });
}

/// The first mode of the coalesced layout if its stride is 1, else 1:0.
Layout contiguous_front(const Layout& layout) {
  Modes modes = flat_modes(layout);
  merge(modes);
  if (modes.empty() || modes[0].stride != 1 || !modes[0].basis.empty()) return Layout();
  return Layout(modes[0].extent, 1);
}

}  // namespace

Layout complement(const Layout& layout, const Number& cotarget) {
  require(less(0, cotarget), [&] {
    return fmt::format("complement of {}: the cotarget must be at least 1, got {}", to_string(layout),
                       to_string(cotarget));
  });
  Modes result;
  Number covered = 1;
  for (const IndexedMode& next : sorted_modes("complement", layout)) {
    if (next.mode.stride == 0) continue;
    require_above("complement", layout, next.mode, covered);
    append_merged(result, {next.mode.stride / covered, covered});
    covered = next.mode.extent * next.mode.stride;
  }
  append_merged(result, {ceil_div(cotarget, covered), covered});
  return from_modes(result);
}

Layout complement(const Layout& layout) { return complement(layout, cosize_of(filter(layout))); }

Layout right_inverse(const Layout& layout) {
  Modes result;
  Number covered = 1;
  const IndexedModes modes = indexed_modes("right_inverse", layout);
  while (const IndexedMode* next = mode_of_stride(modes, covered)) {
    append_merged(result, {next->mode.extent, next->index_stride});
    covered *= next->mode.extent;
  }
  return from_modes(result);
}

Layout left_inverse(const Layout& layout) {
  IndexedModes modes = sorted_modes("left_inverse", layout);
  erase_if(modes, [](const IndexedMode& m) { return m.mode.stride == 0; });
  if (modes.size() == 1 && modes[0].mode.stride.lower() < 0) {  // the only mode: all offsets are negative or 0
    modes[0].mode.stride *= -1;
    modes[0].index_stride *= -1;
  }
  Modes result;
  Number covered = 1;       // cosize of the modes so far
  Number block = 1;         // size of `result`
  Number index_stride = 0;  // that of the last mode so far
  Number last_extent = 1;
  for (const IndexedMode& next : modes) {
    require_above("left_inverse", layout, next.mode, covered);
    require(divides(block, next.mode.stride), [&] {
      return fmt::format("left_inverse of {}: stride {} is not a multiple of {}", to_string(layout),
                         to_string(next.mode.stride), to_string(block));
    });
    append_merged(result, {next.mode.stride / block, index_stride});
    block = next.mode.stride;
    covered = next.mode.extent * next.mode.stride;
    index_stride = next.index_stride;
    last_extent = next.mode.extent;
  }
  append_merged(result, {last_extent, index_stride});
  return from_modes(result);
}

Layout nullspace(const Layout& layout) {
  Modes result;
  Number running = 1;
  for (const Mode& mode : flat_modes(layout)) {
    if (mode.stride == 0) result.push_back({mode.extent, running});
    running *= mode.extent;
  }
  return from_modes(result);
}

Layout max_common_layout(const Layout& a, const Layout& b) {
  const Layout inverse = right_inverse(b);
  return composition(inverse, contiguous_front(composition(a, inverse)));
}

std::int64_t max_common_vector(const Layout& a, const Layout& b) {
  return size(contiguous_front(composition(a, right_inverse(b))));
}

std::int64_t max_alignment(const Layout& layout) {
  IndexedModes modes = indexed_modes("max_alignment", layout);
  Number contiguous = 1;
  while (const IndexedMode* next = mode_of_stride(modes, contiguous)) {
    contiguous *= next->mode.extent;
    modes.erase(next);
  }
  std::int64_t outside = 0;
  for (const IndexedMode& next : modes) outside = std::gcd(outside, next.mode.stride.divisor());
  return std::gcd(contiguous.divisor(), outside);
}

Layout domain_distribute(const IntTuple& shape, std::int64_t n) {
  if (n < 1)
    throw InvalidArgument(
        fmt::format("domain_distribute of {} indices over {}: needs at least 1", n, to_string(shape)));
  Modes result;
  Number running = 1;
  for (const Number& extent : numbers_of(shape)) {
    const std::int64_t taken = std::gcd(extent.divisor(), n);
    append_merged(result, {taken, running});
    n /= taken;
    running *= extent;
  }
  return from_modes(result);
}

}  // namespace tilewright::layout
