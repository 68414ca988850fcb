// The result of a query: the kernels that can run a problem, ranked, and the reason for every kernel that cannot.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tilewright/engine/remembered_choices.hpp"
#include "tilewright/registry/provider.hpp"

namespace tilewright::engine {

/// A kernel and its predicted time for a problem.
struct RankedKernel {
  registry::KernelPtr kernel;
  double estimate_us = 0.0;               // registry::kUnknownTime if the kernel has no estimate
  std::vector<std::string> remarks = {};  // registry::Kernel::remarks()
};

/// Why FirstUse::fastest_start put another kernel than the one with the shortest predicted time first.
struct QuickStart {
  std::string kernel;      // that comes first
  std::string instead_of;  // the one with the shortest predicted time
};

struct Explanation {
  Target target;
  /// By predicted time, except that the kernel in `tuned`, else the one in `quick_start`, comes first.
  std::vector<RankedKernel> kernels;
  std::vector<registry::RefusedKernel> refused;
  std::optional<TunedChoice> tuned;
  registry::Promises required = {};          // by the caller; kernels that do not make them are refused
  std::optional<plan::SumOrder> order = {};  // with batch_invariant, that of every kernel of a shipped family
  /// The predicted time of the best kernel if nothing were required. Only Engine::explain() sets it, if promises are
  /// required and there is such a kernel.
  std::optional<double> unrestricted_us = {};
  std::optional<QuickStart> quick_start = {};
};

/// A table with rank, predicted time, name, design and remarks of each kernel, followed by the refusals if
/// `with_refusals`. If promises are required, a line before it says what they cost.
std::string to_text(const Explanation& explanation, bool with_refusals = true);

/// A JSON object with target, tuned, required (deterministic, batch_invariant, order, unrestricted_us), kernels (name,
/// estimate_us or null, metadata, and remarks if there are any) and refused (name, reason, code, operand, numbers).
std::string to_json(const Explanation& explanation);

}  // namespace tilewright::engine
