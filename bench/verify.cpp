// Computes exact results and error bounds, and compares.
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

/// Limit on the elements of D that share its largest magnitude. For random operands and a D of 8-bit floats these are
/// about ten.
constexpr std::size_t kMaxPeaks = 4096;

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

/// Relative error of a product of two elements, caused by their rounding before the multiplication.
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

/// Error of one addition relative to the sum: one unit in the last place instead of half, because tensor cores
/// truncate. Hopper's tensor cores add products of 8-bit floats with 13 fraction bits (DeepSeek-V3 Technical Report,
/// 2024, section 3.3.2).
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

/// Error that truncated additions leave in a large sum, relative to it. It is 0 unless tensor cores add in f32: an
/// instruction adds the products of 16 elements of K at once and loses half a unit in the last place in the mean, which
/// has the sign of the sum. f16 14142x112x18449 had an error of 0.0101 in a sum of -467.8, where product_bound() is
/// 0.0089 and this adds 0.032 (H200, 2026-11-23).
double truncation_error(const Problem& problem) {
  const bool adds_in_tensor_cores =
      problem.dtype == DType::f16 || problem.dtype == DType::bf16 || problem.dtype == DType::tf32;
  if (!adds_in_tensor_cores || problem.accumulator != DType::f32) return 0.0;
  constexpr double kProductsPerAddition = 16, kMeanLoss = 0.5;
  return static_cast<double>(problem.k) / kProductsPerAddition * kMeanLoss * addition_error(problem);
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

/// The element of an epilogue tensor that is broadcast to this row and column of A*B.
double tensor_element(const StoredMatrix& stored, const std::vector<std::byte>& bytes, std::int64_t row,
                      std::int64_t column) {
  return element(bytes, stored.dtype, stored.index(0, stored.rows == 1 ? 0 : row, stored.columns == 1 ? 0 : column));
}

/// Bound on what the epilogue adds to the product: elements of N(0,1) are below half of it, and so are the arguments
/// where an activation function is not linear.
constexpr double kAddedMagnitude = 16.0;

/// Multiple of the standard deviation that no element exceeds in practice.
constexpr double kDeviations = 8.0;

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

template <class Work>
auto Verifier::in_parallel(std::int64_t count, const Work& work) {
  const auto parts = static_cast<std::int64_t>(std::max(1U, std::thread::hardware_concurrency()));
  std::vector<decltype(work(Part{}))> results(static_cast<std::size_t>(parts));
  {
    std::vector<std::jthread> threads;
    for (std::int64_t part = 0; part < parts; ++part) {
      threads.emplace_back([&, part] {
        results[static_cast<std::size_t>(part)] = work(Part{count * part / parts, count * (part + 1) / parts});
      });
    }
  }
  return results;
}

Verifier::Verifier(const Problem& problem, const Sources& sources)
    : problem_(problem), sources_(sources), epilogue_(graph(problem)), tensors_(stored_tensors(problem)) {
  written_.push_back(written_d());
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    if (!tensors_[i].is_written) continue;
    const CaseTensor& row = tensors_[i].row;
    const auto output = std::ranges::find(epilogue_.outputs, row.label, &op::EpilogueOutput::label);
    const Written written{output->label, tensors_[i].stored, i + 1, static_cast<std::size_t>(output->node),
                          row.steepest};
    if (tensors_[i].is_reduced) {
      reduced_.push_back({written, output->reduction, output->broadcast});
    } else {
      written_.push_back(written);
    }
  }
  std::mt19937_64 generator(problem.line.size());
  const auto below = [&](std::int64_t limit) {
    return static_cast<std::int64_t>(generator() % static_cast<std::uint64_t>(limit));
  };
  const auto exact_of = [](Written& written, const std::vector<double>& values) {
    const double exact = saturated(values[written.node], written.stored.dtype);
    written.magnitude += exact * exact / kSampleCount;
    return exact;
  };
  for (int i = 0; i < kSampleCount; ++i) {
    Place place{below(problem.batch), below(problem.m), below(problem.n)};
    if (i == 0) place = {0, 0, 0};
    if (i == 1) place = {problem.batch - 1, problem.m - 1, problem.n - 1};
    const std::vector<double> values = exact_values(place);
    Sample sample{place, {}};
    for (Written& written : written_) sample.exact.push_back(exact_of(written, values));
    samples_.push_back(std::move(sample));
    for (Reduced& reduced : reduced_) exact_of(reduced.result, values);
  }
  for (Written& written : written_) written.magnitude = std::sqrt(written.magnitude);
  for (std::size_t i = 0; i < reduced_.size(); ++i) {
    Reduced& reduced = reduced_[i];
    reduced.result.magnitude = std::sqrt(reduced.result.magnitude);
    if (reduced.is_single()) continue;
    const std::int64_t lines = reduced.is_of_rows() ? problem.m : problem.n;
    for (const std::int64_t line : {std::int64_t{0}, lines - 1, below(lines), below(lines)})
      reduced_samples_.push_back({i, line, exact_line(reduced, line)});
  }
}

