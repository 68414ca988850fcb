// A provider offers the kernels of one family: those that support a problem, with the reason for each that does not.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tilewright/registry/kernel.hpp"

namespace tilewright::registry {

/// The reason why a family has no kernel for a problem, or why one kernel or design does not support it.
struct RefusedKernel {
  std::string name;  // of the family or the kernel
  Refusal refusal;

  const std::string& reason() const { return refusal.reason; }
  bool operator==(const RefusedKernel&) const = default;
};

struct Discovery {
  std::vector<KernelPtr> kernels;
  std::vector<RefusedKernel> refused;
};

/// A sequence of kernels that are made lazily.
class KernelStream {
 public:
  virtual ~KernelStream() = default;
  /// Null at the end.
  virtual KernelPtr next() = 0;
};

/// To add kernels, derive from this class and override family() and generate(). Objects are shared between threads.
class Provider {
 public:
  virtual ~Provider() = default;

  /// The name under which it is registered, as in "simt_gemm".
  virtual std::string family() const = 0;

  /// Refuses targets on which no kernel of this provider runs. The other functions are not called for such a target.
  virtual Support runs_on(const Target& /*target*/) const { return {}; }

  /// All kernels for `target`. Their order breaks ties in the ranking.
  virtual std::vector<KernelPtr> generate(const Target& /*target*/) const { return {}; }

  /// All kernels for `target` as a stream, for providers with thousands of kernels. The default uses generate().
  virtual std::unique_ptr<KernelStream> list(const Target& target) const;

  /// Appends the kernels that compute `problem` on `target`, or at least one refusal. The default checks each kernel
  /// of generate() with supports(). An exception discards the kernels of this provider only.
  /// @pre op::validate(problem), runs_on(target)
  virtual void discover(const op::Problem& problem, const Target& target, Discovery& found) const;

  /// The order that every kernel of this provider has to have for `problem` where batch_invariant is required. It may
  /// not depend on M, on the batch count, or on alignments that depend on them. Refused if some M has no kernel. The
  /// default refuses. @pre op::validate(problem), runs_on(target)
  virtual Result<plan::SumOrder> invariant_order(const op::Problem& problem, const Target& target) const;

  /// discover() for a caller who accepts only kernels with this order. Kernels with other orders may be appended; the
  /// engine refuses them. The default calls discover().
  virtual void discover_with_order(const op::Problem& problem, const Target& target, const plan::SumOrder& order,
                                   Discovery& found) const;

  /// Makes the kernel with this signature and design, or refuses with the number that makes it impossible.
  virtual Result<KernelPtr> make(const op::Signature& signature, const plan::Design& design) const;
};

using ProviderPtr = std::shared_ptr<const Provider>;

/// Accepts or rejects a kernel by its metadata.
using KernelFilter = std::function<bool(const KernelMetadata&)>;

}  // namespace tilewright::registry
