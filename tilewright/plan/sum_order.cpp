#include "tilewright/plan/sum_order.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "tilewright/base/rounding.hpp"

namespace tilewright::plan {
namespace {

std::string_view name(arch::MathUnit unit) {
  constexpr std::array<std::string_view, 3> kNames{"fma", "mma.sync", "wgmma"};
  return kNames[static_cast<std::size_t>(unit)];
}

std::string_view name(Tf32Rounding rounding) {
  constexpr std::array<std::string_view, 3> kNames{"unrounded", "nearest", "scaled"};
  return kNames[static_cast<std::size_t>(rounding)];
}

/// Whether the rows of A are not contiguous. A single row whose row stride is 1 counts as a column of a column-major
/// matrix, although describe() calls it row-major, so that the answer is the same for every M.
bool is_column_major(const op::Tensor& a) {
  if (a.rows() > 1) return op::view_matrix(a, "A")->layout == op::MatrixLayout::column_major;
  return a.row_stride() == 1 && a.columns() > 1;
}

}  // namespace

std::string to_string(const SumOrder& order) {
  if (order.is_exact) return "exact";
  const auto [m, n, k] = order.instruction;
  std::string text = fmt::format("{} {}x{}x{} over {}", name(order.unit), m, n, k, order.padded_k);
  if (order.row_k != 0) text += fmt::format(" in rows of {} from {}", order.row_k, order.row_lead);
  if (order.reverses_rows) text += " with reversed rows of taps";
  if (order.channels_of_taps != 0) text += fmt::format(" by {} channels of all taps", order.channels_of_taps);
  if (order.exchanges_operands) text += ", operands exchanged";
  if (order.rounding_a != Tf32Rounding::none || order.rounding_b != Tf32Rounding::none)
    text += fmt::format(", tf32 {} and {}", name(order.rounding_a), name(order.rounding_b));
  if (order.promotion_k != 0) text += fmt::format(", promoted every {}", order.promotion_k);
  if (order.split_k != 1) {
    text += fmt::format(", split_k {} by {} in {} group{}", order.split_k, order.split_k_step, order.split_k_groups,
                        order.split_k_groups == 1 ? "" : "s");
    if (order.takes_turns) text += ", in turns";
  }
  return text;
}

Support check_order(const SumOrder& order, const SumOrder& required) {
  if (order == required) return {};
  return refuse("sums in the order [{}], but batch_invariant requires [{}] for every M", to_string(order),
                to_string(required))
      .as(RefusalCode::promises);
}

bool sums_exactly(const op::GemmView& arguments) {
  return arguments.accumulator == DType::s32 || !arguments.reads_product || arguments.k() == 0;
}

std::int64_t padded_k(const op::GemmView& arguments, int tile_k) { return round_up(arguments.k(), tile_k); }

Support check_order_of_epilogue(const op::Epilogue& epilogue) {
  if (epilogue.compute == DType::s32) return {};
  for (const op::EpilogueOutput& output : epilogue.outputs) {
    if (output.reduction != op::Reduction::sum) continue;
    const bool is_along_n = output.broadcast == op::kColumnVector;
    return refuse("the epilogue's output '{}' sums {} in an order that depends on the tile, and so on M", output.label,
                  is_along_n ? "along N" : "along M")
        .as(RefusalCode::epilogue)
        .of(output.label);
  }
  return {};
}

op::GemmSignature signature_for_every_m(const op::GemmView& arguments) {
  op::GemmSignature signature = op::describe(op::with_longest_lines(arguments));
  const op::Tensor& a = arguments.a.tensor;
  if (!arguments.a.is_matrix()) {
    // The alignment of images does not depend on the number of pixels, and that of a folded operand on the strides.
  } else if (a.columns() == 1) {
    signature.a.layout = op::MatrixLayout::row_major;
    signature.a.alignment = 1;
  } else if (is_column_major(a)) {
    signature.a.layout = op::MatrixLayout::column_major;
    signature.a.alignment = 1;
  } else {
    op::Tensor lines = a;  // only its leading dimension matters
    lines.address = 0;
    signature.a.alignment = op::shared_alignment(lines, {op::view_matrix(a, "A")->ld});
  }
  // A D of one column is column-major for every M, although one element counts as row-major.
  const op::Tensor& d = arguments.d.tensor;
  if (d.columns() == 1 && d.row_stride() == 1 && !arguments.epilogue->is_gated() && arguments.d.is_matrix())
    signature.c.layout = signature.d.layout = op::MatrixLayout::column_major;
  signature.c.alignment = signature.d.alignment = 1;
  for (op::EpilogueTensorSignature& tensor : signature.tensors) tensor.alignment = 1;
  return signature;
}

}  // namespace tilewright::plan
