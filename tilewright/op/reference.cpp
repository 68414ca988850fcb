#include "tilewright/op/reference.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>
#include <vector>

#include "tilewright/base/float_format.hpp"
#include "tilewright/base/interruption.hpp"
#include "tilewright/op/epilogue_tensors.hpp"
#include "tilewright/op/fill.hpp"
#include "tilewright/op/grouped_gemm.hpp"

namespace tilewright::op {
namespace {

constexpr std::int64_t kExhaustiveProducts = std::int64_t{1} << 31;
constexpr std::int64_t kExhaustiveAdditions = std::int64_t{1} << 26;
constexpr std::int64_t kSampledElements = 4096;
constexpr std::int64_t kSampledResults = 2;  // results checked per reduction; each needs a row or a column of D

// Loads the element (row, column) of the operand's first matrix.
double load(const OperandView& operand, std::int64_t row, std::int64_t column) {
  if (operand.access == OperandAccess::im2col) {
    const std::optional<std::int64_t> offset = operand.im2col.offset(row, column);
    return offset ? load_at(operand.tensor, *offset) : 0.0;
  }
  return load_at(operand.tensor, operand.offset(row, column));
}
void store(const OperandView& operand, std::int64_t row, std::int64_t column, double value) {
  store_at(operand.tensor, operand.offset(row, column), value);
}

// The rows or columns of an interval.
Tensor rows_of(Tensor tensor, const GroupInterval& rows) {
  const int mode = tensor.shape.rank() - 2;
  tensor.address += static_cast<std::uint64_t>(rows.begin * tensor.stride[mode] * bytes(tensor.dtype));
  tensor.shape[mode] = rows.size();
  return tensor;
}
Tensor columns_of(const Tensor& tensor, const GroupInterval& columns) {
  return transposed(rows_of(transposed(tensor), columns));
}

// The single-matrix problem at one index of a batch, or of a group.
class MatrixOfBatch {
 public:
  MatrixOfBatch(const GemmView& batch, std::int64_t index)
      : tensors_(batch.tensors.begin(), batch.tensors.end()), view_(batch) {
    if (batch.groups == GroupedMode::independent) {
      take_group(batch, index);
      return;
    }
    // Operands that the call does not read may have no address.
    if (view_.reads_product) view_.a = view_.a.matrix(index);
    if (view_.reads_product) view_.b = view_.b.matrix(index);
    view_.d = view_.d.matrix(index);
    if (view_.reads_source) view_.c = view_.c.matrix(index);
    for (NamedTensor& each : tensors_) {
      if (each.tensor.batch() > 1 || !is_ragged(batch.groups)) each.tensor = slice(each.tensor, index);
    }
    view_.tensors = tensors_;
    if (batch.groups != GroupedMode::none) cut(group_interval(batch, index));
  }
  MatrixOfBatch(const MatrixOfBatch&) = delete;
  MatrixOfBatch& operator=(const MatrixOfBatch&) = delete;

  const GemmView& view() const { return view_; }

 private:
  // Reduces the operands, which are at their capacity, to the interval of a group.
  void cut(const GroupInterval& group) {
    const GroupedMode mode = view_.groups;
    view_.groups = GroupedMode::none;
    if (ends_along_k(mode)) {
      view_.a.tensor = columns_of(view_.a.tensor, group);
      view_.b.tensor = rows_of(view_.b.tensor, group);
      return;
    }
    const bool along_m = differs_in_m(mode);
    const auto part = [&](const Tensor& tensor) {
      return along_m ? rows_of(tensor, group) : columns_of(tensor, group);
    };
    for (OperandView* const operand : {along_m ? &view_.a : &view_.b, &view_.d})
      operand->tensor = part(operand->tensor);
    if (view_.reads_source) view_.c.tensor = part(view_.c.tensor);
    for (NamedTensor& each : tensors_) {
      const auto all = epilogue_tensors(*view_.epilogue);
      const auto role = std::ranges::find(all, each.name, &EpilogueTensor::label);
      if (along_m ? role->broadcast.along_m : role->broadcast.along_n) each.tensor = part(each.tensor);
    }
    (along_m ? view_.first_row : view_.first_column) = group.begin;
  }

  // Takes the operands of an independent group.
  void take_group(const GemmView& batch, std::int64_t index) {
    const IndependentGroup group = independent_group(batch, index);
    view_.groups = GroupedMode::none;
    const auto take = [&](OperandView& operand, char role) {
      operand = OperandView::of(matrix_of_group(batch, role, index));
    };
    if (view_.reads_product) take(view_.a, 'A');
    if (view_.reads_product) take(view_.b, 'B');
    if (view_.reads_source) take(view_.c, 'C');
    take(view_.d, 'D');
    for (NamedTensor& each : tensors_) {
      const auto all = epilogue_tensors(*view_.epilogue);
      const auto role = std::ranges::find(all, each.name, &EpilogueTensor::label);
      each.tensor = slice(each.tensor, index);
      if (role->broadcast.along_m) each.tensor = rows_of(each.tensor, {0, group.m});
      if (role->broadcast.along_n) each.tensor = columns_of(each.tensor, {0, group.n});
    }
    view_.tensors = tensors_;
  }

