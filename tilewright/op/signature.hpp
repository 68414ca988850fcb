// The part of any problem that selects code. Equality, hash, text and JSON are derived from one list of the fields.
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
#include "tilewright/op/reduce_split_k.hpp"

namespace tilewright::op {

/// The name of the operation and the signatures of its operands. A problem that has a GemmView has the signature of
/// that GEMM.
struct Signature {
  std::string operation = "gemm";
  std::variant<GemmSignature, ReduceSplitKSignature, std::vector<OperandSignature>> operands;

  Signature() = default;
  Signature(GemmSignature gemm) : operands(std::move(gemm)) {}  // NOLINT: implicit conversion is intended
  Signature(ReduceSplitKSignature reduction)                    // NOLINT: as above
      : operation("reduce_split_k"), operands(std::move(reduction)) {}
  Signature(std::string name, std::vector<OperandSignature> signatures)
      : operation(std::move(name)), operands(std::move(signatures)) {}

  /// Null if the operation is not computed as a GEMM.
  const GemmSignature* gemm() const { return std::get_if<GemmSignature>(&operands); }
  /// Null if the operation is not ReduceSplitK.
  const ReduceSplitKSignature* reduce_split_k() const { return std::get_if<ReduceSplitKSignature>(&operands); }
};

/// A pointer to a member, and the name of that member in text and JSON.
template <class Struct, class Value>
struct Field {
  std::string_view name;
  Value Struct::*member;
};
template <class Struct, class Value>
Field(const char*, Value Struct::*) -> Field<Struct, Value>;

/// Every field of a GemmSignature, in the order of the text form. A new field must be added here; signature.cpp
/// asserts that none is missing.
inline constexpr std::tuple kGemmFields{
    Field{"a", &GemmSignature::a},
    Field{"b", &GemmSignature::b},
    Field{"c", &GemmSignature::c},
    Field{"d", &GemmSignature::d},
    Field{"has_c", &GemmSignature::has_c},
    Field{"accumulator", &GemmSignature::accumulator},
    Field{"math", &GemmSignature::math},
    Field{"epilogue", &GemmSignature::epilogue},
    Field{"tensors", &GemmSignature::tensors},
    Field{"groups", &GemmSignature::groups},
};

/// Every field of a ReduceSplitKSignature, in the order of the text form.
inline constexpr std::tuple kReduceSplitKFields{
    Field{"parts", &ReduceSplitKSignature::parts},
    Field{"c", &ReduceSplitKSignature::c},
    Field{"d", &ReduceSplitKSignature::d},
    Field{"has_c", &ReduceSplitKSignature::has_c},
    Field{"accumulator", &ReduceSplitKSignature::accumulator},
    Field{"epilogue", &ReduceSplitKSignature::epilogue},
    Field{"tensors", &ReduceSplitKSignature::tensors},
};

constexpr const auto& fields_of(const GemmSignature& /*signature*/) { return kGemmFields; }
constexpr const auto& fields_of(const ReduceSplitKSignature& /*signature*/) { return kReduceSplitKFields; }

/// Whether text and JSON leave the field out, so that those of problems without groups are what they were before there
/// were grouped problems.
template <class Value>
constexpr bool is_left_out(const Value& /*value*/) {
  return false;
}
constexpr bool is_left_out(GroupedMode mode) { return mode == GroupedMode::none; }

/// Calls visit(name, value) for each field that is not left out.
template <class Struct, class Visit>
void for_each_field(const Struct& signature, const Visit& visit) {
  const auto visit_one = [&](std::string_view name, const auto& value) {
    if (!is_left_out(value)) visit(name, value);
  };
  std::apply([&](const auto&... field) { (visit_one(field.name, signature.*field.member), ...); },
             fields_of(signature));
}

/// Whether both select the same code. The values of the epilogue's scalars are launch arguments and may differ.
bool same_code(const Signature& x, const Signature& y);
bool same_code(const GemmSignature& x, const GemmSignature& y);
bool same_code(const ReduceSplitKSignature& x, const ReduceSplitKSignature& y);
inline bool operator==(const Signature& x, const Signature& y) { return same_code(x, y); }

/// Equal for signatures that select the same code.
std::size_t hash_value(const Signature& signature);

/// "gemm a=f16:row:8 b=f16:column:8 ... epilogue=linear_combination f32 add(...)". Two texts are equal if and only if
/// the signatures select the same code. Digests and kernel names are computed from this text.
std::string to_string(const Signature& signature);

}  // namespace tilewright::op
