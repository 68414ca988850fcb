// Construction, evaluation and sizes of layouts.
#include "tilewright/layout/layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "tilewright/base/error.hpp"

namespace tilewright::layout {
namespace {

/// Compact strides of a shape whose first leaf is the slowest; `running` is the product of what follows.
IntTuple suffix_product(const IntTuple& shape, std::int64_t& running) {
  if (shape.is_leaf()) {
    const std::int64_t after = running;
    running *= shape.value();
    return after;
  }
  std::vector<IntTuple> modes(static_cast<std::size_t>(shape.rank()));
  for (int i = shape.rank() - 1; i >= 0; --i) modes[static_cast<std::size_t>(i)] = suffix_product(shape[i], running);
  return IntTuple::tuple(std::move(modes));
}

}  // namespace

Layout::Layout(IntTuple shape, IntTuple stride) : shape_(std::move(shape)), stride_(std::move(stride)) {
  if (!congruent(shape_, stride_))
    throw InvalidArgument(
        fmt::format("stride {} is not congruent to shape {}", layout::to_string(stride_), layout::to_string(shape_)));
  for (const std::int64_t extent : leaves(shape_)) {
    if (extent < 1)
      throw InvalidArgument(
          fmt::format("extents must be at least 1, got {} in shape {}", extent, layout::to_string(shape_)));
  }
  (void)product(shape_);  // refuses a size that overflows
}

Layout Layout::mode(int i) const { return Layout(shape_[i], stride_[i]); }

std::int64_t Layout::operator()(std::int64_t index) const { return crd2idx(index, shape_, stride_); }
std::int64_t Layout::operator()(const IntTuple& coord) const { return crd2idx(coord, shape_, stride_); }

Layout make_layout(const IntTuple& shape) { return Layout(shape, prefix_product(shape)); }
Layout make_layout(const IntTuple& shape, const IntTuple& stride) { return Layout(shape, stride); }

Layout make_row_major(const IntTuple& shape) {
  (void)product(shape);  // refuses a size that overflows
  std::int64_t running = 1;
  return Layout(shape, suffix_product(shape, running));
}

Layout make_ordered_layout(const IntTuple& shape, const std::vector<int>& order) {
  const auto rank = static_cast<std::size_t>(shape.rank());
  std::vector<int> by_order(rank, -1);
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (order.size() == rank && order[i] >= 0 && order[i] < shape.rank())
      by_order[static_cast<std::size_t>(order[i])] = static_cast<int>(i);
  }
  if (std::find(by_order.begin(), by_order.end(), -1) != by_order.end())
    throw InvalidArgument(fmt::format("order ({}) is not a permutation of the {} modes of {}", fmt::join(order, ","),
                                      rank, layout::to_string(shape)));

  std::vector<IntTuple> strides(rank);
  std::int64_t running = 1;
  for (const int i : by_order) {
    strides[static_cast<std::size_t>(i)] = prefix_product(shape[i], running);
    running *= product(shape[i]);
  }
  return shape.is_leaf() ? Layout(shape, strides.front()) : Layout(shape, IntTuple::tuple(std::move(strides)));
}

Layout concatenate(const std::vector<Layout>& modes) {
  TILEWRIGHT_CHECK(!modes.empty(), "a layout needs a mode");
  std::vector<IntTuple> shapes;
  std::vector<IntTuple> strides;
  for (const Layout& mode : modes) {
    shapes.push_back(mode.shape());
    strides.push_back(mode.stride());
  }
  return Layout(IntTuple::tuple(std::move(shapes)), IntTuple::tuple(std::move(strides)));
}

int depth(const Layout& layout) { return depth(layout.shape()); }
std::int64_t size(const Layout& layout) { return product(layout.shape()); }

std::int64_t cosize(const Layout& layout) {
  const std::vector<std::int64_t> shape = leaves(layout.shape());
  const std::vector<std::int64_t> stride = leaves(layout.stride());
  return std::transform_reduce(shape.begin(), shape.end(), stride.begin(), std::int64_t{1}, std::plus<>(),
                               [](std::int64_t s, std::int64_t d) { return (s - 1) * std::abs(d); });
}

Layout flatten(const Layout& layout) { return Layout(flatten(layout.shape()), flatten(layout.stride())); }

std::string to_string(const Layout& layout) { return to_string(layout.shape()) + ":" + to_string(layout.stride()); }

}  // namespace tilewright::layout
