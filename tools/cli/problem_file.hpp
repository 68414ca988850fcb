// A problem of any operation, read from the JSON file of `tilewright run --problem`. docs/operations.md has the format.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tilewright/op/problem.hpp"
#include "tilewright/registry/registry.hpp"

namespace tilewright::cli {

/// GroupedGemm::ends and leading_dimensions.
struct GroupNumbers {
  std::vector<std::int32_t> ends, leading_dimensions;
};

class ProblemFile {
 public:
  /// Reads the file and checks the problem. The file may name the operations of `registry`. The kernels of a
  /// weight_gemm are added to it.
  /// @throws InvalidArgument, naming the file, the field and the reason
  ProblemFile(const std::string& path, const registry::Registry& registry);

  /// The text of a file.
  struct Text {
    std::string json;
  };
  ProblemFile(const Text& text, const registry::Registry& registry);

  /// The problems of a file that has one problem or a list of them. An extent may be a text with several values, such
  /// as "64,128" or "128:4096:128" (profile::parse_extents); each combination is a problem, and the extent whose name
  /// comes first in the alphabet varies slowest.
  /// @throws InvalidArgument, naming the file, the field and the reason
  static std::vector<ProblemFile> read_all(const std::string& path, const registry::Registry& registry);

  /// Its operands have no memory, except the numbers of groups.
  const op::Problem& problem() const { return problem_; }
  /// "transposed_gemm a(64,32):f16 b(32,48):f16 out(48,64):f32"
  std::string description() const;

  /// Allocates every other operand. Inputs are filled with random integers from `seed`, outputs with NaN.
  void materialize(std::uint64_t seed);

 private:
  /// `size` bytes of memory at a multiple of the alignment of a device's memory pool.
  std::uint64_t allocate(std::size_t size);

  GroupNumbers numbers_;  // of a grouped GEMM, which refers to them
  op::Problem problem_;   // read after numbers_, which the reader sets
  std::vector<std::unique_ptr<std::byte[]>> memory_;
};

}  // namespace tilewright::cli
