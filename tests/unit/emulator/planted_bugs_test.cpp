// Bugs of CUDA C++ kernels that EmulatedModule must find, with kind, thread and line, and suspicious kernels that are
// right, in which it must find nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "cuda_kernel.hpp"
#include "tilewright/emulator/emulated_module.hpp"

namespace tilewright::emulator {
namespace {

constexpr std::size_t kElements = 256;

struct Launched {
  std::vector<Finding> findings;
  std::vector<float> out;
};

/// The kernels of all rows are functions of one source, so that they are compiled once.
std::string kernel_text(std::size_t row, std::string_view body) {
  return fmt::format(
      "extern \"C\" __global__ void k{}(const float* x, float* out, int* n) {{\n"
      "  const int t = threadIdx.x, lane = t % 32, i = blockIdx.x * blockDim.x + t;\n{}}}\n",
      row, body);
}

struct Row {
  std::string_view name;
  std::string_view body;
  runtime::Dim3 block{64, 1, 1};
  runtime::Dim3 grid{};
  std::optional<FindingKind> kind = std::nullopt;  // none: the kernel is right
  runtime::Dim3 thread{};                          // that the finding names
};

/// The line of a bug ends in the comment BUG. x has 256 ones, out has 256 uninitialised elements, n has 256 zeros.
const Row kRows[] = {
    {"global read past the end",
     "  out[t] = x[t + 200];  // BUG\n",
     {64},
     {},
     FindingKind::out_of_bounds_global,
     {56, 0, 0}},
    {"missing bounds check in the last CTA",
     "  if (x[i] > 5) out[0] = 1;  // BUG\n",
     {96},
     {3},
     FindingKind::out_of_bounds_global,
     {64, 0, 0}},
    {"shared write past the end",
     "  __shared__ float s[64];\n  s[t + 1] = x[t];  // BUG\n  __syncthreads();\n  out[t] = t ? s[t] : 0;\n",
     {64},
     {},
     FindingKind::out_of_bounds_shared,
     {63, 0, 0}},
    {"misaligned float4",
     "  float4 v = *(const float4*)(x + t);  // BUG\n  out[t] = v.x + v.y + v.z + v.w;\n",
     {64},
     {},
     FindingKind::misaligned_access,
     {1, 0, 0}},
    {"missing __syncthreads between warps",
     "  __shared__ float s[64];\n  s[t] = x[t];  // BUG\n  out[t] = s[63 - t];\n",
     {64},
     {},
     FindingKind::shared_race,
     {32, 0, 0}},
    {"missing __syncthreads in a loop",
     "  __shared__ float s[64];\n  float sum = 0;\n  for (int k = 0; k < 2; ++k) {\n    s[t] = x[t + k];\n"
     "    __syncthreads();\n    sum += s[63 - t];  // BUG\n  }\n  out[t] = sum;\n",
     {64},
     {},
     FindingKind::shared_race,
     {0, 0, 0}},
    {"missing __syncwarp in a reduction",
     "  __shared__ float s[32];\n  s[t] = x[t];\n  __syncwarp();\n  if (t < 16) s[t] += s[t + 16];\n"
     "  if (t < 8) s[t] += s[t + 8];  // BUG\n  __syncthreads();\n  out[t] = s[t];\n",
     {32},
     {},
     FindingKind::shared_race,
     {0, 0, 0}},
    {"histogram without an atomic",
     "  __shared__ int s[4];\n  if (t < 4) s[t] = 0;\n  __syncthreads();\n  s[t % 4] += 1;  // BUG\n  "
     "__syncthreads();\n"
     "  if (t < 4) out[t] = s[t];\n",
     {32},
     {},
     FindingKind::shared_race,
     {0, 0, 0}},
    {"two CTAs write one element", "  out[t] = blockIdx.x;  // BUG\n", {32}, {2}, FindingKind::global_race, {0, 0, 0}},
    {"a sum over CTAs without an atomic",
     "  if (t == 0) n[0] += 1;  // BUG\n",
     {32},
     {2},
     FindingKind::global_race,
     {0, 0, 0}},
    {"two warps of a CTA update one element",
     "  if (lane == 0) n[0] += 1;  // BUG\n",
     {64},
     {},
     FindingKind::global_race,
     {32, 0, 0}},
    {"lanes store different values to one element",
     "  n[0] = t;  // BUG\n",
     {32},
     {},
     FindingKind::global_race,
     {1, 0, 0}},
    {"read of another CTA's result",
     "  if (blockIdx.x == 0) { out[t] = 1; return; }\n  out[t + 64] = out[t] + x[t];  // BUG\n",
     {32},
     {2},
     FindingKind::global_race,
     {0, 0, 0}},
    {"shared memory that is not initialised",
     "  __shared__ float s[64];\n  if (t != 7) s[t] = x[t];\n  __syncthreads();\n  out[t] = s[63 - t];  // BUG\n",
     {64},
     {},
     FindingKind::uninitialised_shared_read,
     {56, 0, 0}},
    {"an accumulator in global memory that is not initialised",
     "  out[t] += x[t];  // BUG\n",
     {64},
     {},
     FindingKind::uninitialised_global_read,
     {0, 0, 0}},
    {"an atomic on shared memory that is not initialised",
     "  __shared__ int s;\n  atomicAdd(&s, 1);  // BUG\n  __syncthreads();\n  out[t] = s;\n",
     {32},
     {},
     FindingKind::uninitialised_shared_read,
     {0, 0, 0}},
    {"an uninitialised flag decides a branch",
     "  __shared__ int stop;\n  if (x[0] > 2 && t == 0) stop = n[0];\n  __syncthreads();\n  if (stop) out[t] = 1;  // "
     "BUG\n",
     {32},
     {},
     FindingKind::uninitialised_shared_read,
     {0, 0, 0}},
    {"a shuffle mask without the thread",
     "  if (lane < 16) out[t] = __shfl_sync(0x0000fff0u, x[t], 4);  // BUG\n",
     {32},
     {},
     FindingKind::bad_warp_mask,
     {0, 0, 0}},
    {"a shuffle from lanes that have exited",
     "  if (t >= 40) return;\n  float v = x[t];\n  v += __shfl_down_sync(0xffffffffu, v, 16);  // BUG\n  out[t] = v;\n",
     {64},
     {},
     FindingKind::bad_warp_mask,
     {32, 0, 0}},
    {"halves of a warp wait for each other",
     "  if (lane < 16) {\n    __syncwarp();  // BUG\n    out[t] = 1;\n  } else {\n    out[t] = 2;\n    __syncwarp();\n"
     "    out[t] += x[t];\n  }\n",
     {32},
     {},
     FindingKind::barrier_divergence,
     {0, 0, 0}},
    {"an endless loop",
     "  volatile float v = x[t];\n  while (v > 0) v = v + 1;  // BUG\n  out[t] = v;\n",
     {32},
     {},
     FindingKind::no_progress,
     {0, 0, 0}},
    {"a wait for a CTA that does not run",
     "  if (blockIdx.x == 0) {\n    while (*(volatile int*)n == 0) {}  // BUG\n  } else {\n    atomicExch(n, 1);\n  "
     "}\n",
     {32},
     {2},
     FindingKind::deadlock,
     {0, 0, 0}},
    {"a failed assert", "  if (!(t < 40)) __trap();  // BUG\n  out[t] = 1;\n", {64}, {}, FindingKind::trap, {40, 0, 0}},

    // Right, though they look suspicious.
    {"threads exit before a barrier",
     "  __shared__ float s[64];\n  if (t >= 40) return;\n  s[t] = x[t];\n  __syncthreads();\n  out[t] = s[39 - t];\n"},
    {"half a CTA exits in whole warps", "  if (t >= 32) return;\n  __syncthreads();\n  out[t] = x[t];\n"},
    {"all threads store one value to a flag of the CTA",
     "  __shared__ int any;\n  if (t == 0) any = 0;\n  __syncthreads();\n  if (x[t] > 0) any = 1;\n  __syncthreads();\n"
     "  out[t] = any;\n",
     {32}},
    {"what lies past a tile is read but not used",
     "  __shared__ float s[64];\n  if (t < 48) s[t] = x[t];\n  __syncthreads();\n  float v = s[t];\n  v = v * 2 + 1;\n"
     "  if (t < 48) out[t] = v;\n"},
    {"an uninitialised value is selected away",
     "  __shared__ float s[64];\n  if (t < 48) s[t] = x[t];\n  __syncthreads();\n  const float v = s[t];\n"
     "  out[t] = t < 48 ? v : 0.0f;\n"},
    {"uninitialised values are exchanged and dropped",
     "  __shared__ float s[64], r[64];\n  if (t < 48) s[t] = x[t];\n  __syncthreads();\n  r[t] = s[t];\n  "
     "__syncthreads();\n"
     "  if (t < 48) out[t] = r[47 - t];\n"},
    {"a reduction in one warp with __syncwarp",
     "  __shared__ float s[32];\n  s[t] = x[t];\n  __syncwarp();\n  for (int d = 16; d > 0; d /= 2) {\n"
     "    float v = s[(t + d) % 32];\n    __syncwarp();\n    s[t] += v;\n    __syncwarp();\n  }\n  out[t] = s[t];\n",
     {32}},
    {"a reduction by shuffles",
     "  float v = x[t];\n  for (int d = 16; d > 0; d /= 2) v += __shfl_down_sync(~0u, v, d);\n  if (lane == 0) out[t] "
     "= v;\n"},
    {"a shuffle in a partial warp whose result is dropped",
     "  float v = x[t];\n  v = __shfl_down_sync(~0u, v, 8);\n  if (t < 12) out[t] = v;\n",
     {20}},
    {"a ballot before a shuffle in a branch",
     "  const unsigned mask = __ballot_sync(~0u, lane % 3 == 0);\n  if (lane % 3 == 0) out[t] = __shfl_sync(mask, "
     "x[t], 0);\n"},
    {"a scan that drops what comes from below lane 0",
     "  float v = x[t];\n  for (int d = 1; d < 32; d *= 2) {\n    const float u = __shfl_up_sync(~0u, v, d);\n"
     "    if (lane >= d) v += u;\n  }\n  out[t] = v;\n"},
    {"CTAs add by atomics", "  atomicAdd(n, 1);\n  out[i] = x[t];\n", {64}, {4}},
    {"the last CTA sums the others' results",
     "  __shared__ bool last;\n  if (t == 0) {\n    out[blockIdx.x] = 1;\n    __threadfence();\n"
     "    last = atomicAdd(n, 1) == gridDim.x - 1;\n  }\n  __syncthreads();\n  if (!last) return;\n  __threadfence();\n"
     "  if (t == 0) {\n    float sum = 0;\n    for (int k = 0; k < gridDim.x; ++k) sum += ((volatile float*)out)[k];\n"
     "    out[100] = sum;\n  }\n",
     {32},
     {4}},
    {"each warp has its own part of shared memory",
     "  __shared__ float s[2][33];\n  s[t / 32][lane] = x[t];\n  __syncwarp();\n  out[t] = s[t / 32][31 - lane];\n"},
    {"neighbouring bytes by neighbouring warps",
     "  __shared__ char s[64];\n  s[t % 32 * 2 + t / 32] = t;\n  __syncthreads();\n  out[t] = s[t];\n"},
    {"a loop over a volatile value",
     "  float sum = 0;\n  for (int k = 0; k < 2000; ++k) sum += *(const volatile float*)x;\n  out[t] = sum;\n",
     {32}},
    {"threads of other CTAs read what none writes", "  out[i] = x[0] + x[t];\n", {64}, {4}},
};

std::string all_kernels() {
  std::string text;
  for (std::size_t row = 0; row < std::size(kRows); ++row) text += kernel_text(row, kRows[row].body);
  return text;
}

class PlantedBugs : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (compiler() == nullptr) return;
    EmulatorOptions options = checking_options();
    options.steps_per_cta = 1 << 20;
    module_ = std::make_unique<EmulatedModule>(ptx_of("k0", all_kernels()), kSm90a, options);
  }
  static void TearDownTestSuite() { module_.reset(); }
  void SetUp() override {
    if (compiler() == nullptr) GTEST_SKIP() << "no NVRTC on this machine";
  }

