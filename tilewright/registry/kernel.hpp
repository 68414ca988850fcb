// A kernel: metadata, and the verbs that check before they do. Ours and a user's enter by this door.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "tilewright/base/hash.hpp"
#include "tilewright/compile/source.hpp"
#include "tilewright/op/problem.hpp"
#include "tilewright/plan/launch.hpp"
#include "tilewright/registry/metadata.hpp"

namespace tilewright::registry {

/// The estimate of a kernel whose author gives none: it is ranked behind all that have one, in the order offered.
inline constexpr double kUnknownTime = std::numeric_limits<double>::infinity();

/// To bring a kernel, derive from this: do_source() and do_launch() say what it is and how it starts. Immutable and
/// shared between threads once made.
class Kernel {
 public:
  explicit Kernel(KernelMetadata metadata);
  virtual ~Kernel() = default;

  const KernelMetadata& metadata() const { return metadata_; }
  /// Computed when first asked for: of the kernels that a problem is offered, few are.
  const std::string& name() const;

  /// Whether this kernel computes `problem`: the problem is valid and of the operation that the metadata names (or seen
  /// as a GEMM where that is what the kernel computes), its types, layouts and alignments are those the kernel was made
  /// for, and the author's own conditions hold.
  Support supports(const op::Problem& problem) const;

  /// Whether supports() asks for nothing but the kind of call: types, extents, strides, alignments, the epilogue, and
  /// whether C and the product are read. What was supported once need not be asked about again then.
  virtual bool depends_only_on_key() const { return false; }

  /// Bytes of device memory that one run needs beside its operands. @pre supports(problem)
  std::size_t workspace_bytes(const op::Problem& problem) const { return launch(problem).workspace_bytes(); }

  /// What this kernel is made of, complete.
  compile::Source source() const;

  /// compile::source_digest() of it: kernels of equal metadata may have other texts. Computed once.
  Digest source_digest() const;

  /// The integers of one launch. @pre supports(problem); D has elements
  plan::Launch launch(const op::Problem& problem) const { return do_launch(problem); }

  /// Predicted time on its design's target, in microseconds, launch included: a figure to rank by, not to quote.
  double estimate_us(const op::Problem& problem) const { return do_estimate_us(problem); }

 protected:
  /// Conditions beyond types, layouts and alignments. Unless overridden, a kernel of GEMMs takes single matrices with
  /// strided operands only. op::view(problem) has the problem as a GEMM.
  virtual Support do_supports(const op::Problem& problem) const;
  /// Language and text; the symbol where it is not the name; headers, options. The rest is filled in.
  virtual compile::Source do_source() const = 0;
  virtual plan::Launch do_launch(const op::Problem& problem) const = 0;
  virtual double do_estimate_us(const op::Problem& /*problem*/) const { return kUnknownTime; }

  /// For authors whose metadata does not say what to compile for. @pre nobody has asked for the source yet
  void set_target(const Target& target) { metadata_.design.target = target; }

 private:
  KernelMetadata metadata_;
  mutable std::once_flag named_;
  mutable std::string name_;              // guarded by named_
  mutable std::optional<Digest> digest_;  // guarded by a mutex for all kernels
};

using KernelPtr = std::shared_ptr<const Kernel>;

}  // namespace tilewright::registry
