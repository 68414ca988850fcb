// Lines of images in shared memory, from which the families of convolutions with few channels read the elements of
// windows (device/tilewright/conv/image_lines.cuh), and the signatures that their filter gradients compute.
#pragma once

#include <cstdint>

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
int lead_of(const op::Im2col& im2col);
/// Elements of a row of the window with its lead, filled up.
std::int64_t row_k_of(const op::Im2col& im2col);

/// Whether there is code for a window of the matrix with at most `rows` rows.
bool has_code(const op::Im2col& im2col, std::int64_t rows);

/// The number of positions in a block of a row: a multiple of 16, at most `most`. It has the least cost, where a block
/// costs its positions and 16 more; of equal costs the longest is taken. stem_conv took twice as long as estimated with
/// blocks of 16 of a row of 361 (H200, 2026-11-28).
int block_positions(std::int64_t positions, int most);

/// Elements of a line in shared memory: of the windows of all positions, and of those before them that are in the same
/// vector of 16 bytes.
constexpr int line_elements(int positions, int step, int row_k) {
  return round_up((positions - 1) * step + row_k + kVector - 1, kVector);
}

/// Clocks of shared memory for one load of a word by each lane, where lane 4*i + j reads word (i * step + j * pair) /
/// 2: the most words that lanes read from one bank.
int load_clocks(int step, int pair);

/// Estimated clocks of an SM for copying the lines of a block, which have `elements` elements together, by a CTA of
/// `threads` threads. Lines that begin at any element pass through registers, so that the CTA waits for their loads,
/// while the others of the `ctas` CTAs of the SM work.
double line_copy_clocks(const op::OperandView& images, double elements, int threads, double ctas);

/// Refuses other windows than those of the code, which has `taps` rows of `row_k` elements, and lines of images whose
/// pixels do not follow each other.
Support check_window(const op::Im2col& im2col, int step, int taps, int row_k);

}  // namespace tilewright::plan::image_lines
