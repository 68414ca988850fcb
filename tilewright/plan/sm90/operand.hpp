// The path of an sm90_gemm operand from global to shared memory, and the layout of its tile there.
#pragma once

#include <cstdint>
#include <optional>

#include "tilewright/arch/tma_copy.hpp"
#include "tilewright/arch/wgmma_fragment.hpp"
#include "tilewright/arch/wgmma_tile.hpp"
#include "tilewright/base/rounding.hpp"
#include "tilewright/base/support.hpp"
#include "tilewright/base/tensor_map.hpp"
#include "tilewright/op/gemm.hpp"

namespace tilewright::plan {

inline constexpr int kWgmmaM = 64;        // rows of one wgmma
inline constexpr int kTmaBytes = 16;      // alignment in bytes that TMA requires of addresses and strides
inline constexpr int kMaxRowBytes = 128;  // width of the widest swizzle, which limits a row of a TMA box

/// The step from one TMA box to the next, or from one multicasting CTA's slice to the next: the distance in the modes
/// of the tensor map and in shared memory.
struct TmaStep {
  std::int64_t contiguous = 0, strided = 0;  // elements of the tensor
  std::int64_t smem_bytes = 0;
  bool operator==(const TmaStep&) const = default;
};

/// The taps of a row of the window that are multiplied from one stage, which has their pixels once. They are parts of
/// the stage's K, for each of which it has elements of the filter (op/shared_pixels.hpp), or columns of the tile
/// (op/tap_columns.hpp).
struct SharedPixels {
  int taps = 1;
  int step = 0;  // pixels from those of one tap to those of the next; negative in dgrad, and in other passes
                 // with ConvMode::convolution
  bool are_columns = false;  // the taps are columns of the tile

  bool are_shared() const { return taps > 1; }
  int distance() const { return step < 0 ? -step : step; }
  /// The pixels of a stage for a number of positions, as many as fill the rows of the swizzle's pattern.
  int pixels(int positions) const {
    constexpr int kPatternRows = 8;
    return round_up(positions + (taps - 1) * distance(), kPatternRows);
  }
  /// The length of a stage along K for each tap of which it has elements.
  int tap_k(int k) const { return are_columns ? k : k / taps; }
  /// The elements of a stage of the pixels, of which a tile has `mn` rows or columns.
  int elements(int mn, int k) const {
    if (!are_shared()) return mn * k;
    return are_columns ? pixels(k) * (mn / taps) : pixels(mn) * (k / taps);
  }
  bool operator==(const SharedPixels&) const = default;
};
SharedPixels shared_pixels_of(const op::GemmSignature& signature);

/// Whether the columns of the problem are padded or share pixels, so that D is stored tap by tap; see
/// op/tap_columns.hpp.
bool has_tap_columns(const op::GemmSignature& signature);

/// The path of an operand to shared memory: TMA, TMA from a repacked copy, or plain loads.
struct OperandPath {
  arch::Major major = arch::Major::k;  // major mode of the tile in shared memory, and of the repacked copy if any
  int plain_load_bytes = 0;            // bytes per plain load of a thread if TMA cannot load the operand; else 0
  bool is_repacked = false;            // the operand is copied first; see plan/sm90/repacking.hpp
  bool is_transposed = false;          // repacking transposes the operand from MN-major to K-major
  bool is_pointer_array = false;
  bool is_im2col = false;            // loaded by TMA in im2col mode; see plan/sm90/im2col.hpp
  bool has_row_classes = false;      // with an im2col matrix for each class of rows; see plan/sm90/row_classes.hpp
  int max_row_bytes = kMaxRowBytes;  // of a row of a TMA box; fewer if a tap of an im2col matrix has few channels
  SharedPixels shared_pixels = {};   // of both operands; the same for A and B
  bool is_pixels = false;            // this operand is the pixels; the other is the filter
  bool is_folded = false;            // loaded by TMA through a map of five modes; see plan/sm90/folded.hpp
  bool ends_along_k = false;         // groups end along K, and do not differ otherwise
  bool is_independent = false;       // groups have matrices with extents and leading dimensions of their own
  /// TMA loads the matrices of a pointer array, of independent groups, or of groups that end along K, through tensor
  /// maps that CTAs make.
  bool makes_tensor_maps = false;

