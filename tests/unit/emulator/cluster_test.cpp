// Clusters: special registers, barrier.cluster, distributed shared memory, multicast, and CTAs that exit too early.
#include <gtest/gtest.h>

#include "hopper_kernel.hpp"

namespace tilewright::emulator {
namespace {

using U = std::uint32_t;

constexpr std::string_view kClusterSync =
    "barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;\n";

struct Shape {
  runtime::Dim3 grid{2, 1, 1};
  runtime::Dim3 cluster{2, 1, 1};
  U threads = 32;
};

std::vector<U> run(std::string_view body, const Shape& shape = {}, std::string_view directives = "") {
  const auto device = test_device();
  const auto out = upload(device, std::vector<U>(4096));
  launch_hopper(
      *device, hopper_kernel(body, directives), pack_maps({{}, {}}, {out.address()}),
      {.block = {shape.threads, 1, 1}, .grid = shape.grid, .cluster = shape.cluster, .dynamic_smem_bytes = 8192});
  return download<U>(*device, out);
}

Finding find(std::string_view body, const Shape& shape = {}) {
  return finding_of([&] { run(body, shape); });
}

TEST(Cluster, RankZeroOfALaunchWithoutClustersIsTheCtaItself) {
  const std::vector<U> result = run(R"(
    mapa.shared::cluster.u32 %r1, %base, 0;
    st.shared::cluster.u32 [%r1], 42;
    ld.shared.u32 %r0, [%base];
    cvt.u64.u32 %x1, %base;
    cvta.shared.u64 %x1, %x1;
    mapa.u64 %x2, %x1, 0;
    ld.u32 %r2, [%x2];
    add.u32 %r0, %r0, %r2;
    st.global.u32 [%out], %r0;
)",
                                    {{1, 1, 1}, {1, 1, 1}, 1});
  EXPECT_EQ(result[0], 84U);
}

/// Each CTA of a grid of up to (4,4,2) stores %r0..%r3 at its linear index.
constexpr std::string_view kStore = R"(
    mov.u32 %r10, %ctaid.x;
    mov.u32 %r11, %ctaid.y;
    mov.u32 %r12, %ctaid.z;
    mad.lo.u32 %r11, %r12, 4, %r11;
    mad.lo.u32 %r10, %r11, 4, %r10;
    mad.wide.u32 %x0, %r10, 16, %out;
    @%first st.global.v4.u32 [%x0], {%r0, %r1, %r2, %r3};
)";

TEST(Cluster, SpecialRegisters) {
  const Shape shape{{4, 4, 2}, {2, 2, 1}, 32};
  const auto ranks = run(std::string("mov.u32 %r0, %cluster_ctarank;\nmov.u32 %r1, %cluster_ctaid.x;\n"
                                     "mov.u32 %r2, %cluster_ctaid.y;\nmov.u32 %r3, %cluster_nctarank;\n") +
                             std::string(kStore),
                         shape);
  const auto ids =
      run(std::string("mov.u32 %r0, %clusterid.x;\nmov.u32 %r1, %clusterid.y;\nmov.u32 %r2, %clusterid.z;\n"
                      "mov.u32 %r3, %nclusterid.x;\n") +
              std::string(kStore),
          shape);
  for (U z = 0; z < 2; ++z) {
    for (U y = 0; y < 4; ++y) {
      for (U x = 0; x < 4; ++x) {
        const std::size_t at = 4 * (x + 4 * (y + 4 * z));
        EXPECT_EQ((std::vector<U>(ranks.begin() + at, ranks.begin() + at + 4)),
                  (std::vector<U>{x % 2 + 2 * (y % 2), x % 2, y % 2, 4}));
        EXPECT_EQ((std::vector<U>(ids.begin() + at, ids.begin() + at + 4)), (std::vector<U>{x / 2, y / 2, z, 2}));
      }
    }
  }
}

