#include "tilewright/op/permuted_contraction.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "tilewright/base/rounding.hpp"
#include "tilewright/base/tensor_map.hpp"

namespace tilewright::op {
namespace {

constexpr std::int64_t kBufferAlignment = 256;  // bytes

struct Letters {
  std::string m, n, k, batch;  // each fastest first
};

bool has(std::string_view modes, char mode) { return modes.find(mode) != std::string_view::npos; }

/// A tensor of the contraction and the letters of its modes.
struct NamedModes {
  const Tensor& tensor;
  std::string_view modes;

  /// Nothing if the tensor lacks the mode.
  std::optional<int> place(char mode) const {
    const std::size_t at = modes.find(mode);
    return at < static_cast<std::size_t>(tensor.shape.rank()) ? std::optional(static_cast<int>(at)) : std::nullopt;
  }
  /// 0 for a mode that the tensor lacks, or that has one element.
  std::int64_t stride(char mode) const {
    const std::optional<int> at = place(mode);
    return at && tensor.shape[*at] != 1 ? tensor.stride[*at] : 0;
  }
  /// 1 for a mode that the tensor lacks.
  std::int64_t extent(char mode) const {
    const std::optional<int> at = place(mode);
    return at ? tensor.shape[*at] : 1;
  }
};

/// Sorts letters by their strides in `first`, then in `second`.
void sort_by(std::string& letters, const NamedModes& first, const NamedModes& second) {
  std::ranges::stable_sort(letters, {}, [&](char mode) { return std::pair{first.stride(mode), second.stride(mode)}; });
}

/// The modes of each class in the order of an operand that is not copied. If both that have them are copied, it is that
/// of the input, whose copy then needs no other order within the class.
Letters ordered_letters(const Contraction& contraction, const PermutedOperands& copied) {
  const NamedModes a{contraction.a, contraction.modes_a}, b{contraction.b, contraction.modes_b},
      d{contraction.d, contraction.modes_d};
  Letters letters;
  for (const char mode : contraction.modes_d) {
    const bool in_a = has(contraction.modes_a, mode), in_b = has(contraction.modes_b, mode);
    (in_a && in_b ? letters.batch : in_a ? letters.m : letters.n) += mode;
  }
  for (const char mode : contraction.modes_a + contraction.modes_b) {
    if (!has(contraction.modes_d, mode) && !has(letters.k, mode)) letters.k += mode;
  }
  const auto order = [](std::string& modes, const NamedModes& preferred, bool is_copied, const NamedModes& other) {
    is_copied ? sort_by(modes, other, preferred) : sort_by(modes, preferred, other);
  };
  order(letters.m, d, copied.d, a);
  order(letters.n, d, copied.d, b);
  order(letters.batch, d, copied.d && !(copied.a && copied.b), copied.a ? b : a);
  order(letters.k, a, copied.a && !copied.b, b);
  return letters;
}

/// The letters of `modes` that the tensor has and does not repeat.
std::string those_of(std::string_view modes, const NamedModes& tensor) {
  std::string own;
  for (const char mode : modes) {
    const bool repeats = has(tensor.modes, mode) && tensor.extent(mode) != 1 && tensor.stride(mode) == 0;
    if (has(tensor.modes, mode) && !repeats) own += mode;
  }
  return own;
}

/// Lays the modes out in this order: those of a row, then the rows, then the matrices. Returns the number of elements.
std::int64_t set_strides(Tensor& tensor, const NamedModes& like, std::string_view row, std::string_view lines,
                         std::string_view batch) {
  std::int64_t stride = 1;
  for (int mode = 0; mode < tensor.stride.rank(); ++mode) tensor.stride[mode] = 0;
  for (const std::string_view modes : {row, lines, batch}) {
    for (const char mode : modes) {
      if (const std::optional<int> at = like.place(mode)) tensor.stride[*at] = stride;
      stride *= like.extent(mode);
    }
    if (modes.data() == row.data()) stride = round_up(stride, kTmaAlignment / bytes(tensor.dtype));
  }
  return stride;
}

/// Whether the instructions of the tensor cores read operands of these elements only along K.
bool must_be_k_major(const Contraction& contraction) {
  return bytes(contraction.a.dtype) == 1 ||
         (contraction.a.dtype == DType::f32 && contraction.math != MathOperation::multiply_add);
}

class Copies {
 public:
  Copies(PermutedContraction& result, std::uint64_t workspace) : result_(result), workspace_(workspace) {}