  std::vector<NamedTensor> tensors_;
  GemmView view_;
};

// A value, and a bound on the error of its computation in the GPU's types.
struct Bounded {
  double value = 0.0;
  double error = 0.0;
};

// The element of the auxiliary tensor `node` that is broadcast to the element (row, column) of D.
double tensor_element(const GemmView& gemm, const EpilogueNode& node, std::int64_t row, std::int64_t column) {
  return op::load(gemm.tensor(node.label), node.broadcast.along_m ? row : 0, node.broadcast.along_n ? column : 0);
}

// The rounding error of a type: relative to the value, plus an absolute term for flushed subnormals.
struct Roundoff {
  double relative = 0.0;
  double absolute = 0.0;
};

Roundoff roundoff(DType type) {
  switch (type) {
    case DType::f64:
      return {0x1p-53, 0x1p-1022};
    case DType::f16:
      return {0x1p-11, 0x1p-25};
    case DType::bf16:
      return {0x1p-8, 0x1p-126};
    case DType::e4m3:
      return {0x1p-4, 0x1p-10};
    case DType::e5m2:
      return {0x1p-3, 0x1p-17};
    case DType::f32:
    case DType::tf32:
      return {0x1p-24, 0x1p-126};
    default:
      return {0.0, 0.0};
  }
}

double largest(DType type) {
  switch (type) {
    case DType::f16:
      return 65504.0;
    case DType::f64:
      return std::numeric_limits<double>::max();
    case DType::bf16:
      return 0x1.fep127;
    case DType::e4m3:
      return 448.0;
    case DType::e5m2:
      return 57344.0;
    default:
      return std::numeric_limits<float>::max();
  }
}

// Relative errors of a product. tf32: each operand is rounded with an error below 2/3 * 2^-10. 3xTF32: 2^-20 for the
// remainder of each operand after its two tf32 parts, and 2^-20 for the product of the two low parts.
constexpr double kTf32Products = 1.34 * 0x1p-10;
constexpr double kSplitProducts = 3.01 * 0x1p-20;

// The relative error of one addition of products of 8-bit floats in a tensor core that truncates to 14 bits.
constexpr double kFp8Addition = 0x1p-13;

// The error of accumulating products of 8-bit floats in tensor cores, relative to sum|a||b|.
double fp8_additions_error(const GemmView& gemm) {
  const bool promotes = gemm.math == MathOperation::multiply_add && gemm.accumulator == DType::f32;
  const std::int64_t added = promotes ? std::min<std::int64_t>(gemm.k(), kFp8PromotionInterval) : gemm.k();
  return (static_cast<double>(added) + 2.0) * kFp8Addition;
}

// An operand's element as it is multiplied. tf32 roundings depend on the kernel and are part of the error bound
// instead.
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

// A sum of products, and the sum of their magnitudes.
struct Dot {
  double sum = 0.0;
  double magnitude = 0.0;
};

double wrap_to_s32(double sum) {
  return static_cast<double>(static_cast<std::int32_t>(static_cast<std::uint32_t>(static_cast<std::int64_t>(sum))));
}

Bounded accumulator(const GemmView& gemm, const Dot& dot) {
  if (gemm.accumulator == DType::s32) return {wrap_to_s32(dot.sum), 0.0};
  const Roundoff unit = roundoff(gemm.accumulator);
  const double additions = static_cast<double>(gemm.k()) + 2.0;
  double relative = additions * 2.0 * unit.relative;
  if (gemm.math == MathOperation::multiply_add_tf32) relative += kTf32Products;
  if (gemm.math == MathOperation::multiply_add_fast_f32) relative += kSplitProducts;
  if (is_fp8(gemm.a.tensor.dtype)) relative += fp8_additions_error(gemm);
  return {dot.sum, dot.magnitude * relative + additions * unit.absolute};
}

Bounded rounded(Bounded x, const Roundoff& unit, double units = 1.0) {
  x.error += units * unit.relative * (std::fabs(x.value) + x.error) + unit.absolute;
  return x;
}

// The propagated error of a function that is monotone within the error of x.
template <class Function>
double monotone_error(const Bounded& x, double value, const Function& f) {
  if (x.error == 0.0) return 0.0;
  const double low = f(x.value - x.error), high = f(x.value + x.error);
  if (std::isnan(low) || std::isnan(high)) return std::numeric_limits<double>::infinity();
  return std::max(std::fabs(low - value), std::fabs(high - value));
}

// The propagated error of x^y, which is monotone in both for positive x.
double power_error(const Bounded& x, const Bounded& y, double value) {
  if (x.error == 0.0 && y.error == 0.0) return 0.0;
  if (!(x.value - x.error > 0.0)) return std::numeric_limits<double>::infinity();
  double error = 0.0;
  for (const double base : {x.value - x.error, x.value + x.error}) {
    for (const double exponent : {y.value - y.error, y.value + y.error})
      error = std::max(error, std::fabs(std::pow(base, exponent) - value));
  }
  return error;
}

bool may_be_equal(const Bounded& x, const Bounded& y) { return std::fabs(x.value - y.value) <= x.error + y.error; }

// The propagated error of a quotient whose dividend has the error `error`.
double quotient_error(double error, const Bounded& divisor, double value) {
  const double least = std::fabs(divisor.value) - divisor.error;
  if (std::isinf(divisor.value)) return 0.0;
  return least > 0.0 ? (error + std::fabs(value) * divisor.error) / least : std::numeric_limits<double>::infinity();
}

// The error of an operation's result that its inputs' errors cause; `value` is the result.
double carried_error(EpilogueOp op, const std::array<Bounded, 3>& in, double value) {
  const Bounded &x = in[0], &y = in[1], &z = in[2];
  const auto product_error = [&] {
    return std::fabs(x.value) * y.error + std::fabs(y.value) * x.error + x.error * y.error;
  };
  switch (op) {
    case EpilogueOp::add:
    case EpilogueOp::subtract:
      return x.error + y.error;
    case EpilogueOp::multiply:
      return product_error();
    case EpilogueOp::fma:
      return product_error() + z.error;
    case EpilogueOp::divide:
      return quotient_error(x.error, y, value);
    case EpilogueOp::reciprocal:
      return quotient_error(0.0, x, value);
    case EpilogueOp::maximum:
    case EpilogueOp::minimum:
      return std::max(x.error, y.error);
    case EpilogueOp::power:
      return power_error(x, y, value);
    case EpilogueOp::less:
    case EpilogueOp::less_equal:
    case EpilogueOp::equal:
      return x.error + y.error > 0.0 && may_be_equal(x, y) ? 1.0 : 0.0;
    case EpilogueOp::where: {
      const double chosen = x.value != 0.0 ? y.error : z.error;
      return x.error > 0.0 ? std::fabs(y.value - z.value) + y.error + z.error : chosen;
    }
    case EpilogueOp::exp:
      return value == 0.0 ? 0.0 : value * std::expm1(x.error);
    case EpilogueOp::erf:
      return 2.0 / std::sqrt(std::acos(-1.0)) * x.error;  // the largest slope of erf
    case EpilogueOp::square_root:
    case EpilogueOp::reciprocal_square_root:
    case EpilogueOp::log:
    case EpilogueOp::log1p:
    case EpilogueOp::floor:
    case EpilogueOp::round:
      return monotone_error(x, value, [op](double at) { return apply(op, at); });
    default:
      return x.error;
  }
}

// The operation's own error in roundoffs of the compute type: twice the maximum ulp error that the "CUDA C++
// Programming Guide", Mathematical Functions, documents.
double own_roundoffs(EpilogueOp op) {
  switch (op) {
    case EpilogueOp::exp:
    case EpilogueOp::erf:
    case EpilogueOp::tanh:
    case EpilogueOp::log:
    case EpilogueOp::log1p:
    case EpilogueOp::reciprocal_square_root:
    case EpilogueOp::reciprocal:
      return 4.0;
    case EpilogueOp::power:
      return 8.0;
    default:
      return 1.0;
  }
}

// The dot products for one element of D: one column of A*B, or a pair of columns.
using Dots = std::array<Dot, 2>;

// Evaluates the graph node by node with an error bound for each value (running error analysis, Higham section 3.3).
class BoundedEpilogue {
 public:
  explicit BoundedEpilogue(const GemmView& gemm)
      : gemm_(gemm),
        unit_(roundoff(gemm.epilogue->compute)),
        columns_(static_cast<std::size_t>(gemm.epilogue->columns_per_element())) {
    for (const EpilogueNode& node : gemm.epilogue->nodes) leaves_.push_back(constant_leaf(node));
    for (std::vector<Bounded>& of_column : values_) of_column.resize(leaves_.size());
    reads_product_ = gemm.reads_product;
    reads_source_ = gemm.reads_source;
  }

