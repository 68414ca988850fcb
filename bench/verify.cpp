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

double saturated(double value, DType out) {
  switch (out) {
    case DType::s8:
      return std::clamp(value, -128.0, 127.0);
    case DType::u8:
      return std::clamp(value, 0.0, 255.0);
    case DType::e4m3:
      return std::clamp(value, -448.0, 448.0);
    case DType::e5m2:
      return std::clamp(value, -57344.0, 57344.0);
    default:
      return value;
  }
}

/// Of one element of a further tensor, as that of D at the place sees it.
double tensor_element(const StoredMatrix& stored, const std::vector<std::byte>& bytes, std::int64_t row,
                      std::int64_t column) {
  return element(bytes, stored.dtype, stored.index(0, stored.rows == 1 ? 0 : row, stored.columns == 1 ? 0 : column));
}

/// Sources of N(0,1) stay within half of this, and so do the places where an activation bends.
constexpr double kBeside = 16.0;

}  // namespace

double store_error(DType type) {
  switch (type) {
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

const std::vector<std::byte>& Verifier::Written::bytes(const Output& output) const {
  return tensor == 0 ? output.bytes : output.tensors[tensor - 1];
}

Verifier::Verifier(const Problem& problem, const Sources& sources)
    : problem_(problem), epilogue_(graph(problem)), tensors_(stored_tensors(problem)) {
  written_.push_back({"D", stored_d(problem), 0, static_cast<std::size_t>(epilogue_.node_of_d())});
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    if (!tensors_[i].is_written) continue;
    const auto output = std::ranges::find(epilogue_.outputs, tensors_[i].row.label, &op::EpilogueOutput::label);
    written_.push_back({output->label, tensors_[i].stored, i + 1, static_cast<std::size_t>(output->node)});
  }
  std::mt19937_64 generator(problem.line.size());
  const auto below = [&](std::int64_t limit) {
    return static_cast<std::int64_t>(generator() % static_cast<std::uint64_t>(limit));
  };
  for (int i = 0; i < kSampleCount; ++i) {
    Sample sample{below(problem.batch), below(problem.m), below(problem.n), {}};
    if (i == 0) sample = {0, 0, 0, {}};
    if (i == 1) sample = {problem.batch - 1, problem.m - 1, problem.n - 1, {}};
    const std::vector<double> values = apply_epilogue(sources, sample, exact_product(sources, sample));
    for (const Written& written : written_)
      sample.exact.push_back(saturated(values[written.node], written.stored.dtype));
    samples_.push_back(std::move(sample));
  }
}

double Verifier::exact_product(const Sources& sources, const Sample& sample) const {
  const StoredMatrix a = stored_a(problem_), b = stored_b(problem_);
  double sum = 0.0;
  for (std::int64_t k = 0; k < problem_.k; ++k) {
    sum += element(sources.a, a.dtype, a.index(sample.matrix, sample.row, k)) *
           element(sources.b, b.dtype, b.index(sample.matrix, k, sample.column));
  }
  return sum;
}

std::vector<double> Verifier::apply_epilogue(const Sources& sources, const Sample& sample, double product) const {
  const double beta = problem_.epilogue == nullptr ? 0.0 : problem_.epilogue->beta;
  op::EpilogueElement at{.accumulator = product,
                         .source = 0.0,
                         .alpha = 1.0,
                         .beta = beta,
                         .tensors = {},
                         .row = static_cast<double>(sample.row),
                         .column = static_cast<double>(sample.column)};
  if (beta != 0.0) at.source = tensor_element(stored_c(problem_), sources.c, sample.row, sample.column);
  for (const op::EpilogueNode* node : epilogue_.tensors()) {
    const auto row = std::ranges::find(tensors_, node->label, [](const StoredTensor& one) { return one.row.label; });
    const std::vector<std::byte>& bytes = sources.tensors[static_cast<std::size_t>(row - tensors_.begin())];
    at.tensors.push_back(tensor_element(row->stored, bytes, sample.row, sample.column));
  }
  return op::evaluate_nodes(epilogue_, at);
}

/// For operands of N(0,1) a sum of k products is about sqrt(k) large. Rounded operands give independent errors, which
/// add as sqrt(k); 8 standard deviations cover any number of elements. Truncated additions add up: 4 k units of them.
/// An epilogue passes errors of the product on, at its steepest. `rounding` is relative to the product, which is about
/// what is stored, but for what the epilogue adds to it or cuts off.
double Verifier::bound(const Written& written, double exact, double rounding) const {
  const auto k = static_cast<double>(problem_.k);
  const double steepest = problem_.epilogue == nullptr ? 1.0 : problem_.epilogue->steepest;
  const double of_product = 8.0 * std::sqrt(k) * product_error(problem_.math) + 4.0 * k * addition_error(problem_);
  return steepest * of_product + rounding * (std::abs(exact) + steepest * kBeside) +
         2.0 * store_error(written.stored.dtype) * std::abs(exact);
}

Verdict Verifier::against_exact(const Output& output, double rounding) const {
  Verdict verdict;
  verdict.right = true;
  const double count = static_cast<double>(kSampleCount) * static_cast<double>(written_.size());
  for (std::size_t i = 0; i < written_.size(); ++i) {
    const Written& written = written_[i];
    const StoredMatrix& stored = written.stored;
    for (const Sample& sample : samples_) {
      const double exact = sample.exact[i];
      const double value =
          element(written.bytes(output), stored.dtype, stored.index(sample.matrix, sample.row, sample.column));
      const double error = std::abs(value - exact);
      const double most = bound(written, exact, rounding);
      if (!(error <= most) && verdict.right) {  // negated, so that NaN is wrong
        verdict.right = false;
        verdict.reason =
            fmt::format("{} is {}, exactly {}, off by more than {:.3g}",
                        element_name(written, sample.matrix, sample.row, sample.column), value, exact, most);
      }
      verdict.max_error = std::max(verdict.max_error, error);
      verdict.mean_error += error / count;
    }
  }
  return verdict;
}

std::string Verifier::disagreement(const Output& output, const Output& other, double rounding) const {
  const std::int64_t lines = problem_.batch * problem_.m;
  const auto parts = static_cast<std::int64_t>(std::max(1U, std::thread::hardware_concurrency()));
  std::vector<std::string> found(static_cast<std::size_t>(parts));
  {
    std::vector<std::jthread> threads;
    for (std::int64_t part = 0; part < parts; ++part) {
      threads.emplace_back([&, part] {
        const Lines mine{lines * part / parts, lines * (part + 1) / parts};
        std::string& first = found[static_cast<std::size_t>(part)];
        for (const Written& written : written_) {
          if (first.empty()) first = disagreement(written, output, other, rounding, mine);
        }
      });
    }
  }
  const auto first = std::ranges::find_if(found, [](const std::string& one) { return !one.empty(); });
  return first == found.end() ? "" : *first;
}

std::string Verifier::disagreement(const Written& written, const Output& output, const Output& other, double rounding,
                                   const Lines& part) const {
  const StoredMatrix& stored = written.stored;
  const std::vector<std::byte>& values = written.bytes(output);
  const std::vector<std::byte>& others = written.bytes(other);
  for (std::int64_t line = part.begin; line < part.end; ++line) {
    const std::int64_t matrix = line / stored.rows, row = line % stored.rows;
    for (std::int64_t column = 0; column < stored.columns; ++column) {
      const std::int64_t index = stored.index(matrix, row, column);
      const double value = element(values, stored.dtype, index);
      const double expected = element(others, stored.dtype, index);
      if (std::abs(value - expected) <= 2.0 * bound(written, expected, rounding)) continue;
      return fmt::format("{} is {}, the other's {}", element_name(written, matrix, row, column), value, expected);
    }
  }
  return "";
}

std::string Verifier::element_name(const Written& written, std::int64_t matrix, std::int64_t row,
                                   std::int64_t column) const {
  return problem_.batch == 1 ? fmt::format("{}[{},{}]", written.label, row, column)
                             : fmt::format("{}[{},{},{}]", written.label, matrix, row, column);
}

}  // namespace tilewright::bench
