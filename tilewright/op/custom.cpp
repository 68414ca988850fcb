#include "tilewright/op/custom.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "tilewright/base/text.hpp"
#include "tilewright/op/epilogue_tensors.hpp"

namespace tilewright::op {
namespace {

void check_name(std::string_view what, const std::string& name, std::set<std::string>& taken) {
  if (!is_identifier(name))
    throw InvalidArgument(fmt::format("the name of {} must be an identifier, got '{}'", what, printable(name)));
  if (!taken.insert(name).second)
    throw InvalidArgument(fmt::format("two operands or scalars have the name '{}'", name));
}

// The extent, if this entry of a declared shape is a number.
std::optional<std::int64_t> fixed_extent(std::string_view entry) {
  std::int64_t extent = 0;
  const auto [end, error] = std::from_chars(entry.data(), entry.data() + entry.size(), extent);
  if (error != std::errc() || end != entry.data() + entry.size()) return std::nullopt;
  return extent;
}

void check_shape(const OperandDeclaration& operand) {
  if (operand.shape.size() > static_cast<std::size_t>(Dims::kMaxRank)) {
    throw InvalidArgument(
        fmt::format("'{}' has {} modes; a tensor has at most {}", operand.name, operand.shape.size(), Dims::kMaxRank));
  }
  for (const std::string& entry : operand.shape) {
    const std::optional<std::int64_t> extent = fixed_extent(entry);
    if (extent ? *extent < 0 : !is_identifier(entry)) {
      throw InvalidArgument(fmt::format("an extent of '{}' must be an identifier or a non-negative number, got '{}'",
                                        operand.name, printable(entry)));
    }
  }
}

template <class Items>
auto find_named(Items& items, std::string_view name) {
  const auto found = std::ranges::find_if(items, [&](const auto& each) { return each.name == name; });
  return found == items.end() ? nullptr : &*found;
}

// Sorts `given` into the order of `declared`. `missing` makes the value of a declaration that has none, or throws.
template <class Declared, class Given, class Missing>
std::vector<Given> in_order(const Operation& operation, std::string_view what, const std::vector<Declared>& declared,
                            std::vector<Given> given, const Missing& missing) {
  for (const Given& each : given) {
    if (find_named(declared, each.name) == nullptr) {
      throw InvalidArgument(fmt::format("{} has no {} '{}'", operation.name(), what, printable(each.name)));
    }
    if (std::ranges::count(given, each.name, &Given::name) > 1)
      throw InvalidArgument(fmt::format("the {} '{}' of {} is given twice", what, each.name, operation.name()));
  }
  std::vector<Given> ordered;
  for (const Declared& each : declared) {
    Given* const found = find_named(given, each.name);
    ordered.push_back(found == nullptr ? missing(each) : std::move(*found));
  }
  return ordered;
}

template <class TensorPointer, class Problem>
std::vector<BasicOperand<TensorPointer>> operands_of(Problem& problem) {
  std::vector<BasicOperand<TensorPointer>> operands;
  for (std::size_t i = 0; i < problem.tensors.size(); ++i) {
    auto& tensor = problem.tensors[i].tensor;
    operands.push_back({problem.tensors[i].name, &tensor, problem.operation->operands()[i].access, !tensor.is_empty()});
  }
  return operands;
}

Support check_layout(const Tensor& tensor, std::string_view name) {
  if (tensor.is_pointer_array()) {
    return refuse("'{}' is an array of pointers, which only A, B, C and D of a GEMM may be", name)
        .as(RefusalCode::strides)
        .of(name);
  }
  if (tensor.stride.rank() != tensor.shape.rank()) {
    return refuse("'{}' has shape {} and strides {}: they must have the same rank", name, to_string(tensor.shape),
                  to_string(tensor.stride))
        .as(RefusalCode::strides)
        .of(name);
  }
  if (tensor.interleaved != InterleavedMode::none)
    return refuse("'{}' is interleaved, which only operands of a GEMM may be", name).as(RefusalCode::strides).of(name);
  return check_modes(tensor, name);
}

// Elements of an output must not share memory: with the modes sorted by stride, each stride must exceed the offset of
// the last element of the modes before it.
Support check_output_elements(const Tensor& tensor, std::string_view name) {
  std::vector<std::pair<std::int64_t, std::int64_t>> modes;  // stride, extent
  for (int i = 0; i < tensor.shape.rank(); ++i) {
    if (tensor.shape[i] > 1) modes.emplace_back(tensor.stride[i], tensor.shape[i]);
  }
  std::ranges::sort(modes);
  std::int64_t span = 1;  // elements that the modes so far cover
  for (const auto& [stride, extent] : modes) {
    if (stride < span) {
      return refuse(
                 "elements of '{}' overlap: the mode with extent {} has stride {}, but the inner modes span {} "
                 "elements",
                 name, extent, stride, span)
          .as(RefusalCode::overlap)
          .of(name);
    }
    span += stride * (extent - 1);
  }
  return {};
}

Support check_operand(const Custom& problem, std::size_t index, std::map<std::string, std::int64_t>& extents) {
  const OperandDeclaration& operand = problem.operation->operands()[index];
  const Tensor& tensor = problem.tensors[index].tensor;
  if (tensor.shape.rank() != static_cast<int>(operand.shape.size())) {
    return refuse("'{}' must have {} modes ({}), got shape {}", operand.name, operand.shape.size(),
                  fmt::join(operand.shape, ", "), to_string(tensor.shape))
        .as(RefusalCode::shape)
        .of(operand.name);
  }
  if (const Support valid = check_layout(tensor, operand.name); !valid) return valid;
  if (!operand.types.empty() && std::ranges::find(operand.types, tensor.dtype) == operand.types.end()) {
    std::vector<std::string_view> names;
    for (const DType type : operand.types) names.push_back(tilewright::name(type));
    return refuse("'{}' must be {}, got {}", operand.name, fmt::join(names, " or "), tilewright::name(tensor.dtype))
        .as(RefusalCode::types)
        .of(operand.name);
  }
  for (std::size_t mode = 0; mode < operand.shape.size(); ++mode) {
    const std::string& entry = operand.shape[mode];
    const std::int64_t extent = tensor.shape[static_cast<int>(mode)];
    const std::optional<std::int64_t> fixed = fixed_extent(entry);
    const std::int64_t expected = fixed ? *fixed : extents.try_emplace(entry, extent).first->second;
    if (extent == expected) continue;
    return refuse("mode {} of '{}' must be {}, got {}", mode, operand.name,
                  fixed ? entry : fmt::format("{} = {}", entry, expected), extent)
        .as(RefusalCode::shape)
        .of(operand.name);
  }
  return is_written(operand.access) ? check_output_elements(tensor, operand.name) : Support();
}

OperandSignature describe_operand(const ConstOperand& operand) {
  const Tensor& tensor = *operand.tensor;
  OperandSignature signature{std::string(operand.name), operand.access, tensor.dtype, tensor.shape.rank(), -1, 1};
  std::vector<std::int64_t> steps;
  for (int mode = tensor.shape.rank() - 1; mode >= 0; --mode) {
    if (signature.contiguous < 0 && tensor.stride[mode] == 1) {
      signature.contiguous = mode;
    } else if (tensor.shape[mode] > 1) {
      steps.push_back(tensor.stride[mode]);
    }
  }
  signature.alignment = shared_alignment(tensor, steps);
  return signature;
}

}  // namespace

Operation::Operation(std::string name, std::vector<OperandDeclaration> operands, std::vector<NamedScalar> scalars)
    : name_(std::move(name)), operands_(std::move(operands)), scalars_(std::move(scalars)) {
  static const std::set<std::string> kBuiltIn{"gemm", "reduce_split_k", "grouped_gemm", "conv2d", "contraction"};
  if (!is_identifier(name_))
    throw InvalidArgument(fmt::format("the name of an operation must be an identifier, got '{}'", printable(name_)));
  if (kBuiltIn.contains(name_)) throw InvalidArgument(fmt::format("'{}' is a built-in operation", name_));
  std::set<std::string> taken;
  for (const OperandDeclaration& operand : operands_) {
    check_name("an operand", operand.name, taken);
    check_shape(operand);
  }
  for (const NamedScalar& scalar : scalars_) check_name("a scalar", scalar.name, taken);
  if (std::ranges::none_of(operands_, [](const OperandDeclaration& operand) { return is_written(operand.access); }))
    throw InvalidArgument(fmt::format("{} does not write any operand", name_));
}

Result<GemmView> Operation::view(const Custom& /*problem*/) const {
  return refuse("{} is not computed as a GEMM", name_);
}

void Operation::reference(const Custom& /*problem*/) const { TILEWRIGHT_CHECK(false, "{} has no reference", name_); }

Custom Custom::make(OperationPtr operation, std::vector<NamedTensor> tensors, std::vector<NamedScalar> scalars) {
  const Operation& declared = *operation;
  std::vector<NamedTensor> operands =
      in_order(declared, "operand", declared.operands(), std::move(tensors),
               [&](const OperandDeclaration& operand) -> NamedTensor {
                 throw InvalidArgument(fmt::format("{} needs the operand '{}'", declared.name(), operand.name));
               });
  std::vector<NamedScalar> values = in_order(declared, "scalar", declared.scalars(), std::move(scalars),
                                             [](const NamedScalar& by_default) { return by_default; });
  return {std::move(operation), std::move(operands), std::move(values)};
}

const Tensor& Custom::tensor(std::string_view name) const {
  const Tensor* const found = find_tensor(tensors, name);
  TILEWRIGHT_CHECK(found != nullptr, "{} has no operand '{}'", operation->name(), name);
  return *found;
}

double Custom::scalar(std::string_view name) const {
  const NamedScalar* const found = find_named(scalars, name);
  TILEWRIGHT_CHECK(found != nullptr, "{} has no scalar '{}'", operation->name(), name);
  return found->value;
}

std::int64_t Custom::extent(std::string_view name) const {
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const std::vector<std::string>& shape = operation->operands()[i].shape;
    const auto found = std::ranges::find(shape, name);
    if (found != shape.end()) return tensors[i].tensor.shape[static_cast<int>(found - shape.begin())];
  }
  TILEWRIGHT_CHECK(false, "no shape of {} has the extent '{}'", operation->name(), name);
}

