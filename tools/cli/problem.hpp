// The GEMM that a command line describes, with matrices in host memory from files or random numbers.
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
  /// Reads the files and checks the problem. The operands have no memory yet: their addresses are placeholders with the
  /// alignment of device memory. @throws InvalidArgument with a reason of one line
  explicit Problem(const ProblemOptions& options);

  const op::Gemm& gemm() const { return gemm_; }

  /// Allocates every operand. Inputs are filled from the files or with random numbers, D with NaN.
  /// @throws InvalidArgument if the machine has too little memory
  void materialize();

  /// D as a .npy file stores it: bf16 widened to f32, 8-bit floats as bit patterns in u8, transposed with
  /// --transpose-d.
  /// @pre materialize()
  NpyMatrix output() const;

  /// The outputs of the epilogue that --epilogue-output names, each with its file. @pre materialize()
  std::vector<std::pair<std::string, NpyMatrix>> epilogue_outputs() const;
  /// The files that --epilogue-output names, and the files that the problem is read from.
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
  std::vector<NpyMatrix> a_, b_, c_;                 // each empty, or one matrix
  std::map<std::string, NpyMatrix> inputs_;          // of the epilogue, by name, as the next two
  std::map<std::string, std::string> input_paths_;   // the files of these
  std::map<std::string, std::string> output_paths_;  // the files of the outputs
  op::Gemm gemm_;
  std::vector<std::unique_ptr<std::byte[]>> memory_;
};

/// "512x256x128: f32 row * f32 row -> f32 row, multiply_add accumulated in f32, linear_combination, alpha 1, beta 0".
/// The text of a batch of 3 begins with "3 of ".
std::string to_string(const op::Gemm& gemm);

}  // namespace tilewright::cli
