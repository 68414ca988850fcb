// The only place that says the order: discover, plan, lower, compile, cache, load, launch.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tilewright/engine/options.hpp"
#include "tilewright/engine/remembered_choices.hpp"
#include "tilewright/engine/tuning.hpp"
#include "tilewright/op/gemm.hpp"
#include "tilewright/registry/provider.hpp"
#include "tilewright/runtime/device.hpp"

namespace tilewright::cache {
class Store;
}
namespace tilewright::compile {
class Compiler;
struct Artifact;
}  // namespace tilewright::compile

namespace tilewright::engine {

class Workspaces;

/// A kernel and what it is expected to cost on given arguments.
struct RankedKernel {
  registry::KernelPtr kernel;
  double estimate_us = 0.0;
};

/// Everything that could run a problem, best first, and everything that could not, with the reason.
struct Explanation {
  std::vector<RankedKernel> kernels;  // by predicted time; but the first is the measured best where `tuned` says so
  std::vector<registry::RefusedKernel> refused;
  std::optional<TunedChoice> tuned;
};

/// A call whose kernel is chosen, compiled and loaded, and whose launch is packed: run() only launches.
/// The tensors' memory must outlive it. Where the kernel sums slices of K or repacks operands (plan::Design) it
/// uses a workspace of the stream or, in a graph, of its capture: such a graph must not be launched twice at once.
class PreparedGemm {
 public:
  /// Enqueues the launch on `stream`. Does nothing where D has no elements.
  void run(runtime::StreamHandle stream = nullptr) const;
  const registry::Kernel& kernel() const { return *kernel_; }

 private:
  friend class Engine;
  registry::KernelPtr kernel_;
  std::shared_ptr<runtime::LoadedKernel> loaded_;
  std::shared_ptr<Workspaces> workspaces_;
  std::shared_ptr<runtime::Device> device_;
  runtime::LaunchConfig config_;
  plan::Launch launch_;
  bool is_empty_ = false;
};

/// Owns device, cache, compiler and registry. Thread-safe. The caller owns it; nothing is global.
class Engine {
 public:
  using Providers = std::vector<std::unique_ptr<registry::Provider>>;

  /// `more_providers` are asked for kernels before the families that Tilewright ships.
  /// @throws when the device that options name does not exist; a missing compiler is reported by the first compile.
  explicit Engine(const Options& options = Options::from_environment(), Providers more_providers = {});
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  const std::shared_ptr<runtime::Device>& device() const;
  cache::Store& cache();
  /// @throws ToolchainNotFound
  const compile::Compiler& compiler();

  /// Kernels for these arguments on `target` (default: this engine's device), best first: by predicted time, after the
  /// one that was measured to be the best, where Options::tuning is not off and a tuning found one for this very
  /// problem.
  /// @throws InvalidArgument when the problem itself is invalid.
  std::vector<RankedKernel> find_kernels(const op::Gemm& arguments, const registry::KernelFilter& filter = {},
                                         std::optional<Target> target = {}) const;

  /// As find_kernels, with a reason for every refusal.
  Explanation explain(const op::Gemm& arguments, const registry::KernelFilter& filter = {},
                      std::optional<Target> target = {}) const;

  /// Measures the best-ranked kernels on memory of its own and remembers the winner, on disk for later engines: from
  /// now on it comes first. Of the arguments' addresses only the alignment counts; they may be host memory, or none at
  /// all. Waits for the null stream; must not be called while a stream is captured.
  /// @throws InvalidArgument for options out of range and a problem that is invalid or has nothing to multiply, Error
  /// where there is no timer, OutOfMemory where copies of the operands do not fit, ToolchainNotFound.
  TuningReport tune(const op::Gemm& arguments, const TuneOptions& options = {});
  RememberedChoices& choices();

  /// The kernel of an explicit description: the same road as discovery, with the design you wrote.
  /// @throws InvalidArgument with the number that makes it impossible, before any compile.
  registry::KernelPtr make_kernel(const op::GemmDescription& description, const plan::Design& design) const;

  /// Compiles what is not in the cache, several at once. @throws compile::CompileError
  std::vector<std::shared_ptr<const compile::Artifact>> compile(std::span<const registry::KernelPtr> kernels);
  std::shared_ptr<const compile::Artifact> compile(const registry::KernelPtr& kernel);

  /// Chooses (unless given), compiles, loads and packs. Tensors must be on this engine's device.
  PreparedGemm prepare(const op::Gemm& arguments, const registry::KernelPtr& kernel = nullptr);

  /// Runs the problem; with no kernel given, the best one, remembered per problem. Host tensors are copied in and out
  /// through the pool and D is complete on return; device tensors are enqueued on `stream`.
  void run(const op::Gemm& arguments, const registry::KernelPtr& kernel = nullptr,
           runtime::StreamHandle stream = nullptr);

 private:
  struct State;

  Explanation rank(const op::Gemm& arguments, const registry::KernelFilter& filter, std::optional<Target> target,
                   Tuning tuning) const;
  /// `is_alone`: the records' lock is held; else why not.
  TuningReport tune_alone(const op::Gemm& arguments, const TuneOptions& options, const Support& is_alone);
  void tune_if_new(const op::Gemm& arguments);

  std::unique_ptr<State> state_;
};

}  // namespace tilewright::engine
