// The measured candidates of a problem as lines of JSON, to which bench/fit_cost.py fits the cost model.
#pragma once

#include <cstdint>
#include <functional>
#include <istream>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "measure.hpp"
#include "operand_sets.hpp"
#include "problem.hpp"
#include "tilewright/engine/explanation.hpp"
#include "tilewright_kernels.hpp"

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

struct CandidateOptions {
  KernelChoice choice;
  SurveyOptions survey = {};
  std::size_t most_verified_bytes = std::size_t{64} << 20;  // candidates are verified if a set is at most this large
  std::uint64_t seed = 1;                                   // of the operands
  int most_sets = std::numeric_limits<int>::max();          // operand sets
};

/// Makes the TimeCalls for these contenders.
using MakeTimer = std::function<TimeCalls(std::span<const Contender> contenders, int set_count)>;

/// Verifies and times our kernels for the problem on the engine's device. Returns their lines; a problem or a kernel
/// that could not be measured has a failure_line(). Candidates with a wrong result are not timed.
std::vector<std::string> survey_candidates(engine::Engine& engine, const Problem& problem, RandomBlocks& random,
                                           const CandidateOptions& options, const MakeTimer& make_timer);

/// Designs for KernelChoice::designs: the object `design` of a candidate's line on each line. Empty lines and lines
/// that begin with '#' are skipped. A field that is missing has FlatDesign's default.
/// @throws InvalidArgument, naming the malformed line
std::vector<plan::FlatDesign> read_designs(std::istream& file, const std::string& file_name);

}  // namespace tilewright::bench
