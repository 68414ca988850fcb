#include "tilewright/engine/engine.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <mutex>
#include <thread>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "tilewright/arch/limits.hpp"
#include "tilewright/base/fork.hpp"
#include "tilewright/base/interruption.hpp"
#include "tilewright/base/lru_map.hpp"
#include "tilewright/base/text.hpp"
#include "tilewright/cache/key.hpp"
#include "tilewright/cache/store.hpp"
#include "tilewright/compile/artifact.hpp"
#include "tilewright/compile/compiler.hpp"
#include "tilewright/engine/host_operands.hpp"
#include "tilewright/engine/rankings.hpp"
#include "tilewright/engine/tensor_maps.hpp"
#include "tilewright/engine/workspaces.hpp"
#include "tilewright/kernels/list.hpp"

namespace tilewright::engine {
namespace {

int compile_threads(const Options& options) {
  if (options.compile_threads > 0) return options.compile_threads;
  return static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1U, 8U));
}

cache::StoreOptions store_options(const Options& options) {
  cache::StoreOptions store;
  store.root = options.cache_dir;
  store.on_disk = options.cache_on_disk;
  store.max_bytes = options.cache_max_bytes;
  store.shared_roots = options.shared_cache_dirs;
  store.lock_timeout_s = options.toolchain.timeout_s;
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

bool has_fewer_sms(const runtime::DeviceProperties& device) {
  return !device.emulated && device.sm_count < arch::limits(device.target).sm_count;
}

/// Plans count on all SMs of the architecture's part.
Support check_residence(const registry::Kernel& kernel, const op::Problem& problem,
                        const runtime::DeviceProperties& device) {
  const plan::Launch launch = kernel.launch(problem);
  if (!launch.cooperative || static_cast<int>(launch.grid[0]) <= device.sm_count) return {};
  return refuse("its {} CTAs wait for each other, and {} has {} SMs", launch.grid[0], device.name, device.sm_count)
      .as(RefusalCode::resources);
}

/// Those of the families named. @throws InvalidArgument for one that is not there
std::vector<registry::ProviderPtr> named(std::span<const registry::ProviderPtr> providers,
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
    throw InvalidArgument(fmt::format("no provider '{}'; there are: {}", printable(family), fmt::join(known, ", ")));
  }
  return chosen;
}

/// Asks each provider. One that throws loses its own kernels, with what it threw as the reason.
registry::Discovery discover(std::span<const registry::ProviderPtr> providers, const op::Problem& problem,
                             const Target& target) {
  registry::Discovery found;
  for (const registry::ProviderPtr& provider : providers) {
    if (const Support runs = provider->runs_on(target); !runs) {
      found.refused.push_back({provider->family(), runs.refusal()});
      continue;
    }
    const std::size_t kernels = found.kernels.size();
    try {
      provider->discover(problem, target, found);
    } catch (const std::exception& error) {
      if (is_interrupted()) throw;
      found.kernels.resize(kernels);
      found.refused.push_back(
          {provider->family(), refuse("failed: {}", printable(error.what(), 400)).as(RefusalCode::provider)});
    }
  }
  return found;
}

[[noreturn]] void throw_no_kernel(const op::Problem& problem, const Explanation& explanation) {
  std::vector<std::string> reasons;
  for (const registry::RefusedKernel& refused : explanation.refused)
    reasons.push_back(fmt::format("{}: {}", refused.name, refused.reason()));
  throw InvalidArgument(fmt::format("no kernel for this {} on {}{}{}", op::operation_name(problem),
                                    explanation.target.name(), reasons.empty() ? "" : ": ", fmt::join(reasons, "; ")));
}

