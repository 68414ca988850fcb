// Writes the parts of the CUDA C++ that all GEMM families share: the constants of the tile and the output, and the
// kernel's entry point.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tilewright/base/text.hpp"
#include "tilewright/layout/index_code.hpp"
#include "tilewright/plan/gemm_tile.hpp"
#include "tilewright/plan/parameters.hpp"
#include "tilewright/plan/smem_access.hpp"

namespace tilewright::lower::cuda {

/// The device type that says how an operand is reached, in device/tilewright/operand/matrix_parameters.cuh,
/// im2col_matrix.cuh or folded_matrix.cuh.
std::string matrix_type(const op::TensorSignature& operand);

/// Writes kCIsPointerArray and kDIsPointerArray.
void write_output_pointers(SourceWriter& out, const op::GemmSignature& operands);

/// Writes ElementC, ElementD, LayoutC, LayoutD, MatrixC, MatrixD, kAlignmentC, kAlignmentD, kCIsPointerArray and
/// kDIsPointerArray.
void write_outputs(SourceWriter& out, const op::GemmSignature& operands);

/// The device type that yields the tiles of a kernel with one CTA for each tile, or with split-K.
std::string tile_scheduler(const plan::GemmTile& tile);

/// Writes what write_outputs() writes, Scheduler, Groups, kReductionCounters, and the constants of the tile, the warps,
/// the stages, the raster order and split-K.
void write_tile_constants(SourceWriter& out, const plan::GemmTile& tile);

/// The code of both components of a coordinate, of layouts with scaled basis strides. A component that the layout does
/// not reach is 0.
std::vector<std::string> pair_code(const layout::Layout& layout, const std::vector<layout::IndexVariable>& variables);

/// Writes a static member function of integers that returns `code`: "int", "row", {"thread"}.
void write_index_function(SourceWriter& out, std::string_view type, std::string_view name,
                          const std::vector<std::string_view>& parameters, std::string_view code);
/// Does the same for a function of `thread`, where `code` uses `lane` and `warp`.
void write_thread_function(SourceWriter& out, std::string_view type, std::string_view name, std::string_view code);

/// Writes `struct Copy`, which maps threads and passes to the vectors that they copy and to their places in shared
/// memory.
void write_tile_copy(SourceWriter& out, const plan::TileCopy& copy);

/// Writes `struct AccumulatorTile`, which maps a thread to the row and column of its first accumulator.
void write_accumulator_tile(SourceWriter& out, const plan::AccumulatorTile& tile);

/// Writes static assertions that `struct Parameters` has the size and the field offsets that the host uses.
void write_parameter_checks(SourceWriter& out, const plan::ParameterLayout& layout);

/// The names in a kernel's entry point.
struct KernelEntry {
  std::string_view family;  // the device class that implements the kernel, e.g. "Sm80Gemm"
  std::string_view symbol;
  std::string_view parameters;  // the type of the kernel's parameter, e.g. "tilewright::GemmParameters<...>"
  std::string attributes;       // e.g. "__launch_bounds__(128)"
};
/// Writes the alias `Parameters` with its checks, and an extern "C" kernel that runs `family`<Plan, Epilogue>.
void write_kernel(SourceWriter& out, const KernelEntry& entry, const plan::ParameterLayout& layout);

/// The same for a family whose threads all compute one tile. The compiler gives a thread no more registers than
/// `ctas_per_sm` resident CTAs allow; 0 sets no bound.
void write_tile_kernel(SourceWriter& out, std::string_view family, std::string_view symbol, const plan::GemmTile& tile,
                       int ctas_per_sm);

}  // namespace tilewright::lower::cuda
