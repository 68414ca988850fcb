// The functions that expressions may call, by name.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tilewright/layout/value.hpp"

namespace tilewright::layout {

/// One overload of a function.
struct Overload {
  /// The kind of a parameter in signatures, and whether a value can be passed as it.
  struct Parameter {
    std::string_view kind;
    bool (*accepts)(const Value&);
  };
  std::vector<Parameter> parameters;
  bool repeats = false;  // the last parameter takes one or more arguments
  /// @pre accepts(arguments). @throws InvalidArgument as the algebra does.
  std::function<Value(const std::vector<Value>& arguments)> call;

  bool accepts(const std::vector<Value>& arguments) const;
};

struct Function {
  std::string_view name;
  std::string_view meaning;  // one line
  std::vector<Overload> overloads;

  /// "composition(layout | swizzled layout, layout | tiler)"; one list for each number of parameters.
  std::string signature() const;
  /// Calls the first overload that accepts the arguments. @throws InvalidArgument with the signature if there is none,
  /// and as the algebra does.
  Value operator()(const std::vector<Value>& arguments) const;
};

/// All functions, in the order of the manual.
const std::vector<Function>& functions();

/// The function of that name. @throws InvalidArgument with similar names if there is none
const Function& find_function(std::string_view name);

}  // namespace tilewright::layout
