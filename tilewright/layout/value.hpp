// The values of layout-algebra expressions.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tilewright/layout/layout.hpp"
#include "tilewright/layout/swizzle.hpp"
#include "tilewright/layout/tiler.hpp"

namespace tilewright::layout {

/// An IntTuple is an integer, a scaled basis element, `_` or a tuple of these.
using Value = std::variant<IntTuple, bool, Layout, LayoutAndOffset, Swizzle, ComposedLayout, Tiler>;

/// The kind in messages and signatures: "integer", "tuple", "layout", "swizzle", ...
std::string_view kind_of(const Value& value);

/// In the notation that parse() takes: "(8,64):(64,1)", "2 o 8:64" (a layout and its offset), "<4:1,_>", "true".
std::string notation(const Value& value);

/// The layout, or n:1 for an integer n; nullopt for other kinds. @throws InvalidArgument if n < 1
std::optional<Layout> as_layout(const Value& value);
/// The tiler, a layout as a tiler, or make_tiler of a tuple of integers and `_`; nullopt for other kinds.
std::optional<Tiler> as_tiler(const Value& value);

// Values of the constructs of the notation. @throws InvalidArgument for operands that do not fit together

/// (a,b,...): a tuple of tuples and integers; the layout for one layout; a tiler for several layouts.
Value make_tuple_value(const std::vector<Value>& modes);
/// <a,b,...>
Tiler make_tiler_value(const std::vector<Value>& modes);
/// shape:stride
Layout make_layout_value(const Value& shape, const Value& stride);
/// Sw<bits,base,shift>
Swizzle make_swizzle_value(const std::vector<Value>& parameters);
/// swizzle o layout, offset o layout; nullopt for operands that need composition().
std::optional<Value> make_composed_value(const Value& outer, const Value& inner);

}  // namespace tilewright::layout
