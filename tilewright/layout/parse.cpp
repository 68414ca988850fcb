// The notation is the part of the expression syntax without function calls.
#include "tilewright/layout/parse.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <optional>
#include <utility>

#include "tilewright/base/error.hpp"
#include "tilewright/base/text.hpp"
#include "tilewright/layout/expression.hpp"
#include "tilewright/layout/syntax.hpp"

namespace tilewright::layout {
namespace {

// The operands before the last of Sw<3,4,3> o 0 o (8,64):(64,1).
bool is_swizzle_or_offset(SyntaxNode::Kind kind) {
  return kind == SyntaxNode::Kind::swizzle || kind == SyntaxNode::Kind::leaf;
}

void require_notation(const SyntaxNode& node) {
  if (node.kind == SyntaxNode::Kind::call)
    fail_at(node.column, fmt::format("expected a value, got a call of {}", printable(node.name, 40)));
  if (node.kind == SyntaxNode::Kind::application) fail_at(node.column, "expected the end, got '('");
  const bool chain = node.kind == SyntaxNode::Kind::composition;
  for (std::size_t i = 0; i < node.operands.size(); ++i) {
    const SyntaxNode& operand = node.operands[i];
    if (chain && i + 1 < node.operands.size() && !is_swizzle_or_offset(operand.kind))
      fail_at(operand.column, "expected a swizzle or an offset");
    require_notation(operand);
  }
}

template <class T, class As>
Result<T> parse_as(std::string_view text, std::string_view expected, const As& as) {
  try {
    const SyntaxNode tree = parse_syntax(text);
    require_notation(tree);
    const Value value = value_of(tree);
    std::optional<T> result = at_column(1, [&] { return as(value); });
    if (result) return *std::move(result);
    return refuse("column 1: expected {}, got {} {}", expected, kind_of(value), notation(value));
  } catch (const InvalidArgument& refused) {
    return Refusal{refused.what()};
  }
}

template <class T>
std::optional<T> as_itself(const Value& value) {
  const T* itself = std::get_if<T>(&value);
  return itself == nullptr ? std::nullopt : std::optional<T>(*itself);
}

}  // namespace

Result<IntTuple> parse_int_tuple(std::string_view text) {
  return parse_as<IntTuple>(text, "an integer or a tuple", as_itself<IntTuple>);
}

Result<Layout> parse_layout(std::string_view text) { return parse_as<Layout>(text, "a layout", as_itself<Layout>); }

Result<Swizzle> parse_swizzle(std::string_view text) {
  return parse_as<Swizzle>(text, "a swizzle", as_itself<Swizzle>);
}

Result<ComposedLayout> parse_composed_layout(std::string_view text) {
  return parse_as<ComposedLayout>(text, "a swizzled layout", [](const Value& value) -> std::optional<ComposedLayout> {
    if (const Layout* layout = std::get_if<Layout>(&value)) return ComposedLayout{Swizzle(), 0, *layout};
    return as_itself<ComposedLayout>(value);
  });
}

Result<Tiler> parse_tiler(std::string_view text) { return parse_as<Tiler>(text, "a tiler", as_tiler); }

}  // namespace tilewright::layout
