#include "tilewright/engine/engine.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <mutex>
#include <utility>

#include "tilewright/base/fork.hpp"
#include "tilewright/base/lru_map.hpp"
#include "tilewright/base/text.hpp"
#include "tilewright/cache/store.hpp"
#include "tilewright/compile/artifact.hpp"
#include "tilewright/engine/host_operands.hpp"
#include "tilewright/engine/kernel_images.hpp"
#include "tilewright/engine/launch.hpp"
#include "tilewright/engine/packed_launches.hpp"
#include "tilewright/engine/ranking.hpp"
#include "tilewright/engine/rankings.hpp"
#include "tilewright/engine/refused_design.hpp"
#include "tilewright/engine/sums_of_nothing.hpp"
#include "tilewright/engine/workspaces.hpp"
#include "tilewright/kernels/list.hpp"

namespace tilewright::engine {

/// A loaded kernel, remembered for all calls with the same key.
struct Engine::ReadyKernel {
  registry::KernelPtr kernel;
  LoadedPtr loaded;
  ArtifactPtr artifact = nullptr;  // the caller's artifact that it was loaded from, if there is one
};

/// The key of a call, the required promises, and the kernel that the caller chose; null: the best kernel, of those that
/// the caller's workspace is large enough for, if there is one.
struct ReadyKey {
  op::ProblemKey call;
  registry::Promises required;
  const registry::Kernel* kernel = nullptr;
  std::optional<std::size_t> workspace_bytes = {};
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
        images(given, device),
        workspaces(std::make_shared<Workspaces>(device)),
        packed(std::make_shared<PackedLaunches>(device, options.overlap_launches)),
        registry(given_registry ? std::move(given_registry) : kernels::make_registry()),
        choices(images.store().root(), device_identity(*device)),
        rankings(given.max_rankings),
        ready(given.max_remembered_calls) {
    if (options.tuning == Tuning::on_first_use && !options.before_first_use) {
      throw InvalidArgument(
          "Tuning::on_first_use needs Options::before_first_use: use tune::options_from_environment(), or set it to "
          "tune::on_first_use()");
    }
    if (options.tuning == Tuning::off) return;
    if (const Support read = choices.reload(); !read) spdlog::warn("tuning records are ignored: {}", read.reason());
  }

  /// Ranks the kernels. A tuned choice comes first, if `tuning` allows it and the target is the device's; otherwise the
  /// kernel that Options::first_use prefers.
  Explanation rank(std::span<const registry::ProviderPtr> providers, const op::Problem& problem, const Target& target,
                   Tuning tuning, const Requirement& requirement, OnFailure on_failure = OnFailure::refuse) const {
    Explanation explanation = engine::rank(providers, problem, target, device->properties(), requirement, on_failure);
    if (options.max_workspace_bytes) limit_workspaces(*options.max_workspace_bytes, problem, explanation);
    if (tuning != Tuning::off && target == device->properties().target) put_tuned_first(choices, problem, explanation);
    if (options.first_use == FirstUse::fastest_start) put_quick_start_first(explanation);
    return explanation;
  }
  /// explain() without the cost of the promises.
  Explanation explain(const Engine& engine, const op::Problem& problem, const registry::KernelFilter& filter,
                      const Target& target, std::span<const std::string> families,
                      const registry::Promises& required) const {
    Explanation explanation;
    if (families.empty()) {
      explanation = *engine.ranking(problem, target, required);
    } else {
      op::validate(problem).or_throw();
      const auto providers = find_providers(registry->snapshot()->providers, families);
      explanation = rank(providers, problem, target, options.tuning,
                         make_requirement(required, providers, problem, target), OnFailure::rethrow);
    }
    if (filter) apply(filter, explanation);
    return explanation;
  }
  /// Loads the kernel. Remembered calls of kernels that were evicted for it are forgotten.
  LoadedPtr load(const registry::KernelPtr& kernel, const op::Problem& problem, const ArtifactPtr& artifact);
  std::optional<ReadyKernel> find_ready(const ReadyKey& key);
  /// Remembers the kernel. `generation` is that of the rankings by which it was chosen, if it was not the caller's
  /// choice: if the rankings have changed since, it is not remembered.
  void keep_ready(const ReadyKey& key, ReadyKernel kernel, std::optional<std::uint64_t> generation = {});
  /// Forgets all kernels that were chosen by ranking. Must be called when tuned choices change.
  void forget_best();

