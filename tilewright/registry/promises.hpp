// Promises about the bits that a kernel computes: kernels make them in their metadata, and callers can require them.
#pragma once

#include <string>

#include "tilewright/base/support.hpp"

namespace tilewright::registry {

/// In the metadata of a kernel: what the kernel promises. As an argument of a query: what the caller requires.
struct Promises {
  /// Equal inputs give equal bits in every run of this kernel on devices of the same kind.
  bool deterministic = false;
  /// In the metadata of a kernel: the bits of a row of D depend neither on M, nor on the row's place in M, nor on the
  /// batch count, nor on the matrix's place in the batch. An author who declares this for several kernels of one
  /// provider promises that they compute equal bits. In a query: the same holds for the kernels that it chooses for
  /// different M and batch counts, if types, layouts, strides of B, N, K, epilogue and target are the same. Kernels of
  /// shipped families must then have one plan::SumOrder.
  bool batch_invariant = false;

  bool any() const { return deterministic || batch_invariant; }
  bool operator==(const Promises&) const = default;
};

/// "deterministic, batch_invariant"; "none".
std::string to_string(const Promises& promises);

/// Refuses `made` if it lacks a promise that is `required`.
Support check(const Promises& made, const Promises& required);

}  // namespace tilewright::registry
