// A call that is ready to be launched.
#pragma once

#include <memory>
#include <optional>

#include "tilewright/engine/call.hpp"
#include "tilewright/engine/launch.hpp"
#include "tilewright/registry/kernel.hpp"
#include "tilewright/runtime/device.hpp"

namespace tilewright::engine {

/// A call whose kernel is chosen, compiled and loaded, and whose launch is packed, so that run() only launches; a
/// kernel with several steps packs them in each run, because the copies in its workspace have an address then. The
/// tensors' memory must outlive it. A kernel that uses split-K or repacks operands (plan::Design) needs a workspace,
/// which belongs to the stream or, during stream capture, to the captured graph. Two launches of such a graph must not
/// overlap.
class PreparedCall {
 public:
  /// Enqueues the launch on `stream`. If the problem is empty, only stores the sums over no elements, which are 0.
  /// @throws InvalidArgument if it was prepared from shapes without memory, or the workspace is too small or misaligned
  void run(runtime::StreamHandle stream = nullptr) const { run(RunOptions{.stream = stream}); }
  void run(const RunOptions& options) const;

  /// Runs the prepared kernel with other tensors and scalar values.
  /// @throws InvalidArgument if op::validate refuses the problem, if its types, extents, strides or epilogue differ or
  /// its alignment is smaller, or if it is not on the engine's device
  void run(const op::Problem& problem, const RunOptions& options = {}) const { run(Call(problem), options); }
  void run(const Call& call, const RunOptions& options = {}) const;

  const registry::Kernel& kernel() const { return *kernel_; }
  /// The workspace that a run needs, in bytes.
  std::size_t workspace_bytes() const { return launch_->workspace_bytes(); }

 private:
  friend class Engine;

  registry::KernelPtr kernel_;
  std::shared_ptr<const LoadedKernels> loaded_;
  std::shared_ptr<Workspaces> workspaces_;
  std::shared_ptr<PackedLaunches> packed_;
  op::ProblemKey key_;
  runtime::LaunchConfig config_;
  std::shared_ptr<const plan::Launch> launch_;
  std::optional<Call> call_;  // if the kernel has several steps, or the problem is empty
  bool is_empty_ = false;
  bool is_shape_only_ = false;
};

}  // namespace tilewright::engine
