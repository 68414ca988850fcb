#include "tilewright/op/signature.hpp"

#include <algorithm>

namespace tilewright::op {
namespace {

// An aggregate with N members can be initialized from N values and not from N + 1, which counts the members.
struct AnyValue {
  template <class T>
  operator T() const;  // NOLINT: never defined; converts to a member of any type
};
template <class Struct, std::size_t... kIndices>
constexpr bool has_members(std::index_sequence<kIndices...>) {
  return requires { Struct{(static_cast<void>(kIndices), AnyValue{})...}; };
}
template <class Struct, class Fields>
constexpr bool has_as_many_members(const Fields&) {
  constexpr std::size_t kCount = std::tuple_size_v<Fields>;
  return has_members<Struct>(std::make_index_sequence<kCount>()) &&
         !has_members<Struct>(std::make_index_sequence<kCount + 1>());
}
static_assert(has_as_many_members<GemmSignature>(kGemmFields), "kGemmFields and the struct differ");
static_assert(has_as_many_members<ReduceSplitKSignature>(kReduceSplitKFields),
              "kReduceSplitKFields and the struct differ");

template <class T>
bool same(const T& x, const T& y) {
  return x == y;
}
bool same(const Epilogue& x, const Epilogue& y) { return same_code(x, y); }

template <class Struct>
bool same_fields(const Struct& x, const Struct& y) {
  return std::apply([&](const auto&... field) { return (same(x.*field.member, y.*field.member) && ...); },
                    fields_of(x));
}

// FNV-1a over 64-bit words, with a final fold: a table index, not an identity; equality decides.
class WordHash {
 public:
  void mix(std::uint64_t word) { state_ = (state_ ^ word) * 0x100000001b3ULL; }
  std::size_t finish() const { return state_ ^ (state_ >> 32); }

 private:
  std::uint64_t state_ = 0xcbf29ce484222325ULL;
};

template <class Enum>
requires std::is_enum_v<Enum> || std::is_integral_v<Enum> std::uint64_t word(Enum value) {
  return static_cast<std::uint64_t>(value);
}
std::uint64_t word(const TensorSignature& tensor) {
  return word(tensor.element) | word(tensor.layout) << 8 | word(tensor.alignment) << 16 |
         word(tensor.is_pointer_array) << 48 | word(tensor.im2col) << 49 | word(tensor.folded_modes) << 52 |
         word(tensor.shared_taps) << 56;
}
// Names of labels and values of constants are left to equality.
std::uint64_t word(const Epilogue& epilogue) {
  WordHash hash;
  for (const EpilogueNode& node : epilogue.nodes) hash.mix(word(node.op));
  return hash.finish();
}
std::uint64_t word(const std::vector<EpilogueTensorSignature>& tensors) {
  WordHash hash;
  for (const EpilogueTensorSignature& tensor : tensors) hash.mix(word(tensor.element) | word(tensor.alignment) << 8);
  return hash.finish();
}
std::uint64_t word(const OperandSignature& operand) {
  return word(operand.element) | word(operand.contiguous) << 8 | word(operand.alignment) << 16;
}

std::string text(const TensorSignature& tensor) { return to_string(tensor); }
std::string text(bool value) { return value ? "yes" : "no"; }
std::string text(DType type) { return std::string(tilewright::name(type)); }
std::string text(MathOperation math) { return std::string(name(math)); }
std::string text(GroupedMode mode) { return std::string(name(mode)); }
// The order of scalars is that of the launch arguments, and not always that of the formula.
std::string text(const Epilogue& epilogue) {
  return fmt::format("{} [{}]", signature(epilogue), fmt::join(epilogue.scalars(), ","));
}
std::string text(const std::vector<EpilogueTensorSignature>& tensors) { return to_string(tensors); }

}  // namespace

bool same_code(const GemmSignature& x, const GemmSignature& y) { return same_fields(x, y); }
bool same_code(const ReduceSplitKSignature& x, const ReduceSplitKSignature& y) { return same_fields(x, y); }

bool same_code(const Signature& x, const Signature& y) {
  if (x.operation != y.operation || x.operands.index() != y.operands.index()) return false;
  if (x.gemm() != nullptr) return same_code(*x.gemm(), *y.gemm());
  if (x.reduce_split_k() != nullptr) return same_code(*x.reduce_split_k(), *y.reduce_split_k());
  return std::get<std::vector<OperandSignature>>(x.operands) == std::get<std::vector<OperandSignature>>(y.operands);
}

std::size_t hash_value(const Signature& signature) {
  WordHash hash;
  if (const GemmSignature* const gemm = signature.gemm()) {
    for_each_field(*gemm, [&](std::string_view, const auto& value) { hash.mix(word(value)); });
    return hash.finish();
  }
  hash.mix(std::hash<std::string>()(signature.operation));
  if (const ReduceSplitKSignature* const reduction = signature.reduce_split_k()) {
    for_each_field(*reduction, [&](std::string_view, const auto& value) { hash.mix(word(value)); });
    return hash.finish();
  }
  for (const OperandSignature& operand : std::get<std::vector<OperandSignature>>(signature.operands))
    hash.mix(word(operand));
  return hash.finish();
}

std::string to_string(const Signature& signature) {
  std::string all = signature.operation;
  const auto append = [&](std::string_view name, const auto& value) {
    all += fmt::format(" {}={}", name, text(value));
  };
  if (const GemmSignature* const gemm = signature.gemm()) {
    for_each_field(*gemm, append);
    return all;
  }
  if (const ReduceSplitKSignature* const reduction = signature.reduce_split_k()) {
    for_each_field(*reduction, append);
    return all;
  }
  for (const OperandSignature& operand : std::get<std::vector<OperandSignature>>(signature.operands))
    all += ' ' + to_string(operand);
  return all;
}

}  // namespace tilewright::op
