// Tilers: the tile of a layout, as one layout or by mode.
#pragma once

#include <initializer_list>
#include <string>
#include <variant>
#include <vector>

#include "tilewright/layout/layout.hpp"

namespace tilewright::layout {

/// A layout that tiles another layout; or a tuple with a tiler for each mode; or `_`, which leaves the mode untiled.
/// Braces make tuples: Tiler{Layout(3, 3), _} is <3:3,_>, and Tiler(Layout(3, 3)) is the layout 3:3.
class Tiler {
 public:
  Tiler(Layout layout) : state_(std::move(layout)) {}  // NOLINT: a layout is a Tiler
  Tiler(Underscore whole) : state_(whole) {}           // NOLINT: so is `_`
  Tiler(std::initializer_list<Tiler> modes) : state_(std::vector<Tiler>(modes)) {}
  static Tiler tuple(std::vector<Tiler> modes);

  bool is_whole() const { return std::holds_alternative<Underscore>(state_); }
  bool is_layout() const { return std::holds_alternative<Layout>(state_); }
  bool is_tuple() const { return std::holds_alternative<std::vector<Tiler>>(state_); }
  /// @pre is_layout()
  const Layout& layout() const { return std::get<Layout>(state_); }
  /// Number of modes. @pre is_tuple()
  int rank() const { return static_cast<int>(modes().size()); }
  /// @pre is_tuple(), 0 <= i < rank()
  const Tiler& operator[](int i) const { return modes()[static_cast<std::size_t>(i)]; }

  bool operator==(const Tiler&) const = default;

 private:
  const std::vector<Tiler>& modes() const { return std::get<std::vector<Tiler>>(state_); }

  std::variant<Underscore, Layout, std::vector<Tiler>> state_;
};

/// The tiler of contiguous extents, with the profile of the shape: (128,_) -> <128:1,_>, and 128 -> 128:1.
Tiler make_tiler(const IntTuple& shape);
/// The modes where the coordinate is not `_`: dice((1,_,1), <4:1,8:1,2:1>) is <4:1,2:1>. CuTe's Step<_1,X,_1> is
/// (1,_,1). @throws InvalidArgument if ranks differ
Tiler dice(const IntTuple& coord, const Tiler& tiler);

/// "<3:3,(2,4):(1,8)>", "<4:1,_>"
std::string to_string(const Tiler& tiler);

}  // namespace tilewright::layout