/// The predicted time in microseconds. Refused where the kernel does not fit `small`, a device with fewer SMs than
/// plans count on (null: it has them all), and where its author's code fails.
Result<double> estimate(const registry::Kernel& kernel, const op::Problem& problem,
                        const runtime::DeviceProperties* small) {
  if (op::is_empty(problem)) return 0.0;  // nothing is launched
  try {
    if (const Support fits = small == nullptr ? Support() : check_residence(kernel, problem, *small); !fits)
      return fits.refusal();
    const double estimate_us = kernel.estimate_us(problem);
    if (std::isnan(estimate_us)) return refuse("its estimate is NaN").as(RefusalCode::provider);
    return estimate_us;
  } catch (const std::exception& error) {
    if (is_interrupted()) throw;
    return refuse("its estimate failed: {}", printable(error.what(), 400)).as(RefusalCode::provider);
  }
}

/// What was measured to be the best among exactly these kernels.
void put_first(const RememberedChoices& choices, const op::Problem& problem, Explanation& explanation) {
  std::vector<registry::KernelPtr> kernels;
  for (const RankedKernel& ranked : explanation.kernels) kernels.push_back(ranked.kernel);
  std::optional<TunedChoice> tuned = choices.find(problem, kernels);
  if (!tuned) return;
  const auto is_best = [&](const RankedKernel& ranked) { return ranked.kernel->name() == tuned->kernel; };
  const auto winner = std::ranges::find_if(explanation.kernels, is_best);
  if (winner == explanation.kernels.end()) return;  // it has another name now
  std::rotate(explanation.kernels.begin(), winner, winner + 1);
  explanation.tuned = std::move(tuned);
}

void apply(const registry::KernelFilter& filter, Explanation& explanation) {
  const std::string best = explanation.tuned ? explanation.tuned->kernel : "";
  std::erase_if(explanation.kernels, [&](const RankedKernel& ranked) {
    if (filter(ranked.kernel->metadata())) return false;
    explanation.refused.push_back(
        {ranked.kernel->name(), refuse("rejected by the caller's filter").as(RefusalCode::filter)});
    return true;
  });
  if (explanation.tuned && (explanation.kernels.empty() || explanation.kernels.front().kernel->name() != best))
    explanation.tuned.reset();
}

Support runs_here(const compile::Artifact& artifact, const runtime::DeviceProperties& device) {
  if (device.emulated && artifact.ptx.empty())
    return refuse("{} has no PTX, which {} executes", artifact.name, device.name).as(RefusalCode::artifact);
  const bool is_compiled_there = !device.emulated && artifact.cubin.empty();  // PTX: for any later GPU
  const bool runs = is_compiled_there && !artifact.target.arch_specific ? device.target.sm >= artifact.target.sm
                                                                        : device.target.runs(artifact.target);
  if (runs) return {};
  return refuse("{} is compiled for {}, {} is {}", artifact.name, artifact.target.name(), device.name,
                device.target.name())
      .as(RefusalCode::architecture);
}

/// Whether loading failed for what the image is, and not for the state of the device.
bool is_fault_of_image(const Error& error) {
  if (dynamic_cast<const EmulationError*>(&error) != nullptr) return true;
  const auto* const driver = dynamic_cast<const DriverError*>(&error);
  if (driver == nullptr) return false;
  // CUresult: INVALID_IMAGE, NO_BINARY_FOR_GPU, INVALID_PTX, UNSUPPORTED_PTX_VERSION, INVALID_SOURCE, NOT_FOUND.
  constexpr std::array kCodes{200, 209, 218, 222, 300, 500};
  return std::ranges::find(kCodes, driver->code()) != kCodes.end();
}

Support check_place(const op::Problem& problem, const runtime::Device& device) {
  const op::MemoryDevice here = memory_device(device.properties());
  const op::MemoryDevice there = op::device(problem);
  if (there == here) return {};
  return refuse("the operands are on {}, this engine's device is {}", op::to_string(there), op::to_string(here))
      .as(RefusalCode::memory);
}

Support check_workspace(std::size_t needed, const RunOptions& options) {
  constexpr std::uint64_t kAlignment = 256;
  if (options.workspace_bytes < needed) {
    return refuse("the kernel needs a workspace of {} bytes, got {}", needed, options.workspace_bytes)
        .as(RefusalCode::memory);
  }
  if (options.workspace % kAlignment != 0) {
    return refuse("a workspace must be aligned to {} bytes, got address {:#x}", kAlignment, options.workspace)
        .as(RefusalCode::alignment);
  }
  return {};
}

