// Fills and accesses host matrices and batches, for tests, benchmarks and demonstrations. The same seed gives the same
// values on every machine. Functions that visit a whole matrix call check_interruption().
#pragma once

#include <cstdint>

#include "tilewright/op/tensor.hpp"

namespace tilewright::op {

/// Fills with uniformly distributed integers in [low, high], rounded to the element type. With small bounds every sum
/// of products is exact in the accumulator, so that all correct kernels give the same bits.
/// @pre host memory; high - low < 2^32
void fill_integers(const Tensor& tensor, std::int64_t low, std::int64_t high, std::uint64_t seed);

/// The largest magnitude, 1 to 8, such that `accumulator` holds every sum of k products of integers of type `element`
/// exactly: sqrt(exact range of the accumulator / k), clamped.
std::int64_t exact_integer_limit(DType element, DType accumulator, std::int64_t k);

/// Fills with normally distributed values of mean 0 and standard deviation `deviation`, rounded to the element type.
/// @pre host memory
void fill_normal(const Tensor& tensor, double deviation, std::uint64_t seed);

/// Sets every byte of the tensor's span, including padding, or of the span of each matrix of a pointer array, to 0xff,
/// which is NaN in every float type.
/// @pre host memory
void fill_poison(const Tensor& tensor);

/// The element (row, column) of the first matrix as f64, which represents every element type exactly.
/// @pre host memory; row and column within the shape
double load(const Tensor& tensor, std::int64_t row, std::int64_t column);

/// Rounds to nearest even to the element type; integers saturate and NaN becomes 0, like cvt.rni.sat.
/// @pre host memory; row and column within the shape
void store(const Tensor& tensor, std::int64_t row, std::int64_t column, double value);

/// Like load() and store(), for the element at offset `offset` from the first of the first matrix, in elements. @pre
/// host memory
double load_at(const Tensor& tensor, std::int64_t offset);
void store_at(const Tensor& tensor, std::int64_t offset, double value);

/// Copies each element of `from`, converted through f64, to the same position in `to`. @pre host memory; equal shapes
void copy_elements(const Tensor& from, const Tensor& to);

/// `value` rounded to `type` like store() does.
double round_to(DType type, double value);

}  // namespace tilewright::op
