#include "tilewright/engine/engine.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <iterator>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <utility>

#include "tilewright/arch/limits.hpp"
#include "tilewright/cache/key.hpp"
#include "tilewright/cache/store.hpp"
#include "tilewright/compile/artifact.hpp"
#include "tilewright/compile/compiler.hpp"
#include "tilewright/engine/call_key.hpp"
#include "tilewright/engine/host_operands.hpp"
#include "tilewright/engine/tensor_maps.hpp"
#include "tilewright/engine/timer.hpp"
#include "tilewright/engine/tuner.hpp"
#include "tilewright/engine/workspaces.hpp"
#include "tilewright/kernels/list.hpp"

namespace tilewright::engine {
namespace {

constexpr double kMostSeconds = 3600.0;

int compile_threads(const Options& options) {
  if (options.compile_threads > 0) return options.compile_threads;
  return static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1U, 8U));
}

cache::StoreOptions store_options(const Options& options) {
  cache::StoreOptions store;
  store.root = options.cache_dir;
  store.on_disk = options.cache_on_disk;
  store.max_bytes = options.cache_max_bytes;
  return store;
}

runtime::LaunchConfig launch_config(const plan::Launch& launch) {
  runtime::LaunchConfig config;
  config.grid = {launch.grid[0], launch.grid[1], launch.grid[2]};
  config.block = {launch.block[0], launch.block[1], launch.block[2]};
  config.cluster = {launch.cluster[0], launch.cluster[1], launch.cluster[2]};
  config.dynamic_smem_bytes = launch.dynamic_smem_bytes;
  config.cooperative = launch.cooperative;
  return config;
}

// What to measure for such a call: alpha = 0 skips the product, and is a call of the same kernel as any other alpha.
op::Gemm measurable(const op::Gemm& arguments) {
  op::Gemm measured = arguments;
  if (measured.alpha == 0.0) measured.alpha = 1.0;
  if (measured.m() == 0 || measured.n() == 0 || !op::reads_product(measured)) {
    throw InvalidArgument(fmt::format("there is nothing to measure in a product of {}x{}x{}{}", measured.m(),
                                      measured.n(), measured.k(), measured.k() == 0 ? "" : " that counts as 0"));
  }
  return measured;
}

bool has_fewer_sms(const runtime::DeviceProperties& device) {
  return !device.emulated && device.sm_count < arch::limits(device.target).sm_count;
}

/// Plans count on all SMs of the architecture's part.
Support check_residence(const registry::Kernel& kernel, const op::Gemm& arguments,
                        const runtime::DeviceProperties& device) {
  const plan::Launch launch = kernel.launch(arguments);
  if (!launch.cooperative || static_cast<int>(launch.grid[0]) <= device.sm_count) return {};
  return refuse("its {} CTAs wait for each other, and {} has {} SMs", launch.grid[0], device.name, device.sm_count);
}

void check(const TuneOptions& options) {
  if (options.top < 1) throw InvalidArgument(fmt::format("tuning takes at least 1 candidate, got {}", options.top));
  if (!(options.seconds > 0.0 && options.seconds <= kMostSeconds)) {
    throw InvalidArgument(
        fmt::format("tuning takes more than 0 and at most {} seconds, got {}", kMostSeconds, options.seconds));
  }
}

}  // namespace

/// A kernel on the device, for every call of one kind.
struct ReadyKernel {
  registry::KernelPtr kernel;
  std::shared_ptr<runtime::LoadedKernel> loaded;
};

struct Engine::State {
  State(const Options& given, Providers more_providers)
      : options(given),
        device(open_device(given)),
        store(store_options(given)),
        workspaces(std::make_shared<Workspaces>(device)),
        providers(std::move(more_providers)),
        choices(store.root(), device_identity(*device)) {
    std::ranges::move(kernels::make_providers(), std::back_inserter(providers));
    if (options.tuning == Tuning::off) return;
    if (const Support read = choices.reload(); !read) spdlog::warn("tuning records are not used: {}", read.reason());
  }

