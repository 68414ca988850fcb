// Draws problems at random, so that kernels and the cost model are judged on problems that they were not made for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "problem.hpp"

namespace tilewright::bench {

/// Seeds below this one are for fitting the cost model. The others are for judging it: nothing may be fitted to their
/// problems.
inline constexpr std::uint64_t kFirstJudgingSeed = 100;

/// Limits on a random problem.
inline constexpr double kMaxRandomBytes = 2e9;      // A, B, D, and what the epilogue reads and writes
inline constexpr double kMinRandomBytes = 1 << 17;  // A, B and D
inline constexpr double kMaxRandomMs = 20.0;        // at the rate of the problem's type
inline constexpr double kMinRandomOperations = 1 << 24;

/// The problems of a seed that are wanted. Members that are not set select all.
struct RandomFilter {
  std::optional<bool> aligned = {};       // has_aligned_rows()
  std::vector<std::string> types = {};    // "bf16", "tf32": the dtype of the problem's line
  std::vector<std::string> classes = {};  // names of random_class.hpp
  std::int64_t least_m = 1;
};

/// Problem `number` of a seed. It depends on nothing else, on every platform, so that "R17-042" always names the same
/// problem.
///
/// The types are bf16, f16, e4m3, tf32, s8, f32 and f64. M and N are below 32768, and K is from 16 to below 65536: the
/// power of two is uniform and so is the extent within it, which approximates a log-uniform extent. In three of four
/// problems N is at least 64. Each extent is rounded down to a multiple of 1, 2, 8, 16, 32, 64 or 128. 8-bit types have
/// the layouts and alignments that cuBLASLt needs: A and B K-major, D row-major, rows at multiples of 16 bytes. There
/// is no e5m2, because cuBLASLt has no product of two e5m2 matrices.
Problem random_problem(std::uint64_t seed, int number);

/// The first `count` problems of a seed that pass the filter. @throws InvalidArgument for an unknown type or class, or
/// if few problems pass the filter
std::vector<Problem> random_problems(std::uint64_t seed, int count, const RandomFilter& filter = {});

/// A seed and how many of its problems to draw.
struct RandomDraw {
  std::uint64_t seed = 0;
  int count = 0;
};

/// Parses "17:100", or "17:100,18:50" for several seeds.
Result<std::vector<RandomDraw>> parse_random_draws(std::string_view text);

}  // namespace tilewright::bench
