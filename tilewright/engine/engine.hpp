// The only place that says the order: discover, plan, lower, compile, cache, load, launch.
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

/// How far a compile of several kernels is.
struct CompileProgress {
  std::size_t done = 0, all = 0;
  std::string kernel;  // the one that is ready
};
using OnProgress = std::function<void(const CompileProgress&)>;

/// Owns device, cache and compiler, and shares a registry. Thread-safe. The caller owns it; nothing is global.
class Engine {
 public:
  /// `registry`: where kernels come from, which several engines may share; null: one with what Tilewright ships.
  /// @throws when the device that options name does not exist; a missing compiler is reported by the first compile.
  explicit Engine(const Options& options = Options::from_environment(),
                  std::shared_ptr<registry::Registry> registry = nullptr);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  const std::shared_ptr<runtime::Device>& device() const;
  /// To bring kernels: registry().add(...).
  registry::Registry& registry();
  cache::Store& cache();
  /// @throws ToolchainNotFound
  const compile::Compiler& compiler();

  /// Kernels for this problem on `target` (default: this engine's device), best first: by predicted time, after the
  /// one that was measured to be the best, where Options::tuning is not off and a tuning found one for this very
  /// problem. Of the providers named, or of all. What `filter` throws comes through, and what the author's code of a
  /// provider that is named throws; of a provider that is not named, explain() has it as the reason of a refusal.
  /// @throws InvalidArgument when the problem itself is invalid, or no provider has such a name.
  std::vector<RankedKernel> find_kernels(const op::Problem& problem, const registry::KernelFilter& filter = {},
                                         std::optional<Target> target = {},
                                         std::span<const std::string> providers = {}) const;

  /// As find_kernels, with a reason for every refusal.
  Explanation explain(const op::Problem& problem, const registry::KernelFilter& filter = {},
                      std::optional<Target> target = {}, std::span<const std::string> providers = {}) const;

  /// explain() of all providers without a filter, shared with earlier queries about such a call.
  std::shared_ptr<const Explanation> ranking(const op::Problem& problem, std::optional<Target> target = {}) const {
    return ranking(Call(problem), target);
  }
  std::shared_ptr<const Explanation> ranking(const Call& call, std::optional<Target> target = {}) const;

  /// The kernel of that name among those for this problem. @throws InvalidArgument with why it was refused
  registry::KernelPtr find_kernel(const std::string& name, const op::Problem& problem) const;

  /// Kernels for `target` whatever the problem, as they are made: of the families that ship those for packed operands
  /// of all types and layouts, of others what they generate. Names are unique within a family.
  KernelListing list_kernels(std::optional<Target> target = {}, registry::KernelFilter filter = {}) const;

  /// All kernels for the problem by predicted time alone. @pre op::validate(problem)
  std::vector<RankedKernel> rank_by_estimate(const op::Problem& problem) const;
  /// What was measured to be the best, which tune::tune() adds to.
  RememberedChoices& choices();
  /// Must be called when choices() has changed: rankings and calls that were remembered are found anew.
  void forget_rankings();
  /// Held by a tuning, so that no other of this engine disturbs what it measures.
  std::unique_lock<std::mutex> lock_tuning();

  /// The kernel of an explicit signature: the same road as discovery, with the design you wrote.
  /// @throws InvalidArgument with the number that makes it impossible, before any compile.
  registry::KernelPtr make_kernel(const op::Signature& signature, const plan::Design& design) const;

  /// Compiles what is not in the cache, several at once. `on_progress` is called as each is ready, one call at a time,
  /// from any thread. @throws CompileError of the first that failed, after all ended
  std::vector<ArtifactPtr> compile(std::span<const registry::KernelPtr> kernels, const OnProgress& on_progress = {});
  ArtifactPtr compile(const registry::KernelPtr& kernel);
  /// The same on a thread of its own. The engine must outlive the future.
  std::future<std::vector<ArtifactPtr>> compile_async(std::vector<registry::KernelPtr> kernels,
                                                      OnProgress on_progress = {});

  /// Whether `artifact` is this kernel's, compiled from what it is now, and runs on this engine's device.
  Support accepts(const registry::Kernel& kernel, const compile::Artifact& artifact) const;

  /// Chooses a kernel (unless given), compiles (unless an artifact is given), loads and packs. Tensors must be on this
  /// engine's device, or all be shapes without memory.
  /// @throws InvalidArgument where the kernel or its artifact do not fit, CompileError, ToolchainNotFound
  PreparedCall prepare(const op::Problem& problem, const registry::KernelPtr& kernel = nullptr,
                       const ArtifactPtr& artifact = nullptr) {
    return prepare(Call(problem), kernel, artifact);
  }
  PreparedCall prepare(const Call& call, const registry::KernelPtr& kernel = nullptr,
                       const ArtifactPtr& artifact = nullptr);

  /// Runs the problem; with no kernel given, the best one, remembered per problem. Host tensors are copied in and out
  /// through the pool and D is complete on return; device tensors are enqueued on `stream`.
  void run(const op::Problem& problem, const registry::KernelPtr& kernel = nullptr,
           runtime::StreamHandle stream = nullptr) {
    run(Call(problem), kernel, nullptr, RunOptions{.stream = stream});
  }
  void run(const op::Problem& problem, const registry::KernelPtr& kernel, const ArtifactPtr& artifact,
           const RunOptions& options) {
    run(Call(problem), kernel, artifact, options);
  }
  void run(const Call& call, const registry::KernelPtr& kernel = nullptr, const ArtifactPtr& artifact = nullptr,
           const RunOptions& options = {});

 private:
  struct State;
  struct ReadyKernel;

  /// The best kernel for such calls, or the one given; loaded unless D is empty.
  ReadyKernel ready_kernel(const Call& call, const registry::KernelPtr& kernel, const ArtifactPtr& artifact);
  ReadyKernel best_kernel(const Call& call);
  ReadyKernel given_kernel(const Call& call, const registry::KernelPtr& kernel, const ArtifactPtr& artifact);

  std::unique_ptr<State> state_;
};

}  // namespace tilewright::engine
