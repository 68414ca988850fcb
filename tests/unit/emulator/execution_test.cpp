// Small kernels that test control flow, warp-wide instructions, barriers, state spaces, atomics and cp.async.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "lane_kernel.hpp"

namespace tilewright::emulator {
namespace {

using U = std::uint32_t;

std::vector<U> iota(std::size_t count) {
  std::vector<U> values(count);
  std::iota(values.begin(), values.end(), 0U);
  return values;
}

/// A kernel in which `body` computes %r0, which thread %t stores to out[%t]. `before` precedes the kernel.
std::string thread_kernel(std::string_view body, std::string_view before = "") {
  return fmt::format(
      "{}{}\n.visible .entry k(.param .u64 out)\n{{\n.reg .u32 %t, %r<16>;\n.reg .u64 %at, %x, %rd<8>;\n"
      ".reg .pred %p, %q;\nmov.u32 %t, %tid.x;\n{}\nDONE:\nld.param.u64 %at, [out];\ncvt.u64.u32 %x, %t;\n"
      "mad.lo.u64 %at, %x, 4, %at;\nst.global.u32 [%at], %r0;\nret;\n}}\n",
      kHeader, before, body);
}

std::vector<U> run_threads(std::string_view body, U threads = 32, std::string_view before = "",
                           std::uint32_t dynamic_smem_bytes = 0) {
  const auto device = test_device();
  const runtime::DeviceBuffer out(device, threads * sizeof(U));
  launch(*device, thread_kernel(body, before), "k", {out.address()}, {threads, 1, 1}, {}, dynamic_smem_bytes);
  return download<U>(*device, out);
}

template <class F>
std::vector<U> expected(U threads, F&& formula) {
  std::vector<U> values(threads);
  for (U t = 0; t < threads; ++t) values[t] = formula(t);
  return values;
}

// Control ----------------------------------------------------------------------------------------------------------

TEST(Control, LanesOfAWarpLoopDifferentNumbersOfTimes) {
  EXPECT_EQ(run_threads("mov.u32 %r0, 0;\nmov.u32 %r1, 0;\nLOOP:\nadd.u32 %r0, %r0, %r1;\nadd.u32 %r1, %r1, 1;\n"
                        "setp.le.u32 %p, %r1, %t;\n@%p bra LOOP;"),
            expected(32, [](U t) { return t * (t + 1) / 2; }));
}

TEST(Control, BothSidesOfABranchRunAndReconverge) {
  EXPECT_EQ(run_threads("and.b32 %r1, %t, 1;\nsetp.eq.u32 %p, %r1, 0;\n@%p bra EVEN;\nmul.lo.u32 %r0, %t, 3;\n"
                        "bra.uni JOIN;\nEVEN:\nadd.u32 %r0, %t, 100;\nJOIN:\nactivemask.b32 %r2;\n"
                        "setp.ne.u32 %q, %r2, -1;\n@%q mov.u32 %r0, 0;"),
            expected(32, [](U t) { return t % 2 == 0 ? t + 100 : t * 3; }));
}

TEST(Control, EarlyReturnsAndGuards) {
  EXPECT_EQ(run_threads("mov.u32 %r0, 7;\nsetp.lt.u32 %p, %t, 5;\n@!%p mov.u32 %r0, 8;\nsetp.eq.u32 %q, %t, 9;\n"
                        "@%q mov.u32 %r0, 9;\n@%q bra DONE;\nadd.u32 %r0, %r0, 10;"),
            expected(32, [](U t) { return t == 9  ? 9U
                                          : t < 5 ? 17U
                                                  : 18U; }));
}

TEST(Control, BrxTakesTargetsFromATable) {
  EXPECT_EQ(run_threads("and.b32 %r1, %t, 3;\nTABLE: .branchtargets A, B, C, A;\nbrx.idx %r1, TABLE;\n"
                        "A: mov.u32 %r0, 1;\nbra.uni DONE;\nB: mov.u32 %r0, 2;\nbra.uni DONE;\nC: mov.u32 %r0, 3;"),
            expected(32, [](U t) { return t % 4 == 1   ? 2U
                                          : t % 4 == 2 ? 3U
                                                       : 1U; }));
}

TEST(Control, CallsFunctions) {
  const std::string_view functions = R"(
.func (.param .b32 result) triple(.param .b32 value)
{
  .local .align 4 .b8 frame[8];
  .reg .u32 %v, %w;
  .reg .pred %p;
  ld.param.u32 %v, [value];
  setp.eq.u32 %p, %v, 4;
  @%p bra FOUR;
  st.local.u32 [frame+4], %v;
  ld.local.u32 %w, [frame+4];
  mad.lo.u32 %v, %w, 2, %v;
  st.param.u32 [result], %v;
  ret;
FOUR:
  st.param.u32 [result], 1000;
  ret;
}
)";
  EXPECT_EQ(run_threads(R"(
{ .param .b32 a; st.param.u32 [a], %t; .param .b32 r; call.uni (r), triple, (a); ld.param.u32 %r0, [r]; }
setp.lt.u32 %p, %t, 2;
{ .param .b32 a; st.param.u32 [a], %r0; .param .b32 r; st.param.u32 [r], 5; @%p call (r), triple, (a);
  ld.param.u32 %r0, [r]; })",
                        32, functions),
            expected(32, [](U t) { return t < 2 ? 9 * t : 5U; }));
}

