// The oracle: what D must be, computed on the host in f64 with no regard to speed, and how far from it a kernel may be.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "tilewright/op/gemm_view.hpp"

namespace tilewright::op {

/// Writes D and the epilogue's outputs. Products and sums are formed in f64, which is exact for integer operands (s32
/// accumulators wrap); operands are first rounded where the math operation rounds to f16 or bf16; the epilogue is
/// op::evaluate in f64; one rounding into D's type. Where beta is 0 C is not read, where alpha or k is 0 neither are A
/// and B.
/// Calls check_interruption(), as the comparisons below do. @pre the problem is valid, every tensor on the host
void reference(const GemmView& gemm);

/// Where a result differs most from the oracle, in units of its bound.
struct WorstElement {
  std::string tensor = "D";  // or the epilogue's output
  std::int64_t batch = 0;
  std::int64_t row = 0;
  std::int64_t column = 0;
  double actual = 0.0;
  double expected = 0.0;  // before the rounding into D's type
  double bound = 0.0;     // on |actual - expected|
};

struct Comparison {
  std::int64_t batch = 1;
  std::int64_t elements = 0;  // of D and of the epilogue's outputs
  std::int64_t checked = 0;   // fewer than `elements` where a sample was drawn
  std::int64_t equal = 0;     // have the very value that reference() stores
  std::int64_t outside = 0;   // beyond the error bound, NaN where a number is due, or a number where NaN is due
  double max_error = 0.0;     // largest |actual - expected| of the finite ones
  WorstElement worst;

  bool is_exact() const { return equal == checked; }
  bool is_within_bound() const { return outside == 0; }
};

/// "65536 of 65536 elements exact" or "65536 elements within the error bound (60000 exact, max error 1.2e-07)" or what
/// is wrong.
std::string to_string(const Comparison& comparison);

/// "D[1,2] is 3, expected 4 within 0.5", the batch first where there is one.
std::string describe_worst(const Comparison& comparison);

/// Compares the D and the outputs that a kernel left with the oracle, element by element.
///
/// The bound, per element: an accumulator of unit roundoff u is within (k+2) * 2u * sum|a||b| of the exact sum in any
/// order of addition (Higham, Accuracy and Stability of Numerical Algorithms, section 3.1: k u; twice that because
/// tensor cores truncate where a CPU rounds: Fasi, Higham, Mikaitis, Pranesh, Numerical Behavior of NVIDIA Tensor
/// Cores, 2021); tf32 rounds each operand with an error below 2/3 * 2^-10;
/// 8-bit floats are added with 14 bits, all of k or the first 128 of it (see MathOperation): 2^-13 each;
/// 3xTF32 leaves out low * low and a remainder of each operand, 3 * 2^-20 of sum|a||b| together; every
/// epilogue operation adds one roundoff of the compute type (transcendentals what CUDA documents) and carries its
/// inputs' errors along; the last rounding adds half a unit of D's type.
///
/// Above 2^31 products of m*n*k over the batch, 4096 elements drawn by `seed` are checked instead of all, and of
/// reductions along one mode two results; of reductions to one result, which need all of D, none.
/// @pre as reference(); C still holds what the kernel read, so C is not D
Comparison compare(const GemmView& gemm, std::uint64_t seed = 0);

/// An element of D: which matrix of the batch, and where in it.
struct Place {
  std::int64_t batch = 0, row = 0, column = 0;
  bool operator==(const Place&) const = default;
};

/// As compare, of D and of every output that is not reduced only what lies at `places`. @pre they lie within D
Comparison compare_at(const GemmView& gemm, std::span<const Place> places);

/// As compare, of the reduced output `label` only the results that elements at `places` go to: each costs k products
/// for every element of D that goes there.
Comparison compare_results_at(const GemmView& gemm, std::string_view label, std::span<const Place> places);

}  // namespace tilewright::op
