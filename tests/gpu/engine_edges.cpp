// Problems at the limits of a GPU: offsets beyond 2^32 bytes and 2^31 elements, batches beyond the maximum of a grid's
// y and z dimensions, and calls captured into CUDA graphs.
#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "capture.hpp"
#include "gpu_engine_test.hpp"
#include "tests/unit/engine/host_problem.hpp"
#include "tilewright/base/float_format.hpp"
#include "tilewright/engine/engine.hpp"
#include "tilewright/engine/host_operands.hpp"
#include "tilewright/runtime/stream.hpp"

namespace tilewright::engine {
namespace {

using EngineEdges = GpuEngineTest;

/// D has 2.3 * 10^9 elements of f16. Row i of A is filled with i % 8 + 1 and B with ones, so that the value of an
/// element of D identifies its row modulo 8.
TEST_F(EngineEdges, OffsetsBeyond32Bits) {
  constexpr std::int64_t kM = 70000, kN = 32768, kK = 16;
  const auto device = engine_->device();
  if (device->properties().memory_bytes < std::int64_t{16} << 30) GTEST_SKIP() << "less than 16 GiB of memory";
  std::vector<std::uint16_t> a(kM * kK), b(kK * kN, f32_to_f16(1.0F));
  for (std::int64_t i = 0; i < kM * kK; ++i)
    a[static_cast<std::size_t>(i)] = f32_to_f16(static_cast<float>(i / kK % 8 + 1));
  const runtime::DeviceBuffer on_device_a(device, a.size() * 2), on_device_b(device, b.size() * 2);
  const runtime::DeviceBuffer d(device, static_cast<std::size_t>(kM * kN * 2));
  device->copy_in(on_device_a.address(), a.data(), on_device_a.bytes(), nullptr);
  device->copy_in(on_device_b.address(), b.data(), on_device_b.bytes(), nullptr);
  device->fill(d.address(), 0xff, d.bytes(), nullptr);
  constexpr op::MemoryDevice kGpu{.kind = op::MemoryDevice::Kind::cuda, .ordinal = 0};
  op::Gemm gemm;
  gemm.a = op::matrix(on_device_a.address(), DType::f16, kM, kK, op::MatrixLayout::row_major, 0, kGpu);
  gemm.b = op::matrix(on_device_b.address(), DType::f16, kK, kN, op::MatrixLayout::row_major, 0, kGpu);
  gemm.d = op::matrix(d.address(), DType::f16, kM, kN, op::MatrixLayout::row_major, 0, kGpu);
  engine_->run(gemm);
  constexpr std::int64_t kElements = std::int64_t{1} << 31, kBytes = std::int64_t{1} << 32;
  for (const std::int64_t at : {std::int64_t{0}, kElements / 2 - 1, kElements / 2, kElements - 1, kElements,
                                kBytes / 2 + 5, kM * kN - kN, kM * kN - 1}) {
    std::uint16_t element = 0;
    device->copy_out(&element, d.address() + static_cast<std::uint64_t>(at) * 2, 2, nullptr);
    device->synchronize(nullptr);
    EXPECT_EQ(f16_to_f32(element), static_cast<float>(kK * (at / kN % 8 + 1))) << "element " << at;
  }
}

TEST_F(EngineEdges, BatchesBeyondAGridsYAndZ) {
  for (const std::int64_t batch : {65535, 65536, 70000, 1000000}) {
    SCOPED_TRACE(batch);
    HostProblem problem(4, 4, 4, {.batch = batch});
    engine_->run(problem.gemm);
    EXPECT_TRUE(problem.compare().is_exact());
  }
}

/// A first call that was not prepared is captured, or refused without invalidating the capture.
TEST_F(EngineEdges, AFirstCallUnderCaptureLeavesItValid) {
  const runtime::Capture capture;
  for (const int mode : {0, 1, 2}) {
    SCOPED_TRACE(mode);
    HostProblem problem(40, 24, 16 * (mode + 1), {});
    const HostOperands operands(problem.gemm, engine_->device(), nullptr);
    engine_->device()->synchronize(nullptr);
    const runtime::Stream stream(device_->context());
    ASSERT_EQ(capture.begin(stream.handle(), mode), 0);
    try {
      engine_->run(operands.on_device(), nullptr, stream.handle());
    } catch (const InvalidArgument& refused) {
      EXPECT_NE(*refused.what(), '\0');
    }
    void* graph = nullptr;
    EXPECT_EQ(capture.end(stream.handle(), &graph), 0);
    EXPECT_NE(graph, nullptr);
    capture.destroy(graph);
  }
}

TEST_F(EngineEdges, APreparedCallIsReplayed) {
  const runtime::Capture capture;
  HostProblem problem(40, 24, 64, {});
  HostOperands operands(problem.gemm, engine_->device(), nullptr);
  const PreparedCall prepared = engine_->prepare(operands.on_device());
  for (const int mode : {0, 1, 2}) {
    SCOPED_TRACE(mode);
    const runtime::Stream stream(device_->context());
    ASSERT_EQ(capture.begin(stream.handle(), mode), 0);
    prepared.run(stream.handle());
    void* graph = nullptr;
    void* executable = nullptr;
    ASSERT_EQ(capture.end(stream.handle(), &graph), 0);
    ASSERT_EQ(capture.instantiate(&executable, graph, 0), 0);
    for (int i = 0; i < 100; ++i) {
      const auto scale = static_cast<std::uint8_t>(i);
      engine_->device()->fill(std::get<op::Gemm>(operands.on_device()).d.address, scale, 64, stream.handle());
      ASSERT_EQ(capture.launch(executable, stream.handle()), 0);
    }
    stream.synchronize();
    operands.copy_out();
    EXPECT_TRUE(problem.compare().is_exact());
    capture.destroy_executable(executable);
    capture.destroy(graph);
  }
}

/// Split-K, repacked operands and reductions use a workspace, and the capture gets one of its own.
TEST_F(EngineEdges, ACallWithAWorkspaceIsReplayed) {
  const runtime::Capture capture;
  for (const auto& [m, n, k] : {std::array<std::int64_t, 3>{128, 128, 32768}, {1031, 901, 1433}}) {
    SCOPED_TRACE(m);
    HostProblem problem(m, n, k, {.type = DType::f16});
    HostOperands operands(problem.gemm, engine_->device(), nullptr);
    int with_workspace = 0;
    for (const RankedKernel& candidate : engine_->find_kernels(operands.on_device())) {
      if (candidate.kernel->workspace_bytes(operands.on_device()) == 0) continue;
      if (++with_workspace > 3) break;
      const PreparedCall prepared = engine_->prepare(operands.on_device(), candidate.kernel);
      const runtime::Stream stream(device_->context());
      ASSERT_EQ(capture.begin(stream.handle(), 0), 0);
      prepared.run(stream.handle());
      prepared.run(stream.handle());
      void* graph = nullptr;
      void* executable = nullptr;
      ASSERT_EQ(capture.end(stream.handle(), &graph), 0);
      ASSERT_EQ(capture.instantiate(&executable, graph, 0), 0);
      for (int i = 0; i < 10; ++i) ASSERT_EQ(capture.launch(executable, stream.handle()), 0);
      stream.synchronize();
      operands.copy_out();
      EXPECT_TRUE(problem.compare().is_exact()) << candidate.kernel->name();
      capture.destroy_executable(executable);
      capture.destroy(graph);
    }
    EXPECT_GT(with_workspace, 0);
  }
}

}  // namespace
}  // namespace tilewright::engine
