// Targets differ in their shared memory, their instructions, and the PTX that they run. tests/differential compares the
// table of instructions with ptxas.
#include <gtest/gtest.h>

#include "lane_kernel.hpp"
#include "tilewright/emulator/instruction_targets.hpp"

namespace tilewright::emulator {
namespace {

std::string kernel_for(std::string_view target, std::string_view body) {
  return fmt::format(
      ".version 8.7\n.target {}\n.address_size 64\n.visible .entry k()\n{{\n.reg .b32 %r<9>;\n.reg .b64 "
      "%w<9>;\n{}\nret;\n}}\n",
      target, body);
}

/// The finding of a kernel on the emulator of its own target.
Finding finding_on(std::string_view target, std::string_view body) {
  return finding_of([&] {
    const auto device = make_emulated_device(*parse_emulated_target(target));
    launch(*device, kernel_for(target, body), "k", {}, {32, 1, 1});
  });
}

TEST(Targets, HaveTheirSharedMemory) {
  const auto bytes = [](std::string_view name) {
    return make_emulated_device(*parse_emulated_target(name))->properties().smem_per_block_bytes / 1024;
  };
  EXPECT_EQ(bytes("sm_75"), 64);
  EXPECT_EQ(bytes("sm_80"), 163);
  EXPECT_EQ(bytes("sm_86"), 99);
  EXPECT_EQ(bytes("sm_89"), 99);
  EXPECT_EQ(bytes("sm_90a"), 227);
  EXPECT_EQ(bytes("sm_100a"), 227);
  const auto device = make_emulated_device(Target{75});
  EXPECT_NO_THROW(device->load(runtime::Image{{}, kernel_for("sm_75", "")}, "k", 64 * 1024));
  EXPECT_THROW(device->load(runtime::Image{{}, kernel_for("sm_75", "")}, "k", 64 * 1024 + 1), InvalidArgument);
}

TEST(Targets, RefuseInstructionsThatTheyDoNotHaveByName) {
  constexpr std::string_view kStore = "stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r0], {%r1};";
  const Finding finding = finding_on("sm_86", kStore);
  EXPECT_EQ(finding.kind, FindingKind::unsupported_instruction);
  EXPECT_EQ(finding.detail, "stmatrix.sync.aligned.m8n8.x1.shared.b16 needs sm_90, the target is sm_86");
  EXPECT_EQ(finding.location.ptx_line, 8);
  const auto detail = [](std::string_view target, std::string_view body) { return finding_on(target, body).detail; };
  EXPECT_EQ(detail("sm_75", "cp.async.commit_group;"), "cp.async.commit_group needs sm_80, the target is sm_75");
  EXPECT_EQ(detail("sm_80", "cp.async.commit_group;"), "");
  EXPECT_EQ(detail("sm_89", "barrier.cluster.arrive;"), "barrier.cluster.arrive needs sm_90, the target is sm_89");
  EXPECT_EQ(detail("sm_100a", "wgmma.fence.sync.aligned;"), "wgmma needs sm_90a, the target is sm_100a");
  EXPECT_EQ(detail("sm_90a", "wgmma.fence.sync.aligned;"), "");
  EXPECT_EQ(detail("sm_90a", "tcgen05.fence::before_thread_sync;"),
            "tcgen05 needs sm_100f or sm_110f, the target is sm_90a");
  EXPECT_EQ(detail("sm_100a", "tcgen05.fence::before_thread_sync;"),
            "the emulator does not support instruction tcgen05.fence::before_thread_sync");
  // An instruction that is not executed is no finding.
  EXPECT_EQ(detail("sm_86", "bra end;\n" + std::string(kStore) + "\nend:"), "");
}

TEST(Targets, ProductsOfFp8NeedSm89) {
  constexpr std::string_view kProduct =
      "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32 {%r0,%r1,%r2,%r3}, {%r4,%r4,%r4,%r4}, {%r5,%r5}, "
      "{%r6,%r6,%r6,%r6};";
  EXPECT_EQ(finding_on("sm_89", kProduct).detail, "");
  EXPECT_EQ(finding_on("sm_86", kProduct).detail,
            "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32 needs sm_89, the target is sm_86");
}

TEST(Targets, RunThePtxThatAGpuWouldRun) {
  const auto load = [](std::string_view device, std::string_view ptx) {
    make_emulated_device(*parse_emulated_target(device))->load(runtime::Image{{}, kernel_for(ptx, "")}, "k", 0);
  };
  EXPECT_NO_THROW(load("sm_86", "sm_80"));
  EXPECT_NO_THROW(load("sm_75", "sm_52"));
  EXPECT_NO_THROW(load("sm_100a", "sm_90"));
  EXPECT_THROW(load("sm_100a", "sm_90a"), EmulationError);
  EXPECT_THROW(load("sm_90a", "sm_120"), EmulationError);
  try {
    load("sm_86", "sm_89");
    FAIL();
  } catch (const EmulationError& error) {
    EXPECT_STREQ(error.what(), "k: the PTX is for sm_89, which emulator:sm_86 does not run");
  }
}

TEST(Targets, NamesAreParsed) {
  EXPECT_EQ(*parse_emulated_target("sm_75"), Target{75});
  EXPECT_EQ(*parse_emulated_target("90"), kSm90a);
  EXPECT_EQ(*parse_emulated_target("sm_90"), Target{90});
  EXPECT_EQ(*parse_emulated_target("sm_100a"), device_target(100));
  EXPECT_FALSE(parse_emulated_target("sm_70"));
  EXPECT_FALSE(parse_emulated_target("sm_120a"));
  EXPECT_NE(parse_emulated_target("sm_120a").reason().find("sm_75, sm_80"), std::string::npos);
}

}  // namespace
}  // namespace tilewright::emulator