  static Launched launch(std::size_t row) {
    Launched launched;
    std::vector<float> x(kElements, 1.0F);
    std::vector<int> n(kElements);
    launched.out.resize(kElements);
    const std::vector<KernelArgument> arguments{ArrayArgument{std::as_writable_bytes(std::span(x))},
                                                ArrayArgument{std::as_writable_bytes(std::span(launched.out)), false},
                                                ArrayArgument{std::as_writable_bytes(std::span(n))}};
    runtime::LaunchConfig config;
    config.block = kRows[row].block;
    config.grid = kRows[row].grid;
    launched.findings = module_->launch(module_->kernel(fmt::format("k{}", row)), config, arguments);
    return launched;
  }

  static std::unique_ptr<EmulatedModule> module_;
};
std::unique_ptr<EmulatedModule> PlantedBugs::module_;

/// The line of the row's bug in all_kernels().
int line_of_bug(std::size_t row) {
  const std::string text = all_kernels();
  const std::size_t kernel = text.find(fmt::format("void k{}(", row));
  const auto bug = static_cast<std::ptrdiff_t>(text.find("// BUG", kernel));
  return 1 + static_cast<int>(std::count(text.begin(), text.begin() + bug, '\n'));
}

TEST_F(PlantedBugs, AreFoundWithKindThreadAndLine) {
  for (std::size_t row = 0; row < std::size(kRows); ++row) {
    if (!kRows[row].kind) continue;
    SCOPED_TRACE(kRows[row].name);
    const std::vector<Finding> findings = launch(row).findings;
    const auto found = std::ranges::find(findings, *kRows[row].kind, &Finding::kind);
    if (found == findings.end()) {
      ADD_FAILURE() << (findings.empty() ? "no finding" : to_string(findings.front()));
      continue;
    }
    EXPECT_EQ(found->severity, Severity::error);
    ASSERT_TRUE(found->thread.has_value());
    EXPECT_EQ(found->thread->thread, kRows[row].thread) << to_string(*found);
    ASSERT_FALSE(found->location.source.empty());
    EXPECT_EQ(found->location.source.back().line, line_of_bug(row)) << to_string(*found);
    EXPECT_EQ(found, std::ranges::find(findings, Severity::error, &Finding::severity)) << to_string(findings.front());
  }
}

TEST_F(PlantedBugs, NothingIsFoundInKernelsThatAreRight) {
  for (std::size_t row = 0; row < std::size(kRows); ++row) {
    if (kRows[row].kind) continue;
    for (const Finding& finding : launch(row).findings) ADD_FAILURE() << kRows[row].name << ": " << to_string(finding);
  }
}

}  // namespace
}  // namespace tilewright::emulator