/// @pre the launch needs no workspace, or has it
void launch(runtime::LoadedKernel& loaded, runtime::LaunchConfig config, const plan::Launch& packed,
            const RunOptions& options) {
  config.stream = options.stream;
  config.parameter_offsets = packed.parameter_offsets();
  config.parameter_sizes = packed.parameter_sizes();
  loaded.launch(config, packed.parameters());
}

void launch_with_workspace(runtime::LoadedKernel& loaded, Workspaces& workspaces, plan::Launch& packed,
                           const RunOptions& options) {
  if (const plan::WorkspaceNeeds& needs = packed.workspace(); needs.bytes != 0) {
    const bool is_callers = options.workspace != 0;
    if (is_callers) check_workspace(needs.bytes, options).or_throw();
    const runtime::DeviceAddress workspace =
        is_callers ? options.workspace : workspaces.at_least(needs.bytes, options.stream);
    set_workspace(workspaces.device(), packed, workspace);
    if (needs.leading_zeros != 0)
      workspaces.device().fill(needs.given(workspace), 0, needs.leading_zeros, options.stream);
  }
  launch(loaded, launch_config(packed), packed, options);
}

/// Packs and launches.
void launch_anew(const registry::Kernel& kernel, runtime::LoadedKernel& loaded, Workspaces& workspaces,
                 const op::Problem& problem, const RunOptions& options) {
  plan::Launch packed = kernel.launch(problem);
  encode_tensor_maps(workspaces.device(), packed);
  launch_with_workspace(loaded, workspaces, packed, options);
}

/// Of a call whose key is not the prepared one's: what differs. More alignment than was prepared for is as good.
Support check_kind(const op::ProblemKey& prepared, const op::ProblemKey& given, const registry::Kernel& kernel,
                   const op::Problem& problem) {
  const Support same = op::check_same_extents(prepared, given);
  return same ? kernel.supports(problem) : same;
}

}  // namespace

/// A kernel on the device, for every call of one kind.
struct Engine::ReadyKernel {
  registry::KernelPtr kernel;
  std::shared_ptr<runtime::LoadedKernel> loaded;
  ArtifactPtr artifact = nullptr;  // that it was loaded from, where the caller gave one
};

/// A kind of call, and the kernel that was asked for: null for the best.
struct ReadyKey {
  op::ProblemKey call;
  const registry::Kernel* kernel = nullptr;
  bool operator==(const ReadyKey&) const = default;
};
struct ReadyKeyHash {
  std::size_t operator()(const ReadyKey& key) const {
    return op::ProblemKeyHash()(key.call) * 31 + std::hash<const void*>()(key.kernel);
  }
};

struct Engine::State {
  State(const Options& given, std::shared_ptr<registry::Registry> given_registry)
      : options(given),
        device(open_device(given)),
        store(store_options(given)),
        workspaces(std::make_shared<Workspaces>(device)),
        registry(given_registry ? std::move(given_registry) : kernels::make_registry()),
        choices(store.root(), device_identity(*device)),
        rankings(given.max_rankings),
        loaded(given.max_loaded_kernels),
        ready(given.max_remembered_calls) {
    if (options.tuning == Tuning::on_first_use && !options.before_first_use) {
      throw InvalidArgument(
          "Tuning::on_first_use needs Options::before_first_use: take tune::options_from_environment(), or set it to "
          "tune::on_first_use()");
    }
    if (options.tuning == Tuning::off) return;
    if (const Support read = choices.reload(); !read) spdlog::warn("tuning records are not used: {}", read.reason());
  }

  using LoadedPtr = std::shared_ptr<runtime::LoadedKernel>;

