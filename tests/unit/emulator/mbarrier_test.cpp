// mbarrier: phases, arrival counts, tx-counts, waits; copies that complete on an mbarrier; findings.
#include "tilewright/emulator/mbarrier.hpp"

#include <gtest/gtest.h>

#include "hopper_kernel.hpp"
#include "tilewright/emulator/emulated_module.hpp"

namespace tilewright::emulator {
namespace {

using U = std::uint32_t;

std::vector<U> run(std::string_view body, U threads = 32, runtime::Dim3 grid = {}, runtime::Dim3 cluster = {}) {
  const auto device = test_device();
  const runtime::DeviceBuffer out(device, 4096);
  device->fill(out.address(), 0, 4096, nullptr);
  launch_hopper(*device, hopper_kernel(body), pack_maps({{}, {}}, {out.address()}),
                {.block = {threads, 1, 1}, .grid = grid, .cluster = cluster, .dynamic_smem_bytes = 4096});
  return download<U>(*device, out);
}

Finding finding_in(std::string_view body, U threads = 64, runtime::Dim3 grid = {}, runtime::Dim3 cluster = {}) {
  return finding_of([&] { run(body, threads, grid, cluster); });
}

TEST(MbarrierState, PhaseCompletesWhenNothingIsPending) {
  Mbarrier barrier;
  barrier.count = barrier.pending = 2;
  EXPECT_FALSE(arrive(barrier, 1).completed);
  EXPECT_TRUE(arrive(barrier, 1).completed);
  EXPECT_EQ(barrier.phase, 1U);
  EXPECT_EQ(barrier.pending, 2U);
  EXPECT_TRUE(barrier.is_parity_complete(0));
  EXPECT_FALSE(barrier.is_parity_complete(1));
  EXPECT_FALSE(arrive_expect_tx(barrier, 2, 32).completed);
  EXPECT_FALSE(complete_tx(barrier, 16).completed);
  EXPECT_TRUE(complete_tx(barrier, 16).completed);
  EXPECT_FALSE(complete_tx(barrier, 8).completed);  // complete_tx may precede expect_tx
  EXPECT_TRUE(arrive_expect_tx(barrier, 2, 8).completed);
  EXPECT_FALSE(arrive_and_drop(barrier, 1).completed);
  EXPECT_TRUE(arrive(barrier, 1).completed);
  EXPECT_EQ(barrier.pending, 1U);
}

TEST(MbarrierState, RefusesCountsOutOfRange) {
  Mbarrier barrier;
  barrier.count = barrier.pending = 2;
  EXPECT_NE(arrive(barrier, 3).error, "");
  EXPECT_NE(arrive(barrier, 0).error, "");
  EXPECT_EQ(expect_tx(barrier, (1 << 20) - 1).error, "");
  EXPECT_NE(expect_tx(barrier, 1).error, "");
}

TEST(Mbarrier, TestWaitByStateAndByParity) {
  const auto out = run(init_bars({2}) + R"(
    @!%first bra END;
    mbarrier.test_wait.parity.shared::cta.b64 %p, [%bars], 1;
    selp.u32 %r0, 1, 0, %p;
    mbarrier.test_wait.parity.shared.b64 %p, [%bars], 0;
    selp.u32 %r1, 1, 0, %p;
    mbarrier.arrive.shared.b64 %x0, [%bars];
    mbarrier.test_wait.shared.b64 %p, [%bars], %x0;
    selp.u32 %r2, 1, 0, %p;
    mbarrier.arrive.release.cta.shared::cta.b64 _, [%bars], 1;
    mbarrier.test_wait.acquire.cta.shared.b64 %p, [%bars], %x0;
    selp.u32 %r3, 1, 0, %p;
    mbarrier.arrive.noComplete.shared.b64 %x1, [%bars], 1;
    mbarrier.pending_count.b64 %r4, %x1;
    mbarrier.arrive_drop.shared.b64 _, [%bars];
    mbarrier.arrive.shared.b64 %x2, [%bars];
    mbarrier.test_wait.parity.shared.b64 %p, [%bars], 0;
    selp.u32 %r5, 1, 0, %p;
    mbarrier.inval.shared::cta.b64 [%bars];
    mbarrier.init.shared::cta.b64 [%bars], 7;
    st.global.v4.u32 [%out], {%r0, %r1, %r2, %r3};
    st.global.v2.u32 [%out+16], {%r4, %r5};
    END:)");
  EXPECT_EQ((std::vector<U>(out.begin(), out.begin() + 6)), (std::vector<U>{1, 0, 0, 1, 2, 1}));
}

TEST(Mbarrier, WaitAcquiresWritesReleasedByArrivals) {
  // Warp 1 writes and arrives, warp 0 waits and reads. The wait has a generic address and a time limit.
  const std::string body = init_bars({32}) + R"(
    mad.lo.u32 %r1, %t, 4, %base;
    setp.ge.u32 %q, %t, 32;
    @%q bra WRITER;
    cvt.u64.u32 %x0, %bars;
    cvta.shared.u64 %x0, %x0;
    SPIN:
    mbarrier.try_wait.parity.acquire.cta.b64 %p, [%x0], 0, 1000;
    @!%p bra SPIN;
    ld.shared.u32 %r2, [%r1+128];
    mad.wide.u32 %x1, %t, 4, %out;
    st.global.u32 [%x1], %r2;
    bra END;
    WRITER:
    st.shared.u32 [%r1], %t;
    ARRIVAL
    END:)";
  const auto with = [&](std::string_view arrival) {
    std::string text = body;
    return text.replace(text.find("ARRIVAL"), 7, arrival);
  };
  const auto out = run(with("mbarrier.arrive.shared::cta.b64 %x2, [%bars];"), 64);
  for (U t = 0; t < 32; ++t) EXPECT_EQ(out[t], 32 + t);
  const Finding finding = finding_in(with("mbarrier.arrive.relaxed.cta.shared::cta.b64 %x2, [%bars];"));
  EXPECT_EQ(finding.kind, FindingKind::shared_race) << to_string(finding);
}

TEST(Mbarrier, CpAsyncArriveWaitsForTheCopies) {
  const std::string issue = init_bars({32}) + R"(
    mad.lo.u32 %r1, %t, 16, %base;
    mad.wide.u32 %x1, %t, 16, %out;
    mov.u32 %r3, 5;
    st.global.u32 [%x1], %t;
    cp.async.cg.shared.global [%r1], [%x1], 16;
    cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%bars];
  )";
  const std::string use = R"(
    ld.shared.u32 %r2, [%base+496];
    st.global.u32 [%x1], %r2;
  )";
  EXPECT_EQ(run(issue + wait_for("A", 0, "0") + use)[4], 31U);
  const Finding finding = finding_in(issue + use, 32);
  EXPECT_EQ(finding.kind, FindingKind::async_write_in_flight) << to_string(finding);
  EXPECT_NE(finding.detail.find("mbarrier at shared address"), std::string::npos) << finding.detail;
}

