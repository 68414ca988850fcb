// Construction, evaluation and sizes of layouts.
#include "tilewright/layout/layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "tilewright/base/error.hpp"
#include "tilewright/layout/conditions.hpp"
#include "tilewright/layout/modes.hpp"

namespace tilewright::layout {
namespace {

/// Applies a change to shape and stride.
template <class Change>
Layout restructure(const Layout& layout, Change&& change) {
  return Layout(change(layout.shape()), change(layout.stride()));
}

/// restructure for changes that insert another layout.
template <class Change>
Layout restructure(const Layout& layout, const Layout& x, Change&& change) {
  return Layout(change(layout.shape(), x.shape()), change(layout.stride(), x.stride()));
}

/// Checks the kind of an extent or a stride.
void require_launch_value(const char* what, const Number& number) {
  if (number.kind() > NumberKind::launch)
    throw InvalidArgument(
        fmt::format("{} {} is known only in the kernel: extents and strides must be static or launch values", what,
                    to_string(number)));
}

/// The size of a part of a layout. @throws InvalidArgument if it violates the invariant of Layout
Number checked_size(const Layout& layout, const IntTuple& shape, const IntTuple& stride) {
  if (shape.is_leaf() != stride.is_leaf() || shape.rank() != stride.rank())
    throw InvalidArgument(
        fmt::format("stride {} is not congruent to shape {}", to_string(layout.stride()), to_string(layout.shape())));
  if (shape.is_leaf()) {
    if (stride.is_underscore()) throw InvalidArgument(fmt::format("stride {} contains _", to_string(layout.stride())));
    const Number& extent = shape.number();
    if (extent.is_static() && extent.value() >= 1 && stride.basis_number().is_static()) return extent;
    if (!extent.is_static() || !stride.basis_number().is_static()) {
      require_launch_value("extent", extent);
      require_launch_value("stride", stride.basis_number());
      if (!stride.basis_number().is_static() && stride.basis_number().lower() < 0)
        throw InvalidArgument(
            fmt::format("stride {} may be negative; a run-time stride must not be", to_string(stride)));
    }
    require(less(0, extent), [&] {
      return fmt::format("extents must be at least 1, got {} in shape {}", to_string(extent),
                         to_string(layout.shape()));
    });
    return extent;
  }
  Number size = 1;
  for (int i = 0; i < shape.rank(); ++i) size *= checked_size(layout, shape[i], stride[i]);
  return size;
}

/// The shape with extent 1 for stride-0 modes.
IntTuple without_broadcasts(const Layout& layout) {
  if (layout.shape().is_leaf()) return layout.stride().basis_number() == 0 ? IntTuple(1) : layout.shape();
  return transform_modes(layout.shape(), [&](const IntTuple&, int i) { return without_broadcasts(layout.mode(i)); });
}

/// `stride` with 0 where the stride of the layout is 0.
IntTuple with_broadcasts_of(const Layout& layout, const IntTuple& stride) {
  if (stride.is_leaf()) return layout.stride().basis_number() == 0 ? IntTuple(0) : stride;
  return transform_modes(stride, [&](const IntTuple& mode, int i) { return with_broadcasts_of(layout.mode(i), mode); });
}

IntTuple magnitudes(const IntTuple& strides) {
  return transform_leaves(strides, [](const IntTuple& stride) { return magnitude(stride.number()); });
}

}  // namespace

Layout::Layout(IntTuple shape, IntTuple stride) : shape_(std::move(shape)), stride_(std::move(stride)) {
  (void)checked_size(*this, shape_, stride_);
}

Layout Layout::mode(int i) const { return Layout(Valid{}, shape_[i], stride_[i]); }

std::int64_t Layout::operator()(std::int64_t index) const { return crd2idx(index, shape_, stride_); }
std::int64_t Layout::operator()(const IntTuple& coord) const { return crd2idx(coord, shape_, stride_); }
Number Layout::at(const IntTuple& coord) const { return index_of(coord, shape_, stride_); }

Layout make_layout(const IntTuple& shape) { return Layout(shape, prefix_product(shape)); }
Layout make_layout(const IntTuple& shape, const IntTuple& stride) { return Layout(shape, stride); }

Layout make_row_major(const IntTuple& shape) { return Layout(shape, suffix_product(shape)); }

Layout make_ordered_layout(const IntTuple& shape, const IntTuple& order) {
  return Layout(shape, compact_order(shape, order));
}

Layout make_layout_like(const Layout& layout) {
  const IntTuple strides = compact_order(without_broadcasts(layout), magnitudes(layout.stride()));
  return Layout(layout.shape(), with_broadcasts_of(layout, strides));
}

Layout make_fragment_like(const Layout& layout) {
  if (layout.rank() == 1) return make_layout(layout.shape());
  const Layout front = layout.mode(0);
  const IntTuple extents = without_broadcasts(front);
  const Layout rest = take(layout, 1, layout.rank());
  const Layout ordered = make_ordered_layout(rest.shape(), magnitudes(rest.stride()));
  return prepend(Layout(rest.shape(), product_of(extents) * ordered.stride()),
                 Layout(front.shape(), with_broadcasts_of(front, prefix_product(extents))));
}

Layout make_identity_layout(const IntTuple& shape) { return Layout(shape, make_basis_like(shape)); }

Layout concatenate(std::vector<Layout> modes) {
  TILEWRIGHT_CHECK(!modes.empty(), "concatenate of no layouts");
  LayoutBuilder result(static_cast<int>(modes.size()));
  for (Layout& mode : modes) result.append(std::move(mode));
  return std::move(result).layout();
}

int depth(const Layout& layout) { return depth(layout.shape()); }
std::int64_t size(const Layout& layout) { return product(layout.shape()); }
Number size_of(const Layout& layout) { return product_of(layout.shape()); }
bool is_static(const Layout& layout) { return is_static(layout.shape()) && is_static(layout.stride()); }
Layout evaluate(const Layout& layout, const Bindings& bindings) {
  return restructure(layout, [&](const IntTuple& t) { return evaluate(t, bindings); });
}

IntTuple coshape(const Layout& layout) {
  const IntTuple extents = flatten(layout.shape());
  const IntTuple strides = flatten(layout.stride());
  IntTuple last;
  for (int i = 0; i < extents.rank(); ++i) {
    const int sign = strides[i].basis_number().lower() < 0 ? -1 : 1;
    last = last + (sign * (extents[i].number() - 1)) * strides[i];
  }
  return transform_leaves(last, [](const IntTuple& end) -> IntTuple { return end.number() + 1; });
}

std::int64_t cosize(const Layout& layout) { return product(coshape(layout)); }
Number cosize_of(const Layout& layout) { return product_of(coshape(layout)); }

IntTuple coordinate(const Layout& layout, const IntTuple& coord) {
  return coordinate(coord, layout.shape(), layout.stride());
}

IntTuple hierarchical_coord(const Layout& layout, const Number& offset) {
  IntTuple coord = idx2crd(offset, layout.shape(), layout.stride());
  require(equal(layout.at(coord), offset), [&] {
    return fmt::format("the coordinate of offset {} in {}: division by the strides gives {}, whose offset is {}",
                       to_string(offset), to_string(layout), to_string(coord), to_string(layout.at(coord)));
  });
  return coord;
}

IntTuple flat_coord(const Layout& layout, const Number& offset) {
  const IntTuple coord = hierarchical_coord(layout, offset);
  return transform_modes(layout.shape(), [&](const IntTuple& shape, int i) { return index_of(coord[i], shape); });
}

Layout get(const Layout& layout, const Basis& path) {
  return restructure(layout, [&](const IntTuple& t) { return get(t, path); });
}
Layout flatten(const Layout& layout) {
  return restructure(layout, [](const IntTuple& t) { return flatten(t); });
}
Layout unflatten(const Layout& layout, const IntTuple& profile) {
  return restructure(layout, [&](const IntTuple& t) { return unflatten(t, profile); });
}
Layout take(const Layout& layout, int begin, int end) {
  return restructure(layout, [&](const IntTuple& t) { return take(t, begin, end); });
}
Layout select(const Layout& layout, const std::vector<int>& modes) {
  return restructure(layout, [&](const IntTuple& t) { return select(t, modes); });
}
Layout append(const Layout& layout, const Layout& x) {
  return restructure(layout, x, [](const IntTuple& t, const IntTuple& mode) { return append(t, mode); });
}
Layout prepend(const Layout& layout, const Layout& x) {
  return restructure(layout, x, [](const IntTuple& t, const IntTuple& mode) { return prepend(t, mode); });
}
Layout append(const Layout& layout, int rank, const Layout& x) {
  return restructure(layout, x, [&](const IntTuple& t, const IntTuple& mode) { return append(t, rank, mode); });
}
Layout prepend(const Layout& layout, int rank, const Layout& x) {
  return restructure(layout, x, [&](const IntTuple& t, const IntTuple& mode) { return prepend(t, rank, mode); });
}
Layout replace(const Layout& layout, int i, const Layout& x) {
  return restructure(layout, x, [&](const IntTuple& t, const IntTuple& mode) { return replace(t, i, mode); });
}
Layout group(const Layout& layout, int begin, int end) {
  return restructure(layout, [&](const IntTuple& t) { return group(t, begin, end); });
}
Layout reverse(const Layout& layout) {
  return restructure(layout, [](const IntTuple& t) { return reverse(t); });
}
Layout dice(const IntTuple& coord, const Layout& layout) {
  return restructure(layout, [&](const IntTuple& t) { return dice(coord, t); });
}
Layout slice(const IntTuple& coord, const Layout& layout) {
  return restructure(layout, [&](const IntTuple& t) { return slice(coord, t); });
}

LayoutAndOffset slice_and_offset(const IntTuple& coord, const Layout& layout) {
  const IntTuple start = transform_leaves(
      coord, [](const IntTuple& leaf) -> IntTuple { return leaf.is_underscore() ? IntTuple(0) : leaf; });
  return {slice(coord, layout), coordinate(layout, start)};
}

std::string to_string(const Layout& layout) { return to_string(layout.shape()) + ":" + to_string(layout.stride()); }

}  // namespace tilewright::layout