  /// `artifact` if there is one, else compiled or cached; loaded once an engine.
  LoadedPtr load(const registry::KernelPtr& kernel, const plan::Launch& launch, const ArtifactPtr& artifact);
  /// From the cache or the compiler; where there is no compiler, images that another one made.
  /// `on_ready` is called as each is ready, one call at a time.
  std::vector<ArtifactPtr> obtain_all(std::span<const compile::Source> sources,
                                      const std::function<void(const compile::Artifact&)>& on_ready);
  ArtifactPtr obtain(const compile::Source& source) { return obtain_all(std::span(&source, 1), {}).front(); }
  /// Compiled anew, once, where the device cannot load what the cache has.
  LoadedPtr load_source(const compile::Source& source, std::uint32_t dynamic_smem_bytes);
  LoadedPtr load_artifact(const compile::Artifact& artifact, std::uint32_t dynamic_smem_bytes) const;
  const compile::Compiler& get_compiler();
  std::optional<ReadyKernel> find_ready(const ReadyKey& key);
  /// `chosen_in`: the generation of the rankings that the kernel was chosen by; none: it was given.
  void keep_ready(const ReadyKey& key, ReadyKernel kernel, std::optional<std::uint64_t> chosen_in = {});
  /// When choices changed.
  void forget_best();

  Options options;
  std::shared_ptr<runtime::Device> device;
  cache::Store store;
  std::shared_ptr<Workspaces> workspaces;
  std::shared_ptr<registry::Registry> registry;
  RememberedChoices choices;
  Rankings rankings;
  std::mutex tuning_mutex;  // one tuning at a time, undisturbed by its like

  ForkSafeMutex mutex;  // guards what follows
  std::unique_ptr<compile::Compiler> compiler;
  LruMap<Digest, LoadedPtr, cache::DigestHash> loaded;  // by source_digest()
  LruMap<ReadyKey, ReadyKernel, ReadyKeyHash> ready;
};

void PreparedCall::run(const RunOptions& options) const {
  if (is_empty_) return;
  if (is_shape_) throw InvalidArgument("prepared by shape alone: run() needs the tensors");
  if (launch_.workspace_bytes() == 0) return launch(*loaded_, config_, launch_, options);
  plan::Launch packed = launch_;
  launch_with_workspace(*loaded_, *workspaces_, packed, options);
}

void PreparedCall::run(const Call& call, const RunOptions& options) const {
  if (!(call.key() == key_)) {
    check_kind(key_, call.key(), *kernel_, call.problem()).or_throw();
  } else if (!kernel_->decides_by_kind()) {
    kernel_->supports(call.problem()).or_throw();
  }
  if (is_empty_) return;
  check_place(call.problem(), workspaces_->device()).or_throw();
  launch_anew(*kernel_, *loaded_, *workspaces_, call.problem(), options);
}

registry::KernelPtr KernelListing::next() {
  while (true) {
    while (stream_ == nullptr) {
      if (provider_ == providers_->providers.size()) return nullptr;
      const registry::Provider& provider = *providers_->providers[provider_++];
      if (provider.runs_on(target_)) stream_ = provider.list(target_);
    }
    while (registry::KernelPtr kernel = stream_->next()) {
      if (!filter_ || filter_(kernel->metadata())) return kernel;
    }
    stream_ = nullptr;
  }
}

Engine::Engine(const Options& options, std::shared_ptr<registry::Registry> registry)
    : state_(std::make_unique<State>(options, std::move(registry))) {}
Engine::~Engine() = default;

const std::shared_ptr<runtime::Device>& Engine::device() const { return state_->device; }
registry::Registry& Engine::registry() { return *state_->registry; }
cache::Store& Engine::cache() { return state_->store; }
RememberedChoices& Engine::choices() { return state_->choices; }
void Engine::forget_rankings() { state_->forget_best(); }
std::unique_lock<std::mutex> Engine::lock_tuning() { return std::unique_lock(state_->tuning_mutex); }

const compile::Compiler& Engine::compiler() { return state_->get_compiler(); }

