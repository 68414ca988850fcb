// A call that only needs to be launched.
#pragma once

#include <memory>

#include "tilewright/engine/call.hpp"
#include "tilewright/engine/launch.hpp"
#include "tilewright/registry/kernel.hpp"
#include "tilewright/runtime/device.hpp"

namespace tilewright::engine {

/// A call whose kernel is chosen, compiled and loaded, and whose launch is packed: run() only launches.
/// The tensors' memory must outlive it. Where the kernel sums slices of K or repacks operands (plan::Design) it
/// uses a workspace of the stream or, in a graph, of its capture: such a graph must not be launched twice at once.
class PreparedCall {
 public:
  /// Enqueues the launch on `stream`. Does nothing where D has no elements.
  /// @throws InvalidArgument where it was prepared by shape, and for a workspace that is too small or misaligned
  void run(runtime::StreamHandle stream = nullptr) const { run(RunOptions{.stream = stream}); }
  void run(const RunOptions& options) const;

  /// The same for other tensors, and other values of scalars, of the kind this was prepared for.
  /// @throws InvalidArgument where op::validate refuses them, where they differ in types, extents, strides, epilogue or
  /// by less alignment, and where they are not on the engine's device
  void run(const op::Problem& problem, const RunOptions& options = {}) const { run(Call(problem), options); }
  void run(const Call& call, const RunOptions& options = {}) const;

  const registry::Kernel& kernel() const { return *kernel_; }
  /// Bytes of workspace that a run needs.
  std::size_t workspace_bytes() const { return launch_.workspace_bytes(); }

 private:
  friend class Engine;

  registry::KernelPtr kernel_;
  std::shared_ptr<runtime::LoadedKernel> loaded_;
  std::shared_ptr<Workspaces> workspaces_;
  op::ProblemKey key_;
  runtime::LaunchConfig config_;
  plan::Launch launch_;
  bool is_empty_ = false;
  bool is_shape_ = false;
};

}  // namespace tilewright::engine
