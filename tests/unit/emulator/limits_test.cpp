// Endless kernels and long work: they are interrupted promptly on all threads, or end by the budget of steps, and the
// device remains usable. Also tests limits on what PTX may ask for at load.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "hopper_kernel.hpp"
#include "tests/unit/base/interruption_latency.hpp"
#include "tilewright/emulator/emulated_module.hpp"

namespace tilewright::emulator {
namespace {

using namespace std::chrono_literals;
using U = std::uint32_t;

constexpr std::string_view kEndless = "LOOP: add.u32 %r0, %r0, 1;\nbra LOOP;";

/// A kernel that executes `body`, with the CTA's index in %cta, and then stores %r0 to out[%cta].
std::string cta_kernel(std::string_view body) {
  return fmt::format(
      "{}.visible .entry k(.param .u64 out)\n{{\n.reg .u32 %t, %cta, %r<16>;\n.reg .u64 %out, %at, %x<4>;\n"
      ".reg .pred %p, %q;\nmov.u32 %t, %tid.x;\nmov.u32 %cta, %ctaid.x;\nmov.u32 %r0, 0;\nld.param.u64 %out, [out];\n"
      "{}\nmad.wide.u32 %at, %cta, 4, %out;\nst.global.u32 [%at], %r0;\nret;\n}}\n",
      kHeader, body);
}

/// A kernel that does not end in CTA `which`, and ends in the others.
std::string endless_in(int which, std::string_view before = "") {
  return cta_kernel(fmt::format("{}\nsetp.ne.u32 %p, %cta, {};\n@%p bra OVER;\n{}\nOVER:", before, which, kEndless));
}

std::shared_ptr<runtime::Device> device_of(int threads, std::uint64_t steps = kDefaultStepsPerCta) {
  EmulatorOptions options;
  options.threads = threads;
  options.steps_per_cta = steps;
  return make_emulated_device(kSm90a, options);
}

void run(runtime::Device& device, std::string_view ptx, U ctas, const runtime::DeviceBuffer& out,
         bool cooperative = false, U threads = 32) {
  const auto kernel = device.load(runtime::Image{{}, ptx}, "k", 0);
  runtime::LaunchConfig config;
  config.grid = {ctas, 1, 1};
  config.block = {threads, 1, 1};
  config.cooperative = cooperative;
  kernel->launch(config, pack_addresses({out.address()}));
}

std::ptrdiff_t threads_of_process() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/task"), std::filesystem::directory_iterator());
}

/// Expects that an interrupted launch ends promptly and leaves no thread behind, and that the device remains usable.
void expect_interruptible(const std::shared_ptr<runtime::Device>& device, std::string_view ptx, U ctas,
                          bool cooperative = false) {
  const runtime::DeviceBuffer out(device, 4096);
  const auto threads = threads_of_process();
  EXPECT_LT(interruption_latency([&] { run(*device, ptx, ctas, out, cooperative); }), kMaxInterruptionLatency);
  EXPECT_EQ(threads_of_process(), threads);
  run(*device, cta_kernel("add.u32 %r0, %cta, 7;"), 4, out);
  EXPECT_EQ(download<U>(*device, out)[3], 10U);
}

TEST(Interruption, OfAnEndlessKernel) { expect_interruptible(device_of(1), cta_kernel(kEndless), 1); }

TEST(Interruption, OfManyEndlessCtasOnEveryThread) { expect_interruptible(device_of(4), cta_kernel(kEndless), 64); }

TEST(Interruption, OfOneEndlessCtaWhicheverThreadRunsIt) {
  for (const int which : {0, 1, 2, 15}) expect_interruptible(device_of(2), endless_in(which), 16);
}

TEST(Interruption, OfACooperativeLaunch) { expect_interruptible(device_of(2), endless_in(1), 4, true); }

/// The finding of CTA 1 may be reported only after CTA 0 has ended, which it never does.
TEST(Interruption, WinsOverAFindingThatCannotBeReportedYet) {
  expect_interruptible(device_of(2), endless_in(0, "setp.eq.u32 %q, %cta, 1;\n@%q trap;"), 2);
}

TEST(Interruption, OfThreadsThatOnlyWait) {
  // 31 warps execute bar.sync in an endless loop, so that each turn of a warp is a few instructions.
  const auto device = device_of(1);
  const runtime::DeviceBuffer out(device, 4096);
  const std::string ptx = cta_kernel("LOOP: bar.sync 0;\nbra LOOP;");
  EXPECT_LT(interruption_latency([&] { run(*device, ptx, 1, out, false, 992); }), kMaxInterruptionLatency);
}

/// wgmma m64n256k16, which takes the host a quarter of a millisecond each.
TEST(Interruption, OfInstructionsThatTakeLong) {
  std::string registers;
  for (int i = 0; i < 128; ++i) registers += fmt::format("{}%f{}", i == 0 ? "" : ", ", i);
  const std::string body = fmt::format(
      "mov.u64 %x0, 0x4000004000010000;\ncvt.u64.u32 %x1, %base;\nshr.u64 %x1, %x1, 4;\nor.b64 %x0, %x0, %x1;\n"
      "LOOP:\nwgmma.fence.sync.aligned;\nwgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16 {{{}}}, %x0, %x0, 1, 1, "
      "1, 0, 0;\nwgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\nbra LOOP;",
      registers);
  EmulatorOptions options;
  options.check_uninitialised = false;
  const auto device = test_device(options);
  const HopperLaunch how{.dynamic_smem_bytes = 65536};
  EXPECT_LT(interruption_latency([&] {
              launch_hopper(*device, hopper_kernel(body), pack_maps({{}, {}}, {0}), how);
            }),
            kMaxInterruptionLatency);
}

TEST(Interruption, OfALoad) {
  const auto device = device_of(1);
  std::string body;
  for (int i = 0; i < 60000; ++i) body += "add.u32 %r0, %r0, 1;\n";
  const std::string ptx = ".visible .global .align 4 .b8 table[65536];\n" + cta_kernel(body).substr(kHeader.size());
  // Interrupts during parsing and during decoding.
  for (const auto delay : {0ms, 5ms, 20ms, 40ms}) {
    EXPECT_LT(interruption_latency(
                  [&] {
                    while (true) device->load(runtime::Image{{}, kHeader.data() + ptx}, "k", 0);
                  },
                  delay),
              kMaxInterruptionLatency);
  }
  const runtime::DeviceBuffer out(device, 4096);
  run(*device, cta_kernel("mov.u32 %r0, 5;"), 1, out);
  EXPECT_EQ(download<U>(*device, out)[0], 5U);
}

TEST(Interruption, OfAllocationsCopiesAndFills) {
  constexpr std::size_t kBytes = std::size_t{80} << 20;
  const auto device = device_of(1);
  interruption_latency([&] { device->allocate(kBytes, nullptr); }, 0ms);
  interruption_latency([&] { device->allocate_zeros(kBytes); }, 0ms);
  EXPECT_EQ(device->allocated_bytes(), 0U);
  const runtime::DeviceBuffer buffer(device, kBytes);
  std::vector<std::byte> host(kBytes);
  interruption_latency([&] { device->copy_in(buffer.address(), host.data(), kBytes, nullptr); }, 0ms);
  interruption_latency([&] { device->copy_out(host.data(), buffer.address(), kBytes, nullptr); }, 0ms);
  interruption_latency([&] { device->fill(buffer.address(), 1, kBytes, nullptr); }, 0ms);
  EXPECT_EQ(device->allocated_bytes(), kBytes);
}

/// exit() neither waits for an endless kernel nor crashes.
TEST(Interruption, ByTheEndOfTheProcess) {
  const auto start = std::chrono::steady_clock::now();
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::alarm(10);
    std::thread([] {
      const auto device = device_of(2);
      const runtime::DeviceBuffer out(device, 4096);
      run(*device, cta_kernel(kEndless), 8, out);
    }).detach();
    std::this_thread::sleep_for(100ms);
    std::exit(0);
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_LT(std::chrono::steady_clock::now() - start, 1500ms);
}

// The budget -------------------------------------------------------------------------------------------------------

TEST(StepBudget, FindingNamesTheBudgetAndHowToRaiseIt) {
  const auto device = device_of(1, 100000);
  const runtime::DeviceBuffer out(device, 4096);
  const Finding finding = finding_of([&] { run(*device, cta_kernel(kEndless), 1, out); });
  EXPECT_EQ(finding.kind, FindingKind::no_progress);
  const std::string text = to_string(finding);
  for (const char* part : {"100000", "TILEWRIGHT_EMULATOR_STEPS", "emulator_steps_per_cta", "%r0, 1"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " is not in: " << text;
  }
  run(*device, cta_kernel("mov.u32 %r0, 3;"), 1, out);
  EXPECT_EQ(download<U>(*device, out)[0], 3U);
}

TEST(StepBudget, FindingNamesTheSettingOfTheCaller) {
  EmulatorOptions options;
  options.steps_per_cta = 100000;
  options.steps_setting = "--steps";
  const auto device = make_emulated_device(kSm90a, options);
  const runtime::DeviceBuffer out(device, 4096);
  const Finding finding = finding_of([&] { run(*device, cta_kernel(kEndless), 1, out); });
  EXPECT_NE(finding.detail.find("needs a larger budget (--steps)"), std::string::npos) << finding.detail;
  EXPECT_EQ(finding.detail.find("TILEWRIGHT"), std::string::npos) << finding.detail;
}

TEST(StepBudget, ALoopThatFollowsFromARejectedReadEndsTheLaunch) {
  // The read gives ones, and the loop counts up to them.
  constexpr std::string_view kBody =
      "ld.global.u32 %r1, [%out + 4096];\nmov.u32 %r0, 0;\nLOOP: add.u32 %r0, %r0, 1;\nsetp.ne.u32 %p, %r0, %r1;\n"
      "@%p bra LOOP;\n";
  EmulatorOptions options;
  options.steps_per_cta = std::uint64_t{1} << 40;
  EmulatedModule module(cta_kernel(kBody), kSm90a, options);
  std::vector<std::byte> out(4096);
  const std::vector<KernelArgument> arguments{ArrayArgument{std::span(out)}};
  runtime::LaunchConfig config;
  config.grid = {4, 1, 1};
  config.block = {32, 1, 1};
  const std::vector<Finding> findings = module.launch(module.kernel("k"), config, arguments);
  ASSERT_EQ(findings.size(), 2U);
  EXPECT_EQ(findings[0].kind, FindingKind::out_of_bounds_global);
  EXPECT_EQ(findings[1].kind, FindingKind::no_progress);
  EXPECT_NE(findings[1].detail.find("after a read of memory that it must not access"), std::string::npos);
  EXPECT_NE(findings[1].detail.find("%out + 4096"), std::string::npos) << findings[1].detail;
}

TEST(StepBudget, FindingIsThatOfTheFirstCta) {
  for (const bool cooperative : {false, true}) {
    const auto device = device_of(4, 1000000);
    const runtime::DeviceBuffer out(device, 4096);
    const Finding finding = finding_of([&] { run(*device, cta_kernel(kEndless), 1024, out, cooperative); });
    EXPECT_EQ(finding.kind, FindingKind::no_progress);
    ASSERT_TRUE(finding.thread);
    EXPECT_EQ(finding.thread->cta, runtime::Dim3(0, 0, 0));
  }
}

/// CTAs after the first one with a finding do not keep the launch from ending: CTA 0 traps after CTA 1 has entered an
/// endless loop.
TEST(StepBudget, EndlessCtasAfterAFindingAreStopped) {
  const auto device = device_of(2);
  const runtime::DeviceBuffer out(device, 4096);
  const std::string ptx = endless_in(
      1,
      "setp.ne.u32 %q, %cta, 0;\n@%q bra GO;\nWAIT: add.u32 %r1, %r1, 1;\nsetp.lt.u32 %p, %r1, 300000;\n@%p bra "
      "WAIT;\ntrap;\nGO:");
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(finding_of([&] { run(*device, ptx, 2, out); }).kind, FindingKind::trap);
  EXPECT_LT(std::chrono::steady_clock::now() - start, 15s);
}

TEST(StepBudget, ZeroMeansNoLimit) {
  const auto device = device_of(1, 0);
  const runtime::DeviceBuffer out(device, 4096);
  run(*device, cta_kernel("LOOP: add.u32 %r0, %r0, 1;\nsetp.lt.u32 %p, %r0, 50000;\n@%p bra LOOP;"), 1, out);
  EXPECT_EQ(download<U>(*device, out)[0], 50000U);
}

/// 2^30 calls are refused, even of a function without instructions.
TEST(LoadLimits, NumberOfInlinedCalls) {
  std::string ptx(kHeader);
  ptx += ".func f0()\n{\n}\n";
  for (int i = 1; i <= 30; ++i) {
    ptx += fmt::format(".func f{}()\n{{\ncall f{}, ();\ncall f{}, ();\n}}\n", i, i - 1, i - 1);
  }
  ptx += ".visible .entry k()\n{\ncall f30, ();\nret;\n}\n";
  const auto device = test_device();
  const Finding finding = finding_of([&] { device->load(runtime::Image{{}, ptx}, "k", 0); });
  EXPECT_NE(finding.detail.find("kernels of more than"), std::string::npos) << finding.detail;
}

Finding finding_of_load(const std::string& ptx) {
  return finding_of([&] { test_device()->load(runtime::Image{{}, ptx}, "k", 0); });
}

std::string repeated(std::string_view text, int count) {
  std::string all;
  for (int i = 0; i < count; ++i) all += text;
  return all;
}

TEST(LoadLimits, NestedInitialisers) {
  const std::string header(kHeader);
  EXPECT_NE(finding_of_load(header + ".global .u32 x[] = " + repeated("{", 100000)).detail.find("nested too deeply"),
            std::string::npos);
  EXPECT_NE(
      finding_of_load(header + ".global .u64 x[] = {" + repeated("generic(", 100000)).detail.find("nested too deeply"),
      std::string::npos);
}

TEST(LoadLimits, OpcodesOfManyModifiers) {
  const auto start = std::chrono::steady_clock::now();
  const std::string ptx =
      std::string(kHeader) + ".visible .entry k()\n{\nadd" + repeated(".u32", 500000) + " 1;\nret;\n}\n";
  const Finding finding = finding_of([&] { launch(*test_device(), ptx, "k", {}, {32, 1, 1}); });
  EXPECT_EQ(finding.kind, FindingKind::unsupported_instruction);
  EXPECT_LT(std::chrono::steady_clock::now() - start, 5s);
}

/// 10^6 64-bit registers in each of 20 functions would exceed what a 32-bit slot can address.
TEST(LoadLimits, RegistersOfManyFunctions) {
  std::string ptx(kHeader);
  for (int i = 0; i < 20; ++i) ptx += fmt::format(".func f{}()\n{{\n.reg .b64 %r<1000000>;\nret;\n}}\n", i);
  ptx += ".visible .entry k()\n{\n";
  for (int i = 0; i < 20; ++i) ptx += fmt::format("call f{}, ();\n", i);
  EXPECT_NE(finding_of_load(ptx + "ret;\n}\n").detail.find("registers of a warp"), std::string::npos);
}

/// A conversion with an excessive width is printed verbatim: snprintf would count up to the width, for each lane.
TEST(LoadLimits, WidthsOfPrintf) {
  const std::string ptx = std::string(kHeader) + R"(
.extern .func (.param .b32 result) vprintf(.param .b64 format, .param .b64 arguments);
.global .align 1 .b8 text[14] = {37, 57, 57, 57, 57, 57, 57, 57, 57, 57, 100, 10, 0, 0};
.visible .entry k()
{
  .local .align 8 .b8 values[8];
  .reg .b64 %x<4>;
  mov.u64 %x0, text;
  cvta.global.u64 %x0, %x0;
  mov.u64 %x1, values;
  cvta.local.u64 %x1, %x1;
  st.u64 [%x1], 7;
  {
    .param .b64 format;
    .param .b64 arguments;
    .param .b32 result;
    st.param.b64 [format], %x0;
    st.param.b64 [arguments], %x1;
    call.uni (result), vprintf, (format, arguments);
  }
  ret;
}
)";
  const auto start = std::chrono::steady_clock::now();
  testing::internal::CaptureStdout();
  launch(*test_device(), ptx, "k", {}, {32, 1, 1});
  EXPECT_EQ(testing::internal::GetCapturedStdout(), repeated("%999999999d\n", 32));
  EXPECT_LT(std::chrono::steady_clock::now() - start, 5s);
}

}  // namespace
}  // namespace tilewright::emulator
