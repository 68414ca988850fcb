// The plans of the kernels that copy tensors of convolutions: rows with zeros behind them, filters for blocks of
// pixels, and pixels from blocks.
#pragma once

#include <cstdint>
#include <string>

#include "tilewright/base/target.hpp"
#include "tilewright/op/repacked_conv.hpp"
#include "tilewright/plan/launch.hpp"
#include "tilewright/plan/parameters.hpp"

namespace tilewright::plan {

struct ConvCopyPlan {
  enum class Kind : std::uint8_t { rows, filter_blocks, pixel_blocks };
  static constexpr int kThreads = 256;    // of a CTA
  static constexpr int kFilterTile = 32;  // outputs and inputs of a CTA of filter_blocks
  static constexpr int kFilterTaps = 4;   // taps of it

  Target target;
  Kind kind = Kind::rows;
  int unit_bytes = 16;  // of a store; for filters, of an element
  /// The number of units that a thread copies. It loads all of them before it stores the first.
  int units() const { return kind == Kind::filter_blocks ? 1 : kind == Kind::rows ? 2 : 4; }
  bool operator==(const ConvCopyPlan&) const = default;
};

/// "rows, 16 bytes"
std::string to_string(const ConvCopyPlan& plan);

ConvCopyPlan plan_conv_copy(const op::ConvCopy& copy, const Target& target);

/// Refuses copies of another kind, those that need narrower stores, and those whose indices exceed 31 bits.
Support check_arguments(const ConvCopyPlan& plan, const op::ConvCopy& copy);

/// The offset at which launch() writes each parameter.
ParameterLayout parameter_layout(const ConvCopyPlan& plan);

/// @pre check_arguments accepted the copy
Launch launch(const ConvCopyPlan& plan, const op::ConvCopy& copy);

/// Bytes that are written.
std::int64_t written_bytes(const op::ConvCopy& copy);

/// Estimated microseconds, including the launch.
double estimate_us(const ConvCopyPlan& plan, const op::ConvCopy& copy);

}  // namespace tilewright::plan
