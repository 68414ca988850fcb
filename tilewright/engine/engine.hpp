// The engine runs the steps in order: discover, plan, lower, compile, cache, load, launch.
#pragma once

#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tilewright/engine/call.hpp"
#include "tilewright/engine/explanation.hpp"
#include "tilewright/engine/kernel_listing.hpp"
#include "tilewright/engine/launch.hpp"
#include "tilewright/engine/options.hpp"
#include "tilewright/engine/prepared_call.hpp"
#include "tilewright/engine/remembered_choices.hpp"
#include "tilewright/op/problem.hpp"
#include "tilewright/registry/registry.hpp"
#include "tilewright/runtime/device.hpp"

namespace tilewright::cache {
class Store;
}
namespace tilewright::compile {
class Compiler;
struct Artifact;
}  // namespace tilewright::compile

namespace tilewright::engine {

using ArtifactPtr = std::shared_ptr<const compile::Artifact>;

/// The progress of compiling several kernels.
struct CompileProgress {
  std::size_t done = 0, all = 0;
  std::string kernel;  // the name of the kernel that was finished last
};
using OnProgress = std::function<void(const CompileProgress&)>;

/// Owns a device, a cache and a compiler, and shares a registry. Thread-safe. There is no global engine.
class Engine {
 public:
  /// `registry` has the kernels' providers and may be shared by several engines; null: a registry with the shipped
  /// ones.
  /// @throws what open_device(options) throws; a missing compiler is reported by the first compile
  explicit Engine(const Options& options = Options::from_environment(),
                  std::shared_ptr<registry::Registry> registry = nullptr);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  const std::shared_ptr<runtime::Device>& device() const;
  /// To add kernels, call registry().add(...).
  registry::Registry& registry();
  cache::Store& cache();
  /// @throws ToolchainNotFound
  const compile::Compiler& compiler();

  /// Kernels for this problem on `target` (default: this engine's device), ranked by predicted time. If Options::tuning
  /// is not off and a tuning has chosen a kernel for this problem, that kernel comes first. `providers` restricts the
  /// families. Exceptions of `filter`, and of user code in a provider named in `providers`, are propagated; if other
  /// providers throw, explain() has the exception's text as the reason of a refusal.
  /// Here and in the functions below, kernels that do not make the promises `required` (default: Options::required) are
  /// refused. If batch_invariant is required, the shipped kernels must all have one plan::SumOrder, which is that of
  /// the first provider that has one for every M.
  /// @throws InvalidArgument if the problem is invalid or a provider does not exist
  std::vector<RankedKernel> find_kernels(const op::Problem& problem, const registry::KernelFilter& filter = {},
                                         std::optional<Target> target = {}, std::span<const std::string> providers = {},
                                         std::optional<registry::Promises> required = {}) const;

  /// Like find_kernels(), with the reason for every refusal and the cost of the promises.
  Explanation explain(const op::Problem& problem, const registry::KernelFilter& filter = {},
                      std::optional<Target> target = {}, std::span<const std::string> providers = {},
                      std::optional<registry::Promises> required = {}) const;

  /// explain() for all providers without a filter. The result is remembered for calls with the same key.
  std::shared_ptr<const Explanation> ranking(const op::Problem& problem, std::optional<Target> target = {},
                                             std::optional<registry::Promises> required = {}) const {
    return ranking(Call(problem), target, required);
  }
  std::shared_ptr<const Explanation> ranking(const Call& call, std::optional<Target> target = {},
                                             std::optional<registry::Promises> required = {}) const;

  /// The kernel with this name among those for the problem. @throws InvalidArgument with the reason of its refusal
  registry::KernelPtr find_kernel(const std::string& name, const op::Problem& problem) const;

  /// Lists kernels for `target` (default: this engine's device) independently of a problem: for shipped families, those
  /// for packed operands of all types and layouts; for other families, Provider::list(). Names are unique within a
  /// family.
  KernelListing list_kernels(std::optional<Target> target = {}, registry::KernelFilter filter = {}) const;

