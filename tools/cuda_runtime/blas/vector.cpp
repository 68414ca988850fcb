// Vectors of cuBLAS, and their products with matrices.
#include <algorithm>
#include <cmath>
#include <limits>

#include "tools/cuda_runtime/blas/product.hpp"

namespace tilewright::cuda_runtime::blas {
namespace {

template <class T>
Vector vector(int n, const T* data, int increment) {
  return {address(data), kDataType<T>, std::max(n, 0), increment};
}

/// Enqueues work that reads x and y, changes their elements, and writes those that it changes.
enum class Writes : std::uint8_t { none, x, y, both };
template <class T, class F>
cublasStatus_t update(cublasHandle_t handle, int n, const T* alpha, const T* x, int x_step, const T* y, int y_step,
                      Writes writes, bool reads_y, F&& f, const char* function = __builtin_FUNCTION()) {
  return call(
      [&](Machine& machine) {
        const Handle& settings = handle_of(handle);
        const Vector first = vector(n, x, x_step), second = vector(y == nullptr ? 0 : n, y, y_step);
        Scalar scalar;
        if (alpha != nullptr) scalar = scalar_of(settings.pointer_mode, kDataType<T>, alpha, "alpha");
        enqueue(machine, settings.stream, function, [=](LibraryMemory& memory) mutable {
          if (first.n == 0 || !scalar.resolve(memory, "alpha") || !memory.reads("x", first.bytes())) return;
          if (reads_y && !memory.reads("y", second.bytes())) return;
          std::vector<double> of_x = read(first), of_y(of_x.size());
          if (reads_y) of_y = read(second);
          for (std::size_t i = 0; i < of_x.size(); ++i) f(scalar.value, of_x[i], of_y[i]);
          if ((writes == Writes::x || writes == Writes::both) && memory.writes("x", first.bytes())) write(first, of_x);
          if ((writes == Writes::y || writes == Writes::both) && memory.writes("y", second.bytes()))
            write(second, of_y);
        });
      },
      function);
}

constexpr auto kAxpy = [](double alpha, double& x, double& y) { y += alpha * x; };
constexpr auto kScale = [](double alpha, double& x, double&) { x *= alpha; };
constexpr auto kCopy = [](double, double& x, double& y) { y = x; };
constexpr auto kSwap = [](double, double& x, double& y) { std::swap(x, y); };

/// A number computed from x and perhaps y, for the host or, by the pointer mode, in device memory. The host waits.
template <class T, class Result, class F>
cublasStatus_t reduce(cublasHandle_t handle, int n, const T* x, int x_step, const T* y, int y_step, Result* result,
                      cudaDataType result_type, F&& f, const char* function = __builtin_FUNCTION()) {
  return call(
      [&](Machine& machine) {
        const Handle& settings = handle_of(handle);
        require_argument(result != nullptr, "the pointer to the result is null");
        const Vector first = vector(n, x, x_step), second = vector(y == nullptr ? 0 : n, y, y_step);
        const bool to_device = settings.pointer_mode == CUBLAS_POINTER_MODE_DEVICE;
        enqueue(machine, settings.stream, function, [=](LibraryMemory& memory) {
          if (first.n != 0 && !memory.reads("x", first.bytes())) return;
          if (second.n != 0 && !memory.reads("y", second.bytes())) return;
          const double value = f(read(first), read(second));
          const Vector to{address(result), result_type, 1, 1};
          if (!to_device || memory.writes("the result", to.bytes())) write_element(result_type, result, value);
        });
        if (!to_device) machine.wait_for(machine.stream(settings.stream));
      },
      function);
}

using Elements = std::vector<double>;
constexpr auto kDot = [](const Elements& x, const Elements& y) {
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) sum += x[i] * y[i];
  return sum;
};
constexpr auto kNorm = [](const Elements& x, const Elements&) {
  double largest = 0, sum = 0;
  for (const double each : x) largest = std::isnan(each) ? each : std::max(largest, std::fabs(each));
  if (largest == 0 || !std::isfinite(largest)) return largest;
  for (const double each : x) sum += each / largest * (each / largest);
  return largest * std::sqrt(sum);
};
constexpr auto kSumOfMagnitudes = [](const Elements& x, const Elements&) {
  double sum = 0;
  for (const double each : x) sum += std::fabs(each);
  return sum;
};
/// The index from 1 of the first element with the largest magnitude; 0 without elements.
constexpr auto kIndexOfLargest = [](const Elements& x, const Elements&) {
  const auto less = [](double a, double b) { return std::fabs(a) < std::fabs(b); };
  return x.empty() ? 0.0 : static_cast<double>(std::max_element(x.begin(), x.end(), less) - x.begin() + 1);
};
constexpr auto kIndexOfLeast = [](const Elements& x, const Elements&) {
  const auto less = [](double a, double b) { return std::fabs(a) < std::fabs(b); };
  return x.empty() ? 0.0 : static_cast<double>(std::min_element(x.begin(), x.end(), less) - x.begin() + 1);
};

/// y = alpha * op(a) * x + beta * y.
template <class T>
cublasStatus_t multiply_vector(cublasHandle_t handle, cublasOperation_t operation, int m, int n, const T* alpha,
                               const T* a, int lda, const T* x, int x_step, const T* beta, T* y, int y_step,
                               const char* function = __builtin_FUNCTION()) {
  return call(
      [&](Machine& machine) {
        const Handle& settings = handle_of(handle);
        require_argument(m >= 0 && n >= 0 && lda >= std::max(1, m), "an extent is negative, or lda is less than m");
        require_argument(x_step != 0 && y_step != 0, "an increment is 0");
        const Matrix matrix = apply(operation, {address(a), kDataType<T>, m, n, lda, false});
        const Vector from{address(x), kDataType<T>, matrix.columns, x_step};
        const Vector to{address(y), kDataType<T>, matrix.rows, y_step};
        Scalar of_product = scalar_of(settings.pointer_mode, kDataType<T>, alpha, "alpha");
        Scalar of_y = scalar_of(settings.pointer_mode, kDataType<T>, beta, "beta");
        enqueue(machine, settings.stream, function, [=](LibraryMemory& memory) mutable {
          if (to.n == 0 || !of_product.resolve(memory, "alpha") || !of_y.resolve(memory, "beta")) return;
          Elements result(static_cast<std::size_t>(to.n));
          if (of_product.value != 0 && from.n != 0) {
            if (!memory.reads("A", matrix.bytes()) || !memory.reads("x", from.bytes())) return;
            multiply_add(matrix.rows, 1, matrix.columns, read(matrix).data(), read(from).data(), result.data());
            for (double& each : result) each *= of_product.value;
          }
          if (of_y.value != 0) {
            if (!memory.reads("y", to.bytes())) return;
            const Elements before = read(to);
            for (std::size_t i = 0; i < result.size(); ++i) result[i] += of_y.value * before[i];
          }
          if (memory.writes("y", to.bytes())) write(to, result);
        });
      },
      function);
}

/// a += alpha * x * y^T.
template <class T>
cublasStatus_t add_outer_product(cublasHandle_t handle, int m, int n, const T* alpha, const T* x, int x_step,
                                 const T* y, int y_step, T* a, int lda, const char* function = __builtin_FUNCTION()) {
  return call(
      [&](Machine& machine) {
        const Handle& settings = handle_of(handle);
        require_argument(m >= 0 && n >= 0 && lda >= std::max(1, m), "an extent is negative, or lda is less than m");
        const Vector column = vector(m, x, x_step), row = vector(n, y, y_step);
        const Matrix matrix{address(a), kDataType<T>, m, n, lda, false};
        Scalar factor = scalar_of(settings.pointer_mode, kDataType<T>, alpha, "alpha");
        enqueue(machine, settings.stream, function, [=](LibraryMemory& memory) mutable {
          if (matrix.is_empty() || !factor.resolve(memory, "alpha")) return;
          if (!memory.reads("x", column.bytes()) || !memory.reads("y", row.bytes())) return;
          if (!memory.reads("A", matrix.bytes())) return;
          Elements of_x = read(column), elements = read(matrix);
          for (double& each : of_x) each *= factor.value;
          multiply_add(m, n, 1, of_x.data(), read(row).data(), elements.data());
          if (memory.writes("A", matrix.bytes())) write(matrix, elements);
        });
      },
      function);
}

}  // namespace

