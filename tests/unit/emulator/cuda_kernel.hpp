// Compiles CUDA C++ to PTX for tests.
#pragma once

#include <memory>
#include <string>

#include "tilewright/compile/compiler.hpp"

namespace tilewright::emulator {

/// Null when this machine has no NVRTC.
inline const compile::Compiler* compiler() {
  static const std::unique_ptr<compile::Compiler> one = []() -> std::unique_ptr<compile::Compiler> {
    try {
      return compile::make_compiler({});
    } catch (const ToolchainNotFound&) {
      return nullptr;
    }
  }();
  return one.get();
}

/// PTX of the kernel `symbol` in the text. @pre compiler() is not null
inline std::string ptx_of(const std::string& symbol, const std::string& text, Target target = kSm80) {
  compile::Source source;
  source.name = symbol;
  source.symbol = symbol;
  source.text = text;
  source.target = target;
  source.outputs = {false, true};
  return compiler()->compile(source).ptx;
}

}  // namespace tilewright::emulator
