// A device that executes the PTX of kernels on the CPU, and checks their memory accesses and synchronisation.
#pragma once

#include <memory>

#include "tilewright/base/target.hpp"
#include "tilewright/emulator/options.hpp"
#include "tilewright/runtime/device.hpp"

namespace tilewright::emulator {

/// A device of a target, named "emulator:sm_80", "emulator:sm_90a", ... It executes the
/// instructions in instructions/ that the target has (instruction_targets.hpp), and has the target's shared memory and
/// the arithmetic of its tensor cores. Where the PTX ISA leaves a choice, the emulator takes the stricter one:
/// - A cp.async writes its destination when it is waited for; accesses to the bytes before that are findings.
/// - Bulk copies and wgmma execute at once. Until the wait that the PTX ISA requires, it is a finding to access the
///   bytes they write or the registers they use, or to overwrite the bytes they read. Data that the generic proxy wrote
///   they may read only after a fence.proxy.async.
/// - A CTA of a cluster may not exit before its peers' accesses to its shared memory are ordered before its exit.
/// - An .aligned barrier must be executed by all threads of a warp that have not exited, and a barrier without a thread
///   count waits for all threads of the CTA that have not exited.
/// - Accesses of one warp are ordered by its instructions. Accesses of different warps are ordered by barriers, and by
///   atomic, volatile, release and acquire accesses to shared memory. Two writes of one value are no finding.
/// - In a cooperative launch, accesses to global memory by threads must be ordered in the same way.
/// - Shared memory and new allocations are filled with ones, which is NaN.
///
/// A launch returns after it has run to its end. load() takes the PTX of an image and throws EmulationFinding
/// (checks.hpp) for malformed PTX. launch() throws it for the first finding, that of the CTA with the lowest index; an
/// instruction that the emulator does not support is a finding when it is executed. The device remains usable after a
/// finding.
/// @throws InvalidArgument for a target that parse_emulated_target() refuses
std::shared_ptr<runtime::Device> make_emulated_device(Target target, EmulatorOptions options = {});

}  // namespace tilewright::emulator
