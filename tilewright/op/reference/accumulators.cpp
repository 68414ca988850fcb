#include "tilewright/op/reference/accumulators.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "tilewright/base/interruption.hpp"
#include "tilewright/op/fill.hpp"
#include "tilewright/op/reference/operand_element.hpp"

namespace tilewright::op {
namespace {

// Relative errors of a product. tf32: each operand is rounded with an error below 2/3 * 2^-10. 3xTF32: 2^-20 for the
// remainder of each operand after its two tf32 parts, and 2^-20 for the product of the two low parts.
constexpr double kTf32Products = 1.34 * 0x1p-10;
constexpr double kSplitProducts = 3.01 * 0x1p-20;

/// The relative error of one addition of products of 8-bit floats in a tensor core that truncates to 14 bits.
constexpr double kFp8Addition = 0x1p-13;

/// The error of accumulating products of 8-bit floats in tensor cores, relative to sum|a||b|.
double fp8_additions_error(const GemmView& gemm) {
  const bool promotes = gemm.math == MathOperation::multiply_add && gemm.accumulator == DType::f32;
  const std::int64_t added = promotes ? std::min<std::int64_t>(gemm.k(), kFp8PromotionInterval) : gemm.k();
  return (static_cast<double>(added) + 2.0) * kFp8Addition;
}

/// An operand's element as it is multiplied. tf32 roundings depend on the kernel and are part of the error bound
/// instead.
double as_multiplied(MathOperation math, double value) {
  switch (math) {
    case MathOperation::multiply_add_fast_f16:
      return round_to(DType::f16, value);
    case MathOperation::multiply_add_fast_bf16:
      return round_to(DType::bf16, value);
    case MathOperation::multiply_add:
    case MathOperation::multiply_add_tf32:
    case MathOperation::multiply_add_fast_f32:
    case MathOperation::multiply_add_fast_accumulate:
      return value;
  }
  return value;
}

/// A and B in f64, as they are multiplied, both packed and row-major.
class DenseOperands {
 public:
  explicit DenseOperands(const GemmView& gemm) : n_(gemm.n()), k_(gemm.reads_product ? gemm.k() : 0) {
    a_ = pack(gemm.a, gemm.math, gemm.m(), k_);
    b_ = pack(gemm.b, gemm.math, k_, n_);
  }

  static constexpr std::int64_t kColumns = 8;  // columns computed together, as independent sums that can be vectorized

  std::array<Dot, kColumns> dots(std::int64_t row, std::int64_t column) const {
    std::array<double, kColumns> sums{};
    std::array<double, kColumns> magnitudes{};
    const auto count = static_cast<std::size_t>(std::min(kColumns, n_ - column));
    constexpr std::int64_t kUnchecked = 65536;  // products between two checks: some hundred microseconds
    for (std::int64_t first = 0; first < k_; first += kUnchecked) {
      check_interruption();
      for (std::int64_t p = first; p < std::min(k_, first + kUnchecked); ++p) {
        const double a = a_[static_cast<std::size_t>(row * k_ + p)];
        const double* b = &b_[static_cast<std::size_t>(p * n_ + column)];
        for (std::size_t j = 0; j < count; ++j) {
          const double product = a * b[j];
          sums[j] += product;
          magnitudes[j] += std::fabs(product);
        }
      }
    }
    std::array<Dot, kColumns> result;
    for (std::size_t j = 0; j < result.size(); ++j) result[j] = {sums[j], magnitudes[j]};
    return result;
  }

 private:
  static std::vector<double> pack(const OperandView& from, MathOperation math, std::int64_t rows,
                                  std::int64_t columns) {
    std::vector<double> packed;
    packed.reserve(static_cast<std::size_t>(rows * columns));
    PeriodicCheck check;
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t column = 0; column < columns; ++column) {
        check();
        packed.push_back(as_multiplied(math, load(from, row, column)));
      }
    }
    return packed;
  }

  std::int64_t n_;
  std::int64_t k_;
  std::vector<double> a_;
  std::vector<double> b_;
};

