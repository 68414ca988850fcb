// What a kernel is, as data: what it takes, how it works, what it fuses. Printable, comparable, hashable, unique by
// name.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "tilewright/op/signature.hpp"
#include "tilewright/plan/design.hpp"

namespace tilewright::registry {

struct KernelMetadata {
  std::string family;       // "sm80_gemm"
  op::Signature signature;  // the operation that it computes, and the types, layouts and alignments it is compiled for
  plan::Design design;      // its target is what the kernel is compiled for
  std::string name = {};    // that its author gave it: an identifier; empty: kernel_name() makes one
  int min_sm = 0;           // 90: it is offered on sm_90 and newer

  /// What a kernel of GEMMs is compiled for. @pre signature.gemm() is not null
  const op::GemmDescription& operands() const { return std::get<op::GemmDescription>(signature.operands); }
  op::GemmDescription& operands() { return std::get<op::GemmDescription>(signature.operands); }

  bool operator==(const KernelMetadata&) const = default;
};

/// "sm80_gemm_f16r8_f16c8_f32r4_f32_128x128x32_s4_w2x2x1_0123abcd": family; A, B and D as element, row- or
/// column-major, alignment; accumulator; tile, stages, warps. Unique, an identifier, and the kernel's symbol. The last
/// part is a digest of all that the readable parts leave out.
std::string kernel_name(const KernelMetadata& metadata);

/// One JSON object, keys in a fixed order. Equal metadata has equal text.
std::string to_json(const KernelMetadata& metadata);

/// Whether such a kernel is offered for, and started on, `target`.
Support runs_on(const KernelMetadata& metadata, const Target& target);

/// Equal for equal metadata.
std::size_t hash_value(const KernelMetadata& metadata);

}  // namespace tilewright::registry

template <>
struct std::hash<tilewright::registry::KernelMetadata> {
  std::size_t operator()(const tilewright::registry::KernelMetadata& metadata) const { return hash_value(metadata); }
};