  Options options;
  std::shared_ptr<runtime::Device> device;
  KernelImages images;
  std::shared_ptr<Workspaces> workspaces;
  std::shared_ptr<PackedLaunches> packed;
  std::shared_ptr<registry::Registry> registry;
  RememberedChoices choices;
  Rankings rankings;
  std::mutex tuning_mutex;  // held during a tuning, so that tunings do not disturb each other's timing

  ForkSafeMutex mutex;  // guards the members below
  LruMap<ReadyKey, ReadyKernel, ReadyKeyHash> ready;
};

Engine::Engine(const Options& options, std::shared_ptr<registry::Registry> registry)
    : state_(std::make_unique<State>(options, std::move(registry))) {}
Engine::~Engine() = default;

const std::shared_ptr<runtime::Device>& Engine::device() const { return state_->device; }
registry::Registry& Engine::registry() { return *state_->registry; }
cache::Store& Engine::cache() { return state_->images.store(); }
RememberedChoices& Engine::choices() { return state_->choices; }
void Engine::forget_rankings() { state_->forget_best(); }
std::unique_lock<std::mutex> Engine::lock_tuning() { return std::unique_lock(state_->tuning_mutex); }

const compile::Compiler& Engine::compiler() { return state_->images.compiler(); }

Explanation Engine::explain(const op::Problem& problem, const registry::KernelFilter& filter,
                            std::optional<Target> target, std::span<const std::string> providers,
                            std::optional<registry::Promises> required) const {
  const Target wanted = target.value_or(state_->device->properties().target);
  const registry::Promises promises = required.value_or(state_->options.required);
  Explanation explanation = state_->explain(*this, problem, filter, wanted, providers, promises);
  if (!promises.any()) return explanation;
  for (const RankedKernel& ranked : state_->explain(*this, problem, filter, wanted, providers, {}).kernels)
    explanation.unrestricted_us =
        std::min(explanation.unrestricted_us.value_or(ranked.estimate_us), ranked.estimate_us);
  return explanation;
}

std::shared_ptr<const Explanation> Engine::ranking(const Call& call, std::optional<Target> target,
                                                   std::optional<registry::Promises> required) const {
  const op::Problem& problem = call.problem();
  const Target wanted = target.value_or(state_->device->properties().target);
  const registry::Promises promises = required.value_or(state_->options.required);
  const std::shared_ptr<const registry::Registry::Snapshot> registry = state_->registry->snapshot();
  const std::span<const registry::ProviderPtr> providers(registry->providers);
  const std::span<const registry::ProviderPtr> shipped_providers = providers.subspan(registry->added);
  // A tuned choice is looked up by the set of all kernels, so it can be applied only after user providers are added.
  const bool has_added = registry->added != 0;
  const Tuning tuning = has_added ? Tuning::off : state_->options.tuning;
  const RankingKey key{call.key(), wanted, tuning, promises};
  const std::uint64_t generation = state_->rankings.generation();
  std::shared_ptr<const Explanation> shipped = state_->rankings.find(key);
  if (shipped == nullptr) {
    shipped = std::make_shared<const Explanation>(state_->rank(
        shipped_providers, problem, wanted, tuning, make_requirement(promises, shipped_providers, problem, wanted)));
    state_->rankings.insert(key, shipped, generation);
  }
  if (!has_added) return shipped;
  auto all =
      std::make_shared<Explanation>(state_->rank(providers.first(registry->added), problem, wanted, Tuning::off,
                                                 make_requirement(promises, shipped_providers, problem, wanted)));
  all->refused.insert(all->refused.end(), shipped->refused.begin(), shipped->refused.end());
  all->kernels.insert(all->kernels.end(), shipped->kernels.begin(), shipped->kernels.end());
  std::ranges::stable_sort(all->kernels, {}, &RankedKernel::estimate_us);
  if (state_->options.tuning != Tuning::off && wanted == state_->device->properties().target)
    put_tuned_first(state_->choices, problem, *all);
  if (state_->options.first_use == FirstUse::fastest_start) put_quick_start_first(*all);
  return all;
}

std::vector<RankedKernel> Engine::rank_by_estimate(const op::Problem& problem,
                                                   std::optional<registry::Promises> required) const {
  const runtime::DeviceProperties& device = state_->device->properties();
  const std::shared_ptr<const registry::Registry::Snapshot> registry = state_->registry->snapshot();
  const std::span<const registry::ProviderPtr> providers(registry->providers);
  Explanation explanation = engine::rank(providers, problem, device.target, device,
                                         make_requirement(required.value_or(state_->options.required),
                                                          providers.subspan(registry->added), problem, device.target));
  if (state_->options.max_workspace_bytes) limit_workspaces(*state_->options.max_workspace_bytes, problem, explanation);
  return std::move(explanation.kernels);
}

std::vector<RankedKernel> Engine::find_kernels(const op::Problem& problem, const registry::KernelFilter& filter,
                                               std::optional<Target> target, std::span<const std::string> providers,
                                               std::optional<registry::Promises> required) const {
  if (!filter && providers.empty()) return ranking(problem, target, required)->kernels;
  return state_
      ->explain(*this, problem, filter, target.value_or(state_->device->properties().target), providers,
                required.value_or(state_->options.required))
      .kernels;
}

registry::KernelPtr Engine::find_kernel(const std::string& name, const op::Problem& problem) const {
  const std::shared_ptr<const Explanation> found = ranking(problem);
  for (const RankedKernel& ranked : found->kernels) {
    if (ranked.kernel->name() == name) return ranked.kernel;
  }
  for (const registry::RefusedKernel& refused : found->refused) {
    if (refused.name == name) throw InvalidArgument(fmt::format("{}: {}", name, refused.reason()));
  }
  if (found->kernels.empty()) throw_no_kernel(problem, *found);
  throw_unknown_name(problem, name, *found);
}

KernelListing Engine::list_kernels(std::optional<Target> target, registry::KernelFilter filter) const {
  KernelListing listing;
  listing.providers_ = state_->registry->snapshot();
  listing.filter_ = std::move(filter);
  listing.target_ = target.value_or(state_->device->properties().target);
  return listing;
}

// Families of other operations are named only if there is no family of this one. Families that refuse for the same
// reason are named together.
registry::KernelPtr Engine::make_kernel(const op::Signature& signature, const plan::Design& design) const {
  std::vector<std::pair<std::string, std::string>> reasons, of_other_operations;  // reason, families
  std::vector<registry::RefusedKernel> refused;
  for (const auto& provider : state_->registry->snapshot()->providers) {
    Result<registry::KernelPtr> kernel = provider->make(signature, design);
    if (kernel && *kernel == nullptr) kernel = refuse("returned a null kernel").as(RefusalCode::provider);
    if (kernel) return *std::move(kernel);
    refused.push_back({provider->family(), kernel.refusal()});
    const bool is_of_another = kernel.refusal().code == RefusalCode::operation;
    auto& list = is_of_another ? of_other_operations : reasons;
    const std::string reason = kernel.reason();
    const auto same = std::ranges::find(list, reason, &std::pair<std::string, std::string>::first);
    if (same == list.end()) {
      list.emplace_back(reason, provider->family());
    } else {
      same->second += ", " + provider->family();
    }
  }
  std::string text;
  for (const auto& [reason, families] : reasons.empty() ? of_other_operations : reasons)
    text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", families, reason);
  throw RefusedDesign("no family can make a kernel with this design: " + text, std::move(refused));
}

const registry::Promises& Engine::required() const { return state_->options.required; }

Support Engine::check_promises(const registry::Kernel& kernel, const op::Problem& problem,
                               std::optional<registry::Promises> required) const {
  const registry::Promises promises = required.value_or(state_->options.required);
  if (!promises.any()) return {};
  const auto registered = state_->registry->snapshot();
  std::vector<registry::ProviderPtr> family;
  for (const registry::ProviderPtr& provider : registered->providers) {
    if (provider->family() == kernel.metadata().family) family.push_back(provider);
  }
  const Target& target = plan::tiling(kernel.metadata().design).target;
  Requirement requirement = make_requirement(promises, family, problem, target);
  if (promises.batch_invariant && !requirement.order && kernel.sum_order(problem)) {
    Requirement of_all = make_requirement(promises, registered->providers, problem, target);
    if (of_all.order) requirement = std::move(of_all);
  }
  return check(requirement, kernel, problem);
}

std::vector<ArtifactPtr> Engine::compile(std::span<const registry::KernelPtr> kernels, const OnProgress& on_progress) {
  std::vector<ArtifactPtr> artifacts(kernels.size());
  std::vector<compile::Source> sources;
  std::vector<std::size_t> compiled;  // for each source, its index in `artifacts`
  CompileProgress progress{.done = 0, .all = kernels.size(), .kernel = {}};
  const auto report = [&](const compile::Artifact& artifact) {
    if (!on_progress) return;
    ++progress.done;
    progress.kernel = artifact.name;
    on_progress(progress);
  };
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    if (kernels[i] == nullptr)
      throw InvalidArgument(fmt::format("kernel {} of {} to compile is null", i, kernels.size()));
  }
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    compile::Source source = kernels[i]->source();
    if (compile::is_compiled(source.language)) {
      sources.push_back(std::move(source));
      compiled.push_back(i);
      continue;
    }
    artifacts[i] = std::make_shared<const compile::Artifact>(compile::precompiled_artifact(source));
    report(*artifacts[i]);
  }
  if (sources.empty()) return artifacts;
  std::vector<ArtifactPtr> fresh = state_->images.obtain_all(sources, report);
  for (std::size_t i = 0; i < fresh.size(); ++i) artifacts[compiled[i]] = std::move(fresh[i]);
  return artifacts;
}

