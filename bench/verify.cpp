// Exact sums, error bounds, comparison.
#include "verify.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <thread>

#include "tilewright/base/float_format.hpp"

namespace tilewright::bench {
namespace {

constexpr int kSampleCount = 512;

template <class T>
T load(const std::vector<std::byte>& bytes, std::int64_t index) {
  T value;
  std::memcpy(&value, bytes.data() + static_cast<std::size_t>(index) * sizeof(T), sizeof(T));
  return value;
}

double element(const std::vector<std::byte>& bytes, DType dtype, std::int64_t index) {
  switch (dtype) {
    case DType::f64:
      return load<double>(bytes, index);
    case DType::f32:
    case DType::tf32:
      return load<float>(bytes, index);
    case DType::f16:
      return f16_to_f32(load<std::uint16_t>(bytes, index));
    case DType::bf16:
      return bf16_to_f32(load<std::uint16_t>(bytes, index));
    case DType::e4m3:
      return e4m3_to_f32(load<std::uint8_t>(bytes, index));
    case DType::e5m2:
      return e5m2_to_f32(load<std::uint8_t>(bytes, index));
    case DType::s32:
      return load<std::int32_t>(bytes, index);
    case DType::s8:
      return load<std::int8_t>(bytes, index);
    case DType::u8:
      return load<std::uint8_t>(bytes, index);
    default:
      return std::nan("");
  }
}

/// Relative error of one product of two operands, from their rounding before the multiplication.
double product_error(op::MathOperation math) {
  switch (math) {
    case op::MathOperation::multiply_add_tf32:
    case op::MathOperation::multiply_add_fast_f16:
      return 0x1p-10;
    case op::MathOperation::multiply_add_fast_bf16:
      return 0x1p-7;
    case op::MathOperation::multiply_add_fast_f32:
      return 0x1p-20;
    default:
      return 0.0;
  }
}

/// Error of one addition relative to the sum. Tensor cores truncate: one unit in the last place, not half. Hopper's add
/// products of 8-bit floats with 13 fraction bits (DeepSeek-V3 Technical Report, 2024, section 3.3.2).
double addition_error(const Problem& problem) {
  if (problem.dtype == DType::e4m3 || problem.dtype == DType::e5m2) return 0x1p-13;
  switch (problem.accumulator) {
    case DType::f64:
      return 0x1p-52;
    case DType::f16:
      return 0x1p-10;
    case DType::s32:
      return 0.0;
    default:
      return 0x1p-23;
  }
}

double store_error(DType out) {
  switch (out) {
    case DType::f16:
      return 0x1p-11;
    case DType::bf16:
      return 0x1p-8;
    case DType::e4m3:
      return 0x1p-4;
    case DType::e5m2:
      return 0x1p-3;
    case DType::f32:
      return 0x1p-24;
    default:
      return 0.0;
  }
}

double saturated(double value, DType out) {
  switch (out) {
    case DType::s8:
      return std::clamp(value, -128.0, 127.0);
    case DType::u8:
      return std::clamp(value, 0.0, 255.0);
    default:
      return value;
  }
}

}  // namespace

Verifier::Verifier(const Problem& problem, const std::vector<std::byte>& a, const std::vector<std::byte>& b)
    : problem_(problem) {
  std::mt19937_64 generator(problem.line.size());
  const auto below = [&](std::int64_t limit) {
    return static_cast<std::int64_t>(generator() % static_cast<std::uint64_t>(limit));
  };
  for (int i = 0; i < kSampleCount; ++i) {
    Sample sample{below(problem.batch), below(problem.m), below(problem.n), 0.0};
    if (i == 0) sample = {0, 0, 0, 0.0};
    if (i == 1) sample = {problem.batch - 1, problem.m - 1, problem.n - 1, 0.0};
    for (std::int64_t k = 0; k < problem.k; ++k) {
      sample.exact += element(a, problem.dtype, stored_a(problem).index(sample.matrix, sample.row, k)) *
                      element(b, problem.dtype, stored_b(problem).index(sample.matrix, k, sample.column));
    }
    sample.exact = saturated(sample.exact, problem.out);
    samples_.push_back(sample);
  }
}

/// For operands of N(0,1) a sum of k products is about sqrt(k) large. Rounded operands give independent errors, which
/// add as sqrt(k); 8 standard deviations cover any number of elements. Truncated additions add up: 4 k units of them.
double Verifier::bound(double exact) const {
  const auto k = static_cast<double>(problem_.k);
  return 8.0 * std::sqrt(k) * product_error(problem_.math) + 4.0 * k * addition_error(problem_) +
         2.0 * store_error(problem_.out) * std::abs(exact);
}

Verdict Verifier::against_exact(const Output& output) const {
  const StoredMatrix d = stored_d(problem_);
  Verdict verdict;
  verdict.right = true;
  for (const Sample& sample : samples_) {
    const double value = element(output.bytes, d.dtype, d.index(sample.matrix, sample.row, sample.column));
    const double error = std::abs(value - sample.exact);
    if (!(error <= bound(sample.exact)) && verdict.right) {  // negated, so that NaN is wrong
      verdict.right = false;
      verdict.reason =
          fmt::format("{} is {}, exactly {}, off by more than {:.3g}",
                      element_name(sample.matrix, sample.row, sample.column), value, sample.exact, bound(sample.exact));
    }
    verdict.max_error = std::max(verdict.max_error, error);
    verdict.mean_error += error / kSampleCount;
  }
  return verdict;
}

std::string Verifier::disagreement(const Output& output, const Output& other) const {
  const std::int64_t lines = problem_.batch * problem_.m;
  const auto parts = static_cast<std::int64_t>(std::max(1U, std::thread::hardware_concurrency()));
  std::vector<std::string> found(static_cast<std::size_t>(parts));
  {
    std::vector<std::jthread> threads;
    for (std::int64_t part = 0; part < parts; ++part) {
      threads.emplace_back([&, part] {
        const Lines mine{lines * part / parts, lines * (part + 1) / parts};
        found[static_cast<std::size_t>(part)] = disagreement(output, other, mine);
      });
    }
  }
  const auto first = std::ranges::find_if(found, [](const std::string& one) { return !one.empty(); });
  return first == found.end() ? "" : *first;
}

std::string Verifier::disagreement(const Output& output, const Output& other, const Lines& part) const {
  const StoredMatrix d = stored_d(problem_);
  for (std::int64_t line = part.begin; line < part.end; ++line) {
    const std::int64_t matrix = line / d.rows, row = line % d.rows;
    for (std::int64_t column = 0; column < d.columns; ++column) {
      const std::int64_t index = d.index(matrix, row, column);
      const double value = element(output.bytes, d.dtype, index);
      const double expected = element(other.bytes, d.dtype, index);
      if (std::abs(value - expected) <= 2.0 * bound(expected)) continue;
      return fmt::format("{} is {}, the other's {}", element_name(matrix, row, column), value, expected);
    }
  }
  return "";
}

std::string Verifier::element_name(std::int64_t matrix, std::int64_t row, std::int64_t column) const {
  return problem_.batch == 1 ? fmt::format("D[{},{}]", row, column) : fmt::format("D[{},{},{}]", matrix, row, column);
}

}  // namespace tilewright::bench