  /// The value of every node, at each of the columns that the element (row, column) of D is computed from. `one` is the
  /// single-matrix problem.
  const std::array<std::vector<Bounded>, 2>& evaluate(const GemmView& one, std::int64_t row, std::int64_t column,
                                                      const Dots& dots) {
    const std::array<Bounded, 2> accumulated{accumulator(one, dots[0]), accumulator(one, dots[1])};
    for (std::size_t i = 0; i < leaves_.size(); ++i) {
      for (std::size_t c = 0; c < columns_; ++c) {
        values_[c][i] = node(i, one, row, column * static_cast<std::int64_t>(columns_) + static_cast<std::int64_t>(c),
                             c, accumulated[c]);
      }
    }
    return values_;
  }

 private:
  // A value that is converted to the compute type.
  Bounded exact(double value) const { return {value, std::fabs(value - round_to(gemm_.epilogue->compute, value))}; }

  Bounded constant_leaf(const EpilogueNode& node) const {
    if (node.op != EpilogueOp::scalar) return exact(node.value);
    return exact(gemm_.scalar(node.label));
  }

  Bounded node(std::size_t index, const GemmView& one, std::int64_t row, std::int64_t column, std::size_t of_pair,
               const Bounded& accumulated) const {
    const EpilogueNode& node = gemm_.epilogue->nodes[index];
    if (node.op == EpilogueOp::even) of_pair = 0;
    if (node.op == EpilogueOp::odd) of_pair = 1;
    std::array<Bounded, 3> in{};
    for (std::size_t side = 0; side < static_cast<std::size_t>(arity(node.op)); ++side)
      in[side] = values_[of_pair][static_cast<std::size_t>(node.inputs[side])];
    switch (node.op) {
      case EpilogueOp::accumulator: {
        if (!reads_product_) return {};
        const bool is_exact = gemm_.accumulator == DType::s32 && std::fabs(accumulated.value) < 0x1p24;
        return is_exact ? accumulated : rounded(accumulated, unit_);
      }
      case EpilogueOp::source:
        return reads_source_ ? exact(load(one.c, row, column)) : Bounded{};
      case EpilogueOp::scalar:
      case EpilogueOp::constant:
        return leaves_[index];
      case EpilogueOp::tensor:
        return exact(tensor_element(one, node, row, column));
      case EpilogueOp::row_index:
        return exact(static_cast<double>(one.first_row + row));
      case EpilogueOp::column_index:
        return exact(static_cast<double>(one.first_column + column));
      case EpilogueOp::convert:
        return converted(node.type, in[0]);
      case EpilogueOp::even:
      case EpilogueOp::odd:
        return in[0];
      default: {
        const double value = apply(node.op, in[0].value, in[1].value, in[2].value);
        return rounded({value, carried_error(node.op, in, value)}, unit_, own_roundoffs(node.op));
      }
    }
  }

