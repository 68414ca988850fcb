// The value of Python's class Drawing: pictures of layouts, side by side.
#pragma once

#include <string>
#include <vector>

#include "tilewright/layout/draw.hpp"

namespace tilewright::python {

struct Drawing {
  std::vector<layout::Picture> pictures;  // never empty
};

/// A self-contained <div>, which scrolls if the drawing is wider than the page.
std::string to_html(const Drawing& drawing);

}  // namespace tilewright::python
