// Evaluates the syntax tree of an expression. An error of a function gets the column of its call.
#include "tilewright/layout/expression.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "tilewright/base/error.hpp"
#include "tilewright/layout/function_table.hpp"

namespace tilewright::layout {
namespace {

std::int64_t count_leaves(const IntTuple& t) {
  if (t.is_leaf()) return 1;
  std::int64_t count = 0;
  for (int i = 0; i < t.rank(); ++i) count += count_leaves(t[i]);
  return count;
}

std::int64_t count_leaves(const Value& value) {
  if (const IntTuple* t = std::get_if<IntTuple>(&value)) return count_leaves(*t);
  if (const Layout* layout = std::get_if<Layout>(&value)) return count_leaves(layout->shape());
  if (const ComposedLayout* layout = std::get_if<ComposedLayout>(&value)) return count_leaves(layout->layout.shape());
  if (const LayoutAndOffset* part = std::get_if<LayoutAndOffset>(&value)) return count_leaves(part->layout.shape());
  return 1;
}

IntTuple coordinate_of(const std::vector<Value>& arguments) {
  std::vector<IntTuple> modes;
  for (const Value& argument : arguments) {
    const IntTuple* mode = std::get_if<IntTuple>(&argument);
    if (mode == nullptr)
      throw InvalidArgument(fmt::format("a coordinate consists of integers, got {}", kind_of(argument)));
    modes.push_back(*mode);
  }
  if (modes.empty()) throw InvalidArgument("expected a coordinate");
  return modes.size() == 1 ? modes.front() : IntTuple::tuple(std::move(modes));
}

Value apply(const Layout& layout, const IntTuple& at) {
  if (!has_underscore(at)) return coordinate(layout, at);
  return slice_and_offset(at, layout);
}

Value apply(const LayoutAndOffset& part, const IntTuple& at) {
  if (!has_underscore(at)) return part.offset + coordinate(part.layout, at);
  const LayoutAndOffset inner = slice_and_offset(at, part.layout);
  return LayoutAndOffset{inner.layout, part.offset + inner.offset};
}

Value apply(const ComposedLayout& layout, const IntTuple& at) {
  if (!has_underscore(at)) return IntTuple(layout(at));
  const LayoutAndOffset inner = slice_and_offset(at, layout.layout);
  return ComposedLayout{layout.swizzle, (layout.offset + inner.offset).value(), inner.layout};
}

Value apply(const Swizzle& swizzle, const IntTuple& at) { return IntTuple(swizzle(at.value())); }

Value apply(const Value& function, const std::vector<Value>& arguments) {
  const IntTuple at = coordinate_of(arguments);
  if (const Layout* layout = std::get_if<Layout>(&function)) return apply(*layout, at);
  if (const LayoutAndOffset* part = std::get_if<LayoutAndOffset>(&function)) return apply(*part, at);
  if (const ComposedLayout* layout = std::get_if<ComposedLayout>(&function)) return apply(*layout, at);
  if (const Swizzle* swizzle = std::get_if<Swizzle>(&function)) return apply(*swizzle, at);
  throw InvalidArgument(
      fmt::format("{} {} is not a function; to apply a layout, write it in parentheses: ((4,8):(8,1))(5)",
                  kind_of(function), notation(function)));
}

Value compose(const std::vector<Value>& links) {
  Value inner = links.back();
  for (std::size_t i = links.size() - 1; i-- > 0;) {
    std::optional<Value> composed = make_composed_value(links[i], inner);
    inner = composed ? *std::move(composed) : find_function("composition")({links[i], inner});
  }
  return inner;
}

Value value_of_phrase(const SyntaxNode& node, const std::vector<Value>& operands) {
  switch (node.kind) {
    case SyntaxNode::Kind::leaf:
      return node.leaf;
    case SyntaxNode::Kind::tuple:
      return make_tuple_value(operands);
    case SyntaxNode::Kind::tiler:
      return make_tiler_value(operands);
    case SyntaxNode::Kind::swizzle:
      return make_swizzle_value(operands);
    case SyntaxNode::Kind::layout:
      return make_layout_value(operands[0], operands[1]);
    case SyntaxNode::Kind::composition:
      return compose(operands);
    case SyntaxNode::Kind::call:
      return find_function(node.name)(operands);
    case SyntaxNode::Kind::application:
      return apply(operands.front(), {operands.begin() + 1, operands.end()});
  }
  TILEWRIGHT_CHECK(false, "a phrase of no kind");
}

}  // namespace

Value value_of(const SyntaxNode& node) {
  std::vector<Value> operands;
  for (const SyntaxNode& operand : node.operands) operands.push_back(value_of(operand));
  return at_column(node.column, [&] {
    Value value = value_of_phrase(node, operands);
    if (count_leaves(value) > max_value_leaves)
      throw InvalidArgument(fmt::format("a value has at most {} integers", max_value_leaves));
    return value;
  });
}

Result<Value> evaluate(std::string_view text) {
  try {
    return value_of(parse_syntax(text));
  } catch (const InvalidArgument& refused) {
    return Refusal{refused.what()};
  }
}

}  // namespace tilewright::layout
