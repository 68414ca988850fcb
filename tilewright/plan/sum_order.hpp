// The order in which a kernel sums the products of an element of D. It determines the element's bits.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tilewright/arch/limits.hpp"
#include "tilewright/base/support.hpp"
#include "tilewright/op/gemm_view.hpp"
#include "tilewright/plan/design.hpp"

namespace tilewright::plan {

/// How the f32 elements of an operand are rounded to tf32; see docs/decisions/tf32_rounding.md.
enum class Tf32Rounding : std::uint8_t {
  none,     // the operand is not rounded to tf32
  nearest,  // by TMA
  scaled,   // by a multiplication, and truncated by the instruction
};

/// Two kernels with equal orders compute equal bits in a row of D from equal rows of A, equal matrices B and equal
/// inputs of the epilogue. Orders can only be compared if types, math operation, N, K and epilogue are the same. The
/// tile's m and n, stages, clusters, schedules, raster orders and operand paths do not change the order.
struct SumOrder {
  /// Every kernel of the operation gives the same bits, because the sums are integers, nothing is summed, or the
  /// operation says in which order it sums. No other member is set.
  bool is_exact = false;
  arch::MathUnit unit = arch::MathUnit::simt;
  TileShape instruction{1, 1, 1};  // its k is the number of products that it adds at once; n is 0 for wgmma
  /// The A of the instruction is the caller's B'. Products commute, but no measurement shows yet that tensor cores
  /// treat A and B alike. CUDA cores do, and never set it.
  bool exchanges_operands = false;
  Tf32Rounding rounding_a = Tf32Rounding::none, rounding_b = Tf32Rounding::none;  // of the caller's A and B
  std::int64_t padded_k = 0;  // the length of the sum, including the zeros that fill the last tile along K
  int promotion_k = 0;   // products after which an accumulator is added to f32 sums outside the tensor cores; 0: never
  int split_k = 1;       // number of CTAs, or of threads, that sum a part of K each
  int split_k_step = 0;  // with split-K: the parts begin at multiples of this
  int split_k_groups = 1;  // with split-K: the partial sums are added in this many groups, then the groups are added
  /// With split-K: each part has every split_k-th run of split_k_step products, instead of consecutive ones.
  bool takes_turns = false;
  /// For convolutions whose rows of a window are filled up with zeros: the elements of such a row, and the zeros before
  /// its first tap. 0 if the rows follow each other.
  int row_k = 0, row_lead = 0;
  /// For convolutions that sum a number of channels of all taps before the next channels: this number. 0 if the taps
  /// follow each other.
  int channels_of_taps = 0;
  /// For convolutions: the taps of each row of the window are summed in reverse order.
  bool reverses_rows = false;

  bool operator==(const SumOrder&) const = default;
};

/// "wgmma 64x0x16 over 4096, promoted every 128, split_k 4 by 64 in 2 groups"; "exact".
std::string to_string(const SumOrder& order);

/// Refuses an order other than the one that batch_invariant requires.
Support check_order(const SumOrder& order, const SumOrder& required);

/// The order of integer sums, and of calls that read no product.
inline SumOrder exact_order() { return {.is_exact = true}; }

/// Whether the order of a call is exact for every kernel.
bool sums_exactly(const op::GemmView& arguments);

/// K rounded up to whole tiles of `tile_k`.
std::int64_t padded_k(const op::GemmView& arguments, int tile_k);

/// Refuses epilogues whose outputs depend on more than the order of the sums over K: those that sum rounded values
/// along M or N, whose order depends on the tile.
Support check_order_of_epilogue(const op::Epilogue& epilogue);

/// The signature of the problem with the alignments that hold for every M, every row of A at which the problem may
/// begin and every batch count, if the strides of B and the leading dimension of a row-major A stay the same.
op::GemmSignature signature_for_every_m(const op::GemmView& arguments);

}  // namespace tilewright::plan
