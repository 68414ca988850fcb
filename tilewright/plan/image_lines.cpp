#include "tilewright/plan/image_lines.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "tilewright/plan/mma_conv_cost.hpp"
#include "tilewright/plan/signature_checks.hpp"

namespace tilewright::plan::image_lines {
namespace {

/// Elements of one copy, as ImageLines of device/tilewright/conv/image_lines.cuh chooses them.
int copied_elements(const op::OperandView& images) {
  const auto strides =
      static_cast<std::uint64_t>((images.im2col.h.stride | images.im2col.image_stride) * kElementBytes);
  constexpr std::uint64_t kVectorBytes = 16;
  const std::uint64_t bits = images.tensor.address | strides | kVectorBytes;
  return static_cast<int>(bits & (~bits + 1)) / kElementBytes;
}

}  // namespace

Support check_wgrad_signature(const op::GemmSignature& signature) {
  const op::TensorSignature &a = signature.a, &b = signature.b;
  if (a.im2col != op::Im2colAccess::none || b.im2col != op::Im2colAccess::direct ||
      signature.groups != op::GroupedMode::none)
    return refuse("multiplies a gradient by an im2col matrix without divisors").as(RefusalCode::operation);
  if (const Support products = check_half_products(signature); !products) return products;
  if (a.layout != op::MatrixLayout::column_major || a.folded_modes != 0 || a.is_pointer_array)
    return refuse("y must have one stride from pixel to pixel").as(RefusalCode::strides).of("y");
  if (const Support output = check_row_major_output(signature); !output) return output;
  return check_no_other_outputs(signature.epilogue);
}

int lead_of(const op::Im2col& im2col) {
  const std::int64_t window =
      (im2col.w.offset - (im2col.w.tap_step < 0 ? im2col.w.taps - 1 : 0)) * im2col.channels;  // of position 0
  const bool pairs_are_aligned = step_of(im2col) % 2 == 0;
  return pairs_are_aligned ? static_cast<int>(window & 1) : 0;
}

std::int64_t row_k_of(const op::Im2col& im2col) {
  return round_up(lead_of(im2col) + im2col.w.taps * im2col.channels, kGroup);
}

bool has_code(const op::Im2col& im2col, std::int64_t rows) {
  return im2col.channels >= 1 && im2col.channels <= kMaxChannels && row_k_of(im2col) <= kMaxRowK &&
         step_of(im2col) <= kMaxStep && im2col.h.taps >= 1 && im2col.h.taps <= rows;
}

int block_positions(std::int64_t positions, int most) {
  int best = kTile;
  const auto cost = [&](int block) { return ceil_div(positions, block) * (block + kTile); };
  for (int block = kTile; block <= most; block += kTile) {
    if (cost(block) <= cost(best)) best = block;
  }
  return best;
}

int load_clocks(int step, int pair) {
  constexpr int kBanks = 32;
  std::array<int, kBanks> words{};
  for (int lane = 0; lane < kBanks; ++lane)
    words[static_cast<std::size_t>(lane)] = (lane / 4 * step + lane % 4 * pair) / 2;
  std::ranges::sort(words);
  std::array<int, kBanks> words_of_bank{};
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i == 0 || words[i] != words[i - 1]) ++words_of_bank[static_cast<std::size_t>(words[i] % kBanks)];
  }
  return *std::ranges::max_element(words_of_bank);
}

double line_copy_clocks(const op::OperandView& images, double elements, int threads, double ctas) {
  constexpr double kInstructions = 14;
  const int vector = copied_elements(images);
  if (vector > 1) return elements / vector / 32 * kInstructions / mma_conv::kIssuesPerClock;
  // Vectors of 8 elements that begin anywhere pass through registers.
  constexpr double kShiftedInstructions = 60;              // of a vector, in SASS
  constexpr double kLoadClocks = 600, kLoadsTogether = 2;  // the latency of L2 under load; the unrolling of the loop
  const double vectors = elements / kVector;
  return vectors / 32 * kShiftedInstructions / mma_conv::kIssuesPerClock +
         std::ceil(vectors / (threads * kLoadsTogether)) * kLoadClocks / ctas;
}

Support check_window(const op::Im2col& im2col, int step, int taps, int row_k) {
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
