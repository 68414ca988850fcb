#include "tilewright/tune/guarded_tensor.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <utility>

#include "tilewright/base/interruption.hpp"
#include "tilewright/base/memory.hpp"
#include "tilewright/base/rounding.hpp"
#include "tilewright/engine/host_operands.hpp"

namespace tilewright::tune {
namespace {

constexpr std::byte kOutputPattern{0xa5};    // neither NaN nor a small integer, so that kernels rarely store it
constexpr std::byte kInputPattern{0xff};     // NaN in every float type
constexpr std::int64_t kRedZoneLines = 512;  // twice the extent of the largest tile
constexpr std::size_t kMinRedZone = 64 << 10;
constexpr std::size_t kMaxDiffering = std::size_t{1} << 20;

/// The contiguous runs of elements of a tensor, in the order of their addresses.
class Runs {
 public:
  explicit Runs(const op::Tensor& given)
      : interleaved_(given.interleaved), rank_(given.shape.rank()), element_(bytes(given.dtype)) {
    const op::Tensor tensor = op::strided_modes(given);
    for (int mode = 0; mode < tensor.shape.rank(); ++mode) {
      if (tensor.shape[mode] != 1) modes_.push_back({tensor.shape[mode], tensor.stride[mode] * element_, mode});
    }
    std::ranges::stable_sort(modes_, std::ranges::greater(), &Mode::step);
    if (!modes_.empty() && modes_.back().step == element_) {
      run_ = modes_.back();
      modes_.pop_back();
    }
  }

  std::int64_t count() const {
    std::int64_t count = 1;
    for (const Mode& mode : modes_) count *= mode.count;
    return count;
  }
  /// The length of each run in bytes.
  std::size_t run_bytes() const { return static_cast<std::size_t>(run_.count * element_); }
  /// The offset of the run from the tensor's first element in bytes.
  std::size_t begin(std::int64_t run) const {
    std::int64_t at = 0;
    for (auto mode = modes_.rbegin(); mode != modes_.rend(); ++mode) {
      at += run % mode->count * mode->step;
      run /= mode->count;
    }
    return static_cast<std::size_t>(at);
  }
  /// The place of the element at `byte` of a run: the last mode is the column, the one before it the row, and the one
  /// before that the batch.
  op::Place place(std::int64_t run, std::size_t byte) const {
    std::array<std::int64_t, op::Dims::kMaxRank> coordinates{};
    for (auto mode = modes_.rbegin(); mode != modes_.rend(); ++mode) {
      coordinates[static_cast<std::size_t>(mode->number)] = run % mode->count;
      run /= mode->count;
    }
    coordinates[static_cast<std::size_t>(run_.number)] += static_cast<std::int64_t>(byte) / element_;
    if (interleaved_ != op::InterleavedMode::none) {
      const int blocked = rank_ - (interleaved_ == op::InterleavedMode::rows ? 2 : 1);
      std::int64_t& coordinate = coordinates[static_cast<std::size_t>(blocked)];
      coordinate = coordinate * op::kInterleaved + coordinates[static_cast<std::size_t>(rank_)];
    }
    const auto last = [&](int from_end) {
      return rank_ < from_end ? 0 : coordinates[static_cast<std::size_t>(rank_ - from_end)];
    };
    return {last(3), last(2), last(1)};
  }

