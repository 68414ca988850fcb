// Copies and products of tiles: what is refused, windows that begin before the tensor, and changed accumulators.
#include <gtest/gtest.h>

#include <functional>

#include "program_run.hpp"
#include "tilewright/arch/mma_atom.hpp"
#include "tilewright/arch/wgmma_atom.hpp"
#include "tilewright/base/error.hpp"
#include "tilewright/base/float_format.hpp"
#include "tilewright/program/tiled_copy.hpp"
#include "tilewright/program/tiled_mma.hpp"

namespace tilewright::program {
namespace {

/// A tile with the widest swizzle that its lines have.
SharedTile tile(DType element, std::int64_t mn, std::int64_t k, arch::Major major = arch::Major::k) {
  const std::int64_t bytes = (major == arch::Major::k ? k : mn) * bits(element) / 8;
  const arch::SwizzleMode mode = bytes % 128 == 0  ? arch::SwizzleMode::bytes_128
                                 : bytes % 64 == 0 ? arch::SwizzleMode::bytes_64
                                                   : arch::SwizzleMode::bytes_32;
  return {
      arch::smem_tile({.major = major, .mode = mode, .element_bits = bits(element), .mn = mn, .k = k}).value_or_throw(),
      element};
}

Tensor matrix(const std::string& name, DType element, const Number& rows, const Number& columns, const Number& line) {
  return {.name = name, .element = element, .extents = {rows, columns}, .strides = {line, 1}};
}

/// The message of the InvalidArgument that `author` causes.
std::string refusal_of(const std::function<void(KernelBuilder&)>& author, int threads = 128,
                       const Target& target = kSm90a) {
  KernelBuilder k("refused", target, threads);
  try {
    author(k);
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "nothing was refused";
}

const arch::MmaAtom* f16_mma() { return arch::find_mma_atom(16, 8, 16, DType::f16, DType::f16, DType::f32); }

std::string refusal_of_mma(SharedTile a, SharedTile b, const arch::MmaAtom* atom = f16_mma(),
                           arch::Major major_a = arch::Major::k) {
  return refusal_of([&](KernelBuilder& k) {
    TiledMmaBuilder(k, {.atom = MmaChoice{atom}, .a = {major_a, std::move(a)}, .b = {arch::Major::k, std::move(b)}});
  });
}

TEST(TiledMmaBuilder, RefusesTilesThatItsInstructionsCannotRead) {
  const SharedTile f16 = tile(DType::f16, 64, 64);
  EXPECT_EQ(refusal_of_mma(f16, tile(DType::bf16, 64, 64)),
            "mma_m16n8k16_f32_f16_f16 multiplies f16, the tile of B has bf16");
  EXPECT_EQ(refusal_of_mma(tile(DType::f16, 64, 64, arch::Major::mn), f16),
            "the tile of A is Sw<3,3,3> o 0 o ((64,1),(8,8)):((1,4096),(64,512)) in shared memory, which is not "
            "contiguous along k");
  const SharedTile s8 = tile(DType::s8, 64, 64);
  EXPECT_EQ(refusal_of_mma(s8, s8, arch::find_mma_atom(16, 8, 32, DType::s8, DType::s8, DType::s32), arch::Major::mn),
            "the tile of A is Sw<2,4,3> o 0 o ((8,8),(64,1)):((64,512),(1,4096)) in shared memory, which is not "
            "contiguous along m or n");
  EXPECT_EQ(refusal_of(
                [](KernelBuilder& k) {
                  const SharedTile bytes = tile(DType::e4m3, 64, 64);
                  TiledMmaBuilder(
                      k, {.atom = MmaChoice{arch::find_mma_atom(16, 8, 32, DType::e4m3, DType::e4m3, DType::f32)},
                          .a = {arch::Major::k, bytes},
                          .b = {arch::Major::k, bytes}});
                },
                128, kSm80),
            "mma_m16n8k32_f32_e4m3_e4m3 needs sm_89, the target is sm_80");
  EXPECT_EQ(refusal_of_mma(f16, f16, arch::find_mma_atom(16, 8, 15, DType::f16, DType::f16, DType::f32)),
            "the product has no atom: there is no instruction of the shape and types that were looked for");
  const auto* wgmma = arch::find_wgmma_atom(DType::f16, DType::f16, DType::f32, arch::OperandSource::shared_memory);
  EXPECT_EQ(refusal_of([&](KernelBuilder& k) {
              TiledMmaBuilder(k, {.atom = WgmmaChoice{wgmma, 64},
                                  .a = {arch::Major::k, f16},
                                  .b = {arch::Major::k, tile(DType::bf16, 64, 64)}});
            }),
            "wgmma_k16_f32_f16_f16_ss multiplies f16, the tile of B has bf16");
  EXPECT_EQ(
      refusal_of(
          [&](KernelBuilder& k) {
            TiledMmaBuilder(k, {.atom = MmaChoice{f16_mma()}, .a = {arch::Major::k, f16}, .b = {arch::Major::k, f16}});
          },
          64),
      "4 x 1 warps multiply, the kernel has 64 threads");
  EXPECT_EQ(refusal_of([&](KernelBuilder& k) {
              const TiledMmaBuilder mma(
                  k, {.atom = MmaChoice{f16_mma()}, .a = {arch::Major::k, f16}, .b = {arch::Major::k, f16}});
              k.shared(16);
              const Number at = k.shared(f16.bytes()).address;
              mma.fma(mma.zeros(), at, at, k.thread() / 32);
            }),
            "the tile must begin at a multiple of 1024 bytes of shared memory; shared + 16 is a multiple of 16");
}

TEST(TiledCopyBuilder, RefusesWhatItsInstructionsCannotCopy) {
  const auto copy = [](CopyAtom atom, const std::vector<Number>& at, std::int64_t alignment) {
    return refusal_of([&](KernelBuilder& k) {
      const SharedTile to = tile(DType::f16, 64, 64);
      const TiledCopyBuilder load(k, atom, matrix("x", DType::f16, 100, 100, 104), to, 128);
      k.shared(alignment);
      load.copy(at, k.shared(to.bytes(), alignment).address, {.thread = k.thread()});
    });
  };
  EXPECT_EQ(copy(CopyAtom::tma, {0, 0}, 1024), "the copy of 'x' by TMA needs a barrier that counts its bytes");
  EXPECT_EQ(copy(CopyAtom::tma, {0, 0}, 128),
            "the tile must begin at a multiple of 1024 bytes of shared memory; shared + 128 is a multiple of 128");
  EXPECT_EQ(copy(CopyAtom::cp_async, {0, -8}, 1024),
            "cp.async copies vectors of 16 bytes, so that the coordinate of 'x' in its contiguous mode 1 must not be "
            "negative, got -8, which is from -8 to -8");
  EXPECT_EQ(refusal_of([](KernelBuilder& k) {
              TiledCopyBuilder(k, CopyAtom::cp_async, matrix("x", DType::f32, 64, 64, 64), tile(DType::f16, 64, 64),
                               128);
            }),
            "the tensor 'x' has elements of f32, its tile in shared memory of f16");
  for (const CopyAtom atom : {CopyAtom::tma, CopyAtom::cp_async}) {
    EXPECT_EQ(refusal_of([&](KernelBuilder& k) {
                TiledCopyBuilder(k, atom, matrix("x", DType::bf16, 64, 64, 64), tile(DType::f16, 64, 64), 128);
              }),
              "the tensor 'x' has elements of bf16, its tile in shared memory of f16");
  }
  EXPECT_EQ(refusal_of([](KernelBuilder& k) {
              TiledCopyBuilder(k, CopyAtom::cp_async, matrix("x", DType::f16, 64, 64, 64),
                               tile(DType::f16, 64, 64, arch::Major::mn), 128);
            }),
            "cp.async copies 16 bytes, 8 elements that are contiguous along mode 1 of 'x': the tile Sw<3,3,3> o 0 o "
            "((64,1),(8,8)):((1,4096),(64,512)) does not have them together in shared memory");
}

TEST(TiledCopyBuilder, CopiesZerosFromBeforeTheTensor) {
  constexpr int kRows = 8, kColumns = 32, kExtent = 5;
  KernelBuilder k("window", kSm90a, 32);
  const Value out = k.address("out", 4);
  const SharedTile to = tile(DType::f32, kRows, kColumns);
  const TiledCopyBuilder load(k, CopyAtom::cp_async, matrix("x", DType::f32, kExtent, kColumns, kColumns), to, 32);
  k.set_grid(3);
  const Number memory = k.shared(to.bytes(), 1024).address, first_row = k.block() * 4 - 3;
  load.copy({first_row, 0}, memory, {.thread = k.thread()});
  cp_async_commit(k);
  cp_async_wait(k, 0);
  synchronize(k);
  for (int row = 0; row < kRows; ++row) {
    const Value value = load_shared(k, memory + to.layout.at(row, k.thread()) * 4, RegisterType::f32);
    store_global(k, out, ((k.block() * kRows + row) * kColumns + k.thread()) * 4, {value});
  }
  const Program program = k.build();
  std::vector<float> x(std::size_t{kExtent} * kColumns);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i + 1);
  const auto of_x = upload(x);
  const std::vector<float> windows =
      results_of(program, LaunchArguments().address("x", of_x.address()), std::size_t{3} * kRows * kColumns, NAN);
  for (int i = 0; i < 3 * kRows * kColumns; ++i) {
    const int row = i / kColumns % kRows + i / (kRows * kColumns) * 4 - 3;
    const float expected = row < 0 || row >= kExtent ? 0 : x[static_cast<std::size_t>(row * kColumns + i % kColumns)];
    EXPECT_EQ(windows[static_cast<std::size_t>(i)], expected) << i;
  }
}

TEST(TiledMmaBuilder, TransformsAccumulators) {
  KernelBuilder k("transform", kSm90a, 32);
  const Value x = k.address("x", 16), out = k.address("out", 4);
  const SharedTile a = tile(DType::f16, 16, 16);
  const Number memory = k.shared(a.bytes(), 1024).address;
  const Number row = k.thread() / 2, column = k.thread() % 2 * 8;
  const Value line = load_global(k, x, k.thread() * 16, RegisterType::b32, 4);
  store_shared(k, memory + a.layout.at(row, column) * 2, {line});
  synchronize(k);
  const TiledMmaBuilder mma(
      k, {.atom = MmaChoice{f16_mma()}, .warps_m = 1, .a = {arch::Major::k, a}, .b = {arch::Major::k, a}});
  const Accumulators sums = mma.zeros();
  mma.fma(sums, memory, memory, 0);
  mma.transform(sums, 0, [&](const AccumulatorPair& pair) {
    return std::array<Value, 2>{multiply(k, pair.low, to_f32(k, pair.row)), add(k, pair.high, to_f32(k, pair.column))};
  });
  mma.fma(sums, memory, memory, 0);
  mma.for_each_pair(sums, 0, [&](const AccumulatorPair& pair) {
    store_global(k, out, (pair.row * 16 + pair.column) * 4, {pair.low});
    store_global(k, out, (pair.row * 16 + pair.column + 1) * 4, {pair.high});
  });
  const Program program = k.build();
  std::vector<std::uint16_t> elements(256);
  const auto at = [](int i, int j) { return static_cast<float>((3 * i + 5 * j) % 7 - 3); };
  for (int i = 0; i < 256; ++i) elements[static_cast<std::size_t>(i)] = f32_to_f16(at(i / 16, i % 16));
  const auto of_x = upload(elements);
  const std::vector<float> results = results_of(program, LaunchArguments().address("x", of_x.address()), 256, NAN);
  for (int i = 0; i < 16; ++i) {
    for (int j = 0; j < 16; ++j) {
      float product = 0;
      for (int step = 0; step < 16; ++step) product += at(i, step) * at(j, step);
      const float changed = j % 2 == 0 ? product * static_cast<float>(i) : product + static_cast<float>(j - 1);
      EXPECT_EQ(results[static_cast<std::size_t>(i * 16 + j)], changed + product) << i << ", " << j;
    }
  }
}

}  // namespace
}  // namespace tilewright::program