// Bulk copies ------------------------------------------------------------------------------------------------------

/// Copies 512 bytes of `out` to shared memory, adds the thread index to each word, and copies the result to out + 1024.
std::string bulk_round_trip(std::string_view expected, std::string_view wait, std::string_view fence) {
  return init_bars({1}) + fmt::format(R"(
    @%first mbarrier.arrive.expect_tx.shared::cta.b64 _, [%bars], {};
    @%first cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%base], [%out], 512, [%bars];
    bar.sync 0;
    {}
    mad.lo.u32 %r1, %t, 4, %base;
    ld.shared.u32 %r2, [%r1];
    add.u32 %r2, %r2, %t;
    st.shared.u32 [%r1], %r2;
    {}
    bar.sync 0;
    add.u64 %x0, %out, 1024;
    @%first cp.async.bulk.global.shared::cta.bulk_group [%x0], [%base], 512;
    @%first cp.async.bulk.commit_group;
    @%first cp.async.bulk.wait_group.read 0;
    )",
                                      expected, wait, fence);
}

constexpr std::string_view kFence = "fence.proxy.async.shared::cta;";

TEST(BulkCopy, MovesBytesBothWays) {
  const auto device = test_device();
  std::vector<U> values(1024);
  for (U i = 0; i < 1024; ++i) values[i] = 100 * i;
  const auto out = upload(device, values);
  launch_hopper(*device, hopper_kernel(bulk_round_trip("512", wait_for("A", 0, "0"), kFence)),
                pack_maps({{}, {}}, {out.address()}), {.dynamic_smem_bytes = 4096});
  const auto result = download<U>(*device, out);
  for (U i = 0; i < 128; ++i) EXPECT_EQ(result[256 + i], 101 * i);
}