/// If D is a product of several factors, the derivative of one factor is multiplied by the others. Their bound is that
/// of sums of k products of N(0,1).
Verifier::Written Verifier::written_d() const {
  Written d{.label = "D", .stored = stored_d(problem_), .node = static_cast<std::size_t>(epilogue_.node_of_d())};
  d.columns = epilogue_.columns_per_element();
  if (problem_.epilogue == nullptr) return d;
  d.factors = problem_.epilogue->factors;
  const double others = std::pow(kDeviations * std::sqrt(static_cast<double>(problem_.k)), d.factors - 1);
  d.steepest = problem_.epilogue->steepest * d.factors * others;
  return d;
}

double Verifier::exact_product(const Place& place) const {
  const StoredMatrix a = stored_a(problem_), b = stored_b(problem_);
  double sum = 0.0;
  for (std::int64_t k = 0; k < problem_.k; ++k) {
    sum += element(sources_.a, a.dtype, a.index(place.matrix, place.row, k)) *
           element(sources_.b, b.dtype, b.index(place.matrix, k, place.column));
  }
  return sum;
}

op::EpilogueElement Verifier::exact_element(const Place& place) const {
  const double beta = problem_.epilogue == nullptr ? 0.0 : problem_.epilogue->beta;
  op::EpilogueElement at{.accumulator = exact_product(place),
                         .source = 0.0,
                         .alpha = 1.0,
                         .beta = beta,
                         .tensors = {},
                         .row = static_cast<double>(place.row),
                         .column = static_cast<double>(place.column)};
  if (beta != 0.0) at.source = tensor_element(stored_c(problem_), sources_.c, place.row, place.column);
  for (const op::EpilogueNode* node : epilogue_.tensors()) {
    const auto row = std::ranges::find(tensors_, node->label, [](const StoredTensor& one) { return one.row.label; });
    const std::vector<std::byte>& bytes = sources_.tensors[static_cast<std::size_t>(row - tensors_.begin())];
    at.tensors.push_back(tensor_element(row->stored, bytes, place.row, place.column));
  }
  return at;
}

std::vector<double> Verifier::exact_values(const Place& place) const {
  if (!epilogue_.is_gated()) return op::evaluate_nodes(epilogue_, exact_element(place));
  const std::int64_t odd = place.column % 2, even_column = place.column - odd;
  return op::evaluate_pair(epilogue_, {exact_element({place.matrix, place.row, even_column}),
                                       exact_element({place.matrix, place.row, even_column + 1})})
      .at(static_cast<std::size_t>(odd));
}

double Verifier::exact_line(const Reduced& reduced, std::int64_t line) const {
  const auto of_part = [&](const Part& part) {
    double result = op::identity(reduced.reduction, epilogue_.compute);
    for (std::int64_t i = part.begin; i < part.end; ++i) {
      const Place place = reduced.is_of_rows() ? Place{0, line, i} : Place{0, i, line};
      result = op::combine(reduced.reduction, result, exact_values(place)[reduced.result.node]);
    }
    return result;
  };
  double result = op::identity(reduced.reduction, epilogue_.compute);
  for (const double part : in_parallel(reduced.is_of_rows() ? problem_.n : problem_.m, of_part))
    result = op::combine(reduced.reduction, result, part);
  return result;
}

