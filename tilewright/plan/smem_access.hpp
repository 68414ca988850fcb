// How the threads of a CTA access an operand's tile in shared memory: copies from global memory fill it, and loads of
// fragments read it.
//
// An access is a layout of (thread, step). The step is known when the kernel is compiled: it is a pass of a copy, or a
// load of a fragment. A thread computes the offset of step 0 once, and moves it by constants. In a swizzled tile this
// works because thread and step have no bit in common that the swizzle reads or changes:
//   swizzle(thread + step) == (swizzle(thread) ^ (s & target)) + (s & ~target), where s = swizzle(step)
// and `target` are the bits that the swizzle changes; see device/tilewright/operand/swizzle.cuh.
#pragma once

#include "tilewright/layout/swizzle.hpp"

namespace tilewright::plan {

/// The copy of a tile from global to shared memory. A tile has lines that are contiguous in global memory. Each thread
/// copies one vector of a line in every pass.
struct TileCopy {
  int passes = 1;
  int active_threads = 0;  // threads that have a vector; fewer than the CTA's only if there is a single pass
  int line_step = 1;       // the number of lines between passes is a multiple of this
  /// (thread, pass) -> (line, element of the line), as scaled basis strides.
  layout::Layout coordinates;
  /// (thread, pass) -> offset in the tile in shared memory.
  layout::ComposedLayout smem;
};

/// The copy by `threads` threads of a tile whose vector number i begins at coordinate `vectors`(i), which is (line,
/// element of the line), and whose layout in shared memory is `smem`, (line, element) -> offset.
/// @pre `threads` divides the number of vectors or is larger
TileCopy tile_copy(const layout::ComposedLayout& smem, const layout::Layout& vectors, int threads);

/// Checks that `threads` and `steps` of a swizzled access share no bit of the swizzle's block.
/// @throws InternalError if they do
void check_steps(const layout::Swizzle& swizzle, const layout::Layout& threads, const layout::Layout& steps);

}  // namespace tilewright::plan
