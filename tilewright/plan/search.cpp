#include "tilewright/plan/search.hpp"

#include <array>
#include <span>
#include <utility>

#include "tilewright/arch/mma_atom.hpp"

namespace tilewright::plan {
namespace {

struct TileRow {
  std::array<int, 3> shape;
  int stages;
  std::array<int, 3> warps;
  int instruction_k = 0;  // f64 only: the shape m16n8k? that was best for the tile
};

constexpr int kRasterWidth = 8;  // columns of tiles walked together: keeps a wave's operands of 8192^3 in L2

// Tile k of tensor-core rows is in bytes of the operands, so that one table serves all widths: 128 bytes is k 64 of
// f16, and one line of the shared-memory banks.
constexpr std::array<TileRow, 9> kTensorTiles{{
    {{128, 256, 128}, 3, {2, 4, 1}},
    {{256, 128, 128}, 3, {4, 2, 1}},
    {{128, 128, 128}, 3, {2, 2, 1}},
    {{128, 128, 64}, 4, {2, 2, 1}},
    {{128, 64, 128}, 3, {2, 2, 1}},
    {{64, 128, 128}, 3, {2, 2, 1}},
    {{64, 64, 128}, 4, {2, 2, 1}},
    {{64, 64, 64}, 6, {2, 2, 1}},
    {{32, 32, 128}, 4, {2, 2, 1}},
}};

// 3xTF32 keeps two parts of an operand and two sets of sums: smaller warp tiles.
constexpr std::array<TileRow, 5> kSplitTiles{{
    {{128, 128, 128}, 3, {2, 4, 1}},
    {{128, 64, 128}, 3, {2, 2, 1}},
    {{64, 128, 128}, 3, {2, 2, 1}},
    {{64, 64, 128}, 3, {2, 2, 1}},
    {{32, 32, 128}, 4, {2, 2, 1}},
}};

constexpr std::array<TileRow, 3> kDoubleTiles{{
    {{128, 128, 128}, 3, {4, 2, 1}, 4},
    {{64, 64, 128}, 4, {2, 2, 1}, 8},
    {{32, 32, 128}, 4, {2, 2, 1}, 8},
}};

constexpr std::array<TileRow, 5> kSimtTiles{{
    {{128, 128, 16}, 3, {2, 4, 1}},
    {{128, 128, 8}, 4, {2, 4, 1}},
    {{128, 64, 8}, 4, {2, 2, 1}},
    {{64, 64, 8}, 4, {2, 1, 1}},
    {{32, 32, 16}, 3, {1, 1, 1}},
}};

// The instruction of a description's types; f64 has its larger shapes from sm_90 on.
std::array<int, 3> tensor_instruction(const op::GemmSignature& description, const Target& target, const TileRow& row) {
  if (description.a.element == DType::f64) {
    const arch::MmaAtom* large = arch::find_mma_atom(16, 8, row.instruction_k, DType::f64, DType::f64, DType::f64);
    if (target.has_features_of(large->min_target)) return {large->m, large->n, large->k};
    return {8, 8, 4};
  }
  if (bytes(description.a.element) == 1) return {16, 8, 32};
  // f32 operands: fast_f16 and fast_bf16 could take k 16, but then load two steps at once and run out of registers.
  if (description.a.element == DType::f32) return {16, 8, 8};
  return {16, 8, 16};
}

std::span<const TileRow> tensor_rows(const op::GemmSignature& description) {
  if (description.a.element == DType::f64) return kDoubleTiles;
  if (description.math == op::MathOperation::multiply_add_fast_f32) return kSplitTiles;
  return kTensorTiles;
}

Design make_design(const Target& target, const TileRow& row, int tile_k, const MathInstruction& instruction) {
  Design design;
  design.target = target;
  design.tile.threadblock_shape = {row.shape[0], row.shape[1], tile_k};
  design.tile.stages = row.stages;
  design.tile.warp_count = row.warps;
  design.tile.math_instruction = instruction;
  design.raster.width = kRasterWidth;
  return design;
}

MathInstruction instruction_of(const op::GemmSignature& description, std::array<int, 3> shape, OpClass op_class) {
  return {shape, description.a.element, description.b.element, description.accumulator, op_class, description.math};
}

}  // namespace

std::vector<Design> simt_gemm_designs(const op::GemmSignature& description, const Target& target) {
  std::vector<Design> designs;
  designs.reserve(kSimtTiles.size());
  const MathInstruction instruction = instruction_of(description, {1, 1, 1}, OpClass::simt);
  for (const TileRow& row : kSimtTiles) designs.push_back(make_design(target, row, row.shape[2], instruction));
  return designs;
}

std::vector<Design> sm80_gemm_designs(const op::GemmSignature& description, const Target& target) {
  const DType element = description.a.element;
  if (element == DType::f32 && description.math == op::MathOperation::multiply_add) return {};
  if (is_fp8(element)) return {};
  const std::span<const TileRow> rows = tensor_rows(description);
  std::vector<Design> designs;
  designs.reserve(rows.size());
  for (const TileRow& row : rows) {
    const MathInstruction instruction =
        instruction_of(description, tensor_instruction(description, target, row), OpClass::tensor_op);
    designs.push_back(make_design(target, row, row.shape[2] / bytes(element), instruction));
  }
  return designs;
}

}  // namespace tilewright::plan
