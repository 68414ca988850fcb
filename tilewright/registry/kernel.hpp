// The interface of all kernels, shipped or user-defined: metadata, support checks, source, launch and estimate.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "tilewright/base/hash.hpp"
#include "tilewright/compile/source.hpp"
#include "tilewright/op/problem.hpp"
#include "tilewright/plan/launch.hpp"
#include "tilewright/plan/sum_order.hpp"
#include "tilewright/registry/metadata.hpp"

namespace tilewright::registry {

/// The estimate of a kernel that has none. Such kernels are ranked last, in the order in which they are offered.
inline constexpr double kUnknownTime = std::numeric_limits<double>::infinity();

/// One launch of a run, and the kernel of the source that it starts, as an index of Kernel::symbol_suffixes().
struct LaunchStep {
  std::size_t kernel = 0;
  plan::Launch launch;
};

/// To add a kernel, derive from this class and implement do_source() and do_launch(). Objects are immutable and shared
/// between threads.
class Kernel {
 public:
  explicit Kernel(KernelMetadata metadata);
  virtual ~Kernel() = default;

  const KernelMetadata& metadata() const { return metadata_; }
  /// Computed on first use, since most kernels that are discovered for a problem are never named.
  const std::string& name() const;

  /// Whether this kernel computes `problem`: the problem is valid, it is of the metadata's operation (or has a GEMM
  /// view if the kernel computes GEMMs), its types, layouts and alignments match the metadata, and do_supports()
  /// accepts it.
  Support supports(const op::Problem& problem) const;

  /// Whether supports() depends only on op::ProblemKey: types, extents, strides, alignments, the epilogue, and whether
  /// C and the product are read. If so, its result is remembered for calls with the same key.
  virtual bool depends_only_on_key() const { return false; }

  /// Whether a run writes every element of the outputs, so that their old contents need not be copied to the device. Of
  /// a user-defined kernel this is not known.
  virtual bool writes_whole_outputs() const { return false; }

  /// Whether the kernel compiles in about half the time of a kernel in CUDA C++ with the same tile, as programs in MLIR
  /// do. Engines that choose by compile time prefer it.
  virtual bool compiles_quickly() const { return false; }

  /// Whether the kernel computes calls whose matrices of one row or one column have the strides of another layout than
  /// its signature's, which address the same elements; see op::with_layouts().
  virtual bool takes_lines_of_any_layout() const { return false; }

  /// The workspace of one run, in bytes of device memory. @pre supports(problem)
  std::size_t workspace_bytes(const op::Problem& problem) const { return launch(problem).workspace_bytes(); }

  /// The complete source: do_source() with name, symbol, target and description filled in.
  compile::Source source() const;

  /// compile::source_digest() of source(), computed once. Kernels with equal metadata may have different sources.
  Digest source_digest() const;

  /// The order of the sums of one call; nothing for kernels whose order is not known, such as user-defined ones.
  /// @pre supports(problem)
  std::optional<plan::SumOrder> sum_order(const op::Problem& problem) const { return do_sum_order(problem); }

  /// Grid, block and arguments of one launch. @pre supports(problem); D is not empty
  plan::Launch launch(const op::Problem& problem) const { return do_launch(problem); }

  /// Most kernels are one `extern "C"` function, which a run launches once; for them this has one empty text. Others
  /// run several functions of their source one after another, whose symbols are Source::symbol with these suffixes.
  virtual std::vector<std::string> symbol_suffixes() const { return {""}; }
  /// Whether a run is launch_steps() instead of launch(), which then has only the resources: the workspace of all
  /// steps, and the grid and the shared memory of the step that needs the most.
  virtual bool has_several_steps() const { return false; }
  /// The launches of one run, in order, with a workspace of workspace_bytes(problem) at `workspace`. Only the launches
  /// of kernels with several steps are asked for. @pre supports(problem); D is not empty
  std::vector<LaunchStep> launch_steps(const op::Problem& problem, std::uint64_t workspace) const {
    return do_launch_steps(problem, workspace);
  }

  /// Sentences about what the kernel does with the operands of this problem beyond what its family does, for reports:
  /// "A is copied to ..., because ...". @pre supports(problem)
  virtual std::vector<std::string> remarks(const op::Problem& /*problem*/) const { return {}; }

  /// The predicted time on the design's target in microseconds, including launch latency. Only for ranking.
  double estimate_us(const op::Problem& problem) const { return do_estimate_us(problem); }

 protected:
  /// Conditions beyond types, layouts and alignments. By default, a kernel that computes GEMMs supports only single
  /// matrices with strided operands. op::view(problem) is the problem as a GEMM.
  virtual Support do_supports(const op::Problem& problem) const;
  /// Returns language, text, headers and options, and the symbol if it is not the name; source() fills in the rest.
  virtual compile::Source do_source() const = 0;
  virtual plan::Launch do_launch(const op::Problem& problem) const = 0;
  virtual std::vector<LaunchStep> do_launch_steps(const op::Problem& problem, std::uint64_t /*workspace*/) const {
    return {{0, do_launch(problem)}};
  }
  virtual double do_estimate_us(const op::Problem& /*problem*/) const { return kUnknownTime; }
  virtual std::optional<plan::SumOrder> do_sum_order(const op::Problem& /*problem*/) const { return std::nullopt; }

  /// For derived classes whose metadata has no target. @pre source() has not been called yet
  void set_target(const Target& target) { plan::tiling(metadata_.design).target = target; }

 private:
  KernelMetadata metadata_;
  mutable std::once_flag named_;
  mutable std::string name_;              // guarded by named_
  mutable std::optional<Digest> digest_;  // guarded by one mutex that all kernels share
};

using KernelPtr = std::shared_ptr<const Kernel>;

}  // namespace tilewright::registry