TEST(BulkCopy, ReadBeforeTheWaitIsFound) {
  const Finding finding = finding_in(bulk_round_trip("512", "", kFence), 128);
  EXPECT_EQ(finding.kind, FindingKind::async_write_in_flight) << to_string(finding);
}

TEST(BulkCopy, WrongExpectTxIsFoundWithTheDifference) {
  for (const auto& [expected, told] : {std::pair{"496", "16 bytes more arrived than were expected"},
                                       std::pair{"528", "16 bytes fewer arrived than were expected"}}) {
    const Finding finding = finding_in(bulk_round_trip(expected, wait_for("A", 0, "0"), kFence), 128);
    EXPECT_EQ(finding.kind, FindingKind::transaction_mismatch) << to_string(finding);
    EXPECT_NE(finding.detail.find(told), std::string::npos) << finding.detail;
    ASSERT_FALSE(finding.notes.empty());
    EXPECT_NE(finding.notes[0].find("wait for phase 0 of the mbarrier at shared address"), std::string::npos)
        << finding.notes[0];
    EXPECT_NE(finding.notes[0].find("bars + 0"), std::string::npos) << finding.notes[0];
  }
}

TEST(BulkCopy, MissingProxyFenceIsFound) {
  const Finding finding = finding_in(bulk_round_trip("512", wait_for("A", 0, "0"), ""), 128);
  EXPECT_EQ(finding.kind, FindingKind::missing_proxy_fence) << to_string(finding);
  EXPECT_NE(finding.detail.find("fence.proxy.async"), std::string::npos);
}

/// Findings of a launch that continues after them, of which the others throw the errors only.
std::vector<Finding> findings_in(const std::string& body, const EmulatorOptions& options = checking_options()) {
  EmulatedModule module(hopper_kernel(body), kSm90a, options);
  std::vector<U> out(1024);
  const std::vector<KernelArgument> arguments{std::vector<std::byte>(128), std::vector<std::byte>(128),
                                              ArrayArgument{std::as_writable_bytes(std::span(out))}};
  runtime::LaunchConfig config;
  config.block = {64, 1, 1};
  config.dynamic_smem_bytes = 4096;
  return module.launch(module.kernel("k"), config, arguments);
}