  static Bounded converted(DType type, const Bounded& x) {
    const double value = round_to(type, x.value);
    return {value, monotone_error(x, value, [type](double at) { return round_to(type, at); })};
  }

  const GemmView& gemm_;
  Roundoff unit_;
  std::size_t columns_ = 1;  // columns of A*B for each column of D
  std::vector<Bounded> leaves_;
  std::array<std::vector<Bounded>, 2> values_;
  bool reads_product_ = false;
  bool reads_source_ = false;
};

// A and B in f64, as they are multiplied, both packed and row-major.
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

// The dot products for the element (row, column) of D.
Dots single_dots(const GemmView& gemm, std::int64_t row, std::int64_t column) {
  Dots dots;
  const std::int64_t columns = gemm.epilogue->columns_per_element();
  for (std::int64_t c = 0; c < columns; ++c)
    dots[static_cast<std::size_t>(c)] = single_dot(gemm, row, column * columns + c);
  return dots;
}

using VisitElement = std::function<void(std::int64_t row, std::int64_t column, const Dots& dots)>;

// Calls `visit` for each element of D.
void for_each_element(const GemmView& gemm, const VisitElement& visit) {
  const std::int64_t of_element = gemm.epilogue->columns_per_element();
  const DenseOperands operands(gemm);
  PeriodicCheck check;
  for (std::int64_t row = 0; row < gemm.m(); ++row) {
    for (std::int64_t column = 0; column < gemm.n(); column += DenseOperands::kColumns) {
      check();
      const auto dots = operands.dots(row, column);
      const std::int64_t count = std::min(DenseOperands::kColumns, gemm.n() - column);
      for (std::int64_t j = 0; j < count; j += of_element) {
        Dots of_columns;
        for (std::int64_t c = 0; c < of_element; ++c)
          of_columns[static_cast<std::size_t>(c)] = dots[static_cast<std::size_t>(j + c)];
        visit(row, (column + j) / of_element, of_columns);
      }
    }
  }
}

/// The accumulators of a problem's elements of D, with the extents of a GemmView.
class Accumulators {
 public:
  Accumulators() = default;
  Accumulators(const Accumulators&) = delete;
  Accumulators& operator=(const Accumulators&) = delete;
  virtual ~Accumulators() = default;
  /// Returns the sums of one element. `one` is the single-matrix problem.
  virtual Dots at(const GemmView& one, std::int64_t row, std::int64_t column) const = 0;
  /// Calls `visit` for each element of D.
  virtual void for_each(const GemmView& one, const VisitElement& visit) const = 0;
};

/// Sums of products of A and B.
class Products final : public Accumulators {
 public:
  Dots at(const GemmView& one, std::int64_t row, std::int64_t column) const override {
    return single_dots(one, row, column);
  }
  void for_each(const GemmView& one, const VisitElement& visit) const override { for_each_element(one, visit); }
};

/// Sums of the parts of a split-K reduction.
class Parts final : public Accumulators {
 public:
  explicit Parts(const ReduceSplitK& reduction)
      : parts_(reduction.parts), count_(reads_parts(reduction) ? reduction.count() : 0) {}