 private:
  struct Mode {
    std::int64_t count = 1, step = 0;  // extent, and stride in bytes
    int number = 0;                    // index of the tensor's mode
  };
  op::InterleavedMode interleaved_;
  int rank_;
  std::int64_t element_;
  std::vector<Mode> modes_;  // all modes except the contiguous one, the largest stride first
  Mode run_;                 // the contiguous mode
};

// The index of the first byte in [begin, end) that is not `pattern`, or end.
std::size_t first_mismatch(std::span<const std::byte> image, std::size_t begin, std::size_t end, std::byte pattern) {
  const auto region = image.subspan(begin, end - begin);
  if (region.empty()) return end;
  // A region that equals itself shifted by one byte is constant; memcmp checks this at memory bandwidth.
  if (region[0] == pattern && std::memcmp(region.data(), region.data() + 1, region.size() - 1) == 0) return end;
  const auto found = std::ranges::find_if(region, [&](std::byte byte) { return byte != pattern; });
  return begin + static_cast<std::size_t>(found - region.begin());
}

/// The tensor in one piece of memory, where matrix i of a pointer array lies at i times the batch stride.
op::Tensor as_strided(const op::Tensor& shape) {
  if (!shape.is_pointer_array()) return shape;
  constexpr std::int64_t kGap = 16;
  const op::Tensor matrix = op::matrix_at(shape, static_cast<std::uint64_t>(shape.pointer_alignment));
  const std::int64_t unit = shape.pointer_alignment / bytes(shape.dtype);  // elements
  const std::int64_t least = op::span_bytes(matrix) / bytes(shape.dtype) + kGap;
  return op::batched(matrix, shape.batch(), (least / (2 * unit) + 1) * 2 * unit);
}

}  // namespace

std::vector<std::uint64_t> addresses_of(const op::Tensor& strided, std::uint64_t first) {
  std::vector<std::uint64_t> addresses;
  for (std::int64_t i = 0; i < strided.batch(); ++i)
    addresses.push_back(first + static_cast<std::uint64_t>(i * strided.batch_stride() * bytes(strided.dtype)));
  return addresses;
}

std::size_t output_red_zone(const op::Tensor& output) {
  std::int64_t longest = 1;  // leading dimension: the largest stride, or with a batch the largest except the outermost
  std::int64_t outermost = 0;
  for (int mode = 0; mode < output.shape.rank(); ++mode) {
    outermost = std::max(outermost, output.stride[mode]);
  }
  for (int mode = 0; mode < output.shape.rank(); ++mode) {
    const bool is_outermost_of_many = output.shape.rank() > 2 && output.stride[mode] == outermost;
    const bool has_others =
        output.shape[mode] > 1 || output.shape.rank() == 2;  // a row beside the only one of a matrix
    if (has_others && !is_outermost_of_many) longest = std::max(longest, output.stride[mode]);
  }
  const auto line = static_cast<std::size_t>(longest * bytes(output.dtype));
  const std::size_t zone = std::max(kMinRedZone, kRedZoneLines * line);
  return round_up(zone, kGuardedAlignment);
}

GuardedTensor::GuardedTensor(std::string label, std::shared_ptr<runtime::Device> device, const op::Tensor& shape,
                             std::size_t red_zone)
    : label_(std::move(label)),
      device_(std::move(device)),
      strided_(as_strided(shape)),
      begin_(red_zone + strided_.address % kGuardedAlignment),
      memory_(std::make_unique_for_overwrite<std::byte[]>(begin_ + static_cast<std::size_t>(op::span_bytes(strided_)) +
                                                          red_zone)),
      image_(memory_.get(), begin_ + static_cast<std::size_t>(op::span_bytes(strided_)) + red_zone),
      buffer_(device_, image_.size()),
      on_host_(shape),
      on_device_(shape) {
  fill_bytes(image_.data(), static_cast<unsigned char>(kInputPattern), image_.size());
  strided_.address = reinterpret_cast<std::uint64_t>(image_.data()) + begin_;
  strided_.device = {};
  on_host_.address = strided_.address;
  on_host_.device = {};
  on_device_.address = buffer_.address() + begin_;
  on_device_.device = engine::memory_device(device_->properties());
  if (!shape.is_pointer_array()) return;
  addresses_ = addresses_of(strided_, on_device_.address);
  address_buffer_ = runtime::DeviceBuffer(device_, addresses_.size() * sizeof(std::uint64_t));
  device_->copy_in(address_buffer_.address(), addresses_.data(), address_buffer_.bytes(), nullptr);
  device_->synchronize(nullptr);
  on_device_.address = address_buffer_.address();
  addresses_ = addresses_of(strided_, strided_.address);
  on_host_.address = reinterpret_cast<std::uint64_t>(addresses_.data());
}

void GuardedTensor::upload() const { device_->copy_in(buffer_.address(), image_.data(), image_.size(), nullptr); }

void GuardedTensor::fetch() { device_->copy_out(image_.data(), buffer_.address(), image_.size(), nullptr); }

void GuardedTensor::poison() const {
  device_->fill(buffer_.address(), static_cast<std::uint8_t>(kOutputPattern), buffer_.bytes(), nullptr);
}

bool GuardedTensor::is_intact() const {
  constexpr std::size_t kPiece = std::size_t{32} << 20;
  std::vector<std::byte> now(std::min(kPiece, image_.size()));
  for (std::size_t at = 0; at < image_.size(); at += kPiece) {
    check_interruption();
    const std::size_t size = std::min(kPiece, image_.size() - at);
    device_->copy_out(now.data(), buffer_.address() + at, size, nullptr);
    device_->synchronize(nullptr);
    if (std::memcmp(now.data(), &image_[at], size) != 0) return false;
  }
  return true;
}

std::string GuardedTensor::find_out_of_bounds_write() const {
  const Runs runs(strided_);
  std::size_t checked = 0;  // every byte below is part of an element or still has the pattern
  const auto stray = [&](std::size_t end) { return first_mismatch(image_, checked, end, kOutputPattern); };
  const auto report = [&](std::size_t at) {
    return fmt::format("it wrote outside its output {}, which spans {} bytes, at byte {} from the first element",
                       label_, op::span_bytes(strided_),
                       static_cast<std::int64_t>(at) - static_cast<std::int64_t>(begin_));
  };
  for (std::int64_t run = 0; run < runs.count(); ++run) {
    check_interruption();
    const std::size_t begin = begin_ + runs.begin(run);
    if (const std::size_t at = stray(begin); at != begin) return report(at);
    checked = begin + runs.run_bytes();
  }
  const std::size_t at = stray(image_.size());
  return at == image_.size() ? std::string() : report(at);
}

std::vector<op::Place> GuardedTensor::differing_elements(std::span<const std::byte> expected) const {
  const Runs runs(strided_);
  const auto size = static_cast<std::size_t>(bytes(on_host_.dtype));
  const auto differ = [&](std::size_t at, std::size_t count) {
    return std::memcmp(&image_[at], &expected[at], count) != 0;
  };
  std::vector<op::Place> differing;
  for (std::int64_t run = 0; run < runs.count() && differing.size() < kMaxDiffering; ++run) {
    check_interruption();
    const std::size_t begin = begin_ + runs.begin(run);
    if (!differ(begin, runs.run_bytes())) continue;
    for (std::size_t at = 0; at < runs.run_bytes(); at += size) {
      if (differ(begin + at, size)) differing.push_back(runs.place(run, at));
    }
  }
  return differing;
}

}  // namespace tilewright::tune
