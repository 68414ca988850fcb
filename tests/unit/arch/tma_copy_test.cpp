// TMA copies: boxes as in CuTe, boxes of more than 256, refusals, and a model of TMA that fills shared memory, which is
// then read through wgmma descriptors.
#include "tilewright/arch/tma_copy.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/unit/arch/hopper_model.hpp"
#include "tilewright/arch/wgmma_tile.hpp"
#include "tilewright/base/error.hpp"
#include "tilewright/layout/print.hpp"

namespace tilewright::arch {
namespace {

using layout::ComposedLayout;
using layout::IntTuple;
using layout::Layout;
using enum Major;
using enum SwizzleMode;
using Extents = std::vector<std::int64_t>;

/// A tensor of `rows` x `depth` that is contiguous along the major mode.
Layout matrix(Major major, std::int64_t rows, std::int64_t depth) {
  return major == k ? Layout({rows, depth}, {depth, 1}) : Layout({rows, depth}, {1, rows});
}

/// A type of elements of that width.
DType element_of(int bits) { return bits == 8 ? DType::u8 : bits == 16 ? DType::f16 : DType::f32; }

/// The extents of the box of a tensor map, which has as many modes.
Extents box_of(const TensorMap& map) { return {map.box.begin(), map.box.begin() + map.rank}; }
Extents extents_of(const TensorMap& map) { return {map.extents.begin(), map.extents.begin() + map.rank}; }
/// The strides of modes 1 and up, in bytes.
Extents strides_of(const TensorMap& map) { return {map.strides.begin() + 1, map.strides.begin() + map.rank}; }

TmaRequest request(Major major, SwizzleMode mode, int bits, std::int64_t rows, std::int64_t depth,
                   std::optional<AtomOrder> order = std::nullopt) {
  TmaRequest r;
  r.global = matrix(major, 4096, 4096);
  r.element = element_of(bits);
  r.smem = smem_tile({.major = major, .mode = mode, .element_bits = bits, .mn = rows, .k = depth, .order = order})
               .value_or_throw();
  r.tile = {rows, depth};
  return r;
}

TmaCopy plan(const TmaRequest& r) { return make_tma_copy(r).value_or_throw(); }

// Printed by CuTe's construct_tma_gbasis for tensors of 4096x4096.
TEST(TmaCopy, EqualsCute) {
  struct Row {
    TmaRequest request;
    Extents box;
    std::int64_t count;
    const char* boxes;
  };
  const std::vector<Row> rows{
      {request(k, bytes_128, 16, 128, 64), {64, 128}, 1, "1:0"},
      {request(k, bytes_128, 16, 128, 128), {64, 128}, 2, "(2):(64@0)"},
      {request(k, bytes_128, 16, 256, 64), {64, 256}, 1, "1:0"},
      {request(mn, bytes_128, 16, 128, 64, AtomOrder::mn_first), {64, 8}, 16, "(2,8):(64@0,8@1)"},
      {request(mn, bytes_128, 16, 128, 64), {64, 64}, 2, "(2):(64@0)"},
      {request(k, none, 16, 128, 64), {8, 128}, 8, "(8):(8@0)"},
      {request(k, bytes_64, 16, 64, 32), {32, 64}, 1, "1:0"},
      {request(k, bytes_128, 32, 64, 32), {32, 64}, 1, "1:0"},
  };
  for (const Row& row : rows) {
    const TmaCopy copy = plan(row.request);
    EXPECT_EQ(box_of(copy.map), row.box);
    EXPECT_EQ(box_count(copy), row.count);
    EXPECT_EQ(to_string(copy.box_coordinate), row.boxes);
    EXPECT_EQ(copy.transaction_bytes, size(row.request.smem.layout) * bytes(row.request.element));
  }
}

// CuTe does not split a mode of 512 and then fails.
TEST(TmaCopy, SplitsBoxesOfMoreThan256) {
  const TmaCopy copy = plan(request(k, bytes_128, 16, 512, 64));
  EXPECT_EQ(box_of(copy.map), (Extents{64, 256}));
  EXPECT_EQ(to_string(copy.box_coordinate), "(2):(256@1)");
  EXPECT_EQ(tma_smem_bytes(copy, 1), 256 * 128);
  EXPECT_EQ(tma_coordinate(copy, {1024, 128}, 1), (Extents{128, 1024 + 256}));

  const TmaCopy deep = plan(request(k, bytes_128, 16, 320, 128));
  EXPECT_EQ(box_of(deep.map), (Extents{64, 160})) << "the largest divisor of 320";
  EXPECT_EQ(to_string(deep.box_coordinate), "(2,2):(160@1,64@0)");
}

TEST(TmaCopy, TensorMap) {
  TmaRequest r = request(k, bytes_128, 16, 128, 64);
  r.global = Layout({1000, 520}, {528, 1});
  const TensorMap map = plan(r).map;
  EXPECT_EQ(extents_of(map), (Extents{520, 1000}));
  EXPECT_EQ(strides_of(map), (Extents{1056}));
  EXPECT_EQ(map.rank, 2);
  EXPECT_THAT(map.element_strides, testing::Each(1U));
  EXPECT_EQ(map.swizzle, TensorMapSwizzle::bytes_128);
  EXPECT_EQ(map.type, TensorMapType::f16);
}

TEST(TmaCopy, ABatchIsAnotherMode) {
  TmaRequest r = request(k, bytes_128, 16, 128, 64);
  r.global = Layout({4096, 4096, 8}, {4096, 1, 4096 * 4096});
  const TmaCopy copy = plan(r);
  EXPECT_EQ(box_of(copy.map), (Extents{64, 128, 1}));
  EXPECT_EQ(extents_of(copy.map), (Extents{4096, 4096, 8}));
  EXPECT_EQ(to_string(copy.coordinates), "(4096,4096,8):(1@1,1@0,1@2)");
  EXPECT_EQ(tma_coordinate(copy, {256, 192, 5}, 0), (Extents{192, 256, 5}));

  r.global = Layout({4096, 4096, 1}, {4096, 1, 0});
  EXPECT_EQ(plan(r).map.rank, 2) << "a mode of extent 1 is left out";
  r.global = Layout({4096, 4096, 8}, {4096, 1, 0});
  EXPECT_EQ(plan(r).map.rank, 2) << "a mode of stride 0 is left out";
}

// A problem smaller than the tile: the box exceeds the tensor, which keeps the mode.
TEST(TmaCopy, ExtentsOfOneInTheTile) {
  TmaRequest r = request(k, bytes_128, 16, 128, 64);
  r.global = Layout({1, 64}, {64, 1});
  EXPECT_EQ(extents_of(plan(r).map), (Extents{64, 1}));
  EXPECT_EQ(box_of(plan(r).map), (Extents{64, 128}));
}

TEST(TmaCopy, NestedModes) {
  TmaRequest r = request(k, bytes_128, 16, 128, 64);
  r.global = Layout({{32, 100}, 64}, {{64, 4096}, 1});
  r.tile = {128, 64};
  const TmaCopy copy = plan(r);
  EXPECT_EQ(box_of(copy.map), (Extents{64, 32, 4}));
  EXPECT_EQ(extents_of(copy.map), (Extents{64, 32, 100}));
  EXPECT_EQ(strides_of(copy.map), (Extents{128, 8192}));
  EXPECT_EQ(tma_coordinate(copy, IntTuple{{0, 8}, 0}, 0), (Extents{0, 0, 8}));
}

// As in CuTe, modes past the fifth are grouped: the stride is the gcd, the extent reaches the last element.
TEST(TmaCopy, MoreThanFiveModes) {
  TmaRequest r = request(k, bytes_128, 16, 128, 64);
  r.global = Layout({256, 64, 2, 3, 4, 5, 6}, {64, 1, 16384, 32768, 98304, 393216, 1966080});
  const TmaCopy copy = plan(r);
  EXPECT_EQ(copy.map.rank, 5);
  EXPECT_EQ(extents_of(copy.map), (Extents{64, 256, 2, 3, 4 * 5 * 6}));
  EXPECT_EQ(to_string(copy.coordinates.stride()), "(1@1,1@0,1@2,1@3,1@4,4@4,20@4)");
  EXPECT_EQ(tma_coordinate(copy, {0, 0, 1, 2, 3, 4, 5}, 0), (Extents{0, 0, 1, 2, 3 + 16 + 100}));
}

TEST(TmaCopy, MulticastSlices) {
  TmaRequest r = request(k, bytes_128, 16, 128, 128);
  r.multicast = 4;
  const TmaCopy copy = plan(r);
  EXPECT_EQ(box_of(copy.map), (Extents{64, 32}));
  EXPECT_EQ(box_count(copy), 2);
  EXPECT_EQ(to_string(copy.slice_coordinate), "(4):(32@1)");
  EXPECT_EQ(tma_smem_bytes(copy, 1, 3), 128 * 128 + 3 * 32 * 128);
  EXPECT_EQ(tma_coordinate(copy, {256, 0}, 1, 3), (Extents{64, 256 + 96}));
  EXPECT_EQ(copy.transaction_bytes, 128 * 128 * 2) << "every CTA receives the whole tile";

  r.multicast = 3;
  EXPECT_EQ(make_tma_copy(r).reason(), "3 CTAs cannot load equal slices of a box of 64x128");
  r = request(k, bytes_32, 16, 8, 16);
  r.multicast = 4;
  EXPECT_EQ(make_tma_copy(r).reason(), "slices of a multicast must be multiples of 128 bytes, got 64 for 4 CTAs");
}

// In a 4x2 cluster, CTAs in a row of the grid share A, and CTAs in a column share B.
TEST(TmaCopy, MulticastMasks) {
  const Layout cluster = layout::make_layout({4, 2});
  EXPECT_EQ(multicast_mask(cluster, 1, 1), 0b00100010);
  EXPECT_EQ(multicast_mask(cluster, 1, 5), 0b00100010);
  EXPECT_EQ(multicast_mask(cluster, 0, 1), 0b00001111);
  EXPECT_EQ(multicast_mask(cluster, 0, 6), 0b11110000);
  EXPECT_THROW(multicast_mask(cluster, 2, 0), InvalidArgument);
  EXPECT_THROW(multicast_mask(cluster, 0, 8), InvalidArgument);
  EXPECT_THROW(multicast_mask(layout::make_layout({8, 4}), 0, 0), InvalidArgument);
}

TEST(TmaCopy, TensorMapsForOtherTensors) {
  TmaRequest r = request(k, bytes_128, 16, 128, 64);
  r.global = Layout({4096, 4096, 1}, {4096, 1, 0});
  const TmaCopy copy = plan(r);
  const TensorMap map = tensor_map_for(copy, Layout({100, 72, 1}, {80, 1, 0}), 0x1000).value_or_throw();
  EXPECT_EQ(extents_of(map), (Extents{72, 100}));
  EXPECT_EQ(strides_of(map), (Extents{160}));
  EXPECT_EQ(map.box, copy.map.box);
  EXPECT_FALSE(tensor_map_for(copy, Layout({100, 72, 2}, {80, 1, 8000}), 0)) << "the map has no batch mode";
  EXPECT_FALSE(tensor_map_for(copy, Layout({100, 72, 1}, {1, 112, 0}), 0)) << "the contiguous mode differs";
  EXPECT_FALSE(tensor_map_for(copy, Layout({100, 72}, {80, 1}), 0));
  EXPECT_EQ(tensor_map_for(copy, Layout({100, 72, 1}, {84, 1, 0}), 0).reason(),
            "the stride of mode 1 of a tensor map must be a multiple of 16 bytes, got 168");
}

/// A request with one change, and the reason why it is refused.
template <class Change>
std::string refusal(Change&& change) {
  TmaRequest r = request(k, bytes_128, 16, 128, 64);
  change(r);
  const Result<TmaCopy> copy = make_tma_copy(r);
  return copy ? "" : copy.reason();
}

TEST(TmaCopy, RefusesTensors) {
  EXPECT_EQ(refusal([](TmaRequest& r) { r.global_address = 8; }),
            "the address of a tensor map must be a multiple of 16 bytes, got 0x8");
  EXPECT_EQ(refusal([](TmaRequest& r) {
              r.global = Layout({64, 63}, {63, 1});
            }),
            "the stride of mode 1 of a tensor map must be a multiple of 16 bytes, got 126");
  EXPECT_EQ(refusal([](TmaRequest& r) {
              r.global = Layout({64, 64}, {std::int64_t{1} << 39, 1});
            }),
            "the stride of mode 1 of a tensor map must be below 2^40 bytes, got 1099511627776");
  EXPECT_EQ(refusal([](TmaRequest& r) {
              r.global = Layout({64, 64}, {-64, 1});
            }),
            "the stride of mode 1 of a tensor map must be at least 0, got -64 elements");
  EXPECT_EQ(refusal([](TmaRequest& r) {
              r.global = Layout({(std::int64_t{1} << 32) + 1, 64}, {64, 1});
            }),
            "mode 1 of a tensor map must have an extent from 1 to 2^32, got 4294967297");
  EXPECT_EQ(refusal([](TmaRequest& r) { r.global = matrix(mn, 4096, 4096); }),
            "the mode that is contiguous in shared memory must have stride 1 in the tensor, got 4096 in "
            "(4096,4096):(1,4096)");
  EXPECT_EQ(refusal([](TmaRequest& r) { r.global = Layout(4096, 1); }),
            "the tensor must have a tuple of modes, got 4096:1");
}

TEST(TmaCopy, RefusesTilesAndSharedMemory) {
  EXPECT_EQ(refusal([](TmaRequest& r) {
              r.tile = {64, 64};
            }),
            "the tile (64,64) has 4096 elements, but its layout in shared memory has 8192");
  EXPECT_EQ(refusal([](TmaRequest& r) {
              r.smem = {layout::Swizzle(), 0, Layout({128, 64}, {72, 1})};
            }),
            "shared memory (128,64):(72,1) is not a bijection onto its 8192 elements");
  EXPECT_EQ(refusal([](TmaRequest& r) {
              r.smem = {layout::Swizzle(2, 4, 2), 0, Layout({128, 64}, {64, 1})};
            }),
            "Sw<2,4,2> of 16-bit elements is not one of the modes Sw<0..3,4,3> of bytes");
  EXPECT_EQ(refusal([](TmaRequest& r) { r.smem.offset = 64; }), "a tile must start at offset 0 of its swizzle, got 64");
  EXPECT_EQ(refusal([](TmaRequest& r) {
              r.smem.layout = Layout({128, 128}, {128, 1});
              r.tile = {128, 128};
            }),
            "the rows of a box with the 128-byte swizzle must be at most 128 bytes, got 256 of 128 f16");
  EXPECT_EQ(refusal([](TmaRequest& r) {
              r.smem = {layout::Swizzle(), 0, Layout({128, 4}, {4, 1})};
              r.tile = {128, 4};
            }),
            "the rows of a box must be a multiple of 16 bytes, got 8 of 4 f16");
  EXPECT_EQ(refusal([](TmaRequest& r) { r.multicast = 0; }), "a tile must be loaded by at least one CTA, got 0");
  EXPECT_EQ(refusal([](TmaRequest& r) { r.element = DType::s4; }).substr(0, 12), "Sw<3,3,3> of");
  EXPECT_EQ(refusal([](TmaRequest& r) {
              r.element = DType::s4;
              r.smem =
                  smem_tile({.major = k, .mode = bytes_128, .element_bits = 4, .mn = 128, .k = 256}).value_or_throw();
              r.tile = {128, 256};
            }),
            "TMA copies elements of 8, 16, 32 or 64 bits, got s4 of 4");
  EXPECT_EQ(refusal([](TmaRequest& r) {
              r.smem = {layout::Swizzle(), 0, Layout({8, 8}, {8, 1})};
              r.smem.layout = Layout({8, {8, 2}}, {24, {1, 8}});
              r.tile = {8, 16};
            }).substr(0, 13),
            "shared memory");
}

// A box of 96 bytes cannot be followed by another one.
TEST(TmaCopy, RefusesBoxesNotAlignedTo128Bytes) {
  EXPECT_EQ(refusal([](TmaRequest& r) {
              r.smem = {layout::Swizzle(), 0, Layout({3, {16, 4}}, {16, {1, 48}})};
              r.tile = {3, 64};
            }),
            "boxes must be multiples of 128 bytes, got 96 of 16x3");
}

/// The value of the tensor at (row, depth): its index, or 0 out of bounds.
std::int64_t value_at(const Layout& global, std::int64_t row, std::int64_t depth) {
  const bool inside = row < size(global.mode(0)) && depth < size(global.mode(1));
  return inside ? 1 + global(row, depth) : 0;
}

model::TensorMap machine_map(const TensorMap& map) {
  return {extents_of(map), strides_of(map), box_of(map), std::max(16, width(map.swizzle))};
}

/// Loads the tile at (row, depth) by all boxes and slices.
model::SharedMemory load(const TmaRequest& r, const TmaCopy& copy, std::int64_t row, std::int64_t depth,
                         std::int64_t address) {
  const int bytes = tilewright::bytes(r.element);
  model::SharedMemory smem(address + size(r.smem.layout) * bytes, bytes);
  for (std::int64_t box = 0; box < box_count(copy); ++box) {
    for (std::int64_t slice = 0; slice < r.multicast; ++slice)
      model::tma_load(machine_map(copy.map), tma_coordinate(copy, {row, depth}, box, slice),
                      address + tma_smem_bytes(copy, box, slice), smem,
                      [&](std::int64_t global_address) { return 1 + global_address / bytes; });
  }
  return smem;
}

/// Global memory -> TMA -> shared memory -> descriptor -> wgmma: expects every element of the tensor in its place.
void expect_operand(const TmaRequest& r, Major major, std::int64_t instruction_mn, std::int64_t row0,
                    std::int64_t depth0) {
  const Result<TmaCopy> copy = make_tma_copy(r);
  ASSERT_TRUE(copy) << copy.reason();
  const Result<WgmmaOperand> operand = wgmma_operand(major, r.smem, bits(r.element), instruction_mn);
  ASSERT_TRUE(operand) << operand.reason();
  constexpr std::int64_t address = 2048;
  model::SharedMemory smem = load(r, *copy, row0, depth0, address);
  const std::int64_t instruction_k = 256 / bits(r.element);
  for (std::int64_t i = 0; i < size(operand->offset.mode(0)); ++i) {
    for (std::int64_t j = 0; j < size(operand->offset.mode(1)); ++j) {
      const std::uint64_t bits = descriptor_bits(*operand, i, j, 0, address);
      for (std::int64_t row = 0; row < instruction_mn; ++row) {
        for (std::int64_t kk = 0; kk < instruction_k; ++kk)
          ASSERT_EQ(model::read_operand(smem, bits, major == k, row, kk),
                    value_at(r.global, row0 + i * instruction_mn + row, depth0 + j * instruction_k + kk))
              << to_string(r.smem) << " of " << r.global << " instruction " << i << "," << j << " row " << row << " k "
              << kk;
      }
    }
  }
}

TEST(TmaModel, EveryTypeMajorModeAndOrder) {
  for (const int bits : {8, 16, 32}) {
    for (const SwizzleMode mode : {none, bytes_32, bytes_64, bytes_128}) {
      for (const Major major : {k, mn}) {
        for (const AtomOrder order : {AtomOrder::mn_first, AtomOrder::k_first}) {
          const std::int64_t depth = 2 * 1024 / bits;
          TmaRequest r = request(major, mode, bits, 128, depth, order);
          r.global = matrix(major, 400, 3 * depth);
          expect_operand(r, major, major == k ? 64 : 128, 128, depth);
          expect_operand(r, major, major == k ? 64 : 128, 384, 2 * depth + depth / 2);
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

TEST(TmaModel, BoxesOfMoreThan256) {
  TmaRequest r = request(k, bytes_128, 16, 512, 128);
  r.global = matrix(k, 700, 256);
  expect_operand(r, k, 64, 0, 0);
  expect_operand(r, k, 64, 512, 192);
  r = request(mn, bytes_128, 16, 64, 512);
  r.global = matrix(mn, 72, 1000);
  expect_operand(r, mn, 64, 0, 512);
}

TEST(TmaModel, MulticastSlices) {
  for (const std::int64_t ctas : {2, 4, 8}) {
    TmaRequest r = request(k, bytes_128, 16, 256, 128);
    r.global = matrix(k, 300, 200);
    r.multicast = ctas;
    expect_operand(r, k, 256, 128, 128);
    r = request(mn, bytes_128, 16, 128, 64);
    r.global = matrix(mn, 200, 100);
    r.multicast = ctas;
    expect_operand(r, mn, 128, 128, 64);
  }
}

// The whole tile is written, with zeros out of bounds.
TEST(TmaModel, FillsOutOfBoundsElementsWithZeros) {
  TmaRequest r = request(k, bytes_128, 16, 128, 64);
  r.global = matrix(k, 100, 40);
  const TmaCopy copy = plan(r);
  model::SharedMemory smem = load(r, copy, 64, 0, 0);
  std::int64_t zeros = 0;
  for (std::int64_t i = 0; i < 128 * 64; ++i) {
    ASSERT_NE(smem.at(2 * i), model::kUnwritten);
    zeros += smem.at(2 * i) == 0 ? 1 : 0;
  }
  EXPECT_EQ(zeros, 128 * 64 - 36 * 40);
}

TEST(TmaModel, SkipsPaddingBetweenRows) {
  TmaRequest r = request(k, bytes_64, 16, 128, 32);
  r.global = Layout({130, 40}, {56, 1});
  expect_operand(r, k, 64, 128, 32);
}

}  // namespace
}  // namespace tilewright::arch
