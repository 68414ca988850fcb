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
    {"global write before the start",
     "  out[t - 1] = x[t];  // BUG\n",
     {64},
     {},
     FindingKind::out_of_bounds_global,
     {0, 0, 0}},
    {"a null pointer",
     "  float* const p = (float*)(unsigned long long)n[0];\n"
     "  p[t] = 1;  // BUG\n",
     {64},
     {},
     FindingKind::out_of_bounds_global,
     {0, 0, 0}},
    {"float2 past the end",
     "  ((float2*)out)[t + 100] = make_float2(1, 1);  // BUG\n",
     {64},
     {},
     FindingKind::out_of_bounds_global,
     {28, 0, 0}},
    {"a byte past the end",
     "  ((char*)out)[t * 17] = 1;  // BUG\n",
     {64},
     {},
     FindingKind::out_of_bounds_global,
     {61, 0, 0}},
    {"an atomic past the end",
     "  atomicAdd(n + 256 + t, 1);  // BUG\n",
     {64},
     {},
     FindingKind::out_of_bounds_global,
     {0, 0, 0}},
    {"a local array past its end",
     "  float a[4];\n"
     "  for (int k = 0; k < 4; ++k) a[(k + n[k]) & 3] = x[k];\n"
     "  out[t] = a[n[t] + t];  // BUG\n",
     {32},
     {},
     FindingKind::out_of_bounds_local,
     {4, 0, 0}},
    {"shared read before the start",
     "  __shared__ float s[64];\n"
     "  s[t] = x[t];\n"
     "  __syncthreads();\n"
     "  out[t] = s[t - 1];  // BUG\n",
     {64},
     {},
     FindingKind::out_of_bounds_shared,
     {0, 0, 0}},
    {"dynamic shared memory that the launch does not give",
     "  extern __shared__ float d[];\n"
     "  d[t] = x[t];  // BUG\n",
     {64},
     {},
     FindingKind::out_of_bounds_shared,
     {0, 0, 0}},
    {"a row that is one column too long",
     "  __shared__ float s[8][8];\n"
     "  s[t / 8][t % 8 + (t == 63)] = x[t];  // BUG\n"
     "  __syncthreads();\n"
     "  if (t == 0) out[t] = s[n[0]][0];\n",
     {64},
     {},
     FindingKind::out_of_bounds_shared,
     {63, 0, 0}},
    {"misaligned double",
     "  *(double*)(out + 2 * t + 1) = 1;  // BUG\n",
     {64},
     {},
     FindingKind::misaligned_access,
     {0, 0, 0}},
    {"misaligned vector in shared memory",
     "  __shared__ __align__(16) float s[128];\n"
     "  s[t] = s[t + 64] = x[t];\n"
     "  __syncthreads();\n"
     "  const float4 v = *(const float4*)(s + t);  // BUG\n"
     "  out[t] = v.x + v.y + v.z + v.w;\n",
     {64},
     {},
     FindingKind::misaligned_access,
     {33, 0, 0}},
    {"misaligned atomic",
     "  atomicAdd((int*)((char*)n + 2), 1);  // BUG\n",
     {64},
     {},
     FindingKind::misaligned_access,
     {0, 0, 0}},
    {"an array is reversed in place",
     "  __shared__ float s[64];\n"
     "  s[t] = x[t];\n"
     "  __syncthreads();\n"
     "  s[t] = s[63 - t];  // BUG\n"
     "  __syncthreads();\n"
     "  out[t] = s[t];\n",
     {64},
     {},
     FindingKind::shared_race,
     {0, 0, 0}},
    {"two warps write one shared element",
     "  __shared__ int s;\n"
     "  if (lane == 0) s = t;  // BUG\n"
     "  __syncthreads();\n"
     "  out[t] = s;\n",
     {64},
     {},
     FindingKind::shared_race,
     {32, 0, 0}},
    {"lanes write one shared element",
     "  __shared__ int s;\n"
     "  s = t;  // BUG\n"
     "  __syncthreads();\n"
     "  out[t] = s;\n",
     {32},
     {},
     FindingKind::shared_race,
     {1, 0, 0}},
    {"a neighbour reads without __syncwarp",
     "  __shared__ float s[32];\n"
     "  s[t] = x[t];\n"
     "  out[t] = s[(t + 1) % 32];  // BUG\n",
     {32},
     {},
     FindingKind::shared_race,
     {0, 0, 0}},
    {"a shuffle is taken for a barrier",
     "  __shared__ float s[32];\n"
     "  s[t] = x[t];\n"
     "  const float v = __shfl_xor_sync(~0u, x[t], 1);\n"
     "  out[t] = v + s[31 - t];  // BUG\n",
     {32},
     {},
     FindingKind::shared_race,
     {0, 0, 0}},
    {"a vote is taken for a barrier",
     "  __shared__ float s[32];\n"
     "  s[t] = x[t];\n"
     "  const int v = __any_sync(~0u, x[t] > 0);\n"
     "  out[t] = v + s[31 - t];  // BUG\n",
     {32},
     {},
     FindingKind::shared_race,
     {0, 0, 0}},
    {"a volatile flag in shared memory without a fence",
     "  __shared__ volatile int ready;\n"
     "  __shared__ float s[32];\n"
     "  if (t == 0) ready = 0;\n"
     "  __syncthreads();\n"
     "  if (t < 32) {\n"
     "    s[t] = x[t];\n"
     "    __syncwarp();\n"
     "    if (t == 0) ready = 1;\n"
     "  } else {\n"
     "    while (ready == 0) {}\n"
     "    out[t] = s[t - 32];  // BUG\n"
     "  }\n",
     {64},
     {},
     FindingKind::shared_race,
     {32, 0, 0}},
    {"another warp reads what one wrote to global memory",
     "  n[t] = t;\n"
     "  if (t >= 32) out[t] = n[t - 32];  // BUG\n",
     {64},
     {},
     FindingKind::global_race,
     {32, 0, 0}},
    {"a lane reads what its neighbour wrote to global memory",
     "  n[t] = t;\n"
     "  out[t] = n[t ^ 1];  // BUG\n",
     {32},
     {},
     FindingKind::global_race,
     {0, 0, 0}},
    {"tiles of CTAs overlap",
     "  out[blockIdx.x * 31 + t] = i;  // BUG\n",
     {32},
     {2},
     FindingKind::global_race,
     {0, 0, 0}},
    {"a stencil in place", "  n[i] = n[i + 1] + 1;  // BUG\n", {32}, {2}, FindingKind::global_race, {1, 0, 0}},
    {"a flag between CTAs without a fence",
     "  if (blockIdx.x == 0) {\n"
     "    out[t] = 1;\n"
     "    __syncwarp();\n"
     "    if (t == 0) *(volatile int*)n = 1;\n"
     "  } else {\n"
     "    while (*(volatile int*)n == 0) {}\n"
     "    out[64 + t] = out[t];  // BUG\n"
     "  }\n",
     {32},
     {2},
     FindingKind::global_race,
     {0, 0, 0}},
    {"a fence of the CTA's scope publishes to another CTA",
     "  if (blockIdx.x == 0) {\n"
     "    out[t] = 1;\n"
     "    __threadfence_block();\n"
     "    __syncwarp();\n"
     "    if (t == 0) *(volatile int*)n = 1;\n"
     "  } else {\n"
     "    while (*(volatile int*)n == 0) {}\n"
     "    __threadfence();\n"
     "    out[64 + t] = out[t];  // BUG\n"
     "  }\n",
     {32},
     {2},
     FindingKind::global_race,
     {0, 0, 0}},
    {"an atomic of the CTA's scope on a counter of all CTAs",
     "  if (t == 0) atomicAdd_block(n, 1);  // BUG\n",
     {32},
     {2},
     FindingKind::global_race,
     {0, 0, 0}},
    {"a release of the CTA's scope between CTAs",
     "  if (blockIdx.x == 0) {\n"
     "    if (t == 0) asm volatile(\"st.release.cta.global.s32 [%0], 1;\" ::\"l\"(n) : \"memory\");\n"
     "  } else if (t == 0) {\n"
     "    int ready = 0;\n"
     "    while (ready == 0)\n"
     "      asm volatile(\"ld.acquire.gpu.global.s32 %0, [%1];\" : \"=r\"(ready) : \"l\"(n) : \"memory\");  // BUG\n"
     "  }\n",
     {32},
     {2},
     FindingKind::global_race,
     {0, 0, 0}},
    {"an acquire of the CTA's scope between CTAs",
     "  if (blockIdx.x == 0) {\n"
     "    if (t == 0) asm volatile(\"st.release.gpu.global.s32 [%0], 1;\" ::\"l\"(n) : \"memory\");\n"
     "  } else if (t == 0) {\n"
     "    int ready = 0;\n"
     "    while (ready == 0)\n"
     "      asm volatile(\"ld.acquire.cta.global.s32 %0, [%1];\" : \"=r\"(ready) : \"l\"(n) : \"memory\");  // BUG\n"
     "  }\n",
     {32},
     {2},
     FindingKind::global_race,
     {0, 0, 0}},
    {"the last CTA sums results that no fence publishes",
     "  __shared__ bool last;\n"
     "  if (t == 0) {\n"
     "    out[blockIdx.x] = 1;\n"
     "    last = atomicAdd(n, 1) == gridDim.x - 1;\n"
     "  }\n"
     "  __syncthreads();\n"
     "  if (!last || t != 0) return;\n"
     "  float sum = 0;\n"
     "  for (int k = 0; k < gridDim.x; ++k) sum += out[k];  // BUG\n"
     "  out[100] = sum;\n",
     {32},
     {4},
     FindingKind::global_race,
     {0, 0, 0}},
    {"an element of a local array that is not initialised",
     "  float v[4];\n  for (int k = 0; k < 3; ++k) v[(k + n[k]) % 4] = x[t];\n  out[t] = v[n[1] + 3];  // BUG\n",
     {32},
     {},
     FindingKind::uninitialised_local_read,
     {0, 0, 0}},
    {"uninitialised shared memory that passes through a local array",
     "  __shared__ float s[64];\n  float v[4];\n  if (t < 32) s[t] = x[t];\n  __syncthreads();\n"
     "  for (int k = 0; k < 4; ++k) v[(k + n[k]) % 4] = s[t + n[k]];\n  out[t] = v[n[t] % 4];  // BUG\n",
     {64},
     {},
     FindingKind::uninitialised_local_read,
     {32, 0, 0}},
    {"cp.async copies what no one has written",
     "  __shared__ float s[32];\n  const unsigned to = (unsigned)__cvta_generic_to_shared(s + t);\n"
     "  if (t != 5) out[t] = x[t];\n  __syncwarp();\n"
     "  asm volatile(\"cp.async.ca.shared.global [%0], [%1], 4;\" ::\"r\"(to), \"l\"(out + t));\n"
     "  asm volatile(\"cp.async.wait_all;\");\n  __syncwarp();\n  out[32 + t] = s[31 - t];  // BUG\n",
     {32},
     {},
     FindingKind::uninitialised_shared_read,
     {26, 0, 0}},
    {"ldmatrix of a row that no one has written, in a product",
     "  __shared__ __align__(16) unsigned s[32];\n  const unsigned at = (unsigned)__cvta_generic_to_shared(s + t % 8 * "
     "4);\n"
     "  if (t < 28) s[t] = 0;\n  __syncwarp();\n  unsigned b;\n  float d[4] = {0, 0, 0, 0};\n"
     "  asm volatile(\"ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];\" : \"=r\"(b) : \"r\"(at));  // BUG\n"
     "  asm volatile(\"mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%4}, {%5}, "
     "{%0,%1,%2,%3};\"\n"
     "    : \"+f\"(d[0]), \"+f\"(d[1]), \"+f\"(d[2]), \"+f\"(d[3]) : \"r\"(0), \"r\"(b));\n  out[t] = d[0];\n",
     {32},
     {},
     FindingKind::uninitialised_shared_read,
     {7, 0, 0}},
    {"an uninitialised index",
     "  __shared__ int k;\n"
     "  if (x[0] > 2) k = n[0];\n"
     "  __syncthreads();\n"
     "  out[k & 31] = 1;  // BUG\n",
     {32},
     {},
     FindingKind::uninitialised_shared_read,
     {0, 0, 0}},
    {"uninitialised global memory decides a branch",
     "  if (out[t] > 0) n[t] = 1;  // BUG\n",
     {64},
     {},
     FindingKind::uninitialised_global_read,
     {0, 0, 0}},
    {"an uninitialised global index",
     "  n[(int)out[t]] = 1;  // BUG\n",
     {32},
     {},
     FindingKind::uninitialised_global_read,
     {0, 0, 0}},
    {"half of a word is uninitialised",
     "  __shared__ short s[64];\n"
     "  if (t % 2 == 0) s[t] = 1;\n"
     "  __syncthreads();\n"
     "  if (t < 32) n[t] = ((const int*)s)[t];  // BUG\n",
     {64},
     {},
     FindingKind::uninitialised_shared_read,
     {0, 0, 0}},
    {"a vote with a mask that lacks the thread",
     "  if (lane < 16) out[t] = __any_sync(0xffff0000u, x[t] > 0);  // BUG\n",
     {32},
     {},
     FindingKind::bad_warp_mask,
     {0, 0, 0}},
    {"a named barrier that waits for too many",
     "  asm volatile(\"bar.sync 1, 96;\");  // BUG\n"
     "  out[t] = x[t];\n",
     {64},
     {},
     FindingKind::deadlock,
     {0, 0, 0}},
    {"thread counts of a named barrier differ",
     "  const int count = t < 32 ? 64 : 32;\n"
     "  asm volatile(\"bar.sync 1, %0;\" ::\"r\"(count));  // BUG\n"
     "  out[t] = x[t];\n",
     {64},
     {},
     FindingKind::barrier_divergence,
     {32, 0, 0}},
    {"an mbarrier that is not initialised",
     "  __shared__ unsigned long long b;\n"
     "  const unsigned at = (unsigned)__cvta_generic_to_shared(&b);\n"
     "  asm volatile(\"{ .reg .b64 s; mbarrier.arrive.shared.b64 s, [%0]; }\" ::\"r\"(at));  // BUG\n"
     "  out[t] = x[t];\n",
     {32},
     {},
     FindingKind::mbarrier_misuse,
     {0, 0, 0}},
    {"an asynchronous copy is read before it is complete",
     "  __shared__ float s[64];\n"
     "  const unsigned to = (unsigned)__cvta_generic_to_shared(s + t);\n"
     "  asm volatile(\"cp.async.ca.shared.global [%0], [%1], 4;\" ::\"r\"(to), \"l\"(x + t));\n"
     "  out[t] = s[t];  // BUG\n",
     {64},
     {},
     FindingKind::async_write_in_flight,
     {0, 0, 0}},
    {"the wait leaves one group of copies in flight",
     "  __shared__ float s[64];\n"
     "  const unsigned to = (unsigned)__cvta_generic_to_shared(s + t);\n"
     "  asm volatile(\"cp.async.ca.shared.global [%0], [%1], 4;\" ::\"r\"(to), \"l\"(x + t));\n"
     "  asm volatile(\"cp.async.commit_group;\");\n"
     "  asm volatile(\"cp.async.wait_group 1;\");\n"
     "  out[t] = s[t];  // BUG\n",
     {64},
     {},
     FindingKind::async_write_in_flight,
     {0, 0, 0}},
    {"an asynchronous copy from past the end",
     "  __shared__ float s[64];\n"
     "  const unsigned to = (unsigned)__cvta_generic_to_shared(s + t);\n"
     "  asm volatile(\"cp.async.ca.shared.global [%0], [%1], 4;\" ::\"r\"(to), \"l\"(x + t + 200));  // BUG\n"
     "  asm volatile(\"cp.async.wait_all;\");\n"
     "  out[t] = s[t];\n",
     {64},
     {},
     FindingKind::out_of_bounds_global,
     {56, 0, 0}},
    {"memory is freed twice",
     "  char* const p = (char*)malloc(8);\n"
     "  free(p);\n"
     "  n[t] = p == nullptr;\n"
     "  free(p);  // BUG\n",
     {32},
     {},
     FindingKind::out_of_bounds_global,
     {0, 0, 0}},
    {"a breakpoint",
     "  if (x[t] == 1) __brkpt();  // BUG\n"
     "  out[t] = 1;\n",
     {32},
     {},
     FindingKind::trap,
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
    {"a barrier that only some launches reach",
     "  __shared__ float s[64];\n"
     "  s[t] = x[t];  // BUG\n"
     "  if (x[0] > 2) __syncthreads();\n"
     "  out[t] = s[t ^ 32];\n",
     {64},
     {},
     FindingKind::shared_race,
     {32, 0, 0}},
    {"a barrier in every second step of two buffers",
     "  __shared__ float s[2][64];\n"
     "  s[0][t] = s[1][t] = 0;\n"
     "  __syncthreads();\n"
     "  float sum = 0;\n"
     "  for (int k = 0; k < 4; ++k) {\n"
     "    s[k & 1][t] = x[t + k];  // BUG\n"
     "    if (k & 1) __syncthreads();\n"
     "    sum += s[k & 1][63 - t];\n"
     "  }\n"
     "  out[t] = sum;\n",
     {64},
     {},
     FindingKind::shared_race,
     {0, 0, 0}},
    {"a counter is read before all have counted",
     "  __shared__ int count, list[64];\n"
     "  if (t == 0) count = 0;\n"
     "  list[t] = 0;\n"
     "  __syncthreads();\n"
     "  if (x[t] > 0) list[atomicAdd(&count, 1)] = t;  // BUG\n"
     "  n[t] = list[t];\n",
     {64},
     {},
     FindingKind::shared_race,
     {0, 0, 0}},
    {"a sum over the warp that a barrier of the warp does not publish",
     "  __shared__ float part[2];\n"
     "  float v = x[t];\n"
     "  for (int d = 16; d > 0; d /= 2) v += __shfl_xor_sync(~0u, v, d);\n"
     "  if (lane == 0) part[t / 32] = v;  // BUG\n"
     "  __syncwarp();\n"
     "  out[t] = part[0] + part[1];\n",
     {64},
     {},
     FindingKind::shared_race,
     {32, 0, 0}},
    {"a constant array past its end",
     "  out[t] = kTable[t + n[0]];  // BUG\n",
     {64},
     {},
     FindingKind::out_of_bounds_global,
     {60, 0, 0}},
    {"an mbarrier that counts one thread too many",
     "  __shared__ unsigned long long b;\n"
     "  if (t == 0) init_barrier(&b, 65);\n"
     "  __syncthreads();\n"
     "  arrive(&b);\n"
     "  wait_for(&b, 0);  // BUG\n"
     "  out[t] = 1;\n",
     {64},
     {},
     FindingKind::deadlock,
     {0, 0, 0}},
    {"an arrival without a barrier after the initialisation",
     "  __shared__ unsigned long long b;\n"
     "  if (t == 0) init_barrier(&b, 64);\n"
     "  arrive(&b);  // BUG\n"
     "  wait_for(&b, 0);\n"
     "  out[t] = 1;\n",
     {64},
     {},
     FindingKind::mbarrier_misuse,
     {32, 0, 0}},
    {"a phase that had completed before",
     "  __shared__ unsigned long long b;\n"
     "  __shared__ float s[32];\n"
     "  if (t == 0) init_barrier(&b, 32);\n"
     "  __syncthreads();\n"
     "  if (t < 32) {\n"
     "    s[t] = x[t];  // BUG\n"
     "    arrive(&b);\n"
     "  } else {\n"
     "    wait_for(&b, 1);\n"
     "    out[t] = s[t - 32];\n"
     "  }\n",
     {64},
     {},
     FindingKind::shared_race,
     {0, 0, 0}},
    {"a bulk copy of fewer bytes than are expected",
     "  __shared__ __align__(16) float s[64];\n"
     "  __shared__ unsigned long long b;\n"
     "  if (t == 0) init_barrier(&b, 1);\n"
     "  __syncthreads();\n"
     "  if (t == 0) {\n"
     "    expect(&b, 512);\n"
     "    bulk_load(s, x, 256, &b);\n"
     "  }\n"
     "  wait_for(&b, 0);  // BUG\n"
     "  out[t] = s[t];\n",
     {64},
     {},
     FindingKind::transaction_mismatch,
     {0, 0, 0}},
    {"a bulk store without a proxy fence",
     "  __shared__ __align__(16) float s[64];\n"
     "  s[t] = x[t];\n"
     "  __syncthreads();\n"
     "  if (t == 0) bulk_store(out, s, 256);  // BUG\n",
     {64},
     {},
     FindingKind::missing_proxy_fence,
     {0, 0, 0}},
    {"a bulk copy to a misaligned address",
     "  __shared__ __align__(16) float s[68];\n"
     "  __shared__ unsigned long long b;\n"
     "  if (t == 0) {\n"
     "    init_barrier(&b, 1);\n"
     "    expect(&b, 256);\n"
     "    bulk_load(s + 1, x, 256, &b);  // BUG\n"
     "  }\n"
     "  __syncthreads();\n"
     "  wait_for(&b, 0);\n"
     "  out[t] = s[t + 1];\n",
     {64},
     {},
     FindingKind::misaligned_access,
     {0, 0, 0}},
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
    {"two buffers and one barrier for each step",
     "  __shared__ float s[2][64];\n"
     "  float sum = 0;\n"
     "  for (int k = 0; k < 4; ++k) {\n"
     "    s[k % 2][t] = x[t + k];\n"
     "    __syncthreads();\n"
     "    sum += s[k % 2][63 - t];\n"
     "  }\n"
     "  out[t] = sum;\n",
     {64}},
    {"a histogram by shared atomics",
     "  __shared__ int s[4];\n"
     "  if (t < 4) s[t] = 0;\n"
     "  __syncthreads();\n"
     "  atomicAdd(s + t % 4, 1);\n"
     "  __syncthreads();\n"
     "  if (t < 4) out[t] = s[t];\n",
     {64}},
    {"a flag between CTAs with fences",
     "  if (blockIdx.x == 0) {\n"
     "    out[t] = 1;\n"
     "    __threadfence();\n"
     "    __syncwarp();\n"
     "    if (t == 0) *(volatile int*)n = 1;\n"
     "  } else {\n"
     "    while (*(volatile int*)n == 0) {}\n"
     "    __threadfence();\n"
     "    out[64 + t] = out[t];\n"
     "  }\n",
     {32},
     {2}},
    {"a local array of which all read elements are initialised",
     "  float v[8];\n  for (int k = 0; k < 4; ++k) v[(k + n[k]) % 8] = x[t + k];\n  out[t] = v[n[t] + 2];\n",
     {32}},
    {"uninitialised bytes that are copied and not used",
     "  __shared__ float s[64];\n  float v[4];\n  if (t < 32) s[t] = x[t];\n  __syncthreads();\n"
     "  for (int k = 0; k < 4; ++k) v[(k + n[k]) % 4] = s[(t + 32 * k) % 64];\n"
     "  out[t] = t < 32 ? v[n[t]] : v[n[t] + 1];\n",
     {64}},
    {"ldmatrix of rows that no one has written, whose elements are not used",
     "  __shared__ __align__(16) unsigned s[32];\n  const unsigned at = (unsigned)__cvta_generic_to_shared(s + t % 8 * "
     "4);\n"
     "  if (t < 28) s[t] = 0;\n  __syncwarp();\n  unsigned b;\n"
     "  asm volatile(\"ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];\" : \"=r\"(b) : \"r\"(at));\n"
     "  out[t] = t < 28 ? b : 1;\n",
     {32}},
    {"fences and atomics of the CTA's scope in one CTA",
     "  if (t == 0) {\n"
     "    out[0] = 1;\n"
     "    __threadfence_block();\n"
     "    atomicExch_block(n, 1);\n"
     "  } else if (t == 32) {\n"
     "    while (atomicAdd_block(n, 0) == 0) {}\n"
     "    __threadfence_block();\n"
     "    out[1] = out[0];\n"
     "  }\n",
     {64}},
    {"atomics of the CTA's scope on a counter of each CTA", "  atomicAdd_block(n + blockIdx.x, 1);\n", {64}, {2}},
    {"a release of the GPU's scope after an acquire of the CTA's",
     "  __shared__ volatile int written;\n"
     "  int ready = 0;\n"
     "  if (t == 0) written = 0;\n"
     "  __syncthreads();\n"
     "  if (blockIdx.x == 0 && t == 32) {\n"
     "    out[0] = 1;\n"
     "    __threadfence_block();\n"
     "    written = 1;\n"
     "  } else if (blockIdx.x == 0 && t == 0) {\n"
     "    while (written == 0) {}\n"
     "    __threadfence();\n"
     "    asm volatile(\"st.release.gpu.global.s32 [%0], 1;\" ::\"l\"(n) : \"memory\");\n"
     "  } else if (blockIdx.x == 1 && t == 0) {\n"
     "    while (ready == 0)\n"
     "      asm volatile(\"ld.acquire.gpu.global.s32 %0, [%1];\" : \"=r\"(ready) : \"l\"(n) : \"memory\");\n"
     "    out[1] = out[0];\n"
     "  }\n",
     {64},
     {2}},
    {"fences before a barrier, then an atomic of one thread",
     "  __shared__ bool last;\n"
     "  out[blockIdx.x * 64 + t] = 1;\n"
     "  __threadfence();\n"
     "  __syncthreads();\n"
     "  if (t == 0) last = atomicAdd(n, 1) == gridDim.x - 1;\n"
     "  __syncthreads();\n"
     "  if (!last) return;\n"
     "  __threadfence();\n"
     "  if (t == 0) n[1] = (int)(out[0] + out[64]);\n",
     {64},
     {2}},
    {"a lock by atomicCAS",
     "  if (t == 0) {\n"
     "    while (atomicCAS(n, 0, 1) != 0) {}\n"
     "    __threadfence();\n"
     "    n[1] += 1;\n"
     "    __threadfence();\n"
     "    atomicExch(n, 0);\n"
     "  }\n",
     {32},
     {4}},
    {"a CTA waits for an earlier one",
     "  if (t == 0) {\n"
     "    if (blockIdx.x > 0) while (atomicAdd(n + blockIdx.x - 1, 0) == 0) {}\n"
     "    __threadfence();\n"
     "    atomicExch(n + blockIdx.x, 1);\n"
     "  }\n",
     {32},
     {4}},
    {"asynchronous copies with a wait and a barrier",
     "  __shared__ float s[64];\n"
     "  const unsigned to = (unsigned)__cvta_generic_to_shared(s + t);\n"
     "  asm volatile(\"cp.async.ca.shared.global [%0], [%1], 4;\" ::\"r\"(to), \"l\"(x + t));\n"
     "  asm volatile(\"cp.async.wait_all;\");\n"
     "  __syncthreads();\n"
     "  out[t] = s[63 - t];\n",
     {64}},
    {"each thread waits for its own copy",
     "  __shared__ float s[64];\n"
     "  const unsigned to = (unsigned)__cvta_generic_to_shared(s + t);\n"
     "  asm volatile(\"cp.async.ca.shared.global [%0], [%1], 4;\" ::\"r\"(to), \"l\"(x + t));\n"
     "  asm volatile(\"cp.async.wait_all;\");\n"
     "  out[t] = s[t];\n",
     {64}},
    {"aligned vectors", "  ((float4*)out)[t] = ((const float4*)x)[t];\n", {64}},
    {"a local array within its bounds",
     "  float a[4];\n"
     "  for (int k = 0; k < 4; ++k) a[(k + n[k]) & 3] = x[k];\n"
     "  out[t] = a[(n[t] + t) & 3];\n",
     {64}},
    {"memory is allocated and freed",
     "  int* const p = (int*)malloc(16);\n"
     "  p[0] = t;\n"
     "  out[t] = p[0];\n"
     "  free(p);\n",
     {64}},
    {"one warp works, all wait",
     "  __shared__ float s[32];\n"
     "  if (t < 32) s[t] = x[t];\n"
     "  __syncthreads();\n"
     "  out[t] = s[t % 32];\n",
     {64}},
    {"a named barrier of one warp",
     "  __shared__ float s[64];\n"
     "  s[t] = x[t];\n"
     "  asm volatile(\"bar.sync %0, 32;\" ::\"r\"(1 + t / 32) : \"memory\");\n"
     "  out[t] = s[t / 32 * 32 + 31 - lane];\n",
     {64}},
    {"bytes are written, words are read",
     "  __shared__ int s[16];\n"
     "  ((char*)s)[t] = (char)t;\n"
     "  __syncthreads();\n"
     "  if (t < 16) n[t] = s[t];\n",
     {64}},
    {"a buffer is used again for another type",
     "  __shared__ float s[64];\n"
     "  s[t] = x[t];\n"
     "  __syncthreads();\n"
     "  const float v = s[63 - t];\n"
     "  __syncthreads();\n"
     "  ((int*)s)[63 - t] = t;\n"
     "  __syncthreads();\n"
     "  out[t] = v + ((int*)s)[t];\n",
     {64}},
    {"each thread changes its own element",
     "  n[i] = t;\n"
     "  n[i] += 2;\n"
     "  n[i] *= 3;\n"
     "  out[i] = n[i];\n",
     {32},
     {2}},
    {"active lanes vote in a branch",
     "  if (lane % 3 == 0) out[t] = __popc(__ballot_sync(__activemask(), x[t] > 0));\n",
     {64}},
    {"a sum over the warp by redux", "  n[t] = __reduce_add_sync(~0u, t);\n", {32}},
    {"lanes with equal values find each other", "  n[t] = __match_any_sync(~0u, t % 4);\n", {32}},
    {"a loop over the grid", "  for (int k = i; k < 256; k += gridDim.x * blockDim.x) out[k] = x[k];\n", {32}, {2}},
    {"the mask of a partial warp names all its lanes", "  n[t] = __popc(__ballot_sync(0xffffu, t < 10));\n", {16}},
    {"counting by a barrier", "  n[t] = __syncthreads_count(t % 2 == 0);\n", {64}},
    {"an unused part of shared memory stays uninitialised",
     "  __shared__ float s[256];\n"
     "  s[t] = x[t];\n"
     "  __syncthreads();\n"
     "  out[t] = s[63 - t];\n",
     {64}},
    {"a value of each lane goes through shared memory of its own",
     "  __shared__ float s[64];\n"
     "  s[t] = x[t];\n"
     "  s[t] += 1;\n"
     "  out[t] = s[t];\n",
     {64}},
    {"threads of other CTAs read what none writes", "  out[i] = x[0] + x[t];\n", {64}, {4}},
    {"half of the threads wait for the other half",
     "  __shared__ float s[64];\n"
     "  if (t < 32) {\n"
     "    s[t] = x[t];\n"
     "    s[t + 32] = x[t];\n"
     "    asm volatile(\"bar.arrive 1, 64;\" ::: \"memory\");\n"
     "  } else {\n"
     "    asm volatile(\"bar.sync 1, 64;\" ::: \"memory\");\n"
     "    out[t] = s[t] + s[t - 32];\n"
     "  }\n",
     {64}},
    {"a bulk store after a proxy fence",
     "  __shared__ __align__(16) float s[64];\n"
     "  s[t] = x[t];\n"
     "  fence_async();\n"
     "  __syncthreads();\n"
     "  if (t == 0) bulk_store(out, s, 256);\n",
     {64}},
    {"a ring of one stage whose values are used before it is released",
     "  __shared__ __align__(16) float s[64];\n"
     "  __shared__ unsigned long long full, empty;\n"
     "  if (t == 0) {\n"
     "    init_barrier(&full, 1);\n"
     "    init_barrier(&empty, 32);\n"
     "  }\n"
     "  __syncthreads();\n"
     "  if (t == 32) {\n"
     "    for (int k = 0; k < 3; ++k) {\n"
     "      if (k > 0) wait_for(&empty, (k - 1) & 1);\n"
     "      expect(&full, 256);\n"
     "      bulk_load(s, x + 64 * k, 256, &full);\n"
     "    }\n"
     "  } else if (t < 32) {\n"
     "    float sum = 0;\n"
     "    for (int k = 0; k < 3; ++k) {\n"
     "      wait_for(&full, k & 1);\n"
     "      sum += s[t] * s[t + 32];\n"
     "      arrive(&empty);\n"
     "    }\n"
     "    out[t] = sum;\n"
     "  }\n",
     {64}},
    {"an mbarrier that waits for the copies of threads",
     "  __shared__ unsigned long long b;\n"
     "  __shared__ float s[64];\n"
     "  if (t == 0) init_barrier(&b, 64);\n"
     "  __syncthreads();\n"
     "  asm volatile(\"cp.async.ca.shared.global [%0], [%1], 4;\" ::\"r\"(shared(s + t)), \"l\"(x + t));\n"
     "  asm volatile(\"cp.async.mbarrier.arrive.noinc.shared.b64 [%0];\" ::\"r\"(shared(&b)) : \"memory\");\n"
     "  wait_for(&b, 0);\n"
     "  out[t] = s[63 - t];\n",
     {64}},
    {"a lock that the lanes of a warp take in turn",
     "  __shared__ int lock, sum;\n"
     "  if (t == 0) lock = sum = 0;\n"
     "  __syncthreads();\n"
     "  for (bool done = false; !done;) {\n"
     "    if (atomicCAS(&lock, 0, 1) == 0) {\n"
     "      __threadfence_block();\n"
     "      sum += 1;\n"
     "      __threadfence_block();\n"
     "      atomicExch(&lock, 0);\n"
     "      done = true;\n"
     "    }\n"
     "  }\n"
     "  __syncthreads();\n"
     "  n[t] = sum;\n",
     {64}},
    {"a scan that alternates between two buffers",
     "  __shared__ float s[2][64];\n"
     "  s[0][t] = x[t];\n"
     "  int now = 0;\n"
     "  for (int d = 1; d < 64; d *= 2) {\n"
     "    __syncthreads();\n"
     "    s[1 - now][t] = s[now][t] + (t >= d ? s[now][t - d] : 0);\n"
     "    now ^= 1;\n"
     "  }\n"
     "  out[t] = s[now][t];\n",
     {64}},
    {"a struct with padding goes through shared memory",
     "  struct Pair {\n"
     "    char first;\n"
     "    float second;\n"
     "  };\n"
     "  __shared__ Pair s[64];\n"
     "  Pair pair;\n"
     "  pair.first = 1;\n"
     "  pair.second = x[t];\n"
     "  s[t] = pair;\n"
     "  __syncthreads();\n"
     "  out[t] = s[63 - t].second;\n",
     {64}},
    {"lanes with the same key share an atomic",
     "  const unsigned same = __match_any_sync(~0u, t % 5);\n"
     "  const int leader = __ffs(same) - 1;\n"
     "  int base = 0;\n"
     "  if (lane == leader) base = atomicAdd(n + t % 5, __popc(same));\n"
     "  out[t] = __shfl_sync(same, base, leader);\n",
     {64}},
};