TEST(BulkCopy, OverwritingWhatThreadsHaveAccessedNeedsAProxyFence) {
  // All threads access a buffer of 512 bytes and arrive; thread 0 waits for them and lets a bulk copy write the buffer.
  const auto reuse = [](std::string_view access, std::string_view before, std::string_view after) {
    return init_bars({64, 1}) + "mad.lo.u32 %r1, %t, 4, %base;\n" + std::string(access) + std::string(before) +
           "mbarrier.arrive.shared::cta.b64 _, [%bars];\n@!%first bra END;\n" + wait_for("A", 0, "0") +
           std::string(after) + R"(
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%bars+8], 256;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%base], [%out], 256, [%bars+8];
    )" + wait_for("B", 8, "0") +
           "END:\n";
  };
  const std::string fence = "fence.proxy.async.shared::cta;\n";
  const std::string use = "add.u32 %r3, %r2, 1;\n", rename = "mov.u32 %r3, %r2;\n";
  const std::string write = "st.shared.u32 [%r1], %t;\n", read = write + fence + "ld.shared.u32 %r2, [%r1];\n";
  for (const auto& [access, verb] : {std::pair{write, "the write by thread"}, std::pair{read, "the read by thread"}}) {
    const std::vector<Finding> findings = findings_in(reuse(access, "", ""));
    ASSERT_EQ(findings.size(), 1U) << verb;
    EXPECT_EQ(findings[0].kind, FindingKind::missing_proxy_fence) << to_string(findings[0]);
    EXPECT_EQ(findings[0].severity, Severity::warning);
    EXPECT_EQ(findings_in(reuse(access, "", ""), {.require_reuse_fences = true}).at(0).severity, Severity::error);
    EXPECT_NE(findings[0].detail.find(verb), std::string::npos) << findings[0].detail;
    // The fence of the threads that arrive, or that of the thread that waits for them.
    EXPECT_TRUE(findings_in(reuse(access, fence, "")).empty());
    EXPECT_TRUE(findings_in(reuse(access, "", fence)).empty());
  }
  // A value that was used before the arrival has been read; a mov is no use.
  EXPECT_TRUE(findings_in(reuse(read, use, "")).empty());
  EXPECT_EQ(findings_in(reuse(read, use, ""), {.require_reuse_fences = true}).size(), 1U);
  EXPECT_TRUE(findings_in(reuse(read, use, fence), {.require_reuse_fences = true}).empty());
  EXPECT_TRUE(findings_in(reuse(read, rename + "add.u32 %r4, %r3, 1;\n", "")).empty());
  EXPECT_EQ(findings_in(reuse(read, rename, "")).size(), 1U);
  EXPECT_EQ(findings_in(reuse(read, "", use)).size(), 1U);
}

TEST(BulkCopy, OverwritingASourceInFlightIsFound) {
  const std::string store = R"(
    mad.lo.u32 %r1, %t, 4, %base;
    st.shared.u32 [%r1], %t;
    fence.proxy.async.shared::cta;
    bar.sync 0;
    @%first cp.async.bulk.global.shared::cta.bulk_group [%out], [%base], 256;
    @%first cp.async.bulk.commit_group;
    WAIT
    bar.sync 0;
    st.shared.u32 [%r1], %t;
    @%first cp.async.bulk.wait_group.read 0;
  )";
  const auto with = [&](std::string_view wait) {
    std::string text = store;
    return text.replace(text.find("WAIT"), 4, wait);
  };
  EXPECT_EQ(finding_in(with("@%first cp.async.bulk.wait_group.read 0;")).detail, "");
  EXPECT_EQ(finding_in(with("@%first cp.async.bulk.wait_group.read 1;")).kind, FindingKind::async_read_in_flight);
  const Finding finding = finding_in(with(""));
  EXPECT_EQ(finding.kind, FindingKind::async_read_in_flight) << to_string(finding);
  EXPECT_NE(finding.detail.find("bulk copy of thread (0,0,0)"), std::string::npos) << finding.detail;
}

TEST(BulkCopy, ExitWithAnOpenGroupIsFound) {
  const Finding finding = finding_in(R"(
    mad.lo.u32 %r1, %t, 4, %base;
    st.shared.u32 [%r1], %t;
    fence.proxy.async;
    bar.sync 0;
    @%first cp.async.bulk.global.shared::cta.bulk_group [%out], [%base], 256;
    @%first cp.async.bulk.commit_group;)");
  EXPECT_EQ(finding.kind, FindingKind::exited_cta_access);
  EXPECT_NE(finding.location.ptx_text.find("cp.async.bulk.global"), std::string::npos) << to_string(finding);
}

// Misuse -----------------------------------------------------------------------------------------------------------

TEST(MbarrierMisuse, IsFound) {
  EXPECT_EQ(finding_in("mbarrier.arrive.shared.b64 %x0, [%bars];").kind, FindingKind::mbarrier_misuse);
  EXPECT_EQ(finding_in("@%first mbarrier.init.shared.b64 [%bars], 0;").kind, FindingKind::mbarrier_misuse);
  EXPECT_EQ(finding_in(init_bars({1}) + "@%first mbarrier.init.shared.b64 [%bars], 1;").kind,
            FindingKind::mbarrier_misuse);
  EXPECT_EQ(finding_in(init_bars({64}) + "@%first mbarrier.arrive.shared.b64 %x0, [%bars], 65;").kind,
            FindingKind::mbarrier_misuse);
  EXPECT_EQ(finding_in(init_bars({1}) + "@%first st.shared.u64 [%bars], 0;\n@%first mbarrier.arrive.shared.b64 %x0, "
                                        "[%bars];")
                .kind,
            FindingKind::mbarrier_misuse);
  EXPECT_EQ(finding_in(init_bars({1}) + "@%first mbarrier.arrive.shared.b64 %x0, [%bars+4];").kind,
            FindingKind::misaligned_access);
}