const compile::Compiler& Engine::State::get_compiler() {
  {
    const std::scoped_lock lock(mutex);
    if (compiler) return *compiler;
  }
  std::unique_ptr<compile::Compiler> made = compile::make_compiler(options.toolchain);
  const std::scoped_lock lock(mutex);
  if (!compiler) compiler = std::move(made);
  return *compiler;
}

Explanation Engine::explain(const op::Problem& problem, const registry::KernelFilter& filter,
                            std::optional<Target> target, std::span<const std::string> providers) const {
  Explanation explanation;
  if (providers.empty()) {
    explanation = *ranking(problem, target);
  } else {
    op::validate(problem).or_throw();
    const auto chosen = named(state_->registry->snapshot()->providers, providers);
    explanation = rank(problem, target.value_or(state_->device->properties().target), chosen, state_->options.tuning);
  }
  if (filter) apply(filter, explanation);
  return explanation;
}

std::shared_ptr<const Explanation> Engine::ranking(const Call& call, std::optional<Target> target) const {
  const op::Problem& problem = call.problem();
  const Target wanted = target.value_or(state_->device->properties().target);
  const std::shared_ptr<const registry::Registry::Snapshot> registry = state_->registry->snapshot();
  const std::span<const registry::ProviderPtr> providers(registry->providers);
  // A tuning chose among all kernels: with authors' among them, the choice is looked up when all are there.
  const bool has_added = registry->added != 0;
  const Tuning tuning = has_added ? Tuning::off : state_->options.tuning;
  const RankingKey key{call.key(), wanted, tuning};
  const std::uint64_t generation = state_->rankings.generation();
  std::shared_ptr<const Explanation> shipped = state_->rankings.find(key);
  if (shipped == nullptr) {
    shipped = std::make_shared<const Explanation>(rank(problem, wanted, providers.subspan(registry->added), tuning));
    state_->rankings.insert(key, shipped, generation);
  }
  if (!has_added) return shipped;
  auto all = std::make_shared<Explanation>(rank(problem, wanted, providers.first(registry->added), Tuning::off));
  all->refused.insert(all->refused.end(), shipped->refused.begin(), shipped->refused.end());
  all->kernels.insert(all->kernels.end(), shipped->kernels.begin(), shipped->kernels.end());
  std::ranges::stable_sort(all->kernels, {}, &RankedKernel::estimate_us);
  if (state_->options.tuning != Tuning::off && wanted == state_->device->properties().target)
    put_first(state_->choices, problem, *all);
  return all;
}

// @pre op::validate(problem)
Explanation Engine::rank(const op::Problem& problem, const Target& target,
                         std::span<const registry::ProviderPtr> providers, Tuning tuning) const {
  const runtime::DeviceProperties& device = state_->device->properties();
  registry::Discovery found = discover(providers, problem, target);
  Explanation explanation{.target = target, .kernels = {}, .refused = std::move(found.refused), .tuned = {}};
  const bool is_small = target == device.target && has_fewer_sms(device);  // a part of the GPU, or a smaller one
  for (registry::KernelPtr& kernel : found.kernels) {
    Result<double> estimate_us = estimate(*kernel, problem, is_small ? &device : nullptr);
    if (estimate_us) {
      explanation.kernels.push_back({std::move(kernel), *estimate_us});
    } else {
      explanation.refused.push_back({kernel->name(), estimate_us.refusal()});
    }
  }
  std::ranges::stable_sort(explanation.kernels, {}, &RankedKernel::estimate_us);
  if (tuning != Tuning::off && target == device.target) put_first(state_->choices, problem, explanation);
  return explanation;
}

std::vector<RankedKernel> Engine::rank_by_estimate(const op::Problem& problem) const {
  return rank(problem, state_->device->properties().target, state_->registry->snapshot()->providers, Tuning::off)
      .kernels;
}

std::vector<RankedKernel> Engine::find_kernels(const op::Problem& problem, const registry::KernelFilter& filter,
                                               std::optional<Target> target,
                                               std::span<const std::string> providers) const {
  if (!filter && providers.empty()) return ranking(problem, target)->kernels;
  return explain(problem, filter, target, providers).kernels;
}

