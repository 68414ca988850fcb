// A design says how a problem is computed. Each kernel family has a struct with the choices that it offers, as plain
// numbers that a person can write down.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "tilewright/base/support.hpp"
#include "tilewright/base/target.hpp"
#include "tilewright/op/gemm_signature.hpp"

namespace tilewright::plan {

enum class OpClass : std::uint8_t { simt, tensor_op };

std::string_view name(OpClass op_class);

/// How the consumer warpgroups of a persistent CTA share its work (sm_90). With `cooperative` they compute one tile
/// together; with `ping_pong` each computes its own tile, so that one multiplies while another runs its epilogue.
enum class Schedule : std::uint8_t { cooperative, ping_pong };

std::string_view name(Schedule schedule);
std::optional<Schedule> parse_schedule(std::string_view text);

/// The extents of a CTA tile, a warp tile or an instruction.
struct TileShape {
  int m = 0, n = 0, k = 0;
  bool operator==(const TileShape&) const = default;
};

/// The raster order in which CTAs take the tiles of D. By default, groups of `width` tile columns are walked row by
/// row, so that their tiles share rows of A in L2 (CUTLASS: IdentitySwizzle1, 2, 4, 8). With `along_n`, groups of
/// `width` tile rows are walked column by column; of width 1 these are rows, one after another (CUTLASS:
/// HorizontalSwizzle). As in CUTLASS, a group of 8 is 4 wide if there are fewer than 6 tiles across. The matrices of a
/// batch follow each other. Without split-K, a CTA of simt_gemm and sm80_gemm computes the tile of its number. Groups
/// of CTAs that split K, and the clusters of sm90_gemm, are persistent: they take tiles, or groups of tiles of the
/// cluster's size, in this order, round-robin.
struct Raster {
  int width = 1;
  bool along_n = false;

  /// Whether consecutive tiles follow each other along M and so share B.
  bool walks_along_m() const { return along_n == (width > 1); }
  /// The same order in the transposed problem.
  Raster transposed() const { return {width, !along_n}; }
  bool operator==(const Raster&) const = default;
};

/// The choices that every GEMM family offers. All shapes refer to the caller's problem.
struct GemmTiling {
  Target target;
  TileShape tile{128, 128, 8};   // of a CTA; k is that of one mainloop iteration
  int stages = 2;                // shared-memory stages of the mainloop pipeline
  int warps_m = 2, warps_n = 4;  // math warps; producer warps are not counted
  Raster raster;
  /// Number of CTAs that compute one tile together. Each computes a part of K, and they sum their partial results
  /// through the workspace.
  int split_k = 1;
  /// With split_k: the CTAs that compute the parts of a tile need not work at once. Each adds its part to the sum of
  /// the parts before it, and the last one stores the tile. CTAs take parts as they become free.
  bool splits_in_turn = false;

  bool operator==(const GemmTiling&) const = default;
};

/// simt_gemm: multiply-adds on CUDA cores.
struct SimtGemmDesign : GemmTiling {
  bool operator==(const SimtGemmDesign&) const = default;
};

/// sm80_gemm: mma.sync with cp.async.
struct Sm80GemmDesign : GemmTiling {
  TileShape instruction{16, 8, 16};  // an mma.sync shape for the problem's types
  bool operator==(const Sm80GemmDesign&) const = default;
};

/// sm90_gemm: wgmma with TMA. The instruction follows from the tile and the types.
struct Sm90GemmDesign : GemmTiling {
  int cluster_m = 1, cluster_n = 1;  // CTAs of a cluster, which share operands by multicast
  Schedule schedule = Schedule::cooperative;
  /// Computes D' = B' A' although D is row-major, so that the m of the instruction lies along n.
  bool swaps_operands = false;
  /// Operands that TMA cannot load, or whose major mode wgmma cannot read, are first copied to the workspace. If false,
  /// the producer uses plain loads instead of TMA, and wgmma takes A from registers.
  bool repacks_operands = false;
  /// With repacks_operands: of the problem as computed, only B is repacked. A, which is contiguous along M, goes
  /// through registers.
  bool repacks_only_b = false;
  bool operator==(const Sm90GemmDesign&) const = default;
};

/// The instructions that bring operands to shared memory and multiply them there.
enum class AtomMix : std::uint8_t {
  tma_wgmma,           // cp.async.bulk.tensor; wgmma with both operands in shared memory
  cp_async_wgmma,      // cp.async; the same
  tma_mma,             // cp.async.bulk.tensor; ldmatrix and mma.sync
  tma_register_wgmma,  // cp.async.bulk.tensor; ldmatrix of A, and wgmma with A in registers
};

/// "tma_wgmma"
std::string_view name(AtomMix mix);
std::optional<AtomMix> parse_mix(std::string_view text);

/// Kernels written as programs (program/gemm.hpp): persistent, with one warpgroup that copies. The instruction follows
/// from the mix, the tile and the types.
struct ProgramGemmDesign : GemmTiling {
  AtomMix mix = AtomMix::tma_wgmma;
  int cluster_m = 1, cluster_n = 1;  // CTAs of a cluster, which share B or A by multicast; one of them is 1
  bool operator==(const ProgramGemmDesign&) const = default;
};

/// The choices of all families in one struct, as PyCUTLASS and command lines spell a design. It is also what an
/// author's kernel states about itself. The default of each field is what a family without that choice does.
struct FlatDesign : GemmTiling {
  int warps_k = 1;
  TileShape instruction{1, 1, 1};
  OpClass op_class = OpClass::simt;
  TileShape cluster{1, 1, 1};
  Schedule schedule = Schedule::cooperative;
  bool swaps_operands = false;
  bool repacks_operands = false;
  bool repacks_only_b = false;
  std::optional<AtomMix> mix = std::nullopt;
  bool operator==(const FlatDesign&) const = default;
};

using Design = std::variant<FlatDesign, SimtGemmDesign, Sm80GemmDesign, Sm90GemmDesign, ProgramGemmDesign>;

const GemmTiling& tiling(const Design& design);
GemmTiling& tiling(Design& design);

/// The design of one family that `design` holds, or that its FlatDesign spells for a problem with this signature. A
/// choice that the family does not offer is refused, and so is the design of another family.
Result<SimtGemmDesign> simt_gemm_design(const Design& design, const op::GemmSignature& signature);
Result<Sm80GemmDesign> sm80_gemm_design(const Design& design, const op::GemmSignature& signature);
Result<Sm90GemmDesign> sm90_gemm_design(const Design& design, const op::GemmSignature& signature);
Result<ProgramGemmDesign> program_gemm_design(const Design& design, const op::GemmSignature& signature);

/// Whether a kernel computes the transposed problem D' = B' A'. It does so for a D whose rows are not contiguous
/// (column-major or row-interleaved), or, with `swaps_operands`, for one whose rows are. A gated epilogue pairs columns
/// of A*B, which would be rows of the transposed problem, so its problem is never transposed and plan_gemm_tile()
/// refuses to swap its operands.
bool computes_transposed(const op::GemmSignature& signature, bool swaps_operands = false);

/// The instruction of a design of sm90_gemm: wgmma's m is 64, its n is that of the tile as computed, and its k is 32
/// bytes of A.
TileShape wgmma_shape(const Sm90GemmDesign& design, const op::GemmSignature& signature);

/// The inverse of the functions above. `signature` is null for problems that are no GEMM, whose designs are flat.
FlatDesign flatten(const Design& design, const op::GemmSignature* signature);

/// "sm_80 16x8x16 128x128x32 s4 w2x2 r8"
std::string to_string(const Design& design);

}  // namespace tilewright::plan