ArtifactPtr Engine::compile(const registry::KernelPtr& kernel) { return compile(std::span(&kernel, 1)).front(); }

std::future<std::vector<ArtifactPtr>> Engine::compile_async(std::vector<registry::KernelPtr> kernels,
                                                            OnProgress on_progress) {
  const std::scoped_lock creating(thread_creation());
  return std::async(std::launch::async, [this, kernels = std::move(kernels), on_progress = std::move(on_progress)] {
    return compile(kernels, on_progress);
  });
}

Support Engine::accepts(const registry::Kernel& kernel, const compile::Artifact& artifact) const {
  const runtime::DeviceProperties& device = state_->device->properties();
  if (artifact.name != kernel.name())
    return refuse("the artifact is for {}, but the kernel is {}", artifact.name, kernel.name())
        .as(RefusalCode::artifact);
  if (artifact.source != kernel.source_digest().hex()) {
    return refuse("the artifact of {} was compiled from a different source: compile the kernel again", artifact.name)
        .as(RefusalCode::artifact);
  }
  return runs_here(artifact, device);
}

// Evicted kernels are destroyed after the locks are released, since user destructors may run.
LoadedPtr Engine::State::load(const registry::KernelPtr& kernel, const op::Problem& problem,
                              const ArtifactPtr& artifact) {
  std::vector<LoadedPtr> evicted;
  LoadedPtr loaded = images.load(*kernel, kernel->launch(problem).dynamic_smem_bytes, artifact, evicted);
  if (evicted.empty()) return loaded;
  std::vector<ReadyKernel> unused;
  const std::scoped_lock lock(mutex);
  unused = ready.erase_if([&](const ReadyKey&, const ReadyKernel& each) {
    return std::ranges::find(evicted, each.loaded) != evicted.end();
  });
  return loaded;
}

