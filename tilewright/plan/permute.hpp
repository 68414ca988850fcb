// The plan of the kernel that copies a tensor to another order of its modes.
#pragma once

#include <cstdint>
#include <string>

#include "tilewright/base/target.hpp"
#include "tilewright/op/permutation.hpp"
#include "tilewright/plan/launch.hpp"
#include "tilewright/plan/parameters.hpp"

namespace tilewright::plan {

/// A thread moves blocks of `from_vector` lines by `to_vector` elements of a row. A row consists of the modes that are
/// contiguous in the destination; lines follow each other along the mode that is contiguous in the source. How threads
/// lie along rows and lines depends on the extents and is chosen by launch().
struct PermutePlan {
  static constexpr int kWarps = 8;  // of a CTA

  Target target;
  int element_bytes = 4;
  int coordinates = 2;      // modes that a row, the lines and the rest may each have: 2, 4 or 8
  bool transposes = false;  // loads are vectors along the lines; else the row is contiguous in both tensors
  int from_vector = 1;      // elements of a load; 1 unless it transposes
  int to_vector = 1;        // elements of a store, and of a load if it does not transpose
  int blocks = 1;           // of a thread, along the lines

  int threads() const { return 32 * kWarps; }
  bool operator==(const PermutePlan&) const = default;
};

/// "16-bit 8x8 transposed"
std::string to_string(const PermutePlan& plan);

/// The plan for a permutation: vectors as wide as alignments and extents allow, at most 16 bytes.
PermutePlan plan_permute(const op::Permutation& permutation, const Target& target);

/// Refuses permutations whose extents, strides or addresses do not allow the vectors of the plan, those with more
/// modes, and those whose indices exceed 31 bits.
Support check_arguments(const PermutePlan& plan, const op::Permutation& permutation);

/// The offset at which launch() writes each parameter.
ParameterLayout parameter_layout(const PermutePlan& plan);

/// One CTA for each tile. @pre check_arguments accepted them, and the tensors are not empty
Launch launch(const PermutePlan& plan, const op::Permutation& permutation);

/// Estimated microseconds in which a copy that reads and writes `moved` bytes together moves them, in L2 or DRAM.
double transfer_us(const Target& target, double moved);

/// Estimated microseconds, including the launch: the time to read and write all elements in L2 or DRAM, or that in
/// which the instructions are issued, whichever is longer.
double estimate_us(const PermutePlan& plan, const op::Permutation& permutation);

}  // namespace tilewright::plan