  /// Compiled or cached, loaded once an engine.
  std::shared_ptr<runtime::LoadedKernel> load(const registry::KernelPtr& kernel, const plan::Launch& launch);

  Options options;
  std::shared_ptr<runtime::Device> device;
  cache::Store store;
  std::shared_ptr<Workspaces> workspaces;
  Providers providers;
  RememberedChoices choices;
  std::mutex tuning_mutex;  // one tuning at a time, undisturbed by its like

  std::mutex mutex;  // guards what follows
  std::unique_ptr<compile::Compiler> compiler;
  std::unordered_map<Digest, std::shared_ptr<runtime::LoadedKernel>, cache::KeyHash> loaded;  // by source_digest()
  std::unordered_map<CallKey, ReadyKernel, CallKeyHash> ready;
};

void PreparedGemm::run(runtime::StreamHandle stream) const {
  if (is_empty_) return;
  runtime::LaunchConfig config = config_;
  config.stream = stream;
  if (launch_.workspace_bytes() == 0) return loaded_->launch(config, launch_.parameters());
  plan::Launch launch = launch_;
  set_workspace(*device_, launch, workspaces_->at_least(launch.workspace_bytes(), stream));
  loaded_->launch(config, launch.parameters());
}

Engine::Engine(const Options& options, Providers more_providers)
    : state_(std::make_unique<State>(options, std::move(more_providers))) {}
Engine::~Engine() = default;

const std::shared_ptr<runtime::Device>& Engine::device() const { return state_->device; }
cache::Store& Engine::cache() { return state_->store; }
RememberedChoices& Engine::choices() { return state_->choices; }

const compile::Compiler& Engine::compiler() {
  const std::scoped_lock lock(state_->mutex);
  if (!state_->compiler) state_->compiler = compile::make_compiler(state_->options.toolchain);
  return *state_->compiler;
}

Explanation Engine::explain(const op::Gemm& arguments, const registry::KernelFilter& filter,
                            std::optional<Target> target) const {
  return rank(arguments, filter, target, state_->options.tuning);
}

Explanation Engine::rank(const op::Gemm& arguments, const registry::KernelFilter& filter, std::optional<Target> target,
                         Tuning tuning) const {
  op::validate(arguments).or_throw();
  const Target here = state_->device->properties().target;
  registry::Discovery found;
  for (const auto& provider : state_->providers) provider->discover(arguments, target.value_or(here), found);
  Explanation explanation;
  explanation.refused = std::move(found.refused);
  std::optional<TunedChoice> tuned;
  if (tuning != Tuning::off && target.value_or(here) == here) tuned = state_->choices.find(arguments, found.kernels);
  // A part of the GPU, or a smaller one of its kind.
  const bool is_small = target.value_or(here) == here && has_fewer_sms(state_->device->properties());
  for (registry::KernelPtr& kernel : found.kernels) {
    if (const Support fits = is_small ? check_residence(*kernel, arguments, state_->device->properties()) : Support();
        !fits) {
      explanation.refused.push_back({kernel->name(), fits.reason()});
      continue;
    }
    if (filter && !filter(kernel->metadata())) {
      explanation.refused.push_back({kernel->name(), "rejected by the caller's filter"});
      continue;
    }
    const double estimate_us = kernel->estimate_us(arguments);
    explanation.kernels.push_back({std::move(kernel), estimate_us});
  }
  std::stable_sort(explanation.kernels.begin(), explanation.kernels.end(),
                   [](const RankedKernel& x, const RankedKernel& y) { return x.estimate_us < y.estimate_us; });
  if (!tuned) return explanation;
  const auto winner = std::ranges::find_if(
      explanation.kernels, [&](const RankedKernel& ranked) { return ranked.kernel->name() == tuned->kernel; });
  if (winner == explanation.kernels.end()) return explanation;  // rejected by the filter
  std::rotate(explanation.kernels.begin(), winner, winner + 1);
  explanation.tuned = std::move(tuned);
  return explanation;
}

