// Kinds, notation and construction of the values of expressions.
#include "tilewright/layout/value.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "tilewright/base/error.hpp"

namespace tilewright::layout {
namespace {

template <class... Verbs>
struct Overloaded : Verbs... {
  using Verbs::operator()...;
};
template <class... Verbs>
Overloaded(Verbs...) -> Overloaded<Verbs...>;  // clang 16 needs the deduction guide

std::string_view kind_of_tuple(const IntTuple& t) {
  if (t.is_integer()) return "integer";
  if (t.is_underscore()) return "_";
  return t.is_leaf() ? "scaled basis" : "tuple";
}

const IntTuple& tuple_of(const Value& value, std::string_view what) {
  const IntTuple* t = std::get_if<IntTuple>(&value);
  if (t == nullptr)
    throw InvalidArgument(fmt::format("a {} is a tuple, got {} {}", what, kind_of(value), notation(value)));
  return *t;
}

}  // namespace

std::string_view kind_of(const Value& value) {
  return std::visit(Overloaded{[](const IntTuple& t) { return kind_of_tuple(t); },
                               [](bool) { return std::string_view("truth value"); },
                               [](const Layout&) { return std::string_view("layout"); },
                               [](const LayoutAndOffset&) { return std::string_view("layout with an offset"); },
                               [](const Swizzle&) { return std::string_view("swizzle"); },
                               [](const ComposedLayout&) { return std::string_view("swizzled layout"); },
                               [](const Tiler&) { return std::string_view("tiler"); }},
                    value);
}

std::string notation(const Value& value) {
  return std::visit(
      Overloaded{[](bool truth) { return std::string(truth ? "true" : "false"); },
                 [](const LayoutAndOffset& part) { return to_string(part.offset) + " o " + to_string(part.layout); },
                 [](const auto& other) { return to_string(other); }},
      value);
}

std::optional<Layout> as_layout(const Value& value) {
  if (const Layout* layout = std::get_if<Layout>(&value)) return *layout;
  const IntTuple* t = std::get_if<IntTuple>(&value);
  if (t == nullptr || !t->is_integer()) return std::nullopt;
  return Layout(*t, 1);
}

std::optional<Tiler> as_tiler(const Value& value) {
  if (const Tiler* tiler = std::get_if<Tiler>(&value)) return *tiler;
  if (const Layout* layout = std::get_if<Layout>(&value)) return *layout;
  const IntTuple* t = std::get_if<IntTuple>(&value);
  if (t == nullptr || has_basis(*t)) return std::nullopt;
  return make_tiler(*t);
}

Value make_tuple_value(const std::vector<Value>& modes) {
  const auto is_tuple = [](const Value& mode) { return std::holds_alternative<IntTuple>(mode); };
  if (std::all_of(modes.begin(), modes.end(), is_tuple)) {
    std::vector<IntTuple> tuples;
    for (const Value& mode : modes) tuples.push_back(std::get<IntTuple>(mode));
    return IntTuple::tuple(std::move(tuples));
  }
  if (modes.size() == 1) return modes.front();
  return make_tiler_value(modes);
}

Tiler make_tiler_value(const std::vector<Value>& modes) {
  std::vector<Tiler> tilers;
  for (const Value& mode : modes) {
    std::optional<Tiler> tiler = as_tiler(mode);
    if (!tiler)
      throw InvalidArgument(
          fmt::format("a tiler consists of layouts, integers and _, got {} {}", kind_of(mode), notation(mode)));
    tilers.push_back(*std::move(tiler));
  }
  return Tiler::tuple(std::move(tilers));
}

Layout make_layout_value(const Value& shape, const Value& stride) {
  const IntTuple& extents = tuple_of(shape, "shape");
  return Layout(extents, tuple_of(stride, "stride"));
}

Swizzle make_swizzle_value(const std::vector<Value>& parameters) {
  TILEWRIGHT_CHECK(parameters.size() == 3, "Sw needs 3 parameters, got {}", parameters.size());
  std::array<int, 3> numbers{};
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const std::int64_t number = std::get<IntTuple>(parameters[i]).value();
    if (number < -63 || number > 63)
      throw InvalidArgument(fmt::format("the parameters of a swizzle are from -63 to 63, got {}", number));
    numbers[i] = static_cast<int>(number);
  }
  return {numbers[0], numbers[1], numbers[2]};
}

std::optional<Value> make_composed_value(const Value& outer, const Value& inner) {
  const Layout* layout = std::get_if<Layout>(&inner);
  const LayoutAndOffset* part = std::get_if<LayoutAndOffset>(&inner);
  const Swizzle* swizzle = std::get_if<Swizzle>(&outer);
  const IntTuple* offset = std::get_if<IntTuple>(&outer);
  if (offset != nullptr && layout != nullptr) return LayoutAndOffset{*layout, *offset};
  if (swizzle != nullptr && layout != nullptr) return ComposedLayout{*swizzle, 0, *layout};
  if (swizzle != nullptr && part != nullptr) return ComposedLayout{*swizzle, part->offset.value(), part->layout};
  return std::nullopt;
}

}  // namespace tilewright::layout
