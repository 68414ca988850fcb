#include "tilewright/engine/tuning_operands.hpp"

#include <algorithm>
#include <cstring>

#include "tilewright/engine/host_operands.hpp"
#include "tilewright/op/fill.hpp"

namespace tilewright::engine {
namespace {

constexpr std::size_t kAlignment = 256;      // addresses of copies agree with the caller's modulo this
constexpr std::byte kOutputPattern{0xa5};    // no NaN, no small integer: what a kernel stores seldom equals it
constexpr std::byte kInputPattern{0xff};     // NaN in every float type
constexpr std::int64_t kRedZoneLines = 512;  // twice the longest tile: where a tile too many would go
constexpr std::size_t kLeastRedZone = 64 << 10;
constexpr std::size_t kMostSets = 512;             // a tuning makes some hundreds of calls
constexpr std::int64_t kRandomElements = 1048573;  // a prime, so that no row repeats another at the same place

std::size_t round_up(std::size_t value, std::size_t multiple) { return (value + multiple - 1) / multiple * multiple; }

std::size_t span_of(const op::Tensor& tensor) { return static_cast<std::size_t>(op::span_bytes(tensor)); }

/// A matrix in memory as lines of contiguous bytes at a fixed pitch.
struct Lines {
  explicit Lines(const op::Tensor& tensor) {
    const op::MatrixView view = *op::view_matrix(tensor, "D");
    const bool is_row_major = view.layout == op::MatrixLayout::row_major;
    count = tensor.shape[is_row_major ? 0 : 1];
    bytes = static_cast<std::size_t>(tensor.shape[is_row_major ? 1 : 0] * tilewright::bytes(tensor.dtype));
    pitch = static_cast<std::size_t>(view.ld * tilewright::bytes(tensor.dtype));
  }
  std::int64_t count = 0;
  std::size_t bytes = 0;
  std::size_t pitch = 0;
};

std::size_t output_red_zone(const op::Tensor& d) {
  return round_up(std::max(kLeastRedZone, kRedZoneLines * Lines(d).pitch), kAlignment);
}

// Where the first byte of [begin, end) is that is not `pattern`, or end.
std::size_t first_other(std::span<const std::byte> image, std::size_t begin, std::size_t end, std::byte pattern) {
  const auto region = image.subspan(begin, end - begin);
  if (region.empty()) return end;
  // Equal to itself moved by one byte, and right at the start: all of it, at the speed of memory.
  if (region[0] == pattern && std::memcmp(region.data(), region.data() + 1, region.size() - 1) == 0) return end;
  const auto found = std::ranges::find_if(region, [&](std::byte byte) { return byte != pattern; });
  return begin + static_cast<std::size_t>(found - region.begin());
}

// Elements that one comparison looks at: fewer where a sum is long, so that the host takes a tenth of a second or so.
std::int64_t sampled_elements(std::int64_t k) {
  return std::clamp((std::int64_t{1} << 21) / k, std::int64_t{16}, std::int64_t{512});
}

}  // namespace

TuningOperands::TuningOperands(std::shared_ptr<runtime::Device> device, const op::Gemm& shape)
    : device_(std::move(device)), on_host_(shape), on_device_(shape) {
  // The emulator reports accesses past an allocation itself; a GPU may give any bytes there, so it gets NaN.
  const std::size_t around_inputs = device_->properties().emulated ? 0 : kLeastRedZone;
  a_ = place(on_host_.a, on_device_.a, around_inputs);
  b_ = place(on_host_.b, on_device_.b, around_inputs);
  d_ = place(on_host_.d, on_device_.d, output_red_zone(shape.d));
  fill(on_host_.a, 1);
  fill(on_host_.b, 2);
  if (op::reads_source(shape)) {
    c_ = place(on_host_.c, on_device_.c, around_inputs);
    fill(on_host_.c, 3);
  }
  restore_inputs();
}

TuningOperands::Operand TuningOperands::place(op::Tensor& host, op::Tensor& device, std::size_t red_zone) {
  Operand operand;
  operand.begin = red_zone + host.address % kAlignment;
  operand.image.assign(operand.begin + span_of(host) + red_zone, kInputPattern);
  operand.buffer = runtime::DeviceBuffer(device_, operand.image.size());
  host.address = reinterpret_cast<std::uint64_t>(operand.image.data()) + operand.begin;
  host.device = {};
  device.address = operand.buffer.address() + operand.begin;
  device.device = memory_device(device_->properties());
  return operand;
}

// A block of random elements over and over: drawing each of a large matrix would take seconds.
void TuningOperands::fill(const op::Tensor& tensor, std::uint64_t seed) const {
  const std::int64_t limit = op::exact_integer_limit(on_host_.a.dtype, on_host_.accumulator, on_host_.k());
  const std::int64_t low = tensor.dtype == DType::u8 ? 0 : -limit;
  const auto size = static_cast<std::size_t>(bytes(tensor.dtype));
  const std::int64_t count = std::min<std::int64_t>(kRandomElements, op::span_bytes(tensor) / bytes(tensor.dtype));
  std::vector<std::byte> block(static_cast<std::size_t>(count) * size);
  op::fill_integers(op::matrix(block.data(), tensor.dtype, 1, count), low, std::max<std::int64_t>(1, limit - 1), seed);
  auto* to = reinterpret_cast<std::byte*>(tensor.address);
  for (std::size_t left = span_of(tensor); left > 0;) {
    const std::size_t piece = std::min(left, block.size());
    std::memcpy(to, block.data(), piece);
    to += piece;
    left -= piece;
  }
}

void TuningOperands::restore_inputs() {
  for (const Operand* input : {&a_, &b_, &c_}) {
    if (input->image.empty()) continue;
    device_->copy_in(input->buffer.address(), input->image.data(), input->image.size(), nullptr);
  }
  device_->synchronize(nullptr);
}

bool TuningOperands::is_intact(const Operand& operand) const {
  if (operand.image.empty()) return true;
  std::vector<std::byte> now(operand.image.size());
  device_->copy_out(now.data(), operand.buffer.address(), now.size(), nullptr);
  device_->synchronize(nullptr);
  return now == operand.image;
}

bool TuningOperands::inputs_are_intact() { return is_intact(a_) && is_intact(b_) && is_intact(c_); }

void TuningOperands::spoil_output() {
  device_->fill(d_.buffer.address(), static_cast<std::uint8_t>(kOutputPattern), d_.buffer.bytes(), nullptr);
  device_->synchronize(nullptr);
}

void TuningOperands::fetch_output() {
  device_->copy_out(d_.image.data(), d_.buffer.address(), d_.image.size(), nullptr);
  device_->synchronize(nullptr);
}

std::string TuningOperands::find_stray_write() const {
  const Lines lines(on_host_.d);
  std::size_t checked = 0;  // up to here every byte is one of D's, or still has the pattern
  const auto stray = [&](std::size_t end) { return first_other(d_.image, checked, end, kOutputPattern); };
  const auto report = [&](std::size_t at) {
    return fmt::format("it wrote outside its output: byte {} from the first element, which spans {} bytes",
                       static_cast<std::int64_t>(at) - static_cast<std::int64_t>(d_.begin), span_of(on_host_.d));
  };
  for (std::int64_t line = 0; line < lines.count; ++line) {
    const std::size_t begin = d_.begin + static_cast<std::size_t>(line) * lines.pitch;
    if (const std::size_t at = stray(begin); at != begin) return report(at);
    checked = begin + lines.bytes;
  }
  const std::size_t at = stray(d_.image.size());
  return at == d_.image.size() ? std::string() : report(at);
}

// One element is a problem of its own, with a bound of its own.
op::Comparison TuningOperands::compare_element(std::int64_t row, std::int64_t column) const {
  const auto slice = [](op::Tensor tensor, std::int64_t i, std::int64_t j, op::Dims shape) {
    tensor.address += static_cast<std::uint64_t>((i * tensor.stride[0] + j * tensor.stride[1]) * bytes(tensor.dtype));
    tensor.shape = shape;
    return tensor;
  };
  op::Gemm element = on_host_;
  element.a = slice(on_host_.a, row, 0, {1, on_host_.k()});
  element.b = slice(on_host_.b, 0, column, {on_host_.k(), 1});
  element.d = slice(on_host_.d, row, column, {1, 1});
  if (op::reads_source(on_host_)) element.c = slice(on_host_.c, row, column, {1, 1});
  return op::compare(element);
}

// Those whose bits differ, as row * n + column: the first million of them.
std::vector<std::int64_t> TuningOperands::differing_elements(std::span<const std::byte> expected) const {
  constexpr std::size_t kMost = std::size_t{1} << 20;
  const Lines lines(on_host_.d);
  const bool is_row_major = op::view_matrix(on_host_.d, "D")->layout == op::MatrixLayout::row_major;
  const auto size = static_cast<std::size_t>(bytes(on_host_.d.dtype));
  const std::int64_t n = on_host_.d.shape[1];
  std::vector<std::int64_t> differing;
  for (std::int64_t line = 0; line < lines.count && differing.size() < kMost; ++line) {
    const std::size_t begin = d_.begin + static_cast<std::size_t>(line) * lines.pitch;
    if (std::memcmp(&d_.image[begin], &expected[begin], lines.bytes) == 0) continue;
    for (std::size_t at = 0; at < lines.bytes; at += size) {
      if (std::memcmp(&d_.image[begin + at], &expected[begin + at], size) == 0) continue;
      const auto along = static_cast<std::int64_t>(at / size);
      differing.push_back(is_row_major ? line * n + along : along * n + line);
    }
  }
  return differing;
}

std::string TuningOperands::find_wrong_element(std::span<const std::byte> expected) const {
  const std::int64_t n = on_host_.d.shape[1];
  const std::vector<std::int64_t> differing =
      expected.empty() ? std::vector<std::int64_t>() : differing_elements(expected);
  const std::int64_t count = expected.empty() ? on_host_.m() * n : static_cast<std::int64_t>(differing.size());
  const std::int64_t samples = std::min(count, sampled_elements(on_host_.k()));
  for (std::int64_t i = 0; i < samples; ++i) {
    const std::int64_t which = samples == 1 ? 0 : i * (count - 1) / (samples - 1);  // first and last included
    const std::int64_t element = expected.empty() ? which : differing[static_cast<std::size_t>(which)];
    const op::Comparison found = compare_element(element / n, element % n);
    if (found.is_within_bound()) continue;
    return fmt::format("D[{},{}] is {}, expected {} within {:.3g}", element / n, element % n, found.worst.actual,
                       found.worst.expected, found.worst.bound);
  }
  return {};
}

TimingSets::TimingSets(const std::shared_ptr<runtime::Device>& device, const TuningOperands& operands) {
  const op::Gemm& host = operands.on_host();
  op::Gemm set = operands.on_device();
  std::vector<std::byte> image;
  const auto place = [&](op::Tensor& tensor, const op::Tensor& from) {
    tensor.address = image.size() + tensor.address % kAlignment;  // within a set
    image.resize(round_up(tensor.address + span_of(tensor), kAlignment));
    std::memcpy(&image[tensor.address], reinterpret_cast<const void*>(from.address), span_of(tensor));
  };
  place(set.a, host.a);
  place(set.b, host.b);
  if (op::reads_source(host)) place(set.c, host.c);
  place(set.d, host.d);

  const runtime::DeviceProperties& properties = device->properties();
  const std::size_t enough = 1 + (2 * static_cast<std::size_t>(properties.l2_bytes) + image.size() - 1) / image.size();
  const std::size_t count = properties.emulated ? 1 : std::min(kMostSets, enough);
  memory_ = runtime::DeviceBuffer(device, count * image.size());
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t base = memory_.address() + i * image.size();
    device->copy_in(base, image.data(), image.size(), nullptr);
    op::Gemm placed = set;
    for (op::Tensor* tensor : {&placed.a, &placed.b, &placed.d}) tensor->address += base;
    if (op::reads_source(host)) placed.c.address += base;
    sets_.push_back(std::move(placed));
  }
  device->synchronize(nullptr);
}

const op::Gemm& TimingSets::next() {
  next_ = (next_ + 1) % sets_.size();
  return sets_[next_];
}

}  // namespace tilewright::engine
