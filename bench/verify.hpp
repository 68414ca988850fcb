// Whether a contender computed the problem: against exact sums at sampled elements, and against another's whole result.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "problem.hpp"

namespace tilewright::bench {

/// What a problem reads, on the host.
struct Sources {
  std::vector<std::byte> a, b, c;
  std::vector<std::vector<std::byte>> tensors = {};  // of stored_tensors(); empty what the epilogue writes
};

/// D of one contender, on the host, and what the epilogue writes besides.
struct Output {
  std::vector<std::byte> bytes;
  std::vector<std::vector<std::byte>> tensors = {};  // of stored_tensors(); empty what it reads
};

/// Relative error of a value that is rounded to the type, with room for rounding to a neighbour.
double store_error(DType type);

struct Verdict {
  bool right = false;
  double max_error = 0.0;   // largest |d - exact| over the sampled elements, outputs besides D included unless reduced
  double mean_error = 0.0;  // mean of it
  std::string reason;       // of what is wrong, with the element
};

class Verifier {
 public:
  /// Computes sampled elements of the product of A and B, as they lie in memory, in f64 (integers exactly), and what
  /// the problem's epilogue makes of them; of what it reduces for each row or column, all elements of a few of those.
  /// `sources` must outlive it.
  Verifier(const Problem& problem, const Sources& sources);

  /// Samples only. An element may be off by what rounding of products, sums and the store can explain, and `rounding`,
  /// which is relative to the product (Contender). Where that may be as much as elements are large, nothing is
  /// verified. The largest magnitude of all is compared with the exact ones of the elements that are largest in
  /// `output`'s D: it must be of something that grows with |D|.
  Verdict against_exact(const Output& output, double rounding = 0.0) const;

  /// Every element of `output` and `other` may differ by twice that. The first that does not; empty when all agree.
  std::string disagreement(const Output& output, const Output& other, double rounding = 0.0) const;

 private:
  /// What is written: D, or a further output of the epilogue.
  struct Written {
    std::string label;
    StoredMatrix stored;
    std::size_t tensor = 0;  // of Output::tensors, from 1; 0: D
    std::size_t node = 0;    // of the epilogue's graph
    double steepest = 1.0;   // largest slope over an accumulator
    int factors = 1;         // EpilogueCase
    int columns = 1;         // of A*B for each of it
    double magnitude = 0.0;  // of what is stored or reduced: root of the mean square over the samples

    const std::vector<std::byte>& bytes(const Output& output) const;
  };

  struct Place {
    std::int64_t matrix, row, column;
  };
  struct Sample {
    Place place;                // of A*B
    std::vector<double> exact;  // of written_
  };

  /// An output that is reduced: single products, one result for each row or column, or one.
  struct Reduced {
    Written result;
    op::Reduction reduction;
    op::Broadcast broadcast;

    bool is_single() const { return broadcast == op::kSingle; }
    bool is_of_rows() const { return broadcast.along_m; }
  };
  /// The result of a sampled row or column.
  struct ReducedSample {
    std::size_t of;  // reduced_
    std::int64_t line;
    double exact;
  };

  /// Some of the things that are counted from 0, as rows of D: those of all matrices of a batch are counted on.
  struct Part {
    std::int64_t begin, end;
  };
  /// What work(part) returns of each of the parts of 0 to `count`, which run side by side.
  template <class Work>
  static auto of_parts(std::int64_t count, const Work& work);

  Written written_d() const;
  double exact_product(const Place& place) const;
  op::EpilogueElement exact_element(const Place& place) const;
  /// Values of all nodes of the graph at an element of A*B, which may read the other of its pair.
  std::vector<double> exact_values(const Place& place) const;
  double exact_line(const Reduced& reduced, std::int64_t line) const;
  /// Where |D| is largest.
  std::vector<Place> peaks(const Output& output) const;
  double product_bound() const;
  double bound(const Written& written, double exact, double rounding) const;
  double bound(const Reduced& reduced, double exact, double rounding) const;
  /// |value - exact| of what an element of A*B goes to. The first that is above `most` becomes the verdict's reason.
  double compare(const Written& written, const Place& of_product, const Output& output, double exact, double most,
                 Verdict& verdict) const;
  void compare_single(const Reduced& reduced, const Output& output, double rounding, Verdict& verdict) const;
  /// The first of these rows' elements that differs by more than twice bound_of(what the other has).
  template <class Bound>
  std::string first_apart(const Written& written, const Output& output, const Output& other, const Part& rows,
                          const Bound& bound_of) const;
  std::string element_name(const Written& written, const Place& place) const;

  Problem problem_;
  const Sources& sources_;
  op::Epilogue epilogue_;
  std::vector<StoredTensor> tensors_;
  std::vector<Written> written_;  // that are not reduced
  std::vector<Reduced> reduced_;
  std::vector<Sample> samples_;
  std::vector<ReducedSample> reduced_samples_;
};

}  // namespace tilewright::bench
