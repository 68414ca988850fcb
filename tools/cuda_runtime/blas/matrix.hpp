// Matrices and vectors of cuBLAS in device memory, and their elements as f64 on the host.
#pragma once

#include <cuda.h>
#include <library_types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tools/cuda_runtime/library_call.hpp"

namespace tilewright::cuda_runtime::blas {

/// Bytes of an element; 0 for complex types and others that are not emulated.
std::size_t element_bytes(cudaDataType type);

/// An element as f64, which holds every value of the types exactly.
double read_element(cudaDataType type, const void* from);
/// Rounds once, to nearest even. Integers are rounded and saturate.
void write_element(cudaDataType type, void* to, double value);

/// Columns that are contiguous or, if `is_row_major`, rows.
struct Matrix {
  CUdeviceptr data = 0;
  cudaDataType type = CUDA_R_32F;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t ld = 0;  // elements from one column (or row) to the next
  bool is_row_major = false;

  Matrix at(std::int64_t offset) const {
    Matrix moved = *this;
    moved.data += static_cast<CUdeviceptr>(offset) * element_bytes(type);
    return moved;
  }
  Matrix transposed() const { return {data, type, columns, rows, ld, !is_row_major}; }
  StridedBytes bytes() const;
  bool is_empty() const { return rows == 0 || columns == 0; }
};

/// `n` elements that are `increment` apart. With a negative increment the first element is the last in memory.
struct Vector {
  CUdeviceptr data = 0;
  cudaDataType type = CUDA_R_32F;
  std::int64_t n = 0;
  std::int64_t increment = 1;

  StridedBytes bytes() const;
};

/// The elements by columns, without gaps.
std::vector<double> read(const Matrix& matrix);
void write(const Matrix& matrix, const std::vector<double>& elements);
std::vector<double> read(const Vector& vector);
void write(const Vector& vector, const std::vector<double>& elements);

/// c += a * b for m x k, k x n and m x n matrices as read() returns them.
void multiply_add(std::int64_t m, std::int64_t n, std::int64_t k, const double* a, const double* b, double* c);

}  // namespace tilewright::cuda_runtime::blas
