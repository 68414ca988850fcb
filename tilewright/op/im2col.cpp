#include "tilewright/op/im2col.hpp"

#include <cstdlib>
#include <numeric>
#include <utility>
#include <vector>

namespace tilewright::op {

bool Im2colAxis::is_identity() const {
  return taps == 1 && step == 1 && offset == 0 && divisor == 1 && positions == extent;
}

std::optional<std::int64_t> Im2colAxis::coordinate(std::int64_t position, std::int64_t tap) const {
  const std::int64_t multiple = position * step + tap * tap_step + offset;
  if (multiple < 0 || multiple % divisor != 0 || multiple / divisor >= extent) return std::nullopt;
  return multiple / divisor;
}

std::optional<std::int64_t> Im2col::offset(std::int64_t row, std::int64_t column) const {
  const std::int64_t channel = column % columns_of_tap(), tap = column / columns_of_tap();
  if (channel >= channels) return std::nullopt;
  const std::int64_t j = row % w.positions, i = row / w.positions % h.positions;
  const std::optional<std::int64_t> x = w.coordinate(j, tap % w.taps), y = h.coordinate(i, tap / w.taps % h.taps);
  if (!x || !y) return std::nullopt;
  return row / w.positions / h.positions * image_stride + tap / w.taps / h.taps * block_stride + *y * h.stride +
         *x * w.stride + channel;
}

std::optional<std::int64_t> Im2col::row_stride() const {
  if (!h.is_identity() || !w.is_identity() || blocks != 1) return std::nullopt;
  std::int64_t stride = 0, rows = 1;
  for (const auto& [extent, of_mode] : {std::pair{w.extent, w.stride}, {h.extent, h.stride}, {images, image_stride}}) {
    if (extent == 1) continue;
    if (rows == 1) stride = of_mode;
    if (of_mode != stride * rows) return std::nullopt;
    rows *= extent;
  }
  return stride;
}

double Im2col::distinct_share() const {
  const auto count = [](std::int64_t value) { return static_cast<double>(value); };
  const double elements = count(rows()) * count(columns());
  const double distinct = count(images) * count(h.extent) * count(w.extent) * count(blocks) * count(channels);
  return elements > distinct ? distinct / elements : 1.0;
}

void Im2col::share_pixels() {
  if (w.taps == 1) std::swap(h, w);
  w.positions += (w.taps - 1) * std::abs(w.tap_step);
  shares_pixels = true;
}

int Im2col::tap_row(int longest, std::int64_t matrices) const {
  return taps() == 1 && blocks == 1 && matrices == 1
             ? longest
             : static_cast<int>(std::gcd(columns_of_tap(), static_cast<std::int64_t>(longest)));
}

int Im2col::alignment(const Tensor& images_of, std::int64_t batch_stride) const {
  std::vector<std::int64_t> steps{batch_stride};
  if (taps() > 1 || blocks > 1) steps.push_back(channels);
  if (blocks > 1) steps.push_back(block_stride);
  for (const auto& [extent, stride] : {std::pair{w.extent, w.stride}, {h.extent, h.stride}, {images, image_stride}}) {
    if (extent > 1) steps.push_back(stride);
  }
  return shared_alignment(images_of, steps);
}

}  // namespace tilewright::op
