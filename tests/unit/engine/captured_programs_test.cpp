// Kernels that are programs, in a stream capture: a launch only launches, and has all that the graph replays.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "tests/unit/runtime/fixture.hpp"
#include "tilewright/engine/engine.hpp"
#include "tilewright/engine/launch.hpp"
#include "tilewright/engine/packed_launches.hpp"

namespace tilewright::engine {
namespace {

/// CUlaunchAttributeID of the dimensions of a cluster, and of programmatic stream serialization.
constexpr int kClusterDimension = 4, kProgrammaticSerialization = 6;

/// bf16 at addresses that are never read, with a batch.
op::Gemm gemm_at(std::uint64_t address) {
  constexpr op::MemoryDevice kGpu{.kind = op::MemoryDevice::Kind::cuda};
  constexpr std::uint64_t kApart = std::uint64_t{1} << 32;
  op::Gemm gemm;
  gemm.a = op::matrix(address, DType::bf16, 512, 64, op::MatrixLayout::row_major, 0, kGpu);
  gemm.b = op::matrix(address + kApart, DType::bf16, 64, 512, op::MatrixLayout::column_major, 0, kGpu);
  gemm.d = op::matrix(address + 2 * kApart, DType::bf16, 512, 512, op::MatrixLayout::row_major, 0, kGpu);
  return gemm;
}

class CapturedPrograms : public runtime::FakeDriverTest {
 protected:
  /// The kernels of the family, which is not empty.
  static std::vector<registry::KernelPtr> kernels_of(const std::string& family) {
    Options options;
    options.device = "emulator:sm_90a";
    const Engine engine(options);
    std::vector<registry::KernelPtr> kernels;
    for (const auto& found : engine.find_kernels(
             gemm_at(1 << 20), [&](const registry::KernelMetadata& kernel) { return kernel.family == family; }))
      kernels.push_back(found.kernel);
    return kernels;
  }

  std::shared_ptr<runtime::LoadedKernel> load(const plan::Launch& launch) {
    state_->parameter_sizes = {launch.parameters().size()};
    return device_->load({.cubin = {}, .ptx = ".version 8.0"}, "kernel", launch.dynamic_smem_bytes);
  }

  std::shared_ptr<runtime::CudaDevice> device_ = runtime::open_cuda_device(0, {}, runtime::kFakeDriver);
};

TEST_F(CapturedPrograms, ALaunchCallsTheDriverOnce) {
  const auto stream = reinterpret_cast<runtime::StreamHandle>(64);
  PackedLaunches packed(device_, /*overlap=*/true);
  int clusters = 0;
  for (const registry::KernelPtr& kernel : kernels_of("cuda_program")) {
    SCOPED_TRACE(kernel->name());
    const Call call(gemm_at(1 << 20));
    const auto launch = packed.get(kernel, call);
    EXPECT_EQ(launch->workspace_bytes(), 0U) << "replays of a graph share nothing";
    const auto loaded = load(*launch);
    state_->launches.clear();
    const std::map<std::string, int> before = state_->calls;
    state_->capture_status = 1;
    state_->capture_id = 7;

    const auto again = packed.get(kernel, call);
    engine::launch(*loaded, launch_config(*again), *again, {.stream = stream});

    state_->capture_status = 0;
    for (const auto& [symbol, count] : state_->calls) {
      const auto found = before.find(symbol);
      const int made = count - (found == before.end() ? 0 : found->second);
      if (symbol.starts_with("cuCtx") || symbol.starts_with("cuThreadExchange")) continue;
      EXPECT_EQ(made, symbol == "cuLaunchKernelEx" ? 1 : 0) << symbol;
    }
    ASSERT_EQ(state_->launches.size(), 1U);
    const fake_driver::Launch& made = state_->launches.front();
    EXPECT_TRUE(std::ranges::equal(made.grid, launch->grid));
    EXPECT_TRUE(std::ranges::equal(made.block, launch->block));
    EXPECT_EQ(made.dynamic_smem_bytes, launch->dynamic_smem_bytes);
    EXPECT_TRUE(std::ranges::equal(made.parameters, launch->parameters()));
    const bool is_cluster = launch->cluster[0] * launch->cluster[1] * launch->cluster[2] > 1;
    clusters += is_cluster ? 1 : 0;
    ASSERT_EQ(made.attributes.contains(kClusterDimension), is_cluster);
    if (is_cluster) {
      EXPECT_TRUE(std::ranges::equal(made.attributes.at(kClusterDimension), launch->cluster));
    }
    EXPECT_TRUE(made.attributes.contains(kProgrammaticSerialization)) << "programs wait for the kernel before them";
  }
  EXPECT_GT(clusters, 0);
}

TEST_F(CapturedPrograms, OtherArraysHaveTheirOwnTensorMaps) {
  const registry::KernelPtr kernel = kernels_of("cuda_program").at(0);
  PackedLaunches packed(device_);
  const auto first = packed.get(kernel, Call(gemm_at(1 << 20)));
  const auto loaded = load(*first);
  engine::launch(*loaded, launch_config(*first), *first, {});
  const auto second = packed.get(kernel, Call(gemm_at(1 << 21)));
  engine::launch(*loaded, launch_config(*second), *second, {});
  ASSERT_EQ(state_->launches.size(), 2U);
  for (const std::uint64_t address : {1U << 20, 1U << 21})
    EXPECT_EQ(std::ranges::count(state_->tensor_maps, address, &fake_driver::TensorMap::address), 1) << address;
  EXPECT_FALSE(state_->launches[0].attributes.contains(kProgrammaticSerialization));
}

}  // namespace
}  // namespace tilewright::engine