TILEWRIGHT_EXPORT cublasStatus_t cublasSaxpy_v2(cublasHandle_t handle, int n, const float* alpha, const float* x,
                                                int x_step, float* y, int y_step) {
  return update(handle, n, alpha, x, x_step, static_cast<const float*>(y), y_step, Writes::y, true, kAxpy);
}
TILEWRIGHT_EXPORT cublasStatus_t cublasDaxpy_v2(cublasHandle_t handle, int n, const double* alpha, const double* x,
                                                int x_step, double* y, int y_step) {
  return update(handle, n, alpha, x, x_step, static_cast<const double*>(y), y_step, Writes::y, true, kAxpy);
}
TILEWRIGHT_EXPORT cublasStatus_t cublasSscal_v2(cublasHandle_t handle, int n, const float* alpha, float* x,
                                                int x_step) {
  return update<float>(handle, n, alpha, x, x_step, nullptr, 1, Writes::x, false, kScale);
}
TILEWRIGHT_EXPORT cublasStatus_t cublasDscal_v2(cublasHandle_t handle, int n, const double* alpha, double* x,
                                                int x_step) {
  return update<double>(handle, n, alpha, x, x_step, nullptr, 1, Writes::x, false, kScale);
}
TILEWRIGHT_EXPORT cublasStatus_t cublasScopy_v2(cublasHandle_t handle, int n, const float* x, int x_step, float* y,
                                                int y_step) {
  return update<float>(handle, n, nullptr, x, x_step, y, y_step, Writes::y, false, kCopy);
}
TILEWRIGHT_EXPORT cublasStatus_t cublasDcopy_v2(cublasHandle_t handle, int n, const double* x, int x_step, double* y,
                                                int y_step) {
  return update<double>(handle, n, nullptr, x, x_step, y, y_step, Writes::y, false, kCopy);
}
TILEWRIGHT_EXPORT cublasStatus_t cublasSswap_v2(cublasHandle_t handle, int n, float* x, int x_step, float* y,
                                                int y_step) {
  return update<float>(handle, n, nullptr, x, x_step, y, y_step, Writes::both, true, kSwap);
}
TILEWRIGHT_EXPORT cublasStatus_t cublasDswap_v2(cublasHandle_t handle, int n, double* x, int x_step, double* y,
                                                int y_step) {
  return update<double>(handle, n, nullptr, x, x_step, y, y_step, Writes::both, true, kSwap);
}
TILEWRIGHT_EXPORT cublasStatus_t cublasSdot_v2(cublasHandle_t handle, int n, const float* x, int x_step, const float* y,
                                               int y_step, float* result) {
  return reduce(handle, n, x, x_step, y, y_step, result, CUDA_R_32F, kDot);
}
TILEWRIGHT_EXPORT cublasStatus_t cublasDdot_v2(cublasHandle_t handle, int n, const double* x, int x_step,
                                               const double* y, int y_step, double* result) {
  return reduce(handle, n, x, x_step, y, y_step, result, CUDA_R_64F, kDot);
}
TILEWRIGHT_EXPORT cublasStatus_t cublasSnrm2_v2(cublasHandle_t handle, int n, const float* x, int x_step,
                                                float* result) {
  return reduce<float>(handle, n, x, x_step, nullptr, 1, result, CUDA_R_32F, kNorm);
}
TILEWRIGHT_EXPORT cublasStatus_t cublasDnrm2_v2(cublasHandle_t handle, int n, const double* x, int x_step,
                                                double* result) {
  return reduce<double>(handle, n, x, x_step, nullptr, 1, result, CUDA_R_64F, kNorm);
}
TILEWRIGHT_EXPORT cublasStatus_t cublasSasum_v2(cublasHandle_t handle, int n, const float* x, int x_step,
                                                float* result) {
  return reduce<float>(handle, n, x, x_step, nullptr, 1, result, CUDA_R_32F, kSumOfMagnitudes);
}
TILEWRIGHT_EXPORT cublasStatus_t cublasDasum_v2(cublasHandle_t handle, int n, const double* x, int x_step,
                                                double* result) {
  return reduce<double>(handle, n, x, x_step, nullptr, 1, result, CUDA_R_64F, kSumOfMagnitudes);
}
TILEWRIGHT_EXPORT cublasStatus_t cublasIsamax_v2(cublasHandle_t handle, int n, const float* x, int x_step,
                                                 int* result) {
  return reduce<float>(handle, n, x, x_step, nullptr, 1, result, CUDA_R_32I, kIndexOfLargest);
}
TILEWRIGHT_EXPORT cublasStatus_t cublasIdamax_v2(cublasHandle_t handle, int n, const double* x, int x_step,
                                                 int* result) {
  return reduce<double>(handle, n, x, x_step, nullptr, 1, result, CUDA_R_32I, kIndexOfLargest);
}
TILEWRIGHT_EXPORT cublasStatus_t cublasIsamin_v2(cublasHandle_t handle, int n, const float* x, int x_step,
                                                 int* result) {
  return reduce<float>(handle, n, x, x_step, nullptr, 1, result, CUDA_R_32I, kIndexOfLeast);
}
TILEWRIGHT_EXPORT cublasStatus_t cublasIdamin_v2(cublasHandle_t handle, int n, const double* x, int x_step,
                                                 int* result) {
  return reduce<double>(handle, n, x, x_step, nullptr, 1, result, CUDA_R_32I, kIndexOfLeast);
}

