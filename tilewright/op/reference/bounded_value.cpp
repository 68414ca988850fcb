#include "tilewright/op/reference/bounded_value.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tilewright/op/fill.hpp"

namespace tilewright::op {
namespace {

/// The propagated error of a function that is monotone within the error of x.
template <class Function>
double monotone_error(const BoundedValue& x, double value, const Function& f) {
  if (x.error == 0.0) return 0.0;
  const double low = f(x.value - x.error), high = f(x.value + x.error);
  if (std::isnan(low) || std::isnan(high)) return std::numeric_limits<double>::infinity();
  return std::max(std::fabs(low - value), std::fabs(high - value));
}

/// The propagated error of x^y, which is monotone in both for positive x.
double power_error(const BoundedValue& x, const BoundedValue& y, double value) {
  if (x.error == 0.0 && y.error == 0.0) return 0.0;
  if (!(x.value - x.error > 0.0)) return std::numeric_limits<double>::infinity();
  double error = 0.0;
  for (const double base : {x.value - x.error, x.value + x.error}) {
    for (const double exponent : {y.value - y.error, y.value + y.error})
      error = std::max(error, std::fabs(std::pow(base, exponent) - value));
  }
  return error;
}

bool may_be_equal(const BoundedValue& x, const BoundedValue& y) {
  return std::fabs(x.value - y.value) <= x.error + y.error;
}

/// The propagated error of a quotient whose dividend has the error `error`.
double quotient_error(double error, const BoundedValue& divisor, double value) {
  const double least = std::fabs(divisor.value) - divisor.error;
  if (std::isinf(divisor.value)) return 0.0;
  return least > 0.0 ? (error + std::fabs(value) * divisor.error) / least : std::numeric_limits<double>::infinity();
}

/// The error of an operation's result that its inputs' errors cause; `value` is the result.
double carried_error(EpilogueOp op, const std::array<BoundedValue, 3>& in, double value) {
  const BoundedValue &x = in[0], &y = in[1], &z = in[2];
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

/// Twice the relative error of numeric::logistic(x) in roundoffs of f32. In f32, the exponent x * log2(e) has an
/// absolute error of 1.22 |x| roundoffs * log2(e), ex2.approx has an error of 4 roundoffs, the sum of 1, and rcp.approx
/// of 2 (PTX ISA); errors of e^-x count by its share of 1 + e^-x. Beyond |x| = 128 the result is 0 or 1.
double logistic_roundoffs(double x, double value) {
  return 2.0 * (3.0 + (4.0 + 1.22 * std::min(std::fabs(x), 128.0)) * (1.0 - value));
}

/// The operation's own error in roundoffs of the compute type: twice the maximum ulp error that the "CUDA C++
/// Programming Guide", Mathematical Functions, documents. `x` is the first input, `value` the result.
double own_roundoffs(EpilogueOp op, double x, double value) {
  switch (op) {
    case EpilogueOp::logistic:
      return logistic_roundoffs(x, value);
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

}  // namespace

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

BoundedValue rounded(BoundedValue x, const Roundoff& unit, double units) {
  x.error += units * unit.relative * (std::fabs(x.value) + x.error) + unit.absolute;
  return x;
}

BoundedValue converted(DType type, const BoundedValue& x) {
  const double value = round_to(type, x.value);
  return {value, monotone_error(x, value, [type](double at) { return round_to(type, at); })};
}

BoundedValue apply(EpilogueOp op, const std::array<BoundedValue, 3>& in, const Roundoff& unit) {
  const double value = apply(op, in[0].value, in[1].value, in[2].value);
  return rounded({value, carried_error(op, in, value)}, unit, own_roundoffs(op, in[0].value, value));
}

}  // namespace tilewright::op
