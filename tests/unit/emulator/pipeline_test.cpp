// A warp-specialised sm_90 GEMM in CUDA C++: a producer warp that loads by TMA, two consumer warpgroups that multiply
// by wgmma, and a ring of stages with full and empty mbarriers. Tests a correct kernel, and kernels with typical
// faults.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>

#include "cuda_kernel.hpp"
#include "hopper_kernel.hpp"
#include "tilewright/base/float_format.hpp"

namespace tilewright::emulator {
namespace {

constexpr int kSize = 256;
constexpr int kTile = 128;
constexpr int kBlockK = 64;
constexpr int kStages = 2;
constexpr std::uint32_t kTileBytes = kTile * kBlockK * 2;
constexpr std::uint32_t kSharedBytes = kStages * 2 * kTileBytes + 1024;

/// A device function that executes wgmma m64n128k16; D has 64 registers per thread.
std::string multiply_function() {
  std::string registers, constraints;
  for (int i = 0; i < 64; ++i) {
    registers += fmt::format("{}%{}", i == 0 ? "" : ", ", i);
    constraints += fmt::format("{}\"+f\"(d[{}])", i == 0 ? "" : ", ", i);
  }
  return fmt::format(
      "__device__ __forceinline__ void multiply(float (&d)[64], u64 a, u64 b) {{\n"
      "  asm volatile(\"{{\\n.reg .pred p;\\nsetp.ne.b32 p, 1, 0;\\n\"\n"
      "    \"wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {{{}}}, %64, %65, p, 1, 1, 0, 0;\\n}}\\n\"\n"
      "    : {} : \"l\"(a), \"l\"(b));\n}}\n",
      registers, constraints);
}

constexpr std::string_view kPieces = R"(
typedef unsigned u32;
typedef unsigned long long u64;
struct alignas(64) Map { unsigned char bytes[128]; };
struct Parameters { Map a, b; float* d; };
__device__ __forceinline__ u32 address(const void* p) { return static_cast<u32>(__cvta_generic_to_shared(p)); }
__device__ __forceinline__ void init(u32 bar, u32 count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(count) : "memory");
}
__device__ __forceinline__ void wait(u32 bar, u32 parity) {
  asm volatile("{\n.reg .pred p;\nAGAIN:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@p bra OVER;\n"
               "bra AGAIN;\nOVER:\n}" ::"r"(bar), "r"(parity) : "memory");
}
__device__ __forceinline__ void arrive(u32 bar) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(bar) : "memory");
}
__device__ __forceinline__ void expect(u32 bar, u32 bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes) : "memory");
}
__device__ __forceinline__ void load(u32 to, const Map* map, int x, int y, u32 bar) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
               ::"r"(to), "l"(map), "r"(x), "r"(y), "r"(bar) : "memory");
}
__device__ __forceinline__ u64 descriptor(u32 at) {
  return ((at & 0x3ffff) >> 4) | (u64(1) << 16) | (u64(1024 >> 4) << 32) | (u64(1) << 62);
}
)";

constexpr std::string_view kGemm = R"(
extern "C" __global__ void __launch_bounds__(384) k(const __grid_constant__ Parameters p) {
  extern __shared__ __align__(1024) unsigned char ring[];
  __shared__ __align__(8) u64 full[2], empty[2];
  const u32 tile = 16384, steps = 256 / 64;
  const u32 group = threadIdx.x / 128;
  if (threadIdx.x == 0) {
    for (int s = 0; s < 2; ++s) {
      init(address(&full[s]), 1);
      init(address(&empty[s]), 2);
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  INIT_BARRIER
  if (group == 0) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    if (threadIdx.x == 0) {
      for (u32 step = 0; step < steps; ++step) {
        const u32 s = step % 2, at = address(ring) + s * 2 * tile;
        WAIT_EMPTY
        expect(address(&full[s]), EXPECTED);
        load(at, &p.a, step * 64, blockIdx.y * 128, address(&full[s]));
        load(at + tile, &p.b, step * 64, blockIdx.x * 128, address(&full[s]));
      }
    }
    return;
  }
  asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
  float d[64];
  for (int i = 0; i < 64; ++i) d[i] = 0;
  for (u32 step = 0; step < steps; ++step) {
    const u32 s = step % 2, at = address(ring) + s * 2 * tile;
    WAIT_FULL
    WGMMA_FENCE
    const u64 a = descriptor(at + (group - 1) * 64 * 128), b = descriptor(at + tile);
    for (int k = 0; k < 4; ++k) multiply(d, a + 2 * k, b + 2 * k);
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    EARLY_RELEASE
    WGMMA_WAIT
    LATE_RELEASE
  }
  const int t = threadIdx.x % 128, row = blockIdx.y * 128 + (group - 1) * 64 + t / 32 * 16 + t % 32 / 4;
  const int column = blockIdx.x * 128 + t % 4 * 2;
  for (int i = 0; i < 64; ++i) p.d[(row + i / 2 % 2 * 8) * 256 + column + i / 4 * 8 + i % 2] = d[i];
}
)";

using Changes = std::vector<std::pair<std::string, std::string>>;