PreparedCall Engine::prepare(const Call& call, const registry::KernelPtr& kernel, const ArtifactPtr& artifact,
                             std::optional<registry::Promises> required) {
  const op::Problem& problem = call.problem();
  PreparedCall prepared;
  prepared.is_empty_ = op::is_empty(problem);
  prepared.is_shape_only_ = op::is_shape_only(problem);
  prepared.key_ = call.key();
  ReadyKernel ready = ready_kernel(call, kernel, artifact, required.value_or(state_->options.required), {});
  if (ready.kernel->has_several_steps() || prepared.is_empty_) prepared.call_ = call;
  if (prepared.is_empty_) {
    prepared.launch_ = std::make_shared<const plan::Launch>();
  } else if (prepared.is_shape_only_ || prepared.call_) {
    prepared.launch_ = std::make_shared<const plan::Launch>(ready.kernel->launch(problem));
  } else {
    prepared.launch_ = state_->packed->get(ready.kernel, call);
  }
  prepared.kernel_ = std::move(ready.kernel);
  prepared.loaded_ = std::move(ready.loaded);
  prepared.config_ = launch_config(*prepared.launch_);
  prepared.workspaces_ = state_->workspaces;
  prepared.packed_ = state_->packed;
  return prepared;
}

Engine::ReadyKernel Engine::ready_kernel(const Call& call, const registry::KernelPtr& kernel,
                                         const ArtifactPtr& artifact, const registry::Promises& required,
                                         std::optional<std::size_t> workspace_bytes) {
  const op::Problem& problem = call.problem();
  if (!op::is_empty(problem) && !op::is_shape_only(problem)) check_place(problem, *state_->device).or_throw();
  if (kernel != nullptr) return given_kernel(call, kernel, artifact, required);
  if (artifact != nullptr)
    throw InvalidArgument(fmt::format("the artifact of {} needs its kernel: see find_kernel()", artifact->name));
  return best_kernel(call, required, workspace_bytes);
}