std::vector<RankedKernel> Engine::find_kernels(const op::Gemm& arguments, const registry::KernelFilter& filter,
                                               std::optional<Target> target) const {
  return explain(arguments, filter, target).kernels;
}

registry::KernelPtr Engine::make_kernel(const op::GemmDescription& description, const plan::Design& design) const {
  std::string reasons;
  for (const auto& provider : state_->providers) {
    Result<registry::KernelPtr> kernel = provider->make(description, design);
    if (kernel) return *std::move(kernel);
    reasons += fmt::format("{}{}: {}", reasons.empty() ? "" : "; ", provider->family(), kernel.reason());
  }
  throw InvalidArgument("no kernel of this design: " + reasons);
}

std::vector<std::shared_ptr<const compile::Artifact>> Engine::compile(std::span<const registry::KernelPtr> kernels) {
  std::vector<compile::Source> sources;
  sources.reserve(kernels.size());
  for (const registry::KernelPtr& kernel : kernels) sources.push_back(kernel->source());
  return state_->store.get_or_compile_all(sources, compiler(), compile_threads(state_->options));
}

std::shared_ptr<const compile::Artifact> Engine::compile(const registry::KernelPtr& kernel) {
  return compile(std::span(&kernel, 1)).front();
}

std::shared_ptr<runtime::LoadedKernel> Engine::State::load(const registry::KernelPtr& kernel,
                                                           const plan::Launch& launch) {
  const Digest digest = kernel->source_digest();
  {
    const std::scoped_lock lock(mutex);
    if (const auto found = loaded.find(digest); found != loaded.end()) return found->second;
    if (!compiler) compiler = compile::make_compiler(options.toolchain);
  }
  const cache::ArtifactPtr artifact = store.get_or_compile(kernel->source(), *compiler);
  std::shared_ptr<runtime::LoadedKernel> fresh =
      device->load({artifact->cubin, artifact->ptx}, artifact->symbol, launch.dynamic_smem_bytes);
  const std::scoped_lock lock(mutex);
  return loaded.emplace(digest, std::move(fresh)).first->second;
}

TuningReport Engine::tune(const op::Gemm& arguments, const TuneOptions& options) {
  const std::scoped_lock tuning(state_->tuning_mutex);
  const auto lock = state_->choices.records().lock(state_->choices.device(), options.lock_timeout_s);
  return tune_alone(arguments, options, lock ? Support() : Support(lock.refusal()));
}

TuningReport Engine::tune_alone(const op::Gemm& arguments, const TuneOptions& options, const Support& is_alone) {
  check(options);
  op::validate(arguments).or_throw();
  const op::Gemm measured = measurable(arguments);
  std::shared_ptr<Timer> timer = state_->options.timer;
  if (!options.checks_only && !timer) {
    Result<std::shared_ptr<Timer>> made = make_timer(state_->device);
    if (!made) throw Error(made.reason());
    timer = *std::move(made);
  }
  const std::vector<RankedKernel> ranked = rank(measured, {}, {}, Tuning::off).kernels;
  RememberedChoices& choices = state_->choices;
  const std::string problem = problem_class(measured);
  FaultJournal journal(choices.records(), choices.device(), problem, bool(is_alone));
  Tuner tuner(*this, measured, ranked, options.top, journal);
  tuner.check_candidates();
  if (!options.checks_only) tuner.time_candidates(*timer, options.seconds);

  TuningReport report = tuner.report();
  report.device = choices.device();
  report.problem = problem;
  report.warnings = journal.warnings();
  if (!is_alone && !choices.records().root().empty()) report.warnings.push_back("not alone: " + is_alone.reason());
  if (!report.winner) return report;
  std::vector<registry::KernelPtr> kernels;
  for (const RankedKernel& each : ranked) kernels.push_back(each.kernel);
  if (const Support kept = choices.remember(report, kernels); !kept) report.warnings.push_back(kept.reason());
  const std::scoped_lock guard(state_->mutex);
  state_->ready.erase(make_call_key(arguments));
  return report;
}