  /// All kernels for the problem, ranked by predicted time only. @pre op::validate(problem)
  std::vector<RankedKernel> rank_by_estimate(const op::Problem& problem,
                                             std::optional<registry::Promises> required = {}) const;
  /// The kernels chosen by earlier tunings; tune::tune() adds to them.
  RememberedChoices& choices();
  /// Forgets remembered rankings and calls. Must be called after choices() has changed.
  void forget_rankings();
  /// The lock that a tuning holds, so that two tunings in this engine do not disturb each other's timing.
  std::unique_lock<std::mutex> lock_tuning();

  /// Makes the kernel with this signature and design, without discovery.
  /// @throws RefusedDesign, an InvalidArgument, with the number that makes it impossible, before anything is compiled
  registry::KernelPtr make_kernel(const op::Signature& signature, const plan::Design& design) const;

  /// Options::required.
  const registry::Promises& required() const;
  /// Refuses a kernel of the caller's choice that does not make the promises `required` (default: Options::required).
  /// If batch_invariant is required, a shipped kernel must have the plan::SumOrder that its family has for every M or,
  /// if it has none, the one that find_kernels() requires. @pre kernel.supports(problem)
  Support check_promises(const registry::Kernel& kernel, const op::Problem& problem,
                         std::optional<registry::Promises> required = {}) const;

  /// Compiles the kernels that are not in the cache, in parallel. `on_progress` is called when a kernel is ready, one
  /// call at a time, from any thread. @throws the first CompileError, after all compiles have ended
  std::vector<ArtifactPtr> compile(std::span<const registry::KernelPtr> kernels, const OnProgress& on_progress = {});
  ArtifactPtr compile(const registry::KernelPtr& kernel);
  /// Like compile(), on another thread. The engine must outlive the future.
  std::future<std::vector<ArtifactPtr>> compile_async(std::vector<registry::KernelPtr> kernels,
                                                      OnProgress on_progress = {});

  /// Whether `artifact` was compiled from this kernel's current source and runs on this engine's device.
  Support accepts(const registry::Kernel& kernel, const compile::Artifact& artifact) const;

  /// Chooses a kernel (unless given), compiles it (unless an artifact is given), loads it and packs the launch. The
  /// tensors must be on this engine's device, or all be shapes without memory.
  /// @throws InvalidArgument if the kernel or its artifact does not support the problem or make the promises,
  /// CompileError, ToolchainNotFound
  PreparedCall prepare(const op::Problem& problem, const registry::KernelPtr& kernel = nullptr,
                       const ArtifactPtr& artifact = nullptr, std::optional<registry::Promises> required = {}) {
    return prepare(Call(problem), kernel, artifact, required);
  }
  PreparedCall prepare(const Call& call, const registry::KernelPtr& kernel = nullptr,
                       const ArtifactPtr& artifact = nullptr, std::optional<registry::Promises> required = {});

  /// Runs the problem with `kernel` or, if it is null, with the best kernel, which is remembered for the call's key.
  /// Host tensors are copied through device memory from the pool, and the outputs are complete on return. With device
  /// tensors, the launch is enqueued on `stream`.
  void run(const op::Problem& problem, const registry::KernelPtr& kernel = nullptr,
           runtime::StreamHandle stream = nullptr) {
    run(Call(problem), kernel, nullptr, RunOptions{.stream = stream});
  }
  void run(const op::Problem& problem, const registry::KernelPtr& kernel, const ArtifactPtr& artifact,
           const RunOptions& options, std::optional<registry::Promises> required = {}) {
    run(Call(problem), kernel, artifact, options, required);
  }
  void run(const Call& call, const registry::KernelPtr& kernel = nullptr, const ArtifactPtr& artifact = nullptr,
           const RunOptions& options = {}, std::optional<registry::Promises> required = {});

 private:
  struct State;
  struct ReadyKernel;

  /// The kernel given, or else the best one; it is loaded unless the problem is empty.
  ReadyKernel ready_kernel(const Call& call, const registry::KernelPtr& kernel, const ArtifactPtr& artifact,
                           const registry::Promises& required, std::optional<std::size_t> workspace_bytes);
  /// `workspace_bytes`: the size of the caller's workspace, if there is one.
  ReadyKernel best_kernel(const Call& call, const registry::Promises& required,
                          std::optional<std::size_t> workspace_bytes);
  ReadyKernel given_kernel(const Call& call, const registry::KernelPtr& kernel, const ArtifactPtr& artifact,
                           const registry::Promises& required);

  std::unique_ptr<State> state_;
};

}  // namespace tilewright::engine
