// The measured candidates of a problem as lines of JSON, to which bench/fit_cost.py fits the cost model.
#pragma once

#include <istream>
#include <optional>
#include <string>
#include <vector>

#include "measure.hpp"
#include "problem.hpp"
#include "tilewright/engine/explanation.hpp"

namespace tilewright::bench {

/// One of our kernels for a problem.
struct Candidate {
  engine::RankedKernel ranked;
  int rank = 0;                       // by predicted time, from 1
  std::optional<bool> is_right = {};  // nullopt: not verified
  std::optional<Timing> timing = {};  // nullopt if the result is wrong
};

/// An object on one line: id, class, problem (its line), m, n, k, batch, gpu, kernel, family, rank, estimate_us (null
/// if the kernel has none), right (null if not verified), median_us and samples (null if it is wrong), operands and
/// design (as in KernelMetadata).
std::string candidate_line(const Problem& problem, const std::string& gpu, const Candidate& candidate);

/// An object on one line for a problem or a kernel that could not be measured: id, class, problem, gpu, kernel (empty:
/// none), failure.
std::string failure_line(const Problem& problem, const std::string& gpu, const std::string& kernel,
                         const std::string& failure);

/// Designs for KernelChoice::designs: the object `design` of a candidate's line on each line. Empty lines and lines
/// that begin with '#' are skipped. A field that is missing has FlatDesign's default.
/// @throws InvalidArgument, naming the malformed line
std::vector<plan::FlatDesign> read_designs(std::istream& file, const std::string& file_name);

}  // namespace tilewright::bench
