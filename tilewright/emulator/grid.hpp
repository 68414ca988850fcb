// Runs the CTAs of a grid, on as many host threads as asked for.
#pragma once

#include "tilewright/emulator/cluster.hpp"

namespace tilewright::emulator {

/// @throws EmulationFinding of the cluster with the lowest index that has one; what the calling thread's interrupt
/// check throws, after which no helping thread runs any more
void run_grid(const Launch& launch);

}  // namespace tilewright::emulator
