#include "python/bindings/placed_matrices.hpp"

#include <algorithm>
#include <cstdint>

#include "tilewright/base/error.hpp"
#include "tilewright/base/rounding.hpp"
#include "tilewright/base/text.hpp"
#include "tilewright/op/operand.hpp"

namespace tilewright::python {
namespace {

/// Lines of equally many bytes, `step` bytes apart.
struct Lines {
  std::int64_t begin = 0, count = 1, step = 1, bytes = 0;

  std::int64_t end() const { return begin + (count - 1) * step + bytes; }
  Lines line(std::int64_t i) const { return {begin + i * step, 1, step, bytes}; }
};

Lines lines_of(const PlacedMatrix& placed) {
  const op::Tensor& tensor = placed.tensor;
  const op::Interval all = op::interval(tensor);
  Lines lines{.begin = static_cast<std::int64_t>(all.begin), .bytes = static_cast<std::int64_t>(all.end - all.begin)};
  if (placed.index == PlacedMatrix::kWhole || tensor.shape.rank() != 2) return lines;
  const int along = tensor.stride[1] == 1 ? 1 : 0;
  if (tensor.stride[along] != 1 || tensor.shape[1 - along] <= 1) return lines;
  const std::int64_t size = bytes(tensor.dtype);
  return {lines.begin, tensor.shape[1 - along], tensor.stride[1 - along] * size, tensor.shape[along] * size};
}

/// @pre x and y have the same step, or x is one line
bool meet_at_one_step(const Lines& x, const Lines& y) {
  // Line i of x meets line j of y if -x.bytes < x.begin - y.begin - (j - i) * step < y.bytes.
  const std::int64_t apart = x.begin - y.begin;
  const std::int64_t least = std::max(floor_div(apart - y.bytes, y.step) + 1, 1 - x.count);
  const std::int64_t most = std::min(ceil_div(apart + x.bytes, y.step) - 1, y.count - 1);
  return least <= most;
}

bool meet(const Lines& x, const Lines& y) {
  if (x.bytes == 0 || y.bytes == 0 || x.begin >= y.end() || y.begin >= x.end()) return false;
  if (x.count > y.count) return meet(y, x);
  if (x.count == 1 || x.step == y.step) return meet_at_one_step(x, y);
  for (std::int64_t i = 0; i < x.count; ++i) {
    if (meet_at_one_step(x.line(i), y)) return true;
  }
  return false;
}

std::string name_of(const PlacedMatrix& placed) {
  return placed.index == PlacedMatrix::kWhole ? placed.role : fmt::format("{}[{}]", placed.role, placed.index);
}

void check_pair(const PlacedMatrix& x, const Lines& of_x, const PlacedMatrix& y, const Lines& of_y) {
  if (x.index == PlacedMatrix::kWhole && y.index == PlacedMatrix::kWhole) return;
  if (x.tensor.device != y.tensor.device || !meet(of_x, of_y)) return;
  const PlacedMatrix& input = x.is_written ? y : x;
  if (x.is_written != y.is_written && *input.role == 'C' && x.index == y.index && x.tensor == y.tensor) return;
  throw InvalidArgument(fmt::format("{} [{:#x}, {:#x}) overlaps {} [{:#x}, {:#x})", name_of(x), of_x.begin, of_x.end(),
                                    name_of(y), of_y.begin, of_y.end()));
}

}  // namespace

void check_apart(const std::vector<PlacedMatrix>& matrices) {
  struct Entry {
    const PlacedMatrix* placed;
    Lines lines;
  };
  std::vector<Entry> outputs, inputs;
  for (const PlacedMatrix& each : matrices) {
    if (each.tensor.device.kind == op::MemoryDevice::Kind::shape || each.tensor.is_pointer_array()) continue;
    (each.is_written ? outputs : inputs).push_back({&each, lines_of(each)});
  }
  const auto begin = [](const Entry& entry) { return entry.lines.begin; };
  std::ranges::sort(outputs, {}, begin);
  std::vector<std::int64_t> ends;  // of all outputs up to each
  for (const Entry& each : outputs) ends.push_back(std::max(ends.empty() ? 0 : ends.back(), each.lines.end()));
  /// Compares with the outputs before `last` in the order of their addresses, from the nearest.
  const auto compare = [&](const Entry& entry, std::size_t last) {
    for (std::size_t i = last; i-- > 0 && ends[i] > entry.lines.begin;)
      check_pair(*entry.placed, entry.lines, *outputs[i].placed, outputs[i].lines);
  };
  for (std::size_t i = 0; i < outputs.size(); ++i) compare(outputs[i], i);
  for (const Entry& each : inputs) {
    const auto behind = std::ranges::lower_bound(outputs, each.lines.end(), {}, begin);
    compare(each, static_cast<std::size_t>(behind - outputs.begin()));
  }
}

}  // namespace tilewright::python