  Dots at(const GemmView& one, std::int64_t row, std::int64_t column) const override {
    Dots dots;
    const std::int64_t columns = one.epilogue->columns_per_element();
    for (std::int64_t c = 0; c < columns; ++c) dots[static_cast<std::size_t>(c)] = sum(row, column * columns + c);
    return dots;
  }
  void for_each(const GemmView& one, const VisitElement& visit) const override {
    PeriodicCheck check;
    for (std::int64_t row = 0; row < one.m(); ++row) {
      for (std::int64_t column = 0; column < one.d_columns(); ++column) {
        check();
        visit(row, column, at(one, row, column));
      }
    }
  }

 private:
  Dot sum(std::int64_t row, std::int64_t column) const {
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

  const Tensor& parts_;
  std::int64_t count_;
};

// Extents of D of one matrix of a batch, or of a group.
struct DExtents {
  std::int64_t rows, columns;
};
DExtents d_extents(const GemmView& gemm, std::int64_t index) {
  if (gemm.groups == GroupedMode::independent) {
    const IndependentGroup group = independent_group(gemm, index);
    return {group.m, group.n};
  }
  if (differs_in_m(gemm.groups)) return {group_interval(gemm, index).size(), gemm.d_columns()};
  if (differs_in_n(gemm.groups)) return {gemm.m(), group_interval(gemm, index).size()};
  return {gemm.m(), gemm.d_columns()};
}

// The matrices of the batch, or the groups, whose D is not empty.
std::vector<std::int64_t> nonempty_matrices(const GemmView& gemm) {
  std::vector<std::int64_t> all;
  for (std::int64_t index = 0; index < gemm.batch(); ++index) {
    const DExtents extents = d_extents(gemm, index);
    if (extents.rows > 0 && extents.columns > 0) all.push_back(index);
  }
  return all;
}

// All matrices of a batch, or the groups whose D is not empty: the others have no results of reductions.
std::vector<std::int64_t> computed_matrices(const GemmView& gemm) {
  if (gemm.groups != GroupedMode::none) return nonempty_matrices(gemm);
  std::vector<std::int64_t> all(static_cast<std::size_t>(gemm.batch()));
  std::iota(all.begin(), all.end(), std::int64_t{0});
  return all;
}

std::vector<Place> sampled_places(const GemmView& gemm, std::uint64_t seed) {
  std::vector<Place> places;
  const std::vector<std::int64_t> matrices = nonempty_matrices(gemm);
  if (matrices.empty()) return places;
  std::array<std::int32_t, 3> drawn{};
  const Tensor draw = matrix(drawn.data(), DType::s32, 1, 3);
  for (std::int64_t i = 0; i < kSampledElements; ++i) {
    fill_integers(draw, 0, std::numeric_limits<std::int32_t>::max(), seed + static_cast<std::uint64_t>(i));
    const std::int64_t index = matrices[static_cast<std::size_t>(drawn[2]) % matrices.size()];
    const DExtents extents = d_extents(gemm, index);
    places.push_back({index, drawn[0] % extents.rows, drawn[1] % extents.columns});
  }
  return places;
}

bool same(double x, double y) { return x == y || (std::isnan(x) && std::isnan(y)); }

// The bound after rounding to the stored type, which adds a relative error for a float and 1/2 for an integer.
double stored_bound(DType type, const Bounded& expected) {
  if (is_integer(type)) return expected.error + 0.5;
  return rounded(expected, roundoff(type)).error;
}

bool is_acceptable(DType type, double actual, const Bounded& expected, double bound) {
  if (std::isnan(expected.value)) return is_integer(type) ? actual == 0.0 : std::isnan(actual);
  if (std::isnan(actual)) return false;
  if (same(actual, round_to(type, expected.value))) return true;
  if (std::isinf(expected.value)) return false;
  if (std::isinf(actual)) {
    // An overflow is acceptable only if the bound exceeds the largest finite value of the same sign.
    return std::signbit(actual) == std::signbit(expected.value) && std::fabs(expected.value) + bound >= largest(type);
  }
  return std::fabs(actual - expected.value) <= bound;
}

// Whether rounding `value` to the type has saturated.
bool is_saturated(DType type, double stored, double value) {
  if (is_fp8(type)) return std::fabs(value) > largest(type);
  return is_integer(type) && std::fabs(stored - value) > 0.5;
}

void record(Comparison& comparison, DType type, double actual, const Bounded& expected, WorstElement place) {
  const double stored = round_to(type, expected.value);
  Bounded in_range = expected;
  if (is_saturated(type, stored, expected.value)) in_range.value = stored;
  const double bound = stored_bound(type, in_range);
  const double error = std::fabs(actual - in_range.value);
  ++comparison.checked;
  if (same(actual, stored)) ++comparison.equal;
  if (!same(actual, stored) && std::isfinite(error)) comparison.max_error = std::max(comparison.max_error, error);
  const bool outside = !is_acceptable(type, actual, in_range, bound);
  place.actual = actual;
  place.expected = in_range.value;
  place.bound = bound;
  // The worst element is the first one outside its bound; if there is none, the one closest to its bound.
  const auto closeness = [](const WorstElement& w) {
    return w.bound > 0.0 ? std::fabs(w.actual - w.expected) / w.bound : 0.0;
  };
  if (outside ? comparison.outside == 0 : comparison.outside == 0 && closeness(place) > closeness(comparison.worst)) {
    comparison.worst = place;
  }
  if (outside) ++comparison.outside;
}

/// The results of a reduction for one matrix of the batch.
template <class Value>
class Reduced {
 public:
  Reduced(const EpilogueOutput& output, const Tensor& tensor, const Value& identity)
      : output_(&output),
        tensor_(tensor),
        values_(static_cast<std::size_t>(tensor.rows() * tensor.columns()), identity) {}

