// Which kernels compute a problem, in the order in which they are tried: discovery, prediction, and what was measured.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tilewright/engine/explanation.hpp"
#include "tilewright/engine/remembered_choices.hpp"
#include "tilewright/op/problem.hpp"
#include "tilewright/registry/registry.hpp"
#include "tilewright/runtime/device.hpp"

namespace tilewright::engine {

/// The providers of the families named. @throws InvalidArgument for a family that is not there
std::vector<registry::ProviderPtr> find_providers(std::span<const registry::ProviderPtr> providers,
                                                  std::span<const std::string> families);

/// What becomes of an exception of an author's code: a refusal of what it offers, or the caller's.
enum class OnFailure : std::uint8_t { refuse, rethrow };

/// Kernels of the providers for `target`, by predicted time. A provider or kernel whose author's code throws is refused
/// with what it threw, and so are kernels that do not fit `device` where that is the target and has fewer SMs than
/// plans count on. @pre op::validate(problem)
Explanation rank(std::span<const registry::ProviderPtr> providers, const op::Problem& problem, const Target& target,
                 const runtime::DeviceProperties& device, OnFailure on_failure = OnFailure::refuse);

/// Moves the kernel that was measured to be the best among exactly these, if there is one, to the front.
void put_tuned_first(const RememberedChoices& choices, const op::Problem& problem, Explanation& explanation);

/// Moves what the filter rejects to the refusals.
void apply(const registry::KernelFilter& filter, Explanation& explanation);

/// @throws InvalidArgument with every refusal
[[noreturn]] void throw_no_kernel(const op::Problem& problem, const Explanation& explanation);

}  // namespace tilewright::engine