/// The Fibonacci numbers, with two recursive calls after which the argument and the first result are still needed.
constexpr std::string_view kFibonacci = R"(
.func (.param .b32 result) fibonacci(.param .b32 value)
{
  .local .align 4 .b8 kept[4];
  .reg .u32 %v, %w, %x;
  .reg .pred %p;
  ld.param.u32 %v, [value];
  setp.lt.u32 %p, %v, 2;
  @%p bra SMALL;
  st.local.u32 [kept], %v;
  sub.u32 %w, %v, 1;
  { .param .b32 a; st.param.u32 [a], %w; .param .b32 r; call.uni (r), fibonacci, (a); ld.param.u32 %x, [r]; }
  ld.local.u32 %v, [kept];
  sub.u32 %w, %v, 2;
  { .param .b32 a; st.param.u32 [a], %w; .param .b32 r; call.uni (r), fibonacci, (a); ld.param.u32 %w, [r]; }
  add.u32 %v, %x, %w;
SMALL:
  st.param.u32 [result], %v;
  ret;
}
)";

TEST(Control, RecursiveFunctionsAreInlinedToSomeLevel) {
  const std::string_view call =
      "and.b32 %r1, %t, 7;\n"
      "{ .param .b32 a; st.param.u32 [a], %r1; .param .b32 r; call.uni (r), fibonacci, (a); ld.param.u32 %r0, [r]; }";
  const U fibonacci[] = {0, 1, 1, 2, 3, 5, 8, 13};
  EXPECT_EQ(run_threads(call, 32, kFibonacci), expected(32, [&](U t) { return fibonacci[t % 8]; }));
  const Finding finding = finding_of([&] {
    run_threads(
        "mov.u32 %r1, 40;\n"
        "{ .param .b32 a; st.param.u32 [a], %r1; .param .b32 r; call.uni (r), fibonacci, (a); }",
        32, kFibonacci);
  });
  EXPECT_EQ(finding.kind, FindingKind::unsupported_instruction);
  EXPECT_NE(finding.detail.find("recursion of fibonacci into more than 11 levels"), std::string::npos)
      << finding.detail;
}

