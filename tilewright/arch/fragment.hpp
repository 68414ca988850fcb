// The register fragments of mma.sync and wgmma.
#pragma once

#include "tilewright/base/dtype.hpp"
#include "tilewright/layout/layout.hpp"

namespace tilewright::arch {

/// (lane, value) -> offset in the column-major tile of rows x columns. Lanes 4g to 4g+3 hold row g. The values of a
/// lane are `packed` adjacent elements of the row, then those of row g + 8 if there is one, then those 4 * packed
/// columns further. A tile of 64 rows has 16 rows for each of 4 warps. PTX ISA, "Matrix Fragments" of the shapes of
/// mma.sync from sm_75 on and of wgmma: A has rows of m and columns of k, B rows of n and columns of k, C rows of m and
/// columns of n with 2 packed.
/// @throws InvalidArgument unless rows is 8, 16 or 64 and columns is a positive multiple of 4 * packed
layout::Layout fragment(int rows, int columns, int packed);

/// The number of registers per thread for the values of a thread-value layout, rounded up.
int fragment_registers(const layout::Layout& tv, DType type, int register_bits);

}  // namespace tilewright::arch