registry::KernelPtr Engine::find_kernel(const std::string& name, const op::Problem& problem) const {
  const std::shared_ptr<const Explanation> found = ranking(problem);
  for (const RankedKernel& ranked : found->kernels) {
    if (ranked.kernel->name() == name) return ranked.kernel;
  }
  for (const registry::RefusedKernel& refused : found->refused) {
    if (refused.name == name) throw InvalidArgument(fmt::format("{}: {}", name, refused.reason()));
  }
  throw InvalidArgument(fmt::format("no kernel for this problem has the name '{}'", printable(name)));
}

KernelListing Engine::list_kernels(std::optional<Target> target, registry::KernelFilter filter) const {
  KernelListing listing;
  listing.providers_ = state_->registry->snapshot();
  listing.filter_ = std::move(filter);
  listing.target_ = target.value_or(state_->device->properties().target);
  return listing;
}

registry::KernelPtr Engine::make_kernel(const op::Signature& signature, const plan::Design& design) const {
  std::string reasons;
  for (const auto& provider : state_->registry->snapshot()->providers) {
    Result<registry::KernelPtr> kernel = provider->make(signature, design);
    if (kernel) return *std::move(kernel);
    reasons += fmt::format("{}{}: {}", reasons.empty() ? "" : "; ", provider->family(), kernel.reason());
  }
  throw InvalidArgument("no kernel of this design: " + reasons);
}

std::vector<ArtifactPtr> Engine::compile(std::span<const registry::KernelPtr> kernels, const OnProgress& on_progress) {
  std::vector<ArtifactPtr> artifacts(kernels.size());
  std::vector<compile::Source> sources;
  std::vector<std::size_t> compiled;  // of each source, its place among the artifacts
  CompileProgress progress{.done = 0, .all = kernels.size(), .kernel = {}};
  const auto tell = [&](const compile::Artifact& artifact) {
    if (!on_progress) return;
    ++progress.done;
    progress.kernel = artifact.name;
    on_progress(progress);
  };
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    compile::Source source = kernels[i]->source();
    if (source.language == compile::Language::cuda) {
      sources.push_back(std::move(source));
      compiled.push_back(i);
      continue;
    }
    artifacts[i] = std::make_shared<const compile::Artifact>(compile::precompiled_artifact(source));
    tell(*artifacts[i]);
  }
  if (sources.empty()) return artifacts;
  std::vector<ArtifactPtr> fresh = state_->obtain_all(sources, tell);
  for (std::size_t i = 0; i < fresh.size(); ++i) artifacts[compiled[i]] = std::move(fresh[i]);
  return artifacts;
}

ArtifactPtr Engine::compile(const registry::KernelPtr& kernel) { return compile(std::span(&kernel, 1)).front(); }

std::future<std::vector<ArtifactPtr>> Engine::compile_async(std::vector<registry::KernelPtr> kernels,
                                                            OnProgress on_progress) {
  return std::async(std::launch::async, [this, kernels = std::move(kernels), on_progress = std::move(on_progress)] {
    return compile(kernels, on_progress);
  });
}

Support Engine::accepts(const registry::Kernel& kernel, const compile::Artifact& artifact) const {
  const runtime::DeviceProperties& device = state_->device->properties();
  if (artifact.name != kernel.name())
    return refuse("the artifact is of {}, the kernel is {}", artifact.name, kernel.name()).as(RefusalCode::artifact);
  if (artifact.source != kernel.source_digest().hex()) {
    return refuse("the artifact of {} was compiled from another text than the kernel's: compile it anew", artifact.name)
        .as(RefusalCode::artifact);
  }
  return runs_here(artifact, device);
}

std::vector<ArtifactPtr> Engine::State::obtain_all(std::span<const compile::Source> sources,
                                                   const std::function<void(const compile::Artifact&)>& on_ready) {
  const compile::Compiler* found = nullptr;
  try {
    found = &get_compiler();
  } catch (const ToolchainNotFound&) {
    std::vector<ArtifactPtr> artifacts;
    for (const compile::Source& source : sources) {
      artifacts.push_back(store.find_any(source));
      if (artifacts.back() == nullptr) throw;
      if (on_ready) on_ready(*artifacts.back());
    }
    return artifacts;
  }
  return store.get_or_compile_all(sources, *found, compile_threads(options), on_ready);
}

