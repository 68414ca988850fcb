// The functions that expressions may call: the algebra, by name.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tilewright/layout/value.hpp"

namespace tilewright::layout {

/// One list of parameters that a function takes.
struct Overload {
  /// What the parameter is called in signatures, and whether a value can be passed as it.
  struct Parameter {
    std::string_view kind;
    bool (*accepts)(const Value&);
  };
  std::vector<Parameter> parameters;
  bool repeats = false;  // the last parameter stands for one or more arguments
  /// @pre accepts(arguments). @throws InvalidArgument as the algebra does.
  std::function<Value(const std::vector<Value>& arguments)> call;

  bool accepts(const std::vector<Value>& arguments) const;
};

struct Function {
  std::string_view name;
  std::string_view meaning;  // one line
  std::vector<Overload> overloads;

  /// "composition(layout | swizzled layout, layout | tiler)"; one list of parameters for each number of them.
  std::string signature() const;
  /// The value of the first overload that accepts the arguments. @throws InvalidArgument where none does, with the
  /// signature; and as the algebra does.
  Value operator()(const std::vector<Value>& arguments) const;
};

/// All, in the order of the manual: constructions, structure, sizes, coordinates, algebra, swizzles, tests.
const std::vector<Function>& functions();

/// @throws InvalidArgument naming the nearest names when there is none of that name.
const Function& find_function(std::string_view name);

}  // namespace tilewright::layout
