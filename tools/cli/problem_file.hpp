// A problem of any operation from a JSON file: what `tilewright run --problem` reads. docs/cli.md has the format.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tilewright/op/problem.hpp"
#include "tilewright/registry/registry.hpp"

namespace tilewright::cli {

class ProblemFile {
 public:
  /// Reads the file and checks the problem. `registry` knows the operations that the file may name.
  /// @throws InvalidArgument naming the file, the field and what is wrong with it
  ProblemFile(const std::string& path, const registry::Registry& registry);

  const op::Problem& problem() const { return problem_; }
  /// "transposed_gemm a(64,32) b(32,48) out(48,64)"
  std::string description() const;

  /// Gives every operand memory: random integers from `seed` in what is read, NaN in what is written.
  void materialize(std::uint64_t seed);

 private:
  op::Problem problem_;
  std::vector<std::unique_ptr<std::byte[]>> memory_;
};

}  // namespace tilewright::cli
