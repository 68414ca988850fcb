// Kernels with narrow weights: the packed format, the conversions, and products, compared bit for bit.
#include "tilewright/program/weight_gemm.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <ostream>
#include <random>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "program_run.hpp"
#include "tilewright/base/error.hpp"
#include "tilewright/base/float_format.hpp"
#include "tilewright/compile/assembler.hpp"
#include "tilewright/compile/compiler.hpp"
#include "tilewright/emulator/checks.hpp"
#include "tilewright/program/instructions.hpp"
#include "tilewright/program/packed_weights.hpp"
#include "tilewright/program/weight_gemv.hpp"
#include "tilewright/program/widen.hpp"

namespace tilewright::program {
namespace {

constexpr std::array kWeightTypes{DType::s4, DType::s8, DType::e4m3};
constexpr std::array kActivationTypes{DType::bf16, DType::f16};

/// Some weights, as pack_weights() takes them.
std::vector<std::int8_t> random_weights(DType type, std::int64_t count, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<std::int8_t> weights(static_cast<std::size_t>(count));
  for (std::int8_t& weight : weights) {
    const int small = static_cast<int>(random() % 16) - 8;
    switch (type) {
      case DType::s4:
        weight = static_cast<std::int8_t>(small);
        break;
      case DType::s8:
        weight = static_cast<std::int8_t>(random() % 256);
        break;
      default:
        weight = static_cast<std::int8_t>(f64_to_e4m3(small));
    }
  }
  return weights;
}

double value_of(DType type, std::int8_t weight) {
  return type == DType::e4m3 ? static_cast<double>(e4m3_to_f32(static_cast<std::uint8_t>(weight))) : weight;
}

/// The bits of a float of 16 or 32 bits, in as many low bits.
std::uint32_t bits_of(DType type, double value) {
  if (type == DType::f16) return f64_to_f16(value);
  if (type == DType::bf16) return f64_to_bf16(value);
  return std::bit_cast<std::uint32_t>(static_cast<float>(value));
}

/// An array of f16, bf16 or f32 on the device.
runtime::DeviceBuffer upload_floats(DType type, const std::vector<double>& values) {
  std::vector<std::uint8_t> bytes;
  for (const double value : values) {
    const std::uint32_t bits = bits_of(type, value);
    for (int i = 0; i < tilewright::bits(type) / 8; ++i) bytes.push_back(static_cast<std::uint8_t>(bits >> (8 * i)));
  }
  return upload(bytes);
}

/// Assembles the PTX once more, for the messages of ptxas: none may say that wgmma was serialised or setmaxnreg
/// ignored.
void expect_full_speed(const Program& program, const compile::Artifact& artifact) {
  static const compile::Assembler assembler({}, compile::capture_environment());
  compile::Source source;
  source.name = source.symbol = program.symbol;
  source.target = program.target;
  const compile::Assembler::Assembled assembled = assembler.assemble(source, artifact.ptx);
  EXPECT_EQ(assembled.error, "");
  EXPECT_EQ(artifact.spill_bytes.value_or(0), 0);
}

TEST(PackedWeights, HaveALayoutOfTheAlgebra) {
  EXPECT_EQ(to_string(weight_packing(DType::s4).chunk), "((8,2,4),(2,4,2,4)):((128,1,1024),(4,32,2,8))");
  EXPECT_EQ(to_string(weight_packing(DType::s8).chunk), "((8,2,4),(2,4,4)):((64,1,512),(2,16,4))");
  EXPECT_EQ(weight_packing(DType::s8).chunk, weight_packing(DType::e4m3).chunk);
}

TEST(PackedWeights, AreAPermutation) {
  for (const DType type : kWeightTypes) {
    for (const auto& [m, k] : {std::pair{64, 64}, std::pair{130, 200}, std::pair{1, 1}}) {
      const layout::Layout layout = packed_layout(type, m, k);
      std::vector<bool> seen(static_cast<std::size_t>(size(layout)));
      for (std::int64_t i = 0; i < size(layout); ++i) seen.at(static_cast<std::size_t>(layout(i))) = true;
      EXPECT_EQ(std::count(seen.begin(), seen.end(), true), size(layout)) << to_string(layout);
      EXPECT_EQ(size(layout) * bits(type) / 8, packed_bytes(type, m, k));
      const std::vector<std::int8_t> weights = random_weights(type, m * k, 1);
      EXPECT_EQ(unpack_weights(type, m, k, pack_weights(type, m, k, weights).value_or_throw()), weights);
    }
  }
}

TEST(PackedWeights, AreRefusedWithTheirPlace) {
  EXPECT_EQ(pack_weights(DType::s4, 1, 3, std::array<std::int8_t, 3>{7, -8, 8}).reason(),
            "an s4 is from -8 to 7, got 8 in row 0, column 2");
  EXPECT_EQ(pack_weights(DType::e4m3, 2, 1, std::array<std::int8_t, 2>{0, -1}).reason(), "NaN in row 1, column 0");
  EXPECT_EQ(pack_weights(DType::s8, 2, 2, std::array<std::int8_t, 2>{0, 0}).reason(),
            "2 x 2 weights are 4 elements, got 2");
}

/// Stores the fragments that widen() makes of the words at `in`: 4 words for each thread.
Program conversion_kernel(DType from, DType to) {
  KernelBuilder k("widen", kSm90a, 128);
  const Value in = k.address("in", 4), out = k.address("out", 16);
  const int words = from == DType::s4 ? 1 : 2;
  std::vector<Value> packed;
  for (int i = 0; i < words; ++i) packed.push_back(load_global(k, in, (k.thread() * words + i) * 4, RegisterType::b32));
  const Value fragment = widen(k, from, to, packed);
  store_global(k, out, k.thread() * 16, {fragment[0], fragment[1], fragment[2], fragment[3]});
  return k.build();
}

TEST(Widening, IsExactForAllValues) {
  constexpr int kThreads = 128, kValues = 8;
  for (const DType from : kWeightTypes) {
    const WeightPacking packing = weight_packing(from);
    for (const DType to : kActivationTypes) {
      const Program program = conversion_kernel(from, to);
      for (const bool by_mlir : {false, true}) {
#ifndef TILEWRIGHT_HAS_MLIR
        if (by_mlir) continue;
#endif
        const std::string ptx = by_mlir ? compile_as_mlir(program).ptx : compile_as_cuda(program).ptx;
        // Value v of thread t is code (t + 37 v) mod the number of codes: each code comes at each place.
        const int codes = from == DType::s4 ? 16 : 256;
        for (int half = 0; half < codes; half += kThreads) {
          const auto code = [&](int thread, int value) { return (half + thread + 37 * value) % codes; };
          std::vector<std::uint8_t> bytes(static_cast<std::size_t>(kThreads * kValues * bits(from) / 8));
          for (int thread = 0; thread < kThreads; ++thread) {
            for (int position = 0; position < kValues; ++position) {
              const int element = thread * kValues + position;
              const int bit = element * bits(from);
              const int of = code(thread, static_cast<int>(packing.positions(position)));
              bytes[static_cast<std::size_t>(bit / 8)] |= static_cast<std::uint8_t>(of << bit % 8);
            }
          }
          const auto in = upload(bytes);
          const auto out = upload(std::vector<std::uint16_t>(kThreads * kValues, 0x7fff));
          run(program, ptx, LaunchArguments().address("in", in.address()).address("out", out.address()));
          const std::vector<std::uint16_t> results = download<std::uint16_t>(out);
          for (int thread = 0; thread < kThreads; ++thread) {
            for (int value = 0; value < kValues; ++value) {
              const int of = code(thread, value);
              if (from == DType::e4m3 && (of & 0x7f) == 0x7f) continue;  // NaN
              const double expected =
                  value_of(from, static_cast<std::int8_t>(from == DType::s4 && of > 7 ? of - 16 : of));
              ASSERT_EQ(results[static_cast<std::size_t>(thread * kValues + value)], bits_of(to, expected))
                  << name(from) << " to " << name(to) << ", code " << of << ", value " << value;
            }
          }
        }
      }
    }
  }
}

struct Extents {
  std::int64_t m, n, k;
};

/// Runs the kernel and compares D, the elements between its lines included, with sums of integers and powers of two.
void expect_product(const Program& program, const std::string& ptx, const WeightGemmDescription& about,
                    const Extents& of) {
  const auto [m, n, k] = of;
  const std::vector<std::int8_t> weights = random_weights(about.weights, m * k, 1);
  std::mt19937 random(2);
  const std::int64_t ld_activations = (k + 7) / 8 * 8 + 8, ld_scales = (m + 7) / 8 * 8 + 8;
  const std::int64_t groups = about.group == 0 ? 1 : (k + about.group - 1) / about.group;
  std::vector<double> activations(static_cast<std::size_t>(n * ld_activations)), scales;
  for (double& activation : activations) activation = static_cast<int>(random() % 7) - 3;
  for (std::int64_t i = 0; i < groups * ld_scales; ++i)
    scales.push_back(std::ldexp(random() % 2 == 0 ? 1 : -1, static_cast<int>(random() % 5) - 2));
  const std::int64_t ldd = (about.d_is_m_contiguous ? m : n) + (about.stores_by_tma ? 8 : 3),
                     lines = about.d_is_m_contiguous ? n : m;
  const auto index = [&, m_contiguous = about.d_is_m_contiguous](std::int64_t row, std::int64_t column) {
    return static_cast<std::size_t>(m_contiguous ? column * ldd + row : row * ldd + column);
  };
  std::vector<std::uint32_t> expected(static_cast<std::size_t>(lines * ldd), bits_of(about.d, -777));
  for (std::int64_t row = 0; row < m; ++row) {
    for (std::int64_t column = 0; column < n; ++column) {
      double sum = 0;
      for (std::int64_t i = 0; i < k; ++i) {
        const double scale =
            scales[static_cast<std::size_t>(about.group == 0 ? row : i / about.group * ld_scales + row)];
        sum += value_of(about.weights, weights[static_cast<std::size_t>(row * k + i)]) * scale *
               activations[static_cast<std::size_t>(column * ld_activations + i)];
      }
      expected[index(row, column)] = bits_of(about.d, sum);
    }
  }
  const auto packed = upload(pack_weights(about.weights, m, k, weights).value_or_throw());
  const auto device_activations = upload_floats(about.activations, activations);
  const auto device_scales = upload_floats(about.scales, scales);
  const auto d = upload_floats(about.d, std::vector<double>(expected.size(), -777));
  LaunchArguments arguments;
  arguments.integer("m", m)
      .integer("n", n)
      .integer("k", k)
      .integer("ldd", ldd)
      .integer("ld_activations", ld_activations);
  if (about.group != 0) arguments.integer("ld_scales", ld_scales);
  arguments.address("weights", packed.address()).address("activations", device_activations.address());
  arguments.address("scales", device_scales.address()).address("d", d.address());
  run(program, ptx, arguments);
  std::vector<std::uint32_t> results;
  if (about.d == DType::f32) {
    results = download<std::uint32_t>(d);
  } else {
    for (const std::uint16_t bits : download<std::uint16_t>(d)) results.push_back(bits);
  }
  int wrong = 0;
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (results[i] != expected[i] && ++wrong <= 3)
      ADD_FAILURE() << fmt::format("D[{}, {}] is {:x}, not {:x}", i / static_cast<std::size_t>(ldd),
                                   i % static_cast<std::size_t>(ldd), results[i], expected[i]);
  }
  EXPECT_EQ(wrong, 0) << m << "x" << n << "x" << k << " of " << name(about.weights);
}

struct Case {
  const char* name;
  WeightGemmDescription about;
};

std::ostream& operator<<(std::ostream& out, const Case& tested) { return out << tested.name; }

class WeightGemm : public testing::TestWithParam<Case> {};

TEST_P(WeightGemm, ComputesProducts) {
  const WeightGemmDescription& about = GetParam().about;
  const Program program = weight_gemm("weight_gemm", about).value_or_throw();
  const compile::Artifact artifact = compile_as_cuda(program);
  expect_full_speed(program, artifact);
  expect_product(program, artifact.ptx, about, {200, about.tile_n + 3, 328});
  expect_product(program, artifact.ptx, about,
                 {about.stores_by_tma ? 56 : 61, 1, about.split_k == 1 ? 8 : about.split_k * about.tile_k});
#ifdef TILEWRIGHT_HAS_MLIR
  const compile::Artifact by_mlir = compile_as_mlir(program);
  EXPECT_EQ(by_mlir.spill_bytes.value_or(0), 0);
  expect_product(program, by_mlir.ptx, about, {136, about.tile_n + 1, 264});
#endif
}

INSTANTIATE_TEST_SUITE_P(
    Programs, WeightGemm,
    testing::Values(
        Case{"s4_bf16", {.d = DType::f32, .tile_n = 8, .tile_k = 256, .stages = 3}},
        Case{"s4_bf16_spans_of_whole_stages",
             {.scales = DType::f32, .d = DType::f32, .tile_n = 128, .stages = 2, .consumers = 1}},
        Case{
            "s4_f16_by_weights",
            {.activations = DType::f16, .scales = DType::f16, .d = DType::f32, .group = 32, .tile_n = 64, .stages = 3}},
        Case{"s4_bf16_groups_of_32_by_accumulators",
             {.scales = DType::f32, .group = 32, .scale_use = ScaleUse::accumulators, .tile_n = 32, .stages = 3}},
        Case{"s8_bf16_rows", {.weights = DType::s8, .d = DType::f32, .group = 0, .tile_k = 64, .stages = 3}},
        Case{"s8_f16",
             {.weights = DType::s8,
              .activations = DType::f16,
              .d = DType::f32,
              .tile_k = 64,
              .stages = 3,
              .consumers = 1}},
        Case{"e4m3_bf16_by_weights",
             {.weights = DType::e4m3, .d = DType::bf16, .group = 64, .tile_n = 128, .tile_k = 64, .stages = 3}},
        Case{"e4m3_f16",
             {.weights = DType::e4m3,
              .activations = DType::f16,
              .d = DType::f16,
              .group = 64,
              .d_is_m_contiguous = false,
              .tile_k = 128,
              .stages = 2,
              .consumers = 3}},
        Case{"s4_bf16_split_k_of_single_registers",
             {.d = DType::f32, .tile_n = 8, .tile_k = 64, .stages = 3, .consumers = 1, .split_k = 4, .ctas_per_sm = 2}},
        Case{"s4_f16_split_k_in_small_ctas",
             {.activations = DType::f16,
              .scales = DType::f16,
              .d = DType::f16,
              .group = 64,
              .d_is_m_contiguous = false,
              .tile_n = 32,
              .tile_k = 64,
              .stages = 4,
              .consumers = 1,
              .split_k = 4,
              .ctas_per_sm = 3}},
        Case{"s4_bf16_shared_activations",
             {.d = DType::f32, .group = 64, .tile_n = 128, .tile_k = 64, .stages = 3, .cluster_m = 2}},
        Case{"s4_f16_stored_by_tma",
             {.activations = DType::f16,
              .scales = DType::f16,
              .d = DType::f16,
              .stores_by_tma = true,
              .tile_n = 64,
              .tile_k = 64,
              .stages = 3}},
        Case{"s4_bf16_two_warpgroups_along_k",
             {.d = DType::f32, .tile_n = 64, .tile_k = 256, .stages = 3, .consumers = 2, .consumers_k = 2}},
        Case{"s4_bf16_four_warpgroups_along_k_and_split_k",
             {.group = 64, .tile_n = 16, .tile_k = 256, .stages = 3, .consumers = 1, .consumers_k = 4, .split_k = 2}},
        Case{"s4_f16_spans_of_warpgroups_along_k",
             {.activations = DType::f16,
              .scales = DType::f32,
              .d = DType::f16,
              .group = 32,
              .d_is_m_contiguous = false,
              .tile_n = 32,
              .tile_k = 128,
              .stages = 4,
              .consumers = 1,
              .consumers_k = 2,
              .ctas_per_sm = 2}},
        Case{"s8_f16_rows_shared_by_warpgroups_along_k",
             {.weights = DType::s8,
              .activations = DType::f16,
              .d = DType::f32,
              .group = 0,
              .tile_n = 64,
              .tile_k = 128,
              .stages = 3,
              .consumers = 1,
              .consumers_k = 2,
              .cluster_m = 2}},
        Case{"e4m3_bf16_four_warpgroups_along_m",
             {.weights = DType::e4m3, .stores_by_tma = true, .tile_n = 64, .stages = 3, .consumers = 4}},
        Case{"s4_bf16_streamed_steps",
             {.d = DType::f32, .tile_n = 16, .tile_k = 128, .stages = 3, .streaming_ctas = 5}},
        Case{"s4_f16_streamed_single_steps_stored_by_tma",
             {.activations = DType::f16,
              .scales = DType::f16,
              .d = DType::f16,
              .group = 64,
              .stores_by_tma = true,
              .tile_n = 64,
              .tile_k = 64,
              .stages = 3,
              .consumers = 3,
              .streaming_ctas = 132}},
        Case{"s8_bf16_rows_streamed_in_small_ctas",
             {.weights = DType::s8,
              .group = 0,
              .d_is_m_contiguous = false,
              .tile_n = 8,
              .tile_k = 64,
              .stages = 3,
              .consumers = 1,
              .ctas_per_sm = 2,
              .streaming_ctas = 7}},
        Case{"s8_bf16_rows_split_k",
             {.weights = DType::s8,
              .d = DType::f32,
              .group = 0,
              .tile_n = 64,
              .tile_k = 32,
              .stages = 5,
              .split_k = 2}}),
    [](const auto& parameter) { return std::string(parameter.param.name); });

class WeightGemv : public testing::TestWithParam<std::pair<const char*, WeightGemvDescription>> {};

TEST_P(WeightGemv, ComputesProducts) {
  const WeightGemvDescription& gemv = GetParam().second;
  const WeightGemmDescription about{.weights = gemv.weights,
                                    .activations = gemv.activations,
                                    .scales = gemv.scales,
                                    .d = gemv.d,
                                    .group = gemv.group};
  const Program program = weight_gemv("weight_gemv", gemv).value_or_throw();
  const compile::Artifact artifact = compile_as_cuda(program);
  expect_full_speed(program, artifact);
  expect_product(program, artifact.ptx, about, {200, gemv.tile_n + 3, gemv.whole_chunks ? 1344 : 1352});
  expect_product(program, artifact.ptx, about, {61, 1, gemv.whole_chunks ? 64 : 8});
#ifdef TILEWRIGHT_HAS_MLIR
  const compile::Artifact by_mlir = compile_as_mlir(program);
  EXPECT_EQ(by_mlir.spill_bytes.value_or(0), 0);
  expect_product(program, by_mlir.ptx, about, {136, gemv.tile_n, gemv.whole_chunks ? 576 : 584});
#endif
}

INSTANTIATE_TEST_SUITE_P(
    Programs, WeightGemv,
    testing::Values(
        std::pair{"s4_bf16", WeightGemvDescription{}},
        std::pair{"s4_f16_groups_of_32", WeightGemvDescription{.activations = DType::f16,
                                                               .scales = DType::f32,
                                                               .d = DType::f32,
                                                               .group = 32,
                                                               .tile_n = 16,
                                                               .rows = 32,
                                                               .warps_k = 8,
                                                               .unrolled = 2,
                                                               .ctas_per_sm = 1}},
        std::pair{"s8_bf16_rows",
                  WeightGemvDescription{
                      .weights = DType::s8, .d = DType::f32, .group = 0, .rows = 64, .warps_k = 2, .ctas_per_sm = 1}},
        std::pair{"e4m3_f16", WeightGemvDescription{.weights = DType::e4m3,
                                                    .activations = DType::f16,
                                                    .scales = DType::f16,
                                                    .d = DType::f16,
                                                    .group = 64,
                                                    .tile_n = 16,
                                                    .warps_k = 8,
                                                    .unrolled = 4,
                                                    .whole_chunks = false}}),
    [](const auto& parameter) { return std::string(parameter.param.first); });

TEST(WeightGemvProgram, RefusesWithTheNumber) {
  const auto reason = [](const WeightGemvDescription& about) { return weight_gemv("gemv", about).reason(); };
  EXPECT_EQ(reason({.tile_n = 32}), "tile_n must be one of 8, 16, got 32");
  EXPECT_EQ(reason({.rows = 64, .warps_k = 16}), "16 warps along k with 64 rows are 2048 threads, of 32 to 1024");
  EXPECT_EQ(reason({.group = 48}), "the group must be a multiple of 64, or a multiple of 16 that divides it, got 48");
}

/// The barriers of the exchange: before CTAs overwrite the stages of others, and before they read what they received.
TEST(WeightGemmProgram, ExchangesPartialSumsBetweenTwoBarriers) {
  const WeightGemmDescription about{
      .d = DType::f32, .tile_n = 8, .tile_k = 64, .stages = 3, .consumers = 1, .split_k = 4, .ctas_per_sm = 2};
  const Program program = weight_gemm("weight_gemm", about).value_or_throw();
  for (const int barrier : {0, 1}) {
    SCOPED_TRACE(barrier);
    Program changed = program;
    change_instruction(changed, "barrier.cluster.arrive", barrier, [](Instruction&) { return false; });
    EXPECT_THROW(expect_product(changed, compile_as_cuda(changed).ptx, about, {200, 11, 328}),
                 emulator::EmulationFinding);
  }
}

/// The mainloop waits for all groups of wgmma but the newest. With one more in flight, accumulators are read too early.
TEST(WeightGemmProgram, WaitsForTheGroupBeforeTheNewest) {
  const WeightGemmDescription about{.d = DType::f32, .tile_n = 8, .tile_k = 64, .stages = 3, .consumers = 1};
  Program program = weight_gemm("weight_gemm", about).value_or_throw();
  change_instruction(program, "wgmma.wait_group", 1, [](Instruction& wait) {
    wait.operands.front() = immediate(2);
    return true;
  });
  EXPECT_THROW(expect_product(program, compile_as_cuda(program).ptx, about, {64, 8, 128}), emulator::EmulationFinding);
}

/// The ids of fragments that wgmma reads, of values that its waits have as operands, and the values that loops carry.
struct FragmentUses {
  std::vector<std::int32_t> read, waited_for;
  std::vector<Carried<Value>> carried;

