// The two plans of the depthwise_conv family share these: one is for convolutions and the gradients of their inputs,
// the other for the gradients of filters.
#pragma once

#include <cstdint>

#include "tilewright/base/rounding.hpp"
#include "tilewright/op/gemm_signature.hpp"
#include "tilewright/plan/design.hpp"

namespace tilewright::plan::depthwise {

inline constexpr int kVectorBytes = 16;  // the widest load of one thread
inline constexpr int kMaxVector = 8;     // with more channels a thread has too many sums
inline constexpr int kMaxTaps = 7, kMaxStep = 2;
inline constexpr int kWarpThreads = 32;
inline constexpr std::int64_t kSmemBytes = 48 * 1024;  // shared memory of any kernel, without asking for more
inline constexpr double kDramShare = 0.875;            // of DRAM's nominal rate; from GEMMs on an H200, 2026-11-23
inline constexpr double kIssueShare = 0.6;             // of the four instructions that an SM issues at most per clock
inline constexpr double kAddressInstructions = 6;      // of a load: its address, its condition, and zeros outside

/// The type in which a thread sums.
inline DType accumulator_of(const op::GemmSignature& signature) {
  const DType element = signature.a.element, accumulator = signature.accumulator;
  return element == DType::f64 || accumulator == DType::s32 ? accumulator : DType::f32;
}

/// Whether multiply-adds without rounded operands serve for the math operation: multiply_add_tf32 and
/// multiply_add_fast_accumulate allow less precision and do not require it. On tensor cores, the products of a single
/// channel use one column of an instruction: tf32 2x120x120x792 with a filter of 3x3 for each channel took 3192 us,
/// where cuDNN takes 65 (H200, 2026-11-27).
inline bool can_multiply_in_full(op::MathOperation math) {
  return math == op::MathOperation::multiply_add || math == op::MathOperation::multiply_add_tf32 ||
         math == op::MathOperation::multiply_add_fast_accumulate;
}

/// A design with the values of all choices that the family does not offer.
inline FlatDesign flat_design(const Target& target) {
  FlatDesign design;
  design.target = target;
  design.stages = 1;
  design.warps_n = 1;
  return design;
}

}  // namespace tilewright::plan::depthwise
