// Tensor maps encoded by the driver, read by a kernel's bulk tensor copies.
#include <vector>

#include "gpu_test.hpp"
#include "tests/unit/base/tensor_map_rules.hpp"
#include "tilewright/base/target_features.hpp"
#include "tilewright/runtime/cuda_context.hpp"
#include "tilewright/runtime/encode_tensor_map.hpp"

namespace tilewright::runtime {
namespace {

constexpr const char* kLoadSource = R"(
struct alignas(64) Map { unsigned char bytes[128]; };
struct Parameters { Map map; unsigned* to; int x, y, words; };
extern "C" __global__ void load_box(const __grid_constant__ Parameters p) {
  __shared__ __align__(1024) unsigned tile[2048];
  __shared__ __align__(8) unsigned long long bar;
  const unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(&bar));
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(at) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(at), "r"(p.words * 4) : "memory");
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(
            static_cast<unsigned>(__cvta_generic_to_shared(tile))), "l"(&p.map), "r"(p.x), "r"(p.y), "r"(at)
        : "memory");
  }
  __syncthreads();
  asm volatile("{\n.reg .pred p;\nAGAIN:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0;\n@!p bra AGAIN;\n}" ::"r"(at)
               : "memory");
  for (int i = threadIdx.x; i < p.words; i += 32) p.to[i] = tile[i];
}
)";

struct LoadParameters {
  EncodedTensorMap map;
  DeviceAddress to;
  int x, y, words;
};

TEST_F(GpuTest, TensorMapsLoadSwizzledBoxes) {
  if (const Support has = check_feature(device_->properties().target, TargetFeature::tma); !has)
    GTEST_SKIP() << has.reason();
  constexpr std::uint32_t kColumns = 100, kRows = 20, kBoxColumns = 32, kBoxRows = 16;
  std::vector<std::uint32_t> values(kColumns * kRows);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::uint32_t>(i + 1);
  const DeviceBuffer from(device_, values.size() * 4);
  const DeviceBuffer to(device_, kBoxColumns * kBoxRows * 4);
  device_->copy_in(from.address(), values.data(), values.size() * 4, nullptr);
  TensorMap d;
  d.type = TensorMapType::u32;
  d.rank = 2;
  d.address = from.address();
  d.extents = {kColumns, kRows};
  d.strides = {0, kColumns * 4};
  d.box = {kBoxColumns, kBoxRows};
  d.swizzle = TensorMapSwizzle::bytes_128;
  LoadParameters parameters{device_->encode(d), to.address(), 80, 10, kBoxColumns * kBoxRows};
  load_kernel(*device_, "load_box", kLoadSource)->launch({.block = {32}}, parameter_bytes(parameters));
  std::vector<std::uint32_t> box(kBoxColumns * kBoxRows);
  device_->copy_out(box.data(), to.address(), box.size() * 4, nullptr);
  device_->synchronize(nullptr);
  for (std::uint32_t y = 0; y < kBoxRows; ++y) {
    for (std::uint32_t x = 0; x < kBoxColumns; ++x) {
      const bool inside = x + 80 < kColumns && y + 10 < kRows;
      const std::uint32_t place = (y * kBoxColumns + x) ^ ((y % 8) * 4);  // 128-byte swizzle of 16-byte chunks
      EXPECT_EQ(box[place], inside ? values[(y + 10) * kColumns + x + 80] : 0U) << x << " " << y;
    }
  }
}

// The rules of check() are those of this driver.
TEST_F(GpuTest, TheDriverHasTheRulesOfTensorMaps) {
  if (const Support has = check_feature(device_->properties().target, TargetFeature::tma); !has)
    GTEST_SKIP() << has.reason();
  const CudaContext context(std::make_shared<Driver>(DriverOptions{}), 0);
  const ContextScope scope(context);
  for (const TensorMapRule& rule : tensor_map_rules()) {
    if (!rule.is_of_the_driver) continue;
    bool is_refused = false;
    try {
      encode_tensor_map(context.driver(), rule.map);
    } catch (const DriverError&) {
      is_refused = true;
    }
    EXPECT_EQ(is_refused, !rule.refusal.empty()) << rule.name;
  }
}

}  // namespace
}  // namespace tilewright::runtime
