// One way to compute a problem, ours or the vendor's: what the harness times side by side.
#pragma once

#include <functional>
#include <string>

#include "tilewright/runtime/device.hpp"

namespace tilewright::bench {

struct Contender {
  std::string name;                                                // "tilewright", "cublaslt", "cublaslt_best"
  std::string detail;                                              // the kernel's name, or the algorithm
  std::function<void(int set, runtime::StreamHandle stream)> run;  // enqueues one call on operand set `set`
  bool applies_epilogue = false;  // leaves what the problem's epilogue says; else D of plain(problem)
  double rounding = 0.0;  // relative error that it may have besides: of a product stored between, of an approximation
};

}  // namespace tilewright::bench
