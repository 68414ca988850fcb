#include "tilewright/engine/engine.hpp"

#include <algorithm>
#include <iterator>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <utility>

#include "tilewright/cache/key.hpp"
#include "tilewright/cache/store.hpp"
#include "tilewright/compile/artifact.hpp"
#include "tilewright/compile/compiler.hpp"
#include "tilewright/engine/call_key.hpp"
#include "tilewright/engine/host_operands.hpp"
#include "tilewright/engine/tensor_maps.hpp"
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
  return store;
}

runtime::LaunchConfig launch_config(const plan::Launch& launch) {
  runtime::LaunchConfig config;
  config.grid = {launch.grid[0], launch.grid[1], launch.grid[2]};
  config.block = {launch.block[0], launch.block[1], launch.block[2]};
  config.cluster = {launch.cluster[0], launch.cluster[1], launch.cluster[2]};
  config.dynamic_smem_bytes = launch.dynamic_smem_bytes;
  return config;
}

}  // namespace

/// A kernel on the device, for every call of one kind.
struct ReadyKernel {
  registry::KernelPtr kernel;
  std::shared_ptr<runtime::LoadedKernel> loaded;
};

struct Engine::State {
  State(const Options& given, Providers more_providers)
      : options(given), device(open_device(given)), store(store_options(given)), providers(std::move(more_providers)) {
    std::ranges::move(kernels::make_providers(), std::back_inserter(providers));
  }

  /// Compiled or cached, loaded once an engine.
  std::shared_ptr<runtime::LoadedKernel> load(const registry::KernelPtr& kernel, const plan::Launch& launch);

  Options options;
  std::shared_ptr<runtime::Device> device;
  cache::Store store;
  Providers providers;

  std::mutex mutex;  // guards what follows
  std::unique_ptr<compile::Compiler> compiler;
  std::unordered_map<Digest, std::shared_ptr<runtime::LoadedKernel>, cache::KeyHash> loaded;  // by source_digest()
  std::unordered_map<CallKey, ReadyKernel, CallKeyHash> ready;
};

void PreparedGemm::run(runtime::StreamHandle stream) const {
  if (is_empty_) return;
  runtime::LaunchConfig config = config_;
  config.stream = stream;
  loaded_->launch(config, launch_.parameters());
}

Engine::Engine(const Options& options, Providers more_providers)
    : state_(std::make_unique<State>(options, std::move(more_providers))) {}
Engine::~Engine() = default;

const std::shared_ptr<runtime::Device>& Engine::device() const { return state_->device; }
cache::Store& Engine::cache() { return state_->store; }

const compile::Compiler& Engine::compiler() {
  const std::scoped_lock lock(state_->mutex);
  if (!state_->compiler) state_->compiler = compile::make_compiler(state_->options.toolchain);
  return *state_->compiler;
}

Explanation Engine::explain(const op::Gemm& arguments, const registry::KernelFilter& filter,
                            std::optional<Target> target) const {
  op::validate(arguments).or_throw();
  registry::Discovery found;
  for (const auto& provider : state_->providers) {
    provider->discover(arguments, target.value_or(state_->device->properties().target), found);
  }
  Explanation explanation;
  explanation.refused = std::move(found.refused);
  for (registry::KernelPtr& kernel : found.kernels) {
    if (filter && !filter(kernel->metadata())) {
      explanation.refused.push_back({kernel->name(), "rejected by the caller's filter"});
      continue;
    }
    const double estimate_us = kernel->estimate_us(arguments);
    explanation.kernels.push_back({std::move(kernel), estimate_us});
  }
  std::stable_sort(explanation.kernels.begin(), explanation.kernels.end(),
                   [](const RankedKernel& x, const RankedKernel& y) { return x.estimate_us < y.estimate_us; });
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
