// Everything that could run a problem, best first, and everything that could not, with the reason.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tilewright/engine/remembered_choices.hpp"
#include "tilewright/registry/provider.hpp"

namespace tilewright::engine {

/// A kernel and what it is expected to cost on given arguments.
struct RankedKernel {
  registry::KernelPtr kernel;
  double estimate_us = 0.0;  // registry::kUnknownTime where its author gives none
};

struct Explanation {
  Target target;
  std::vector<RankedKernel> kernels;  // by predicted time; but the first is the measured best where `tuned` says so
  std::vector<registry::RefusedKernel> refused;
  std::optional<TunedChoice> tuned;
};

/// Lines for people: rank, predicted time, name and design of each kernel; then, if asked for, each refusal.
std::string to_text(const Explanation& explanation, bool with_refusals = true);

/// One object: target, tuned, kernels (name, estimate_us or null, metadata), refused (name, reason, code, operand,
/// numbers).
std::string to_json(const Explanation& explanation);

}  // namespace tilewright::engine