TEST(Cluster, SizeRequiredByTheKernel) {
  const std::string body = std::string(
                               "mov.u32 %r0, %cluster_nctarank;\nmov.u32 %r1, %is_explicit_cluster;\n"
                               "mov.u32 %r2, %cluster_nctaid.x;\nmov.u32 %r3, %nclusterid.x;\n") +
                           std::string(kStore);
  const std::string_view directives = ".explicitcluster .reqnctapercluster 4, 1, 1";
  const auto out = run(body, {{4, 1, 1}, {}, 32}, directives);
  EXPECT_EQ((std::vector<U>(out.begin(), out.begin() + 4)), (std::vector<U>{4, 1, 4, 1}));
  EXPECT_THROW(run(body, {{4, 1, 1}, {2, 1, 1}, 32}, directives), InvalidArgument);
  EXPECT_THROW(run(body, {{6, 1, 1}, {}, 32}, directives), InvalidArgument);
  const auto none = run(body, {{1, 1, 1}, {}, 32});
  EXPECT_EQ((std::vector<U>(none.begin(), none.begin() + 4)), (std::vector<U>{1, 0, 1, 1}));
}

/// Each thread writes 100 * rank + t to its own CTA's shared memory and reads the peer's. `before` and `after` surround
/// the read.
std::string exchange_through_shared_memory(std::string_view before, std::string_view after) {
  return fmt::format(R"(
    mad.lo.u32 %r1, %t, 4, %base;
    mad.lo.u32 %r2, %rank, 100, %t;
    st.shared.u32 [%r1], %r2;
    {}
    xor.b32 %r3, %rank, 1;
    mapa.shared::cluster.u32 %r4, %r1, %r3;
    ld.shared::cluster.u32 %r5, [%r4];
    getctarank.shared::cluster.u32 %r6, %r4;
    {}
    mad.lo.u32 %r7, %rank, 32, %t;
    mad.wide.u32 %x0, %r7, 8, %out;
    st.global.v2.u32 [%x0], {{%r5, %r6}};
  )",
                     before, after);
}

TEST(Cluster, ReadsAPeersSharedMemory) {
  const auto out = run(exchange_through_shared_memory(kClusterSync, kClusterSync));
  for (U rank = 0; rank < 2; ++rank) {
    for (U t = 0; t < 32; ++t) {
      EXPECT_EQ(out[2 * (32 * rank + t)], 100 * (1 - rank) + t);
      EXPECT_EQ(out[2 * (32 * rank + t) + 1], 1 - rank);
    }
  }
}

TEST(Cluster, AtomicsReachPeersByGenericAndSharedAddresses) {
  const auto out = run("@%first st.shared.u32 [%base], 5;\n" + std::string(kClusterSync) + R"(
    xor.b32 %r3, %rank, 1;
    cvt.u64.u32 %x1, %base;
    cvta.shared.u64 %x1, %x1;
    mapa.u64 %x2, %x1, %r3;
    atom.add.u32 %r4, [%x2], 1;
    mapa.shared::cluster.u32 %r5, %base, %r3;
    red.relaxed.cluster.shared::cluster.add.u32 [%r5], %r3;
  )" + std::string(kClusterSync) +
                       R"(
    ld.shared.u32 %r0, [%base];
    mad.wide.u32 %x0, %rank, 4, %out;
    @%first st.global.u32 [%x0], %r0;
  )");
  EXPECT_EQ(out[0], 5U + 32);
  EXPECT_EQ(out[1], 5U + 32 + 32);
}

TEST(ClusterChecks, APeerMustHaveStarted) {
  const std::string store =
      "xor.b32 %r3, %rank, 1;\nmapa.shared::cluster.u32 %r4, %base, %r3;\n"
      "@%first st.shared::cluster.u32 [%r4], 1;\n" +
      std::string(kClusterSync);
  const Finding finding = find(store);
  EXPECT_EQ(finding.kind, FindingKind::unstarted_cta_access) << to_string(finding);
  EXPECT_NE(finding.detail.find("nothing orders it after the start of that CTA"), std::string::npos) << finding.detail;
  EXPECT_EQ(find(std::string(kClusterSync) + store).detail, "");
  EXPECT_EQ(find("barrier.cluster.arrive.relaxed.aligned;\nbarrier.cluster.wait.aligned;\n" + store).detail, "");
}

TEST(ClusterChecks, MissingBarrierIsARace) {
  const Finding finding = find(std::string(kClusterSync) + exchange_through_shared_memory("", kClusterSync));
  EXPECT_TRUE(finding.kind == FindingKind::shared_race || finding.kind == FindingKind::uninitialised_shared_read)
      << to_string(finding);
  // A .relaxed arrival releases nothing unless a fence precedes it.
  EXPECT_EQ(find(exchange_through_shared_memory(
                     "barrier.cluster.arrive.relaxed.aligned;\nbarrier.cluster.wait.acquire.aligned;", kClusterSync))
                .kind,
            FindingKind::shared_race);
  EXPECT_EQ(
      find(exchange_through_shared_memory(
               "fence.acq_rel.cluster;\nbarrier.cluster.arrive.relaxed.aligned;\nbarrier.cluster.wait.acquire.aligned;",
               kClusterSync))
          .detail,
      "");
}

