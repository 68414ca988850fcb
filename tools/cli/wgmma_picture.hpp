// An operand of wgmma in shared memory, drawn: its core matrices, and the distances that the descriptor states.
#pragma once

#include <string>

#include "tilewright/base/support.hpp"
#include "tilewright/layout/draw.hpp"

namespace tilewright::cli {

/// Which operand: A is drawn M x K, B is drawn K x N.
enum class WgmmaOperand { a, b };

/// `tile` maps (mn, k) to offsets in elements, its swizzle included. A cell is a core matrix, of eight rows of 16
/// bytes, and says at which byte it is; tinted is what the first instruction reads. The leading and the stride byte
/// offset are drawn where they lead to. Refused: a tile that make_descriptor refuses, or that core matrices do not
/// divide.
Result<layout::Picture> wgmma_picture(const layout::ComposedLayout& tile, WgmmaOperand operand, int bits,
                                      const std::string& title);

}  // namespace tilewright::cli
