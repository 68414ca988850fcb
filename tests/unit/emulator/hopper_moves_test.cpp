// Other instructions of sm_90 kernels: stmatrix, FP8 conversions, cache hints, griddepcontrol, elect, named barriers.
#include <gtest/gtest.h>

#include <numeric>

#include "hopper_kernel.hpp"
#include "tilewright/base/float_format.hpp"

namespace tilewright::emulator {
namespace {

using U = std::uint32_t;

std::vector<U> run(std::string_view body, U threads = 32) {
  const auto device = test_device();
  const auto out = upload(device, std::vector<U>(1024));
  launch_hopper(*device, hopper_kernel(body), pack_maps({{}, {}}, {out.address()}),
                {.block = {threads, 1, 1}, .dynamic_smem_bytes = 4096});
  return download<U>(*device, out);
}

TEST(Stmatrix, StoresFragmentsAsRows) {
  // Register i of lane l holds 64 * i + 2 * l and the next number: row l / 4, columns 2 * (l % 4) and the next.
  for (const int count : {1, 2, 4}) {
    for (const bool transposed : {false, true}) {
      const std::string registers = count == 1 ? "{%r1}" : count == 2 ? "{%r1, %r2}" : "{%r1, %r2, %r3, %r4}";
      const auto out = run(fmt::format(R"(
        mad.lo.u32 %r0, %t, 16, %base;
        mul.lo.u32 %r5, %t, 131074;
        add.u32 %r1, %r5, 65536;
        add.u32 %r2, %r1, 4194368;
        add.u32 %r3, %r2, 4194368;
        add.u32 %r4, %r3, 4194368;
        stmatrix.sync.aligned.m8n8.x{}{}.shared.b16 [%r0], {};
        bar.sync 0;
        setp.lt.u32 %p, %t, {};
        @%p ld.shared.v4.u32 {{%r6, %r7, %r8, %r9}}, [%r0];
        mad.wide.u32 %x0, %t, 16, %out;
        @%p st.global.v4.u32 [%x0], {{%r6, %r7, %r8, %r9}};
      )",
                                       count, transposed ? ".trans" : "", registers, 8 * count));
      for (int i = 0; i < 64 * count; ++i) {
        const int matrix = i / 64;
        int row = i / 8 % 8;
        int column = i % 8;
        if (transposed) std::swap(row, column);
        const U half =
            i % 2 == 0 ? out[static_cast<std::size_t>(i / 2)] & 0xffff : out[static_cast<std::size_t>(i / 2)] >> 16;
        EXPECT_EQ(half, static_cast<U>(64 * matrix + 8 * row + column)) << count << transposed << " " << i;
      }
    }
  }
}

TEST(Fp8, ConvertsPairs) {
  const auto out = run(R"(
    mov.f32 %f0, 0f3FC00000;
    mov.f32 %f1, 0fC0000000;
    cvt.rn.satfinite.e4m3x2.f32 %h0, %f0, %f1;
    cvt.rn.satfinite.relu.e5m2x2.f32 %h1, %f0, %f1;
    cvt.rn.f16x2.e4m3x2 %r0, %h0;
    cvt.rn.satfinite.e5m2x2.f16x2 %h2, %r0;
    cvt.u32.u16 %r1, %h0;
    cvt.u32.u16 %r2, %h1;
    cvt.u32.u16 %r3, %h2;
    @%first st.global.v4.u32 [%out], {%r0, %r1, %r2, %r3};
  )");
  EXPECT_EQ(out[1], 0x3cc0U);  // e4m3: 1.5 in the upper byte, -2 in the lower
  EXPECT_EQ(out[2], 0x3e00U);  // e5m2: 1.5 in the upper byte, 0 in the lower
  EXPECT_EQ(out[0], U{f32_to_f16(1.5F)} << 16 | f32_to_f16(-2.0F));
  EXPECT_EQ(out[3], 0x3ec0U);
}

TEST(Hints, HaveNoEffect) {
  const auto out = run(R"(
    createpolicy.fractional.L2::evict_first.b64 %x1, 1.0;
    griddepcontrol.wait;
    mad.wide.u32 %x0, %t, 4, %out;
    st.global.L1::no_allocate.L2::cache_hint.u32 [%x0], %t, %x1;
    ld.global.L1::evict_last.L2::128B.L2::cache_hint.u32 %r0, [%x0], %x1;
    prefetch.tensormap [%map_a];
    griddepcontrol.launch_dependents;
    st.global.u32 [%x0+128], %r0;
  )");
  EXPECT_EQ(out[32 + 7], 7U);
}

TEST(Elect, ElectsOneLane) {
  const auto out = run(R"(
    elect.sync %r0|%p, 0xffffffff;
    mad.wide.u32 %x0, %t, 4, %out;
    selp.u32 %r1, 1, 0, %p;
    st.global.u32 [%x0], %r1;
  )");
  EXPECT_EQ(std::accumulate(out.begin(), out.begin() + 32, 0U), 1U);
}

TEST(NamedBarriers, SynchroniseProducerAndConsumerWarps) {
  // Warp 1 writes and arrives at barrier 3, at which warp 0 waits; barrier 4 then releases the buffer.
  const auto out = run(R"(
    mad.lo.u32 %r0, %t, 4, %base;
    setp.ge.u32 %q, %t, 32;
    @%q bra WRITER;
    barrier.sync.aligned 3, 64;
    ld.shared.u32 %r1, [%r0+128];
    mad.wide.u32 %x0, %t, 4, %out;
    st.global.u32 [%x0], %r1;
    bar.arrive 4, 64;
    bra END;
    WRITER:
    st.shared.u32 [%r0], %t;
    barrier.arrive.aligned 3, 64;
    bar.sync 4, 64;
    st.shared.u32 [%r0], 0;
    END:)",
                       64);
  EXPECT_EQ(out[31], 63U);
}

}  // namespace
}  // namespace tilewright::emulator
