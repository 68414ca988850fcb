// A source of kernels: generates those that fit a problem, and says why it has none.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tilewright/registry/kernel.hpp"

namespace tilewright::registry {

/// Why a family has no kernel for a problem, or why one of its designs does not fit.
struct RefusedKernel {
  std::string name;  // family or kernel
  std::string reason;
  bool operator==(const RefusedKernel&) const = default;
};

struct Discovery {
  std::vector<KernelPtr> kernels;
  std::vector<RefusedKernel> refused;
};

class Provider {
 public:
  virtual ~Provider() = default;

  /// "simt_gemm"
  virtual std::string family() const = 0;

  /// Appends the kernels that run `arguments` on `target`, or at least one refusal.
  /// @pre op::validate(arguments)
  virtual void discover(const op::Gemm& arguments, const Target& target, Discovery& found) const = 0;

  /// The kernel of a description and design that a person wrote, or the number that makes it impossible.
  virtual Result<KernelPtr> make(const op::GemmDescription& description, const plan::Design& design) const = 0;
};

/// Accepts or rejects a kernel by its metadata.
using KernelFilter = std::function<bool(const KernelMetadata&)>;

}  // namespace tilewright::registry
