// Descriptions and designs that the tests of plan, lower, registry and kernels share: every combination of types and
// layouts that a GEMM may have.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "tilewright/op/gemm.hpp"
#include "tilewright/plan/design.hpp"

namespace tilewright::plan {

struct TypeCase {
  DType a, b, d;
  DType accumulator;
  op::MathOperation math = op::MathOperation::multiply_add;
};
inline std::ostream& operator<<(std::ostream& out, const TypeCase& types) {
  return out << name(types.a) << " " << name(types.b) << " to " << name(types.d) << " " << op::name(types.math);
}

inline const std::vector<TypeCase>& type_cases() {
  using enum DType;
  using enum op::MathOperation;
  static const std::vector<TypeCase> cases{
      {f64, f64, f64, f64},
      {f32, f32, f32, f32},
      {f32, f32, f16, f32},
      {f32, f32, f32, f32, multiply_add_tf32},
      {f32, f32, f32, f32, multiply_add_fast_f16},
      {f32, f32, f32, f32, multiply_add_fast_bf16},
      {f32, f32, f32, f32, multiply_add_fast_f32},
      {f16, f16, f16, f32},
      {f16, f16, f16, f16},
      {f16, f16, f32, f32},
      {bf16, bf16, bf16, f32},
      {bf16, bf16, f32, f32},
      {e4m3, e4m3, bf16, f32},
      {e4m3, e5m2, e4m3, f32},
      {e5m2, e5m2, f32, f32},
      {e4m3, e4m3, f16, f16},
      {e5m2, e4m3, e5m2, f32, multiply_add_fast_accumulate},
      {s8, s8, s32, s32},
      {s8, s8, s8, s32},
      {s8, s8, f32, s32},
      {u8, u8, s32, s32},
      {u8, u8, u8, s32},
      {s8, u8, s32, s32},
      {u8, s8, f32, s32},
  };
  return cases;
}

inline constexpr auto kRow = op::MatrixLayout::row_major;
inline constexpr auto kColumn = op::MatrixLayout::column_major;

inline constexpr auto kRowInterleaved = op::MatrixLayout::row_interleaved;
inline constexpr auto kColumnInterleaved = op::MatrixLayout::column_interleaved;

struct Layouts {
  op::MatrixLayout a = kRow, b = kColumn, c = kRow, d = kRow;
};

/// The layouts of CUTLASS's interleaved GEMMs.
inline constexpr Layouts kInterleavedLayouts{kColumnInterleaved, kRowInterleaved, kColumnInterleaved,
                                             kColumnInterleaved};

/// All 16 combinations of row-major and column-major A, B, C and D.
inline std::vector<Layouts> all_layouts() {
  std::vector<Layouts> layouts;
  for (const auto a : {kRow, kColumn}) {
    for (const auto b : {kRow, kColumn}) {
      for (const auto c : {kRow, kColumn}) {
        for (const auto d : {kRow, kColumn}) layouts.push_back({a, b, c, d});
      }
    }
  }
  return layouts;
}

/// The signature with every operand aligned to `alignment_bytes`, or to one element if an element is larger.
inline op::GemmSignature describe(const TypeCase& types, const Layouts& layouts = {}, int alignment_bytes = 16) {
  const auto tensor = [&](DType element, op::MatrixLayout layout) {
    return op::TensorSignature{element, layout, std::max(1, alignment_bytes / bytes(element))};
  };
  op::GemmSignature description;
  description.a = tensor(types.a, layouts.a);
  description.b = tensor(types.b, layouts.b);
  description.c = tensor(types.d, layouts.c);
  description.d = tensor(types.d, layouts.d);
  description.accumulator = types.accumulator;
  description.math = types.math;
  description.epilogue = op::linear_combination(op::default_compute(types.accumulator, types.d));
  return description;
}

inline op::GemmSignature describe_f16(const Layouts& layouts = {}, int alignment_bytes = 16) {
  return describe({DType::f16, DType::f16, DType::f16, DType::f32}, layouts, alignment_bytes);
}

inline op::GemmSignature describe_f32(const Layouts& layouts = {}, int alignment_bytes = 16) {
  return describe({DType::f32, DType::f32, DType::f32, DType::f32}, layouts, alignment_bytes);
}

inline std::string to_string(const op::GemmSignature& description) {
  return fmt::format("A {} B {} C {} D {} acc {} {} {}", op::to_string(description.a), op::to_string(description.b),
                     op::to_string(description.c), op::to_string(description.d), name(description.accumulator),
                     op::name(description.math), description.epilogue.name);
}

/// A problem with this signature and packed operands.
inline op::Gemm problem_of(const op::GemmSignature& description, std::int64_t m, std::int64_t n, std::int64_t k) {
  const auto tensor = [](int index, const op::TensorSignature& as, std::int64_t rows, std::int64_t columns) {
    return op::matrix(static_cast<std::uint64_t>(index) << 40, as.element, rows, columns, as.layout);
  };
  op::Gemm gemm;
  gemm.a = tensor(1, description.a, m, k);
  gemm.b = tensor(2, description.b, k, n);
  gemm.c = tensor(3, description.c, m, n);
  gemm.d = tensor(4, description.d, m, n);
  gemm.accumulator = description.accumulator;
  gemm.math = description.math;
  gemm.epilogue = description.epilogue;
  return gemm;
}

using tilewright::kSm80;
inline constexpr Target kSm90 = kSm90a;

/// The tile, stages and math warps (along m and n) of a design.
struct Tile {
  TileShape shape{128, 128, 32};
  int stages = 4;
  std::array<int, 2> warps{2, 2};
};

inline GemmTiling tiling_of(const Tile& tile, const Target& target) {
  return {target, tile.shape, tile.stages, tile.warps[0], tile.warps[1], {}};
}

inline SimtGemmDesign simt_design(const Tile& tile = {{128, 128, 8}, 4, {2, 4}}, const Target& target = kSm80) {
  return {tiling_of(tile, target)};
}

inline Sm80GemmDesign sm80_design(const TileShape& instruction, const Tile& tile = {}, const Target& target = kSm80) {
  return {tiling_of(tile, target), instruction};
}

inline Sm90GemmDesign sm90_design(const Tile& tile, std::array<int, 2> cluster = {1, 1}, const Target& target = kSm90) {
  return {tiling_of(tile, target), cluster[0], cluster[1]};
}

/// Exchanges m and n of a design's shapes.
inline Sm90GemmDesign transposed(Sm90GemmDesign design) {
  std::swap(design.tile.m, design.tile.n);
  std::swap(design.warps_m, design.warps_n);
  std::swap(design.cluster_m, design.cluster_n);
  return design;
}

}  // namespace tilewright::plan