std::optional<Engine::ReadyKernel> Engine::State::find_ready(const ReadyKey& key) {
  const std::scoped_lock lock(mutex);
  const ReadyKernel* const found = ready.find(key);
  return found == nullptr ? std::nullopt : std::optional(*found);
}

void Engine::State::keep_ready(const ReadyKey& key, ReadyKernel kernel, std::optional<std::uint64_t> generation) {
  std::vector<ReadyKernel> evicted;  // destroyed after the lock is released, since user destructors may run
  const std::scoped_lock lock(mutex);
  if (generation && *generation != rankings.generation()) return;
  evicted = ready.insert(key, std::move(kernel));
}

// All keys are erased, since one tuned choice applies to several: they may differ in strides and scalars.
void Engine::State::forget_best() {
  rankings.clear();
  std::vector<ReadyKernel> evicted;
  const std::scoped_lock lock(mutex);
  evicted = ready.erase_if([](const ReadyKey& key, const ReadyKernel&) { return key.kernel == nullptr; });
}

Engine::ReadyKernel Engine::best_kernel(const Call& call, const registry::Promises& required,
                                        std::optional<std::size_t> workspace_bytes) {
  const op::Problem& problem = call.problem();
  ReadyKey key{call.key(), required, nullptr, workspace_bytes};
  // User providers are queried on every call, since their answer may change.
  const bool is_remembered = state_->registry->snapshot()->added == 0;
  if (std::optional<ReadyKernel> known = is_remembered ? state_->find_ready(key) : std::nullopt)
    return *std::move(known);
  const bool is_tuned = state_->options.tuning == Tuning::on_first_use && required == state_->options.required;
  if (is_tuned && !op::is_shape_only(problem)) state_->options.before_first_use(*this, problem);
  const std::uint64_t generation = state_->rankings.generation();
  const std::shared_ptr<const Explanation> ranked = ranking(call, {}, required);
  if (ranked->kernels.empty()) throw_no_kernel(problem, *ranked);
  const auto best = std::ranges::find_if(ranked->kernels, [&](const RankedKernel& each) {
    return !workspace_bytes || op::is_empty(problem) || each.kernel->workspace_bytes(problem) <= *workspace_bytes;
  });
  if (best == ranked->kernels.end()) {
    const registry::Kernel& first = *ranked->kernels.front().kernel;
    throw InvalidArgument(fmt::format("no kernel for this {} works with a workspace of {} bytes: {} needs {}",
                                      op::operation_name(problem), *workspace_bytes, first.name(),
                                      first.workspace_bytes(problem)));
  }
  ReadyKernel ready{best->kernel, nullptr};
  spdlog::debug("{} on {}: chose {}, predicted {:.2f} us, of {} kernels", op::operation_name(problem),
                state_->device->properties().name, ready.kernel->name(), best->estimate_us, ranked->kernels.size());
  if (op::is_empty(problem)) return ready;
  ready.loaded = state_->load(ready.kernel, problem, nullptr);
  // A call prepared from shapes alone is not tuned; the first call with memory may still be.
  const bool is_final = !is_tuned || !op::is_shape_only(problem);
  if (is_remembered && is_final && ready.kernel->depends_only_on_key()) state_->keep_ready(key, ready, generation);
  return ready;
}