TEST(MbarrierMisuse, UseNotOrderedAfterTheInit) {
  const Finding finding =
      finding_in("@%first mbarrier.init.shared.b64 [%bars], 64;\nmbarrier.arrive.shared.b64 %x0, [%bars];");
  EXPECT_EQ(finding.kind, FindingKind::mbarrier_misuse) << to_string(finding);
  EXPECT_NE(finding.detail.find("no barrier after its init by thread (0,0,0)"), std::string::npos) << finding.detail;
}

TEST(MbarrierMisuse, APhaseThatEndsWithinAnInstruction) {
  // 64 threads arrive twice; the phase of 63 arrivals ends before the last of them.
  const auto arrivals = [](std::string_view instruction, int count) {
    return init_bars({count}) + fmt::format("{0}\nbar.sync 0;\n{0}\n", instruction);
  };
  for (const std::string_view instruction :
       {"mbarrier.arrive.shared.b64 %x0, [%bars];", "cp.async.mbarrier.arrive.noinc.shared.b64 [%bars];"}) {
    EXPECT_EQ(finding_in(arrivals(instruction, 64)).detail, "") << instruction;
    EXPECT_EQ(finding_in(arrivals(instruction, 32)).detail, "") << instruction;
    const Finding finding = finding_in(arrivals(instruction, 63));
    EXPECT_EQ(finding.kind, FindingKind::mbarrier_misuse) << to_string(finding);
    EXPECT_EQ(finding.thread->thread.x % 32, 31U);
    EXPECT_NE(finding.detail.find("phase 1, 63 of 63 arrivals"), std::string::npos) << finding.detail;
  }
  // The threads of one warp may arrive at different mbarriers.
  EXPECT_EQ(finding_in(init_bars({1, 63}) + "mov.u32 %r0, 8;\n@%first mov.u32 %r0, 0;\nadd.u32 %r0, %r0, %bars;\n"
                                            "mbarrier.arrive.shared.b64 %x0, [%r0];\n")
                .detail,
            "");
}

TEST(MbarrierMisuse, ABulkCopyNeedsAFenceAfterTheInit) {
  const auto copies = [](std::string_view after_init, std::string_view before_copy) {
    return "@%first mbarrier.init.shared.b64 [%bars], 1;\n" + std::string(after_init) + "\nbar.sync 0;\n" +
           "setp.ne.u32 %q, %t, 32;\n@%q bra END;\n" + std::string(before_copy) + R"(
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%bars], 256;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%base], [%out], 256, [%bars];
    )" + wait_for("A", 0, "0") +
           "END:\n";
  };
  const std::string_view init_fence = "@%first fence.mbarrier_init.release.cluster;", fence = "fence.proxy.async;";
  const Finding finding = finding_in(copies("", ""));
  EXPECT_EQ(finding.kind, FindingKind::missing_proxy_fence) << to_string(finding);
  EXPECT_NE(finding.detail.find("its init by thread (0,0,0)"), std::string::npos) << finding.detail;
  EXPECT_EQ(finding_in(copies(init_fence, "")).detail, "");
  EXPECT_EQ(finding_in(copies(fence, "")).detail, "");
  EXPECT_EQ(finding_in(copies("", fence)).detail, "");
  // The fence of a thread covers its own inits.
  EXPECT_EQ(finding_in(copies("@!%first fence.mbarrier_init.release.cluster;", "")).kind,
            FindingKind::missing_proxy_fence);
  EXPECT_EQ(finding_in(copies("", "fence.mbarrier_init.release.cluster;")).kind, FindingKind::missing_proxy_fence);
  // It is a warning if the launch continues after findings, as libcu++ has no such fence.
  EXPECT_EQ(findings_in(copies("", "")).at(0).severity, Severity::warning);
  EXPECT_EQ(findings_in(copies("", ""), {.require_reuse_fences = true}).at(0).severity, Severity::error);
}