TEST(ClusterChecks, ExitWhileAPeerReads) {
  const Finding finding = find(exchange_through_shared_memory(kClusterSync, ""));
  EXPECT_EQ(finding.kind, FindingKind::exited_cta_access) << to_string(finding);
}

TEST(ClusterChecks, RanksThatTheClusterDoesNotHave) {
  EXPECT_EQ(find("mov.u32 %r3, 2;\nmapa.shared::cluster.u32 %r4, %base, %r3;").kind, FindingKind::out_of_bounds_shared);
  EXPECT_EQ(find("add.u32 %r4, %base, 0x3000000;\nld.shared::cluster.u32 %r5, [%r4];").kind,
            FindingKind::out_of_bounds_shared);
}

// On an H100 the address of a shared variable in the CTA of rank 1 is 0x01000400.
TEST(Cluster, AddressesHaveTheRankOfTheirCta) {
  const auto out = run(R"(
    mov.u32 %r0, dynamic;
    shr.u32 %r0, %r0, 24;
    cvt.u64.u32 %x1, %base;
    cvta.shared.u64 %x1, %x1;
    st.u32 [%x1], 7;
    and.b32 %r4, %base, 0x3ffff;
    ld.shared.u32 %r1, [%r4];
    st.shared.u32 [dynamic+4], 9;
    getctarank.u64 %r2, %x1;
    xor.b32 %r5, %rank, 1;
    mapa.u64 %x2, %x1, %r5;
    isspacep.shared::cta %p, %x2;
    isspacep.shared::cluster %q, %x2;
    selp.u32 %r3, 1, 0, %p;
    @%q add.u32 %r3, %r3, 2;
    ld.shared::cluster.u32 %r6, [%base+4];
    mad.lo.u32 %r3, %r6, 4, %r3;
  )" + std::string(kStore));
  for (U rank = 0; rank < 2; ++rank) {
    EXPECT_EQ((std::vector<U>(out.begin() + 4 * rank, out.begin() + 4 * rank + 4)),
              (std::vector<U>{rank, 7, rank, 38}));
  }
}

TEST(ClusterChecks, InstructionsOfTheCtaTakeNoAddressOfAPeer) {
  for (const std::string_view access :
       {"ld.shared.u32 %r5, [%r4];", "st.shared::cta.u32 [%r4], 1;", "mbarrier.arrive.shared::cta.b64 _, [%r4];"}) {
    const Finding finding =
        find("xor.b32 %r3, %rank, 1;\nmapa.shared::cluster.u32 %r4, %base, %r3;\n" + std::string(access));
    EXPECT_EQ(finding.kind, FindingKind::out_of_bounds_shared) << access << to_string(finding);
    EXPECT_NE(finding.detail.find("of the CTA of rank 1 in the cluster, by an instruction of .shared::cta"),
              std::string::npos)
        << finding.detail;
  }
  // An address without a rank is one of the own CTA for .shared::cta, and of the CTA of rank 0 for .shared::cluster.
  const auto out =
      run(std::string("st.shared.u32 [%base], %rank;\n") + std::string(kClusterSync) +
          "and.b32 %r4, %base, 0xffffff;\nld.shared.u32 %r0, [%r4];\nld.shared::cluster.u32 %r1, [%r4];\n" +
          std::string(kStore) + std::string(kClusterSync));
  EXPECT_EQ((std::vector<U>(out.begin() + 4, out.begin() + 6)), (std::vector<U>{1, 0}));
}