// The call goes on whatever becomes of this: a choice is worth having, and not worth failing for.
void Engine::tune_if_new(const op::Gemm& arguments) {
  RememberedChoices& choices = state_->choices;
  const TuneOptions options;
  try {
    if (!op::reads_product(arguments) || arguments.m() == 0 || arguments.n() == 0 || explain(arguments).tuned) return;
    const std::scoped_lock tuning(state_->tuning_mutex);
    const auto lock = choices.records().lock(choices.device(), options.lock_timeout_s);
    static_cast<void>(choices.reload());  // whoever held the lock may have tuned the same
    if (explain(arguments).tuned) return;
    const TuningReport report = tune_alone(arguments, options, lock ? Support() : Support(lock.refusal()));
    if (!report.stopped.empty()) spdlog::error("tuning broke the device: {}", report.stopped);
    for (const std::string& warning : report.warnings) spdlog::warn("tuning: {}", warning);
  } catch (const Error& error) {
    spdlog::warn("not tuned: {}", error.what());
  }
}

PreparedGemm Engine::prepare(const op::Gemm& arguments, const registry::KernelPtr& kernel) {
  op::validate(arguments).or_throw();
  PreparedGemm prepared;
  prepared.is_empty_ = arguments.is_empty();
  if (const op::MemoryDevice here = memory_device(device()->properties());
      !prepared.is_empty_ && arguments.d.device != here) {
    throw InvalidArgument(fmt::format("the operands are on {}, this engine's device is {}",
                                      op::to_string(arguments.d.device), op::to_string(here)));
  }
  if (kernel != nullptr) {
    kernel->supports(arguments).or_throw();
    prepared.kernel_ = kernel;
    prepared.launch_ = kernel->launch(arguments);
    if (!prepared.is_empty_) prepared.loaded_ = state_->load(kernel, prepared.launch_);
  } else {
    const CallKey key = make_call_key(arguments);
    std::unique_lock lock(state_->mutex);
    const auto found = state_->ready.find(key);
    if (found != state_->ready.end()) {
      prepared.kernel_ = found->second.kernel;
      prepared.loaded_ = found->second.loaded;
      lock.unlock();
      prepared.launch_ = prepared.kernel_->launch(arguments);
    } else {
      lock.unlock();
      if (state_->options.tuning == Tuning::on_first_use) tune_if_new(arguments);
      const std::vector<RankedKernel> ranked = find_kernels(arguments);
      TILEWRIGHT_CHECK(!ranked.empty(), "no kernel serves a valid problem of {}", name(arguments.a.dtype));
      prepared.kernel_ = ranked.front().kernel;
      prepared.launch_ = prepared.kernel_->launch(arguments);
      if (!prepared.is_empty_) prepared.loaded_ = state_->load(prepared.kernel_, prepared.launch_);
      lock.lock();
      state_->ready.insert_or_assign(key, ReadyKernel{prepared.kernel_, prepared.loaded_});
    }
  }
  if (!prepared.is_empty_) encode_tensor_maps(*state_->device, prepared.launch_);
  prepared.config_ = launch_config(prepared.launch_);
  prepared.workspaces_ = state_->workspaces;
  prepared.device_ = state_->device;
  return prepared;
}

void Engine::run(const op::Gemm& arguments, const registry::KernelPtr& kernel, runtime::StreamHandle stream) {
  op::validate(arguments).or_throw();
  if (arguments.is_empty()) return;
  if (arguments.d.device.kind != op::MemoryDevice::Kind::host) {
    prepare(arguments, kernel).run(stream);
    return;
  }
  HostOperands operands(arguments, state_->device, stream);
  prepare(operands.on_device(), kernel).run(stream);
  operands.copy_out();
}

}  // namespace tilewright::engine