std::vector<Verifier::Place> Verifier::peaks(const Output& output) const {
  struct Largest {
    double magnitude = 0.0;
    std::vector<Place> places = {};
  };
  const StoredMatrix d = stored_d(problem_);
  const auto of_rows = [&](const Part& rows) {
    Largest largest;
    for (std::int64_t row = rows.begin; row < rows.end; ++row) {
      for (std::int64_t column = 0; column < d.columns; ++column) {
        const double magnitude = std::abs(element(output.bytes, d.dtype, d.index(0, row, column)));
        if (magnitude > largest.magnitude) largest = {magnitude, {}};
        if (magnitude == largest.magnitude && largest.places.size() <= kMaxPeaks)
          largest.places.push_back({0, row, column});
      }
    }
    return largest;
  };
  Largest all;
  for (const Largest& part : in_parallel(d.rows, of_rows)) {
    if (part.magnitude > all.magnitude) all = {part.magnitude, {}};
    if (part.magnitude == all.magnitude) all.places.insert(all.places.end(), part.places.begin(), part.places.end());
  }
  return all.places;
}

/// For operands of N(0,1) the magnitude of a sum of k products is about sqrt(k). The errors of rounded operands are
/// independent, so their sum grows with sqrt(k). The errors of truncated additions have the same sign, so their sum
/// grows with k; the bound is 4 k units.
double Verifier::product_bound() const {
  const auto k = static_cast<double>(problem_.k);
  return kDeviations * std::sqrt(k) * product_error(problem_.math) + 4.0 * k * addition_error(problem_);
}

/// The epilogue multiplies errors of the product by at most `steepest`. `rounding` is relative to the product, whose
/// magnitude is that of the stored value, except for what the epilogue adds or cuts off (kAddedMagnitude). It counts
/// once for each factor of the stored value.
double Verifier::bound(const Written& written, double exact, double rounding) const {
  const double steepest = written.steepest;
  const double of_product = truncation_error(problem_) * written.factors * std::abs(exact);
  return steepest * product_bound() + of_product +
         rounding * (written.factors * std::abs(exact) + steepest * kAddedMagnitude) +
         2.0 * store_error(written.stored.dtype) * std::abs(exact);
}

/// A maximum has the bound of one element. In a sum of elements, the errors of truncated additions have the same sign
/// and add up. The other errors are independent: the rounding of each element, uniform within `rounding` of its value,
/// and the rounding of the partial sum after each addition.
double Verifier::bound(const Reduced& reduced, double exact, double rounding) const {
  if (reduced.reduction != op::Reduction::sum) return bound(reduced.result, exact, rounding);
  const double steepest = reduced.result.steepest;
  const auto count = static_cast<double>(reduced.is_of_rows() ? problem_.n : problem_.m);
  const double magnitude = reduced.result.magnitude;
  const double of_value = rounding / std::sqrt(3.0) * (magnitude + steepest * kAddedMagnitude);
  const double of_sum = store_error(DType::f32) * (std::abs(exact) + std::sqrt(count) * magnitude);
  return count * steepest * product_bound() + kDeviations * std::sqrt(count) * (of_value + of_sum) +
         2.0 * store_error(reduced.result.stored.dtype) * std::abs(exact);
}

double Verifier::compare(const Written& written, const Place& of_product, const Output& output, double exact,
                         double most, Verdict& verdict) const {
  const StoredMatrix& stored = written.stored;
  const Place place{of_product.matrix, of_product.row, of_product.column / written.columns};
  const double value =
      element(written.bytes(output), stored.dtype, stored.index(place.matrix, place.row, place.column));
  const double error = std::abs(value - exact);
  ++verdict.compared;
  if (error <= most) return error;  // false for NaN
  ++verdict.wrong;
  if (verdict.right) {
    verdict.right = false;
    verdict.reason = fmt::format("{} is {}, the exact value is {}, the error exceeds {:.3g}",
                                 element_name(written, place), value, exact, most);
  }
  return error;
}

Verdict Verifier::against_exact(const Output& output, double rounding) const {
  Verdict verdict;
  verdict.right = true;
  const double count = static_cast<double>(kSampleCount) * static_cast<double>(written_.size());
  for (std::size_t i = 0; i < written_.size(); ++i) {
    const double smallest_bound = bound(written_[i], 0.0, rounding);
    if (smallest_bound > written_[i].magnitude) {
      verdict.right = false;
      verdict.reason = fmt::format("{} cannot be verified: its elements are about {:.3g} and the error bound is {:.3g}",
                                   written_[i].label, written_[i].magnitude, smallest_bound);
      return verdict;
    }
    for (const Sample& sample : samples_) {
      const double exact = sample.exact[i];
      const double error =
          compare(written_[i], sample.place, output, exact, bound(written_[i], exact, rounding), verdict);
      verdict.max_error = std::max(verdict.max_error, error);
      verdict.mean_error += error / count;
    }
  }
  for (const auto& [index, line, exact] : reduced_samples_) {
    const Reduced& reduced = reduced_[index];
    const Place place = reduced.is_of_rows() ? Place{0, line, 0} : Place{0, 0, line};
    compare(reduced.result, place, output, exact, bound(reduced, exact, rounding), verdict);
  }
  for (const Reduced& reduced : reduced_) {
    if (reduced.is_single() && verdict.right) compare_single(reduced, output, rounding, verdict);
  }
  if (verdict.wrong != 0)
    verdict.reason += fmt::format(" ({} of {} compared elements are wrong)", verdict.wrong, verdict.compared);
  return verdict;
}