std::string gemm_source(const Changes& changes) {
  const Changes defaults = {
      {"INIT_BARRIER", "__syncthreads();"},
      {"WAIT_EMPTY", "wait(address(&empty[s]), (step / 2 & 1) ^ 1);"},
      {"EXPECTED", "2 * tile"},
      {"WAIT_FULL", "wait(address(&full[s]), step / 2 & 1);"},
      {"WGMMA_FENCE", "asm volatile(\"wgmma.fence.sync.aligned;\" ::: \"memory\");"},
      {"EARLY_RELEASE", ""},
      {"WGMMA_WAIT", "asm volatile(\"wgmma.wait_group.sync.aligned 0;\" ::: \"memory\");"},
      {"LATE_RELEASE", "if (threadIdx.x % 128 == 0) arrive(address(&empty[s]));"},
  };
  std::string text = std::string(kPieces) + multiply_function() + std::string(kGemm);
  for (const Changes* const list : {&changes, &defaults}) {
    for (const auto& [name, replacement] : *list) {
      const std::size_t at = text.find(name);
      if (at != std::string::npos) text.replace(at, name.size(), replacement);
    }
  }
  return text;
}

int a_value(int m, int k) { return (m * 3 + k * 5) % 7 - 3; }
int b_value(int n, int k) { return (n * 2 + k * 3) % 5 - 2; }

struct Outcome {
  Finding finding;
  std::vector<float> d;
  double seconds = 0;
};

Outcome run_gemm(const Changes& changes) {
  const std::string ptx = ptx_of("k", gemm_source(changes), kSm90a);
  const auto device = test_device();
  std::vector<std::uint16_t> a, b;
  for (int row = 0; row < kSize; ++row) {
    for (int k = 0; k < kSize; ++k) {
      a.push_back(f32_to_f16(static_cast<float>(a_value(row, k))));
      b.push_back(f32_to_f16(static_cast<float>(b_value(row, k))));
    }
  }
  const auto da = upload(device, a);
  const auto db = upload(device, b);
  const auto dd = upload(device, std::vector<float>(kSize * kSize, -1.0F));
  TensorMap map;
  map.type = TensorMapType::f16;
  map.rank = 2;
  map.extents = {kSize, kSize};
  map.strides = {0, kSize * 2};
  map.box = {kBlockK, kTile};
  map.swizzle = TensorMapSwizzle::bytes_128;
  map.address = da.address();
  const EncodedTensorMap map_a = device->encode(map);
  map.address = db.address();
  std::vector<std::byte> parameters = pack_maps({map_a, device->encode(map)}, {dd.address()});
  parameters.resize(320);  // the struct's size is a multiple of 64
  Outcome outcome;
  const auto start = std::chrono::steady_clock::now();
  outcome.finding = finding_of([&] {
    launch_hopper(*device, ptx, parameters,
                  {.block = {384, 1, 1}, .grid = {2, 2, 1}, .dynamic_smem_bytes = kSharedBytes});
  });
  outcome.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  outcome.d = download<float>(*device, dd);
  return outcome;
}

TEST(Pipeline, CorrectKernelIsExact) {
  if (compiler() == nullptr) GTEST_SKIP() << "no NVRTC on this machine";
  const Outcome outcome = run_gemm({});
  ASSERT_EQ(outcome.finding.detail, "") << to_string(outcome.finding);
  RecordProperty("milliseconds", static_cast<int>(outcome.seconds * 1e3));
  for (int m = 0; m < kSize; ++m) {
    for (int n = 0; n < kSize; ++n) {
      int sum = 0;
      for (int k = 0; k < kSize; ++k) sum += a_value(m, k) * b_value(n, k);
      ASSERT_EQ(outcome.d[static_cast<std::size_t>(kSize * m + n)], static_cast<float>(sum)) << m << " " << n;
    }
  }
}

struct Planted {
  std::string_view name;
  Changes changes;
  std::vector<FindingKind> kinds;  // one of these, which depends on the order in which warps run
};

TEST(Pipeline, PlantedFaultsAreFoundWithTheirKind) {
  if (compiler() == nullptr) GTEST_SKIP() << "no NVRTC on this machine";
  const std::string release = "if (threadIdx.x % 128 == 0) arrive(address(&empty[s]));";
  using K = FindingKind;
  const Planted all[] = {
      {"stage released before wgmma.wait_group",
       {{"EARLY_RELEASE", release}, {"LATE_RELEASE", ""}},
       {K::async_read_in_flight}},
      {"stage never released", {{"LATE_RELEASE", ""}}, {K::deadlock}},
      {"too few bytes expected", {{"EXPECTED", "2 * tile - 128"}}, {K::transaction_mismatch}},
      {"too many bytes expected", {{"EXPECTED", "2 * tile + 64"}}, {K::transaction_mismatch}},
      {"no wait for the full barrier", {{"WAIT_FULL", ""}}, {K::async_write_in_flight, K::async_read_in_flight}},
      {"no wait for the empty barrier", {{"WAIT_EMPTY", ""}}, {K::async_write_in_flight, K::async_read_in_flight}},
      {"wrong phase parity",
       {{"WAIT_FULL", "wait(address(&full[s]), 1 - (step / 2 & 1));"}},
       {K::async_write_in_flight, K::async_read_in_flight}},
      {"no wgmma.fence", {{"WGMMA_FENCE", ""}}, {K::missing_wgmma_fence}},
      {"no wgmma.wait_group before the accumulators are read",
       {{"WGMMA_WAIT", "if (step + 1 < steps) asm volatile(\"wgmma.wait_group.sync.aligned 0;\" ::: \"memory\");"}},
       {K::wgmma_register_in_flight}},
      {"mbarriers used before their init", {{"INIT_BARRIER", ""}}, {K::mbarrier_misuse}},
  };
  for (const Planted& planted : all) {
    const Finding finding = run_gemm(planted.changes).finding;
    EXPECT_TRUE(std::ranges::find(planted.kinds, finding.kind) != planted.kinds.end())
        << planted.name << ": " << to_string(finding);
    EXPECT_FALSE(finding.location.source.empty()) << planted.name << ": " << to_string(finding);
  }
}

}  // namespace
}  // namespace tilewright::emulator
