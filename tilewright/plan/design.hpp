// How a problem is computed: every choice a kernel family offers, as plain numbers a person can write down.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "tilewright/base/dtype.hpp"
#include "tilewright/base/target.hpp"
#include "tilewright/op/gemm.hpp"

namespace tilewright::plan {

enum class OpClass : std::uint8_t { simt, tensor_op };

std::string_view name(OpClass op_class);

/// How the warpgroups of a persistent CTA share its work (sm_90): one tile together, or tiles in turn, so that one
/// multiplies while another stores.
enum class Schedule : std::uint8_t { cooperative, ping_pong };

std::string_view name(Schedule schedule);
std::optional<Schedule> parse_schedule(std::string_view text);

/// The instruction that multiplies: {16,8,16} f16 f16 f32 on tensor cores, {1,1,1} f32 f32 f32 on CUDA cores.
struct MathInstruction {
  std::array<int, 3> shape{1, 1, 1};  // m, n, k
  DType element_a = DType::f32;
  DType element_b = DType::f32;
  DType element_accumulator = DType::f32;
  OpClass op_class = OpClass::simt;
  op::MathOperation math_operation = op::MathOperation::multiply_add;

  bool operator==(const MathInstruction&) const = default;
};

struct TileDescription {
  std::array<int, 3> threadblock_shape{128, 128, 8};  // m, n, k of one CTA's step
  int stages = 2;                                     // shared-memory buffers in flight
  std::array<int, 3> warp_count{2, 4, 1};             // warps along m, n, k; those that multiply
  std::array<int, 3> cluster_shape{1, 1, 1};          // CTAs along m, n that share operands (sm_90)
  Schedule schedule = Schedule::cooperative;
  bool swaps_operands = false;  // computes D' = B' A' although D is row-major: the instruction's m lies along n (sm_90)
  MathInstruction math_instruction;

  int threads() const { return 32 * warp_count[0] * warp_count[1] * warp_count[2]; }
  bool operator==(const TileDescription&) const = default;
};

/// In which order CTAs take tiles of the problem as computed: groups of `width` tile columns are walked row by row, so
/// that they share rows of A in L2 (IdentitySwizzle1, 2, 4, 8); or groups of `width` tile rows column by column.
struct Raster {
  int width = 1;
  bool groups_rows = false;

  /// Whether tiles that follow each other lie along M, and share B.
  bool walks_along_m() const { return groups_rows == (width > 1); }
  bool operator==(const Raster&) const = default;
};

struct Design {
  Target target;
  TileDescription tile;
  Raster raster;
  int split_k = 1;  // CTAs that compute a tile together, each a slice of K, and sum in a workspace (sm_90)
  /// Operands that TMA cannot reach, or that wgmma does not read as they lie, are first copied to a workspace (sm_90);
  /// else threads gather them, or A goes through registers.
  bool repacks_operands = false;

  bool operator==(const Design&) const = default;
};

/// "sm_80 simt 1x1x1 128x128x8 multiply_add s4 w2x4x1 r1"
std::string to_string(const Design& design);

}  // namespace tilewright::plan