  const EpilogueOutput& output() const { return *output_; }
  const Tensor& tensor() const { return tensor_; }
  /// The result to which the element (row, column) of D contributes.
  Value& at(std::int64_t row, std::int64_t column) {
    return values_[static_cast<std::size_t>((output_->broadcast.along_m ? row : 0) * tensor_.columns() +
                                            (output_->broadcast.along_n ? column : 0))];
  }
  template <class Visit>
  void for_each(const Visit& visit) const {
    for (std::int64_t row = 0; row < tensor_.rows(); ++row) {
      for (std::int64_t column = 0; column < tensor_.columns(); ++column)
        visit(row, column, values_[static_cast<std::size_t>(row * tensor_.columns() + column)]);
    }
  }

 private:
  const EpilogueOutput* output_;
  Tensor tensor_;
  std::vector<Value> values_;
};

template <class Value>
std::vector<Reduced<Value>> reduced_outputs(const GemmView& one, const auto& identity) {
  std::vector<Reduced<Value>> all;
  for (const EpilogueOutput& output : one.epilogue->outputs) {
    if (output.reduction != Reduction::none)
      all.emplace_back(output, one.tensor(output.label), identity(output.reduction));
  }
  return all;
}

double reduce(const Epilogue& epilogue, Reduction reduction, double x, double y) {
  const double value = combine(reduction, x, y);
  return epilogue.compute == DType::s32 ? wrap_to_s32(value) : value;
}

/// A reduction in any order, with its error bound: a sum of n terms adds (n + 2) * 2u * sum|x| to the errors of its
/// terms, like the accumulator.
class BoundedReduction {
 public:
  explicit BoundedReduction(double identity) : value_(identity) {}

  void add(const Epilogue& epilogue, Reduction reduction, const Bounded& x) {
    value_ = reduce(epilogue, reduction, value_, x.value);
    magnitude_ += std::fabs(x.value);
    error_ = reduction == Reduction::sum ? error_ + x.error : std::max(error_, x.error);
    ++count_;
  }
  Bounded result(const Epilogue& epilogue, Reduction reduction) const {
    if (reduction != Reduction::sum || epilogue.compute == DType::s32) return {value_, error_};
    const double additions = static_cast<double>(count_) + 2.0;
    const Roundoff unit = roundoff(epilogue.compute);
    return {value_, error_ + additions * (2.0 * unit.relative * (magnitude_ + error_) + unit.absolute)};
  }