Engine::ReadyKernel Engine::given_kernel(const Call& call, const registry::KernelPtr& kernel,
                                         const ArtifactPtr& artifact, const registry::Promises& required) {
  ReadyKey key{call.key(), required, kernel.get()};
  std::optional<ReadyKernel> known = state_->find_ready(key);
  if (known && kernel->depends_only_on_key() && (artifact == nullptr || artifact == known->artifact))
    return *std::move(known);
  registry::runs_on(kernel->metadata(), state_->device->properties().target).or_throw();
  kernel->supports(call.problem()).or_throw();
  check_promises(*kernel, call.problem(), required).or_throw();
  if (state_->options.max_workspace_bytes && !op::is_empty(call.problem()))
    check_workspace_limit(*state_->options.max_workspace_bytes, *kernel, call.problem()).or_throw();
  if (artifact != nullptr) accepts(*kernel, *artifact).or_throw();
  ReadyKernel ready{kernel, nullptr, artifact};
  if (op::is_empty(call.problem())) return ready;
  ready.loaded = known ? known->loaded : state_->load(kernel, call.problem(), artifact);
  state_->keep_ready(key, ready);
  return ready;
}

void Engine::run(const Call& call, const registry::KernelPtr& kernel, const ArtifactPtr& artifact,
                 const RunOptions& options, std::optional<registry::Promises> required) {
  const op::Problem& problem = call.problem();
  if (op::is_shape_only(problem)) throw InvalidArgument("the operands are shapes without memory, which cannot be run");
  if (op::device(problem).kind == op::MemoryDevice::Kind::host && !op::is_empty(problem)) {
    // Without a given kernel, one of an added provider may be the best.
    const bool writes_whole =
        kernel != nullptr ? kernel->writes_whole_outputs() : state_->registry->snapshot()->added == 0;
    HostOperands operands(problem, state_->device, options.stream, !writes_whole);
    run(Call(operands.on_device()), kernel, artifact, options, required);
    operands.copy_out();
    return;
  }
  const auto own_workspace = options.workspace == 0 ? std::nullopt : std::optional(options.workspace_bytes);
  const ReadyKernel ready =
      ready_kernel(call, kernel, artifact, required.value_or(state_->options.required), own_workspace);
  if (!op::is_empty(problem)) {
    pack_and_launch(ready.kernel, *ready.loaded, *state_->packed, *state_->workspaces, call, options);
  } else {
    store_sums_of_nothing(problem, *state_->device, options.stream);
  }
}

}  // namespace tilewright::engine
