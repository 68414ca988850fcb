// Lines of images in shared memory, from which the families of convolutions with few channels read the elements of
// windows (device/tilewright/conv/image_lines.cuh), and the signatures that their filter gradients compute.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <set>
#include <utility>

#include "tilewright/base/rounding.hpp"
#include "tilewright/base/support.hpp"
#include "tilewright/op/gemm.hpp"
#include "tilewright/op/gemm_view.hpp"

namespace tilewright::plan::image_lines {

inline constexpr int kTile = 16;  // positions of one instruction
inline constexpr int kGroup = 8;  // elements that a row of the window is filled up to a multiple of
inline constexpr int kElementBytes = 2;
inline constexpr int kVector = 16 / kElementBytes;
inline constexpr int kMaxChannels = 8, kMaxRowK = 64, kMaxStep = 64, kMaxPositions = 128;

/// Whether a filter gradient in f16 or bf16, of an im2col matrix without divisors, has this signature. Refused with the
/// reason.
Support check_wgrad_signature(const op::GemmSignature& signature);

/// Elements from the window of a position to that of the next.
inline std::int64_t step_of(const op::Im2col& im2col) { return im2col.w.step * im2col.channels; }

/// Elements of a row of the window before its first tap, which make its address even.
inline int lead_of(const op::Im2col& im2col) {
  const std::int64_t window =
      (im2col.w.offset - (im2col.w.tap_step < 0 ? im2col.w.taps - 1 : 0)) * im2col.channels;  // of position 0
  const bool pairs_are_aligned = step_of(im2col) % 2 == 0;
  return pairs_are_aligned ? static_cast<int>(window & 1) : 0;
}
inline std::int64_t row_k_of(const op::Im2col& im2col) {
  return round_up(lead_of(im2col) + im2col.w.taps * im2col.channels, kGroup);
}

/// Whether there is code for a window of the matrix with at most `rows` rows.
inline bool has_code(const op::Im2col& im2col, std::int64_t rows) {
  return im2col.channels >= 1 && im2col.channels <= kMaxChannels && row_k_of(im2col) <= kMaxRowK &&
         step_of(im2col) <= kMaxStep && im2col.h.taps >= 1 && im2col.h.taps <= rows;
}

/// The number of positions in a block of a row: a multiple of 16, at most `most`. It has the least cost, where a block
/// costs its positions and 16 more; of equal costs the longest is taken. stem_conv took twice as long as estimated with
/// blocks of 16 of a row of 361 (H200, 2026-11-28).
inline int block_positions(std::int64_t positions, int most) {
  int best = kTile;
  const auto cost = [&](int block) { return ceil_div(positions, block) * (block + kTile); };
  for (int block = kTile; block <= most; block += kTile) {
    if (cost(block) <= cost(best)) best = block;
  }
  return best;
}

/// Elements of a line in shared memory: of the windows of all positions, and of those before them that are in the same
/// vector of 16 bytes.
constexpr int line_elements(int positions, int step, int row_k) {
  return round_up((positions - 1) * step + row_k + kVector - 1, kVector);
}

/// Clocks of shared memory for one load of a word by each lane, where lane 4*i + j reads word (i * step + j * pair) /
/// 2: the most words that lanes read from one bank.
inline int load_clocks(int step, int pair) {
  constexpr int kBanks = 32;
  std::array<std::set<int>, kBanks> words;
  for (int lane = 0; lane < kBanks; ++lane) {
    const int word = (lane / 4 * step + lane % 4 * pair) / 2;
    words[static_cast<std::size_t>(word % kBanks)].insert(word);
  }
  std::size_t most = 0;
  for (const std::set<int>& bank : words) most = std::max(most, bank.size());
  return static_cast<int>(most);
}

/// Estimated clocks of an SM for copying the lines of a block, which have `elements` elements together, by a CTA of
/// `threads` threads. Lines that begin at any element pass through registers, so that the CTA waits for their loads,
/// while the others of the `ctas` CTAs of the SM work.
double line_copy_clocks(const op::OperandView& images, double elements, int threads, double ctas);

/// Refuses other windows than those of the code, which has `taps` rows of `row_k` elements, and lines of images whose
/// pixels do not follow each other.
inline Support check_window(const op::Im2col& im2col, int step, int taps, int row_k) {
  if (im2col.channels < 1 || im2col.channels > kMaxChannels)
    return refuse("x must have from 1 to {} channels, got {}", kMaxChannels, im2col.channels).as(RefusalCode::shape);
  if (im2col.w.stride != im2col.channels)
    return refuse("the pixels of a row must follow each other: {} channels, but {} elements from one to the next",
                  im2col.channels, im2col.w.stride)
        .as(RefusalCode::strides);
  for (const auto& [what, axis] : {std::pair{"height", &im2col.h}, {"width", &im2col.w}}) {
    if (axis->taps > 1 && std::abs(axis->tap_step) != 1)
      return refuse("the dilation along the {} must be 1, got {}", what, std::abs(axis->tap_step))
          .as(RefusalCode::shape);
  }
  if (const std::int64_t needed = step_of(im2col); needed != step)
    return refuse("the code steps {} elements from one position to the next, got {}", step, needed)
        .as(RefusalCode::shape);
  if (im2col.h.taps != taps || row_k_of(im2col) != row_k) {
    return refuse("the code has {} rows of {} elements of a window, got {} rows of {}", taps, row_k, im2col.h.taps,
                  row_k_of(im2col))
        .as(RefusalCode::shape);
  }
  constexpr std::int64_t kLimit = std::int64_t{1} << 30;
  const std::int64_t reach = (im2col.w.extent + im2col.w.positions * im2col.w.step + std::abs(im2col.w.offset) +
                              im2col.w.taps + kMaxPositions * im2col.w.step) *
                             im2col.channels;
  if (reach > kLimit)
    return refuse("a line of x must have at most {} elements, got {}", kLimit, reach).as(RefusalCode::shape);
  return {};
}

}  // namespace tilewright::plan::image_lines