Engine::State::LoadedPtr Engine::State::load_artifact(const compile::Artifact& artifact,
                                                      std::uint32_t dynamic_smem_bytes) const {
  return device->load({artifact.cubin, artifact.ptx}, artifact.symbol, dynamic_smem_bytes);
}

Engine::State::LoadedPtr Engine::State::load_source(const compile::Source& source, std::uint32_t dynamic_smem_bytes) {
  if (source.language != compile::Language::cuda) {
    const compile::Artifact adopted = compile::precompiled_artifact(source);
    runs_here(adopted, device->properties()).or_throw();
    return load_artifact(adopted, dynamic_smem_bytes);
  }
  try {
    const ArtifactPtr artifact = obtain(source);
    runs_here(*artifact, device->properties()).or_throw();
    return load_artifact(*artifact, dynamic_smem_bytes);
  } catch (const Error& error) {
    if (!is_fault_of_image(error) || !store.discard(source)) throw;
    spdlog::warn("{} from the cache cannot be loaded and is compiled anew: {}", source.name, error.what());
  }
  return load_artifact(*obtain(source), dynamic_smem_bytes);
}

Engine::State::LoadedPtr Engine::State::load(const registry::KernelPtr& kernel, const plan::Launch& launch,
                                             const ArtifactPtr& artifact) {
  const Digest digest = kernel->source_digest();
  {
    const std::scoped_lock lock(mutex);
    if (const LoadedPtr* const found = loaded.find(digest)) return *found;
  }
  LoadedPtr fresh = artifact == nullptr ? load_source(kernel->source(), launch.dynamic_smem_bytes)
                                        : load_artifact(*artifact, launch.dynamic_smem_bytes);
  // What has to go is destroyed after the lock is released: authors' code may run then.
  std::vector<LoadedPtr> gone;
  std::vector<ReadyKernel> unused;
  const std::scoped_lock lock(mutex);
  if (const LoadedPtr* const found = loaded.find(digest)) return *found;
  gone = loaded.insert(digest, fresh);
  unused = ready.erase_if(
      [&](const ReadyKey&, const ReadyKernel& each) { return std::ranges::find(gone, each.loaded) != gone.end(); });
  return fresh;
}

PreparedCall Engine::prepare(const Call& call, const registry::KernelPtr& kernel, const ArtifactPtr& artifact) {
  const op::Problem& problem = call.problem();
  PreparedCall prepared;
  prepared.is_empty_ = op::is_empty(problem);
  prepared.is_shape_ = op::is_shape(problem);
  prepared.key_ = call.key();
  ReadyKernel ready = ready_kernel(call, kernel, artifact);
  if (!prepared.is_empty_) prepared.launch_ = ready.kernel->launch(problem);
  prepared.kernel_ = std::move(ready.kernel);
  prepared.loaded_ = std::move(ready.loaded);
  if (!prepared.is_empty_ && !prepared.is_shape_) encode_tensor_maps(*state_->device, prepared.launch_);
  prepared.config_ = launch_config(prepared.launch_);
  prepared.workspaces_ = state_->workspaces;
  return prepared;
}

Engine::ReadyKernel Engine::ready_kernel(const Call& call, const registry::KernelPtr& kernel,
                                         const ArtifactPtr& artifact) {
  const op::Problem& problem = call.problem();
  if (!op::is_empty(problem) && !op::is_shape(problem)) check_place(problem, *state_->device).or_throw();
  if (kernel != nullptr) return given_kernel(call, kernel, artifact);
  if (artifact != nullptr)
    throw InvalidArgument(fmt::format("the artifact of {} needs its kernel: find_kernel() has it", artifact->name));
  return best_kernel(call);
}