TEST(Control, RecursionWithOneCallGoesDeep) {
  // name(0) is `of_zero`, and name(v) is other(v - 1).
  const auto function = [](std::string_view name, int of_zero, std::string_view other) {
    return fmt::format(R"(
.func (.param .b32 result) {0}(.param .b32 value)
{{
  .reg .u32 %v;
  .reg .pred %p;
  ld.param.u32 %v, [value];
  setp.eq.u32 %p, %v, 0;
  st.param.u32 [result], {1};
  @%p ret;
  sub.u32 %v, %v, 1;
  {{ .param .b32 a; st.param.u32 [a], %v; .param .b32 r; call.uni (r), {2}, (a); ld.param.u32 %v, [r]; }}
  st.param.u32 [result], %v;
  ret;
}}
)",
                       name, of_zero, other);
  };
  const std::string functions =
      ".func (.param .b32 result) odd(.param .b32 value);" + function("even", 1, "odd") + function("odd", 0, "even");
  EXPECT_EQ(run_threads("{ .param .b32 a; st.param.u32 [a], %t; .param .b32 r; call.uni (r), even, (a);"
                        " ld.param.u32 %r0, [r]; }",
                        64, functions),
            expected(64, [](U t) { return 1 - t % 2; }));
  const Finding finding = finding_of([&] { run_threads("call f, ();", 32, ".func f() { call f, (); ret; }\n"); });
  EXPECT_EQ(finding.kind, FindingKind::unsupported_instruction);
  EXPECT_NE(finding.detail.find("recursion of f into more than 64 levels"), std::string::npos) << finding.detail;
}

TEST(Control, ALaneMaySpinOnAnotherLaneOfItsWarp) {
  // Lanes 0 to 30 spin on a flag that lane 31 sets, on a path with a higher program counter.
  EXPECT_EQ(run_threads("setp.eq.u32 %p, %t, 31;\n@%p bra SET;\nSPIN:\nld.volatile.shared.u32 %r1, [flag];\n"
                        "setp.ne.u32 %q, %r1, 42;\n@%q bra SPIN;\nbra.uni JOIN;\nSET:\nst.volatile.shared.u32 [flag], "
                        "42;\nJOIN:\nmov.u32 %r0, %t;",
                        32, ".shared .u32 flag;\n"),
            iota(32));
}

TEST(Control, AnEndlessLoopIsReported) {
  EmulatorOptions options;
  options.steps_per_cta = 100000;
  const auto device = test_device(options);
  const runtime::DeviceBuffer out(device, 128);
  const Finding finding = finding_of([&] {
    launch(*device, thread_kernel("LOOP: bra LOOP;"), "k", {out.address()}, {32, 1, 1});
  });
  EXPECT_EQ(finding.kind, FindingKind::no_progress);
}

TEST(Control, TrapIsReported) {
  const Finding finding = finding_of([] { run_threads("setp.eq.u32 %p, %t, 3;\n@%p trap;"); });
  EXPECT_EQ(finding.kind, FindingKind::trap);
  EXPECT_EQ(finding.thread->thread.x, 3U);
}

// Special registers ------------------------------------------------------------------------------------------------

TEST(SpecialRegister, ThreadAndCtaIndices) {
  const std::string text = fmt::format(
      "{}.visible .entry k(.param .u64 out)\n{{\n.reg .u32 %a, %b, %c, %i;\n.reg .u64 %at, %x;\n"
      "mov.u32 %a, %tid.y;\nmov.u32 %b, %ntid.x;\nmov.u32 %c, %tid.x;\nmad.lo.u32 %i, %a, %b, %c;\n"
      "mov.u32 %a, %ctaid.y;\nmov.u32 %b, %nctaid.x;\nmov.u32 %c, %ctaid.x;\nmad.lo.u32 %a, %a, %b, %c;\n"
      "mad.lo.u32 %i, %a, 8, %i;\nld.param.u64 %at, [out];\ncvt.u64.u32 %x, %i;\nmad.lo.u64 %at, %x, 4, %at;\n"
      "st.global.u32 [%at], %i;\nret;\n}}\n",
      kHeader);
  EmulatorOptions options;
  options.threads = 3;
  const auto device = make_emulated_device(kSm90a, options);
  const runtime::DeviceBuffer out(device, 6 * 8 * 4);
  launch(*device, text, "k", {out.address()}, {4, 2, 1}, {3, 2, 1});
  EXPECT_EQ(download<U>(*device, out), iota(48));
}

