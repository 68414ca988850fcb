// A problem of any kind as one type, which engine, registry, tuning, cache, bindings and command take.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tilewright/op/contraction.hpp"
#include "tilewright/op/conv2d.hpp"
#include "tilewright/op/custom.hpp"
#include "tilewright/op/gemm.hpp"
#include "tilewright/op/gemm_view.hpp"
#include "tilewright/op/grouped_gemm.hpp"
#include "tilewright/op/reduce_split_k.hpp"
#include "tilewright/op/reference.hpp"
#include "tilewright/op/signature.hpp"

namespace tilewright::op {

using Problem = std::variant<Gemm, ReduceSplitK, GroupedGemm, Conv2d, Contraction, Custom>;

/// "gemm", "reduce_split_k", "grouped_gemm", "conv2d", "contraction", or the name of a user-defined operation.
std::string_view operation_name(const Problem& problem);

/// The operands of the problem, to which they refer.
std::vector<Operand> operands(Problem& problem);
std::vector<ConstOperand> operands(const Problem& problem);

/// Refuses problems that no kernel could compute.
Support validate(const Problem& problem);

/// The problem as a GEMM, or the reason why it is not one. The view refers to the problem. @pre validate(problem)
Result<GemmView> view(const Problem& problem);

/// The signature, which selects code. @pre validate(problem)
Signature describe(const Problem& problem);

/// Whether all outputs are empty, so that there is nothing to compute.
bool is_empty(const Problem& problem);
/// Whether the tensors have shapes but no memory. Such a problem can be planned, compiled and prepared, but not run.
bool is_shape_only(const Problem& problem);
/// The device of the operands. @pre validate(problem)
MemoryDevice device(const Problem& problem);

/// The key under which a prepared kernel is remembered: everything in a call except scalar values and
/// addresses, of which it has only the alignments.
struct ProblemKey {
  Signature signature;
  /// Whether the call reads C, whether it reads A and B, and whether D is A*B; these depend on alpha and beta.
  bool reads_source = false, reads_product = false, stores_accumulator = false;
  /// splits_sectors() of A and B of a GEMM, which changes the order of the kernels.
  bool a_splits_sectors = false, b_splits_sectors = false;
  /// GEMM: m, n, k, batch, then 3 strides for each of A, B, C and D. GroupedGemm: the same at its capacity, with the
  /// number of groups as batch. ReduceSplitK: the same, with the number of parts
  /// as k, the strides of the parts in place of A's, and zeros in place of B's.
  std::array<std::int64_t, 16> extents_and_strides{};
  /// Strides of auxiliary tensors, then the numbers of im2col operands and modes of folded ones, those of C last; or
  /// extents and strides of user-defined operands.
  std::vector<std::int64_t> more{};
  /// shared_alignment() of tensors whose addresses kernels depend on further than the signature says: matrices of one
  /// line, tensors that are copied, channels of depthwise convolutions.
  std::vector<int> alignments{};
  GroupSummary expected{};  // GroupedGemm::expected, which changes the order of the kernels

  bool operator==(const ProblemKey&) const = default;
};
/// @pre validate(problem)
ProblemKey key(const Problem& problem);

struct ProblemKeyHash {
  std::size_t operator()(const ProblemKey& key) const;
};

/// Refuses two keys with the same signature whose extents or strides differ, with the numbers.
Support check_same_extents(const ProblemKey& prepared, const ProblemKey& given);

/// The key of a tuning record as one line: extents, whether C is read, and the signature. @pre validate(problem)
std::string problem_class(const Problem& problem);

/// The problem to time: an alpha of 0 is replaced by 1, so that the product is computed. Refuses problems with nothing
/// to measure. The sizes of groups are measured as they are. @pre validate(problem)
Result<Problem> measurable(const Problem& problem);

/// The number of arithmetic operations; 0 for operations of users that are not computed as a GEMM.
double operations(const Problem& problem);

/// The largest magnitude of integer inputs whose sums are exact in the accumulator; 3 for operations of users that are
/// not computed as a GEMM. @pre validate(problem)
std::int64_t largest_exact_input(const Problem& problem);

/// Whether reference() and compare() can compute the expected outputs.
bool has_reference(const Problem& problem);

/// Computes the expected outputs: see reference(const GemmView&) and reference(const ReduceSplitK&). @pre
/// has_reference(problem), tensors on the host
void reference(const Problem& problem);

/// Compares the outputs of a kernel with the reference: see compare(const GemmView&). If Operation::reference is
/// implemented, all elements are compared, within Operation::tolerance(). @pre as reference()
Comparison compare(const Problem& problem, std::uint64_t seed = 0);

}  // namespace tilewright::op
