// The tensor maps of sm90_gemm's operands and outputs.
#pragma once

#include <cstdint>

#include "tilewright/base/tensor_map.hpp"
#include "tilewright/op/gemm_view.hpp"
#include "tilewright/plan/parameters.hpp"
#include "tilewright/plan/sm90/gemm.hpp"
#include "tilewright/plan/sm90/repacking.hpp"
#include "tilewright/plan/sm90/work.hpp"

namespace tilewright::plan::sm90 {

/// Elements from a row, or a column if these are contiguous, to the next.
std::int64_t leading_dimension(const op::Tensor& tensor);

/// The number of matrices in an operand's tensor map. The CUDA documentation does not say that a tensor map may have a
/// stride of 0, so a matrix that is broadcast over the batch is mapped as one matrix, and the kernel loads it at
/// coordinate 0. A tensor map of a pointer array has one matrix, too.
std::int64_t mapped_matrices(const op::Tensor& tensor);

/// The tensor map of an operand with `mn` x `k` elements.
TensorMapRequest operand_map(const TmaOperandPlan& operand, const op::Tensor& tensor, std::int64_t mn, std::int64_t k);

/// The tensor map of the repacked copy at `offset` bytes from the beginning of the workspace.
TensorMapRequest repacked_map(const TmaOperandPlan& operand, const RepackedCopy& copy, std::int64_t offset);

/// The tensor map of C, D or another output. Its box is that of panel_boxes().
TensorMapRequest output_map(const Sm90GemmPlan& plan, const View& problem, const op::TensorSignature& described,
                            const op::Tensor& tensor);

/// The tensor map of the rows of D of a class.
TensorMap class_output_map(const Sm90GemmSketch& plan, const op::OperandView& d);

}  // namespace tilewright::plan::sm90