TEST(SpecialRegister, LaneMasksAndWarpIndices) {
  EXPECT_EQ(run_threads("mov.u32 %r0, %lanemask_lt;", 64), expected(64, [](U t) { return (1U << (t % 32)) - 1; }));
  EXPECT_EQ(run_threads("mov.u32 %r0, %warpid;", 64), expected(64, [](U t) { return t / 32; }));
}

// Warp-wide --------------------------------------------------------------------------------------------------------

TEST(Warp, Shuffles) {
  EXPECT_EQ(run_threads("shfl.sync.bfly.b32 %r0, %t, 5, 31, -1;"), expected(32, [](U t) { return t ^ 5; }));
  EXPECT_EQ(run_threads("shfl.sync.down.b32 %r0|%p, %t, 3, 31, -1;\n@!%p mov.u32 %r0, 99;"),
            expected(32, [](U t) { return t + 3 < 32 ? t + 3 : 99U; }));
  EXPECT_EQ(run_threads("shfl.sync.up.b32 %r0, %t, 1, 0x1800, -1;"),
            expected(32, [](U t) { return t % 8 == 0 ? t : t - 1; }));
  EXPECT_EQ(run_threads("shfl.sync.idx.b32 %r0, %t, 2, 0x1c1f, -1;"), expected(32, [](U t) { return t / 4 * 4 + 2; }));
}

TEST(Warp, VotesMatchesAndReductions) {
  EXPECT_EQ(run_threads("setp.lt.u32 %p, %t, 3;\nvote.sync.ballot.b32 %r0, %p, -1;"),
            expected(32, [](U) { return 7U; }));
  EXPECT_EQ(run_threads("setp.lt.u32 %p, %t, 3;\nvote.sync.any.pred %q, %p, -1;\nselp.u32 %r0, 1, 0, %q;"),
            expected(32, [](U) { return 1U; }));
  EXPECT_EQ(run_threads("and.b32 %r1, %t, 1;\nmatch.any.sync.b32 %r0, %r1, -1;"),
            expected(32, [](U t) { return t % 2 == 0 ? 0x55555555U : 0xaaaaaaaaU; }));
  EXPECT_EQ(run_threads("redux.sync.add.u32 %r0, %t, -1;"), expected(32, [](U) { return 496U; }));
  EXPECT_EQ(run_threads("sub.u32 %r1, %t, 9;\nredux.sync.min.s32 %r0, %r1, -1;"),
            expected(32, [](U) { return static_cast<U>(-9); }));
  EXPECT_EQ(run_threads("elect.sync %r0|%p, -1;\nselp.u32 %r0, 1, 0, %p;"), expected(32, [](U t) { return t == 0; }));
}

TEST(Warp, MembersReconverge) {
  EXPECT_EQ(run_threads("setp.lt.u32 %p, %t, 16;\n@%p bra LOW;\nadd.u32 %r1, %t, 100;\nbra.uni JOIN;\nLOW:\n"
                        "mov.u32 %r1, %t;\nJOIN:\nshfl.sync.bfly.b32 %r0, %r1, 16, 31, -1;"),
            expected(32, [](U t) { return t < 16 ? t + 116 : t - 16; }));
}

TEST(Warp, MembersThatNeverArriveAreReported) {
  const Finding finding = finding_of([] {
    run_threads(
        "mov.u32 %r0, 0;\nsetp.lt.u32 %p, %t, 16;\n@%p bra LOW;\nshfl.sync.bfly.b32 %r0, %t, 1, 31, -1;\n"
        "bra.uni DONE;\nLOW:\nbar.warp.sync -1;");
  });
  EXPECT_EQ(finding.kind, FindingKind::barrier_divergence);
}

// Memory -----------------------------------------------------------------------------------------------------------

