// The reference: the expected D, computed on the host in f64, and the error bound within which a kernel is accepted.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "tilewright/op/gemm_view.hpp"
#include "tilewright/op/reduce_split_k.hpp"

namespace tilewright::op {

/// Writes D and the epilogue's outputs. Products and sums are computed in f64, which is exact for integer operands (s32
/// accumulators wrap). Operands are rounded first if the math operation rounds them to f16 or bf16. The epilogue is
/// evaluated in f64, and its result is rounded once to D's type. C is not read if beta is 0; A and B are not read if
/// alpha or k is 0.
/// Calls check_interruption(), like the comparisons below. @pre the problem is valid, every tensor on the host
void reference(const GemmView& gemm);
/// Writes D and the outputs of a reduction of split-K, whose sums of parts are computed in f64, too. The parts are not
/// read if alpha is 0. @pre as above
void reference(const ReduceSplitK& reduction);

/// The element whose error is the largest fraction of its bound.
struct WorstElement {
  std::string tensor = "D";  // or the name of an output of the epilogue
  std::int64_t batch = 0;
  std::int64_t row = 0;
  std::int64_t column = 0;
  double actual = 0.0;
  double expected = 0.0;  // before rounding to the tensor's type
  double bound = 0.0;     // on |actual - expected|
};

struct Comparison {
  std::int64_t batch = 1;
  std::int64_t elements = 0;  // in D and the epilogue's outputs
  std::int64_t checked = 0;   // less than `elements` if a sample was checked
  std::int64_t equal = 0;     // equal to the value that reference() stores
  std::int64_t outside = 0;   // beyond the error bound, or NaN in only one of the two
  double max_error = 0.0;     // largest finite |actual - expected|
  WorstElement worst;

  bool is_exact() const { return equal == checked; }
  bool is_within_bound() const { return outside == 0; }
};

/// "65536 elements equal the reference bit for bit", or "65536 elements within the error bound (60000 exact, largest
/// error 1.2e-07)", or the number of wrong elements and the first of them.
std::string to_string(const Comparison& comparison);

/// "D[1,2] is 3, expected 4 within 0.5"; for a batch, its index comes first.
std::string describe_worst(const Comparison& comparison);

/// Compares D and the epilogue's outputs, as a kernel wrote them, with the reference, element by element.
///
/// The error bound of an element has these terms:
/// - accumulation: (k+2) * 2u * sum|a||b| for an accumulator with unit roundoff u, in any order of addition. Higham,
///   Accuracy and Stability of Numerical Algorithms, section 3.1, has k*u; the factor 2 is there because tensor cores
///   truncate where a CPU rounds (Fasi, Higham, Mikaitis, Pranesh, Numerical Behavior of NVIDIA Tensor Cores, 2021);
/// - tf32: each operand is rounded with a relative error below 2/3 * 2^-10;
/// - 8-bit floats: 2^-13 for each addition in a tensor core, at most 128 of them if sums are promoted (MathOperation);
/// - 3xTF32: 3 * 2^-20 * sum|a||b| for low * low and the remainder of each operand, which are left out;
/// - each epilogue operation: one roundoff of the compute type, or CUDA's documented error of a transcendental
///   function, and the propagated errors of its inputs;
/// - the last rounding: half a unit in the last place of D's type.
///
/// If m*n*k*batch exceeds 2^31, only 4096 random elements (from `seed`) are checked, and two results of each reduction
/// along one mode. A reduction to a single result, which needs all of D, is not checked then.
/// @pre as reference(); C still holds what the kernel read, so C is not D
Comparison compare(const GemmView& gemm, std::uint64_t seed = 0);
/// Compares the outputs of a reduction of split-K. The error bound of a sum of parts is that of an accumulation of
/// count() products, of which one factor is 1. Only samples are checked if m*n*count() exceeds 2^26. @pre as above
Comparison compare(const ReduceSplitK& reduction, std::uint64_t seed = 0);

/// The position of an element in a batch of matrices.
struct Place {
  std::int64_t batch = 0, row = 0, column = 0;
  bool operator==(const Place&) const = default;
};

/// Like compare(), but checks only the elements at `places`, in D and in outputs that are not reduced.
/// @pre the places are within D
Comparison compare_at(const GemmView& gemm, std::span<const Place> places);

/// Like compare(), but checks only those results of the reduction `label` to which the elements at `places` contribute.
/// Each result costs k products for every element of D that is reduced to it.
Comparison compare_results_at(const GemmView& gemm, std::string_view label, std::span<const Place> places);

}  // namespace tilewright::op
