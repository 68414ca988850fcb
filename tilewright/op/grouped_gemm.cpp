#include "tilewright/op/grouped_gemm.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <tuple>

#include "tilewright/op/epilogue_tensors.hpp"
#include "tilewright/op/fill.hpp"

namespace tilewright::op {
namespace {

constexpr std::string_view kLeadingDimensions = "leading_dimensions";

/// How an operand lies in a mode; `role` is 'A' to 'D'.
OperandAccess access_of(GroupedMode mode, char role) {
  if (mode == GroupedMode::independent) return OperandAccess::independent;
  if (!is_stacked(mode, role)) return OperandAccess::strided;
  const bool has_rows = mode == GroupedMode::ragged_m || (mode == GroupedMode::ragged_k && role == 'B');
  return has_rows ? OperandAccess::ragged_rows : OperandAccess::ragged_columns;
}

/// Refuses what is not packed s32 of shape (groups) or, if each group has several numbers, (groups, numbers).
Support check_numbers(std::string_view role, const Tensor& tensor, std::int64_t numbers) {
  if (tensor.dtype != DType::s32)
    return refuse("'{}' must be s32, got {}", role, name(tensor.dtype)).as(RefusalCode::types).of(role);
  const bool is_list = numbers == 1;
  const bool fits = is_list ? tensor.shape.rank() == 1 : tensor.shape.rank() == 2 && tensor.shape[1] == numbers;
  if (!fits || tensor.is_pointer_array() || tensor.interleaved != InterleavedMode::none) {
    return refuse("'{}' must have {}, with {} for each group, got {}", role,
                  is_list ? std::string("one mode") : fmt::format("shape (groups,{})", numbers),
                  is_list ? std::string("one number") : fmt::format("{} numbers", numbers), to_string(tensor.shape))
        .as(RefusalCode::shape)
        .of(role);
  }
  if (const Support valid = check_modes(tensor, role); !valid) return valid;
  const std::int64_t groups = tensor.shape[0];
  const std::int64_t own = is_list ? 1 : tensor.stride[1];
  if (const std::int64_t step = tensor.stride[0]; (groups > 1 && step != numbers) || own != 1) {
    return refuse("'{}' must be contiguous, but its stride is {}", role, own != 1 ? own : step)
        .as(RefusalCode::strides)
        .of(role);
  }
  if (groups > std::numeric_limits<std::int32_t>::max())
    return refuse("there must be less than 2^31 groups, got {}", groups).as(RefusalCode::shape).of(role);
  return {};
}

Support check_ends(const GroupedGemm& grouped) {
  const bool is_independent = grouped.mode == GroupedMode::independent;
  if (grouped.ends == Tensor{}) {
    return refuse("'{}' is missing: set GroupedGemm::ends to {}", ends_name(grouped.mode),
                  is_independent ? "group_extents(...)" : "group_ends(...)")
        .as(RefusalCode::memory)
        .of(ends_name(grouped.mode));
  }
  if (is_independent && grouped.leading_dimensions == Tensor{}) {
    return refuse("'{}' are missing: set GroupedGemm::leading_dimensions to group_leading_dimensions(...)",
                  kLeadingDimensions)
        .as(RefusalCode::memory)
        .of(kLeadingDimensions);
  }
  if (const Support ends = check_numbers(ends_name(grouped.mode), grouped.ends, is_independent ? 3 : 1); !ends)
    return ends;
  if (!is_independent) {
    if (grouped.leading_dimensions == Tensor{}) return {};
    return refuse("only independent groups have leading dimensions of their own, but the mode is {}",
                  name(grouped.mode))
        .as(RefusalCode::shape)
        .of(kLeadingDimensions);
  }
  if (const Support lds = check_numbers(kLeadingDimensions, grouped.leading_dimensions, 4); !lds) return lds;
  if (const std::int64_t count = grouped.leading_dimensions.shape[0]; count != grouped.groups()) {
    return refuse("'{}' are those of {} groups, but there are {}", kLeadingDimensions, count, grouped.groups())
        .as(RefusalCode::shape)
        .of(kLeadingDimensions);
  }
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
  if (grouped.mode == GroupedMode::independent && !tensor.is_pointer_array()) {
    return refuse("{} must be an array of pointers, because independent groups lie anywhere", role)
        .as(RefusalCode::strides)
        .of(text);
  }
  if (is_ragged(access_of(grouped.mode, role))) {
    if (batch == 1 && !tensor.is_pointer_array()) return {};
    return refuse("{} is {}, but in {} it is one matrix in which the groups are stacked", role,
                  tensor.is_pointer_array() ? "an array of pointers" : fmt::format("a batch of {}", batch),
                  name(grouped.mode))
        .as(RefusalCode::shape)
        .of(text);
  }
  if (grouped.mode == GroupedMode::masked_k && (role == 'A' || role == 'B') && tensor.is_pointer_array()) {
    return refuse("{} is an array of pointers, but in masked_k it is a batch with one stride", role)
        .as(RefusalCode::strides)
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
  for (auto& each : list) each.is_partly_written = is_written(each.access) && !ends_along_k(grouped.mode);
  const auto ends = list.insert(d + 1, {ends_name(grouped.mode), &grouped.ends, Access::read});
  if (grouped.mode == GroupedMode::independent)
    list.insert(ends + 1, {kLeadingDimensions, &grouped.leading_dimensions, Access::read});
  return list;
}

}  // namespace

std::string_view name(GroupedMode mode) {
  constexpr std::array<std::string_view, 8> kNames{"none",     "ragged_m", "ragged_n", "ragged_k",
                                                   "masked_m", "masked_n", "masked_k", "independent"};
  return kNames[static_cast<std::size_t>(mode)];
}

std::optional<GroupedMode> parse_grouped_mode(std::string_view text) {
  using enum GroupedMode;
  for (const GroupedMode each : {ragged_m, ragged_n, ragged_k, masked_m, masked_n, masked_k, independent}) {
    if (name(each) == text) return each;
  }
  return std::nullopt;
}

Tensor group_ends(std::uint64_t address, std::int64_t groups, MemoryDevice device) {
  return {.address = address, .dtype = DType::s32, .shape = {groups}, .stride = {1}, .device = device};
}

Tensor group_extents(std::uint64_t address, std::int64_t groups, MemoryDevice device) {
  return {.address = address, .dtype = DType::s32, .shape = {groups, 3}, .stride = {3, 1}, .device = device};
}

Tensor group_leading_dimensions(std::uint64_t address, std::int64_t groups, MemoryDevice device) {
  return {.address = address, .dtype = DType::s32, .shape = {groups, 4}, .stride = {4, 1}, .device = device};
}

std::string_view ends_name(GroupedMode mode) {
  if (mode == GroupedMode::independent) return "extents";
  return is_ragged(mode) ? "offsets" : "counts";
}

Support check_grouped_epilogue(GroupedMode mode, const Epilogue& epilogue) {
  if (mode == GroupedMode::none) return {};
  if ((differs_in_n(mode) || mode == GroupedMode::independent) && epilogue.is_gated())
    return refuse("the epilogue pairs columns of A*B, which grouped GEMMs of mode {} do not support", name(mode))
        .as(RefusalCode::epilogue);
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
  all.leading_dimensions = grouped.leading_dimensions;
  all.expected = grouped.expected;
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

IndependentGroup independent_group(const GemmView& view, std::int64_t index) {
  const auto extent = [&](std::int64_t mode, std::int64_t capacity) {
    return std::clamp<std::int64_t>(static_cast<std::int64_t>(load_at(view.ends, index * 3 + mode)), 0, capacity);
  };
  const auto ld = [&](std::int64_t operand) {
    return static_cast<std::int64_t>(load_at(view.leading_dimensions, index * 4 + operand));
  };
  return {extent(0, view.m()), extent(1, view.n()), extent(2, view.k()), ld(0), ld(1), ld(2), ld(3)};
}

Tensor matrix_of_group(const GemmView& view, char role, std::int64_t index) {
  const IndependentGroup group = independent_group(view, index);
  const auto matrix_in = [&](const OperandView& operand, std::int64_t rows, std::int64_t columns, std::int64_t ld) {
    const Tensor one = slice(operand.tensor, index);
    return matrix(one.address, one.dtype, rows, columns, view_matrix(operand.tensor, "operand")->layout, ld,
                  one.device);
  };
  switch (role) {
    case 'A':
      return matrix_in(view.a, group.m, group.k, group.lda);
    case 'B':
      return matrix_in(view.b, group.k, group.n, group.ldb);
    case 'C':
      return matrix_in(view.c, group.m, group.n, group.ldc);
    default:
      return matrix_in(view.d, group.m, group.n, group.ldd);
  }
}

}  // namespace tilewright::op
