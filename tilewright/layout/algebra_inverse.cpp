// Complement, inverses and the functions built on them. They visit the coalesced modes in order of increasing stride.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "tilewright/base/error.hpp"
#include "tilewright/layout/algebra.hpp"
#include "tilewright/layout/modes.hpp"

namespace tilewright::layout {
namespace {

/// A mode, and its stride in the domain: the index of its coordinate 1.
struct IndexedMode {
  Mode mode;
  std::int64_t index_stride = 1;
};
using IndexedModes = SmallVector<IndexedMode, 8>;

/// The coalesced modes in order of increasing stride.
IndexedModes sorted_modes(const char* verb, const Layout& layout) {
  Modes merged = integer_modes(verb, layout);
  merge(merged);
  IndexedModes modes;
  std::int64_t running = 1;
  for (const Mode& mode : merged) {
    modes.push_back({mode, running});
    running *= mode.extent;
  }
  const auto less = [](const IndexedMode& a, const IndexedMode& b) { return a.mode.stride < b.mode.stride; };
  for (IndexedMode* next = modes.begin(); next != modes.end(); ++next)  // stable insertion sort: there are few modes
    std::rotate(std::upper_bound(modes.begin(), next, *next, less), next, next + 1);
  return modes;
}

/// @throws InvalidArgument unless the stride of `next` is at least `covered`, the cosize of the modes before it.
void require_above(const char* verb, const Layout& layout, const Mode& next, std::int64_t covered) {
  if (next.stride < 0)
    throw InvalidArgument(fmt::format("{} of {}: stride {} is negative", verb, to_string(layout), next.stride));
  if (next.stride < covered)
    throw InvalidArgument(fmt::format("{} of {}: not injective, mode {}:{} starts below offset {}", verb,
                                      to_string(layout), next.extent, next.stride, covered));
}

/// The first mode of the coalesced layout if its stride is 1, else 1:0.
Layout contiguous_front(const Layout& layout) {
  Modes modes = flat_modes(layout);
  merge(modes);
  if (modes.empty() || modes[0].stride != 1 || !modes[0].basis.empty()) return Layout();
  return Layout(modes[0].extent, 1);
}

}  // namespace

Layout complement(const Layout& layout, std::int64_t cotarget) {
  if (cotarget < 1)
    throw InvalidArgument(
        fmt::format("complement of {}: the cotarget must be at least 1, got {}", to_string(layout), cotarget));
  Modes result;
  std::int64_t covered = 1;
  for (const IndexedMode& next : sorted_modes("complement", layout)) {
    if (next.mode.stride == 0) continue;
    require_above("complement", layout, next.mode, covered);
    append_merged(result, {next.mode.stride / covered, covered});
    covered = checked_product(next.mode.extent, next.mode.stride);
  }
  append_merged(result, {ceil_div(cotarget, covered), covered});
  return from_modes(result);
}

Layout complement(const Layout& layout) { return complement(layout, cosize(filter(layout))); }

Layout right_inverse(const Layout& layout) {
  Modes result;
  std::int64_t covered = 1;
  for (const IndexedMode& next : sorted_modes("right_inverse", layout)) {
    if (next.mode.stride != covered) continue;
    append_merged(result, {next.mode.extent, next.index_stride});
    covered *= next.mode.extent;
  }
  return from_modes(result);
}

Layout left_inverse(const Layout& layout) {
  IndexedModes modes = sorted_modes("left_inverse", layout);
  erase_if(modes, [](const IndexedMode& m) { return m.mode.stride == 0; });
  if (modes.size() == 1 && modes[0].mode.stride < 0) {  // the only mode: all offsets are negative or 0
    modes[0].mode.stride *= -1;
    modes[0].index_stride *= -1;
  }
  Modes result;
  std::int64_t covered = 1;       // cosize of the modes so far
  std::int64_t block = 1;         // size of `result`
  std::int64_t index_stride = 0;  // that of the last mode so far
  std::int64_t last_extent = 1;
  for (const IndexedMode& next : modes) {
    require_above("left_inverse", layout, next.mode, covered);
    if (next.mode.stride % block != 0)
      throw InvalidArgument(fmt::format("left_inverse of {}: stride {} is not a multiple of {}", to_string(layout),
                                        next.mode.stride, block));
    append_merged(result, {next.mode.stride / block, index_stride});
    block = next.mode.stride;
    covered = checked_product(next.mode.extent, next.mode.stride);
    index_stride = next.index_stride;
    last_extent = next.mode.extent;
  }
  append_merged(result, {last_extent, index_stride});
  return from_modes(result);
}

Layout nullspace(const Layout& layout) {
  Modes result;
  std::int64_t running = 1;
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
  std::int64_t contiguous = 1;
  std::int64_t outside = 0;
  for (const IndexedMode& next : sorted_modes("max_alignment", layout)) {
    if (next.mode.stride == contiguous) {
      contiguous *= next.mode.extent;
    } else {
      outside = std::gcd(outside, next.mode.stride);
    }
  }
  return std::gcd(contiguous, outside);
}

Layout domain_distribute(const IntTuple& shape, std::int64_t n) {
  if (n < 1)
    throw InvalidArgument(
        fmt::format("domain_distribute of {} indices over {}: needs at least 1", n, to_string(shape)));
  Modes result;
  std::int64_t running = 1;
  for (const std::int64_t extent : leaves(shape)) {
    const std::int64_t taken = std::gcd(extent, n);
    append_merged(result, {taken, running});
    n /= taken;
    running = checked_product(running, extent);
  }
  return from_modes(result);
}

}  // namespace tilewright::layout