bool Custom::is_empty() const {
  for (const ConstOperand& each : operands(*this)) {
    if (is_written(each.access) && each.is_used) return false;
  }
  return true;
}

std::vector<Operand> operands(Custom& problem) { return operands_of<Tensor*>(problem); }
std::vector<ConstOperand> operands(const Custom& problem) { return operands_of<const Tensor*>(problem); }

Support validate(const Custom& problem) {
  std::map<std::string, std::int64_t> extents;
  for (std::size_t i = 0; i < problem.tensors.size(); ++i) {
    if (const Support valid = check_operand(problem, i, extents); !valid) return valid;
  }
  if (const Support valid = check_memory(operands(problem)); !valid) return valid;
  return problem.operation->check(problem);
}

std::string to_string(const OperandSignature& signature) {
  const std::string contiguous =
      signature.contiguous < 0 ? "strided" : fmt::format("contiguous{}", signature.contiguous);
  return fmt::format("{}:{}:{}:{}d:{}:{}", signature.name, name(signature.access), name(signature.element),
                     signature.rank, contiguous, signature.alignment);
}

std::vector<OperandSignature> describe(const Custom& problem) {
  std::vector<OperandSignature> signatures;
  for (const ConstOperand& operand : operands(problem)) signatures.push_back(describe_operand(operand));
  return signatures;
}

}  // namespace tilewright::op
