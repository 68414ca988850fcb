// Complete CUDA C++ kernels: a tiled SGEMM, a tensor-core GEMM with cp.async and ldmatrix, the math library, printf and
// assert.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "cuda_kernel.hpp"
#include "lane_kernel.hpp"
#include "tilewright/base/float_format.hpp"
#include "tilewright/emulator/emulated_module.hpp"

namespace tilewright::emulator {
namespace {

constexpr int kSize = 256;

/// Row-major, 256x256x256; 128x128 tiles of C, 8x8 elements per thread.
constexpr std::string_view kSgemm = R"(
extern "C" __global__ void __launch_bounds__(256) sgemm(const float* A, const float* B, float* C) {
  __shared__ __align__(16) float a_tile[8][132], b_tile[8][128];
  const int n = 256, k = 256, t = threadIdx.x, row = t / 16 * 8, column = t % 16 * 8;
  A += blockIdx.y * 128 * k;
  B += blockIdx.x * 128;
  float sums[8][8] = {};
  for (int k0 = 0; k0 < k; k0 += 8) {
    const float4 v = *reinterpret_cast<const float4*>(&A[t / 2 * k + k0 + t % 2 * 4]);
    a_tile[t % 2 * 4 + 0][t / 2] = v.x;
    a_tile[t % 2 * 4 + 1][t / 2] = v.y;
    a_tile[t % 2 * 4 + 2][t / 2] = v.z;
    a_tile[t % 2 * 4 + 3][t / 2] = v.w;
    *reinterpret_cast<float4*>(&b_tile[t / 32][t % 32 * 4]) =
        *reinterpret_cast<const float4*>(&B[(k0 + t / 32) * n + t % 32 * 4]);
    __syncthreads();
#pragma unroll
    for (int kk = 0; kk < 8; ++kk) {
#pragma unroll
      for (int i = 0; i < 8; ++i) {
#pragma unroll
        for (int j = 0; j < 8; ++j) sums[i][j] += a_tile[kk][row + i] * b_tile[kk][column + j];
      }
    }
    SECOND_BARRIER
  }
  C += (blockIdx.y * 128 + row) * n + blockIdx.x * 128 + column;
  for (int i = 0; i < 8; ++i) {
    for (int j = 0; j < 8; ++j) C[i * n + j] = sums[i][j];
  }
}
)";

/// A row-major, B column-major, 256x256x256; 128x128x32 tiles, three stages, 8 warps of 64x32.
constexpr std::string_view kHgemm = R"(
typedef unsigned u32;
typedef unsigned short u16;
__device__ __forceinline__ void copy16(u32 to, const void* from) {
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;" ::"r"(to), "l"(from));
}
__device__ __forceinline__ void load4(u32 (&r)[4], u32 from) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(from));
}
__device__ __forceinline__ u32 place(int row, int chunk) { return row * 64 + ((chunk ^ ((row >> 1) & 3)) * 16); }
extern "C" __global__ void __launch_bounds__(256) hgemm(const u16* A, const u16* B, float* C) {
  extern __shared__ __align__(128) unsigned char dynamic[];
  const u32 base = static_cast<u32>(__cvta_generic_to_shared(dynamic));
  const u32 tile = 128 * 64;
  const int n = 256, k = 256, stages = 3, steps = k / 32;
  const int t = threadIdx.x, lane = t % 32, warp = t / 32, wm = warp % 2 * 64, wn = warp / 2 * 32;
  A += blockIdx.y * 128 * k;
  B += blockIdx.x * 128 * k;
  auto load = [&](int step) {
    const u32 stage = base + step % stages * 2 * tile;
    for (int i = t; i < 512; i += 256) {
      const int row = i / 4, chunk = i % 4;
      copy16(stage + place(row, chunk), A + row * k + step * 32 + chunk * 8);
      copy16(stage + tile + place(row, chunk), B + row * k + step * 32 + chunk * 8);
    }
  };
  float sums[4][4][4] = {};
  for (int s = 0; s < stages - 1; ++s) {
    load(s);
    asm volatile("cp.async.commit_group;");
  }
  for (int step = 0; step < steps; ++step) {
    asm volatile("cp.async.wait_group %0;" ::"n"(PENDING));
    BARRIER
    if (step + stages - 1 < steps) load(step + stages - 1);
    asm volatile("cp.async.commit_group;");
    const u32 a_tile = base + step % stages * 2 * tile, b_tile = a_tile + tile;
#pragma unroll
    for (int kk = 0; kk < 2; ++kk) {
      u32 a[4][4], b[2][4];
#pragma unroll
      for (int i = 0; i < 4; ++i) load4(a[i], a_tile + place(wm + i * 16 + lane % 16, kk * 2 + lane / 16));
#pragma unroll
      for (int j = 0; j < 2; ++j)
        load4(b[j], b_tile + place(wn + j * 16 + lane / 16 * 8 + lane % 8, kk * 2 + lane / 8 % 2));
#pragma unroll
      for (int i = 0; i < 4; ++i) {
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          float(&c)[4] = sums[i][j];
          asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                       "{%0, %1, %2, %3};"
                       : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                       : "r"(a[i][0]), "r"(a[i][1]), "r"(a[i][2]), "r"(a[i][3]), "r"(b[j / 2][j % 2 * 2]),
                         "r"(b[j / 2][j % 2 * 2 + 1]));
        }
      }
    }
  }
  C += blockIdx.y * 128 * n + blockIdx.x * 128;
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 4; ++j) {
      float* c = C + (wm + i * 16 + lane / 4) * n + wn + j * 8 + lane % 4 * 2;
      c[0] = sums[i][j][0];
      c[1] = sums[i][j][1];
      c[8 * n] = sums[i][j][2];
      c[8 * n + 1] = sums[i][j][3];
    }
  }
}
)";

