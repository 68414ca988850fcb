#include "tilewright/profile/profile.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "tilewright/arch/limits.hpp"
#include "tilewright/base/error.hpp"
#include "tilewright/base/interruption.hpp"
#include "tilewright/base/rounding.hpp"
#include "tilewright/base/text.hpp"
#include "tilewright/compile/artifact.hpp"
#include "tilewright/emulator/launch_recorder.hpp"
#include "tilewright/op/operand.hpp"
#include "tilewright/op/problem.hpp"
#include "tilewright/op/problem_text.hpp"
#include "tilewright/profile/instruction_counts.hpp"
#include "tilewright/registry/stated_design.hpp"
#include "tilewright/tune/fault_journal.hpp"
#include "tilewright/tune/tuner.hpp"
#include "tilewright/tune/tuning_operands.hpp"

namespace tilewright::profile {
namespace {

constexpr double kMaxSeconds = 3600.0;

void check(const ProfileOptions& options) {
  if (options.top < 1) throw InvalidArgument(fmt::format("a profile needs at least 1 kernel, got {}", options.top));
  if (options.least_samples < 1)
    throw InvalidArgument(fmt::format("a profile needs at least 1 sample, got {}", options.least_samples));
  if (!(options.seconds > 0.0 && options.seconds <= kMaxSeconds)) {
    throw InvalidArgument(fmt::format("the time of a profile must be above 0 and at most {} seconds, got {}",
                                      kMaxSeconds, options.seconds));
  }
}

/// The rate of the fastest unit for operands of this type, in operations per second.
double peak_flops(const arch::ArchLimits& limits, DType type, const runtime::DeviceProperties& device) {
  double fma = 0.0;
  for (const arch::MathUnit unit : {arch::MathUnit::simt, arch::MathUnit::mma_sync, arch::MathUnit::wgmma})
    fma = std::max(fma, arch::fma_per_clock(limits, unit, type));
  const int sms = device.emulated ? limits.sm_count : device.sm_count;
  return 2.0 * fma * sms * limits.clock_ghz * 1e9;
}

std::int64_t elements(const op::Tensor& tensor) {
  std::int64_t count = 1;
  for (int mode = 0; mode < tensor.shape.rank(); ++mode) count *= tensor.shape[mode];
  return count;
}

ProblemProfile describe_problem(const op::Problem& problem, const arch::ArchLimits& limits,
                                const runtime::DeviceProperties& device) {
  ProblemProfile profile;
  profile.problem = op::problem_text(problem);
  profile.operation = op::operation_name(problem);
  profile.group = profile.operation;
  profile.flops = op::operations(problem);
  for (const op::ConstOperand& operand : op::operands(problem)) {
    if (!operand.is_used) continue;
    profile.bytes += static_cast<double>(elements(*operand.tensor)) * bytes(operand.tensor->dtype);
  }
  const Result<op::GemmView> view = op::view(problem);
  if (!view) return profile;
  profile.m = view->m();
  profile.n = view->n();
  profile.k = view->k();
  profile.batch = view->batch();
  const DType type = view->a.tensor.dtype;
  profile.group += fmt::format(" {}", name(type));
  const double peak = peak_flops(limits, type, device);
  if (peak > 0.0 && profile.flops > 0.0)
    profile.bound_us = 1e6 * std::max(profile.flops / peak, profile.bytes / limits.dram_bytes_per_s);
  return profile;
}

double percentile(std::vector<double> sorted, double share) {
  const double place = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (place - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

Times summary(std::vector<double> samples) {
  std::ranges::sort(samples);
  return {.samples = static_cast<int>(samples.size()),
          .median_us = percentile(samples, 0.5),
          .p05_us = percentile(samples, 0.05),
          .p95_us = percentile(samples, 0.95)};
}

/// Sets how many CTAs an SM of the target holds at once.
void set_occupancy(KernelProfile& profile, const arch::ArchLimits& limits) {
  if (!profile.registers || *profile.registers == 0) return;
  constexpr int kWarp = 32;
  const auto threads = static_cast<int>(profile.block[0] * profile.block[1] * profile.block[2]);
  if (threads == 0) return;
  profile.ctas_per_sm =
      arch::resident_blocks(limits, threads, *profile.registers, static_cast<int>(profile.smem_bytes));
  profile.occupancy =
      static_cast<double>(*profile.ctas_per_sm * ceil_div(threads, kWarp)) / (limits.max_threads_per_sm / kWarp);
}

/// What is known without running the kernel. Returns the symbols of its functions.
std::vector<std::string> count(KernelProfile& profile, engine::Engine& engine, const registry::KernelPtr& kernel,
                               const op::Problem& problem) {
  const plan::Design* const design = registry::stated_design(kernel->metadata());
  const op::GemmSignature* const signature = kernel->metadata().signature.gemm();
  if (design != nullptr) {
    profile.design = plan::to_string(plan::flatten(*design, signature));
    if (signature != nullptr) profile.shared_layouts = plan::shared_layouts(*signature, *design);
  }
  const plan::Launch launch = kernel->launch(problem);
  profile.grid = launch.grid;
  profile.block = launch.block;
  profile.smem_bytes = launch.dynamic_smem_bytes;
  profile.workspace_bytes = static_cast<std::int64_t>(launch.workspace_bytes());
  const engine::ArtifactPtr artifact = engine.compile(kernel);
  profile.registers = artifact->registers;
  profile.spill_bytes = artifact->spill_bytes;
  profile.compile_ms = artifact->compile_ms;
  profile.smem_bytes += artifact->static_smem_bytes;
  profile.instructions = count_instructions(artifact->ptx);
  set_occupancy(profile, arch::limits(engine.device()->properties().target));
  std::vector<std::string> symbols = kernel->symbol_suffixes();
  for (std::string& symbol : symbols) symbol = artifact->symbol + symbol;
  const Result<op::GemmView> view = op::view(problem);
  if (!view || view->groups != op::GroupedMode::none || design == nullptr) return symbols;
  const plan::TileShape tile = plan::tiling(*design).tile;
  profile.tile = {static_cast<std::uint32_t>(tile.m), static_cast<std::uint32_t>(tile.n),
                  static_cast<std::uint32_t>(tile.k)};
  const auto tiles = [](std::int64_t extent, int of) { return std::ceil(static_cast<double>(extent) / of); };
  const double ctas = tiles(view->m(), tile.m) * tiles(view->n(), tile.n) * static_cast<double>(view->batch());
  const double row_bytes = static_cast<double>(tile.m) * bytes(view->a.tensor.dtype) +
                           static_cast<double>(tile.n) * bytes(view->b.tensor.dtype);
  profile.l2_bytes = ctas * static_cast<double>(view->k()) * row_bytes;
  return symbols;
}

/// Returns the counts of all functions, added up as one launch, or nullopt unless all of them were recorded.
std::optional<emulator::LaunchProfile> recorded(const emulator::LaunchRecorder& recorder,
                                                const std::vector<std::string>& symbols) {
  std::optional<emulator::LaunchProfile> all;
  for (const std::string& symbol : symbols) {
    const emulator::LaunchProfile* const launch = recorder.find(symbol);
    if (launch == nullptr) return std::nullopt;
    if (!all) {
      all = *launch;
      continue;
    }
    all->total += launch->total;
    all->kinds.insert(all->kinds.end(), launch->kinds.begin(), launch->kinds.end());
    all->lines.insert(all->lines.end(), launch->lines.begin(), launch->lines.end());
  }
  return all;
}

/// Verifies the kernels on memory of its own, and on the emulator counts what they execute. `symbols` are those of the
/// functions of each kernel. @throws InvalidArgument for problems that cannot be measured
void verify(engine::Engine& engine, const op::Problem& problem, std::span<const engine::RankedKernel> ranked,
            std::span<const std::vector<std::string>> symbols, std::vector<KernelProfile>& profiles) {
  const engine::RememberedChoices& choices = engine.choices();
  tune::FaultJournal journal(choices.records(), choices.device(), op::problem_class(problem), false);
  tune::Tuner tuner(engine, problem, ranked, static_cast<int>(ranked.size()), journal);
  const emulator::LaunchRecorder recorder;
  tuner.check_candidates();
  for (std::size_t i = 0; i < profiles.size(); ++i) {
    profiles[i].counts = recorded(recorder, symbols[i]);
    const tune::CandidateReport& found = tuner.report().candidates[i];
    profiles[i].reason = found.reason;
    switch (found.status) {
      case tune::CandidateStatus::sound:
        profiles[i].disposition = Disposition::passed;
        break;
      case tune::CandidateStatus::wrong:
      case tune::CandidateStatus::out_of_bounds:
        profiles[i].disposition = Disposition::wrong;
        break;
      case tune::CandidateStatus::not_reached:
        profiles[i].disposition = Disposition::not_run;
        break;
      default:
        profiles[i].disposition = Disposition::failed;
    }
  }
}

/// Times the sound kernels in rounds, each of which runs every kernel once, until the budget is spent.
void time(engine::Engine& engine, const op::Problem& problem, std::span<const engine::RankedKernel> ranked,
          tune::Timer& timer, const ProfileOptions& options, std::vector<KernelProfile>& profiles) {
  std::vector<std::size_t> sound;
  for (std::size_t i = 0; i < profiles.size(); ++i) {
    if (profiles[i].disposition == Disposition::passed || profiles[i].disposition == Disposition::not_verified)
      sound.push_back(i);
  }
  if (sound.empty()) return;
  const tune::TuningOperands operands(engine.device(), problem);
  tune::RotatingOperands sets(engine.device(), operands);
  std::vector<std::vector<double>> samples(sound.size());
  double spent_us = 0.0;
  constexpr int kWarmUps = 2;
  const auto is_done = [&](int round) {
    return round >= kWarmUps + options.least_samples && spent_us >= options.seconds * 1e6;
  };
  constexpr int kMaxRounds = 100000;
  try {
    for (int round = 0; round < kMaxRounds && !is_done(round); ++round) {
      check_interruption();
      std::vector<engine::PreparedCall> calls;
      for (const std::size_t each : sound)
        calls.push_back(engine.prepare(sets.next(), ranked[each].kernel, nullptr, registry::Promises()));
      const std::vector<double> times = timer.time(calls);
      for (std::size_t i = 0; i < sound.size(); ++i) {
        spent_us += times[i];
        if (round >= kWarmUps) samples[i].push_back(times[i]);
      }
    }
  } catch (...) {
    for (std::size_t i = 0; i < sound.size(); ++i) {
      if (!samples[i].empty()) profiles[sound[i]].times = summary(samples[i]);
    }
    throw;
  }
  for (std::size_t i = 0; i < sound.size(); ++i) profiles[sound[i]].times = summary(samples[i]);
}

void profile_kernels(engine::Engine& engine, const op::Problem& problem, tune::Timer* timer,
                     const ProfileOptions& options, ProblemProfile& profile) {
  const engine::Explanation found = engine.explain(problem, {}, {}, options.providers, options.required);
  profile.refused = static_cast<int>(found.refused.size());
  std::map<std::string, int> taken;  // of each provider, or under "" of all
  std::vector<engine::RankedKernel> ranked;
  for (const engine::RankedKernel& each : found.kernels) {
    if (each.kernel->name().find(options.kernel) == std::string::npos) continue;
    int& count = taken[options.providers.empty() ? "" : each.kernel->metadata().family];
    if (count++ < options.top) ranked.push_back(each);
  }
  for (const engine::RankedKernel& each : ranked) {
    KernelProfile& kernel = profile.kernels.emplace_back();
    kernel.kernel = each.kernel->name();
    kernel.provider = each.kernel->metadata().family;
    if (std::isfinite(each.estimate_us)) kernel.predicted_us = each.estimate_us;
  }
  const op::Problem measured = op::measurable(problem).value_or_throw();
  std::vector<std::vector<std::string>> symbols(ranked.size());
  for (std::size_t i = 0; i < ranked.size(); ++i) {
    check_interruption();
    try {
      symbols[i] = count(profile.kernels[i], engine, ranked[i].kernel, measured);
      profile.kernels[i].disposition = Disposition::not_verified;
    } catch (const ToolchainNotFound&) {
      throw;
    } catch (const Error& error) {
      if (is_interrupted()) throw;
      profile.kernels[i].disposition = Disposition::failed;
      profile.kernels[i].reason = first_line(error.what());
    }
  }
  if (options.verifies && !ranked.empty()) verify(engine, measured, ranked, symbols, profile.kernels);
  if (timer != nullptr) time(engine, measured, ranked, *timer, options, profile.kernels);
}

}  // namespace

std::string_view name(Disposition disposition) {
  static constexpr std::array<std::string_view, 5> kNames{"passed", "not_verified", "wrong", "failed", "not_run"};
  return kNames[static_cast<std::size_t>(disposition)];
}

Profile profile(engine::Engine& engine, std::span<const op::Problem> problems, const ProfileOptions& options,
                const std::function<void(const Progress&)>& on_progress) {
  check(options);
  for (const op::Problem& problem : problems) op::validate(problem).or_throw();
  const runtime::DeviceProperties& device = engine.device()->properties();
  const arch::ArchLimits& limits = arch::limits(device.target);
  std::shared_ptr<tune::Timer> timer = options.timer;
  if (!timer && !device.emulated) timer = tune::make_timer(engine.device()).value_or_throw();
  Profile result;
  result.device = device.name;
  result.target = device.target.name();
  result.is_emulated = device.emulated;
  result.peak_flops = peak_flops(limits, DType::f16, device);
  result.peak_bytes_per_s = limits.dram_bytes_per_s;
  Progress progress{.done = 0, .all = problems.size(), .last = nullptr};
  if (on_progress) on_progress(progress);
  try {
    for (const op::Problem& problem : problems) {
      check_interruption();
      ProblemProfile& profile = result.problems.emplace_back(describe_problem(problem, limits, device));
      profile_kernels(engine, problem, timer.get(), options, profile);
      ++progress.done;
      progress.last = &profile;
      if (on_progress) on_progress(progress);
    }
  } catch (...) {
    if (!is_interrupted() || !options.returns_when_interrupted) throw;
    result.is_complete = false;
  }
  return result;
}

}  // namespace tilewright::profile
