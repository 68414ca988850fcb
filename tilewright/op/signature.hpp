// What selects code, whatever the problem is. Equality, hash, text and JSON derive from one enumeration of the fields.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "tilewright/op/custom.hpp"
#include "tilewright/op/gemm_signature.hpp"

namespace tilewright::op {

/// The operation's name, and what it says of its operands. Problems that are seen as a GEMM have the GEMM's.
struct Signature {
  std::string operation = "gemm";
  std::variant<GemmDescription, std::vector<SlotDescription>> operands;

  Signature() = default;
  Signature(GemmDescription gemm) : operands(std::move(gemm)) {}  // NOLINT: what describes a GEMM is a signature
  Signature(std::string name, std::vector<SlotDescription> slots)
      : operation(std::move(name)), operands(std::move(slots)) {}

  /// Null where the problem is not seen as a GEMM.
  const GemmDescription* gemm() const { return std::get_if<GemmDescription>(&operands); }
};

/// A member of a struct under the name that texts and JSON give it.
template <class Struct, class Value>
struct Field {
  std::string_view name;
  Value Struct::*member;
};
template <class Struct, class Value>
Field(const char*, Value Struct::*) -> Field<Struct, Value>;

/// Every field of a GemmDescription, in the order of texts. What a new field must be added to; signature.cpp asserts
/// that none is missing.
inline constexpr std::tuple kGemmFields{
    Field{"a", &GemmDescription::a},
    Field{"b", &GemmDescription::b},
    Field{"c", &GemmDescription::c},
    Field{"d", &GemmDescription::d},
    Field{"has_c", &GemmDescription::has_c},
    Field{"accumulator", &GemmDescription::accumulator},
    Field{"math", &GemmDescription::math},
    Field{"epilogue", &GemmDescription::epilogue},
    Field{"tensors", &GemmDescription::tensors},
};

/// Calls visit(name, value) for every field.
template <class Visit>
void for_each_field(const GemmDescription& description, const Visit& visit) {
  std::apply([&](const auto&... field) { (visit(field.name, description.*field.member), ...); }, kGemmFields);
}

/// Whether both compile to the same code: the values of the epilogue's scalars, which are launch arguments, may differ.
bool same_code(const Signature& x, const Signature& y);
bool same_code(const GemmDescription& x, const GemmDescription& y);
inline bool operator==(const Signature& x, const Signature& y) { return same_code(x, y); }

/// Equal for signatures of the same code.
std::size_t hash_value(const Signature& signature);

/// "gemm a=f16:row:8 b=f16:column:8 ... epilogue=linear_combination f32 add(...)": equal for the same code, and only
/// then. What digests and names are made of.
std::string to_string(const Signature& signature);

}  // namespace tilewright::op
