#include "tilewright/permute/permute.cuh"

namespace permute_f16_plan {
struct Plan {
  using Element = tilewright::uint16_t;
  static constexpr int kCoordinates = 2;
  static constexpr bool kTransposes = true;
  static constexpr int kFromVector = 8, kToVector = 8;
  static constexpr int kWarps = 8, kBlocks = 1;
};
using Parameters = tilewright::PermuteParameters<Plan::kCoordinates>;
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, row.coordinate[0].from) == 0);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, row.coordinate[0].to) == 8);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, row.coordinate[0].extent) == 16);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, row.coordinate[0].by_extent.multiplier) == 20);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, row.coordinate[0].by_extent.shift) == 24);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, row.coordinate[1].from) == 32);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, row.coordinate[1].to) == 40);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, row.coordinate[1].extent) == 48);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, row.coordinate[1].by_extent.multiplier) == 52);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, row.coordinate[1].by_extent.shift) == 56);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, lines.coordinate[0].from) == 64);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, lines.coordinate[0].to) == 72);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, lines.coordinate[0].extent) == 80);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, lines.coordinate[0].by_extent.multiplier) == 84);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, lines.coordinate[0].by_extent.shift) == 88);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, lines.coordinate[1].from) == 96);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, lines.coordinate[1].to) == 104);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, lines.coordinate[1].extent) == 112);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, lines.coordinate[1].by_extent.multiplier) == 116);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, lines.coordinate[1].by_extent.shift) == 120);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, rest.coordinate[0].from) == 128);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, rest.coordinate[0].to) == 136);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, rest.coordinate[0].extent) == 144);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, rest.coordinate[0].by_extent.multiplier) == 148);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, rest.coordinate[0].by_extent.shift) == 152);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, rest.coordinate[1].from) == 160);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, rest.coordinate[1].to) == 168);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, rest.coordinate[1].extent) == 176);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, rest.coordinate[1].by_extent.multiplier) == 180);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, rest.coordinate[1].by_extent.shift) == 184);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, from) == 192);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, to) == 200);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, row_extent) == 208);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, line_extent) == 212);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, row_tiles) == 216);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, line_tiles) == 220);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, by_row_tiles.multiplier) == 224);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, by_row_tiles.shift) == 228);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, by_line_tiles.multiplier) == 232);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, by_line_tiles.shift) == 236);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, lane_bits) == 240);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, warp_bits) == 244);
static_assert(sizeof(Parameters) == 248);
}

extern "C" __global__ void __launch_bounds__(256)
permute_f16(const __grid_constant__ permute_f16_plan::Parameters parameters) {
  tilewright::Permute<permute_f16_plan::Plan>(parameters).run();
}
