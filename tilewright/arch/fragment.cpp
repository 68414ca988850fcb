#include "tilewright/arch/fragment.hpp"

#include <vector>

#include "tilewright/base/error.hpp"

namespace tilewright::arch {

using layout::IntTuple;
using layout::Layout;

Layout fragment(int rows, int columns, int packed) {
  if ((rows != 8 && rows != 16 && rows != 64) || packed < 1 || columns < 1 || columns % (4 * packed) != 0) {
    throw InvalidArgument(fmt::format(
        "a fragment must have 8, 16 or 64 rows and a multiple of 4 * packed columns, got {} x {} with {} packed", rows,
        columns, packed));
  }
  IntTuple lanes{4, 8};
  IntTuple lane_strides{rows * packed, 1};
  if (rows == 64) {
    lanes = {4, 8, 4};
    lane_strides = {rows * packed, 1, 16};
  }
  std::vector<std::int64_t> values;
  std::vector<std::int64_t> value_strides;
  const auto add = [&](int extent, int stride) {
    if (extent == 1) return;
    values.push_back(extent);
    value_strides.push_back(stride);
  };
  add(packed, rows);
  add(rows == 8 ? 1 : 2, 8);
  add(columns / (4 * packed), 4 * packed * rows);
  if (values.empty()) return {{lanes, 1}, {lane_strides, 0}};
  if (values.size() == 1) return {{lanes, values.front()}, {lane_strides, value_strides.front()}};
  return {{lanes, IntTuple::tuple(values)}, {lane_strides, IntTuple::tuple(value_strides)}};
}

int fragment_registers(const Layout& tv, DType type, int register_bits) {
  const std::int64_t values = tv.rank() == 2 ? size(tv.mode(1)) : 1;
  return static_cast<int>(layout::ceil_div(values * bits(type), register_bits));
}

}  // namespace tilewright::arch
