#include "tilewright/plan/sm90/operand.hpp"

#include <algorithm>
#include <numeric>

#include "tilewright/layout/algebra.hpp"
#include "tilewright/plan/sm90/repacking.hpp"

namespace tilewright::plan {
namespace {

/// Bytes of the narrower plain load, which is the width of a shared-memory bank; the wider one moves twice as many.
constexpr int kPlainLoadBytes = 4;

/// The constant step of a layout of TMA boxes or CTAs. The step is 0 if the layout has one element; a layout that no
/// constant step describes is refused.
Result<TmaStep> step_of(char role, const layout::Layout& coordinates, const layout::Layout& offsets, int bits) {
  const layout::Layout along = layout::coalesce(coordinates);
  const layout::Layout to = layout::coalesce(offsets);
  TmaStep step;
  if (layout::size(along) == 1) return step;
  if (!along.stride().is_leaf() || !to.stride().is_leaf()) {
    return refuse("{}: the TMA boxes at {} are not a constant step apart", role, layout::to_string(along))
        .as(RefusalCode::design);
  }
  (along.stride().basis()[0] == 0 ? step.contiguous : step.strided) = along.stride().basis_value();
  step.smem_bytes = to.stride().value() * bits / 8;
  return step;
}

/// Plans the TMA boxes of the operand.
Support plan_boxes(TmaOperandPlan& operand, char role) {
  const int element_bits = bits(operand.element);
  // A tensor of two tiles along each mode represents all tensors, because launch() sets the extents and strides of the
  // tensor map.
  const std::int64_t mn = 2 * operand.mn;
  const std::int64_t k = 2 * operand.tap_k(operand.k);
  const layout::IntTuple stride =
      operand.major == arch::Major::k ? layout::IntTuple{k, 1, mn * k} : layout::IntTuple{1, mn, mn * k};
  Result<arch::TmaCopy> copy = arch::make_tma_copy({.global = layout::Layout({mn, k, 2}, stride),
                                                    .element = operand.element,
                                                    .smem = operand.smem,
                                                    .tile = {operand.mn, operand.tap_k(operand.k)},
                                                    .multicast = operand.shares});
  if (!copy) return refuse("{}: {}", role, copy.reason()).as(RefusalCode::design);
  operand.map = copy->map;
  operand.boxes = static_cast<int>(arch::box_count(*copy));
  const Result<TmaStep> box = step_of(role, copy->box_coordinate, copy->box_offset, element_bits);
  if (!box) return box.refusal();
  operand.box = *box;
  const Result<TmaStep> share = step_of(role, copy->slice_coordinate, copy->slice_offset, element_bits);
  if (!share) return share.refusal();
  operand.share = *share;
  return {};
}

/// Plans the one TMA box of an operand whose pixels taps share. The rows for tap t begin t * distance() rows behind
/// those of the first, so that elements of several taps are the same ones in shared memory.
Support plan_pixel_box(TmaOperandPlan& operand, char role) {
  if (operand.shares > 1)
    return refuse("{}: the pixels that taps share are not multicast", role).as(RefusalCode::design);
  const SharedPixels& shared = operand.shared_pixels;
  const int row = shared.are_columns ? operand.tap_mn(operand.mn) : operand.tap_k(operand.k);
  const Result<TensorMapType> type = tensor_map_type(operand.element);
  if (!type) return type.refusal();
  operand.map = {};
  operand.map.type = *type;
  operand.map.box = {static_cast<std::uint32_t>(row),
                     static_cast<std::uint32_t>(shared.pixels(shared.are_columns ? operand.k : operand.mn)), 1};
  operand.map.swizzle = swizzle_of_width(operand.row_bytes());
  return {};
}

/// The tile of all taps of a stage, from that of one tap. If the step is negative, the first of these taps is the
/// window's last, which meets the first pixels.
layout::ComposedLayout with_taps(const layout::ComposedLayout& tap, const TmaOperandPlan& operand) {
  using layout::IntTuple;
  using layout::Layout;
  const SharedPixels& shared = operand.shared_pixels;
  const auto apart = [&](std::int64_t elements) { return Layout(shared.taps, elements); };
  if (shared.are_columns) {
    if (!operand.is_pixels) return tap;
    const std::int64_t row = operand.tap_mn(operand.mn);
    const Layout columns = layout::concatenate({tap.layout.mode(0), apart(shared.distance() * row)});
    return {tap.swizzle, tap.offset, layout::concatenate({columns, tap.layout.mode(1)})};
  }
  const std::int64_t row = operand.tap_k(operand.k);  // the filter's taps follow each other in shared memory
  const Layout k =
      layout::concatenate({tap.layout.mode(1), apart((operand.is_pixels ? shared.distance() : operand.mn) * row)});
  return {tap.swizzle, tap.offset, layout::concatenate({tap.layout.mode(0), k})};
}

/// Bytes per plain load of a thread: 8 or 4; 0 if TMA loads the operand.
int plain_load_bytes(int alignment) {
  if (alignment >= kTmaBytes) return 0;
  return (alignment >= 2 * kPlainLoadBytes ? 2 : 1) * kPlainLoadBytes;
}

/// Checks that the producer can load the operand in whole passes of plain loads.
Support plan_plain_loads(TmaOperandPlan& operand, char role) {
  if (operand.shares > 1) {
    return refuse("{} is aligned to {} bytes, TMA needs {}: plain loads cannot multicast to {} CTAs", role,
                  operand.alignment_bytes, kTmaBytes, operand.shares)
        .as(RefusalCode::alignment);
  }
  const int lines = operand.major == arch::Major::k ? operand.mn : operand.k;
  if (lines % operand.lines_of_pass() != 0) {
    return refuse("{}: a pass of plain loads covers {} lines, which do not divide the tile's {}", role,
                  operand.lines_of_pass(), lines)
        .as(RefusalCode::design);
  }
  return {};
}

}  // namespace

int alignment_bytes(const op::TensorSignature& operand) {
  return std::min(kTmaBytes, operand.alignment * bytes(operand.element));
}

OperandPath path_of(const op::TensorSignature& operand, arch::Major major, bool repacks, op::GroupedMode groups) {
  OperandPath path{.major = major};
  const bool is_copied = repacks && must_be_repacked(operand, major == arch::Major::k);
  path.is_im2col = operand.im2col != op::Im2colAccess::none && !is_copied;
  path.max_row_bytes = max_row_bytes(operand);
  path.is_folded = operand.folded_modes != 0;
  if (path.is_im2col || path.is_folded) return path;
  path.is_repacked = is_copied;
  path.is_transposed = path.is_repacked && major == arch::Major::mn && bytes(operand.element) != 2;
  if (path.is_transposed) path.major = arch::Major::k;
  if (!path.is_repacked) path.plain_load_bytes = plain_load_bytes(alignment_bytes(operand));
  path.is_pointer_array = operand.is_pointer_array;
  path.ends_along_k = op::ends_along_k(groups);
  path.is_independent = groups == op::GroupedMode::independent;
  path.makes_tensor_maps =
      (operand.is_pointer_array || path.ends_along_k) && !path.is_repacked && !path.uses_plain_loads();
  return path;
}

SharedPixels shared_pixels_of(const op::GemmSignature& signature) {
  const bool are_columns = signature.b.shared_taps > 0;
  const op::TensorSignature& pixels = are_columns ? signature.b : signature.a;
  if (pixels.shared_taps == 0) return {};
  return {.taps = pixels.shared_taps, .step = pixels.shared_step, .are_columns = are_columns};
}

bool has_tap_columns(const op::GemmSignature& signature) {
  // The filter of a forward convolution has padded taps if its pixels have.
  return signature.b.shared_taps > 0 || (signature.b.has_padded_taps && !signature.a.has_padded_taps);
}

int max_row_bytes(const op::TensorSignature& operand) {
  return operand.im2col == op::Im2colAccess::none ? kMaxRowBytes
                                                  : std::min(operand.tap_row * bytes(operand.element), kMaxRowBytes);
}

int row_bytes(arch::Major major, int element_bytes, int mn, int k, int longest) {
  return std::gcd((major == arch::Major::k ? k : mn) * element_bytes, longest);
}

Support check_slices(arch::Major major, int row_bytes, int mn, int k, int shares) {
  constexpr int kSliceAlignment = 128;
  const int lines = major == arch::Major::k ? mn : k;
  if (shares == 1 || (lines % shares == 0 && lines / shares * row_bytes % kSliceAlignment == 0)) return {};
  return refuse("{} CTAs cannot multicast equal slices of a multiple of {} bytes of {} rows of {} bytes", shares,
                kSliceAlignment, lines, row_bytes)
      .as(RefusalCode::design);
}

Support check_boxes(arch::Major major, int row_bytes, int element_bytes, int mn, int k) {
  constexpr int kMostLines{kMaxBoxExtent};
  const auto [lines, line] = major == arch::Major::k ? std::pair{mn, k} : std::pair{k, mn};
  if (lines <= kMostLines || line * element_bytes <= row_bytes) return {};
  return refuse(
             "TMA boxes of at most {} lines of {} bytes do not follow each other in one direction in a tile of {} "
             "lines of {} bytes",
             kMostLines, row_bytes, lines, line * element_bytes)
      .as(RefusalCode::design);
}

int plain_load_reads(int alignment_bytes) {
  if (alignment_bytes >= kTmaBytes) return 0;
  return alignment_bytes >= kPlainLoadBytes ? 1 : 2;
}

Result<TmaOperandPlan> plan_operand(char role, const op::TensorSignature& tensor, DType multiplied,
                                    const OperandPath& path, int tile_mn, int tile_k, int shares) {
  const int element_bits = bits(tensor.element);
  TmaOperandPlan operand;
  static_cast<OperandPath&>(operand) = path;
  operand.element = multiplied;
  operand.mn = tile_mn;
  operand.k = tile_k;
  operand.shares = shares;
  operand.alignment_bytes = alignment_bytes(tensor);
  const Result<arch::SwizzleMode> mode =
      arch::widest_swizzle(path.major, element_bits, path.tap_mn(tile_mn), path.tap_k(tile_k), path.max_row_bytes);
  if (!mode) return refuse("{}: {}", role, mode.reason()).as(RefusalCode::design);
  Result<layout::ComposedLayout> smem =
      arch::smem_tile({path.major, *mode, element_bits, path.tap_mn(tile_mn), path.tap_k(tile_k)});
  if (!smem) return refuse("{}: {}", role, smem.reason()).as(RefusalCode::design);
  operand.smem = *std::move(smem);
  const Support planned = path.uses_plain_loads() ? plan_plain_loads(operand, role)
                          : path.is_pixels        ? plan_pixel_box(operand, role)
                                                  : plan_boxes(operand, role);
  if (!planned) return planned.refusal();
  if (path.shared_pixels.are_shared()) operand.smem = with_taps(operand.smem, operand);
  return operand;
}

}  // namespace tilewright::plan