TEST(ClusterBarrier, MisuseAndDeadlock) {
  EXPECT_EQ(find("barrier.cluster.wait;").kind, FindingKind::barrier_divergence);
  EXPECT_EQ(find("barrier.cluster.arrive;\nbarrier.cluster.arrive;").kind, FindingKind::barrier_divergence);
  const Finding finding = find("setp.eq.u32 %p, %rank, 0;\n@%p bra FIRST;\n" +
                               std::string("bar.sync 1, 64;\nFIRST:\n") + std::string(kClusterSync));
  EXPECT_EQ(finding.kind, FindingKind::deadlock) << to_string(finding);
  ASSERT_EQ(finding.notes.size(), 2U) << to_string(finding);
  EXPECT_NE(finding.notes[0].find("CTA (0,0,0): "), std::string::npos) << finding.notes[0];
  EXPECT_NE(finding.notes[0].find("phase 0 of the cluster's barrier (32 threads arrived)"), std::string::npos)
      << finding.notes[0];
}

TEST(ClusterBarrier, DoesNotWaitForExitedThreads) {
  EXPECT_EQ(find("setp.eq.u32 %p, %rank, 0;\n@%p bra END;\n" + std::string(kClusterSync) + "END:\n").detail, "");
}

// Multicast --------------------------------------------------------------------------------------------------------

/// Rank r loads half r of a 512-byte tile into both CTAs; each CTA waits for the whole tile and stores it to `out`.
std::string multicast(std::string_view expected, std::string_view ending) {
  return init_bars({1}) + std::string(kClusterSync) +
         fmt::format(R"(
    @!%first bra ISSUED;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%bars], {};
    shl.b32 %r0, %rank, 8;
    add.u32 %r1, %base, %r0;
    shr.u32 %r2, %r0, 4;
    shl.b32 %r2, %r2, 2;
    mov.u16 %h0, 3;
    cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r1], [%map_a, {{%r2}}], [%bars], %h0;
    ISSUED:
  )",
                     expected) +
         wait_for("A", 0, "0") +
         fmt::format(R"(
    mad.lo.u32 %r3, %t, 16, %base;
    ld.shared.v4.u32 {{%r4, %r5, %r6, %r7}}, [%r3];
    mad.lo.u32 %r8, %rank, 512, 0;
    mad.lo.u32 %r8, %t, 16, %r8;
    cvt.u64.u32 %x0, %r8;
    add.u64 %x0, %out, %x0;
    st.global.v4.u32 [%x0], {{%r4, %r5, %r6, %r7}};
    {}
  )",
                     ending);
}

Finding run_multicast(const std::string& body, std::vector<U>& result) {
  const auto device = test_device();
  std::vector<U> values(128);
  for (U i = 0; i < 128; ++i) values[i] = 3 * i;
  const auto tensor = upload(device, values);
  const auto out = upload(device, std::vector<U>(256));
  TensorMap d;
  d.type = TensorMapType::u32;
  d.address = tensor.address();
  d.extents[0] = 128;
  d.box[0] = 64;
  const Finding finding = finding_of([&] {
    launch_hopper(*device, hopper_kernel(body), pack_maps({device->encode(d), {}}, {out.address()}),
                  {.block = {32, 1, 1}, .grid = {2, 1, 1}, .cluster = {2, 1, 1}, .dynamic_smem_bytes = 4096});
  });
  result = download<U>(*device, out);
  return finding;
}

TEST(Multicast, ReachesAllCtasOfItsMask) {
  std::vector<U> result;
  EXPECT_EQ(run_multicast(multicast("512", ""), result).detail, "");
  for (U i = 0; i < 256; ++i) EXPECT_EQ(result[i], 3 * (i % 128));
}

TEST(Multicast, ExpectTxMustIncludeThePeersBytes) {
  std::vector<U> result;
  const Finding finding = run_multicast(multicast("256", ""), result);
  // The phase completes too early; the rest of the bytes are counted in the next phase.
  EXPECT_NE(finding.detail, "") << "the missing wait for half of the tile was not found";
}

TEST(ClusterChecks, ExitBeforeARemoteArrival) {
  // Rank 1 arrives at rank 0's mbarrier; rank 0 either waits for that or exits first.
  const auto body = [](std::string_view waits) {
    return init_bars({1}) + std::string(kClusterSync) + "setp.eq.u32 %q, %rank, 0;\n@%q bra FIRST;\n" +
           "mapa.shared::cluster.u32 %r0, %bars, 0;\n"
           "@%first mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r0];\nbra END;\nFIRST:\n" +
           std::string(waits) + "END:\n";
  };
  EXPECT_EQ(find(body(wait_for("A", 0, "0"))).detail, "");
  EXPECT_EQ(find(body("")).kind, FindingKind::exited_cta_access);
}

}  // namespace
}  // namespace tilewright::emulator