TILEWRIGHT_EXPORT cublasStatus_t cublasSgemv_v2(cublasHandle_t handle, cublasOperation_t operation, int m, int n,
                                                const float* alpha, const float* a, int lda, const float* x, int x_step,
                                                const float* beta, float* y, int y_step) {
  return multiply_vector(handle, operation, m, n, alpha, a, lda, x, x_step, beta, y, y_step);
}
TILEWRIGHT_EXPORT cublasStatus_t cublasDgemv_v2(cublasHandle_t handle, cublasOperation_t operation, int m, int n,
                                                const double* alpha, const double* a, int lda, const double* x,
                                                int x_step, const double* beta, double* y, int y_step) {
  return multiply_vector(handle, operation, m, n, alpha, a, lda, x, x_step, beta, y, y_step);
}
TILEWRIGHT_EXPORT cublasStatus_t cublasSger_v2(cublasHandle_t handle, int m, int n, const float* alpha, const float* x,
                                               int x_step, const float* y, int y_step, float* a, int lda) {
  return add_outer_product(handle, m, n, alpha, x, x_step, y, y_step, a, lda);
}
TILEWRIGHT_EXPORT cublasStatus_t cublasDger_v2(cublasHandle_t handle, int m, int n, const double* alpha,
                                               const double* x, int x_step, const double* y, int y_step, double* a,
                                               int lda) {
  return add_outer_product(handle, m, n, alpha, x, x_step, y, y_step, a, lda);
}

}  // namespace tilewright::cuda_runtime::blas
