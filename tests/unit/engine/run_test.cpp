// Engine::run on the emulator with verified results: host arrays, device memory, explicit and user-defined kernels.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <new>
#include <thread>

#include "tests/unit/engine/host_problem.hpp"
#include "tilewright/base/error.hpp"
#include "tilewright/cache/store.hpp"
#include "tilewright/compile/artifact.hpp"
#include "tilewright/compile/file.hpp"
#include "tilewright/op/epilogue_text.hpp"

namespace tilewright::engine {
namespace {

constexpr auto kRow = op::MatrixLayout::row_major;
constexpr auto kColumn = op::MatrixLayout::column_major;

class Running : public testing::Test {
 protected:
  void SetUp() override {
    try {
      engine_.compiler();
    } catch (const ToolchainNotFound& error) {
      GTEST_SKIP() << error.what();
    }
  }

  void expect_exact(const HostProblem& problem) {
    engine_.run(problem.gemm);
    EXPECT_TRUE(problem.compare().is_exact()) << op::to_string(problem.compare());
  }

  Engine engine_{emulator_options()};
};

// The first example in PyCUTLASS's README, with its extents.
TEST_F(Running, AnExplicitDesignOfPyCutlass) {
  plan::FlatDesign design;
  design.target = kSm80;
  design.tile = {128, 128, 8};
  design.stages = 4;
  design.warps_m = 2;
  design.warps_n = 4;
  design.raster.width = 1;
  op::GemmSignature operation;
  operation.a = operation.b = operation.c = operation.d = {DType::f32, kRow, 1};
  operation.epilogue = op::linear_combination();

  HostProblem problem(512, 256, 128);
  op::fill_integers(problem.gemm.a, -8, 7, 1);
  op::fill_integers(problem.gemm.b, -8, 7, 2);
  op::fill_integers(problem.gemm.c, -8, 7, 3);
  engine_.run(problem.gemm, engine_.make_kernel(operation, design));
  EXPECT_TRUE(problem.compare().is_exact()) << op::to_string(problem.compare());
}

// Edge cases of the pipeline: one instruction per K tile, two stages, more stages than K tiles.
TEST_F(Running, AnyNumberOfStepsAndStages) {
  for (const int k : {16, 32, 144}) {
    const HostProblem problem(64, 64, k, {.type = DType::f16, .d_type = DType::f16, .b = kColumn});
    auto design = std::get<plan::Sm80GemmDesign>(engine_.find_kernels(problem.gemm).front().kernel->metadata().design);
    design.warps_m = design.warps_n = 2;
    for (const int tile_k : {16, 32, 64}) {
      for (const int stages : {2, 3, 5}) {
        design.tile = {64, 64, tile_k};
        design.stages = stages;
        op::fill_poison(problem.gemm.d);
        engine_.run(problem.gemm, engine_.make_kernel(op::describe(problem.gemm), design));
        EXPECT_TRUE(problem.compare().is_exact())
            << k << " " << plan::to_string(design) << op::to_string(problem.compare());
      }
    }
  }
}

TEST_F(Running, AnImpossibleDesignIsRefusedBeforeAnyCompile) {
  const HostProblem problem(64, 64, 64, {.type = DType::f16, .d_type = DType::f16, .b = kColumn});
  plan::Design design = engine_.find_kernels(problem.gemm).front().kernel->metadata().design;
  plan::tiling(design).stages = 1;
  try {
    engine_.make_kernel(op::describe(problem.gemm), design);
    FAIL() << "one stage is not a pipeline";
  } catch (const InvalidArgument& error) {
    const std::string what = error.what();
    EXPECT_NE(what.find("stages must be at least 2, so that one is loaded while another is read, got 1"),
              std::string::npos)
        << what;
    EXPECT_NE(what.find("simt_gemm: the design is one of sm80_gemm"), std::string::npos) << what;
  }
  EXPECT_EQ(engine_.cache().counters(), cache::Counters{});
}

TEST_F(Running, AKernelForOtherArgumentsIsRefused) {
  const HostProblem rows(16, 16, 16);
  const HostProblem columns(16, 16, 16, {.a = kColumn});
  const registry::KernelPtr kernel = engine_.find_kernels(rows.gemm).front().kernel;
  EXPECT_THROW(engine_.run(columns.gemm, kernel), InvalidArgument);
  EXPECT_EQ(engine_.cache().counters(), cache::Counters{});
}

TEST_F(Running, EveryLayout) {
  for (const DType type : {DType::f32, DType::f16}) {
    for (const auto a : {kRow, kColumn}) {
      for (const auto b : {kRow, kColumn}) {
        for (const auto d : {kRow, kColumn}) {
          expect_exact(HostProblem(24, 40, 16, {.type = type, .d_type = type, .a = a, .b = b, .c = a, .d = d}));
        }
      }
    }
  }
}

TEST_F(Running, EveryTypeWithPrimeExtents) {
  for (const auto& [type, d_type] : {std::pair{DType::f64, DType::f64},
                                     {DType::f32, DType::f32},
                                     {DType::f16, DType::f32},
                                     {DType::bf16, DType::bf16},
                                     {DType::s8, DType::s32},
                                     {DType::u8, DType::f32}}) {
    expect_exact(HostProblem(5, 7, 3, {.type = type, .d_type = d_type}));
  }
}

TEST_F(Running, ReadsCIfBetaIsNotZero) {
  HostProblem problem(20, 12, 16, {.c = kColumn});
  problem.gemm.alpha = 2.0;
  problem.gemm.beta = -3.0;
  expect_exact(problem);
}

TEST_F(Running, BetaOfZeroNeverReadsC) {
  HostProblem problem(20, 12, 16);
  op::fill_poison(problem.gemm.c);
  expect_exact(problem);
  problem.gemm.c = {};
  expect_exact(problem);
}

TEST_F(Running, AlphaOfZeroNeverReadsAAndB) {
  HostProblem problem(20, 12, 16);
  problem.gemm.alpha = 0.0;
  problem.gemm.beta = 2.0;
  op::fill_poison(problem.gemm.a);
  op::fill_poison(problem.gemm.b);
  expect_exact(problem);
  problem.gemm.a.address = problem.gemm.b.address = 0;
  expect_exact(problem);
}

TEST_F(Running, KOfZeroGivesBetaTimesC) {
  HostProblem problem(20, 12, 0);
  problem.gemm.beta = 2.0;
  expect_exact(problem);
  problem.gemm.beta = 0.0;
  expect_exact(problem);
  EXPECT_EQ(op::load(problem.gemm.d, 3, 4), 0.0);
}

TEST_F(Running, AnEmptyProblemNeedsNoMemoryAndNoKernel) {
  for (const auto& [m, n] : {std::pair{0, 8}, {8, 0}, {0, 0}}) {
    HostProblem problem(m, n, 4);
    engine_.run(problem.gemm);
    for (op::Tensor* tensor : {&problem.gemm.a, &problem.gemm.b, &problem.gemm.c, &problem.gemm.d}) tensor->address = 0;
    engine_.run(problem.gemm);
    engine_.prepare(problem.gemm).run();
  }
  EXPECT_EQ(engine_.cache().counters(), cache::Counters{});
}

TEST_F(Running, SumsOfNothingAreZeroInDeviceMemory) {
  constexpr std::int64_t kColumns = 6, kStep = 2;
  runtime::Device& device = *engine_.device();
  std::vector<float> numbers(kColumns * kStep, 7.0F);
  const std::size_t size = numbers.size() * sizeof(float);
  const runtime::DeviceAddress memory = device.allocate(size, nullptr);
  op::Gemm gemm;
  gemm.a = op::matrix(std::uint64_t{0}, DType::f32, 0, 4);
  gemm.b = op::matrix(std::uint64_t{0}, DType::f32, 4, kColumns);
  gemm.d = op::matrix(std::uint64_t{0}, DType::f32, 0, kColumns);
  gemm.epilogue = op::parse_epilogue("D = acc; row(total) = sum(acc)", DType::f32, {}).value_or_throw();
  op::Tensor total = op::matrix(memory, DType::f32, 1, kColumns);
  total.stride = {kColumns * kStep, kStep};
  gemm.tensors = {{"total", total}};
  for (op::Tensor* tensor : {&gemm.a, &gemm.b, &gemm.d, &gemm.tensors[0].tensor})
    tensor->device = {op::MemoryDevice::Kind::emulator};
  const auto expect_zeros = [&](const auto& run) {
    std::ranges::fill(numbers, 7.0F);
    device.copy_in(memory, numbers.data(), size, nullptr);
    run();
    device.copy_out(numbers.data(), memory, size, nullptr);
    device.synchronize(nullptr);
    for (std::size_t i = 0; i < numbers.size(); ++i) EXPECT_EQ(numbers[i], i % kStep == 0 ? 0.0F : 7.0F) << i;
  };
  expect_zeros([&] { engine_.run(gemm); });
  const PreparedCall call = engine_.prepare(gemm);
  expect_zeros([&] { call.run(); });
  expect_zeros([&] { call.run(gemm); });
  device.deallocate(memory, nullptr);
  for (op::Tensor* tensor : {&gemm.a, &gemm.b, &gemm.d, &gemm.tensors[0].tensor})
    tensor->device = {op::MemoryDevice::Kind::cuda};
  EXPECT_THROW(engine_.run(gemm), InvalidArgument);
}

TEST_F(Running, NanAndInfinityPropagate) {
  for (const DType type : {DType::f32, DType::f16}) {
    HostProblem problem(20, 12, 16, {.type = type, .d_type = type, .b = kColumn});
    op::store(problem.gemm.a, 3, 5, std::numeric_limits<double>::quiet_NaN());
    op::store(problem.gemm.b, 7, 11, std::numeric_limits<double>::infinity());
    expect_exact(problem);
    EXPECT_TRUE(std::isnan(op::load(problem.gemm.d, 3, 0)));
    EXPECT_FALSE(std::isfinite(op::load(problem.gemm.d, 0, 11)));
    EXPECT_TRUE(std::isfinite(op::load(problem.gemm.d, 0, 0)));
  }
}

TEST_F(Running, PaddingOfDIsUnchanged) {
  for (const auto d : {kRow, kColumn}) {
    HostProblem problem(9, 13, 16, {.c = d, .d = d, .padding = 3});
    expect_exact(problem);
    const auto* const bytes = reinterpret_cast<const std::uint8_t*>(problem.gemm.d.address);
    const std::int64_t contiguous = d == kRow ? 13 : 9;
    const std::int64_t lines = d == kRow ? 9 : 13;
    for (std::int64_t line = 0; line < lines; ++line) {
      for (std::int64_t byte = contiguous * 4; byte < (contiguous + 3) * 4; ++byte) {
        ASSERT_EQ(bytes[line * (contiguous + 3) * 4 + byte], 0xff) << "line " << line << " byte " << byte;
      }
    }
  }
}

TEST_F(Running, BatchesAndBroadcastOperands) {
  for (const DType type : {DType::f32, DType::f16}) {
    expect_exact(HostProblem(20, 12, 16, {.type = type, .d_type = type, .batch = 1}));
    HostProblemOptions options{
        .type = type, .d_type = type, .d = kColumn, .padding = 4, .batch = 3, .batch_padding = 8};
    for (bool HostProblemOptions::*one :
         {&HostProblemOptions::one_a, &HostProblemOptions::one_b, &HostProblemOptions::one_c}) {
      HostProblem problem(20, 12, 16, options);
      problem.gemm.beta = -1.0;
      expect_exact(problem);
      options.*one = true;
    }
    HostProblem one(20, 12, 16, options);
    one.gemm.beta = 1.0;
    expect_exact(one);
  }
}

TEST_F(Running, OneKernelComputesMatricesAndBatches) {
  const HostProblem matrix(20, 12, 16);
  const HostProblem three(20, 12, 16, {.batch = 3});
  const HostProblem five(20, 12, 16, {.batch = 5, .one_b = true});
  const registry::KernelPtr kernel = engine_.find_kernels(matrix.gemm).front().kernel;
  for (const HostProblem* problem : {&matrix, &three, &five}) {
    engine_.run(problem->gemm, kernel);
    EXPECT_TRUE(problem->compare().is_exact()) << op::to_string(problem->compare());
  }
  EXPECT_EQ(engine_.cache().counters().compiles, 1);
}

TEST_F(Running, PaddingBetweenMatricesOfDIsUnchanged) {
  HostProblem problem(9, 13, 16, {.padding = 3, .batch = 3, .batch_padding = 5});
  expect_exact(problem);
  const auto* const floats = reinterpret_cast<const float*>(problem.gemm.d.address);
  for (int index = 0; index < 2; ++index) {
    for (int gap = 9 * 16 - 3; gap < 9 * 16 + 5; ++gap) {
      EXPECT_TRUE(std::isnan(floats[index * (9 * 16 + 5) + gap])) << index << " " << gap;
    }
  }
  HostProblem interleaved(9, 39, 16);
  op::Gemm& gemm = interleaved.gemm;
  gemm.b = op::matrix(gemm.b.address, DType::f32, 16, 12, kRow, 39);
  gemm.d = {gemm.d.address, DType::f32, {3, 9, 12}, {13, 39, 1}, {}};
  gemm.c = {};
  expect_exact(interleaved);
  EXPECT_TRUE(std::isnan(reinterpret_cast<const float*>(gemm.d.address)[12]));
}

/// Pages for the lines of a matrix, between which no memory is accessible.
class DistantLines {
 public:
  DistantLines(std::int64_t lines, std::int64_t line_bytes, std::int64_t stride_bytes)
      : bytes_(static_cast<std::size_t>((lines - 1) * stride_bytes + line_bytes) + 2 * kPage),
        begin_(static_cast<std::byte*>(
            ::mmap(nullptr, bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0))) {
    if (begin_ == MAP_FAILED) throw std::bad_alloc();
    for (std::int64_t line = 0; line < lines; ++line) {
      const auto first = static_cast<std::size_t>(line * stride_bytes) / kPage * kPage;
      const auto end = static_cast<std::size_t>(line * stride_bytes + line_bytes);
      if (::mprotect(begin_ + first, end - first, PROT_READ | PROT_WRITE) != 0) throw std::bad_alloc();
    }
  }
  DistantLines(const DistantLines&) = delete;
  DistantLines& operator=(const DistantLines&) = delete;
  ~DistantLines() { ::munmap(begin_, bytes_); }

