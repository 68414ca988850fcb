#include "tilewright/op/grouped_gemm.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <tuple>

#include "tilewright/op/epilogue_tensors.hpp"
#include "tilewright/op/fill.hpp"

namespace tilewright::op {
namespace {

/// How an operand lies in a mode; `role` is 'A' to 'D'.
OperandAccess access_of(GroupedMode mode, char role) {
  using enum OperandAccess;
  switch (mode) {
    case GroupedMode::ragged_m:
      return role == 'B' ? strided : ragged_rows;
    case GroupedMode::ragged_n:
      return role == 'A' ? strided : ragged_columns;
    case GroupedMode::ragged_k:
      return role == 'A' ? ragged_columns : role == 'B' ? ragged_rows : strided;
    case GroupedMode::masked_m:
    case GroupedMode::masked_n:
    case GroupedMode::none:
      return strided;
  }
  return strided;
}

Support check_ends(const GroupedGemm& grouped) {
  const std::string_view role = ends_name(grouped.mode);
  const Tensor& ends = grouped.ends;
  if (ends.dtype != DType::s32)
    return refuse("'{}' must be s32, got {}", role, name(ends.dtype)).as(RefusalCode::types).of(role);
  if (ends.shape.rank() != 1 || ends.is_pointer_array() || ends.interleaved != InterleavedMode::none) {
    return refuse("'{}' must have one mode, with one number for each group, got {}", role, to_string(ends.shape))
        .as(RefusalCode::shape)
        .of(role);
  }
  if (const Support valid = check_modes(ends, role); !valid) return valid;
  if (ends.shape[0] > 1 && ends.stride[0] != 1) {
    return refuse("'{}' must be contiguous, but its stride is {}", role, ends.stride[0])
        .as(RefusalCode::strides)
        .of(role);
  }
  if (ends.shape[0] > std::numeric_limits<std::int32_t>::max())
    return refuse("there must be less than 2^31 groups, got {}", ends.shape[0]).as(RefusalCode::shape).of(role);
  return {};
}

Support check_batch(const GroupedGemm& grouped, char role, const Tensor& tensor, bool is_used) {
  if (!is_used) return {};
  const std::string text(1, role);
  if (tensor.interleaved != InterleavedMode::none) {
    return refuse("{} is interleaved, but grouped_gemm takes only row-major and column-major matrices", role)
        .as(RefusalCode::strides)
        .of(text);
  }
  const std::int64_t batch = tensor.batch();
  if (access_of(grouped.mode, role) != OperandAccess::strided) {
    if (batch == 1 && !tensor.is_pointer_array()) return {};
    return refuse("{} is {}, but in {} it is one matrix in which the groups are stacked", role,
                  tensor.is_pointer_array() ? "an array of pointers" : fmt::format("a batch of {}", batch),
                  name(grouped.mode))
        .as(RefusalCode::shape)
        .of(text);
  }
  const bool may_serve_all = role != 'D' && !tensor.is_pointer_array();
  if (batch == grouped.groups() || (batch == 1 && may_serve_all)) return {};
  return refuse("{} has a batch of {}, but there are {} groups", role, batch, grouped.groups())
      .as(RefusalCode::shape)
      .of(text);
}

Support check_batches(const GroupedGemm& grouped) {
  const Gemm& gemm = grouped.gemm;
  for (const auto& [role, tensor, is_used] : {std::tuple{'A', &gemm.a, true},
                                              {'B', &gemm.b, true},
                                              {'C', &gemm.c, reads_source(gemm)},
                                              {'D', &gemm.d, true}}) {
    if (const Support fits = check_batch(grouped, role, *tensor, is_used); !fits) return fits;
  }
  return gemm.d.is_pointer_array() ? Support() : check_distinct(gemm.d, "D");
}

// `Problem` is GroupedGemm or const GroupedGemm.
template <class List, class Problem>
List operands_of(Problem& grouped) {
  List list = operands(grouped.gemm);
  const auto d = std::ranges::find(list, std::string_view("D"), [](const auto& each) { return each.name; });
  for (auto& each : list) each.is_partly_written = is_written(each.access) && grouped.mode != GroupedMode::ragged_k;
  list.insert(d + 1, {ends_name(grouped.mode), &grouped.ends, Access::read});
  return list;
}

}  // namespace

std::string_view name(GroupedMode mode) {
  constexpr std::array<std::string_view, 6> kNames{"none", "ragged_m", "ragged_n", "ragged_k", "masked_m", "masked_n"};
  return kNames[static_cast<std::size_t>(mode)];
}

Tensor group_ends(std::uint64_t address, std::int64_t groups, MemoryDevice device) {
  return {.address = address, .dtype = DType::s32, .shape = {groups}, .stride = {1}, .device = device};
}

std::string_view ends_name(GroupedMode mode) { return is_ragged(mode) ? "offsets" : "counts"; }

Support check_grouped_epilogue(GroupedMode mode, const Epilogue& epilogue) {
  if (mode == GroupedMode::none) return {};
  if (differs_in_n(mode) && epilogue.is_gated())
    return refuse("the epilogue pairs columns of A*B, which {} does not support", name(mode)).as(RefusalCode::epilogue);
  for (const EpilogueOutput& output : epilogue.outputs) {
    if (output.reduction == Reduction::none) continue;
    return refuse("the epilogue's output '{}' is a reduction, which grouped_gemm does not support", output.label)
        .as(RefusalCode::epilogue)
        .of(output.label);
  }
  return {};
}

Support validate(const GroupedGemm& grouped) {
  if (grouped.mode == GroupedMode::none)
    return refuse("a grouped_gemm needs a mode such as ragged_m").as(RefusalCode::operation);
  const Gemm& gemm = grouped.gemm;
  if (const Support matrices = check_matrices(gemm); !matrices) return matrices;
  if (const Support epilogue = check_grouped_epilogue(grouped.mode, gemm.epilogue); !epilogue) return epilogue;
  if (const Support ends = check_ends(grouped); !ends) return ends;
  if (const Support batches = check_batches(grouped); !batches) return batches;
  if (const Support tensors = check_epilogue_tensors(gemm, grouped.mode, grouped.groups()); !tensors) return tensors;
  return grouped.is_empty() ? Support() : check_memory(operands(grouped));
}

std::vector<Operand> operands(GroupedGemm& grouped) { return operands_of<std::vector<Operand>>(grouped); }
std::vector<ConstOperand> operands(const GroupedGemm& grouped) {
  return operands_of<std::vector<ConstOperand>>(grouped);
}

GemmView view(const GroupedGemm& grouped) {
  GemmView all = view(grouped.gemm);
  all.groups = grouped.mode;
  all.ends = grouped.ends;
  for (const auto& [role, operand] : {std::pair{'A', &all.a}, {'B', &all.b}, {'C', &all.c}, {'D', &all.d}}) {
    const OperandAccess access = access_of(grouped.mode, role);
    if (access != OperandAccess::strided) operand->access = access;
  }
  return all;
}

GroupInterval group_interval(const GemmView& view, std::int64_t index) {
  const std::int64_t capacity = differs_in_m(view.groups) ? view.m() : differs_in_n(view.groups) ? view.n() : view.k();
  const auto end_of = [&](std::int64_t group) {
    return std::clamp<std::int64_t>(static_cast<std::int64_t>(load_at(view.ends, group)), 0, capacity);
  };
  const std::int64_t begin = is_ragged(view.groups) && index > 0 ? end_of(index - 1) : 0;
  return {begin, std::max(begin, end_of(index))};
}

}  // namespace tilewright::op