  /// Makes `copy` a copy of `tensor` whose rows have the modes `row`, in the workspace.
  void add(std::vector<OperandCopy>& copies, std::string_view role, const Tensor& tensor, std::string_view modes,
           const std::array<std::string, 3>& order, bool is_used, Tensor& copy) {
    const NamedModes like{tensor, modes};
    copy = tensor;
    copy.address = workspace_ + static_cast<std::uint64_t>(result_.workspace_bytes);
    const std::int64_t elements = set_strides(copy, like, order[0], order[1], order[2]);
    result_.workspace_bytes += round_up(elements * bytes(tensor.dtype), kBufferAlignment);
    OperandCopy made{.role = role, .permutation = {tensor, copy}, .is_used = is_used, .order = {}};
    if (role == "D") std::swap(made.permutation.from, made.permutation.to);
    for (const std::string& part : order) {
      if (!part.empty()) made.order += (made.order.empty() ? "" : "|") + part;
    }
    copies.push_back(std::move(made));
  }

 private:
  PermutedContraction& result_;
  std::uint64_t workspace_;
};

bool reads_c(const GemmView& view) { return view.reads_source; }

}  // namespace

std::string to_string(const PermutedOperands& operands) {
  return std::string(operands.a ? "a" : "") + (operands.b ? "b" : "") + (operands.d ? "d" : "");
}

bool has_folded_operands(const Contraction& contraction) {
  const GemmView gemm = view(contraction);
  const auto is_folded = [](const OperandView& operand) { return operand.access == OperandAccess::folded; };
  return is_folded(gemm.a) || is_folded(gemm.b) || is_folded(gemm.d);
}

Result<PermutedContraction> permute(const Contraction& problem, const PermutedOperands& operands,
                                    std::uint64_t workspace, std::int64_t max_bytes) {
  const Contraction contraction = with_folded_tensor_as_source(problem).value_or(problem);
  const GemmView given = view(contraction);
  const Letters letters = ordered_letters(contraction, operands);
  PermutedContraction result{.inner = contraction, .before = {}, .after = {}, .workspace_bytes = 0};
  Copies copies(result, workspace);
  const auto add_input = [&](std::string_view role, const Tensor& tensor, std::string_view modes,
                             const std::string& outer, Tensor& copy) {
    const NamedModes like{tensor, modes};
    std::string along_k = those_of(letters.k, like), along_outer = those_of(outer, like);
    // Rows along M or N need no transposition if the operand is contiguous there, too.
    const bool is_contiguous = !along_outer.empty() && like.stride(along_outer[0]) == 1;
    const bool by_k = along_outer.empty() || (!along_k.empty() && (must_be_k_major(contraction) || !is_contiguous));
    if (!by_k) std::swap(along_k, along_outer);
    copies.add(result.before, role, tensor, modes, {along_k, along_outer, those_of(letters.batch, like)},
               given.reads_product, copy);
  };
  if (operands.a) add_input("A", contraction.a, contraction.modes_a, letters.m, result.inner.a);
  if (operands.b) add_input("B", contraction.b, contraction.modes_b, letters.n, result.inner.b);
  if (operands.d) {
    const NamedModes like{contraction.d, contraction.modes_d};
    const bool by_m = !letters.m.empty() && (letters.n.empty() || like.stride(letters.m[0]) == 1);
    const auto order =
        by_m ? std::array{letters.m, letters.n, letters.batch} : std::array{letters.n, letters.m, letters.batch};
    copies.add(result.after, "D", contraction.d, contraction.modes_d, order, true, result.inner.d);
    if (given.has_source) {
      copies.add(result.before, "C", contraction.c, contraction.modes_d, order, reads_c(given), result.inner.c);
      if (contraction.c.address == 0) result.inner.c.address = 0;
    }
  }
  if (result.workspace_bytes > max_bytes) {
    return refuse("copies of {} need {} bytes of workspace, at most {} are allowed", to_string(operands),
                  result.workspace_bytes, max_bytes)
        .as(RefusalCode::memory);
  }
  if (const Support valid = validate(result.inner); !valid) return valid.refusal();
  return result;
}

}  // namespace tilewright::op