std::string replaced(std::string text, std::string_view what, std::string_view by) {
  return text.replace(text.find(what), what.size(), by);
}

std::string sgemm(std::string_view second_barrier) {
  return ptx_of("sgemm", replaced(std::string(kSgemm), "SECOND_BARRIER", second_barrier));
}

std::string hgemm(std::string_view pending, std::string_view barrier) {
  return ptx_of("hgemm", replaced(replaced(std::string(kHgemm), "PENDING", pending), "BARRIER", barrier));
}

/// Two 256x256 matrices of small integers, and their exact product.
struct Problem {
  std::vector<int> a, b;
  explicit Problem(unsigned seed) {
    std::mt19937 random(seed);
    for (std::vector<int>* const operand : {&a, &b}) {
      for (int i = 0; i < kSize * kSize; ++i) operand->push_back(static_cast<int>(random() % 9) - 4);
    }
  }
  std::vector<float> product(int b_row_stride, int b_column_stride) const {
    std::vector<float> c(static_cast<std::size_t>(kSize * kSize));
    for (int m = 0; m < kSize; ++m) {
      for (int n = 0; n < kSize; ++n) {
        int sum = 0;
        for (int k = 0; k < kSize; ++k) {
          sum += a[static_cast<std::size_t>(m * kSize + k)] *
                 b[static_cast<std::size_t>(k * b_row_stride + n * b_column_stride)];
        }
        c[static_cast<std::size_t>(m * kSize + n)] = static_cast<float>(sum);
      }
    }
    return c;
  }
};

template <class T, class Convert>
std::vector<T> converted(const std::vector<int>& values, Convert&& convert) {
  std::vector<T> result;
  for (const int value : values) result.push_back(convert(static_cast<float>(value)));
  return result;
}

template <class T, class Convert>
std::vector<float> run_gemm(const std::string& ptx, const std::string& symbol, const Problem& problem,
                            std::uint32_t dynamic_smem_bytes, Convert&& convert) {
  const auto device = test_device();
  const auto a = upload(device, converted<T>(problem.a, convert));
  const auto b = upload(device, converted<T>(problem.b, convert));
  const runtime::DeviceBuffer c(device, kSize * kSize * sizeof(float));
  launch(*device, ptx, symbol, {a.address(), b.address(), c.address()}, {256, 1, 1}, {2, 2, 1}, dynamic_smem_bytes);
  return download<float>(*device, c);
}

std::vector<float> run_sgemm(const std::string& ptx, const Problem& problem) {
  return run_gemm<float>(ptx, "sgemm", problem, 0, [](float value) { return value; });
}

std::vector<float> run_hgemm(const std::string& ptx, const Problem& problem) {
  return run_gemm<std::uint16_t>(ptx, "hgemm", problem, 3 * 2 * 128 * 64, f32_to_f16);
}

TEST(CudaKernel, TiledSgemm) {
  if (compiler() == nullptr) GTEST_SKIP() << "no NVRTC on this machine";
  const Problem problem(1);
  EXPECT_EQ(run_sgemm(sgemm("__syncthreads();"), problem), problem.product(kSize, 1));
  EXPECT_EQ(finding_of([&] { run_sgemm(sgemm(""), problem); }).kind, FindingKind::shared_race);
}

