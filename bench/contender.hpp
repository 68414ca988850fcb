// One implementation of a problem, Tilewright's or cuBLASLt's. The harness times several of them side by side.
#pragma once

#include <cstddef>
#include <functional>
#include <limits>
#include <string>

#include "tilewright/runtime/device.hpp"

namespace tilewright::bench {

/// No limit on cuBLASLt's workspace other than its size.
inline constexpr std::size_t kWholeWorkspace = std::numeric_limits<std::size_t>::max();

struct Contender {
  std::string name;                                                // "tilewright", "cublaslt", "cublaslt_best"
  std::string detail;                                              // the kernel's name, or the algorithm
  std::function<void(int set, runtime::StreamHandle stream)> run;  // enqueues one call on operand set `set`
  bool applies_epilogue = false;  // computes the problem's epilogue; otherwise D of plain(problem)
  // Additional relative error that is allowed, for a product that is rounded between two kernels or for a function that
  // is approximated.
  double rounding = 0.0;
  // The number of partial sums of split-K that are rounded to the type of D before they are added; 1: none are. It
  // allows no larger error, but explains one.
  int rounded_parts = 1;
};

}  // namespace tilewright::bench
