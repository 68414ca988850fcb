// Repeated calls: the driver encodes no tensor map again, and every launch is the one of its own arrays and numbers.
#include "tilewright/engine/packed_launches.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "tests/unit/runtime/fixture.hpp"
#include "tilewright/engine/engine.hpp"
#include "tilewright/engine/launch.hpp"

namespace tilewright::engine {
namespace {

/// f16, A row-major, B column-major, at addresses that are never read.
op::Gemm gemm_at(std::uint64_t address) {
  constexpr op::MemoryDevice kGpu{.kind = op::MemoryDevice::Kind::cuda};
  constexpr std::uint64_t kApart = std::uint64_t{1} << 32;
  op::Gemm gemm;
  gemm.a = op::matrix(address, DType::f16, 128, 64, op::MatrixLayout::row_major, 0, kGpu);
  gemm.b = op::matrix(address + kApart, DType::f16, 64, 256, op::MatrixLayout::column_major, 0, kGpu);
  gemm.d = op::matrix(address + 2 * kApart, DType::f16, 128, 256, op::MatrixLayout::row_major, 0, kGpu);
  return gemm;
}

class RepeatedCalls : public runtime::FakeDriverTest {
 protected:
  RepeatedCalls() : device_(runtime::open_cuda_device(0, {}, runtime::kFakeDriver)), packed_(device_) {
    Options options;
    options.device = "emulator:sm_90a";
    const Engine engine(options);
    const auto by_tma = [](const registry::KernelMetadata& kernel) { return kernel.family == "sm90_gemm"; };
    kernel_ = engine.find_kernels(gemm_at(1 << 20), by_tma).at(0).kernel;
  }

  int encoded() const { return calls("cuTensorMapEncodeTiled"); }

  /// Whether the launch is what the kernel packs for the problem.
  bool is_launch_of(const plan::Launch& launch, const op::Problem& problem) {
    plan::Launch expected = kernel_->launch(problem);
    encode_tensor_maps(*device_, expected);
    return expected.grid == launch.grid && std::ranges::equal(expected.parameters(), launch.parameters());
  }

  std::shared_ptr<runtime::CudaDevice> device_;
  PackedLaunches packed_;
  registry::KernelPtr kernel_;
};

TEST_F(RepeatedCalls, EncodeNoTensorMapAgain) {
  const auto first = packed_.get(kernel_, Call(gemm_at(1 << 20)));
  const int once = encoded();
  EXPECT_GE(once, 2);
  EXPECT_EQ(packed_.get(kernel_, Call(gemm_at(1 << 20))), first);
  EXPECT_EQ(encoded(), once);
}

TEST_F(RepeatedCalls, OverlapOnlyIfTheEngineSaysSo) {
  EXPECT_FALSE(launch_config(*packed_.get(kernel_, Call(gemm_at(1 << 20)))).programmatic_stream_serialization);
  PackedLaunches overlapping(device_, true);
  EXPECT_TRUE(launch_config(*overlapping.get(kernel_, Call(gemm_at(1 << 20)))).programmatic_stream_serialization);
}

/// A model with 200 layers makes 200 different calls in turn.
TEST_F(RepeatedCalls, OfManyArraysAreAllRemembered) {
  for (std::uint64_t i = 1; i <= 200; ++i) packed_.get(kernel_, Call(gemm_at(i << 20)));
  const int once = encoded();
  for (std::uint64_t i = 1; i <= 200; ++i) packed_.get(kernel_, Call(gemm_at(i << 20)));
  EXPECT_LE(encoded(), once + once / 20);
}

TEST_F(RepeatedCalls, HaveTheLaunchOfTheirOwnArraysAndNumbers) {
  for (int round = 0; round < 2; ++round) {
    for (std::uint64_t i = 1; i <= 1500; ++i) {  // more than are remembered
      op::Gemm gemm = gemm_at(i << 20);
      gemm.alpha = static_cast<double>(i % 3) + 1;
      ASSERT_TRUE(is_launch_of(*packed_.get(kernel_, Call(gemm)), gemm)) << i;
    }
  }
}

// alpha is stored as it is given. -0.0 == 0.0 and NaN != NaN, so that such calls are never taken for equal.
TEST_F(RepeatedCalls, DistinguishZerosBySign) {
  op::Gemm gemm = gemm_at(1 << 20);
  gemm.c = gemm.d;
  EXPECT_TRUE(Call(gemm).is_shared());
  EXPECT_TRUE(Call(gemm).is_same(Call(gemm)));
  for (const double beta : {-0.0, std::numeric_limits<double>::quiet_NaN()}) {
    gemm.beta = beta;
    EXPECT_FALSE(Call(gemm).is_shared());
    EXPECT_FALSE(Call(gemm).is_same(Call(gemm)));
  }
}

TEST_F(RepeatedCalls, AreStillRefusedIfTheyAreInvalid) {
  op::Gemm gemm = gemm_at(1 << 20);
  const Call valid(gemm);
  gemm.d.address = gemm.a.address;
  for (int i = 0; i < 2; ++i) EXPECT_THROW(Call{gemm}, InvalidArgument);
}

}  // namespace
}  // namespace tilewright::engine
