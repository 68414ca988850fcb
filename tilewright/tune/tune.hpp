// Autotuning: chooses among the kernels of a problem by measured time.
#pragma once

#include <functional>

#include "tilewright/engine/engine.hpp"
#include "tilewright/tune/tuning.hpp"

namespace tilewright::tune {

/// Checks and times the best-ranked kernels on its own copies of the operands, and remembers the winner in memory and
/// on disk; from then on it is ranked first. The problem's memory is not accessed: only the alignment of its addresses
/// matters, and they may be host memory or null. Synchronizes the null stream, so it must not be called during stream
/// capture.
/// @throws InvalidArgument for options out of range and for a problem that is invalid or has nothing to measure, Error
/// if there is no timer, OutOfMemory if the copies of the operands do not fit, ToolchainNotFound
TuningReport tune(engine::Engine& engine, const op::Problem& problem, const TuneOptions& options = {});

/// Returns a function for Options::before_first_use, which tunes a problem without a remembered choice. Errors are
/// logged, and the call proceeds with the kernel that is ranked first by predicted time.
std::function<void(engine::Engine&, const op::Problem&)> on_first_use(const TuneOptions& options = {});

/// engine::Options::from_environment() with before_first_use set to on_first_use().
engine::Options options_from_environment();

}  // namespace tilewright::tune