  bool uses_plain_loads() const { return plain_load_bytes != 0; }
  /// The extents that TMA loads for each tap of which a stage has elements, of a tile of `mn` rows or columns.
  int tap_k(int k) const { return shared_pixels.tap_k(k); }
  int tap_mn(int mn) const { return is_pixels && shared_pixels.are_columns ? mn / shared_pixels.taps : mn; }
  bool operator==(const OperandPath&) const = default;
};

/// One operand's tile: how TMA boxes or plain loads bring it to shared memory, and how wgmma reads it there, through
/// descriptors or as fragments that the consumer threads load to registers.
struct TmaOperandPlan : OperandPath {
  DType element = DType::f16;
  int mn = 0, k = 0;            // extents of the tile
  layout::ComposedLayout smem;  // (mn, k) -> offset in elements
  TensorMap map;                // modes: contiguous, strided, batch; launch() sets the tensor's address and extents
  int shares = 1;               // CTAs of a cluster that need the tile; each multicasts one slice of every box
  int boxes = 1;                // TMA boxes that one CTA loads per stage
  TmaStep box, share;
  int alignment_bytes = 16;
  arch::WgmmaOperand wgmma;  // the descriptor; unused if `fragments` is set
  /// The loads of A's fragments to registers, set if wgmma cannot read A's layout from shared memory.
  std::optional<arch::FragmentLoads> fragments;

  /// Swizzle width in bytes, which is the length of a contiguous row in shared memory.
  int row_bytes() const { return arch::width_bytes(*arch::swizzle_mode(smem.swizzle, bits(element))); }
  /// Number of lines, each contiguous in global memory, that one pass of the producer warpgroup covers when it loads
  /// the tile with plain loads.
  int lines_of_pass() const { return lines_of_pass(plain_load_bytes, row_bytes()); }
  static int lines_of_pass(int plain_load_bytes, int row_bytes) {
    return kProducerThreads * plain_load_bytes / row_bytes;
  }
  /// Number of such passes per tile; 0 if TMA loads the operand.
  int passes() const { return uses_plain_loads() ? tile_bytes() / (kProducerThreads * plain_load_bytes) : 0; }
  /// The taps of which a stage has elements of the operand: 1 if it has pixels that they share, or is not the filter.
  int loaded_taps() const { return is_pixels || shared_pixels.are_columns ? 1 : shared_pixels.taps; }
  int tap_bytes() const { return (is_pixels ? shared_pixels.elements(mn, k) : mn * tap_k(k)) * bits(element) / 8; }
  int tile_bytes() const { return loaded_taps() * tap_bytes(); }
  bool operator==(const TmaOperandPlan&) const = default;

  static constexpr int kProducerThreads = 128;
};

/// Alignment of the operand's lines in bytes, at most 16. TMA can load operands that are aligned to 16 bytes; others
/// need plain loads or repacking.
int alignment_bytes(const op::TensorSignature& operand);

/// The path of an operand: it is repacked if `repacks` is set and must_be_repacked() holds; otherwise TMA loads it if
/// its alignment allows, and plain loads do if not.
OperandPath path_of(const op::TensorSignature& operand, arch::Major major, bool repacks, op::GroupedMode groups);

/// Length in bytes of the longest row of a TMA box: 128, or that of a tap's row of an im2col matrix.
int max_row_bytes(const op::TensorSignature& operand);

/// Length in bytes of a contiguous row of an operand's tile, limited to `longest`: a power of two.
int row_bytes(arch::Major major, int element_bytes, int mn, int k, int longest);

/// How often the producer reads each byte of an operand of this alignment with plain loads: 0 if TMA loads it, 1, or 2
/// if the alignment is below 4 bytes and the stored words straddle words of global memory.
int plain_load_reads(int alignment_bytes);

/// Refuses a multicast by `shares` CTAs, each of which loads an equal slice of a tile of rows of `row_bytes`: a slice
/// begins at a multiple of 128 bytes in shared memory.
Support check_slices(arch::Major major, int row_bytes, int mn, int k, int shares);

/// Refuses a tile of rows of `row_bytes` whose TMA boxes follow each other both along the rows and across them: more
/// than 256 lines, the longest extent of a box, of more than one row each. plan_operand() enumerates them with one
/// step.
Support check_boxes(arch::Major major, int row_bytes, int element_bytes, int mn, int k);

/// Plans everything except `wgmma` and `fragments`. `role` is 'A' or 'B' and appears in refusals. `shares` is the
/// number of CTAs of a cluster that need the same tile.
Result<TmaOperandPlan> plan_operand(char role, const op::TensorSignature& tensor, DType multiplied,
                                    const OperandPath& path, int tile_mn, int tile_k, int shares);

}  // namespace tilewright::plan
