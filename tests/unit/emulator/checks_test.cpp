// Planted faults must be found with their kind, thread and line. Also tests the shadow of shared memory by itself.
#include "tilewright/emulator/checks.hpp"

#include <gtest/gtest.h>

#include "cuda_kernel.hpp"
#include "lane_kernel.hpp"
#include "tilewright/emulator/shared_memory.hpp"

namespace tilewright::emulator {
namespace {

// CUDA C++ ---------------------------------------------------------------------------------------------------------

/// 1-based number of the first line that contains the text; 0 when none does.
int line_of(const std::string& source, std::string_view text) {
  const std::size_t at = source.find(text);
  return at == std::string::npos
             ? 0
             : 1 + static_cast<int>(std::count(source.begin(), source.begin() + static_cast<std::ptrdiff_t>(at), '\n'));
}

/// Runs the kernel `planted(const float* in, float* out)` with 256 floats each.
Finding run_planted(const std::string& source, runtime::Dim3 block = {64, 1, 1}, runtime::Dim3 grid = {}) {
  const std::string ptx = ptx_of("planted", source);
  return finding_of([&] {
    const auto device = test_device();
    const auto in = upload(device, std::vector<float>(256, 1.0F));
    const auto out = upload(device, std::vector<float>(256, 0.0F));
    launch(*device, ptx, "planted", {in.address(), out.address()}, block, grid);
  });
}

struct Planted {
  std::string_view name;
  FindingKind kind;
  std::string_view faulty;  // a body with the fault, whose line ends in the comment FAULT
  std::string_view clean;   // the body without the fault
  runtime::Dim3 thread;     // the thread that the finding names
};

std::string kernel_source(std::string_view body) {
  return fmt::format(
      "extern \"C\" __global__ void planted(const float* in, float* out) {{\n"
      "  __shared__ __align__(16) float tile[64];\n  const int t = threadIdx.x;\n{}}}\n",
      body);
}

const Planted kPlanted[] = {
    {"out-of-bounds global read",
     FindingKind::out_of_bounds_global,
     "  out[t] = in[t + 200];  // FAULT\n",
     "  out[t] = in[t + 192];\n",
     {56, 0, 0}},
    {"out-of-bounds global write",
     FindingKind::out_of_bounds_global,
     "  out[t * 8] = in[t];  // FAULT\n",
     "  out[t * 4] = in[t];\n",
     {32, 0, 0}},
    {"out-of-bounds shared",
     FindingKind::out_of_bounds_shared,
     "  tile[t] = in[t];\n  __syncthreads();\n  out[t] = tile[t + 1];  // FAULT\n",
     "  tile[t] = in[t];\n  __syncthreads();\n  out[t] = tile[(t + 1) % 64];\n",
     {63, 0, 0}},
    {"out-of-bounds shared, between variables",
     FindingKind::out_of_bounds_shared,
     "  __shared__ float other[64];\n  tile[t] = in[t];\n  other[t] = in[t + 1];\n  __syncthreads();\n"
     "  out[t] = tile[t + 1] + other[t + 1];  // FAULT\n",
     "  __shared__ float other[64];\n  tile[t] = in[t];\n  other[t] = in[t + 1];\n  __syncthreads();\n"
     "  out[t] = tile[63 - t] + other[63 - t];\n",
     {63, 0, 0}},
    {"misaligned vector access",
     FindingKind::misaligned_access,
     "  float4 v = *reinterpret_cast<const float4*>(in + t);  // FAULT\n  out[t] = v.x + v.y + v.z + v.w;\n",
     "  float4 v = *reinterpret_cast<const float4*>(in + t / 4 * 4);\n  out[t] = v.x + v.y + v.z + v.w;\n",
     {1, 0, 0}},
    {"uninitialised shared read",
     FindingKind::uninitialised_shared_read,
     "  if (t != 7) tile[t] = in[t];\n  __syncthreads();\n  out[t] = tile[63 - t];  // FAULT\n",
     "  tile[t] = in[t];\n  __syncthreads();\n  out[t] = tile[63 - t];\n",
     {56, 0, 0}},
    {"missing __syncthreads after a write",
     FindingKind::shared_race,
     "  tile[t] = in[t];  // FAULT\n  out[t] = tile[63 - t];\n",
     "  tile[t] = in[t];\n  __syncthreads();\n  out[t] = tile[63 - t];\n",
     {32, 0, 0}},
    {"missing __syncthreads before a write",
     FindingKind::shared_race,
     "  for (int i = 0; i < 2; ++i) {\n    tile[t] = in[t + i];\n    __syncthreads();\n"
     "    out[t] += tile[63 - t];  // FAULT\n  }\n",
     "  for (int i = 0; i < 2; ++i) {\n    tile[t] = in[t + i];\n    __syncthreads();\n"
     "    out[t] += tile[63 - t];\n    __syncthreads();\n  }\n",
     {0, 0, 0}},
    {"divergent barrier within a warp",
     FindingKind::barrier_divergence,
     "  tile[t] = in[t];\n  if (t % 32 < 16) {\n    __syncthreads();  // FAULT\n    out[t] = tile[t] + 1;\n  } else {\n"
     "    out[t] = tile[t];\n    __syncthreads();\n    out[t] += in[t];\n  }\n",
     "  tile[t] = in[t];\n  if (t % 32 < 16) {\n    __syncthreads();\n    out[t] = tile[t] + 1;\n  }\n",  // the others
                                                                                                          // exit
     {0, 0, 0}},
    {"divergent barrier between warps",
     FindingKind::deadlock,
     "  tile[t] = in[t];\n  if (t < 32) {\n    asm volatile(\"bar.sync 1, 64;\");  // FAULT\n    out[t] = tile[t] + "
     "1;\n  }\n",
     "  tile[t] = in[t];\n  if (t >= 32) return;\n  __syncthreads();\n  out[t] = tile[t] + 1;\n",
     {0, 0, 0}},
};

TEST(PlantedFaults, AreFoundWithKindThreadAndSourceLine) {
  if (compiler() == nullptr) GTEST_SKIP() << "no NVRTC on this machine";
  for (const Planted& planted : kPlanted) {
    const std::string source = kernel_source(planted.faulty);
    const Finding finding = run_planted(source);
    EXPECT_EQ(finding.kind, planted.kind) << planted.name << ": " << to_string(finding);
    ASSERT_TRUE(finding.thread.has_value()) << planted.name << ": " << to_string(finding);
    EXPECT_EQ(finding.thread->thread, planted.thread) << planted.name << ": " << to_string(finding);
    EXPECT_EQ(finding.thread->cta, (runtime::Dim3{0, 0, 0}));
    ASSERT_FALSE(finding.location.source.empty()) << planted.name;
    EXPECT_EQ(finding.location.source[0].line, line_of(source, "FAULT")) << planted.name << ": " << to_string(finding);
    EXPECT_GT(finding.location.ptx_line, 0);
    EXPECT_FALSE(finding.location.ptx_text.empty());
  }
}

TEST(PlantedFaults, CleanKernelsReportNothing) {
  if (compiler() == nullptr) GTEST_SKIP() << "no NVRTC on this machine";
  for (const Planted& planted : kPlanted) {
    const Finding finding = run_planted(kernel_source(planted.clean));
    EXPECT_TRUE(finding.detail.empty()) << planted.name << ": " << to_string(finding);
  }
}

TEST(PlantedFaults, InInlinedFunctionsNameTheCallSite) {
  if (compiler() == nullptr) GTEST_SKIP() << "no NVRTC on this machine";
  const std::string source =
      "__device__ __forceinline__ float inner(const float* p, int i) {\n  return p[i];  // FAULT\n}\n"
      "extern \"C\" __global__ void planted(const float* in, float* out) {\n"
      "  out[threadIdx.x] = inner(in, threadIdx.x + 200);  // CALL\n}\n";
  const Finding finding = run_planted(source);
  EXPECT_EQ(finding.kind, FindingKind::out_of_bounds_global);
  ASSERT_EQ(finding.location.source.size(), 2U) << to_string(finding);
  EXPECT_EQ(finding.location.source[0].line, line_of(source, "FAULT"));
  EXPECT_EQ(finding.location.source[1].line, line_of(source, "CALL"));
}

TEST(PlantedFaults, OfTheLowestCtaAreReportedWithAnyNumberOfHostThreads) {
  if (compiler() == nullptr) GTEST_SKIP() << "no NVRTC on this machine";
  const std::string ptx = ptx_of("planted",
                                 "extern \"C\" __global__ void planted(const float* in, float* out) {\n"
                                 "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n  out[i] = in[i];\n}\n");
  for (const int threads : {1, 4}) {
    EmulatorOptions options;
    options.threads = threads;
    const auto device = test_device(options);
    const auto in = upload(device, std::vector<float>(200));
    const runtime::DeviceBuffer out(device, 4096);
    const Finding finding = finding_of([&] {
      launch(*device, ptx, "planted", {in.address(), out.address()}, {32, 1, 1}, {32, 1, 1});
    });
    EXPECT_EQ(finding.kind, FindingKind::out_of_bounds_global);
    EXPECT_EQ(finding.thread->cta.x, 6U);
    EXPECT_EQ(finding.thread->thread.x, 8U);
    EXPECT_NE(finding.detail.find("0 bytes past the end of a 800-byte allocation"), std::string::npos)
        << finding.detail;
  }
}

// PTX --------------------------------------------------------------------------------------------------------------

/// A kernel over `tile`, 64 words of shared memory; %s is the address of thread %t's word.
Finding run_shared(std::string_view body, std::uint32_t threads = 64, EmulatorOptions options = {}) {
  const std::string text = fmt::format(
      "{}.visible .entry k(.param .u64 out)\n{{\n.shared .align 16 .b8 tile[256];\n.reg .u32 %t, %s, %base, %r<8>;\n"
      ".reg .b16 %h<2>;\n.reg .pred %p, %q;\nmov.u32 %t, %tid.x;\nmov.u32 %base, tile;\nmad.lo.u32 %s, %t, 4, %base;\n"
      "{}\nret;\n}}\n",
      kHeader, body);
  return finding_of([&] {
    const auto device = test_device(options);
    const runtime::DeviceBuffer out(device, 256);
    launch(*device, text, "k", {out.address()}, {threads, 1, 1});
  });
}

TEST(SharedChecks, NeighbouringBytesAreNotARace) {
  // Two warps write the two halves of each word.
  EXPECT_TRUE(run_shared("and.b32 %r0, %t, 31;\nshr.u32 %r1, %t, 5;\nmad.lo.u32 %r0, %r0, 4, %base;\n"
                         "mad.lo.u32 %r0, %r1, 2, %r0;\ncvt.u16.u32 %h0, %t;\nst.shared.b16 [%r0], %h0;\nbar.sync 0;\n"
                         "ld.shared.u32 %r2, [%base];")
                  .detail.empty());
  EXPECT_EQ(run_shared("and.b32 %r0, %t, 31;\nmad.lo.u32 %r0, %r0, 4, %base;\ncvt.u16.u32 %h0, %t;\n"
                       "st.shared.b16 [%r0], %h0;")
                .kind,
            FindingKind::shared_race);
}

TEST(SharedChecks, InitialisationIsTrackedPerByte) {
  const Finding finding = run_shared(
      "cvt.u16.u32 %h0, %t;\nst.shared.b16 [%s], %h0;\nbar.sync 0;\nld.shared.u32 %r0, [%s];\n"
      "setp.eq.u32 %p, %r0, 0;\n@%p bra END;\nEND:");
  EXPECT_EQ(finding.kind, FindingKind::uninitialised_shared_read);
  EXPECT_TRUE(run_shared("cvt.u16.u32 %h0, %t;\nst.shared.b16 [%s], %h0;\nbar.sync 0;\nld.shared.u16 %h1, [%s];\n"
                         "bar.sync 0;\nst.shared.u32 [%s], %t;\nld.shared.u32 %r0, [%s];")
                  .detail.empty());
}

TEST(SharedChecks, TheStoreOfAnUndefinedValueIsNamed) {
  // What is read is the copy of bytes that no one has written.
  const Finding finding = run_shared(
      "ld.shared.u32 %r0, [%s];\nst.shared.u32 [%s+128], %r0;\nbar.sync 0;\nld.shared.u32 %r1, [%s+128];\n"
      "setp.eq.u32 %p, %r1, 0;\n@%p bra END;\nEND:",
      32);
  EXPECT_EQ(finding.kind, FindingKind::uninitialised_shared_read);
  EXPECT_NE(finding.detail.find("whose value was undefined when it was stored at PTX line"), std::string::npos)
      << finding.detail;
  EXPECT_NE(finding.detail.find("st.shared.u32 [%s+128], %r0"), std::string::npos) << finding.detail;
}

TEST(SharedChecks, LanesOfOneStoreMustAgree) {
  EXPECT_EQ(run_shared("st.shared.u32 [tile], %t;", 32).kind, FindingKind::shared_race);
  EXPECT_TRUE(run_shared("mov.u32 %r0, 5;\nst.shared.u32 [tile], %r0;", 32).detail.empty());
}

TEST(SharedChecks, AllReadersSinceTheLastWriteAreTracked) {
  // All four warps read word 0; warp 3 alone is ordered before the write of warp 0.
  const Finding finding = run_shared(
      "setp.eq.u32 %p, %t, 0;\n@%p st.shared.u32 [tile], %t;\nbar.sync 0;\nld.shared.u32 %r0, [tile];\n"
      "setp.ge.u32 %q, %t, 96;\n@%q bra LAST;\nsetp.ge.u32 %q, %t, 32;\n@%q bra END;\nbar.sync 1, 64;\n"
      "nanosleep.u32 1;\n@%p st.shared.u32 [tile], %t;\nbra.uni END;\nLAST:\nbar.arrive 1, 64;\nEND:\n",
      128);
  EXPECT_EQ(finding.kind, FindingKind::shared_race);
  EXPECT_NE(finding.detail.find("ld.shared.u32 %r0"), std::string::npos) << finding.detail;
}

TEST(SharedChecks, CanBeSwitchedOff) {
  EmulatorOptions options;
  options.check_races = false;
  options.check_uninitialised = false;
  EXPECT_TRUE(run_shared("ld.shared.u32 %r0, [%s];\nst.shared.u32 [tile], %t;", 64, options).detail.empty());
  EXPECT_EQ(run_shared("ld.shared.u32 %r0, [%s+256];", 64, options).kind, FindingKind::out_of_bounds_shared);
}

TEST(SharedChecks, NullIsOutOfBounds) {
  EXPECT_EQ(run_shared("mov.u32 %r0, 0;\nld.shared.u32 %r1, [%r0];").kind, FindingKind::out_of_bounds_shared);
}

TEST(Barriers, DeadlockNamesWaitingThreadsAndBarriers) {
  const Finding finding = run_shared(
      "setp.lt.u32 %p, %t, 32;\n@%p bra FIRST;\nbar.sync 1;\nbra.uni END;\nFIRST:\n"
      "bar.sync 2;\nEND:\n");
  EXPECT_EQ(finding.kind, FindingKind::deadlock);
  ASSERT_EQ(finding.notes.size(), 2U);
  EXPECT_NE(finding.notes[0].find("(0,0,0)..(31,0,0) of warp 0 wait for barrier 2 (32 of 64"), std::string::npos)
      << finding.notes[0];
  EXPECT_NE(finding.notes[1].find("warp 1 wait for barrier 1"), std::string::npos) << finding.notes[1];
}

TEST(Barriers, CountsMustAgree) {
  EXPECT_EQ(run_shared("setp.lt.u32 %p, %t, 32;\n@%p bra FIRST;\nbar.sync 1, 64;\nbra.uni END;\nFIRST:\n"
                       "bar.sync 1, 96;\nEND:\n")
                .kind,
            FindingKind::barrier_divergence);
  EXPECT_EQ(run_shared("bar.sync 1, 33;").kind, FindingKind::barrier_divergence);
  EXPECT_EQ(run_shared("bar.sync 16;").kind, FindingKind::barrier_divergence);
}

TEST(Access, OutOfBoundsOfLocalMemoryAndParameters) {
  EXPECT_EQ(run_shared(".local .align 4 .b8 frame[8];\nld.local.u32 %r0, [frame+64];").kind,
            FindingKind::out_of_bounds_local);
  EXPECT_EQ(run_shared("ld.param.u32 %r0, [out+8];").kind, FindingKind::out_of_bounds_param);
}

TEST(Access, BetweenVariablesOfLocalMemory) {
  const std::string variables = ".local .align 4 .b8 first[6];\n.local .align 4 .b8 second[8];\n";
  for (const char* const access : {"ld.local.u32 %r0, [first+4];", "st.local.u8 [first+6], %r0;",
                                   "ld.local.u32 %r0, [second+-4];", "st.local.u32 [second+8], %r0;"}) {
    const Finding found = run_shared(variables + access);
    EXPECT_EQ(found.kind, FindingKind::out_of_bounds_local) << access;
    EXPECT_NE(found.detail.find("past a variable's end"), std::string::npos) << found.detail;
  }
}

// SharedMemory -----------------------------------------------------------------------------------------------------

TEST(SharedMemory, VectorClocksOrderAccesses) {
  SharedMemory shared(true, true);
  shared.reset(64);
  VectorClock first{}, second{};
  first[0] = second[2] = 1;
  const Accessor writer{0, 3, 10};
  const Accessor reader{2, 4, 20};
  EXPECT_EQ(shared.write(first, writer, kSharedBase, 8), SharedVerdict::ok);
  EXPECT_EQ(shared.read(second, reader, kSharedBase + 4, 4), SharedVerdict::race);
  EXPECT_EQ(shared.other().lane, 3U);
  EXPECT_EQ(shared.other().code, 10U);
  second.join(first);
  EXPECT_EQ(shared.read(second, reader, kSharedBase + 2, 2), SharedVerdict::ok);
  EXPECT_EQ(shared.write(first, writer, kSharedBase + 1, 1), SharedVerdict::ok);  // byte 1 has no reader
  EXPECT_EQ(shared.write(first, writer, kSharedBase, 4), SharedVerdict::race);    // bytes 2 and 3 have
}

TEST(SharedMemory, BytesOfACopyInFlightMayNotBeAccessed) {
  SharedMemory shared(true, true);
  shared.reset(64);
  VectorClock now{};
  now[0] = 1;
  const Accessor thread{0, 0, 1};
  EXPECT_EQ(shared.begin_copy(now, thread, kSharedBase, 16), SharedVerdict::ok);
  EXPECT_EQ(shared.read(now, thread, kSharedBase + 8, 4), SharedVerdict::in_flight);
  EXPECT_EQ(shared.write(now, {0, 1, 2}, kSharedBase + 4, 1), SharedVerdict::in_flight);
  shared.reset(64);
  EXPECT_EQ(shared.begin_copy(now, thread, kSharedBase, 16), SharedVerdict::ok);
  shared.complete_copy(now, thread, kSharedBase, 16);
  EXPECT_EQ(shared.read(now, thread, kSharedBase + 8, 4), SharedVerdict::ok);
}

TEST(SharedMemory, RestartingClocksKeepsInitialisedBytes) {
  SharedMemory shared(true, true);
  shared.reset(64);
  VectorClock first{}, second{};
  first[0] = second[2] = 5;
  shared.write(first, {0, 0, 1}, kSharedBase, 4);
  shared.write(first, {0, 0, 1}, kSharedBase + 4, 1);
  shared.restart_clocks();
  EXPECT_EQ(shared.read(second, {2, 0, 2}, kSharedBase, 4), SharedVerdict::ok);
  EXPECT_EQ(shared.read(second, {2, 0, 2}, kSharedBase + 4, 1), SharedVerdict::ok);
  EXPECT_EQ(shared.read(second, {2, 0, 2}, kSharedBase + 5, 1), SharedVerdict::uninitialised);
}

}  // namespace
}  // namespace tilewright::emulator
