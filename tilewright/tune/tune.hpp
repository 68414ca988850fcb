// Measured choice among the kernels of a problem.
#pragma once

#include <functional>

#include "tilewright/engine/engine.hpp"
#include "tilewright/tune/tuning.hpp"

namespace tilewright::tune {

/// Measures the best-ranked kernels on memory of its own and remembers the winner, on disk for later engines: from now
/// on it comes first. Only the alignment of the problem's addresses counts; they may be host memory, or none at all.
/// Waits for the null stream; must not be called while a stream is captured.
/// @throws InvalidArgument for options out of range and a problem that is invalid or has nothing to measure, Error
/// where there is no timer, OutOfMemory where copies of the operands do not fit, ToolchainNotFound.
TuningReport tune(engine::Engine& engine, const op::Problem& problem, const TuneOptions& options = {});

/// For Options::before_first_use: tunes a problem that has no remembered choice. What goes wrong is logged, and the
/// call goes on with the ranking by predicted time.
std::function<void(engine::Engine&, const op::Problem&)> on_first_use(const TuneOptions& options = {});

/// engine::Options::from_environment(), able to tune on first use.
engine::Options options_from_environment();

}  // namespace tilewright::tune
