// The epilogue of GEMM programs: computes D and further outputs from accumulators, and stores them.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "tilewright/op/gemm_view.hpp"
#include "tilewright/program/instructions.hpp"
#include "tilewright/program/launch.hpp"
#include "tilewright/program/tiled_copy.hpp"

namespace tilewright::program {

class GemmOutput {
 public:
  /// Declares the parameters: C, D unless `stages_d`, and the scalars and tensors of the epilogue. `operands` are those
  /// of the problem as computed, whose D is row-major; `m` and `n` its extents.
  /// @pre plan::check_functions(operands.epilogue)
  GemmOutput(KernelBuilder& k, const op::GemmSignature& operands, const Number& m, const Number& n, bool stages_d);

  /// D for TMA stores, where the launch has `batch` matrices. @pre its lines are multiples of 16 bytes
  static Tensor staged_d(KernelBuilder& k, const op::GemmSignature& operands, const Number& m, const Number& n,
                         const Number& batch);

  /// Appends the epilogue of two adjacent accumulators of a row, f32 or s32, in matrix `batch`. Elements outside D are
  /// not stored. The result is the two elements of D in f32, which the caller stores if D is staged.
  std::array<Value, 2> store(const std::array<Value, 2>& accumulators, const Number& batch, const Number& row,
                             const Number& column) const;

  /// Adds the values of these parameters for the caller's problem. `epilogue` is that of the problem as computed.
  static void add_arguments(LaunchArguments& values, const op::Epilogue& epilogue, const op::GemmView& arguments,
                            bool is_transposed);

 private:
  /// A tensor of which each element of D has one element, or which is broadcast.
  struct OutputTensor {
    DType element = DType::f32;
    Value address;
    Number stride_m, stride_n, stride_batch;
  };
  OutputTensor declare(const std::string& name, DType element, int alignment, const op::Broadcast& broadcast,
                       bool is_contiguous_along_n);
  Value load(const OutputTensor& tensor, const Number& holds, const Number& batch, const Number& row,
             const Number& column) const;
  void store(const OutputTensor& tensor, int alignment, const std::array<Value, 2>& values, const Number& batch,
             const Number& row, const Number& column) const;
  std::vector<Value> evaluate(const Value& accumulator, const Number& holds, const Number& batch, const Number& row,
                              const Number& column) const;

  KernelBuilder* kernel_;
  op::GemmSignature operands_;
  bool stages_d_;
  Number extent_m_, extent_n_;
  std::vector<Value> scalars_;  // in the order of Epilogue::scalars()
  bool reads_source_ = false;
  Number source_is_read_;  // by this launch
  OutputTensor c_, d_;
  std::vector<OutputTensor> tensors_;  // of Epilogue::tensors(), then of the outputs
};

}  // namespace tilewright::program
