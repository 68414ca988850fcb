// Overload resolution for functions of expressions, and messages if no overload accepts the arguments.
#include "tilewright/layout/function_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "tilewright/base/error.hpp"
#include "tilewright/base/spelling.hpp"
#include "tilewright/base/text.hpp"

namespace tilewright::layout {
namespace {

// The kinds of arguments at one place, over the overloads with the same number of parameters: "layout | tiler".
std::string kinds_at(const std::vector<const Overload*>& overloads, std::size_t place) {
  std::vector<std::string_view> kinds;
  for (const Overload* overload : overloads) {
    const std::string_view kind = overload->parameters[place].kind;
    if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end()) kinds.push_back(kind);
  }
  return fmt::format("{}", fmt::join(kinds, " | "));
}

std::string parameter_list(const std::vector<const Overload*>& overloads) {
  std::vector<std::string> places;
  for (std::size_t i = 0; i < overloads.front()->parameters.size(); ++i) places.push_back(kinds_at(overloads, i));
  const bool repeats = overloads.front()->repeats;
  return fmt::format("({}{})", fmt::join(places, ", "), repeats ? ", ..." : "");
}

// Function names similar to `name`: by edit distance, or by a word in common.
std::vector<std::string_view> near_names(std::string_view name) {
  std::vector<std::pair<std::size_t, std::string_view>> near;
  for (const Function& function : functions()) {
    const bool part = name.size() >= 3 && function.name.find(name) != std::string_view::npos;
    const std::size_t letters = part ? 1 : edits(name, function.name);
    if (letters <= std::max<std::size_t>(2, name.size() / 3)) near.emplace_back(letters, function.name);
  }
  std::stable_sort(near.begin(), near.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string_view> names;
  for (std::size_t i = 0; i < std::min<std::size_t>(near.size(), 4); ++i) names.push_back(near[i].second);
  return names;
}

}  // namespace

bool Overload::accepts(const std::vector<Value>& arguments) const {
  if (repeats ? arguments.size() < parameters.size() : arguments.size() != parameters.size()) return false;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (!parameters[std::min(i, parameters.size() - 1)].accepts(arguments[i])) return false;
  }
  return true;
}

std::string Function::signature() const {
  std::vector<std::vector<const Overload*>> by_count;
  for (const Overload& overload : overloads) {
    const auto same = std::find_if(by_count.begin(), by_count.end(), [&](const auto& others) {
      return others.front()->parameters.size() == overload.parameters.size() &&
             others.front()->repeats == overload.repeats;
    });
    if (same == by_count.end()) {
      by_count.push_back({&overload});
    } else {
      same->push_back(&overload);
    }
  }
  std::vector<std::string> lists;
  for (const auto& alike : by_count) lists.push_back(parameter_list(alike));
  return fmt::format("{}{}", name, fmt::join(lists, " or "));
}

Value Function::operator()(const std::vector<Value>& arguments) const {
  for (const Overload& overload : overloads) {
    if (overload.accepts(arguments)) return overload.call(arguments);
  }
  std::vector<std::string_view> kinds;
  for (const Value& argument : arguments) kinds.push_back(kind_of(argument));
  throw InvalidArgument(fmt::format("expected {}, got ({})", signature(), fmt::join(kinds, ", ")));
}

const Function& find_function(std::string_view name) {
  const std::vector<Function>& all = functions();
  const auto found = std::find_if(all.begin(), all.end(), [&](const Function& f) { return f.name == name; });
  if (found != all.end()) return *found;
  const std::vector<std::string_view> near = near_names(name);
  throw InvalidArgument(
      fmt::format("no function {}{}{}", printable(name, 40), near.empty() ? "" : "; near: ", fmt::join(near, ", ")));
}

}  // namespace tilewright::layout