/// Some kernels of the table call these functions.
constexpr std::string_view kFunctions = R"(
__constant__ float kTable[60] = {1};
__device__ unsigned shared(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ void init_barrier(unsigned long long* b, int count) {
  asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(shared(b)), "r"(count) : "memory");
}
__device__ void arrive(unsigned long long* b) {
  asm volatile("{ .reg .b64 s; mbarrier.arrive.shared.b64 s, [%0]; }" ::"r"(shared(b)) : "memory");
}
__device__ void expect(unsigned long long* b, int bytes) {
  asm volatile("{ .reg .b64 s; mbarrier.arrive.expect_tx.shared.b64 s, [%0], %1; }" ::"r"(shared(b)), "r"(bytes)
               : "memory");
}
__device__ void wait_for(unsigned long long* b, int parity) {
  asm volatile("{ .reg .pred p; L%=: mbarrier.try_wait.parity.shared.b64 p, [%0], %1; @!p bra L%=; }"
               ::"r"(shared(b)), "r"(parity) : "memory");
}
__device__ void bulk_load(void* to, const void* from, int bytes, unsigned long long* b) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
               ::"r"(shared(to)), "l"(from), "r"(bytes), "r"(shared(b)) : "memory");
}
__device__ void bulk_store(void* to, const void* from, int bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to), "r"(shared(from)), "r"(bytes)
               : "memory");
  asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;" ::: "memory");
}
__device__ void fence_async() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
)";

std::string all_kernels() {
  std::string text(kFunctions);
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
