// Construction and printing of tilers.
#include "tilewright/layout/tiler.hpp"

#include <fmt/format.h>

#include <utility>

#include "tilewright/base/error.hpp"

namespace tilewright::layout {
namespace {

void collect_diced(const IntTuple& coord, const Tiler& tiler, std::vector<Tiler>& out) {
  if (coord.is_leaf()) {
    if (!coord.is_underscore()) out.push_back(tiler);
    return;
  }
  if (!tiler.is_tuple() || tiler.rank() != coord.rank())
    throw InvalidArgument(fmt::format("dice of {} by {}: ranks differ", to_string(tiler), to_string(coord)));
  for (int i = 0; i < coord.rank(); ++i) collect_diced(coord[i], tiler[i], out);
}

}  // namespace

Tiler Tiler::tuple(std::vector<Tiler> modes) {
  Tiler result(_);
  result.state_ = std::move(modes);
  return result;
}

Tiler make_tiler(const IntTuple& shape) {
  if (shape.is_underscore()) return _;
  if (shape.is_leaf()) return Layout(shape, 1);
  std::vector<Tiler> modes;
  for (int i = 0; i < shape.rank(); ++i) modes.push_back(make_tiler(shape[i]));
  return Tiler::tuple(std::move(modes));
}

Tiler dice(const IntTuple& coord, const Tiler& tiler) {
  std::vector<Tiler> modes;
  collect_diced(coord, tiler, modes);
  return coord.is_leaf() && !modes.empty() ? tiler : Tiler::tuple(std::move(modes));
}

std::string to_string(const Tiler& tiler) {
  if (tiler.is_whole()) return "_";
  if (tiler.is_layout()) return to_string(tiler.layout());
  std::string text = "<";
  for (int i = 0; i < tiler.rank(); ++i) {
    if (i > 0) text += ',';
    text += to_string(tiler[i]);
  }
  return text + '>';
}

}  // namespace tilewright::layout
