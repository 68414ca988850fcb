// Ranks the kernels of a problem: by predicted time, after the tuned choice if there is one.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tilewright/engine/explanation.hpp"
#include "tilewright/engine/remembered_choices.hpp"
#include "tilewright/engine/requirement.hpp"
#include "tilewright/op/problem.hpp"
#include "tilewright/registry/registry.hpp"
#include "tilewright/runtime/device.hpp"

namespace tilewright::engine {

/// The providers of these families. @throws InvalidArgument for an unknown family
std::vector<registry::ProviderPtr> find_providers(std::span<const registry::ProviderPtr> providers,
                                                  std::span<const std::string> families);

/// How an exception in user code is handled: its kernels are refused, or it is propagated to the caller.
enum class OnFailure : std::uint8_t { refuse, rethrow };

/// Discovers kernels for `target` and ranks them by predicted time. If the code of a provider or kernel throws, it is
/// refused with the exception's text as the reason, unless `on_failure` is rethrow. Kernels that do not meet
/// `requirement` are refused. If `device` is of the target but
/// has fewer SMs than plans assume, cooperative kernels with more CTAs than SMs are refused. @pre op::validate(problem)
Explanation rank(std::span<const registry::ProviderPtr> providers, const op::Problem& problem, const Target& target,
                 const runtime::DeviceProperties& device, const Requirement& requirement = {},
                 OnFailure on_failure = OnFailure::refuse);

/// Moves the kernels whose workspace for the problem is larger to the refusals.
void limit_workspaces(std::int64_t max_bytes, const op::Problem& problem, Explanation& explanation);

/// Refuses a kernel whose workspace for the problem is larger. @pre kernel.supports(problem)
Support check_workspace_limit(std::int64_t max_bytes, const registry::Kernel& kernel, const op::Problem& problem);

/// Moves the tuned choice to the front, if a tuning among exactly these kernels has chosen one.
void put_tuned_first(const RememberedChoices& choices, const op::Problem& problem, Explanation& explanation);

/// FirstUse::fastest_start: moves the fastest kernel that compiles quickly to the front, if its predicted time is at
/// most 5 % longer than the shortest one. A tuned choice stays first.
void put_quick_start_first(Explanation& explanation);

/// Moves the kernels that the filter rejects to the refusals.
void apply(const registry::KernelFilter& filter, Explanation& explanation);

/// @throws InvalidArgument with the reasons of the refusals, without those of kernels of other operations
[[noreturn]] void throw_no_kernel(const op::Problem& problem, const Explanation& explanation);

/// For a caller who found no kernel with `name`, or with a name that contains it.
/// @throws InvalidArgument with the reasons why kernels with such a name were refused, or else with the nearest names
[[noreturn]] void throw_unknown_name(const op::Problem& problem, const std::string& name,
                                     const Explanation& explanation);

}  // namespace tilewright::engine
