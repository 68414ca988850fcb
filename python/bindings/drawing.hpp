// Pictures of layouts, side by side, as Python holds them.
#pragma once

#include <string>
#include <vector>

#include "tilewright/layout/draw.hpp"

namespace tilewright::python {

/// Not empty.
struct Drawing {
  std::vector<layout::Picture> pictures;
};

/// A self-contained <div> that scrolls where the drawing is wider than the page.
std::string to_html(const Drawing& drawing);

}  // namespace tilewright::python
