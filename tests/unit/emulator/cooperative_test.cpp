// Cooperative launches, whose CTAs synchronise through global memory.
#include <gtest/gtest.h>

#include "hopper_kernel.hpp"

namespace tilewright::emulator {
namespace {

using U = std::uint32_t;

/// A grid barrier: each CTA stores to out[64 + CTA], adds one to out[0] and waits until that is `expected`. Then it
/// copies what the next CTA has stored to out[1 + CTA].
std::string grid_barrier(U expected) {
  return fmt::format(R"(
    mov.u32 %r0, %ctaid.x;
    mov.u32 %r1, %nctaid.x;
    mad.wide.u32 %x0, %r0, 4, %out;
    add.u32 %r2, %r0, 100;
    @%first st.global.u32 [%x0+256], %r2;
    bar.sync 0;
    @!%first bra OVER;
    red.release.gpu.global.add.u32 [%out], 1;
WAIT:
    ld.acquire.gpu.global.u32 %r3, [%out];
    setp.eq.u32 %p, %r3, {};
    @!%p bra WAIT;
    add.u32 %r4, %r0, 1;
    rem.u32 %r4, %r4, %r1;
    mad.wide.u32 %x1, %r4, 4, %out;
    ld.global.u32 %r5, [%x1+256];
    st.global.u32 [%x0+4], %r5;
OVER:
)",
                     expected);
}

std::vector<U> run(std::string_view body, const HopperLaunch& how) {
  const auto device = test_device();
  const auto out = upload(device, std::vector<U>(128));
  launch_hopper(*device, hopper_kernel(body), pack_maps({{}, {}}, {out.address()}), how);
  return download<U>(*device, out);
}

TEST(Cooperative, CtasSynchronise) {
  constexpr U kCtas = 24;
  const std::vector<U> out =
      run(grid_barrier(kCtas), {.block = {64, 1, 1}, .grid = {kCtas, 1, 1}, .cooperative = true});
  for (U cta = 0; cta < kCtas; ++cta) EXPECT_EQ(out[1 + cta], 100 + (cta + 1) % kCtas);
}

TEST(Cooperative, ClustersSynchronise) {
  const std::vector<U> out = run(grid_barrier(8), {.grid = {8, 1, 1}, .cluster = {2, 1, 1}, .cooperative = true});
  for (U cta = 0; cta < 8; ++cta) EXPECT_EQ(out[1 + cta], 100 + (cta + 1) % 8);
}

TEST(Cooperative, DeadlockNamesTheGlobalAddressThatIsPolled) {
  const Finding finding = finding_of([] { run(grid_barrier(5), {.grid = {4, 1, 1}, .cooperative = true}); });
  EXPECT_EQ(finding.kind, FindingKind::deadlock);
  const std::string text = to_string(finding);
  EXPECT_NE(text.find("for the value at global address"), std::string::npos) << text;
}

/// The finding of grid_barrier() without one of its lines.
Finding finding_without(std::string_view line) {
  std::string body = grid_barrier(2);
  const std::size_t at = body.find(line);
  EXPECT_NE(at, std::string::npos) << line;
  body.erase(at, line.size());
  return finding_of([&] { run(body, {.block = {64, 1, 1}, .grid = {2, 1, 1}, .cooperative = true}); });
}

TEST(Cooperative, ReadWithoutAWaitIsARace) {
  const Finding finding = finding_without("@!%p bra WAIT;");
  EXPECT_EQ(finding.kind, FindingKind::global_race) << to_string(finding);
  ASSERT_TRUE(finding.thread);
  // CTA 0 runs first, so that it reads before CTA 1 writes: the finding is at the write.
  EXPECT_EQ(finding.thread->cta, (runtime::Dim3{1, 0, 0}));
  EXPECT_NE(finding.detail.find("write of 4 bytes at global address"), std::string::npos) << finding.detail;
  EXPECT_NE(finding.detail.find("not ordered after the read by thread (0,0,0) of CTA (0,0,0)"), std::string::npos)
      << finding.detail;
}

// Thread 32 stores, and thread 0 arrives after a CTA barrier.
TEST(Cooperative, ReleaseCoversThreadsOfTheCtaBarrierBeforeIt) {
  const auto finding_in = [](const std::string& body) {
    return finding_of([&] { run(body, {.block = {64, 1, 1}, .grid = {2, 1, 1}, .cooperative = true}); });
  };
  std::string body = grid_barrier(2);
  const std::string_view store = "@%first st.global.u32";
  body.replace(body.find(store), store.size(), "setp.eq.u32 %q, %t, 32;\n@%q st.global.u32");
  EXPECT_TRUE(finding_in(body).detail.empty()) << to_string(finding_in(body));
  body.erase(body.find("bar.sync 0;"), std::string_view("bar.sync 0;").size());
  EXPECT_EQ(finding_in(body).kind, FindingKind::global_race);
}

TEST(Cooperative, NeighbouringBytesAreNotARace) {
  const std::vector<U> out =
      run("mov.u32 %r0, %ctaid.x;\ncvt.u64.u32 %x0, %r0;\nadd.u64 %x0, %out, %x0;\n"
          "add.u32 %r1, %r0, 7;\n@%first st.global.u8 [%x0], %r1;\n",
          {.grid = {4, 1, 1}, .cooperative = true});
  EXPECT_EQ(out[0], 0x0a090807U);
}

}  // namespace
}  // namespace tilewright::emulator
