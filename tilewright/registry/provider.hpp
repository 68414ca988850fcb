// A source of kernels: generates those that fit a problem, and says why it has none.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tilewright/registry/kernel.hpp"

namespace tilewright::registry {

/// Why a family has no kernel for a problem, or why one of its designs does not fit.
struct RefusedKernel {
  std::string name;  // family or kernel
  Refusal refusal;

  const std::string& reason() const { return refusal.reason; }
  bool operator==(const RefusedKernel&) const = default;
};

struct Discovery {
  std::vector<KernelPtr> kernels;
  std::vector<RefusedKernel> refused;
};

/// Kernels one after the other, each made when it is asked for.
class KernelStream {
 public:
  virtual ~KernelStream() = default;
  /// Null at the end.
  virtual KernelPtr next() = 0;
};

/// To bring kernels, derive from this and override family() and generate(). Shared between threads.
class Provider {
 public:
  virtual ~Provider() = default;

  /// "simt_gemm": what messages call it, and what it is registered under.
  virtual std::string family() const = 0;

  /// Refuses targets that no kernel of this provider runs on; it is not asked for any then.
  virtual Support runs_on(const Target& /*target*/) const { return {}; }

  /// Every configuration for `target`, in the order in which kernels of equal rank are offered.
  virtual std::vector<KernelPtr> generate(const Target& /*target*/) const { return {}; }

  /// The same as a stream, for providers of thousands. What Provider::list gives unless overridden is generate().
  virtual std::unique_ptr<KernelStream> list(const Target& target) const;

  /// Appends the kernels that compute `problem` on `target`, or at least one refusal. Unless overridden: those of
  /// generate() that support the problem. What it throws loses this provider's kernels and no other's.
  /// @pre op::validate(problem), runs_on(target)
  virtual void discover(const op::Problem& problem, const Target& target, Discovery& found) const;

  /// The kernel of a signature and design that a person wrote, or the number that makes it impossible.
  virtual Result<KernelPtr> make(const op::Signature& signature, const plan::Design& design) const;
};

using ProviderPtr = std::shared_ptr<const Provider>;

/// Accepts or rejects a kernel by its metadata.
using KernelFilter = std::function<bool(const KernelMetadata&)>;

}  // namespace tilewright::registry