 private:
  double value_, magnitude_ = 0.0, error_ = 0.0;
  std::int64_t count_ = 0;
};

Comparison nothing_checked(const GemmView& gemm) {
  Comparison comparison;
  comparison.batch = gemm.batch();
  if (gemm.groups != GroupedMode::none) {
    for (const std::int64_t index : nonempty_matrices(gemm)) {
      const auto [rows, columns] = d_extents(gemm, index);
      comparison.elements += rows * columns;
      for (const EpilogueOutput& output : gemm.epilogue->outputs) {
        comparison.elements += (output.broadcast.along_m ? rows : 1) *
                               (output.broadcast.along_n ? columns * gemm.epilogue->columns_per_element() : 1);
      }
    }
    return comparison;
  }
  comparison.elements = gemm.batch() * gemm.m() * gemm.d_columns();
  for (const EpilogueOutput& output : gemm.epilogue->outputs) {
    const Tensor& tensor = gemm.tensor(output.label);
    comparison.elements += gemm.batch() * tensor.rows() * tensor.columns();
  }
  return comparison;
}

EpilogueElement element_at(const GemmView& gemm, std::int64_t row, std::int64_t column, double accumulator) {
  EpilogueElement element{.accumulator = accumulator,
                          .source = gemm.reads_source ? load(gemm.c, row, column) : 0.0,
                          .alpha = gemm.alpha,
                          .beta = gemm.beta,
                          .row = static_cast<double>(gemm.first_row + row),
                          .column = static_cast<double>(gemm.first_column + column)};
  for (const EpilogueNode* node : gemm.epilogue->tensors())
    element.tensors.push_back(tensor_element(gemm, *node, row, column));
  return element;
}

void store_expected(const GemmView& gemm, const Accumulators& accumulators) {
  for (const std::int64_t index : computed_matrices(gemm)) {
    const MatrixOfBatch matrix(gemm, index);
    const GemmView& one = matrix.view();
    auto reduced =
        reduced_outputs<double>(one, [&](Reduction reduction) { return identity(reduction, one.epilogue->compute); });
    accumulators.for_each(one, [&](std::int64_t row, std::int64_t column, const Dots& dots) {
      const std::int64_t columns = one.epilogue->columns_per_element();
      std::array<EpilogueElement, 2> elements;
      for (std::int64_t c = 0; c < columns; ++c) {
        elements[static_cast<std::size_t>(c)] =
            element_at(one, row, column * columns + c, accumulator(one, dots[static_cast<std::size_t>(c)]).value);
      }
      const std::array<std::vector<double>, 2> values =
          columns == 2 ? evaluate_pair(*one.epilogue, elements)
                       : std::array<std::vector<double>, 2>{evaluate_nodes(*one.epilogue, elements[0])};
      store(one.d, row, column, values[0][static_cast<std::size_t>(one.epilogue->node_of_d())]);
      for (const EpilogueOutput& output : one.epilogue->outputs) {
        if (output.reduction != Reduction::none) continue;
        for (std::int64_t c = 0; c < columns; ++c) {
          store(one.tensor(output.label), row, column * columns + c,
                values[static_cast<std::size_t>(c)][static_cast<std::size_t>(output.node)]);
        }
      }
      for (Reduced<double>& each : reduced) {
        double& result = each.at(row, column);
        result = reduce(*one.epilogue, each.output().reduction, result,
                        values[0][static_cast<std::size_t>(each.output().node)]);
      }
    });
    for (const Reduced<double>& each : reduced) {
      each.for_each(
          [&](std::int64_t row, std::int64_t column, double value) { store(each.tensor(), row, column, value); });
    }
  }
}

}  // namespace

void reference(const GemmView& gemm) { store_expected(gemm, Products()); }
void reference(const ReduceSplitK& reduction) { store_expected(outputs_view(reduction), Parts(reduction)); }

std::string describe_worst(const Comparison& comparison) {
  const WorstElement& worst = comparison.worst;
  const std::string batch = comparison.batch == 1 ? "" : fmt::format("{},", worst.batch);
  return fmt::format("{}[{}{},{}] is {}, expected {} within {:.3g}", worst.tensor, batch, worst.row, worst.column,
                     worst.actual, worst.expected, worst.bound);
}

std::string to_string(const Comparison& comparison) {
  if (comparison.outside != 0) {
    return fmt::format("{} of {} elements wrong; first: {}", comparison.outside, comparison.checked,
                       describe_worst(comparison));
  }
  const std::string count = comparison.checked == comparison.elements
                                ? fmt::format("{} elements", comparison.checked)
                                : fmt::format("{} of {} elements, sampled,", comparison.checked, comparison.elements);
  if (comparison.is_exact()) return fmt::format("{} equal the reference bit for bit", count);
  return fmt::format("{} within the error bound ({} exact, largest error {:.3g})", count, comparison.equal,
                     comparison.max_error);
}

namespace {

/// Compares the outputs of a kernel with the reference, one matrix at a time.
class Checker {
 public:
  Checker(const GemmView& gemm, const Accumulators& accumulators, Comparison& comparison)
      : epilogue_(gemm), accumulators_(accumulators), comparison_(comparison) {}

  /// Checks all elements and reductions of one matrix.
  void check_all(const GemmView& one, std::int64_t index) {
    auto reduced = reduced_outputs<BoundedReduction>(
        one, [&](Reduction reduction) { return BoundedReduction(identity(reduction, one.epilogue->compute)); });
    accumulators_.for_each(one, [&](std::int64_t row, std::int64_t column, const Dots& dots) {
      const std::vector<Bounded>& values = check_element(one, {index, row, column}, dots);
      for (Reduced<BoundedReduction>& each : reduced) {
        each.at(row, column)
            .add(*one.epilogue, each.output().reduction, values[static_cast<std::size_t>(each.output().node)]);
      }
    });
    for (const Reduced<BoundedReduction>& each : reduced) {
      each.for_each([&](std::int64_t row, std::int64_t column, const BoundedReduction& result) {
        record_one(each.output().label, each.tensor(), {index, row, column},
                   result.result(*one.epilogue, each.output().reduction));
      });
    }
  }