std::optional<Engine::ReadyKernel> Engine::State::find_ready(const ReadyKey& key) {
  const std::scoped_lock lock(mutex);
  const ReadyKernel* const found = ready.find(key);
  return found == nullptr ? std::nullopt : std::optional(*found);
}

void Engine::State::keep_ready(const ReadyKey& key, ReadyKernel kernel, std::optional<std::uint64_t> chosen_in) {
  std::vector<ReadyKernel> gone;  // destroyed after the lock is released: authors' code may run then
  const std::scoped_lock lock(mutex);
  if (chosen_in && *chosen_in != rankings.generation()) return;
  gone = ready.insert(key, std::move(kernel));
}

// A choice holds for other strides and scalars than those that were measured.
void Engine::State::forget_best() {
  rankings.clear();
  std::vector<ReadyKernel> gone;
  const std::scoped_lock lock(mutex);
  gone = ready.erase_if([](const ReadyKey& key, const ReadyKernel&) { return key.kernel == nullptr; });
}

Engine::ReadyKernel Engine::best_kernel(const Call& call) {
  const op::Problem& problem = call.problem();
  ReadyKey key{call.key()};
  // Authors' kernels are asked every time, and may be better.
  const bool is_remembered = state_->registry->snapshot()->added == 0;
  if (std::optional<ReadyKernel> known = is_remembered ? state_->find_ready(key) : std::nullopt)
    return *std::move(known);
  if (state_->options.tuning == Tuning::on_first_use && !op::is_shape(problem))
    state_->options.before_first_use(*this, problem);
  const std::uint64_t generation = state_->rankings.generation();
  const std::shared_ptr<const Explanation> ranked = ranking(call);
  if (ranked->kernels.empty()) throw_no_kernel(problem, *ranked);
  ReadyKernel ready{ranked->kernels.front().kernel, nullptr};
  if (op::is_empty(problem)) return ready;
  ready.loaded = state_->load(ready.kernel, ready.kernel->launch(problem), nullptr);
  // What is prepared by shape is not tuned: a call with memory may yet be.
  const bool is_final = state_->options.tuning != Tuning::on_first_use || !op::is_shape(problem);
  if (is_remembered && is_final && ready.kernel->decides_by_kind()) state_->keep_ready(key, ready, generation);
  return ready;
}

Engine::ReadyKernel Engine::given_kernel(const Call& call, const registry::KernelPtr& kernel,
                                         const ArtifactPtr& artifact) {
  ReadyKey key{call.key(), kernel.get()};
  std::optional<ReadyKernel> known = state_->find_ready(key);
  if (known && kernel->decides_by_kind() && (artifact == nullptr || artifact == known->artifact))
    return *std::move(known);
  registry::runs_on(kernel->metadata(), state_->device->properties().target).or_throw();
  kernel->supports(call.problem()).or_throw();
  if (artifact != nullptr) accepts(*kernel, *artifact).or_throw();
  ReadyKernel ready{kernel, nullptr, artifact};
  if (op::is_empty(call.problem())) return ready;
  ready.loaded = known ? known->loaded : state_->load(kernel, kernel->launch(call.problem()), artifact);
  state_->keep_ready(key, ready);
  return ready;
}

void Engine::run(const Call& call, const registry::KernelPtr& kernel, const ArtifactPtr& artifact,
                 const RunOptions& options) {
  const op::Problem& problem = call.problem();
  if (op::is_shape(problem)) throw InvalidArgument("the problem are shapes without memory: there is nothing to run on");
  if (op::device(problem).kind == op::MemoryDevice::Kind::host && !op::is_empty(problem)) {
    HostOperands operands(problem, state_->device, options.stream);
    run(Call(operands.on_device()), kernel, artifact, options);
    operands.copy_out();
    return;
  }
  const ReadyKernel ready = ready_kernel(call, kernel, artifact);
  if (!op::is_empty(problem)) launch_anew(*ready.kernel, *ready.loaded, *state_->workspaces, problem, options);
}

}  // namespace tilewright::engine
