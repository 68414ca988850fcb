// Whether a contender computed the problem: against exact sums at sampled elements, and against another's whole result.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "problem.hpp"

namespace tilewright::bench {

/// D of one contender, on the host.
struct Output {
  std::vector<std::byte> bytes;
};

struct Verdict {
  bool right = false;
  double max_error = 0.0;   // largest |d - exact| over the sampled elements
  double mean_error = 0.0;  // mean of it
  std::string reason;       // of what is wrong, with the element
};

class Verifier {
 public:
  /// Computes sampled elements of the product of A and B, as they lie in memory, in f64 (integers exactly).
  Verifier(const Problem& problem, const std::vector<std::byte>& a, const std::vector<std::byte>& b);

  /// Samples only. An element may be off by what rounding of products, sums and the store can explain.
  Verdict against_exact(const Output& output) const;

  /// Every element of `output` and `other` may differ by twice that. The first that does not; empty when all agree.
  std::string disagreement(const Output& output, const Output& other) const;

 private:
  struct Sample {
    std::int64_t matrix, row, column;
    double exact;
  };

  /// Rows of D, those of all matrices of a batch counted on.
  struct Lines {
    std::int64_t begin, end;
  };

  double bound(double exact) const;
  std::string disagreement(const Output& output, const Output& other, const Lines& part) const;
  std::string element_name(std::int64_t matrix, std::int64_t row, std::int64_t column) const;

  Problem problem_;
  std::vector<Sample> samples_;
};

}  // namespace tilewright::bench