  explicit FragmentUses(const Block& block) { add(block); }
  void add(const Block& block) {
    for (const Statement& statement : block) {
      if (const auto* loop = std::get_if<Loop>(&statement.node)) {
        carried.insert(carried.end(), loop->values.begin(), loop->values.end());
        add(loop->body);
      }
      if (const auto* branch = std::get_if<Branch>(&statement.node)) add(branch->body), add(branch->otherwise);
      if (const auto* instruction = std::get_if<Instruction>(&statement.node)) add(*instruction);
    }
  }
  void add(const Instruction& instruction) {
    const bool multiplies = instruction.text.find("wgmma.mma_async") != std::string::npos;
    const bool waits = instruction.text.find("wgmma.wait_group") != std::string::npos;
    for (const Operand& operand : instruction.operands) {
      if (operand.inputs.empty() || operand.type != RegisterType::b32) continue;
      if (multiplies) read.push_back(operand.inputs.front().id);
      if (waits) waited_for.push_back(operand.inputs.front().id);
    }
  }
  bool is_waited_for(std::int32_t id) const {
    return std::find(waited_for.begin(), waited_for.end(), id) != waited_for.end();
  }
  /// Whether a wait names the fragment, or waits in the next iteration and behind the loop name what carries it there.
  bool is_kept(std::int32_t fragment) const {
    return is_waited_for(fragment) || std::any_of(carried.begin(), carried.end(), [&](const Carried<Value>& each) {
             return each.after.id == fragment && is_waited_for(each.inside.id) && is_waited_for(each.outside.id);
           });
  }
};

TEST(WeightGemmProgram, KeepsFragmentsUntilWgmmaHasReadThem) {
  for (const ScaleUse use : {ScaleUse::weights, ScaleUse::accumulators}) {
    const FragmentUses uses(weight_gemm("x", {.scale_use = use}).value_or_throw().body);
    EXPECT_EQ(uses.read.size(), 8U);
    for (const std::int32_t fragment : uses.read) EXPECT_TRUE(uses.is_kept(fragment)) << fragment;
  }
}

TEST(WeightGemmProgram, KeepsItsSpeedForLargeTiles) {
  for (const WeightGemmDescription& about :
       {WeightGemmDescription{.group = 64, .tile_n = 256, .tile_k = 64, .stages = 3},
        WeightGemmDescription{.scales = DType::f32, .tile_n = 128, .stages = 3, .consumers = 1},
        WeightGemmDescription{.tile_n = 256, .tile_k = 64, .stages = 5, .split_k = 4},
        WeightGemmDescription{.tile_n = 256, .tile_k = 64, .stages = 5, .cluster_m = 2},
        WeightGemmDescription{.tile_n = 64, .stages = 3, .ctas_per_sm = 2},
        WeightGemmDescription{.tile_n = 64, .stages = 3, .consumers = 1, .split_k = 4, .ctas_per_sm = 3},
        WeightGemmDescription{.tile_n = 8, .tile_k = 256, .stages = 4, .consumers = 1, .ctas_per_sm = 4},
        WeightGemmDescription{.tile_n = 16, .stages = 6, .consumers = 1, .split_k = 8, .ctas_per_sm = 4},
        WeightGemmDescription{.tile_n = 64, .stages = 6, .consumers = 4},
        WeightGemmDescription{.tile_n = 64, .tile_k = 256, .stages = 3, .consumers = 2, .consumers_k = 2},
        WeightGemmDescription{.tile_n = 64, .tile_k = 256, .stages = 3, .consumers = 1, .consumers_k = 4},
        WeightGemmDescription{
            .tile_n = 64, .tile_k = 128, .stages = 3, .consumers = 1, .consumers_k = 2, .ctas_per_sm = 2}}) {
    const Program program = weight_gemm("weight_gemm", about).value_or_throw();
    SCOPED_TRACE(about.tile_n);
    expect_full_speed(program, compile_as_cuda(program));
#ifdef TILEWRIGHT_HAS_MLIR
    EXPECT_EQ(compile_as_mlir(program).spill_bytes.value_or(0), 0);
#endif
  }
}

TEST(WeightGemmProgram, ChoosesWhatTheScalesMultiply) {
  EXPECT_EQ(scale_use({.group = 0}), std::nullopt);
  EXPECT_EQ(scale_use({.group = 128, .tile_n = 16}), ScaleUse::accumulators);
  EXPECT_EQ(scale_use({.group = 128, .tile_n = 64}), ScaleUse::weights);
  EXPECT_EQ(scale_use({.group = 32, .tile_n = 32}), ScaleUse::weights);
  EXPECT_EQ(scale_use({.scales = DType::f32, .group = 32, .tile_n = 128}), ScaleUse::accumulators);
}

TEST(WeightGemmProgram, RefusesWithTheNumber) {
  EXPECT_EQ(weight_gemm("x", {.weights = DType::u4}).reason(), "packed weights are s4, s8 or e4m3, got u4");
  EXPECT_EQ(weight_gemm("x", {.activations = DType::f32}).reason(), "activations are one of f16, bf16, got f32");
  EXPECT_EQ(weight_gemm("x", {.group = 96}).reason(),
            "the group must be a multiple of tile_k, 128, or a multiple of 16 that divides it, got 96");
  EXPECT_EQ(weight_gemm("x", {.tile_k = 96}).reason(),
            "tile_k must be a multiple of 64, the k of a chunk of packed s4, got 96");
  EXPECT_EQ(weight_gemm("x", {.scales = DType::f16, .scale_use = ScaleUse::weights}).reason(),
            "scales that multiply weights have the type of the activations, bf16, got f16");
  EXPECT_EQ(weight_gemm("x", {.consumers = 5}).reason(), "1 to 4 warpgroups multiply, got 5 along m and 1 along k");
  EXPECT_EQ(weight_gemm("x", {.scales = DType::f32, .tile_n = 256, .tile_k = 64, .stages = 3}).reason(),
            "a tile_n of 256 needs about 328 registers a thread, of 232");
  EXPECT_EQ(weight_gemm("x", {.tile_n = 96, .stages = 3, .ctas_per_sm = 2}).reason(),
            "a tile_n of 96 needs about 120 registers a thread, of 104");
  EXPECT_EQ(weight_gemm("x", {.tile_n = 256, .tile_k = 64, .stages = 2, .consumers = 1, .ctas_per_sm = 2}).reason(),
            "an instruction of 256 columns needs 158 registers a thread, of 128 with 2 CTAs on an SM");
  EXPECT_EQ(weight_gemm("x", {.split_k = 3}).reason(), "split_k must be 1, 2, 4 or 8, got 3");
  EXPECT_EQ(weight_gemm("x", {.tile_n = 64, .split_k = 2, .cluster_m = 2}).reason(),
            "cluster_m must be 1, or 2 without split-K, got 2 and split_k 2");
  EXPECT_EQ(weight_gemm("x", {.stores_by_tma = true, .tile_n = 16}).reason(),
            "TMA stores 16-bit elements along m of tiles of 32 columns or more that are summed over one part of k, got "
            "bf16 along m, 16 columns and 1 parts of k");
  EXPECT_EQ(
      weight_gemm("x", {.tile_n = 24, .split_k = 2}).reason(),
      "split_k 2 with 1 warpgroups along k must divide the 12 accumulators of a thread into multiples of 4, 2 or 1");
  EXPECT_EQ(weight_gemm("x", {.tile_k = 64, .consumers_k = 2}).reason(),
            "with 2 warpgroups along k, tile_k must be a multiple of 2 * 64, got 64");
  EXPECT_EQ(weight_gemm("x", {.tile_n = 256, .tile_k = 64, .stages = 2, .split_k = 2}).reason(),
            "the sums of the 2 parts of k that a CTA exchanges, 131072 bytes, must fit in the stages, 75776 bytes");
  EXPECT_EQ(weight_gemm("x", {.streaming_ctas = -1}).reason(), "streaming_ctas is at least 0, got -1");
  EXPECT_EQ(weight_gemm("x", {.consumers = 1, .streaming_ctas = 15871}).reason(),
            "each warp of 15871 CTAs that stream has a flag, 63484 in all, of 63480");
  EXPECT_EQ(
      weight_gemm("x", {.tile_n = 64, .cluster_m = 2, .streaming_ctas = 132}).reason(),
      "CTAs that take equal numbers of steps along k have no clusters and no other parts of k, got cluster_m 2 and 1 "
      "parts of k");
  EXPECT_EQ(weight_gemm("x", {.tile_n = 12}).reason(),
            "a K-major tile must have a multiple of 8 rows, got 12 of 12x128");
}

}  // namespace
}  // namespace tilewright::program
