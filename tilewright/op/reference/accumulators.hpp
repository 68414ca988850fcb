// The reference computes here what the epilogue of a problem reads: sums of products of A and B, or of the parts of
// split-K.
#pragma once

#include <array>
#include <cstdint>
#include <functional>

#include "tilewright/op/gemm_view.hpp"
#include "tilewright/op/reduce_split_k.hpp"
#include "tilewright/op/reference/bounded_value.hpp"

namespace tilewright::op {

/// A sum of products, and the sum of their magnitudes.
struct Dot {
  double sum = 0.0;
  double magnitude = 0.0;
};

/// The dot products for one element of D: one column of A*B, or a pair of columns.
using Dots = std::array<Dot, 2>;

double wrap_to_s32(double sum);

/// The sum as an accumulator of the problem has it, with the errors of its products and additions.
BoundedValue accumulator(const GemmView& gemm, const Dot& dot);

using VisitElement = std::function<void(std::int64_t row, std::int64_t column, const Dots& dots)>;

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
class ProductAccumulators final : public Accumulators {
 public:
  Dots at(const GemmView& one, std::int64_t row, std::int64_t column) const override;
  void for_each(const GemmView& one, const VisitElement& visit) const override;
};

/// Sums of the parts of a split-K reduction, which must outlive this object.
class PartAccumulators final : public Accumulators {
 public:
  explicit PartAccumulators(const ReduceSplitK& reduction);

  Dots at(const GemmView& one, std::int64_t row, std::int64_t column) const override;
  void for_each(const GemmView& one, const VisitElement& visit) const override;

 private:
  Dot sum(std::int64_t row, std::int64_t column) const;

  const Tensor& parts_;
  std::int64_t count_;
};

}  // namespace tilewright::op
