// Draws a wgmma operand in shared memory: its core matrices, and the byte offsets of its matrix descriptor.
#pragma once

#include <string>

#include "tilewright/base/support.hpp"
#include "tilewright/layout/draw.hpp"

namespace tilewright::cli {

/// A is drawn as M x K, B as K x N.
enum class WgmmaOperand { a, b };

/// `tile` maps (mn, k) to offsets in elements, including the swizzle. Each cell is a core matrix (eight rows of 16
/// bytes) and shows its byte offset; the cells that the first instruction reads are tinted. Arrows show the leading and
/// the stride byte offset. Refuses tiles that make_descriptor() refuses or that core matrices do not divide.
Result<layout::Picture> wgmma_picture(const layout::ComposedLayout& tile, WgmmaOperand operand, int bits,
                                      const std::string& title);

}  // namespace tilewright::cli