TEST(Memory, StateSpacesAndGenericAddresses) {
  EXPECT_EQ(run_threads(".local .align 8 .b8 frame[16];\ncvt.u64.u32 %rd0, %t;\nmul.lo.u64 %rd0, %rd0, 4;\n"
                        "mov.u64 %rd1, tile;\ncvta.shared.u64 %rd2, %rd1;\nadd.u64 %rd2, %rd2, %rd0;\n"
                        "st.u32 [%rd2], %t;\nadd.u64 %rd3, %rd1, %rd0;\nld.shared.u32 %r1, [%rd3];\n"
                        "mov.u64 %rd4, frame;\ncvta.local.u64 %rd5, %rd4;\nst.u32 [%rd5+4], %r1;\n"
                        "ld.local.u32 %r2, [frame+4];\nld.const.u32 %r3, [numbers+4];\nadd.u32 %r0, %r2, %r3;",
                        32, ".const .align 4 .u32 numbers[2] = {5, 1000};\n.shared .align 8 .b8 tile[128];\n"),
            expected(32, [](U t) { return t + 1000; }));
}

TEST(Memory, VectorsAndNarrowElements) {
  EXPECT_EQ(run_threads("mul.lo.u32 %r1, %t, 16;\nmov.u32 %r2, tile;\nadd.u32 %r1, %r1, %r2;\n"
                        "st.shared.v4.u32 [%r1], {%t, 1, 2, 3};\nst.shared.u8 [%r1+5], 2;\n"
                        "ld.shared.v2.u32 {%r3, %r4}, [%r1];\nld.shared.s8 %r5, [%r1+12];\nadd.u32 %r0, %r3, %r4;\n"
                        "add.u32 %r0, %r0, %r5;",
                        32, ".shared .align 16 .b8 tile[512];\n"),
            expected(32, [](U t) { return t + 1 + 512 + 3; }));
}

TEST(Memory, DynamicSharedMemoryFollowsStaticVariables) {
  EXPECT_EQ(run_threads("mov.u32 %r1, dynamic;\nmov.u32 %r2, fixed;\nsub.u32 %r0, %r1, %r2;\n"
                        "mad.lo.u32 %r1, %t, 4, %r1;\nst.shared.u32 [%r1], %t;",
                        32, ".extern .shared .align 128 .b8 dynamic[];\n.shared .align 4 .b8 fixed[100];\n", 128),
            expected(32, [](U) { return 256U; }));  // 100 bytes and a red zone, rounded up to the alignment
}

TEST(Memory, GlobalVariablesAreInitialised) {
  EXPECT_EQ(run_threads("ld.global.u64 %rd0, [pointer];\nld.u32 %r0, [%rd0];", 32,
                        ".global .align 4 .u32 values[3] = {7, 8, 9};\n.global .align 8 .u64 pointer = "
                        "generic(values)+8;\n"),
            expected(32, [](U) { return 9U; }));
}

TEST(Atomic, OnSharedMemoryOfAllLanes) {
  EXPECT_EQ(run_threads("mov.u32 %r1, 0;\nsetp.eq.u32 %p, %t, 0;\n@%p st.shared.u32 [sum], %r1;\nbar.sync 0;\n"
                        "atom.shared.add.u32 %r2, [sum], %t;\nred.shared.max.u32 [sum], 3;\nbar.sync 0;\n"
                        "ld.shared.u32 %r0, [sum];",
                        64, ".shared .u32 sum;\n"),
            expected(64, [](U) { return 2016U; }));
}

TEST(Atomic, OnGlobalMemoryOfAllCtas) {
  const std::string text = fmt::format(
      "{}.visible .entry k(.param .u64 out)\n{{\n.reg .u64 %at;\n.reg .f32 %f;\nld.param.u64 %at, [out];\n"
      "mov.f32 %f, 0f3F800000;\nred.global.add.f32 [%at], %f;\natom.global.cas.b32 _, [%at+4], 0, 5;\n"
      "red.global.inc.u32 [%at+8], 9;\nred.relaxed.gpu.global.add.noftz.f16x2 [%at+12], 0x3c003c00;\nret;\n}}\n",
      kHeader);
  EmulatorOptions options;
  options.threads = 4;
  const auto device = test_device(options);
  const auto out = upload(device, std::vector<U>(4, 0));
  launch(*device, text, "k", {out.address()}, {32, 1, 1}, {16, 1, 1});
  const auto words = download<U>(*device, out);
  EXPECT_EQ(std::bit_cast<float>(words[0]), 512.0F);
  EXPECT_EQ(words[1], 5U);
  EXPECT_EQ(words[2], 512U % 10);
  EXPECT_EQ(words[3], 0x60006000U);  // 512 in both halves
}

