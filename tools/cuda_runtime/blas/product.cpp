#include "tools/cuda_runtime/blas/product.hpp"

#include <algorithm>

namespace tilewright::cuda_runtime::blas {
namespace {

void check_matrix(const Matrix& matrix, const char* name) {
  if (matrix.rows < 0 || matrix.columns < 0) {
    refuse(CUBLAS_STATUS_INVALID_VALUE,
           fmt::format("{} has {} rows and {} columns", name, matrix.rows, matrix.columns));
  }
  const std::int64_t least = std::max<std::int64_t>(1, matrix.is_row_major ? matrix.columns : matrix.rows);
  if (matrix.ld < least) {
    refuse(CUBLAS_STATUS_INVALID_VALUE, fmt::format("ld{} is {}, and must be at least {}",
                                                    static_cast<char>(name[0] - 'A' + 'a'), matrix.ld, least));
  }
}

/// Sets `to` to the matrix of one product of a batch. Returns false if its pointer cannot be read.
bool select(LibraryMemory& memory, const char* name, const Matrix& all, const Batch& batch, std::int64_t stride,
            std::int64_t number, Matrix& to) {
  to = all;
  if (!batch.is_by_pointers) {
    to = all.at(number * stride);
    return true;
  }
  const CUdeviceptr at = all.data + static_cast<CUdeviceptr>(number) * sizeof(CUdeviceptr);
  if (!memory.reads(fmt::format("the array of pointers to {}", name), {at, sizeof(CUdeviceptr), 0, 1})) return false;
  to.data = *reinterpret_cast<const CUdeviceptr*>(at);
  return true;
}

bool run_one(LibraryMemory& memory, const Product& product, std::int64_t number) {
  const Batch& batch = product.batch;
  Matrix a, b, c, d;
  if (!select(memory, "A", product.a, batch, batch.stride_a, number, a) ||
      !select(memory, "B", product.b, batch, batch.stride_b, number, b) ||
      !select(memory, "C", product.c, batch, batch.stride_c, number, c) ||
      !select(memory, "D", product.d, batch, batch.stride_d, number, d)) {
    return false;
  }
  const bool multiplies = product.alpha.value != 0 && a.columns != 0;
  const bool adds = product.beta.value != 0;
  if (multiplies && (!memory.reads("A", a.bytes()) || !memory.reads("B", b.bytes()))) return false;
  if (adds && !memory.reads("C", c.bytes())) return false;
  std::vector<double> of_a, of_b, result(static_cast<std::size_t>(d.rows * d.columns));
  if (multiplies) {
    of_a = read(a);
    of_b = read(b);
    multiply_add(d.rows, d.columns, a.columns, of_a.data(), of_b.data(), result.data());
    for (double& each : result) each *= product.alpha.value;
  }
  if (adds) {
    const std::vector<double> of_c = read(c);
    for (std::size_t i = 0; i < result.size(); ++i) result[i] += product.beta.value * of_c[i];
  }
  if (product.finish && !product.finish(memory, number, of_a, of_b, result)) return false;
  if (!memory.writes(product.d.data == product.c.data ? "C" : "D", d.bytes())) return false;
  write(d, result);
  return true;
}

struct TypeRow {
  cublasComputeType_t compute;
  cudaDataType ab, c;
};
/// cuBLAS' documentation, cublasGemmEx() and, for 8-bit floats, cublasLtMatmul(). Complex types are not emulated.
constexpr TypeRow kTypes[] = {
    {CUBLAS_COMPUTE_16F, CUDA_R_16F, CUDA_R_16F},
    {CUBLAS_COMPUTE_32I, CUDA_R_8I, CUDA_R_32I},
    {CUBLAS_COMPUTE_32F, CUDA_R_16BF, CUDA_R_16BF},
    {CUBLAS_COMPUTE_32F, CUDA_R_16F, CUDA_R_16F},
    {CUBLAS_COMPUTE_32F, CUDA_R_8I, CUDA_R_32F},
    {CUBLAS_COMPUTE_32F, CUDA_R_16BF, CUDA_R_32F},
    {CUBLAS_COMPUTE_32F, CUDA_R_16F, CUDA_R_32F},
    {CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_32F},
    {CUBLAS_COMPUTE_32F, CUDA_R_8F_E4M3, CUDA_R_16BF},
    {CUBLAS_COMPUTE_32F, CUDA_R_8F_E4M3, CUDA_R_16F},
    {CUBLAS_COMPUTE_32F, CUDA_R_8F_E4M3, CUDA_R_32F},
    {CUBLAS_COMPUTE_32F_FAST_16F, CUDA_R_32F, CUDA_R_32F},
    {CUBLAS_COMPUTE_32F_FAST_16BF, CUDA_R_32F, CUDA_R_32F},
    {CUBLAS_COMPUTE_32F_FAST_TF32, CUDA_R_32F, CUDA_R_32F},
    {CUBLAS_COMPUTE_64F, CUDA_R_64F, CUDA_R_64F},
};

/// The compute type without _PEDANTIC.
cublasComputeType_t common(cublasComputeType_t compute) {
  switch (compute) {
    case CUBLAS_COMPUTE_16F_PEDANTIC:
      return CUBLAS_COMPUTE_16F;
    case CUBLAS_COMPUTE_32F_PEDANTIC:
      return CUBLAS_COMPUTE_32F;
    case CUBLAS_COMPUTE_64F_PEDANTIC:
      return CUBLAS_COMPUTE_64F;
    case CUBLAS_COMPUTE_32I_PEDANTIC:
      return CUBLAS_COMPUTE_32I;
    default:
      return compute;
  }
}

bool is_float8(cudaDataType type) { return type == CUDA_R_8F_E4M3 || type == CUDA_R_8F_E5M2; }

}  // namespace

Matrix apply(cublasOperation_t operation, const Matrix& stored) {
  if (operation == CUBLAS_OP_N) return stored;
  if (operation != CUBLAS_OP_T && operation != CUBLAS_OP_C) {
    refuse(CUBLAS_STATUS_INVALID_VALUE, fmt::format("there is no operation {}", static_cast<int>(operation)));
  }
  return stored.transposed();
}

void check_types(cublasComputeType_t compute, cudaDataType a, cudaDataType b, cudaDataType c) {
  const bool same = a == b || (is_float8(a) && is_float8(b) && !(a == CUDA_R_8F_E5M2 && b == CUDA_R_8F_E5M2));
  const cudaDataType ab = is_float8(a) ? CUDA_R_8F_E4M3 : a;
  for (const TypeRow& row : kTypes) {
    if (same && row.compute == common(compute) && row.ab == ab && row.c == c) return;
  }
  refuse(CUBLAS_STATUS_NOT_SUPPORTED,
         fmt::format("compute type {} with A of cudaDataType {}, B of {} and C of {}", static_cast<int>(compute),
                     static_cast<int>(a), static_cast<int>(b), static_cast<int>(c)));
}

cudaDataType scale_type(cublasComputeType_t compute) {
  switch (common(compute)) {
    case CUBLAS_COMPUTE_16F:
      return CUDA_R_16F;
    case CUBLAS_COMPUTE_32I:
      return CUDA_R_32I;
    case CUBLAS_COMPUTE_64F:
      return CUDA_R_64F;
    default:
      return CUDA_R_32F;
  }
}

void check(const Product& product) {
  check_matrix(product.a, "A");
  check_matrix(product.b, "B");
  check_matrix(product.c, "C");
  check_matrix(product.d, "D");
  require_argument(product.batch.count >= 0, "the number of products is negative");
  const Matrix& d = product.d;
  if (product.a.rows != d.rows || product.b.columns != d.columns || product.a.columns != product.b.rows ||
      product.c.rows != d.rows || product.c.columns != d.columns) {
    refuse(CUBLAS_STATUS_INVALID_VALUE,
           fmt::format("op(A) of {} x {} and op(B) of {} x {} do not give D of {} x {} (C is {} x {})", product.a.rows,
                       product.a.columns, product.b.rows, product.b.columns, d.rows, d.columns, product.c.rows,
                       product.c.columns));
  }
}

void run(LibraryMemory& memory, Product product) {
  if (product.d.is_empty()) return;
  if (!product.alpha.resolve(memory, "alpha") || !product.beta.resolve(memory, "beta")) return;
  for (std::int64_t i = 0; i < product.batch.count; ++i) {
    if (!run_one(memory, product, i)) return;
  }
}

std::string key_of(const Product& product) {
  std::string key = "product";
  for (const Matrix* const each : {&product.a, &product.b, &product.c, &product.d}) {
    key += fmt::format(" {:x} {} {} {} {} {}", each->data, static_cast<int>(each->type), each->rows, each->columns,
                       each->ld, each->is_row_major);
  }
  for (const Scalar* const each : {&product.alpha, &product.beta}) {
    key += fmt::format(" {} {:x} {}", each->value, each->device.data, each->device.n);
  }
  const Batch& batch = product.batch;
  return key + fmt::format(" {} {} {} {} {} {}", batch.count, batch.stride_a, batch.stride_b, batch.stride_c,
                           batch.stride_d, batch.is_by_pointers);
}

}  // namespace tilewright::cuda_runtime::blas
