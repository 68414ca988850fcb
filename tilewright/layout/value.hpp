// What an expression over the algebra can be.
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

/// "integer", "tuple", "layout", "swizzle", ...: what messages and signatures call it.
std::string_view kind_of(const Value& value);

/// In the notation that parse() takes: "(8,64):(64,1)", "2 o 8:64" (a layout and its offset), "<4:1,_>", "true".
std::string notation(const Value& value);

/// A layout, and n:1 for an integer n; nullopt for the rest. @throws InvalidArgument where n < 1.
std::optional<Layout> as_layout(const Value& value);
/// A tiler, a layout as one, and make_tiler of a tuple of integers and `_`; nullopt for the rest.
std::optional<Tiler> as_tiler(const Value& value);

// The phrases of the notation. @throws InvalidArgument where they do not fit together.

/// (a,b,...): a tuple of tuples and integers; of one layout, the layout; of several layouts, a tiler.
Value make_tuple_value(const std::vector<Value>& modes);
/// <a,b,...>
Tiler make_tiler_value(const std::vector<Value>& modes);
/// shape:stride
Layout make_layout_value(const Value& shape, const Value& stride);
/// Sw<bits,base,shift>
Swizzle make_swizzle_value(const std::vector<Value>& parameters);
/// swizzle o layout, offset o layout; nullopt where that is for the algebra to say.
std::optional<Value> make_composed_value(const Value& outer, const Value& inner);

}  // namespace tilewright::layout
