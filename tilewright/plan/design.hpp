// A design says how a problem is computed. It holds every choice that a kernel family offers, as plain numbers that a
// person can write down.
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

/// How the consumer warpgroups of a persistent CTA share its work (sm_90). With `cooperative` they compute one tile
/// together; with `ping_pong` each computes its own tile, so that one multiplies while another runs its epilogue.
enum class Schedule : std::uint8_t { cooperative, ping_pong };

std::string_view name(Schedule schedule);
std::optional<Schedule> parse_schedule(std::string_view text);

/// The instruction that multiplies, for example {16,8,16} f16 f16 f32 on tensor cores or {1,1,1} f32 f32 f32 on CUDA
/// cores.
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
  std::array<int, 3> threadblock_shape{128, 128, 8};  // m, n, k of one mainloop step of a CTA
  int stages = 2;                                     // shared-memory stages of the mainloop pipeline
  std::array<int, 3> warp_count{2, 4, 1};             // warps along m, n, k that multiply; producers are not counted
  std::array<int, 3> cluster_shape{1, 1, 1};          // CTAs along m, n that share operands by multicast (sm_90)
  Schedule schedule = Schedule::cooperative;
  /// Computes D' = B' A' although D is row-major, so that the m of the instruction lies along n (sm_90).
  bool swaps_operands = false;
  MathInstruction math_instruction;

  int threads() const { return 32 * warp_count[0] * warp_count[1] * warp_count[2]; }
  bool operator==(const TileDescription&) const = default;
};

/// The raster order in which CTAs take the tiles of the problem as computed. By default, groups of `width` tile columns
/// are walked row by row, so that their tiles share rows of A in L2 (CUTLASS: IdentitySwizzle1, 2, 4, 8). With
/// `groups_rows`, groups of `width` tile rows are walked column by column.
struct Raster {
  int width = 1;
  bool groups_rows = false;

  /// Whether consecutive tiles follow each other along M and so share B.
  bool walks_along_m() const { return groups_rows == (width > 1); }
  bool operator==(const Raster&) const = default;
};

struct Design {
  Target target;
  TileDescription tile;
  Raster raster;
  /// Number of CTAs that compute one tile together. Each computes a part of K, and they reduce their partial sums
  /// through the workspace (sm_90).
  int split_k = 1;
  /// Operands that TMA cannot load, or whose major mode wgmma cannot read, are first copied to the workspace (sm_90).
  /// If false, the producer uses plain loads instead of TMA, and wgmma takes A from registers.
  bool repacks_operands = false;

  bool operator==(const Design&) const = default;
};

/// "sm_80 simt 1x1x1 128x128x8 multiply_add s4 w2x4x1 r1"
std::string to_string(const Design& design);

}  // namespace tilewright::plan
