#include "tilewright/op/epilogue_tensors.hpp"

#include <algorithm>
#include <array>

#include "tilewright/base/text.hpp"

namespace tilewright::op {
namespace {

// Whether the tensor is stacked as D is, instead of a batch.
bool is_stacked(GroupedMode mode, const Broadcast& broadcast) {
  return (mode == GroupedMode::ragged_m && broadcast.along_m) || (mode == GroupedMode::ragged_n && broadcast.along_n);
}

Support check_batch(const Gemm& gemm, const EpilogueTensor& expected, const Tensor& tensor, GroupedMode mode,
                    std::int64_t groups) {
  const std::int64_t batch = tensor.batch();
  if (is_stacked(mode, expected.broadcast)) {
    if (batch == 1) return {};
    return refuse("'{}' has a batch of {}, but in {} it is stacked as D is", expected.label, batch, name(mode))
        .as(RefusalCode::shape)
        .of(expected.label);
  }
  if (!expected.is_written && batch == 1) return {};
  if (mode != GroupedMode::none && batch != groups) {
    return refuse("'{}' has a batch of {}, but there are {} groups", expected.label, batch, groups)
        .as(RefusalCode::shape)
        .of(expected.label);
  }
  if (mode == GroupedMode::none && batch != gemm.batch()) {
    return refuse("'{}' has a batch of {}, but D has a batch of {}", expected.label, batch, gemm.batch())
        .as(RefusalCode::shape)
        .of(expected.label);
  }
  return {};
}

Support check_epilogue_tensor(const Gemm& gemm, const EpilogueTensor& expected, GroupedMode mode, std::int64_t groups) {
  const auto& [label, broadcast, is_written] = expected;
  const Tensor* tensor = find_tensor(gemm.tensors, label);
  if (tensor == nullptr) {
    return refuse("the epilogue {} '{}', but no tensor has that name", is_written ? "writes" : "reads", label)
        .as(RefusalCode::epilogue)
        .of(label);
  }
  if (tensor->is_pointer_array()) {
    return refuse("'{}' is an array of pointers, which only A, B, C and D may be", label)
        .as(RefusalCode::strides)
        .of(label);
  }
  if (const Support valid = check_strides(*tensor, label); !valid) return valid;
  if (tensor->interleaved != InterleavedMode::none)
    return refuse("'{}' is interleaved, which only A, B, C and D may be", label).as(RefusalCode::strides).of(label);
  if ((tensor->dtype == DType::f64) != (gemm.epilogue.compute == DType::f64)) {
    return refuse("'{}' is {}, but the epilogue computes in {}: it must {}be f64", label, name(tensor->dtype),
                  name(gemm.epilogue.compute), gemm.epilogue.compute == DType::f64 ? "" : "not ")
        .as(RefusalCode::types)
        .of(label);
  }
  const Dims shape{broadcast.along_m ? gemm.m() : 1, broadcast.along_n ? gemm.n() : 1};
  if (tensor->rows() != shape[0] || tensor->columns() != shape[1]) {
    return refuse("'{}' must be {}, got {}", label, to_string(shape),
                  to_string(Dims{tensor->rows(), tensor->columns()}))
        .as(RefusalCode::shape)
        .of(label);
  }
  if (const Support fits = check_batch(gemm, expected, *tensor, mode, groups); !fits) return fits;
  if (!is_written) return {};
  const bool has_memory = tensor->address != 0;  // a shape without memory is checked by validate(signature)
  const auto output = std::ranges::find(gemm.epilogue.outputs, label, &EpilogueOutput::label);
  const bool is_sum = output != gemm.epilogue.outputs.end() && output->reduction == Reduction::sum;
  // The sum of no elements is 0. Groups without elements store nothing.
  if (has_memory && gemm.is_empty() && !tensor->is_empty() && !(is_sum && mode == GroupedMode::none))
    return refuse("'{}' of shape {} reduces D, which has no elements: there is no result to store", label,
                  to_string(shape))
        .as(RefusalCode::shape)
        .of(label);
  if (const Result<MatrixView> view = view_matrix(*tensor, label); !view) return view.refusal();
  return check_distinct(*tensor, label);
}

EpilogueTensorSignature describe_epilogue_tensor(const Tensor& tensor, const EpilogueTensor& role, GroupedMode mode) {
  EpilogueTensorSignature signature{.element = tensor.dtype};
  const Broadcast& broadcast = role.broadcast;
  if (role.is_written && broadcast != kFull) return signature;  // results of a reduction are stored as scalars
  const bool columns = broadcast.along_n && tensor.column_stride() == 1;
  if (!columns && !(broadcast.along_m && tensor.row_stride() == 1)) return signature;
  signature.contiguous = columns ? ContiguousMode::columns : ContiguousMode::rows;
  if (mode == (columns ? GroupedMode::ragged_n : GroupedMode::ragged_m)) return signature;  // a group begins anywhere
  const std::int64_t lines = columns ? tensor.rows() : tensor.columns();
  const std::int64_t step = columns ? tensor.row_stride() : tensor.column_stride();
  const std::int64_t line = columns ? tensor.columns() : tensor.rows();
  signature.alignment =
      shared_alignment(tensor, {lines > 1 ? step : 0, role.is_written ? line : 0, tensor.batch_stride()});
  return signature;
}

}  // namespace

const Tensor* find_tensor(std::span<const NamedTensor> tensors, std::string_view name) {
  const auto found = std::ranges::find(tensors, name, &NamedTensor::name);
  return found == tensors.end() ? nullptr : &found->tensor;
}

Support check_distinct(const Tensor& tensor, std::string_view role) {
  if (tensor.is_empty() || tensor.batch() == 1) return {};
  const MatrixView view = *view_matrix(tensor, role);
  const std::int64_t line = view.line(tensor), lines = view.lines(tensor);
  const std::int64_t step = tensor.batch_stride();
  const std::int64_t matrix = (lines - 1) * (lines > 1 ? view.ld : 0) + line;
  const bool interleaves = step >= line && view.ld >= (tensor.batch() - 1) * step + line;
  if (step >= matrix || interleaves) return {};
  return refuse("matrices of {} overlap: the batch stride is {} elements, but each matrix spans {}", role, step, matrix)
      .as(RefusalCode::overlap)
      .of(role);
}

std::vector<EpilogueTensor> epilogue_tensors(const Epilogue& epilogue) {
  std::vector<EpilogueTensor> all;
  for (const EpilogueNode* node : epilogue.tensors()) all.push_back({node->label, node->broadcast, false});
  for (const EpilogueOutput& output : epilogue.outputs) all.push_back({output.label, output.broadcast, true});
  return all;
}

bool is_output(const Epilogue& epilogue, std::string_view label) {
  return std::ranges::find(epilogue.outputs, label, &EpilogueOutput::label) != epilogue.outputs.end();
}

bool is_full_input(const Epilogue& epilogue, std::string_view label) {
  return std::ranges::any_of(epilogue.tensors(), [&](const EpilogueNode* tensor) {
    return tensor->label == label && tensor->broadcast == kFull;
  });
}

Support check_epilogue_tensors(const Gemm& gemm) { return check_epilogue_tensors(gemm, GroupedMode::none, 0); }

Support check_epilogue_tensors(const Gemm& gemm, GroupedMode mode, std::int64_t groups) {
  const std::vector<EpilogueTensor> expected = epilogue_tensors(gemm.epilogue);
  for (const EpilogueTensor& each : expected) {
    if (const Support support = check_epilogue_tensor(gemm, each, mode, groups); !support) return support;
  }
  for (std::size_t i = 0; i < gemm.tensors.size(); ++i) {
    const std::string& label = gemm.tensors[i].name;
    if (std::ranges::find(expected, label, &EpilogueTensor::label) == expected.end())
      return refuse("the epilogue has no tensor '{}'", printable(label)).as(RefusalCode::epilogue).of(label);
    if (find_tensor(gemm.tensors, label) != &gemm.tensors[i].tensor)
      return refuse("two tensors have the name '{}'", printable(label)).as(RefusalCode::epilogue).of(label);
  }
  return {};
}

std::vector<EpilogueTensorSignature> describe_epilogue_tensors(const Epilogue& epilogue,
                                                               std::span<const NamedTensor> tensors, GroupedMode mode) {
  std::vector<EpilogueTensorSignature> all;
  for (const EpilogueTensor& each : epilogue_tensors(epilogue)) {
    const Tensor* const tensor = find_tensor(tensors, each.label);
    TILEWRIGHT_CHECK(tensor != nullptr, "the problem has no tensor '{}'", each.label);
    all.push_back(describe_epilogue_tensor(*tensor, each, mode));
  }
  return all;
}

const Tensor& Gemm::tensor(std::string_view name) const {
  const Tensor* found = find_tensor(tensors, name);
  TILEWRIGHT_CHECK(found != nullptr, "the problem has no tensor '{}'", name);
  return *found;
}

std::string_view name(ContiguousMode mode) {
  constexpr std::array<std::string_view, 3> kNames{"none", "rows", "columns"};
  return kNames[static_cast<std::size_t>(mode)];
}

std::string to_string(std::span<const EpilogueTensorSignature> signatures) {
  std::vector<std::string> texts;
  for (const EpilogueTensorSignature& each : signatures) texts.push_back(to_string(each));
  return fmt::format("{}", fmt::join(texts, " "));
}

std::string to_string(const EpilogueTensorSignature& signature) {
  return fmt::format("{}:{}:{}", name(signature.element), name(signature.contiguous), signature.alignment);
}

}  // namespace tilewright::op
