// The metadata of a kernel: the signature that it computes and the design that it implements. Metadata can be printed,
// compared and hashed, and determines the kernel's unique name.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "tilewright/op/permuted_contraction.hpp"
#include "tilewright/op/signature.hpp"
#include "tilewright/plan/design.hpp"
#include "tilewright/registry/promises.hpp"

namespace tilewright::registry {

struct KernelMetadata {
  std::string family;                  // "sm80_gemm"
  op::Signature signature;             // operation, types, layouts and alignments that the kernel is compiled for
  plan::Design design;                 // includes the target
  std::string name = {};               // an identifier; empty: kernel_name() makes one
  int min_sm = 0;                      // the kernel is offered only on this architecture and newer, as in 90 for sm_90
  Promises promises = {};              // no part of the name
  op::PermutedOperands permuted = {};  // copied to another order of modes by kernels beside the one of the design

  /// The signature of a kernel that computes GEMMs. @pre signature.gemm() is not null
  const op::GemmSignature& operands() const { return std::get<op::GemmSignature>(signature.operands); }
  op::GemmSignature& operands() { return std::get<op::GemmSignature>(signature.operands); }

  bool operator==(const KernelMetadata&) const = default;
};

/// "sm80_gemm_f16r8_f16c8_f32r4_f32_128x128x32_s4_w2x2x1_0123abcd": family; A, B and D as element, row- or
/// column-major, alignment; accumulator; tile, stages, warps. The name is unique, an identifier, and the kernel's
/// symbol. The last part is a digest of the complete signature and design.
std::string kernel_name(const KernelMetadata& metadata);

/// A JSON object with keys in a fixed order. Equal metadata gives equal text.
std::string to_json(const KernelMetadata& metadata);

/// Whether the kernel is offered for, and can be launched on, `target`.
Support runs_on(const KernelMetadata& metadata, const Target& target);

/// Equal for equal metadata.
std::size_t hash_value(const KernelMetadata& metadata);

}  // namespace tilewright::registry

template <>
struct std::hash<tilewright::registry::KernelMetadata> {
  std::size_t operator()(const tilewright::registry::KernelMetadata& metadata) const { return hash_value(metadata); }
};