// Barriers ---------------------------------------------------------------------------------------------------------

TEST(Barrier, SyncOrdersWritesOfOtherWarps) {
  EXPECT_EQ(run_threads("mov.u32 %r1, tile;\nmad.lo.u32 %r2, %t, 4, %r1;\nst.shared.u32 [%r2], %t;\nbar.sync 0;\n"
                        "sub.u32 %r3, 127, %t;\nmad.lo.u32 %r2, %r3, 4, %r1;\nld.shared.u32 %r0, [%r2];",
                        128, ".shared .align 4 .b8 tile[512];\n"),
            expected(128, [](U t) { return 127 - t; }));
}

TEST(Barrier, ProducersArriveAndConsumersWait) {
  // Warp 0 writes and arrives; warp 1 waits at the same barrier and reads.
  EXPECT_EQ(run_threads("mov.u32 %r1, tile;\nand.b32 %r3, %t, 31;\nmad.lo.u32 %r2, %r3, 4, %r1;\nmov.u32 %r0, 1;\n"
                        "setp.ge.u32 %p, %t, 32;\n@%p bra CONSUMER;\nst.shared.u32 [%r2], %t;\nbar.arrive 3, 64;\n"
                        "bra.uni DONE;\nCONSUMER:\nbar.sync 3, 64;\nld.shared.u32 %r0, [%r2];",
                        64, ".shared .align 4 .b8 tile[128];\n"),
            expected(64, [](U t) { return t < 32 ? 1 : t - 32; }));
}

TEST(Barrier, Red) {
  EXPECT_EQ(run_threads("setp.lt.u32 %p, %t, 40;\nbarrier.cta.red.popc.aligned.u32 %r0, 0, %p;", 64),
            expected(64, [](U) { return 40U; }));
  EXPECT_EQ(run_threads("setp.lt.u32 %p, %t, 40;\nbar.red.and.pred %q, 0, %p;\nselp.u32 %r0, 1, 0, %q;", 64),
            expected(64, [](U) { return 0U; }));
  EXPECT_EQ(run_threads("setp.lt.u32 %p, %t, 1;\nbar.red.or.pred %q, 0, %p;\nselp.u32 %r0, 1, 0, %q;", 96),
            expected(96, [](U) { return 1U; }));
}

TEST(Barrier, AWarpMaySpinOnAnotherWarp) {
  EXPECT_EQ(run_threads("mov.u32 %r0, %t;\nsetp.ge.u32 %p, %t, 32;\n@%p bra SET;\nSPIN:\n"
                        "ld.acquire.cta.shared.u32 %r1, [flag];\nsetp.ne.u32 %q, %r1, 42;\n@%q bra SPIN;\n"
                        "ld.shared.u32 %r0, [data];\nbra.uni DONE;\nSET:\nst.shared.u32 [data], 5;\nmembar.cta;\n"
                        "st.release.cta.shared.u32 [flag], 42;",
                        64, ".shared .u32 flag;\n.shared .u32 data;\n"),
            expected(64, [](U t) { return t < 32 ? 5 : t; }));
}

// Asynchronous copies ----------------------------------------------------------------------------------------------

