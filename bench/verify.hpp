// Verifies the result of a contender: sampled elements against exact sums, and all elements against another contender.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "problem.hpp"

namespace tilewright::bench {

/// The inputs of a problem, in host memory.
struct Sources {
  std::vector<std::byte> a, b, c;
  std::vector<std::vector<std::byte>> tensors = {};  // in the order of stored_tensors(); outputs are empty
};

/// D and the epilogue's outputs of one contender, in host memory.
struct Output {
  std::vector<std::byte> bytes;
  std::vector<std::vector<std::byte>> tensors = {};  // in the order of stored_tensors(); inputs are empty
};

/// Bound on the relative error of rounding to the type, including rounding to the second-nearest value.
double store_error(DType type);

struct Verdict {
  bool right = false;
  double max_error = 0.0;  // largest |value - exact| over the sampled elements of D and of outputs that are not reduced
  double mean_error = 0.0;      // mean of |value - exact| over the same elements
  std::string reason;           // why the result is wrong, naming the element
  int compared = 0, wrong = 0;  // compared elements, and how many of them exceed the error bound
};

class Verifier {
 public:
  /// Computes sampled elements of the product of the stored A and B in f64 (exactly for integers), and the problem's
  /// epilogue for them. For row and column reductions it computes all elements of a few rows or columns. `sources` must
  /// outlive this object.
  Verifier(const Problem& problem, const Sources& sources);

  /// Compares the samples. The error bound of an element covers the rounding of products, sums and the stored value,
  /// and `rounding`, which is relative to the product (Contender::rounding). If the bound is as large as the elements,
  /// the verdict is that they cannot be verified. The largest magnitude of all elements is compared with the exact
  /// values at the elements where |D| of `output` is largest; the reduced value must grow with |D|.
  Verdict against_exact(const Output& output, double rounding = 0.0) const;

  /// Whether the samples are right if D is the sum of `parts` partial sums that were rounded to its type, as split-K
  /// may compute it. @pre the problem has no epilogue
  bool is_sum_of_rounded_parts(const Output& output, int parts) const;

  /// Compares all elements of two results, which may differ by twice the bound of against_exact(). Returns the first
  /// element that differs by more; empty if there is none.
  std::string disagreement(const Output& output, const Output& other, double rounding = 0.0) const;

 private:
  /// D, or another output of the epilogue.
  struct Written {
    std::string label;
    StoredMatrix stored;
    std::size_t tensor = 0;  // 0: D; otherwise 1 + the index in Output::tensors
    std::size_t node = 0;    // index in the epilogue's graph
    double steepest = 1.0;   // largest derivative with respect to an accumulator
    int factors = 1;         // EpilogueCase::factors
    int columns = 1;         // columns of A*B per column of the output
    double magnitude = 0.0;  // root mean square of the stored or reduced values over the samples

    const std::vector<std::byte>& bytes(const Output& output) const;
  };

  struct Place {
    std::int64_t matrix, row, column;
  };
  struct Sample {
    Place place;                // an element of A*B
    std::vector<double> exact;  // for each of written_
  };

  /// A reduced output, with a result for each row or column, or a single one. The problem is not batched.
  struct Reduced {
    Written result;
    op::Reduction reduction;
    op::Broadcast broadcast;

    bool is_single() const { return broadcast == op::kSingle; }
    bool is_of_rows() const { return broadcast.along_m; }
  };
  /// The exact result of a sampled row or column.
  struct ReducedSample {
    std::size_t reduced;  // index in reduced_
    std::int64_t line;
    double exact;
  };

  /// A range of rows of D. Rows are numbered from 0 through all matrices of a batch.
  struct Part {
    std::int64_t begin, end;
  };
  /// Splits the range from 0 to `count` into parts and returns work(part) for each. The parts run in parallel.
  template <class Work>
  static auto in_parallel(std::int64_t count, const Work& work);

  Written written_d() const;
  double exact_product(const Place& place) const;
  op::EpilogueElement exact_element(const Place& place) const;
  /// Values of all nodes of the graph at an element of A*B. In a gated epilogue they depend on both columns of its
  /// pair.
  std::vector<double> exact_values(const Place& place) const;
  double exact_line(const Reduced& reduced, std::int64_t line) const;
  /// The elements of D with the largest magnitude.
  std::vector<Place> peaks(const Output& output) const;
  double product_bound() const;
  double bound(const Written& written, double exact, double rounding) const;
  double bound(const Reduced& reduced, double exact, double rounding) const;
  /// |value - exact| at the element of the output to which an element of A*B contributes. The first error above `most`
  /// is the reason of the verdict.
  double compare(const Written& written, const Place& of_product, const Output& output, double exact, double most,
                 Verdict& verdict) const;
  void compare_single(const Reduced& reduced, const Output& output, double rounding, Verdict& verdict) const;
  /// The first element of these rows that differs from `expected`, its value in `other`, by more than
  /// 2 * bound_of(expected).
  template <class Bound>
  std::string first_difference(const Written& written, const Output& output, const Output& other, const Part& rows,
                               const Bound& bound_of) const;
  std::string element_name(const Written& written, const Place& place) const;

  Problem problem_;
  const Sources& sources_;
  op::Epilogue epilogue_;
  std::vector<StoredTensor> tensors_;
  std::vector<Written> written_;  // outputs that are not reduced
  std::vector<Reduced> reduced_;
  std::vector<Sample> samples_;
  std::vector<ReducedSample> reduced_samples_;
};

}  // namespace tilewright::bench
