// Lists of problems for the command profile: products of ranges, and lines of a text file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tilewright/op/problem.hpp"

namespace tilewright::cli {

/// The ranges of the command line. See profile::parse_extents(); types and layouts are separated by commas.
struct ProblemRanges {
  std::string m, n, k, batch;  // empty: not given
  std::string dtypes = "f16";
  std::string layouts = "tt";  // of A and B, and of D if a third letter is given: t row-major, n column-major
  std::string accumulator, out_dtype, math;
  std::string epilogue = "linear_combination";

  bool are_given() const { return !m.empty() || !n.empty() || !k.empty(); }
};

/// Every combination, with m varying fastest. The operands have no memory. @throws InvalidArgument
std::vector<op::Problem> problems_of(const ProblemRanges& ranges);

/// The problems of a text file with lines such as "dtype=f16 m=4096 n=4096 k=4096 b=col": see bench/README.md. Text
/// behind # is ignored. @throws InvalidArgument, naming the file and the line
std::vector<op::Problem> problems_of_list(const std::string& path);

}  // namespace tilewright::cli