  /// Checks one element of D and the elements at the same place in outputs that are not reduced. Returns the values of
  /// all nodes at the first column.
  const std::vector<Bounded>& check_element(const GemmView& one, const Place& at, const Dots& dots) {
    const auto& values = epilogue_.evaluate(one, at.row, at.column, dots);
    record_element("D", one.d, at, values[0][static_cast<std::size_t>(one.epilogue->node_of_d())]);
    const std::int64_t columns = one.epilogue->columns_per_element();
    for (const EpilogueOutput& output : one.epilogue->outputs) {
      if (output.reduction != Reduction::none) continue;
      for (std::int64_t c = 0; c < columns; ++c) {
        record_one(output.label, one.tensor(output.label), {at.batch, at.row, at.column * columns + c},
                   values[static_cast<std::size_t>(c)][static_cast<std::size_t>(output.node)]);
      }
    }
    return values[0];
  }

  void check_elements(const GemmView& gemm, std::span<const Place> places) {
    for (const Place& at : places) {
      const MatrixOfBatch one(gemm, at.batch);
      check_element(one.view(), at, accumulators_.at(one.view(), at.row, at.column));
    }
  }

  /// Checks the results of a reduction to which the elements at `places` contribute.
  void check_results(const GemmView& gemm, const EpilogueOutput& output, std::span<const Place> places) {
    for (const Place& at : places) check_result(MatrixOfBatch(gemm, at.batch).view(), output, at);
  }

 private:
  void check_result(const GemmView& one, const EpilogueOutput& output, const Place& at) {
    const auto [along_m, along_n] = output.broadcast;
    BoundedReduction result(identity(output.reduction, one.epilogue->compute));
    for (std::int64_t row = along_m ? at.row : 0; row < (along_m ? at.row + 1 : one.m()); ++row) {
      for (std::int64_t column = along_n ? at.column : 0; column < (along_n ? at.column + 1 : one.n()); ++column) {
        const auto& values = epilogue_.evaluate(one, row, column, accumulators_.at(one, row, column));
        result.add(*one.epilogue, output.reduction, values[0][static_cast<std::size_t>(output.node)]);
      }
    }
    record_one(output.label, one.tensor(output.label), {at.batch, along_m ? at.row : 0, along_n ? at.column : 0},
               result.result(*one.epilogue, output.reduction));
  }

  void record_one(std::string_view label, const Tensor& tensor, const Place& at, const Bounded& expected) {
    record_element(label, OperandView::of(tensor), at, expected);
  }

  void record_element(std::string_view label, const OperandView& operand, const Place& at, const Bounded& expected) {
    record(comparison_, operand.tensor.dtype, load(operand, at.row, at.column), expected,
           {std::string(label), at.batch, at.row, at.column, 0.0, 0.0, 0.0});
  }

  BoundedEpilogue epilogue_;
  const Accumulators& accumulators_;
  Comparison& comparison_;
};

// Checks all elements, or samples drawn from `seed`.
Comparison compare_with(const GemmView& gemm, const Accumulators& accumulators, bool is_exhaustive,
                        std::uint64_t seed) {
  Comparison comparison = nothing_checked(gemm);
  if (gemm.is_empty()) return comparison;
  Checker checker(gemm, accumulators, comparison);
  if (is_exhaustive) {
    for (const std::int64_t index : computed_matrices(gemm))
      checker.check_all(MatrixOfBatch(gemm, index).view(), index);
    return comparison;
  }
  const std::vector<Place> places = sampled_places(gemm, seed);
  checker.check_elements(gemm, places);
  for (const EpilogueOutput& output : gemm.epilogue->outputs) {
    if (output.reduction != Reduction::none && output.broadcast != kSingle)
      checker.check_results(gemm, output, std::span(places).first(kSampledResults));
  }
  return comparison;
}

}  // namespace

Comparison compare(const GemmView& gemm, std::uint64_t seed) {
  return compare_with(gemm, Products(), operations(gemm) / 2.0 <= static_cast<double>(kExhaustiveProducts), seed);
}

Comparison compare(const ReduceSplitK& reduction, std::uint64_t seed) {
  const bool is_exhaustive = operations(reduction) <= static_cast<double>(kExhaustiveAdditions);
  return compare_with(outputs_view(reduction), Parts(reduction), is_exhaustive, seed);
}

Comparison compare_at(const GemmView& gemm, std::span<const Place> places) {
  Comparison comparison = nothing_checked(gemm);
  Checker(gemm, Products(), comparison).check_elements(gemm, places);
  return comparison;
}

Comparison compare_results_at(const GemmView& gemm, std::string_view label, std::span<const Place> places) {
  const auto output = std::ranges::find(gemm.epilogue->outputs, label, &EpilogueOutput::label);
  TILEWRIGHT_CHECK(output != gemm.epilogue->outputs.end() && output->reduction != Reduction::none,
                   "'{}' is not a reduction", label);
  Comparison comparison = nothing_checked(gemm);
  Checker(gemm, Products(), comparison).check_results(gemm, *output, places);
  return comparison;
}

}  // namespace tilewright::op
