// Matrix products of cuBLAS.
#include "tools/cuda_runtime/blas/product.hpp"

namespace tilewright::cuda_runtime::blas {
namespace {

/// The arguments of a GEMM, whose types may differ.
struct Gemm {
  cublasOperation_t operation_a, operation_b;
  std::int64_t m, n, k;
  cublasComputeType_t compute;
  const void* alpha;
  const void* beta;
  const void* a;
  cudaDataType type_a;
  std::int64_t lda;
  const void* b;
  cudaDataType type_b;
  std::int64_t ldb;
  void* c;
  cudaDataType type_c;
  std::int64_t ldc;
  Batch batch;
};

cublasStatus_t multiply(cublasHandle_t handle, const Gemm& gemm, const char* function = __builtin_FUNCTION()) {
  return call(
      [&](Machine& machine) {
        const Handle& settings = handle_of(handle);
        check_types(gemm.compute, gemm.type_a, gemm.type_b, gemm.type_c);
        const auto stored = [](const void* data, cudaDataType type, std::int64_t rows, std::int64_t columns,
                               std::int64_t ld) { return Matrix{address(data), type, rows, columns, ld, false}; };
        const bool a_is_plain = gemm.operation_a == CUBLAS_OP_N, b_is_plain = gemm.operation_b == CUBLAS_OP_N;
        Product product;
        product.a = apply(gemm.operation_a, stored(gemm.a, gemm.type_a, a_is_plain ? gemm.m : gemm.k,
                                                   a_is_plain ? gemm.k : gemm.m, gemm.lda));
        product.b = apply(gemm.operation_b, stored(gemm.b, gemm.type_b, b_is_plain ? gemm.k : gemm.n,
                                                   b_is_plain ? gemm.n : gemm.k, gemm.ldb));
        product.c = product.d = stored(gemm.c, gemm.type_c, gemm.m, gemm.n, gemm.ldc);
        const cudaDataType scale = scale_type(gemm.compute);
        product.alpha = scalar_of(settings.pointer_mode, scale, gemm.alpha, "alpha");
        product.beta = scalar_of(settings.pointer_mode, scale, gemm.beta, "beta");
        product.batch = gemm.batch;
        check(product);
        enqueue(
            machine, settings.stream, function, [product](LibraryMemory& memory) { run(memory, product); },
            key_of(product));
      },
      function);
}

template <class T>
constexpr cudaDataType kType = kDataType<T>;
template <>
constexpr cudaDataType kType<__half> = CUDA_R_16F;
template <class T>
constexpr cublasComputeType_t kCompute = sizeof(T) == 8   ? CUBLAS_COMPUTE_64F
                                         : sizeof(T) == 4 ? CUBLAS_COMPUTE_32F
                                                          : CUBLAS_COMPUTE_16F;

/// A GEMM whose matrices, alpha and beta have the type T.
template <class T>
cublasStatus_t multiply_typed(cublasHandle_t handle, cublasOperation_t operation_a, cublasOperation_t operation_b,
                              int m, int n, int k, const T* alpha, const void* a, int lda, const void* b, int ldb,
                              const T* beta, void* c, int ldc, const Batch& batch = {},
                              const char* function = __builtin_FUNCTION()) {
  return multiply(handle,
                  {operation_a, operation_b, m, n, k, kCompute<T>, alpha, beta, a, kType<T>, lda, b, kType<T>, ldb, c,
                   kType<T>, ldc, batch},
                  function);
}

Batch strided(long long a, long long b, long long c, int count) { return {count, a, b, c, c, false}; }
Batch by_pointers(int count) { return {count, 0, 0, 0, 0, true}; }

/// The elements of `matrix`, scaled by those of a diagonal, by the rows or by the columns of it.
template <class T>
cublasStatus_t scale_by_diagonal(cublasHandle_t handle, cublasSideMode_t side, int m, int n, const T* a, int lda,
                                 const T* x, int step, T* c, int ldc, const char* function = __builtin_FUNCTION()) {
  return call(
      [&](Machine& machine) {
        const Handle& settings = handle_of(handle);
        require_argument(m >= 0 && n >= 0 && lda >= std::max(1, m) && ldc >= std::max(1, m),
                         "an extent is negative, or a leading dimension is less than m");
        const bool scales_rows = side == CUBLAS_SIDE_LEFT;
        const Matrix from{address(a), kDataType<T>, m, n, lda, false}, to{address(c), kDataType<T>, m, n, ldc, false};
        const Vector diagonal{address(x), kDataType<T>, scales_rows ? m : n, step};
        enqueue(machine, settings.stream, function, [=](LibraryMemory& memory) {
          if (to.is_empty() || !memory.reads("A", from.bytes()) || !memory.reads("x", diagonal.bytes())) return;
          std::vector<double> elements = read(from);
          const std::vector<double> factors = read(diagonal);
          const auto rows = static_cast<std::size_t>(m);
          for (std::size_t i = 0; i < elements.size(); ++i) elements[i] *= factors[scales_rows ? i % rows : i / rows];
          if (memory.writes("C", to.bytes())) write(to, elements);
        });
      },
      function);
}

/// c = alpha * op(a) + beta * op(b).
template <class T>
cublasStatus_t add_matrices(cublasHandle_t handle, cublasOperation_t operation_a, cublasOperation_t operation_b, int m,
                            int n, const T* alpha, const T* a, int lda, const T* beta, const T* b, int ldb, T* c,
                            int ldc, const char* function = __builtin_FUNCTION()) {
  return call(
      [&](Machine& machine) {
        const Handle& settings = handle_of(handle);
        require_argument(m >= 0 && n >= 0 && ldc >= std::max(1, m), "an extent is negative, or ldc is less than m");
        const auto operand = [&](cublasOperation_t operation, const T* data, int ld) {
          const bool is_plain = operation == CUBLAS_OP_N;
          require_argument(ld >= std::max(1, is_plain ? m : n), "a leading dimension is too small");
          return apply(operation, {address(data), kDataType<T>, is_plain ? m : n, is_plain ? n : m, ld, false});
        };
        const Matrix from_a = operand(operation_a, a, lda), from_b = operand(operation_b, b, ldb);
        const Matrix to{address(c), kDataType<T>, m, n, ldc, false};
        Scalar of_a = scalar_of(settings.pointer_mode, kDataType<T>, alpha, "alpha");
        Scalar of_b = scalar_of(settings.pointer_mode, kDataType<T>, beta, "beta");
        enqueue(machine, settings.stream, function, [=](LibraryMemory& memory) mutable {
          if (to.is_empty() || !of_a.resolve(memory, "alpha") || !of_b.resolve(memory, "beta")) return;
          std::vector<double> sum(static_cast<std::size_t>(m) * static_cast<std::size_t>(n));
          const auto add = [&](const char* name, const Matrix& from, double factor) {
            if (factor == 0) return true;
            if (!memory.reads(name, from.bytes())) return false;
            const std::vector<double> elements = read(from);
            for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += factor * elements[i];
            return true;
          };
          if (!add("A", from_a, of_a.value) || !add("B", from_b, of_b.value)) return;
          if (memory.writes("C", to.bytes())) write(to, sum);
        });
      },
      function);
}

}  // namespace

TILEWRIGHT_EXPORT cublasStatus_t cublasSgemm_v2(cublasHandle_t handle, cublasOperation_t operation_a,
                                                cublasOperation_t operation_b, int m, int n, int k, const float* alpha,
                                                const float* a, int lda, const float* b, int ldb, const float* beta,
                                                float* c, int ldc) {
  return multiply_typed(handle, operation_a, operation_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}
TILEWRIGHT_EXPORT cublasStatus_t cublasDgemm_v2(cublasHandle_t handle, cublasOperation_t operation_a,
                                                cublasOperation_t operation_b, int m, int n, int k, const double* alpha,
                                                const double* a, int lda, const double* b, int ldb, const double* beta,
                                                double* c, int ldc) {
  return multiply_typed(handle, operation_a, operation_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}
TILEWRIGHT_EXPORT cublasStatus_t cublasHgemm(cublasHandle_t handle, cublasOperation_t operation_a,
                                             cublasOperation_t operation_b, int m, int n, int k, const __half* alpha,
                                             const __half* a, int lda, const __half* b, int ldb, const __half* beta,
                                             __half* c, int ldc) {
  return multiply_typed(handle, operation_a, operation_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

TILEWRIGHT_EXPORT cublasStatus_t cublasSgemmStridedBatched(cublasHandle_t handle, cublasOperation_t operation_a,
                                                           cublasOperation_t operation_b, int m, int n, int k,
                                                           const float* alpha, const float* a, int lda,
                                                           long long stride_a, const float* b, int ldb,
                                                           long long stride_b, const float* beta, float* c, int ldc,
                                                           long long stride_c, int count) {
  return multiply_typed(handle, operation_a, operation_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc,
                        strided(stride_a, stride_b, stride_c, count));
}
TILEWRIGHT_EXPORT cublasStatus_t cublasDgemmStridedBatched(cublasHandle_t handle, cublasOperation_t operation_a,
                                                           cublasOperation_t operation_b, int m, int n, int k,
                                                           const double* alpha, const double* a, int lda,
                                                           long long stride_a, const double* b, int ldb,
                                                           long long stride_b, const double* beta, double* c, int ldc,
                                                           long long stride_c, int count) {
  return multiply_typed(handle, operation_a, operation_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc,
                        strided(stride_a, stride_b, stride_c, count));
}
TILEWRIGHT_EXPORT cublasStatus_t cublasHgemmStridedBatched(cublasHandle_t handle, cublasOperation_t operation_a,
                                                           cublasOperation_t operation_b, int m, int n, int k,
                                                           const __half* alpha, const __half* a, int lda,
                                                           long long stride_a, const __half* b, int ldb,
                                                           long long stride_b, const __half* beta, __half* c, int ldc,
                                                           long long stride_c, int count) {
  return multiply_typed(handle, operation_a, operation_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc,
                        strided(stride_a, stride_b, stride_c, count));
}

TILEWRIGHT_EXPORT cublasStatus_t cublasSgemmBatched(cublasHandle_t handle, cublasOperation_t operation_a,
                                                    cublasOperation_t operation_b, int m, int n, int k,
                                                    const float* alpha, const float* const a[], int lda,
                                                    const float* const b[], int ldb, const float* beta,
                                                    float* const c[], int ldc, int count) {
  return multiply_typed(handle, operation_a, operation_b, m, n, k, alpha, a, lda, b, ldb, beta, const_cast<float**>(c),
                        ldc, by_pointers(count));
}
TILEWRIGHT_EXPORT cublasStatus_t cublasDgemmBatched(cublasHandle_t handle, cublasOperation_t operation_a,
                                                    cublasOperation_t operation_b, int m, int n, int k,
                                                    const double* alpha, const double* const a[], int lda,
                                                    const double* const b[], int ldb, const double* beta,
                                                    double* const c[], int ldc, int count) {
  return multiply_typed(handle, operation_a, operation_b, m, n, k, alpha, a, lda, b, ldb, beta, const_cast<double**>(c),
                        ldc, by_pointers(count));
}
TILEWRIGHT_EXPORT cublasStatus_t cublasHgemmBatched(cublasHandle_t handle, cublasOperation_t operation_a,
                                                    cublasOperation_t operation_b, int m, int n, int k,
                                                    const __half* alpha, const __half* const a[], int lda,
                                                    const __half* const b[], int ldb, const __half* beta,
                                                    __half* const c[], int ldc, int count) {
  return multiply_typed(handle, operation_a, operation_b, m, n, k, alpha, a, lda, b, ldb, beta, const_cast<__half**>(c),
                        ldc, by_pointers(count));
}

TILEWRIGHT_EXPORT cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t operation_a,
                                              cublasOperation_t operation_b, int m, int n, int k, const void* alpha,
                                              const void* a, cudaDataType type_a, int lda, const void* b,
                                              cudaDataType type_b, int ldb, const void* beta, void* c,
                                              cudaDataType type_c, int ldc, cublasComputeType_t compute,
                                              cublasGemmAlgo_t) {
  return multiply(
      handle,
      {operation_a, operation_b, m, n, k, compute, alpha, beta, a, type_a, lda, b, type_b, ldb, c, type_c, ldc, {}});
}
TILEWRIGHT_EXPORT cublasStatus_t cublasGemmStridedBatchedEx(
    cublasHandle_t handle, cublasOperation_t operation_a, cublasOperation_t operation_b, int m, int n, int k,
    const void* alpha, const void* a, cudaDataType type_a, int lda, long long stride_a, const void* b,
    cudaDataType type_b, int ldb, long long stride_b, const void* beta, void* c, cudaDataType type_c, int ldc,
    long long stride_c, int count, cublasComputeType_t compute, cublasGemmAlgo_t) {
  return multiply(handle, {operation_a, operation_b, m, n, k, compute, alpha, beta, a, type_a, lda, b, type_b, ldb, c,
                           type_c, ldc, strided(stride_a, stride_b, stride_c, count)});
}
TILEWRIGHT_EXPORT cublasStatus_t cublasGemmBatchedEx(cublasHandle_t handle, cublasOperation_t operation_a,
                                                     cublasOperation_t operation_b, int m, int n, int k,
                                                     const void* alpha, const void* const a[], cudaDataType type_a,
                                                     int lda, const void* const b[], cudaDataType type_b, int ldb,
                                                     const void* beta, void* const c[], cudaDataType type_c, int ldc,
                                                     int count, cublasComputeType_t compute, cublasGemmAlgo_t) {
  return multiply(handle, {operation_a, operation_b, m, n, k, compute, alpha, beta, a, type_a, lda, b, type_b, ldb,
                           const_cast<void**>(c), type_c, ldc, by_pointers(count)});
}
TILEWRIGHT_EXPORT cublasStatus_t cublasSgemmEx(cublasHandle_t handle, cublasOperation_t operation_a,
                                               cublasOperation_t operation_b, int m, int n, int k, const float* alpha,
                                               const void* a, cudaDataType type_a, int lda, const void* b,
                                               cudaDataType type_b, int ldb, const float* beta, void* c,
                                               cudaDataType type_c, int ldc) {
  return multiply(handle, {operation_a,
                           operation_b,
                           m,
                           n,
                           k,
                           CUBLAS_COMPUTE_32F,
                           alpha,
                           beta,
                           a,
                           type_a,
                           lda,
                           b,
                           type_b,
                           ldb,
                           c,
                           type_c,
                           ldc,
                           {}});
}

TILEWRIGHT_EXPORT cublasStatus_t cublasSdgmm(cublasHandle_t handle, cublasSideMode_t side, int m, int n, const float* a,
                                             int lda, const float* x, int step, float* c, int ldc) {
  return scale_by_diagonal(handle, side, m, n, a, lda, x, step, c, ldc);
}
TILEWRIGHT_EXPORT cublasStatus_t cublasDdgmm(cublasHandle_t handle, cublasSideMode_t side, int m, int n,
                                             const double* a, int lda, const double* x, int step, double* c, int ldc) {
  return scale_by_diagonal(handle, side, m, n, a, lda, x, step, c, ldc);
}
TILEWRIGHT_EXPORT cublasStatus_t cublasSgeam(cublasHandle_t handle, cublasOperation_t operation_a,
                                             cublasOperation_t operation_b, int m, int n, const float* alpha,
                                             const float* a, int lda, const float* beta, const float* b, int ldb,
                                             float* c, int ldc) {
  return add_matrices(handle, operation_a, operation_b, m, n, alpha, a, lda, beta, b, ldb, c, ldc);
}
TILEWRIGHT_EXPORT cublasStatus_t cublasDgeam(cublasHandle_t handle, cublasOperation_t operation_a,
                                             cublasOperation_t operation_b, int m, int n, const double* alpha,
                                             const double* a, int lda, const double* beta, const double* b, int ldb,
                                             double* c, int ldc) {
  return add_matrices(handle, operation_a, operation_b, m, n, alpha, a, lda, beta, b, ldb, c, ldc);
}

}  // namespace tilewright::cuda_runtime::blas