TEST(CudaKernel, TensorCoreGemm) {
  if (compiler() == nullptr) GTEST_SKIP() << "no NVRTC on this machine";
  const Problem problem(2);
  EXPECT_EQ(run_hgemm(hgemm("1", "__syncthreads();"), problem), problem.product(1, kSize));
}

TEST(CudaKernel, TensorCoreGemmThatWaitsForTooFewCopies) {
  if (compiler() == nullptr) GTEST_SKIP() << "no NVRTC on this machine";
  EXPECT_EQ(finding_of([] { run_hgemm(hgemm("2", "__syncthreads();"), Problem(2)); }).kind,
            FindingKind::async_write_in_flight);
}

TEST(CudaKernel, TensorCoreGemmWithoutItsBarrier) {
  if (compiler() == nullptr) GTEST_SKIP() << "no NVRTC on this machine";
  const FindingKind kind = finding_of([] { run_hgemm(hgemm("1", "__syncwarp();"), Problem(2)); }).kind;
  EXPECT_TRUE(kind == FindingKind::shared_race || kind == FindingKind::async_write_in_flight) << name(kind);
}

// The math library -------------------------------------------------------------------------------------------------

struct MathFunction {
  std::string_view call;
  double (*host)(double);
  double relative_error;
};

TEST(CudaKernel, MathFunctions) {
  if (compiler() == nullptr) GTEST_SKIP() << "no NVRTC on this machine";
  static const MathFunction kFunctions[] = {
      {"expf(x)", [](double x) { return std::exp(x); }, 1e-6},
      {"logf(fabsf(x))", [](double x) { return std::log(std::fabs(x)); }, 1e-6},
      {"tanhf(x)", [](double x) { return std::tanh(x); }, 1e-6},
      {"erff(x)", [](double x) { return std::erf(x); }, 1e-6},
      {"powf(fabsf(x), 1.7f)", [](double x) { return std::pow(std::fabs(x), double{1.7F}); }, 1e-5},
      {"sinf(x * 100000)", [](double x) { return std::sin(double{static_cast<float>(x) * 100000.0F}); }, 1e-4},
      {"1.0f / (1.0f + __expf(-x))", [](double x) { return 1.0 / (1.0 + std::exp(-x)); }, 1e-5},
      {"sqrtf(fabsf(x))", [](double x) { return std::sqrt(std::fabs(x)); }, 1e-7},
      {"fmodf(x, 0.7f)", [](double x) { return std::fmod(x, double{0.7F}); }, 1e-5},
      {"(float)((long long)(x * 1e6f) / 7)",
       [](double x) { return static_cast<double>(static_cast<long long>(static_cast<float>(x) * 1e6F) / 7); }, 1e-7},
      {"(float)log((double)fabsf(x))", [](double x) { return std::log(std::fabs(x)); }, 1e-7},
  };
  std::string text =
      "extern \"C\" __global__ void math(const float* in, float* out) {\n  float x = in[threadIdx.x];\n"
      "  out += threadIdx.x;\n";
  for (const MathFunction& function : kFunctions) text += fmt::format("  *out = {};\n  out += 64;\n", function.call);
  text += "}\n";
  std::vector<float> inputs;
  for (int i = 0; i < 64; ++i) inputs.push_back(static_cast<float>(i - 31) * 0.37F + 0.01F);
  const auto device = test_device();
  const auto in = upload(device, inputs);
  const runtime::DeviceBuffer out(device, std::size(kFunctions) * 64 * sizeof(float));
  launch(*device, ptx_of("math", text), "math", {in.address(), out.address()}, {64, 1, 1});
  const auto results = download<float>(*device, out);
  for (std::size_t f = 0; f < std::size(kFunctions); ++f) {
    for (std::size_t i = 0; i < 64; ++i) {
      const double expected = kFunctions[f].host(double{inputs[i]});
      EXPECT_NEAR(double{results[64 * f + i]}, expected, kFunctions[f].relative_error * (1.0 + std::fabs(expected)))
          << kFunctions[f].call << " of " << inputs[i];
    }
  }
}

// printf and assert ------------------------------------------------------------------------------------------------