Dot single_dot(const GemmView& gemm, std::int64_t row, std::int64_t column) {
  Dot dot;
  if (!gemm.reads_product) return dot;
  check_interruption();
  PeriodicCheck check;
  for (std::int64_t p = 0; p < gemm.k(); ++p) {
    check();
    const double product =
        as_multiplied(gemm.math, load(gemm.a, row, p)) * as_multiplied(gemm.math, load(gemm.b, p, column));
    dot.sum += product;
    dot.magnitude += std::fabs(product);
  }
  return dot;
}

}  // namespace

double wrap_to_s32(double sum) {
  return static_cast<double>(static_cast<std::int32_t>(static_cast<std::uint32_t>(static_cast<std::int64_t>(sum))));
}

BoundedValue accumulator(const GemmView& gemm, const Dot& dot) {
  if (gemm.accumulator == DType::s32) return {wrap_to_s32(dot.sum), 0.0};
  const Roundoff unit = roundoff(gemm.accumulator);
  const double additions = static_cast<double>(gemm.k()) + 2.0;
  double relative = additions * 2.0 * unit.relative;
  if (gemm.math == MathOperation::multiply_add_tf32) relative += kTf32Products;
  if (gemm.math == MathOperation::multiply_add_fast_f32) relative += kSplitProducts;
  if (is_fp8(gemm.a.tensor.dtype)) relative += fp8_additions_error(gemm);
  return {dot.sum, dot.magnitude * relative + additions * unit.absolute};
}

Dots ProductAccumulators::at(const GemmView& one, std::int64_t row, std::int64_t column) const {
  Dots dots;
  const std::int64_t columns = one.epilogue->columns_per_element();
  for (std::int64_t c = 0; c < columns; ++c)
    dots[static_cast<std::size_t>(c)] = single_dot(one, row, column * columns + c);
  return dots;
}

void ProductAccumulators::for_each(const GemmView& one, const VisitElement& visit) const {
  const std::int64_t of_element = one.epilogue->columns_per_element();
  const DenseOperands operands(one);
  PeriodicCheck check;
  for (std::int64_t row = 0; row < one.m(); ++row) {
    for (std::int64_t column = 0; column < one.n(); column += DenseOperands::kColumns) {
      check();
      const auto dots = operands.dots(row, column);
      const std::int64_t count = std::min(DenseOperands::kColumns, one.n() - column);
      for (std::int64_t j = 0; j < count; j += of_element) {
        Dots of_columns;
        for (std::int64_t c = 0; c < of_element; ++c)
          of_columns[static_cast<std::size_t>(c)] = dots[static_cast<std::size_t>(j + c)];
        visit(row, (column + j) / of_element, of_columns);
      }
    }
  }
}

PartAccumulators::PartAccumulators(const ReduceSplitK& reduction)
    : parts_(reduction.parts), count_(reads_parts(reduction) ? reduction.count() : 0) {}

Dots PartAccumulators::at(const GemmView& one, std::int64_t row, std::int64_t column) const {
  Dots dots;
  const std::int64_t columns = one.epilogue->columns_per_element();
  for (std::int64_t c = 0; c < columns; ++c) dots[static_cast<std::size_t>(c)] = sum(row, column * columns + c);
  return dots;
}

void PartAccumulators::for_each(const GemmView& one, const VisitElement& visit) const {
  PeriodicCheck check;
  for (std::int64_t row = 0; row < one.m(); ++row) {
    for (std::int64_t column = 0; column < one.d_columns(); ++column) {
      check();
      visit(row, column, at(one, row, column));
    }
  }
}

Dot PartAccumulators::sum(std::int64_t row, std::int64_t column) const {
  Dot dot;
  const std::int64_t first = row * parts_.row_stride() + column * parts_.column_stride();
  PeriodicCheck check;
  for (std::int64_t part = 0; part < count_; ++part) {
    check();
    const double value = load_at(parts_, part * parts_.batch_stride() + first);
    dot.sum += value;
    dot.magnitude += std::fabs(value);
  }
  return dot;
}

}  // namespace tilewright::op
