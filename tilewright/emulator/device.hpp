// A GPU on the CPU: executes the PTX of kernels, and checks them as no GPU does.
#pragma once

#include <memory>

#include "tilewright/base/target.hpp"
#include "tilewright/emulator/options.hpp"
#include "tilewright/runtime/device.hpp"

namespace tilewright::emulator {

/// The instruction set is that of sm_90a as far as instructions/ has it: with mbarriers, bulk and tensor copies, wgmma
/// and clusters. Where the PTX ISA leaves a choice, it is the stricter one:
/// - cp.async writes when it is waited for; until then its bytes are in flight, and touching them is a finding;
/// - bulk copies and wgmma move and compute at once, but what they write, and registers they use, may not be touched,
///   nor what they read be overwritten, before the wait that the PTX ISA asks for; what the generic proxy wrote they
///   may read after a fence.proxy.async alone;
/// - a CTA of a cluster may not exit before all its peers did with its shared memory is ordered before its end;
/// - an .aligned barrier is for whole warps, and a barrier without a count for all threads of the CTA: threads that
///   exited instead are a finding, though a GPU lets the others pass;
/// - accesses of one warp are ordered by its instructions; those of different warps by barriers, and by atomic,
/// volatile
///   and release/acquire accesses to shared memory;
/// - in a cooperative launch, accesses to global memory by threads are held to the same order;
/// - shared memory starts as all ones, and so does an allocation: NaN.
/// "emulator:sm_80", "emulator:sm_90a". Launches run to their end before they return. load() takes the PTX of an image
/// and throws EmulationFinding (checks.hpp) when it has an instruction the emulator lacks; launch() throws it for the
/// first finding, of the CTA with the lowest index. After a finding the device goes on working.
/// @throws InvalidArgument for a target below sm_80
std::shared_ptr<runtime::Device> make_emulated_device(Target target, EmulatorOptions options = {});

}  // namespace tilewright::emulator
