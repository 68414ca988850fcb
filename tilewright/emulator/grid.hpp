// Runs the CTAs of a grid on host threads.
#pragma once

#include "tilewright/emulator/cluster.hpp"

namespace tilewright::emulator {

/// Runs a launch to its end, on EmulatorOptions::threads host threads.
/// @throws EmulationFinding: that of the cluster with the lowest index, if several have one; and as
/// check_interruption(). No worker thread is running any more when it throws.
void run_grid(Launch launch);

}  // namespace tilewright::emulator