/// A partial sum is at most as large as an element can be, kDeviations * sqrt(k). Each is rounded once, and so is each
/// sum of them.
bool Verifier::is_sum_of_rounded_parts(const Output& output, int parts) const {
  const Written& d = written_.front();
  const double largest = kDeviations * std::sqrt(static_cast<double>(problem_.k));
  const double of_parts = 2.0 * parts * store_error(d.stored.dtype) * largest;
  Verdict verdict;
  for (const Sample& sample : samples_) {
    const double exact = sample.exact.front();
    compare(d, sample.place, output, exact, bound(d, exact, 0.0) + of_parts, verdict);
  }
  return verdict.wrong == 0;
}

/// The reduced value grows with |D|, so that its maximum is at one of the elements where the contender's |D| is
/// largest.
void Verifier::compare_single(const Reduced& reduced, const Output& output, double rounding, Verdict& verdict) const {
  TILEWRIGHT_CHECK(reduced.reduction == op::Reduction::maximum, "a {} of all elements cannot be verified",
                   op::name(reduced.reduction));
  const std::vector<Place> places = peaks(output);
  if (places.size() > kMaxPeaks) {
    verdict.right = false;
    verdict.reason = fmt::format("{} cannot be verified: more than {} elements of D have its largest magnitude",
                                 reduced.result.label, kMaxPeaks);
    return;
  }
  double exact = op::identity(reduced.reduction, epilogue_.compute);
  for (const Place& place : places)
    exact = op::combine(reduced.reduction, exact, exact_values(place)[reduced.result.node]);
  compare(reduced.result, {0, 0, 0}, output, exact, bound(reduced, exact, rounding), verdict);
}

template <class Bound>
std::string Verifier::first_difference(const Written& written, const Output& output, const Output& other,
                                       const Part& rows, const Bound& bound_of) const {
  const StoredMatrix& stored = written.stored;
  const std::vector<std::byte>& values = written.bytes(output);
  const std::vector<std::byte>& others = written.bytes(other);
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    Place place{row / stored.rows, row % stored.rows, 0};
    for (; place.column < stored.columns; ++place.column) {
      const std::int64_t index = stored.index(place.matrix, place.row, place.column);
      const double value = element(values, stored.dtype, index);
      const double expected = element(others, stored.dtype, index);
      if (std::abs(value - expected) <= 2.0 * bound_of(expected)) continue;
      return fmt::format("{} is {}, but {} in the other result", element_name(written, place), value, expected);
    }
  }
  return "";
}

std::string Verifier::disagreement(const Output& output, const Output& other, double rounding) const {
  const auto of = [&](const auto& written_or_reduced, const Written& written, const Part& rows) {
    const auto bound_of = [&](double expected) { return bound(written_or_reduced, expected, rounding); };
    return first_difference(written, output, other, rows, bound_of);
  };
  const auto of_rows = [&](const Part& rows) {
    std::string first;
    for (const Written& written : written_) {
      if (first.empty()) first = of(written, written, rows);
    }
    return first;
  };
  std::vector<std::string> found = in_parallel(problem_.batch * problem_.m, of_rows);
  for (const Reduced& reduced : reduced_) found.push_back(of(reduced, reduced.result, {0, reduced.result.stored.rows}));
  const auto first = std::ranges::find_if(found, [](const std::string& one) { return !one.empty(); });
  return first == found.end() ? "" : *first;
}

std::string Verifier::element_name(const Written& written, const Place& place) const {
  return problem_.batch == 1 ? fmt::format("{}[{},{}]", written.label, place.row, place.column)
                             : fmt::format("{}[{},{},{}]", written.label, place.matrix, place.row, place.column);
}

}  // namespace tilewright::bench
