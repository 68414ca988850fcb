// The classes of random problems: what bounds a problem and shapes its kernels.
#pragma once

#include <span>
#include <string_view>

#include "problem.hpp"

namespace tilewright::bench {

struct RandomClass {
  std::string_view name;   // "short_k"
  std::string_view title;  // the rule by which a problem belongs to the class
};

/// All classes. A problem belongs to the first one whose rule it meets; every problem meets the last one's.
std::span<const RandomClass> random_classes();

/// The class of any problem, whether or not it was drawn at random.
const RandomClass& random_class(const Problem& problem);

/// Null if no class has this name.
const RandomClass* find_random_class(std::string_view name);

/// Whether the rows (or columns) of A, B and D begin at multiples of 16 bytes.
bool has_aligned_rows(const Problem& problem);

/// Whether the rows of a K-major A, or the columns of a K-major B, are an odd multiple of 16 bytes apart.
bool has_odd_rows(const Problem& problem);

}  // namespace tilewright::bench
