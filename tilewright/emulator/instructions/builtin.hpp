// Functions that PTX calls without defining them, and that the emulator implements.
#pragma once

#include <string_view>

#include "tilewright/emulator/program.hpp"

namespace tilewright::emulator {

struct BuiltinFunction {
  std::string_view name;
  std::size_t results = 0;
  std::size_t parameters = 0;
  /// Operands: the address in local memory of each parameter, then of each result.
  Handler execute = nullptr;
  bool uses_heap = false;
};

/// Null unless the function is __assertfail, vprintf, malloc or free.
const BuiltinFunction* find_builtin(std::string_view name);

}  // namespace tilewright::emulator
