// Checks of the post-conditions of the algebra at every point, for published and for random cases.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "tilewright/base/error.hpp"
#include "tilewright/layout/algebra.hpp"
#include "tilewright/layout/composed_layout.hpp"
#include "tilewright/layout/print.hpp"

namespace tilewright::layout {

/// Each calls its function and returns the violated post-condition, or "". Refusals are thrown.
std::string coalesce_breaks(const Layout& layout);
std::string composition_breaks(const Layout& a, const Layout& b);
std::string composition_breaks(const Layout& a, const ComposedLayout& b);
std::string composition_breaks(const ComposedLayout& a, const ComposedLayout& b);
std::string complement_breaks(const Layout& layout, std::int64_t cotarget);
std::string right_inverse_breaks(const Layout& layout);
std::string left_inverse_breaks(const Layout& layout);
std::string right_inverse_breaks(const ComposedLayout& layout);
std::string left_inverse_breaks(const ComposedLayout& layout);
std::string logical_divide_breaks(const Layout& layout, const Layout& tile);
std::string logical_product_breaks(const Layout& block, const Layout& copies);
std::string nullspace_breaks(const Layout& layout);
std::string domain_distribute_breaks(const IntTuple& shape, std::int64_t n);
std::string max_common_layout_breaks(const Layout& a, const Layout& b);
std::string slices_break(const ComposedLayout& layout);

/// The reason of a refusal; "accepted" if there is none.
template <class Verb>
std::string refusal_of(Verb&& verb) {
  try {
    (void)verb();
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "accepted";
}

/// value@i...
inline IntTuple basis(std::int64_t value, Basis path) { return IntTuple::scaled_basis(value, path); }

/// The number of distinct offsets of a layout.
std::size_t image_size(const Layout& layout);

/// The number of points that the checks above have compared.
std::int64_t points_checked();

}  // namespace tilewright::layout
