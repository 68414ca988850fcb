// Matrix descriptors equal those of nvcute and CuTe, and a model of wgmma reads every operand correctly through them.
#include "tilewright/arch/smem_descriptor.hpp"

#include <gtest/gtest.h>

#include <array>
#include <numeric>
#include <string>
#include <vector>

#include "tests/unit/arch/hopper_model.hpp"
#include "tilewright/arch/wgmma_tile.hpp"
#include "tilewright/base/error.hpp"
#include "tilewright/layout/algebra.hpp"

namespace tilewright::arch {
namespace {

using layout::ComposedLayout;
using layout::Layout;
using enum Major;
using enum SwizzleMode;

constexpr std::array kModes{none, bytes_32, bytes_64, bytes_128};
constexpr std::array kMajors{k, mn};
constexpr std::array kOrders{AtomOrder::mn_first, AtomOrder::k_first};

/// The tile in the widest mode, with atoms in the order of nvcute: whole columns along the major mode.
ComposedLayout widest_tile(Major major, int bits, std::int64_t rows, std::int64_t depth) {
  const SwizzleMode mode = widest_swizzle(major, bits, rows, depth).value_or_throw();
  return smem_tile({.major = major, .mode = mode, .element_bits = bits, .mn = rows, .k = depth}).value_or_throw();
}

/// The descriptor of an instruction with all rows and the first 32 bytes of k.
std::uint64_t first_descriptor(Major major, int bits, std::int64_t rows, std::int64_t depth) {
  return encode(wgmma_operand(major, widest_tile(major, bits, rows, depth), bits, rows).value_or_throw().descriptor);
}

// All four cases of make_gmma_desc.py.
TEST(SmemDescriptor, EqualsNvcute) {
  EXPECT_EQ(first_descriptor(k, 16, 64, 64), 0x4000004000010000u);
  EXPECT_EQ(first_descriptor(k, 16, 128, 64), 0x4000004000010000u);
  EXPECT_EQ(first_descriptor(mn, 16, 128, 64), 0x4000004002000000u);
  EXPECT_EQ(first_descriptor(mn, 16, 128, 32), 0x4000004001000000u);
}

// More tiles, computed with nvcute.
TEST(SmemDescriptor, EqualsNvcuteForMoreTiles) {
  EXPECT_EQ(first_descriptor(mn, 16, 256, 64), 0x4000004002000000u);
  EXPECT_EQ(first_descriptor(mn, 16, 128, 16), 0x4000004000800000u);
}

// For swizzled K-major tiles, the leading byte offset of nvcute is right for f16 with the 128-byte swizzle only (8
// bytes with the 64-byte swizzle, which is 0 in units of 16; 32 bytes for f32). The hardware does not use it there.
// CuTe sets 16, as does this library.
TEST(SmemDescriptor, EqualsNvcuteExceptForTheUnusedLeadingOffset) {
  constexpr std::uint64_t leading = 0x3FFF0000;
  constexpr std::uint64_t sixteen_bytes = 0x10000;
  struct Row {
    int bits;
    std::int64_t rows, depth;
    std::uint64_t nvcute;
  };
  const std::array rows{Row{16, 64, 16, 0xc000001000000000}, Row{16, 64, 32, 0x8000002000000000},
                        Row{16, 128, 32, 0x8000002000000000}, Row{32, 64, 32, 0x4000004000020000},
                        Row{8, 128, 64, 0x8000002000000000}};
  for (const Row& row : rows)
    EXPECT_EQ(first_descriptor(k, row.bits, row.rows, row.depth), (row.nvcute & ~leading) | sixteen_bytes);
}

// nvcute refuses e4m3 (.,16) K-major, because it has no mode without a swizzle.
TEST(SmemDescriptor, OneInstructionOfBytesInTheWidestMode) {
  EXPECT_EQ(*widest_swizzle(k, 8, 128, 32), bytes_32);
  EXPECT_EQ(*widest_swizzle(k, 8, 128, 16), none);
  EXPECT_EQ(wgmma_operand(k, widest_tile(k, 8, 128, 16), 8, 64).reason(),
            "an instruction takes 32 of k, which do not divide the tile's 16");
}

struct Offsets {
  std::int64_t stride, leading, step;
  bool operator==(const Offsets&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Offsets& o) {
  return out << "stride " << o.stride << ", leading " << o.leading << ", k step " << o.step;
}

/// The byte offsets of the first instruction of a 128-row f16 tile, and the distance of the next one along k in bytes.
Offsets offsets(Major major, SwizzleMode mode, AtomOrder order, std::int64_t depth = 64) {
  const auto tile =
      smem_tile({.major = major, .mode = mode, .element_bits = 16, .mn = 128, .k = depth, .order = order});
  const WgmmaOperand operand = wgmma_operand(major, *tile, 16, 128).value_or_throw();
  return {operand.descriptor.stride_byte_offset, operand.descriptor.leading_byte_offset, 16 * operand.offset(0, 1)};
}

// Computed with CuTe's make_gmma_desc on tile_to_shape of each atom.
TEST(SmemDescriptor, EqualsCuteForEachMode) {
  using enum AtomOrder;
  EXPECT_EQ(offsets(k, bytes_128, mn_first), (Offsets{1024, 16, 32}));
  EXPECT_EQ(offsets(k, bytes_64, mn_first), (Offsets{512, 16, 32}));
  EXPECT_EQ(offsets(k, bytes_32, mn_first), (Offsets{256, 16, 128 * 32}));
  EXPECT_EQ(offsets(k, none, mn_first), (Offsets{128, 2048, 2 * 128 * 16}));
  EXPECT_EQ(offsets(mn, bytes_128, mn_first), (Offsets{2048, 1024, 2 * 2048}));
  EXPECT_EQ(offsets(mn, bytes_128, k_first), (Offsets{1024, 8192, 2048}));
  EXPECT_EQ(offsets(mn, bytes_64, mn_first), (Offsets{2048, 512, 2 * 2048}));
  EXPECT_EQ(offsets(mn, bytes_32, mn_first), (Offsets{2048, 256, 2 * 2048}));
  EXPECT_EQ(offsets(mn, none, mn_first), (Offsets{128, 2048, 2 * 2048}));
}

TEST(SmemDescriptor, BitsRoundTrip) {
  const SmemDescriptor d{.start_address = 0x3fff0,
                         .leading_byte_offset = 8192,
                         .stride_byte_offset = 1024,
                         .base_offset = 5,
                         .mode = bytes_64};
  EXPECT_EQ(encode(d), 0x800a004002003fffu);
  EXPECT_EQ(*decode(0x800a004002003fff), d);
  EXPECT_EQ(decode(0x4000).reason(), "0x4000 sets reserved bits 0x4000 of a descriptor");
  EXPECT_FALSE(decode(std::uint64_t{1} << 60));
  EXPECT_EQ(to_string(d), "start 0x3fff0, leading 8192, stride 1024, 64-byte swizzle");
}

TEST(SmemDescriptor, ValuesThatDoNotFitTheirFields) {
  EXPECT_THROW(encode({.start_address = 1 << 18}), InvalidArgument);
  EXPECT_THROW(encode({.start_address = 8}), InvalidArgument);
  EXPECT_THROW(encode({.stride_byte_offset = -16}), InvalidArgument);
  EXPECT_THROW(encode({.base_offset = 8}), InvalidArgument);
}

// The descriptor numbers the modes from the widest (PTX ISA).
TEST(SwizzleEnums, OfDescriptors) {
  constexpr std::array descriptor{0, 3, 2, 1};
  for (std::size_t i = 0; i < kModes.size(); ++i) {
    EXPECT_EQ(descriptor_swizzle(kModes[i]), descriptor[i]);
    EXPECT_EQ(*mode_of_descriptor_swizzle(descriptor[i]), kModes[i]);
  }
  EXPECT_FALSE(mode_of_descriptor_swizzle(4));
}

/// The reason why a layout of 16-bit elements with the 128-byte swizzle has no descriptor.
std::string refusal(Major major, const Layout& operand, SwizzleMode mode = bytes_128) {
  const ComposedLayout atom = *smem_atom(major, mode, 16);
  return make_descriptor(major, {atom.swizzle, 0, operand}, 16).reason();
}

TEST(MakeDescriptor, NamesTheViolatedRule) {
  EXPECT_EQ(refusal(k, Layout({64, 32}, {64, 1})),
            "(64,32):(64,1) is not a canonical K-major operand: k must be 256 bits wide, 16 elements, got 32");
  EXPECT_EQ(refusal(k, Layout({64, 16}, {72, 1})),
            "(64,16):(72,1) is not a canonical K-major operand: rows must be 128 bytes apart, got 144");
  EXPECT_EQ(
      refusal(k, Layout({64, 16}, {60, 1})),
      "(64,16):(60,1) is not a canonical K-major operand: other strides must be multiples of 16 bytes (8 elements), "
      "got 64:60");
  EXPECT_EQ(
      refusal(k, Layout({64, 16}, {1, 64})),
      "(64,16):(1,64) is not a canonical K-major operand: other strides must be multiples of 16 bytes (8 elements), "
      "got 64:1");
  EXPECT_EQ(refusal(k, Layout({12, 16}, {64, 1})),
            "(12,16):(64,1) is not a canonical K-major operand: mn must be groups of 8 at one stride, got (12):(8) in "
            "chunks of 16 bytes");
  EXPECT_EQ(
      refusal(k, Layout({64, {8, 2}}, {64, {1, 4096}})),
      "(64,(8,2)):(64,(1,4096)) is not a canonical K-major operand: the two 16-byte chunks of k must be adjacent, got "
      "8192 bytes apart");
  EXPECT_EQ(refusal(mn, Layout({32, 16}, {1, 64})),
            "(32,16):(1,64) is not a canonical MN-major operand: mn must be groups of 8 at one stride, got (4):(1) in "
            "chunks of 16 bytes");
  EXPECT_EQ(refusal(mn, Layout({64, 16}, {1, 128})),
            "(64,16):(1,128) is not a canonical MN-major operand: steps of k must be 128 bytes apart, got 256");
  EXPECT_EQ(
      refusal(mn, Layout({64, 16}, {64, 1})),
      "(64,16):(64,1) is not a canonical MN-major operand: 16 bytes (8 elements) must be contiguous along mn, got "
      "64:64");
  EXPECT_EQ(refusal(k, Layout(64, 1)),
            "64:1 is not a canonical K-major operand: it must have modes (mn, k), got rank 1");
}

TEST(MakeDescriptor, AddressesAndElements) {
  const ComposedLayout tile{smem_atom(k, bytes_128, 16)->swizzle, 0, Layout({64, 16}, {64, 1})};
  EXPECT_EQ(make_descriptor(k, tile, 16, 0x2000)->start_address, 0x2000);
  EXPECT_EQ(make_descriptor(k, tile, 16, 512).reason(),
            "the address of a tile with 128-byte swizzle must be a multiple of 1024, got 512");
  EXPECT_EQ(make_descriptor(k, tile, 16, 1 << 18).reason(),
            "the start address of a descriptor must be a multiple of 16 bytes below 262144, got 262144");
  ComposedLayout second_step = tile;
  second_step.offset = 16;
  EXPECT_EQ(make_descriptor(k, second_step, 16)->start_address, 32);
  second_step.offset = 4;
  EXPECT_FALSE(make_descriptor(k, second_step, 16));
  EXPECT_FALSE(make_descriptor(k, {layout::Swizzle(3, 4, 3), 0, tile.layout}, 16))
      << "the swizzle is in units of bytes";
}

/// A tile in shared memory where the value at (row, k) is row * depth + k.
model::SharedMemory filled(const ComposedLayout& tile, int element_bytes, std::int64_t address) {
  const std::int64_t rows = size(tile.layout.mode(0));
  const std::int64_t depth = size(tile.layout.mode(1));
  model::SharedMemory smem(address + rows * depth * element_bytes, element_bytes);
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t kk = 0; kk < depth; ++kk) smem.at(address + tile(row, kk) * element_bytes) = row * depth + kk;
  }
  return smem;
}

/// Expects that the model of wgmma reads the right element for every element of every instruction.
void expect_reads_the_matrix(const SmemTile& request, std::int64_t instruction_mn, std::int64_t address) {
  const int bytes = request.element_bits / 8;
  const ComposedLayout tile = smem_tile(request).value_or_throw();
  const Result<WgmmaOperand> operand = wgmma_operand(request.major, tile, request.element_bits, instruction_mn);
  ASSERT_TRUE(operand) << operand.reason();
  model::SharedMemory smem = filled(tile, bytes, address);
  const std::int64_t instruction_k = 32 / bytes;
  for (std::int64_t i = 0; i < request.mn / instruction_mn; ++i) {
    for (std::int64_t j = 0; j < request.k / instruction_k; ++j) {
      const std::uint64_t bits = descriptor_bits(*operand, i, j, 0, address);
      for (std::int64_t row = 0; row < instruction_mn; ++row) {
        for (std::int64_t kk = 0; kk < instruction_k; ++kk)
          ASSERT_EQ(model::read_operand(smem, bits, request.major == k, row, kk),
                    (i * instruction_mn + row) * request.k + j * instruction_k + kk)
              << to_string(tile) << " instruction " << i << "," << j << " row " << row << " k " << kk;
      }
    }
  }
}

// The hardware reads MN-major operands of 16-bit types only; the arithmetic of descriptors is checked for all types.
TEST(DescriptorModel, ReadsEveryElement) {
  for (const int bits : {8, 16, 32}) {
    for (const SwizzleMode mode : kModes) {
      const std::int64_t width = 8 * width_bytes(mode) / bits;
      for (const Major major : kMajors) {
        for (const AtomOrder order : kOrders) {
          for (const std::int64_t rows : {std::int64_t{64}, std::int64_t{192}, std::int64_t{256}}) {
            const std::int64_t instruction_mn = major == mn ? std::lcm(std::int64_t{64}, width) : 64;
            if (rows % instruction_mn != 0) continue;
            const std::int64_t instruction_k = 256 / bits;
            for (const std::int64_t depth : {instruction_k, 4 * instruction_k, 8 * instruction_k}) {
              if (major == k && depth % width != 0) continue;
              expect_reads_the_matrix(
                  {.major = major, .mode = mode, .element_bits = bits, .mn = rows, .k = depth, .order = order},
                  instruction_mn, 4096);
              if (HasFatalFailure()) return;
            }
          }
        }
      }
    }
  }
}

// n of wgmma is any multiple of 8, so B tiles need not be powers of two.
TEST(DescriptorModel, ReadsTilesThatAreNotPowersOfTwo) {
  for (const std::int64_t n : {8, 24, 72, 96, 120, 200})
    expect_reads_the_matrix({.major = k, .mode = bytes_128, .element_bits = 16, .mn = n, .k = 128}, n, 0);
  for (const std::int64_t n : {16, 48, 80, 240})
    expect_reads_the_matrix({.major = mn, .mode = bytes_32, .element_bits = 16, .mn = n, .k = 64}, n, 0);
}

// The model detects a descriptor that is off by one chunk.
TEST(DescriptorModel, DetectsAWrongDescriptor) {
  const ComposedLayout tile = widest_tile(k, 16, 64, 64);
  const WgmmaOperand operand = *wgmma_operand(k, tile, 16, 64);
  model::SharedMemory smem = filled(tile, 2, 0);
  const std::uint64_t bits = descriptor_bits(operand, 0, 1);
  EXPECT_EQ(model::read_operand(smem, bits, true, 9, 3), 9 * 64 + 16 + 3);
  EXPECT_NE(model::read_operand(smem, bits + 1, true, 9, 3), 9 * 64 + 16 + 3);
  EXPECT_NE(model::read_operand(smem, bits & ~(std::uint64_t{3} << 62), true, 9, 3), 9 * 64 + 16 + 3);
}

}  // namespace
}  // namespace tilewright::arch
