// The counts of a profile, for kernels whose counts are known.
#include "tilewright/emulator/profile.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "lane_kernel.hpp"
#include "tilewright/emulator/emulated_module.hpp"

namespace tilewright::emulator {
namespace {

/// Runs `body` on one warp with %lane, %at (a global array of 4096 bytes) and %to (the shared array) for each lane.
LaunchProfile profile_of(std::string_view body, std::uint32_t threads = 32) {
  const std::string text = fmt::format(
      "{}.visible .entry k(.param .u64 array)\n{{\n.shared .align 128 .b8 tile[4096];\n.reg .b32 %lane, %to, %r<9>;\n"
      ".reg .b64 %at, %wide;\n.reg .pred %p;\nld.param.u64 %at, [array];\nmov.u32 %lane, %tid.x;\nmov.u32 %to, tile;\n"
      "cvt.u64.u32 %wide, %lane;\n{}\nret;\n}}\n",
      kHeader, body);
  EmulatedModule module(text, kSm90a);
  std::vector<std::byte> array(4096);
  const std::vector<KernelArgument> arguments{ArrayArgument{array, true}};
  runtime::LaunchConfig config;
  config.grid = {1, 1, 1};
  config.block = {threads, 1, 1};
  LaunchProfile profile;
  const std::vector<Finding> findings = module.launch(module.kernel("k"), config, arguments, &profile);
  EXPECT_TRUE(findings.empty()) << (findings.empty() ? "" : to_string(findings[0]));
  return profile;
}

const ProfileCounts& kind(const LaunchProfile& profile, std::string_view name) {
  static const ProfileCounts none;
  const auto row = std::ranges::find(profile.kinds, name, &ProfileRow::name);
  return row == profile.kinds.end() ? none : row->counts;
}

TEST(Profile, CoalescedAndStridedLoads) {
  const LaunchProfile coalesced = profile_of("mad.lo.u64 %at, %wide, 4, %at;\nld.global.u32 %r0, [%at];");
  EXPECT_EQ(kind(coalesced, "ld.global").global_requests, 1U);
  EXPECT_EQ(kind(coalesced, "ld.global").global_bytes, 128U);
  EXPECT_EQ(kind(coalesced, "ld.global").global_sectors, 4U);
  EXPECT_EQ(kind(coalesced, "ld.global").global_lines, 1U);
  const LaunchProfile strided = profile_of("mad.lo.u64 %at, %wide, 128, %at;\nld.global.u32 %r0, [%at];");
  EXPECT_EQ(strided.total.global_sectors, 32U);
  EXPECT_EQ(strided.total.global_lines, 32U);
  const LaunchProfile one = profile_of("ld.global.u32 %r0, [%at];", 64);  // two warps, one address
  EXPECT_EQ(one.total.global_requests, 2U);
  EXPECT_EQ(one.total.global_sectors, 2U);
  const LaunchProfile wide = profile_of("mad.lo.u64 %at, %wide, 16, %at;\nld.global.v4.u32 {%r0,%r1,%r2,%r3}, [%at];");
  EXPECT_EQ(wide.total.global_bytes, 512U);
  EXPECT_EQ(wide.total.global_sectors, 16U);
  EXPECT_EQ(wide.total.global_lines, 4U);
}

/// The counts of a store of each lane to shared memory, `stride` bytes apart.
ProfileCounts shared_store(int stride, std::string_view store) {
  return kind(profile_of(fmt::format("mad.lo.u32 %to, %lane, {}, %to;\n{}", stride, store)), "st.shared");
}

TEST(Profile, BankConflicts) {
  constexpr std::string_view kWord = "st.shared.u32 [%to], %lane;";
  EXPECT_EQ(shared_store(4, kWord).shared_wavefronts, 1U);
  EXPECT_EQ(shared_store(4, kWord).bank_conflicts, 0U);
  EXPECT_EQ(shared_store(8, kWord).shared_wavefronts, 2U);
  EXPECT_EQ(shared_store(8, kWord).bank_conflicts, 1U);
  EXPECT_EQ(shared_store(128, kWord).shared_wavefronts, 32U);  // the column of a transpose without padding
  EXPECT_EQ(shared_store(128, kWord).bank_conflicts, 31U);
  EXPECT_EQ(shared_store(124, kWord).bank_conflicts, 0U);  // rows of 31 words: an odd stride
  // Vectors take a pass for each quarter or half of the warp, which is no conflict.
  const ProfileCounts vectors = shared_store(16, "st.shared.v4.u32 [%to], {%lane,%lane,%lane,%lane};");
  EXPECT_EQ(vectors.shared_requests, 1U);
  EXPECT_EQ(vectors.shared_wavefronts, 4U);
  EXPECT_EQ(vectors.bank_conflicts, 0U);
  const ProfileCounts doubles = shared_store(64, "st.shared.v2.u32 [%to], {%lane,%lane};");
  EXPECT_EQ(doubles.shared_wavefronts, 16U);  // 16 lanes, 64 bytes apart: 8 words in each of 4 banks, twice
  EXPECT_EQ(doubles.bank_conflicts, 14U);
}

TEST(Profile, DivergenceAndLines) {
  const LaunchProfile profile = profile_of(
      "setp.lt.u32 %p, %lane, 8;\n@%p bra few;\nadd.u32 %r0, %lane, 1;\nbra end;\nfew:\nadd.u32 %r0, %lane, 2;\n"
      "sub.u32 %r1, %r0, 1;\nend:\nxor.b32 %r0, %r0, 1;");
  EXPECT_EQ(kind(profile, "add.u32").instructions, 2U);
  EXPECT_EQ(kind(profile, "add.u32").active_lanes, 32U);
  EXPECT_EQ(kind(profile, "sub.u32").active_lanes, 8U);
  EXPECT_EQ(kind(profile, "xor.b32").active_lanes, 32U);
  EXPECT_DOUBLE_EQ(kind(profile, "add.u32").mean_active_lanes(), 16.0);
  std::uint64_t of_lines = 0;
  for (const ProfileRow& row : profile.lines) {
    EXPECT_EQ(row.name, "");
    EXPECT_GT(row.line, 0);
    of_lines += row.counts.instructions;
  }
  EXPECT_EQ(of_lines, profile.total.instructions);
  EXPECT_EQ(profile.total.instructions, 12U);  // 4 before the body, 7 in it of both paths, ret
}

TEST(Profile, InstructionsBetweenAnAsynchronousCopyAndItsWait) {
  constexpr std::string_view kCopy =
      "mad.lo.u64 %at, %wide, 16, %at;\nmad.lo.u32 %to, %lane, 16, %to;\n"
      "cp.async.cg.shared.global [%to], [%at], 16;\ncp.async.commit_group;\n";
  const LaunchProfile at_once = profile_of(std::string(kCopy) + "cp.async.wait_group 0;");
  EXPECT_EQ(at_once.total.async_copies, 32U);
  EXPECT_DOUBLE_EQ(at_once.total.mean_async_instructions(), 1.0);  // the commit
  const LaunchProfile later =
      profile_of(std::string(kCopy) + "add.u32 %r0, %lane, 1;\nadd.u32 %r0, %r0, 1;\ncp.async.wait_group 0;");
  EXPECT_DOUBLE_EQ(later.total.mean_async_instructions(), 3.0);
}

TEST(Profile, BulkCopiesWaitsAndMatrixProducts) {
  const LaunchProfile profile = profile_of(
      ".reg .b32 %bar;\n.reg .b64 %state;\n.shared .align 8 .b64 barrier;\nmov.u32 %bar, barrier;\n"
      "setp.ne.u32 %p, %lane, 0;\n@%p bra end;\nmbarrier.init.shared.b64 [%bar], 1;\n"
      "fence.mbarrier_init.release.cluster;\n"
      "mbarrier.arrive.expect_tx.shared.b64 %state, [%bar], 512;\n"
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%to], [%at], 256, [%bar];\n"
      "add.u32 %r0, %to, 256;\n"
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r0], [%at], 256, [%bar];\n"
      "wait:\nmbarrier.try_wait.parity.shared.b64 %p, [%bar], 0;\n@!%p bra wait;\n"
      "cp.async.bulk.global.shared::cta.bulk_group [%at], [%to], 128;\ncp.async.bulk.commit_group;\n"
      "cp.async.bulk.wait_group 0;\nend:\nbar.warp.sync -1;\n"
      "mov.b32 %r1, 0;\nmma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%r1,%r2,%r3,%r4}, {%r1,%r1,%r1,%r1}, "
      "{%r1,%r1}, {%r1,%r1,%r1,%r1};");
  EXPECT_EQ(profile.total.bulk_loads, 2U);
  EXPECT_EQ(profile.total.bulk_load_bytes, 512U);
  EXPECT_EQ(profile.total.multicast_bytes, 0U);
  EXPECT_EQ(profile.total.bulk_stores, 1U);
  EXPECT_EQ(profile.total.bulk_store_bytes, 128U);
  EXPECT_EQ(profile.total.mbarrier_waits, 1U);
  EXPECT_EQ(kind(profile, "mma.sync").matrix_flops, 2U * 16 * 8 * 16);
}

}  // namespace
}  // namespace tilewright::emulator
