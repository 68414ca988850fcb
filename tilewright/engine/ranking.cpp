#include "tilewright/engine/ranking.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tilewright/arch/limits.hpp"
#include "tilewright/base/interruption.hpp"
#include "tilewright/base/spelling.hpp"
#include "tilewright/base/text.hpp"
#include "tilewright/kernels/list.hpp"

namespace tilewright::engine {
namespace {

/// The last line of an exception's text. The text of an exception from Python is a traceback, which ends with what was
/// raised.
std::string last_line(const std::exception& error) {
  std::string_view text = error.what();
  while (text.ends_with('\n')) text.remove_suffix(1);
  const std::size_t line = text.rfind('\n');
  return printable(line == std::string_view::npos ? text : text.substr(line + 1), 400);
}

bool has_fewer_sms(const runtime::DeviceProperties& device) {
  return !device.emulated && device.sm_count < arch::limits(device.target).sm_count;
}

/// The CTAs of a cooperative kernel must be resident at once, and plans assume the SM count in arch::limits().
Support check_residence(const registry::Kernel& kernel, const op::Problem& problem,
                        const runtime::DeviceProperties& device) {
  const plan::Launch launch = kernel.launch(problem);
  const int resident = device.sm_count * launch.ctas_per_sm;
  if (!launch.cooperative || static_cast<int>(launch.grid[0]) <= resident) return {};
  return refuse("its {} CTAs must be co-resident, but {} has {} SMs", launch.grid[0], device.name, device.sm_count)
      .as(RefusalCode::resources);
}

/// Queries each provider. If one throws, its kernels are discarded and the exception's text is the reason.
registry::Discovery discover(std::span<const registry::ProviderPtr> providers, const op::Problem& problem,
                             const Target& target, const std::optional<plan::SumOrder>& order, OnFailure on_failure) {
  registry::Discovery found;
  for (const registry::ProviderPtr& provider : providers) {
    if (const Support runs = provider->runs_on(target); !runs) {
      found.refused.push_back({provider->family(), runs.refusal()});
      continue;
    }
    const std::size_t kernels = found.kernels.size();
    try {
      order ? provider->discover_with_order(problem, target, *order, found)
            : provider->discover(problem, target, found);
      const auto nulls = std::erase(found.kernels, nullptr);
      if (nulls != 0) {
        found.refused.push_back(
            {provider->family(), refuse("discover() appended a null kernel").as(RefusalCode::provider)});
      }
    } catch (const std::exception& error) {
      if (is_interrupted() || on_failure == OnFailure::rethrow) throw;
      found.kernels.resize(kernels);
      found.refused.push_back({provider->family(), refuse("failed: {}", last_line(error)).as(RefusalCode::provider)});
    }
  }
  return found;
}

/// Refuses a kernel whose design is for a target whose code does not run on `target`. Code of an older architecture of
/// the same major version runs; PTX of any older one does, too, if the driver of a GPU compiles it.
Support check_target(const registry::Kernel& kernel, const Target& target, bool is_emulated) {
  const Target& own = plan::tiling(kernel.metadata().design).target;
  if (target.runs_cubin(own)) return {};
  if (!is_emulated && target.runs_ptx(own) && kernel.source().language == compile::Language::ptx) return {};
  return refuse("its design is for {}, whose code does not run on {}", own.name(), target.name())
      .as(RefusalCode::architecture);
}

/// The predicted time in microseconds. Refused if the kernel's code throws, if it does not run on `target`, if the
/// kernel does not meet the requirement, or if it cannot be launched on `small`, a device with fewer SMs than plans
/// assume; null: the device has all of them.
Result<double> estimate(const registry::Kernel& kernel, const op::Problem& problem, const Target& target,
                        bool is_emulated, const Requirement& requirement, const runtime::DeviceProperties* small) {
  try {
    if (const Support met = check(requirement, kernel, problem); !met) return met.refusal();
    if (op::is_empty(problem)) return 0.0;  // nothing is launched
    if (const Support runs = check_target(kernel, target, is_emulated); !runs) return runs.refusal();
    if (const Support fits = small == nullptr ? Support() : check_residence(kernel, problem, *small); !fits)
      return fits.refusal();
    const double estimate_us = kernel.estimate_us(problem);
    if (std::isnan(estimate_us)) return refuse("its estimate is NaN").as(RefusalCode::provider);
    if (estimate_us < 0)
      return refuse("its estimate is {} us, which is below 0", estimate_us).as(RefusalCode::provider);
    return estimate_us;
  } catch (const std::exception& error) {
    if (is_interrupted()) throw;
    return refuse("its estimate failed: {}", last_line(error)).as(RefusalCode::provider);
  }
}

}  // namespace

std::vector<registry::ProviderPtr> find_providers(std::span<const registry::ProviderPtr> providers,
                                                  std::span<const std::string> families) {
  std::vector<registry::ProviderPtr> chosen;
  for (const std::string& family : families) {
    const auto found = std::ranges::find_if(providers, [&](const auto& each) { return each->family() == family; });
    if (found != providers.end()) {
      chosen.push_back(*found);
      continue;
    }
    std::vector<std::string> known;
    for (const registry::ProviderPtr& provider : providers) known.push_back(provider->family());
    throw InvalidArgument(
        fmt::format("unknown provider '{}': the registered ones are {}", printable(family), fmt::join(known, ", ")));
  }
  return chosen;
}

Explanation rank(std::span<const registry::ProviderPtr> providers, const op::Problem& problem, const Target& target,
                 const runtime::DeviceProperties& device, const Requirement& requirement, OnFailure on_failure) {
  const std::optional<plan::SumOrder> order = requirement.known_order();
  registry::Discovery found = discover(providers, problem, target, order, on_failure);
  Explanation explanation{.target = target,
                          .kernels = {},
                          .refused = std::move(found.refused),
                          .tuned = {},
                          .required = requirement.promises,
                          .order = order};
  const bool is_small = target == device.target && has_fewer_sms(device);  // a MIG instance, or a smaller GPU
  const bool is_emulated = target == device.target && device.emulated;
  for (registry::KernelPtr& kernel : found.kernels) {
    Result<double> estimate_us =
        estimate(*kernel, problem, target, is_emulated, requirement, is_small ? &device : nullptr);
    if (estimate_us) {
      std::vector<std::string> remarks = op::is_empty(problem) ? std::vector<std::string>() : kernel->remarks(problem);
      explanation.kernels.push_back({std::move(kernel), *estimate_us, std::move(remarks)});
    } else {
      explanation.refused.push_back({kernel->name(), estimate_us.refusal()});
    }
  }
  std::ranges::stable_sort(explanation.kernels, {}, &RankedKernel::estimate_us);
  return explanation;
}

void limit_workspaces(std::int64_t max_bytes, const op::Problem& problem, Explanation& explanation) {
  if (op::is_empty(problem)) return;
  std::erase_if(explanation.kernels, [&](const RankedKernel& ranked) {
    const Support fits = check_workspace_limit(max_bytes, *ranked.kernel, problem);
    if (!fits) explanation.refused.push_back({ranked.kernel->name(), fits.refusal()});
    return !fits;
  });
}

Support check_workspace_limit(std::int64_t max_bytes, const registry::Kernel& kernel, const op::Problem& problem) {
  const std::size_t needed = kernel.workspace_bytes(problem);
  if (needed <= static_cast<std::size_t>(max_bytes)) return {};
  return refuse("{} needs a workspace of {} bytes, but Options::max_workspace_bytes is {}", kernel.name(), needed,
                max_bytes)
      .as(RefusalCode::memory);
}

void put_tuned_first(const RememberedChoices& choices, const op::Problem& problem, Explanation& explanation) {
  std::vector<registry::KernelPtr> kernels;
  for (const RankedKernel& ranked : explanation.kernels) kernels.push_back(ranked.kernel);
  std::optional<TunedChoice> tuned = choices.find(problem, kernels);
  if (!tuned) return;
  const auto is_best = [&](const RankedKernel& ranked) { return ranked.kernel->name() == tuned->kernel; };
  const auto winner = std::ranges::find_if(explanation.kernels, is_best);
  if (winner == explanation.kernels.end()) return;  // the record names a kernel that does not exist any more
  std::rotate(explanation.kernels.begin(), winner, winner + 1);
  explanation.tuned = std::move(tuned);
}

void put_quick_start_first(Explanation& explanation) {
  constexpr double kMaxSlowdown = 1.05;
  std::vector<RankedKernel>& kernels = explanation.kernels;
  if (explanation.tuned || kernels.empty()) return;
  const auto quick =
      std::ranges::find_if(kernels, [](const RankedKernel& ranked) { return ranked.kernel->compiles_quickly(); });
  if (quick == kernels.end() || quick == kernels.begin()) return;
  if (!std::isfinite(quick->estimate_us) || quick->estimate_us > kMaxSlowdown * kernels.front().estimate_us) return;
  explanation.quick_start = QuickStart{quick->kernel->name(), kernels.front().kernel->name()};
  std::rotate(kernels.begin(), quick, quick + 1);
}

void apply(const registry::KernelFilter& filter, Explanation& explanation) {
  std::erase_if(explanation.kernels, [&](const RankedKernel& ranked) {
    if (filter(ranked.kernel->metadata())) return false;
    explanation.refused.push_back(
        {ranked.kernel->name(), refuse("rejected by the caller's filter").as(RefusalCode::filter)});
    return true;
  });
  const std::string first = explanation.kernels.empty() ? "" : explanation.kernels.front().kernel->name();
  if (explanation.tuned && explanation.tuned->kernel != first) explanation.tuned.reset();
  if (explanation.quick_start && explanation.quick_start->kernel != first) explanation.quick_start.reset();
}

namespace {

/// "simt_gemm, sm80_gemm and 3 more: the epilogue has a reduction": each reason once, with the first of those that give
/// it, in the order of their first mention.
std::vector<std::string> distinct_reasons(const std::vector<registry::RefusedKernel>& all) {
  struct Reason {
    std::string text;
    std::vector<std::string> names;
  };
  std::vector<Reason> reasons;
  for (const registry::RefusedKernel& refused : all) {
    const std::string text(refused.reason());
    auto found = std::ranges::find(reasons, text, &Reason::text);
    if (found == reasons.end()) found = reasons.insert(reasons.end(), {text, {}});
    found->names.push_back(refused.name);
  }
  constexpr std::size_t kMostNames = 3;
  std::vector<std::string> texts;
  for (const Reason& reason : reasons) {
    const std::span<const std::string> names(reason.names);
    const std::size_t shown = std::min(names.size(), kMostNames);
    const std::string more = names.size() > shown ? fmt::format(" and {} more", names.size() - shown) : "";
    texts.push_back(fmt::format("{}{}: {}", fmt::join(names.first(shown), ", "), more, reason.text));
  }
  return texts;
}

/// The refusals without those of kernels of other operations. An operation that is no GEMM is
/// computed by the shipped family of its name, if by any, so that what the other shipped families need is not relevant.
std::vector<registry::RefusedKernel> relevant_refusals(const op::Problem& problem,
                                                       std::vector<registry::RefusedKernel> refused) {
  static const std::vector<registry::ProviderPtr> shipped = kernels::make_providers();
  const std::string_view operation = op::operation_name(problem);
  const bool is_gemm = bool(op::view(problem));
  std::erase_if(refused, [&](const registry::RefusedKernel& each) {
    if (each.refusal.code == RefusalCode::operation) return true;
    return !is_gemm && each.name != operation &&
           std::ranges::any_of(shipped, [&](const auto& provider) { return provider->family() == each.name; });
  });
  return refused;
}

/// " that is deterministic", or nothing if no promise is required.
std::string promises_text(const Explanation& explanation) {
  return explanation.required.any() ? fmt::format(" that is {}", to_string(explanation.required)) : "";
}

}  // namespace

void throw_no_kernel(const op::Problem& problem, const Explanation& explanation) {
  const std::vector<std::string> reasons = distinct_reasons(relevant_refusals(problem, explanation.refused));
  throw InvalidArgument(fmt::format("no kernel for this {} on {}{}: {}", op::operation_name(problem),
                                    explanation.target.name(), promises_text(explanation),
                                    reasons.empty() ? "no registered provider has kernels of this operation"
                                                    : fmt::format("{}", fmt::join(reasons, "; "))));
}

void throw_unknown_name(const op::Problem& problem, const std::string& name, const Explanation& explanation) {
  std::vector<registry::RefusedKernel> refused = explanation.refused;
  std::erase_if(refused,
                [&](const registry::RefusedKernel& each) { return each.name.find(name) == std::string::npos; });
  if (!refused.empty()) {
    throw InvalidArgument(fmt::format("no kernel for this {} on {}{} has a name with '{}': {}",
                                      op::operation_name(problem), explanation.target.name(),
                                      promises_text(explanation), printable(name),
                                      fmt::join(distinct_reasons(refused), "; ")));
  }
  constexpr std::size_t kNearNames = 3;
  const std::string wanted = printable(name);
  std::vector<std::pair<std::size_t, std::string>> names;
  for (const RankedKernel& ranked : explanation.kernels)
    names.emplace_back(edits(wanted, ranked.kernel->name()), ranked.kernel->name());
  std::ranges::stable_sort(names, {}, &std::pair<std::size_t, std::string>::first);
  names.resize(std::min(names.size(), kNearNames));
  throw InvalidArgument(fmt::format("no kernel for this problem is named '{}'; the nearest names are {}", wanted,
                                    fmt::join(names | std::views::values, ", ")));
}

}  // namespace tilewright::engine