  std::byte* begin() const { return begin_; }

 private:
  static constexpr std::size_t kPage = 4096;
  std::size_t bytes_;
  std::byte* begin_;
};

TEST_F(Running, MemoryBetweenLinesIsNeitherReadNorCopied) {
  constexpr std::int64_t kMost = (std::int64_t{1} << 31) - 1;
  for (const std::int64_t ld : {std::int64_t{4096}, std::int64_t{1} << 20, kMost}) {
    const DistantLines a(4, 16, ld * 4), b(4, 16, ld * 4), c(4, 16, ld * 4);
    HostProblem problem(4, 4, 4);
    problem.gemm.a = op::matrix(a.begin(), DType::f32, 4, 4, kRow, ld);
    problem.gemm.b = op::matrix(b.begin(), DType::f32, 4, 4, kColumn, ld);
    problem.gemm.c = op::matrix(c.begin(), DType::f32, 4, 4, kRow, ld);
    for (op::Tensor* tensor : {&problem.gemm.a, &problem.gemm.b, &problem.gemm.c}) op::fill_integers(*tensor, -3, 3, 7);
    problem.gemm.beta = 2.0;
    expect_exact(problem);
    const DistantLines d(4, 16, ld * 4);
    problem.gemm.d = op::matrix(d.begin(), DType::f32, 4, 4, kRow, ld);
    expect_exact(problem);
    op::Gemm in_place = problem.gemm;  // C is D
    op::copy_elements(problem.gemm.c, problem.gemm.d);
    in_place.c = in_place.d;
    engine_.run(in_place);
    EXPECT_TRUE(problem.compare().is_exact()) << op::to_string(problem.compare());
  }
}

TEST_F(Running, NullMatricesOfPointerArraysAreRefused) {
  HostProblem problem(8, 8, 8, {.batch = 2});
  problem.use_pointer_arrays();
  auto* const addresses = reinterpret_cast<std::uint64_t*>(problem.gemm.a.address);
  addresses[1] = 0;
  EXPECT_THAT([&] { engine_.run(problem.gemm); },
              testing::ThrowsMessage<InvalidArgument>(testing::HasSubstr("matrix 1 of A is null")));
  problem.gemm.alpha = 0;  // A is not read
  EXPECT_NO_THROW(engine_.run(problem.gemm));
}

TEST_F(Running, MatricesOfEmptyGroupsMayBeNull) {
  Options options = emulator_options();
  options.device = "emulator:sm_90a";
  Engine engine(options);
  const std::vector<float> ones(64, 1.0F);
  std::vector<float> d(64);
  const std::vector<std::int32_t> extents{8, 8, 8, 0, 8, 8}, lds{8, 8, 0, 8, 8, 8, 0, 8};
  const auto address = [](const auto& memory) { return reinterpret_cast<std::uint64_t>(memory.data()); };
  std::vector<std::uint64_t> a{address(ones), 0}, b{address(ones), 0}, to{address(d), 0};
  const op::Tensor shape = op::matrix(nullptr, DType::f32, 8, 8);
  op::GroupedGemm grouped;
  grouped.mode = op::GroupedMode::independent;
  grouped.ends = op::group_extents(address(extents), 2);
  grouped.leading_dimensions = op::group_leading_dimensions(address(lds), 2);
  grouped.gemm.a = op::pointer_array(shape, address(a), 2, 4);
  grouped.gemm.b = op::pointer_array(shape, address(b), 2, 4);
  grouped.gemm.d = op::pointer_array(shape, address(to), 2, 4);
  engine.run(grouped);
  EXPECT_EQ(d, std::vector<float>(64, 8.0F));
  b[0] = 0;
  EXPECT_THAT([&] { engine.run(grouped); },
              testing::ThrowsMessage<InvalidArgument>(testing::HasSubstr("matrix 0 of B is null")));
}

/// The first kernel of the problem that needs a workspace.
registry::KernelPtr kernel_with_workspace(const Engine& engine, const op::Gemm& gemm) {
  for (const RankedKernel& ranked : engine.find_kernels(gemm)) {
    if (ranked.kernel->workspace_bytes(gemm) != 0) return ranked.kernel;
  }
  ADD_FAILURE() << "no kernel needs a workspace";
  return nullptr;
}

TEST_F(Running, WorkspacesMayBeLimited) {
  const HostProblem problem(16, 16, 2048);
  const registry::KernelPtr kernel = kernel_with_workspace(engine_, problem.gemm);
  const std::size_t needed = kernel->workspace_bytes(problem.gemm);
  Options options = emulator_options();
  options.max_workspace_bytes = static_cast<std::int64_t>(needed) - 1;
  Engine engine(options);
  for (const RankedKernel& ranked : engine.find_kernels(problem.gemm))
    EXPECT_LT(ranked.kernel->workspace_bytes(problem.gemm), needed) << ranked.kernel->name();
  engine.run(problem.gemm);
  EXPECT_TRUE(problem.compare().is_exact()) << op::to_string(problem.compare());
  const std::string reason = fmt::format("{} needs a workspace of {} bytes, but Options::max_workspace_bytes is {}",
                                         kernel->name(), needed, needed - 1);
  EXPECT_THAT([&] { engine.run(problem.gemm, kernel); }, testing::ThrowsMessage<InvalidArgument>(reason));
  EXPECT_THAT([&] { engine.find_kernel(kernel->name(), problem.gemm); },
              testing::ThrowsMessage<InvalidArgument>(testing::HasSubstr(reason)));
}

TEST_F(Running, AKernelFitsTheWorkspaceOfTheCaller) {
  const HostProblem host(16, 16, 2048);
  const DeviceProblem device(host, engine_.device());
  const auto workspace = runtime::DeviceBuffer::of_zeros(engine_.device(), 256);
  engine_.run(device.gemm, nullptr, nullptr, RunOptions{.workspace = workspace.address(), .workspace_bytes = 16});
  device.copy_d_to(host);
  EXPECT_TRUE(host.compare().is_exact()) << op::to_string(host.compare());
}

TEST_F(Running, APreparedCallTakesABetaOfZeroButNoOtherInItsPlace) {
  HostProblem host(24, 40, 16);
  host.gemm.beta = 2.0;
  const DeviceProblem device(host, engine_.device());
  const PreparedCall prepared = engine_.prepare(device.gemm);
  op::Gemm without_c = device.gemm;
  without_c.beta = 0.0;
  without_c.c = {};
  prepared.run(without_c);
  host.gemm.beta = 0.0;
  device.copy_d_to(host);
  EXPECT_TRUE(host.compare().is_exact()) << op::to_string(host.compare());
  const PreparedCall of_zero = engine_.prepare(without_c);
  EXPECT_THAT([&] { of_zero.run(device.gemm); },
              testing::ThrowsMessage<InvalidArgument>(testing::HasSubstr("prepared with beta = 0")));
}

TEST_F(Running, UnknownNamesAreAnsweredWithTheNearestOnes) {
  const HostProblem problem(16, 16, 16);
  const std::string name = engine_.find_kernels(problem.gemm).front().kernel->name();
  EXPECT_THAT([&] { engine_.find_kernel(name + "x", problem.gemm); },
              testing::ThrowsMessage<InvalidArgument>(testing::HasSubstr("the nearest names are " + name)));
}

// A batch count above 65535 is folded over y and z of the grid, and the last row of the fold is not full.
TEST_F(Running, ABatchMayFoldOverTheGridsY) {
  for (const DType type : {DType::f32, DType::f16}) {
    const HostProblem host(20, 16, 16, {.type = type, .d_type = type, .batch = 3});
    const DeviceProblem device(host, engine_.device());
    const registry::KernelPtr kernel = engine_.find_kernels(device.gemm).front().kernel;
    const std::shared_ptr<const compile::Artifact> artifact = engine_.compile(kernel);
    plan::Launch launch = kernel->launch(device.gemm);
    ASSERT_EQ(launch.grid[2], 3U);
    engine_.device()
        ->load({artifact->cubin, artifact->ptx}, artifact->symbol, launch.dynamic_smem_bytes)
        ->launch({.grid = {launch.grid[0], 2, 2},
                  .block = {launch.block[0], 1, 1},
                  .dynamic_smem_bytes = launch.dynamic_smem_bytes},
                 launch.parameters());
    device.copy_d_to(host);
    EXPECT_TRUE(host.compare().is_exact()) << kernel->name() << " " << op::to_string(host.compare());
  }
}

TEST_F(Running, TheKernelRememberedForABatchIsItsOwn) {
  const HostProblem matrix(64, 64, 64);
  const HostProblem many(64, 64, 64, {.batch = 4});
  const DeviceProblem one(matrix, engine_.device());
  const DeviceProblem four(many, engine_.device());
  const registry::Kernel* const of_one = &engine_.prepare(one.gemm).kernel();
  const registry::Kernel* const of_four = &engine_.prepare(four.gemm).kernel();
  EXPECT_NE(of_four, of_one) << "chosen separately for one matrix and for four";
  EXPECT_EQ(&engine_.prepare(four.gemm).kernel(), of_four);
  EXPECT_EQ(&engine_.prepare(one.gemm).kernel(), of_one);
}

TEST_F(Running, AnEmptyBatchNeedsNoMemoryAndNoKernel) {
  HostProblem problem(8, 8, 8);
  for (op::Tensor* tensor : {&problem.gemm.a, &problem.gemm.b, &problem.gemm.c, &problem.gemm.d}) {
    *tensor = op::batched(*tensor, 0);
    tensor->address = 0;
  }
  engine_.run(problem.gemm);
  engine_.prepare(problem.gemm).run();
  EXPECT_EQ(engine_.cache().counters(), cache::Counters{});
}

TEST_F(Running, CMayBeD) {
  HostProblem problem(20, 12, 16, {.padding = 2});
  problem.gemm.beta = 1.0;
  HostProblem in_place(20, 12, 16, {.padding = 2});
  in_place.gemm.beta = 1.0;
  op::copy_elements(in_place.gemm.c, in_place.gemm.d);
  in_place.gemm.c = in_place.gemm.d;
  engine_.run(in_place.gemm);
  op::copy_elements(in_place.gemm.d, problem.gemm.d);
  EXPECT_TRUE(problem.compare().is_exact()) << op::to_string(problem.compare());
}

TEST_F(Running, EveryBufferIsFreed) {
  const HostProblem problem(20, 12, 16, {.padding = 3});
  engine_.run(problem.gemm);  // loads the kernel, which stays loaded
  const std::size_t before = engine_.device()->allocated_bytes();
  expect_exact(problem);
  EXPECT_EQ(engine_.device()->allocated_bytes(), before);
  const HostProblem columns(20, 12, 16, {.a = kColumn});
  EXPECT_THROW(engine_.run(problem.gemm, engine_.find_kernels(columns.gemm).front().kernel), InvalidArgument);
  EXPECT_EQ(engine_.device()->allocated_bytes(), before) << "a refused call must not allocate";
}

TEST_F(Running, ThreadsDoNotShareAWorkspace) {
  const HostProblem first(16, 16, 2048);
  const registry::KernelPtr kernel = kernel_with_workspace(engine_, first.gemm);
  engine_.run(first.gemm, kernel);
  std::vector<std::unique_ptr<HostProblem>> problems;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    const HostProblem& own = *problems.emplace_back(std::make_unique<HostProblem>(16, 16, 2048));
    threads.emplace_back([this, &own, &kernel] {
      for (int repeat = 0; repeat < 8; ++repeat) {
        op::fill_poison(own.gemm.d);
        try {
          engine_.run(own.gemm, kernel);
        } catch (const std::exception& error) {
          ADD_FAILURE() << error.what();
        }
        EXPECT_TRUE(own.compare().is_exact()) << op::to_string(own.compare());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(Running, ACallThatFailsDoesNotSpoilTheWorkspace) {
  const HostProblem host(16, 16, 2048);
  const registry::KernelPtr kernel = kernel_with_workspace(engine_, host.gemm);
  DeviceProblem device(host, engine_.device());
  op::Gemm wrong = device.gemm;
  wrong.b.address += std::uint64_t{16} * 2040 * 4;  // the CTAs of the first steps of K read in bounds, others do not
  EXPECT_THROW(engine_.run(wrong, kernel), EmulationError);
  wrong.b.address = device.gemm.b.address + 64;  // the last CTA along K reads out of bounds
  EXPECT_THROW(engine_.run(wrong, kernel), EmulationError);
  engine_.run(device.gemm, kernel);
  device.copy_d_to(host);
  EXPECT_TRUE(host.compare().is_exact()) << op::to_string(host.compare());
}

TEST_F(Running, EpiloguesAreFused) {
  for (const op::Activation activation : {op::Activation::gelu, op::Activation::leaky_relu}) {
    HostProblem problem(20, 12, 16);
    problem.gemm.epilogue = op::linear_combination_generic(activation, DType::f32, 0.25);
    problem.gemm.beta = 0.5;
    engine_.run(problem.gemm);
    EXPECT_TRUE(problem.compare().is_within_bound()) << op::to_string(problem.compare());
  }
  HostProblem clamped(20, 12, 64, {.type = DType::s8, .d_type = DType::s8});
  op::fill_integers(clamped.gemm.a, -128, 127, 1);
  clamped.gemm.epilogue = op::linear_combination_clamp(DType::s8);
  expect_exact(clamped);
}

// The two epilogues have the same formula, but pack their scalars in a different order.
TEST_F(Running, EpiloguesWithADifferentOrderOfScalarsAreDistinct) {
  using enum op::EpilogueOp;
  const std::array<int, 3> leaf{-1, -1, -1};
  const op::EpilogueNode alpha{scalar, leaf, 0.0, "alpha"}, beta{scalar, leaf, 0.0, "beta"};
  const op::EpilogueNode product{accumulator, leaf, 0.0, {}}, c{source, leaf, 0.0, {}};
  HostProblem problem(20, 12, 16);
  problem.gemm.alpha = 2.0;
  problem.gemm.beta = -3.0;
  problem.gemm.epilogue = {
      "mine",
      DType::f32,
      {alpha, beta, product, c, {multiply, {0, 2}, 0.0, {}}, {multiply, {1, 3}, 0.0, {}}, {add, {4, 5}, 0.0, {}}}};
  expect_exact(problem);
  problem.gemm.epilogue.nodes = {
      beta, alpha, product, c, {multiply, {1, 2}, 0.0, {}}, {multiply, {0, 3}, 0.0, {}}, {add, {4, 5}, 0.0, {}}};
  expect_exact(problem);
}

TEST_F(Running, ScalarsAreLaunchArguments) {
  HostProblem problem(20, 12, 16);
  problem.gemm.beta = 1.0;
  for (const double alpha : {1.0, 2.0, -5.0}) {
    problem.gemm.alpha = alpha;
    expect_exact(problem);
  }
  EXPECT_EQ(engine_.cache().counters().compiles, 1);
}

TEST_F(Running, APreparedCallIsLaunchedAgainOnNewData) {
  const HostProblem host(24, 40, 16, {.type = DType::f16, .d_type = DType::f16, .b = kColumn});
  const DeviceProblem device(host, engine_.device());
  const PreparedCall prepared = engine_.prepare(device.gemm);
  EXPECT_TRUE(prepared.kernel().supports(device.gemm));
  for (const std::uint64_t seed : {1U, 7U}) {
    op::fill_integers(host.gemm.a, -3, 3, seed);
    engine_.device()->copy_in(device.gemm.a.address, reinterpret_cast<const void*>(host.gemm.a.address),
                              static_cast<std::size_t>(op::span_bytes(host.gemm.a)), nullptr);
    prepared.run();
    device.copy_d_to(host);
    EXPECT_TRUE(host.compare().is_exact()) << op::to_string(host.compare());
  }
  engine_.run(device.gemm);
  EXPECT_EQ(&engine_.prepare(device.gemm).kernel(), &prepared.kernel()) << "remembered for the problem";
  EXPECT_EQ(engine_.cache().counters().compiles, 1);
}

TEST_F(Running, PreparingOperandsOfAnotherDeviceIsRefused) {
  const HostProblem host(8, 8, 8);
  EXPECT_THAT(
      [&] { engine_.prepare(host.gemm); },
      testing::ThrowsMessage<InvalidArgument>("the operands are on host, but this engine's device is emulator: a "
                                              "prepared call copies nothing, Engine::run() does"));
  HostProblem elsewhere(8, 8, 8);
  for (op::Tensor* tensor : {&elsewhere.gemm.a, &elsewhere.gemm.b, &elsewhere.gemm.c, &elsewhere.gemm.d}) {
    tensor->device = {op::MemoryDevice::Kind::cuda, 0};
  }
  EXPECT_THROW(engine_.run(elsewhere.gemm), InvalidArgument);
}

TEST_F(Running, ManyThreadsShareOneEngine) {
  std::vector<std::thread> threads;
  std::vector<std::unique_ptr<HostProblem>> problems;
  for (int i = 0; i < 8; ++i) {
    problems.push_back(std::make_unique<HostProblem>(16 + i % 2, 12, 16));  // two alignments of one kernel family
  }
  for (const auto& problem : problems) {
    threads.emplace_back([&] {
      for (int repeat = 0; repeat < 3; ++repeat) engine_.run(problem->gemm);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& problem : problems) EXPECT_TRUE(problem->compare().is_exact()) << op::to_string(problem->compare());
  EXPECT_LE(engine_.cache().counters().compiles, 2);
}

TEST_F(Running, SeveralKernelsAreCompiledInOneCall) {
  const HostProblem problem(64, 64, 64);
  std::vector<registry::KernelPtr> kernels;
  for (const RankedKernel& ranked : engine_.find_kernels(problem.gemm)) kernels.push_back(ranked.kernel);
  const auto artifacts = engine_.compile(kernels);
  ASSERT_EQ(artifacts.size(), kernels.size());
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    EXPECT_EQ(artifacts[i]->name, kernels[i]->name());
    EXPECT_FALSE(artifacts[i]->ptx.empty());
    EXPECT_FALSE(artifacts[i]->cubin.empty());
  }
  EXPECT_EQ(engine_.cache().counters().compiles, static_cast<std::int64_t>(kernels.size()));
  engine_.compile(kernels.front());
  EXPECT_EQ(engine_.cache().counters().memory_hits, 1);
}

TEST_F(Running, AnotherEngineFindsTheKernelOnDisk) {
  const compile::ScopedFolder folder(testing::TempDir());
  Options options = emulator_options();
  options.cache_on_disk = true;
  options.cache_dir = folder.path();
  const HostProblem problem(20, 12, 16);
  {
    Engine first(options);
    first.run(problem.gemm);
    first.run(problem.gemm);
    EXPECT_EQ(first.cache().counters(), (cache::Counters{.memory_hits = 0, .disk_hits = 0, .compiles = 1}));
  }
  op::fill_poison(problem.gemm.d);
  Engine second(options);
  second.run(problem.gemm);
  EXPECT_EQ(second.cache().counters(), (cache::Counters{.memory_hits = 0, .disk_hits = 1, .compiles = 0}));
  EXPECT_TRUE(problem.compare().is_exact()) << op::to_string(problem.compare());
}

/// A user-defined kernel with a given source text, for packed problems.
class UsersKernel final : public registry::Kernel {
 public:
  UsersKernel(registry::KernelMetadata metadata, std::string body)
      : Kernel(std::move(metadata)), body_(std::move(body)) {}

 protected:
  compile::Source do_source() const override {
    compile::Source source;
    source.text = "struct P { const float* a; float* d; };\nextern \"C\" __global__ void " + name() +
                  "(const __grid_constant__ P p) { " + body_ + " }\n";
    return source;
  }
  plan::Launch do_launch(const op::Problem& problem) const override {
    const auto& arguments = std::get<op::Gemm>(problem);
    plan::Launch launch;
    launch.block[0] = static_cast<std::uint32_t>(arguments.m() * arguments.n());
    launch.append(arguments.a.address);
    launch.append(arguments.d.address);
    launch.finish();
    return launch;
  }
  double do_estimate_us(const op::Problem&) const override { return 1.0; }

 private:
  std::string body_;
};

registry::KernelPtr users_kernel(const std::string& family, const op::Gemm& gemm, std::string body) {
  plan::FlatDesign design;
  design.target = kSm80;
  return std::make_shared<UsersKernel>(registry::KernelMetadata{family, op::describe(gemm), design}, std::move(body));
}

TEST_F(Running, AUserDefinedKernelIsCompiledAndRun) {
  const HostProblem problem(8, 8, 8);
  engine_.run(problem.gemm, users_kernel("twice", problem.gemm, "p.d[threadIdx.x] = 2.0f * p.a[threadIdx.x];"));
  for (int row = 0; row < 8; ++row) {
    for (int column = 0; column < 8; ++column) {
      ASSERT_EQ(op::load(problem.gemm.d, row, column), 2 * op::load(problem.gemm.a, row, column));
    }
  }
  EXPECT_EQ(engine_.cache().counters().compiles, 1);
}

TEST_F(Running, AUserDefinedKernelKeepsWhatItDoesNotWrite) {
  const HostProblem problem(8, 8, 8);
  op::fill_integers(problem.gemm.d, 5, 5, 0);
  engine_.run(problem.gemm,
              users_kernel("even", problem.gemm, "if (threadIdx.x % 2 == 0) p.d[threadIdx.x] = p.a[threadIdx.x];"));
  for (int row = 0; row < 8; ++row) {
    for (int column = 0; column < 8; ++column)
      ASSERT_EQ(op::load(problem.gemm.d, row, column), column % 2 == 0 ? op::load(problem.gemm.a, row, column) : 5);
  }
}

TEST_F(Running, UserDefinedKernelsWithTheSameNameAreDistinct) {
  const HostProblem problem(8, 8, 8);
  for (int factor = 2; factor <= 3; ++factor) {
    const std::string body = fmt::format("p.d[threadIdx.x] = {}.0f * p.a[threadIdx.x];", factor);
    engine_.run(problem.gemm, users_kernel("scaled", problem.gemm, body));
    EXPECT_EQ(op::load(problem.gemm.d, 3, 5), factor * op::load(problem.gemm.a, 3, 5));
  }
  EXPECT_EQ(engine_.cache().counters().compiles, 2);
}

/// Offers a kernel for 8x8x8 f32 problems and refuses all others.
class UsersProvider final : public registry::Provider {
 public:
  std::string family() const override { return "twice"; }
  void discover(const op::Problem& problem, const Target& /*target*/, registry::Discovery& found) const override {
    const auto& arguments = std::get<op::Gemm>(problem);
    if (arguments.m() == 8) {
      found.kernels.push_back(users_kernel("twice", arguments, "p.d[threadIdx.x] = 2.0f * p.a[threadIdx.x];"));
    } else {
      found.refused.push_back({family(), refuse("m must be 8, got {}", arguments.m())});
    }
  }
  Result<registry::KernelPtr> make(const op::Signature&, const plan::Design&) const override {
    return refuse("no explicit designs");
  }
};

/// generate() returns a kernel twice, and null.
class CarelessProvider final : public registry::Provider {
 public:
  explicit CarelessProvider(registry::KernelPtr kernel) : kernel_(std::move(kernel)) {}
  std::string family() const override { return "careless"; }
  std::vector<registry::KernelPtr> generate(const Target& /*target*/) const override {
    return {nullptr, kernel_, kernel_};
  }

 private:
  registry::KernelPtr kernel_;
};

TEST_F(Running, NullAndRepeatedKernelsOfAProviderAreRefused) {
  Engine engine(emulator_options());
  const HostProblem problem(8, 8, 8);
  const registry::KernelPtr kernel = users_kernel("twice", problem.gemm, "p.d[threadIdx.x] = 2.0f * p.a[threadIdx.x];");
  engine.registry().add(std::make_shared<CarelessProvider>(kernel)).or_throw();
  const Explanation found = engine.explain(problem.gemm);
  EXPECT_EQ(std::ranges::count(found.kernels, kernel, &RankedKernel::kernel), 1);
  const auto reason = [&](const std::string& name) {
    const auto refused = std::ranges::find(found.refused, name, &registry::RefusedKernel::name);
    return refused == found.refused.end() ? "not refused" : refused->reason();
  };
  EXPECT_EQ(reason("careless"), "generate() returned a null kernel");
  EXPECT_EQ(reason(kernel->name()), "another kernel of its provider has this name");
  KernelListing listing = engine.list_kernels(kSm80, [](const auto& each) { return each.family == "twice"; });
  EXPECT_EQ(listing.next(), kernel);
  EXPECT_NO_THROW(engine.make_kernel(kernel->metadata().signature, kernel->metadata().design));
}

/// Without a target of its own, a design is for sm_80.
TEST_F(Running, KernelsForAnotherArchitectureAreRefused) {
  const HostProblem problem(8, 8, 8);
  const registry::KernelPtr kernel = users_kernel("early", problem.gemm, "p.d[threadIdx.x] = 2.0f * p.a[threadIdx.x];");
  for (const char* const device : {"emulator:sm_80", "emulator:sm_86", "emulator:sm_90a"}) {
    Options options = emulator_options();
    options.device = device;
    Engine engine(options);
    engine.registry().add(std::make_shared<CarelessProvider>(kernel)).or_throw();
    const Explanation found = engine.explain(problem.gemm);
    const bool is_offered = std::ranges::count(found.kernels, kernel, &RankedKernel::kernel) == 1;
    EXPECT_EQ(is_offered, std::string(device) != "emulator:sm_90a") << device;
    const bool is_refused = std::ranges::any_of(found.refused, [](const registry::RefusedKernel& each) {
      return each.reason() == "its design is for sm_80, whose code does not run on sm_90a";
    });
    EXPECT_EQ(is_refused, !is_offered) << device;
    EXPECT_NO_THROW(engine.run(problem.gemm)) << device;
  }
}

TEST_F(Running, NullKernelsAreNotCompiled) {
  EXPECT_THAT([&] { engine_.compile(registry::KernelPtr()); },
              testing::ThrowsMessage<InvalidArgument>("kernel 0 of 1 to compile is null"));
  EXPECT_THROW(engine_.compile_async({nullptr}).get(), InvalidArgument);
}

TEST_F(Running, AKernelWithAnotherSymbolIsNotPublished) {
  const HostProblem problem(8, 8, 8);
  class Misnamed final : public registry::Kernel {
   public:
    using Kernel::Kernel;
    compile::Source do_source() const override {
      compile::Source source;
      source.text = "__global__ void misnamed(float* d) { *d = 1; } extern \"C\" __global__ void other() {}";
      return source;
    }
    plan::Launch do_launch(const op::Problem& /*problem*/) const override { return {}; }
  };
  plan::FlatDesign design;
  design.target = kSm80;
  const auto kernel =
      std::make_shared<Misnamed>(registry::KernelMetadata{"misnamed", op::describe(problem.gemm), design});
  for (int repeat = 0; repeat < 2; ++repeat) {
    EXPECT_THAT([&] { engine_.run(problem.gemm, kernel); },
                testing::ThrowsMessage<CompileError>(testing::AllOf(
                    testing::HasSubstr(fmt::format("must define the kernel extern \"C\" {}", kernel->name())),
                    testing::HasSubstr("_Z8misnamedPf"), testing::HasSubstr("other"))));
  }
  EXPECT_EQ(engine_.cache().counters().memory_hits, 0) << "nothing was kept";
}

TEST_F(Running, AUserDefinedProviderIsQueried) {
  Engine engine(emulator_options());
  ASSERT_TRUE(engine.registry().add(std::make_shared<UsersProvider>()));
  const HostProblem small(8, 8, 8);
  ASSERT_EQ(engine.find_kernels(small.gemm).front().kernel->metadata().family, "twice");
  engine.run(small.gemm);
  EXPECT_EQ(op::load(small.gemm.d, 3, 5), 2 * op::load(small.gemm.a, 3, 5));

  const HostProblem large(16, 8, 8);
  const Explanation explanation = engine.explain(large.gemm);
  EXPECT_FALSE(explanation.kernels.empty());
  EXPECT_EQ(explanation.refused.front(), (registry::RefusedKernel{"twice", refuse("m must be 8, got {}", 16)}));
}

// `make sanitize` runs this with the leak checker.
TEST_F(Running, TenThousandRunsDoNotLeak) {
  const HostProblem problem(8, 8, 8);
  const registry::KernelPtr kernel = users_kernel("twice", problem.gemm, "p.d[threadIdx.x] = 2.0f * p.a[threadIdx.x];");
  const DeviceProblem on_device(problem, engine_.device());
  const std::size_t before = engine_.device()->allocated_bytes();
  for (int i = 0; i < 10000; ++i) engine_.run(on_device.gemm, kernel);
  EXPECT_EQ(engine_.device()->allocated_bytes(), before);
}

TEST_F(Running, TheEngineWorksAfterAKernelFault) {
  const HostProblem problem(8, 8, 8);
  EXPECT_THROW(engine_.run(problem.gemm, users_kernel("stray", problem.gemm, "p.d[threadIdx.x + 1000000] = 1.0f;")),
               EmulationError);
  expect_exact(problem);
}

TEST_F(Running, ATextThatDoesNotCompileIsReportedEveryTime) {
  const HostProblem problem(8, 8, 8);
  Options options = emulator_options();
  const compile::ScopedFolder dumps(testing::TempDir());
  options.toolchain.dump_dir = dumps.path();
  Engine engine(options);
  for (int i = 0; i < 2; ++i) {
    EXPECT_THROW(engine.run(problem.gemm, users_kernel("broken", problem.gemm, "no such thing;")), CompileError);
  }
  EXPECT_EQ(engine.device()->allocated_bytes(), 0U);
}

// Host problems have host arrays of host pointers. The gaps between the rows and between the matrices keep their bytes.
TEST_F(Running, PointerArraysOnTheHost) {
  for (const int padding : {0, 3}) {
    HostProblem problem(20, 24, 16, {.padding = padding, .batch = 3, .batch_padding = 5});
    problem.gemm.beta = 1.0;
    problem.use_pointer_arrays();
    op::fill_poison(problem.gemm.d);
    const std::vector<RankedKernel> kernels = engine_.find_kernels(problem.gemm);
    ASSERT_FALSE(kernels.empty());
    engine_.run(problem.gemm, kernels.front().kernel);
    EXPECT_TRUE(problem.compare().is_exact()) << op::to_string(problem.compare());
    for (std::int64_t i = 0; padding != 0 && i < 3; ++i) {
      const op::Tensor row = op::slice(problem.gemm.d, i);
      EXPECT_TRUE(std::isnan(reinterpret_cast<const float*>(row.address)[24])) << "padding of matrix " << i;
    }
  }
}

}  // namespace
}  // namespace tilewright::engine