std::string copy_kernel(std::string_view after_copy) {
  return fmt::format(R"({}.shared .align 16 .b8 tile[512];
.visible .entry k(.param .u64 out, .param .u64 in)
{{
  .reg .u32 %t, %s, %n, %r<4>;
  .reg .u64 %at, %x, %from;
  .reg .pred %p;
  mov.u32 %t, %tid.x;
  mov.u32 %s, tile;
  mad.lo.u32 %s, %t, 16, %s;
  cvt.u64.u32 %x, %t;
  mul.lo.u64 %x, %x, 16;
  ld.param.u64 %from, [in];
  add.u64 %from, %from, %x;
  setp.lt.u32 %p, %t, 8;
  selp.u32 %n, 8, 16, %p;
  {}
  ld.shared.v4.u32 {{%r0, %r1, %r2, %r3}}, [%s];
  ld.param.u64 %at, [out];
  add.u64 %at, %at, %x;
  st.global.v4.u32 [%at], {{%r0, %r1, %r2, %r3}};
  ret;
}}
)",
                     kHeader, after_copy);
}

std::vector<U> run_copy(std::string_view body, std::size_t source_words = 128) {
  const auto device = test_device();
  std::vector<U> values = iota(source_words);
  for (U& value : values) ++value;
  const auto in = upload(device, values);
  const runtime::DeviceBuffer out(device, 512);
  launch(*device, copy_kernel(body), "k", {out.address(), in.address()}, {32, 1, 1});
  return download<U>(*device, out);
}

TEST(CpAsync, CopiesAndFillsWithZeros) {
  EXPECT_EQ(run_copy("cp.async.cg.shared.global.L2::128B [%s], [%from], 16, %n;\ncp.async.commit_group;\n"
                     "cp.async.wait_group 0;"),
            expected(128, [](U i) { return i / 4 < 8 && i % 4 >= 2 ? 0 : i + 1; }));
  EXPECT_EQ(run_copy("cp.async.ca.shared.global [%s], [%from], 16, %p;\ncp.async.wait_all;"),
            expected(128, [](U i) { return i / 4 < 8 ? 0 : i + 1; }));
}

TEST(CpAsync, ReadsOnlySrcSizeBytes) {
  // The source buffer has 8 bytes, which lane 0 reads; the other lanes have src-size 0.
  EXPECT_EQ(run_copy("setp.eq.u32 %p, %t, 0;\nselp.u32 %n, 8, 0, %p;\n"
                     "cp.async.cg.shared.global [%s], [%from], 16, %n;\ncp.async.wait_all;",
                     2),
            expected(128, [](U i) { return i < 2 ? i + 1 : 0; }));
}

TEST(CpAsync, GroupsCompleteInOrder) {
  const std::string groups =
      "cp.async.cg.shared.global [%s], [%from], 16;\ncp.async.commit_group;\ncp.async.commit_group;\n";
  EXPECT_EQ(run_copy(groups + "cp.async.wait_group 1;"), expected(128, [](U i) { return i + 1; }));
  EXPECT_EQ(finding_of([&] { run_copy(groups + "cp.async.wait_group 2;"); }).kind, FindingKind::async_write_in_flight);
}

TEST(CpAsync, MissingWaitIsReported) {
  const Finding finding =
      finding_of([] { run_copy("cp.async.cg.shared.global [%s], [%from], 16;\ncp.async.commit_group;\nbar.sync 0;"); });
  EXPECT_EQ(finding.kind, FindingKind::async_write_in_flight);
  EXPECT_EQ(finding.location.ptx_text.substr(0, 9), "ld.shared");
}

TEST(Execution, TheLogSaysHowFarALongLaunchIs) {
  const auto lines = [](double seconds) {
    const auto device = test_device({.progress_seconds = seconds});
    testing::internal::CaptureStdout();
    launch(*device, std::string(kHeader) + ".visible .entry nothing() { ret; }", "nothing", {}, {32, 1, 1}, {3, 1, 1});
    return testing::internal::GetCapturedStdout();
  };
  EXPECT_THAT(lines(1e-9),
              testing::AllOf(testing::HasSubstr("the emulator has run 1 of 3 CTAs of a launch after 0 s"),
                             testing::HasSubstr("has run 2 of 3 CTAs"), testing::Not(testing::HasSubstr("3 of 3"))));
  EXPECT_EQ(lines(0), "");
}

}  // namespace
}  // namespace tilewright::emulator
