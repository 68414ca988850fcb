// The problem that a command line describes: files or random numbers, as matrices in host memory.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tilewright/op/gemm.hpp"
#include "tools/cli/npy.hpp"
#include "tools/cli/output_file.hpp"
#include "tools/cli/problem_options.hpp"

namespace tilewright::cli {

class Problem {
 public:
  /// Reads the files and checks the problem. Allocates nothing for it yet: addresses are placeholders, aligned as
  /// device memory is. @throws InvalidArgument with one line on what is wrong
  explicit Problem(const ProblemOptions& options);

  const op::Gemm& gemm() const { return gemm_; }

  /// Gives every operand memory: inputs from the files or the seed, D poisoned with NaN.
  /// @throws InvalidArgument when this machine has not enough
  void materialize();

  /// D as a .npy file holds it: bf16 widened to f32, 8-bit floats as their codes; transposed where asked for. @pre
  /// materialize()
  NpyMatrix output() const;

  /// What --output asks for: file and contents. @pre materialize()
  std::vector<std::pair<std::string, NpyMatrix>> epilogue_outputs() const;
  /// The files that it names, and those that the problem is read from.
  std::vector<NamedFile> output_files() const;
  std::vector<NamedFile> input_files() const;

 private:
  void read_files();
  void choose_types();
  void choose_epilogue();
  void choose_shapes();
  void choose_epilogue_tensors();
  void fill(const op::Tensor& tensor, const std::vector<NpyMatrix>& file, const OperandOptions& operand,
            std::uint64_t stream) const;

  ProblemOptions options_;
  std::vector<NpyMatrix> a_, b_, c_;  // none or one
  std::map<std::string, NpyMatrix> sources_;
  std::map<std::string, std::string> source_files_;
  std::map<std::string, std::string> outputs_;  // files by name
  op::Gemm gemm_;
  std::vector<std::unique_ptr<std::byte[]>> memory_;
};

/// "512x256x128: f32 row * f32 row -> f32 row, accumulated in f32, linear_combination, alpha 1, beta 0"; a batch of 3
/// begins with "3 of ".
std::string to_string(const op::Gemm& gemm);

}  // namespace tilewright::cli
