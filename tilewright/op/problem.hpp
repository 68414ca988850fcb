// A problem of any kind, as one value: what engine, registry, tuning, cache, bindings and command take.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tilewright/op/custom.hpp"
#include "tilewright/op/gemm.hpp"
#include "tilewright/op/gemm_view.hpp"
#include "tilewright/op/reference.hpp"
#include "tilewright/op/signature.hpp"
#include "tilewright/op/unbuilt_problems.hpp"

namespace tilewright::op {

using Problem = std::variant<Gemm, GroupedGemm, Conv2d, Contraction, Custom>;

/// "gemm", "grouped_gemm", "conv2d", "contraction", or the name of an author's operation.
std::string_view operation_name(const Problem& problem);

/// Its operands. The slots refer to the problem.
std::vector<Slot> operands(Problem& problem);
std::vector<ConstSlot> operands(const Problem& problem);

/// Says what is wrong with the problem itself, whatever the kernel.
Support validate(const Problem& problem);

/// The problem as a GEMM, or why it is none. The view refers to the problem. @pre validate(problem)
Result<GemmView> view(const Problem& problem);

/// What selects code for it. @pre validate(problem)
Signature describe(const Problem& problem);

/// Whether its outputs have no elements, so that there is nothing to compute.
bool is_empty(const Problem& problem);
/// Whether its tensors are shapes without memory: it can be planned, compiled and prepared, and not run.
bool is_shape(const Problem& problem);
/// Where its operands lie. @pre validate(problem)
MemoryDevice device(const Problem& problem);

/// What two calls must share to run the same prepared kernel: everything but addresses and the values of scalars.
struct ProblemKey {
  Signature signature;
  /// Whether the call reads C and the product, and whether D is the product: alpha and beta decide.
  bool reads_source = false, reads_product = false, stores_sums = false;
  std::array<std::int64_t, 16> extents_and_strides{};  // of a GEMM: m, n, k, batch, then 3 strides of A, B, C and D
  std::vector<std::int64_t> more{};                    // of the epilogue's tensors; of an author's operands

  bool operator==(const ProblemKey&) const = default;
};
/// @pre validate(problem)
ProblemKey key(const Problem& problem);

struct ProblemKeyHash {
  std::size_t operator()(const ProblemKey& key) const;
};

/// Where two keys of one signature differ: "m = 3" against "m = 4"; supported where they do not.
Support check_same_extents(const ProblemKey& prepared, const ProblemKey& given);

/// One line of text for what a tuning is about: extents, signature and whether C is read. @pre validate(problem)
std::string problem_class(const Problem& problem);

/// The problem as it is measured: with an alpha that does not skip the product. Refuses problems with nothing to
/// measure. @pre validate(problem)
Result<Problem> measurable(const Problem& problem);

/// Floating-point or integer operations; 0 where the operation is not seen as a GEMM.
double operations(const Problem& problem);

/// Whether reference() and compare() can say what the outputs must be.
bool has_reference(const Problem& problem);

/// Writes what the outputs must be: see reference(const GemmView&). @pre has_reference(problem), tensors on the host
void reference(const Problem& problem);

/// Compares the outputs that a kernel left with the reference: see compare(const GemmView&). Outputs of an author's
/// operation are compared whole, within Operation::tolerance(). @pre as reference()
Comparison compare(const Problem& problem, std::uint64_t seed = 0);

}  // namespace tilewright::op
