// GEMM kernels of the four mixes of atoms, compared bit for bit with sums of integers.
#include "tilewright/program/gemm.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "program_run.hpp"
#include "tilewright/base/error.hpp"

namespace tilewright::program {
namespace {

struct Extents {
  int m, n, k, batch = 1;
};

std::uint16_t f16_bits(int value) {
  const _Float16 half = static_cast<_Float16>(value);
  std::uint16_t bits = 0;
  std::memcpy(&bits, &half, sizeof bits);
  return bits;
}

/// A batch of matrices of small integers in f16, with `gap` elements between lines.
struct Matrix {
  Matrix(int rows, int columns, int batch, bool is_row_major, int gap, std::uint32_t seed)
      : leading_dimension((is_row_major ? columns : rows) + gap),
        batch_stride(leading_dimension * (is_row_major ? rows : columns)),
        row_stride(is_row_major ? leading_dimension : 1),
        column_stride(is_row_major ? 1 : leading_dimension),
        values(static_cast<std::size_t>(batch) * static_cast<std::size_t>(batch_stride)) {
    std::mt19937 random(seed);
    for (int& value : values) value = static_cast<int>(random() % 7) - 3;
    std::vector<std::uint16_t> bits;
    for (const int value : values) bits.push_back(f16_bits(value));
    buffer = upload(bits);
  }
  int at(int batch, int row, int column) const {
    return values[static_cast<std::size_t>(batch * batch_stride + row * row_stride + column * column_stride)];
  }

  int leading_dimension, batch_stride, row_stride, column_stride;
  std::vector<int> values;
  runtime::DeviceBuffer buffer;
};

void expect_product(const Program& program, const std::string& ptx, const GemmDescription& about, const Extents& of) {
  const int gap = 8;
  const Matrix a(of.m, of.k, of.batch, about.a_major == arch::Major::k, gap, 1);
  const Matrix b(of.n, of.k, of.batch, about.b_major == arch::Major::k, gap, 2);
  const int ldd = of.n + 3, batch_d = of.m * ldd;
  std::vector<float> expected(static_cast<std::size_t>(of.batch * batch_d), -777.0F);
  const auto d = upload(expected);
  for (int batch = 0; batch < of.batch; ++batch) {
    for (int row = 0; row < of.m; ++row) {
      for (int column = 0; column < of.n; ++column) {
        int sum = 0;
        for (int k = 0; k < of.k; ++k) sum += a.at(batch, row, k) * b.at(batch, column, k);
        expected[static_cast<std::size_t>(batch * batch_d + row * ldd + column)] = static_cast<float>(sum);
      }
    }
  }
  run(program, ptx,
      LaunchArguments()
          .integer("m", of.m)
          .integer("n", of.n)
          .integer("k", of.k)
          .integer("batch", of.batch)
          .integer("lda", a.leading_dimension)
          .integer("ldb", b.leading_dimension)
          .integer("ldd", ldd)
          .integer("batch_a", a.batch_stride)
          .integer("batch_b", b.batch_stride)
          .integer("batch_d", batch_d)
          .address("a", a.buffer.address())
          .address("b", b.buffer.address())
          .address("d", d.address()));
  EXPECT_EQ(download<float>(d), expected) << of.m << "x" << of.n << "x" << of.k;
}

class Mix : public testing::TestWithParam<AtomMix> {};

TEST_P(Mix, ComputesProducts) {
  const GemmDescription about{.mix = GetParam(), .tile_n = 64, .stages = 3};
  const Program program = gemm("gemm_program", about).value_or_throw();
  const compile::Artifact artifact = compile_as_cuda(program);
  EXPECT_EQ(artifact.spill_bytes.value_or(0), 0);
  for (const Extents& of : {Extents{130, 72, 200}, Extents{1, 1, 8}, Extents{64, 200, 328, 2}})
    expect_product(program, artifact.ptx, about, of);
}

INSTANTIATE_TEST_SUITE_P(Programs, Mix,
                         testing::Values(AtomMix::tma_wgmma, AtomMix::cp_async_wgmma, AtomMix::tma_mma,
                                         AtomMix::tma_register_wgmma),
                         [](const auto& mix) { return std::string(name(mix.param)); });

TEST(GemmProgram, ReadsMnMajorOperands) {
  for (const AtomMix mix : {AtomMix::tma_wgmma, AtomMix::tma_mma}) {
    const GemmDescription about{
        .mix = mix, .a_major = arch::Major::mn, .b_major = arch::Major::mn, .tile_n = 64, .stages = 2};
    const Program program = gemm("mn_major", about).value_or_throw();
    expect_product(program, compile_as_cuda(program).ptx, about, {136, 72, 72});
  }
}

TEST(GemmProgram, RefusesWithTheNumber) {
  EXPECT_EQ(gemm("x", {.tile_n = 136, .stages = 8}).reason(),
            "the CTA needs 270336 bytes of shared memory, sm_90a has 232448");
  EXPECT_EQ(gemm("x", {.tile_m = 96}).reason(), "instructions of 64 do not divide the tile's 48");
  EXPECT_EQ(gemm("x", {.tile_n = 100}).reason(), "a K-major tile must have a multiple of 8 rows, got 100 of 100x64");
  EXPECT_EQ(gemm("x", {.target = kSm80}).reason(), "TMA needs sm_90, the target is sm_80");
}

}  // namespace
}  // namespace tilewright::program