// Deadlocks --------------------------------------------------------------------------------------------------------

TEST(MbarrierDeadlock, NamesWaitingThreadsAndPhases) {
  // Warp 0 waits for bars[0], at which no thread arrives; warp 1 for bars[1], which gets one of two arrivals.
  const std::string body =
      init_bars({1, 2}) + "setp.ge.u32 %q, %t, 32;\n@%q bra SECOND;\n" + wait_for("A", 0, "0") +
      "bra END;\nSECOND:\nsetp.eq.u32 %p, %t, 32;\n@%p mbarrier.arrive.shared.b64 _, [%bars+8];\n" +
      wait_for("B", 8, "0") + "END:\n";
  const Finding finding = finding_in(body);
  EXPECT_EQ(finding.kind, FindingKind::deadlock) << to_string(finding);
  ASSERT_EQ(finding.notes.size(), 2U) << to_string(finding);
  EXPECT_NE(finding.notes[0].find("warp 0 wait for phase 0 of the mbarrier"), std::string::npos) << finding.notes[0];
  EXPECT_NE(finding.notes[0].find("1 of 1 arrivals and 0 transaction bytes pending"), std::string::npos);
  EXPECT_NE(finding.notes[1].find("bars + 8"), std::string::npos) << finding.notes[1];
  EXPECT_NE(finding.notes[1].find("1 of 2 arrivals"), std::string::npos) << finding.notes[1];
}

TEST(MbarrierDeadlock, IsFoundWhenThreadsPoll) {
  const Finding finding = finding_in(init_bars({1}) +
                                     "SPIN:\nmbarrier.test_wait.parity.shared.b64 %p, [%bars], 0;\nnanosleep.u32 20;\n"
                                     "@!%p bra SPIN;");
  EXPECT_EQ(finding.kind, FindingKind::deadlock) << to_string(finding);
  EXPECT_EQ(finding.notes.size(), 2U);
}

TEST(MbarrierDeadlock, ThreadsThatPollAndWaitAreNamedOnce) {
  const std::string ptx = hopper_kernel(init_bars({65}) +
                                        "mbarrier.arrive.shared.b64 _, [%bars];\n"
                                        "SPIN:\nmbarrier.try_wait.parity.shared::cta.b64 %p, [%bars], 0;\n"
                                        "@%p bra DONE;\nbra SPIN;\nDONE:\n");
  const Finding finding = finding_of([&] {
    const auto device = test_device();
    const runtime::DeviceBuffer out(device, 4096);
    launch_hopper(*device, ptx, pack_maps({{}, {}}, {out.address()}),
                  {.block = {64, 1, 1}, .dynamic_smem_bytes = 4096});
  });
  EXPECT_EQ(finding.kind, FindingKind::deadlock) << to_string(finding);
  EXPECT_EQ(finding.notes.size(), 2U) << to_string(finding);
}

TEST(MbarrierDeadlock, TryWaitReturnsFalseWhenNoThreadCanProgress) {
  // The waiting thread itself arrives, after its try_wait has timed out.
  const auto out = run(init_bars({1}) + R"(
    @!%first bra END;
    mbarrier.try_wait.parity.shared.b64 %p, [%bars], 0;
    selp.u32 %r0, 1, 0, %p;
    mbarrier.arrive.shared.b64 _, [%bars];
    mbarrier.try_wait.parity.shared.b64 %p, [%bars], 0;
    selp.u32 %r1, 1, 0, %p;
    st.global.v2.u32 [%out], {%r0, %r1};
    END:)");
  EXPECT_EQ(out[0], 0U);
  EXPECT_EQ(out[1], 1U);
}

}  // namespace
}  // namespace tilewright::emulator