TEST(CudaKernel, PrintsAndAsserts) {
  if (compiler() == nullptr) GTEST_SKIP() << "no NVRTC on this machine";
  const auto run = [](std::string_view statement) {
    const auto device = test_device();
    const runtime::DeviceBuffer out(device, 128);
    const std::string text =
        fmt::format("extern \"C\" __global__ void talk(float* out) {{\n  if (threadIdx.x == 5) {}\n}}\n", statement);
    launch(*device, ptx_of("talk", text), "talk", {out.address()}, {32, 1, 1});
  };
  testing::internal::CaptureStdout();
  run("printf(\"%d of %s is %5.2f, %lld%%\\n\", 3, \"five\", 0.6, 1ll << 40);");
  std::fflush(stdout);
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "3 of five is  0.60, 1099511627776%\n");
  testing::internal::CaptureStdout();
  run("printf(\"[%*d|%-*d|%*d] [%.*f|%*.*f|%.*f] %s\\n\", 6, 42, 6, 42, -6, 42, 2, 3.14159, 8, 3, 2.5, -1, 1.5, "
      "\"end\");");
  std::fflush(stdout);
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "[    42|42    |42    ] [3.14|   2.500|1.500000] end\n");
  const Finding finding =
      finding_of([&] { run("__assertfail(\"in is out\", \"kernel.cu\", 42, \"talk\", size_t(1));"); });
  EXPECT_EQ(finding.kind, FindingKind::trap);
  EXPECT_EQ(finding.thread->thread.x, 5U);
  EXPECT_NE(finding.detail.find("in is out (kernel.cu:42)"), std::string::npos) << finding.detail;
}

/// A row-major, B column-major, one product of a warp.
constexpr std::string_view kWmma = R"(
extern "C" __global__ void product(const unsigned short* A, const unsigned short* B, float* C) {
  asm volatile(
      "{ .reg .b32 a<8>, b<8>; .reg .f32 c<8>;"
      "wmma.load.a.sync.aligned.row.SHAPE.global.f16 {a0, a1, a2, a3, a4, a5, a6, a7}, [%0], 16;"
      "wmma.load.b.sync.aligned.col.SHAPE.global.f16 {b0, b1, b2, b3, b4, b5, b6, b7}, [%1], 16;"
      "wmma.load.c.sync.aligned.row.SHAPE.global.f32 {c0, c1, c2, c3, c4, c5, c6, c7}, [%2], COLUMNS;"
      "wmma.mma.sync.aligned.row.col.SHAPE.f32.f32 {c0, c1, c2, c3, c4, c5, c6, c7},"
      "{a0, a1, a2, a3, a4, a5, a6, a7}, {b0, b1, b2, b3, b4, b5, b6, b7}, {c0, c1, c2, c3, c4, c5, c6, c7};"
      "wmma.store.d.sync.aligned.row.SHAPE.global.f32 [%2], {c0, c1, c2, c3, c4, c5, c6, c7}, COLUMNS; }" ::"l"(A),
      "l"(B), "l"(C)
      : "memory");
}
)";

TEST(Cuda, WmmaOfAllShapes) {
  if (compiler() == nullptr) GTEST_SKIP() << "no NVRTC on this machine";
  constexpr std::size_t kK = 16;
  for (const auto& [m, n] : {std::pair<std::size_t, std::size_t>{16, 16}, {32, 8}, {8, 32}}) {
    std::string text(kWmma);
    const std::string shape = fmt::format("m{}n{}k16", m, n);
    for (std::size_t at = 0; (at = text.find("SHAPE")) != text.npos;) text.replace(at, 5, shape);
    for (std::size_t at = 0; (at = text.find("COLUMNS")) != text.npos;) text.replace(at, 7, std::to_string(n));
    std::vector<std::uint16_t> a, b;
    for (std::size_t i = 0; i < m * kK; ++i) a.push_back(f32_to_f16(static_cast<float>(i * 7 % 5) - 2));
    for (std::size_t i = 0; i < n * kK; ++i) b.push_back(f32_to_f16(static_cast<float>(i * 3 % 7) - 3));
    std::vector<float> c(m * n, 1);
    const std::vector<KernelArgument> arguments{ArrayArgument{std::as_writable_bytes(std::span(a))},
                                                ArrayArgument{std::as_writable_bytes(std::span(b))},
                                                ArrayArgument{std::as_writable_bytes(std::span(c))}};
    EmulatedModule module(ptx_of("product", text), kSm80, EmulatorOptions{});
    runtime::LaunchConfig launch;
    launch.block = {32, 1, 1};
    for (const Finding& finding : module.launch(module.kernel("product"), launch, arguments))
      ADD_FAILURE() << shape << ": " << to_string(finding);
    for (std::size_t i = 0; i < m * n; ++i) {
      float expected = 1;
      for (std::size_t k = 0; k < kK; ++k) expected += f16_to_f32(a[i / n * kK + k]) * f16_to_f32(b[i % n * kK + k]);
      ASSERT_EQ(c[i], expected) << shape << " " << i;
    }
  }
}

}  // namespace
}  // namespace tilewright::emulator
