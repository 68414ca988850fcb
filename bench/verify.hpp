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
  double max_error = 0.0;   // largest |d - exact| over the sampled elements, outputs besides D included
  double mean_error = 0.0;  // mean of it
  std::string reason;       // of what is wrong, with the element
};

class Verifier {
 public:
  /// Computes sampled elements of the product of A and B, as they lie in memory, in f64 (integers exactly), and what
  /// the problem's epilogue makes of them.
  Verifier(const Problem& problem, const Sources& sources);

  /// Samples only. An element may be off by what rounding of products, sums and the store can explain, and `rounding`,
  /// which is relative to the product (Contender).
  Verdict against_exact(const Output& output, double rounding = 0.0) const;

  /// Every element of `output` and `other` may differ by twice that. The first that does not; empty when all agree.
  std::string disagreement(const Output& output, const Output& other, double rounding = 0.0) const;

 private:
  /// A matrix that is written: D, or a further output of the epilogue. Single numbers and vectors will want a check of
  /// their own: each is of many products.
  struct Written {
    std::string label;
    StoredMatrix stored;
    std::size_t tensor = 0;  // of Output::tensors, from 1; 0: D
    std::size_t node = 0;    // of the epilogue's graph

    const std::vector<std::byte>& bytes(const Output& output) const;
  };

  struct Sample {
    std::int64_t matrix, row, column;
    std::vector<double> exact;  // of written_
  };

  /// Rows of D, those of all matrices of a batch counted on.
  struct Lines {
    std::int64_t begin, end;
  };

  double exact_product(const Sources& sources, const Sample& sample) const;
  /// Values of all nodes of the graph.
  std::vector<double> apply_epilogue(const Sources& sources, const Sample& sample, double product) const;
  double bound(const Written& written, double exact, double rounding) const;
  std::string disagreement(const Written& written, const Output& output, const Output& other, double rounding,
                           const Lines& part) const;
  std::string element_name(const Written& written, std::int64_t matrix, std::int64_t row, std::int64_t column) const;

  Problem problem_;
  op::Epilogue epilogue_;
  std::vector<StoredTensor> tensors_;
  std::vector<Written> written_;
  std::vector<Sample> samples_;
};

}  // namespace tilewright::bench
