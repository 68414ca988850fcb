#include "tilewright/op/fill.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numbers>

#include "tilewright/base/float_format.hpp"
#include "tilewright/base/interruption.hpp"
#include "tilewright/base/memory.hpp"

namespace tilewright::op {
namespace {

// splitmix64: Steele, Lea, Flood, Fast Splittable Pseudorandom Number Generators, 2014.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15U;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31);
  }
  /// Uniform in (0, 1].
  double uniform() { return static_cast<double>((next() >> 11) + 1) * 0x1p-53; }

 private:
  std::uint64_t state_;
};

// The element at `offset`, in elements, of the first matrix.
std::byte* element_at(const Tensor& tensor, std::int64_t offset) {
  const std::uint64_t matrix = tensor.is_pointer_array() ? slice(tensor, 0).address : tensor.address;
  return reinterpret_cast<std::byte*>(matrix) + offset * bytes(tensor.dtype);
}

std::byte* element(const Tensor& tensor, std::int64_t row, std::int64_t column) {
  return element_at(tensor, tensor.offset(row, column));
}

template <class T>
double load_as(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return static_cast<double>(value);
}

template <class T>
void store_as(std::byte* to, T value) {
  std::memcpy(to, &value, sizeof(T));
}

std::uint8_t load_byte(const std::byte* from) { return std::to_integer<std::uint8_t>(*from); }

std::uint16_t load_bits(const std::byte* from) {
  std::uint16_t bits = 0;
  std::memcpy(&bits, from, sizeof bits);
  return bits;
}

template <class T>
T saturate(double value) {
  if (std::isnan(value)) return 0;
  constexpr double kLow = std::numeric_limits<T>::min();
  constexpr double kHigh = std::numeric_limits<T>::max();
  return static_cast<T>(std::clamp(std::nearbyint(value), kLow, kHigh));
}

double load_element(DType type, const std::byte* from) {
  switch (type) {
    case DType::f64:
      return load_as<double>(from);
    case DType::f32:
    case DType::tf32:
      return load_as<float>(from);
    case DType::f16:
      return f16_to_f32(load_bits(from));
    case DType::bf16:
      return bf16_to_f32(load_bits(from));
    case DType::e4m3:
      return e4m3_to_f32(load_byte(from));
    case DType::e5m2:
      return e5m2_to_f32(load_byte(from));
    case DType::s32:
      return load_as<std::int32_t>(from);
    case DType::s8:
      return load_as<std::int8_t>(from);
    case DType::u8:
      return load_as<std::uint8_t>(from);
    default:
      break;
  }
  TILEWRIGHT_CHECK(false, "dtype {} cannot be loaded", static_cast<int>(type));
}

void store_element(DType type, std::byte* to, double value) {
  switch (type) {
    case DType::f64:
      return store_as(to, value);
    case DType::f32:
    case DType::tf32:
      return store_as(to, static_cast<float>(value));
    case DType::f16:
      return store_as(to, f64_to_f16(value));
    case DType::bf16:
      return store_as(to, f64_to_bf16(value));
    case DType::e4m3:
      return store_as(to, f64_to_e4m3(value));
    case DType::e5m2:
      return store_as(to, f64_to_e5m2(value));
    case DType::s32:
      return store_as(to, saturate<std::int32_t>(value));
    case DType::s8:
      return store_as(to, saturate<std::int8_t>(value));
    case DType::u8:
      return store_as(to, saturate<std::uint8_t>(value));
    default:
      break;
  }
  TILEWRIGHT_CHECK(false, "{} cannot be stored", name(type));
}

// Visits every element; a broadcast matrix is visited once.
template <class Next>
void fill_with(const Tensor& tensor, Next next) {
  PeriodicCheck check;
  for (std::int64_t index = 0; index < tensor.distinct_matrices(); ++index) {
    const Tensor matrix = slice(tensor, index);
    for (std::int64_t row = 0; row < matrix.rows(); ++row) {
      for (std::int64_t column = 0; column < matrix.columns(); ++column) {
        check();
        store(matrix, row, column, next());
      }
    }
  }
}

}  // namespace

double load(const Tensor& tensor, std::int64_t row, std::int64_t column) {
  return load_element(tensor.dtype, element(tensor, row, column));
}

void store(const Tensor& tensor, std::int64_t row, std::int64_t column, double value) {
  store_element(tensor.dtype, element(tensor, row, column), value);
}

double load_at(const Tensor& tensor, std::int64_t offset) {
  return load_element(tensor.dtype, element_at(tensor, offset));
}

void store_at(const Tensor& tensor, std::int64_t offset, double value) {
  store_element(tensor.dtype, element_at(tensor, offset), value);
}

double round_to(DType type, double value) {
  std::byte word[sizeof(double)];
  store_element(type, word, value);
  return load_element(type, word);
}

void copy_elements(const Tensor& from, const Tensor& to) {
  PeriodicCheck check;
  TILEWRIGHT_CHECK(from.shape == to.shape, "copying {} to {}", to_string(from.shape), to_string(to.shape));
  for (std::int64_t index = 0; index < from.batch(); ++index) {
    const Tensor source = slice(from, index);
    const Tensor target = slice(to, index);
    for (std::int64_t row = 0; row < from.rows(); ++row) {
      for (std::int64_t column = 0; column < from.columns(); ++column) {
        check();
        store(target, row, column, load(source, row, column));
      }
    }
  }
}

void fill_integers(const Tensor& tensor, std::int64_t low, std::int64_t high, std::uint64_t seed) {
  TILEWRIGHT_CHECK(low <= high && high - low < (std::int64_t{1} << 32), "integers of [{}, {}]", low, high);
  Random random(seed);
  const auto count = static_cast<std::uint64_t>(high - low + 1);
  fill_with(tensor,
            [&] { return static_cast<double>(low + static_cast<std::int64_t>((random.next() >> 32) % count)); });
}

std::int64_t exact_integer_limit(DType element, DType accumulator, std::int64_t k) {
  // Tensor cores may accumulate products of 8-bit floats with 14 bits: see op::MathOperation.
  const double of_f32 = is_fp8(element) ? 0x1p13 : 0x1p24;
  const double exact = accumulator == DType::f16 ? 0x1p11 : accumulator == DType::f32 ? of_f32 : 0x1p31;
  const double limit = std::sqrt(exact / static_cast<double>(std::max<std::int64_t>(1, k)));
  return std::clamp<std::int64_t>(static_cast<std::int64_t>(limit), 1, 8);
}

void fill_normal(const Tensor& tensor, double deviation, std::uint64_t seed) {
  Random random(seed);
  // The Box-Muller transform; only its cosine value is used.
  fill_with(tensor, [&] {
    const double radius = deviation * std::sqrt(-2.0 * std::log(random.uniform()));
    return radius * std::cos(2.0 * std::numbers::pi * random.uniform());
  });
}

void fill_poison(const Tensor& tensor) {
  if (tensor.is_pointer_array()) {
    for (std::int64_t index = 0; index < tensor.batch(); ++index) fill_poison(slice(tensor, index));
    return;
  }
  fill_bytes(reinterpret_cast<void*>(tensor.address), 0xff, static_cast<std::size_t>(span_bytes(tensor)));
}

}  // namespace tilewright::op
