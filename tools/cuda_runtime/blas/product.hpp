// A matrix product of cuBLAS or cuBLASLt.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tools/cuda_runtime/blas/blas_call.hpp"

namespace tilewright::cuda_runtime::blas {

/// The matrices of each product of a batch: at a stride in elements, or by an array of pointers in device memory.
struct Batch {
  std::int64_t count = 1;
  std::int64_t stride_a = 0, stride_b = 0, stride_c = 0, stride_d = 0;
  bool is_by_pointers = false;  // `data` of a matrix is then the address of the array
};

/// d = alpha * op(a) * op(b) + beta * c, where `a` and `b` are already transposed.
struct Product {
  Matrix a, b, c, d;
  Scalar alpha, beta;
  Batch batch;
  /// Changes the result before it is rounded, if it is set. The arguments are the memory, the number of the product,
  /// op(a), op(b), and the elements of d by columns. Returns false if an access is not allowed.
  std::function<bool(LibraryMemory&, std::int64_t, const std::vector<double>&, const std::vector<double>&,
                     std::vector<double>&)>
      finish;
};

/// The matrix that op() makes of `stored`. @throws BlasError for an operation that there is not
Matrix apply(cublasOperation_t operation, const Matrix& stored);

/// Refuses types that cuBLAS does not multiply with this compute type.
void check_types(cublasComputeType_t compute, cudaDataType a, cudaDataType b, cudaDataType c);
/// The type of alpha and beta.
cudaDataType scale_type(cublasComputeType_t compute);

/// @throws BlasError for extents that do not fit together, and for a leading dimension that is too small
void check(const Product& product);
void run(LibraryMemory& memory, Product product);
/// The same for products of the same operands.
std::string key_of(const Product& product);

}  // namespace tilewright::cuda_runtime::blas
