#include "tools/cuda_runtime/blas/matrix.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "tilewright/base/float_format.hpp"
#include "tilewright/emulator/instructions/hardware_fma.hpp"
#include "tilewright/emulator/instructions/lanes.hpp"

namespace tilewright::cuda_runtime::blas {
namespace {

template <class T>
T load(const void* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}
template <class T>
void store(void* to, T value) {
  std::memcpy(to, &value, sizeof(T));
}

template <class T>
T rounded(double value) {
  if (std::isnan(value)) return 0;
  const double nearest = std::nearbyint(value);
  return static_cast<T>(std::clamp<double>(nearest, std::numeric_limits<T>::min(), std::numeric_limits<T>::max()));
}

/// Calls f(address, element) for each element, by columns.
template <class F>
void each_element(const Matrix& matrix, F&& f) {
  const auto size = static_cast<std::int64_t>(element_bytes(matrix.type));
  const std::int64_t row_stride = (matrix.is_row_major ? matrix.ld : 1) * size;
  const std::int64_t column_stride = (matrix.is_row_major ? 1 : matrix.ld) * size;
  auto* const data = reinterpret_cast<std::byte*>(matrix.data);
  std::size_t element = 0;
  for (std::int64_t j = 0; j < matrix.columns; ++j) {
    for (std::int64_t i = 0; i < matrix.rows; ++i) f(data + i * row_stride + j * column_stride, element++);
  }
}

template <class F>
void each_element(const Vector& vector, F&& f) {
  const std::int64_t size = static_cast<std::int64_t>(element_bytes(vector.type)) * vector.increment;
  auto* const data = reinterpret_cast<std::byte*>(vector.data) - (size < 0 ? (vector.n - 1) * size : 0);
  for (std::int64_t i = 0; i < vector.n; ++i) f(data + i * size, static_cast<std::size_t>(i));
}

template <class Operand>
std::vector<double> read_all(const Operand& from, std::int64_t count) {
  std::vector<double> elements(static_cast<std::size_t>(count));
  if (from.type == CUDA_R_32F) {  // the type of most programs
    each_element(from, [&](const std::byte* at, std::size_t i) { elements[i] = load<float>(at); });
  } else {
    each_element(from, [&](const std::byte* at, std::size_t i) { elements[i] = read_element(from.type, at); });
  }
  return elements;
}

constexpr std::int64_t kRows = 512;  // of c that are kept in the first cache
constexpr std::int64_t kColumns = 4;

[[gnu::always_inline]] inline void multiply_add_inline(std::int64_t m, std::int64_t n, std::int64_t k, const double* a,
                                                       const double* b, double* c) {
  for (std::int64_t first = 0; first < m; first += kRows) {
    const std::int64_t rows = std::min(kRows, m - first);
    for (std::int64_t j = 0; j < n; j += kColumns) {
      const bool whole = j + kColumns <= n;
      for (std::int64_t p = 0; p < k; ++p) {
        const double* const column = a + p * m + first;
        if (whole) {
          const double b0 = b[j * k + p], b1 = b[(j + 1) * k + p], b2 = b[(j + 2) * k + p], b3 = b[(j + 3) * k + p];
          double* const c0 = c + j * m + first;
          double* const c1 = c0 + m;
          double* const c2 = c1 + m;
          double* const c3 = c2 + m;
          TILEWRIGHT_INDEPENDENT_ITERATIONS
          for (std::int64_t i = 0; i < rows; ++i) {
            c0[i] += column[i] * b0;
            c1[i] += column[i] * b1;
            c2[i] += column[i] * b2;
            c3[i] += column[i] * b3;
          }
        } else {
          for (std::int64_t at = j; at < n; ++at) {
            double* const to = c + at * m + first;
            const double factor = b[at * k + p];
            TILEWRIGHT_INDEPENDENT_ITERATIONS
            for (std::int64_t i = 0; i < rows; ++i) to[i] += column[i] * factor;
          }
        }
      }
    }
  }
}
TILEWRIGHT_TARGET_AVX512 void multiply_add_with_avx512(std::int64_t m, std::int64_t n, std::int64_t k, const double* a,
                                                       const double* b, double* c) {
  multiply_add_inline(m, n, k, a, b, c);
}

}  // namespace

std::size_t element_bytes(cudaDataType type) {
  switch (type) {
    case CUDA_R_64F:
      return 8;
    case CUDA_R_32F:
    case CUDA_R_32I:
      return 4;
    case CUDA_R_16F:
    case CUDA_R_16BF:
      return 2;
    case CUDA_R_8I:
    case CUDA_R_8F_E4M3:
    case CUDA_R_8F_E5M2:
      return 1;
    default:
      return 0;
  }
}

double read_element(cudaDataType type, const void* from) {
  switch (type) {
    case CUDA_R_64F:
      return load<double>(from);
    case CUDA_R_32F:
      return load<float>(from);
    case CUDA_R_32I:
      return load<std::int32_t>(from);
    case CUDA_R_16F:
      return f16_to_f32(load<std::uint16_t>(from));
    case CUDA_R_16BF:
      return bf16_to_f32(load<std::uint16_t>(from));
    case CUDA_R_8I:
      return load<std::int8_t>(from);
    case CUDA_R_8F_E4M3:
      return e4m3_to_f32(load<std::uint8_t>(from));
    default:
      return e5m2_to_f32(load<std::uint8_t>(from));
  }
}

void write_element(cudaDataType type, void* to, double value) {
  switch (type) {
    case CUDA_R_64F:
      return store(to, value);
    case CUDA_R_32F:
      return store(to, static_cast<float>(value));
    case CUDA_R_32I:
      return store(to, rounded<std::int32_t>(value));
    case CUDA_R_16F:
      return store(to, f64_to_f16(value));
    case CUDA_R_16BF:
      return store(to, f64_to_bf16(value));
    case CUDA_R_8I:
      return store(to, rounded<std::int8_t>(value));
    case CUDA_R_8F_E4M3:
      return store(to, f64_to_e4m3(value));
    default:
      return store(to, f64_to_e5m2(value));
  }
}

StridedBytes Matrix::bytes() const {
  const std::size_t size = element_bytes(type);
  const auto lines = static_cast<std::size_t>(is_row_major ? rows : columns);
  const std::size_t line = static_cast<std::size_t>(is_row_major ? columns : rows) * size;
  const std::size_t pitch = static_cast<std::size_t>(ld) * size;
  if (line == pitch && lines != 0) return {data, line * lines, line * lines, 1};
  return {data, line, pitch, lines};
}

StridedBytes Vector::bytes() const {
  const std::size_t size = element_bytes(type);
  const auto count = static_cast<std::size_t>(n);
  const auto step = static_cast<std::size_t>(std::abs(increment)) * size;
  if (step == size) return {data, count * size, count * size, 1};
  return {data, size, step, step == 0 ? 1 : count};
}

std::vector<double> read(const Matrix& matrix) { return read_all(matrix, matrix.rows * matrix.columns); }
void write(const Matrix& matrix, const std::vector<double>& elements) {
  each_element(matrix, [&](std::byte* at, std::size_t i) { write_element(matrix.type, at, elements[i]); });
}
std::vector<double> read(const Vector& vector) { return read_all(vector, vector.n); }
void write(const Vector& vector, const std::vector<double>& elements) {
  each_element(vector, [&](std::byte* at, std::size_t i) { write_element(vector.type, at, elements[i]); });
}

void multiply_add(std::int64_t m, std::int64_t n, std::int64_t k, const double* a, const double* b, double* c) {
  if (emulator::has_avx512()) return multiply_add_with_avx512(m, n, k, a, b, c);
  multiply_add_inline(m, n, k, a, b, c);
}

}  // namespace tilewright::cuda_runtime::blas
