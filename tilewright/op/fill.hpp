// Contents of host matrices, and of batches of them, for tests, benchmarks and demonstrations: the same seed gives the
// same values everywhere. What goes over a whole matrix can be interrupted: see check_interruption().
#pragma once

#include <cstdint>

#include "tilewright/op/tensor.hpp"

namespace tilewright::op {

/// Integers of [low, high], each as likely, rounded to the element type. With small bounds every sum of products is
/// exact in the accumulator, so that all correct kernels give the same bits. @pre host memory; high - low < 2^32
void fill_integers(const Tensor& tensor, std::int64_t low, std::int64_t high, std::uint64_t seed);

/// The largest magnitude, 1 to 8, of integers of type `element` whose sums of k products `accumulator` holds exactly:
/// the square root of its exact range over k. Where even 1 is too large for that, 1.
std::int64_t exact_integer_limit(DType element, DType accumulator, std::int64_t k);

/// Normal values of mean 0 and deviation `deviation`, rounded to the element type. @pre host memory
void fill_normal(const Tensor& tensor, double deviation, std::uint64_t seed);

/// Every element, and every byte between rows that belongs to the span, becomes 0xff: NaN in each float type.
/// @pre host memory
void fill_poison(const Tensor& tensor);

/// The element (of a batch: of its first matrix) as f64, which holds every element type exactly. @pre host memory; row
/// and column within the shape
double load(const Tensor& tensor, std::int64_t row, std::int64_t column);

/// Rounds once, to nearest even, into the element type; integers saturate and NaN becomes 0, as cvt.rni.sat gives.
/// @pre host memory; row and column within the shape
void store(const Tensor& tensor, std::int64_t row, std::int64_t column, double value);

/// As load() and store(), for the element `offset` elements after the tensor's first. @pre host memory
double load_at(const Tensor& tensor, std::int64_t offset);
void store_at(const Tensor& tensor, std::int64_t offset, double value);

/// Each element of `from`, through f64, to the same place of `to`. @pre host memory; equal shapes
void copy_elements(const Tensor& from, const Tensor& to);

/// `value` as store() leaves it in `type`.
double round_to(DType type, double value);

}  // namespace tilewright::op
