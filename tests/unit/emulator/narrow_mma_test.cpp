// Products of elements of less than a byte by wmma and wgmma, and mma.m8n8k4 of f16, compared with plain loops.
#include <gtest/gtest.h>

#include <bit>
#include <random>

#include "hopper_kernel.hpp"
#include "tilewright/base/float_format.hpp"

namespace tilewright::emulator {
namespace {

using U = std::uint32_t;

template <class T>
std::vector<T> run(const std::string& body, const std::vector<T>& memory, std::uint32_t threads) {
  const auto device = test_device();
  const auto out = upload(device, memory);
  launch_hopper(*device, hopper_kernel(body), pack_maps({{}, {}}, {out.address()}),
                {.block = {threads, 1, 1}, .dynamic_smem_bytes = 16384});
  return download<T>(*device, out);
}

int nibble(U word, std::size_t index, bool is_signed) {
  const int value = static_cast<int>(word >> (4 * index)) & 15;
  return is_signed && value > 7 ? value - 16 : value;
}

// A is at word 0, B at word 64, C at word 128; D replaces C. Leading dimensions are twice the extents.
TEST(NarrowWmma, EqualsPlainLoops) {
  std::mt19937 random(3);
  for (const auto& [types, operation, shape] : {std::tuple{"s4.s4", "", "m8n8k32"},
                                                {"s4.s4", ".satfinite", "m8n8k32"},
                                                {"u4.u4", "", "m8n8k32"},
                                                {"b1.b1", ".xor.popc", "m8n8k128"},
                                                {"b1.b1", ".and.popc", "m8n8k128"}}) {
    const std::string_view a_type = std::string_view(types).substr(0, 2), b_type = std::string_view(types).substr(3);
    const bool bits = a_type == "b1", clamps = std::string_view(operation) == ".satfinite";
    std::vector<U> memory(256);
    for (U& word : memory) word = static_cast<U>(random());
    for (std::size_t i = 128; i < 192; ++i) memory[i] = static_cast<U>(i) - 160;
    if (clamps) memory[128] = 0x7fffffff;
    const int leading = bits ? 256 : 64;
    const std::string body = fmt::format(
        "add.u64 %x1, %out, 256;\nadd.u64 %x2, %out, 512;\n"
        "wmma.load.a.sync.aligned.row.{0}.global.{1} {{%r0}}, [%out], {3};\n"
        "wmma.load.b.sync.aligned.col.{0}.global.{2} {{%r1}}, [%x1], {3};\n"
        "wmma.load.c.sync.aligned.row.{0}.global.s32 {{%r2, %r3}}, [%x2];\n"
        "wmma.mma{4}.sync.aligned.row.col.{0}.s32.{1}.{2}.s32{5} {{%r4, %r5}}, {{%r0}}, {{%r1}}, {{%r2, %r3}};\n"
        "wmma.store.d.sync.aligned.row.{0}.global.s32 [%x2], {{%r4, %r5}};\n",
        shape, a_type, b_type, leading, clamps ? "" : operation, clamps ? operation : "");
    const std::vector<U> result = run(body, memory, 32);
    for (std::size_t m = 0; m < 8; ++m) {
      for (std::size_t n = 0; n < 8; ++n) {
        std::int64_t sum = static_cast<std::int32_t>(memory[128 + 8 * m + n]);
        for (std::size_t word = 0; word < 4; ++word) {
          const U x = memory[8 * m + word], y = memory[64 + 8 * n + word];
          if (bits) sum += std::popcount(std::string_view(operation) == ".and.popc" ? x & y : x ^ y);
          for (std::size_t i = 0; i < 8 && !bits; ++i)
            sum += nibble(x, i, a_type == "s4") * nibble(y, i, b_type == "s4");
        }
        if (clamps) sum = std::min<std::int64_t>(sum, 0x7fffffff);
        EXPECT_EQ(result[128 + 8 * m + n], static_cast<U>(sum)) << types << operation << " " << m << " " << n;
      }
    }
  }
}

// Without a swizzle: 8 rows of 16 bytes are a core matrix; the two of a row of 32 bytes are 128 bytes apart.
TEST(BitWgmma, CountsCommonBits) {
  std::mt19937 random(4);
  for (const bool registers : {false, true}) {
    std::vector<U> memory(1024 +
                          128 * 8);  // 2048 bytes of A, 256 of B at word 512, A in registers at word 640, D at 1024
    for (U& word : memory) word = static_cast<U>(random());
    const auto word_of = [](std::size_t row, std::size_t word) {
      return row / 8 * 64 + word / 4 * 32 + row % 8 * 4 + word % 4;
    };
    std::vector<U> expected;
    const auto descriptor = [](int address) {
      return static_cast<std::uint64_t>(address >> 4) | std::uint64_t{8} << 16 | std::uint64_t{16} << 32;
    };
    std::string body = fmt::format(R"(
    shl.b32 %r0, %t, 4;
    FILL:
    cvt.u64.u32 %x0, %r0;
    add.u64 %x0, %out, %x0;
    ld.global.v4.u32 {{%r4, %r5, %r6, %r7}}, [%x0];
    add.u32 %r1, %base, %r0;
    st.shared.v4.u32 [%r1], {{%r4, %r5, %r6, %r7}};
    add.u32 %r0, %r0, 2048;
    setp.lt.u32 %p, %r0, 4096;
    @%p bra FILL;
    fence.proxy.async.shared::cta;
    bar.sync 0;
    )");
    // The fragment of A: words l % 4 and l % 4 + 4 of rows l / 4 and l / 4 + 8 of the warp's rows.
    body +=
        "shr.u32 %r23, %t, 5;\nshl.b32 %r23, %r23, 9;\nand.b32 %r24, %t, 31;\nshr.u32 %r25, %r24, 2;\n"
        "shl.b32 %r25, %r25, 4;\nand.b32 %r24, %r24, 3;\nshl.b32 %r24, %r24, 2;\nadd.u32 %r23, %r23, %r25;\n"
        "add.u32 %r23, %r23, %r24;\nadd.u32 %r23, %r23, %base;\n"
        "ld.shared.u32 %d8, [%r23];\nld.shared.u32 %d9, [%r23+256];\nld.shared.u32 %d10, [%r23+128];\n"
        "ld.shared.u32 %d11, [%r23+384];\n";
    for (int i = 0; i < 4; ++i) body += fmt::format("mov.u32 %d{}, {};\n", i, i);
    body += fmt::format(
        "setp.ne.u32 %q, 1, 0;\nwgmma.fence.sync.aligned;\n"
        "wgmma.mma_async.sync.aligned.m64n8k256.s32.b1.b1.and.popc {{%d0, %d1, %d2, %d3}}, {}, {}, %q;\n"
        "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\nmad.wide.u32 %x2, %t, 16, %out;\n"
        "st.global.v4.b32 [%x2+4096], {{%d0, %d1, %d2, %d3}};\n",
        registers ? std::string("{%d8, %d9, %d10, %d11}") : fmt::format("{}", descriptor(2048)), descriptor(4096));
    const std::vector<U> result = run(body, memory, 128);
    for (std::size_t t = 0; t < 128; ++t) {
      for (std::size_t i = 0; i < 4; ++i) {
        const std::size_t row = t / 32 * 16 + t % 32 / 4 + i / 2 * 8, column = t % 4 * 2 + i % 2;
        U sum = static_cast<U>(i);
        for (std::size_t word = 0; word < 8; ++word)
          sum += static_cast<U>(std::popcount(memory[word_of(row, word)] & memory[512 + word_of(column, word)]));
        ASSERT_EQ(result[1024 + 4 * t + i], sum) << registers << " " << row << " " << column;
      }
    }
  }
}

// Each lane has 48 halves: 4 of A, 4 of B, and 8 of C as f16 or f32; D replaces C.
TEST(QuadPairMma, ComputesFourProducts) {
  std::mt19937 random(5);
  for (const auto& [d, c] : {std::pair{"f16", "f16"}, {"f32", "f16"}, {"f32", "f32"}}) {
    for (const auto& [a_layout, b_layout] : {std::pair{"row", "col"}, {"row", "row"}, {"col", "row"}, {"col", "col"}}) {
      const bool c_half = std::string_view(c) == "f16", d_half = std::string_view(d) == "f16";
      int a[4][8][4], b[4][4][8], sums[4][8][8];
      for (auto& values : a)
        for (auto& row : values)
          for (int& value : row) value = static_cast<int>(random() % 9) - 4;
      for (auto& values : b)
        for (auto& row : values)
          for (int& value : row) value = static_cast<int>(random() % 9) - 4;
      for (auto& values : sums)
        for (auto& row : values)
          for (int& value : row) value = static_cast<int>(random() % 99);
      // PTX ISA, "Matrix Fragments for mma.m8n8k4 with .f16 floating point type".
      const auto place = [](int lane, int i, bool half) {
        const int upper = lane < 16 ? 0 : 4;
        return half ? std::pair{lane % 4 + upper, i}
                    : std::pair{(lane & 1) + (i & 2) + upper, (i & 4) + (lane & 2) + (i & 1)};
      };
      std::vector<std::uint16_t> memory(32 * 48);
      const auto put = [&](std::size_t at, int value, bool half) {
        const std::uint32_t bits =
            half ? f32_to_f16(static_cast<float>(value)) : std::bit_cast<U>(static_cast<float>(value));
        std::memcpy(&memory[at], &bits, half ? 2 : 4);
      };
      for (int lane = 0; lane < 32; ++lane) {
        const int quad = lane / 4 % 4, upper = lane < 16 ? 0 : 4;
        const auto at = static_cast<std::size_t>(48 * lane);
        for (int i = 0; i < 4; ++i) {
          const bool a_row = std::string_view(a_layout) == "row", b_row = std::string_view(b_layout) == "row";
          put(at + static_cast<std::size_t>(i), a_row ? a[quad][lane % 4 + upper][i] : a[quad][i + upper][lane % 4],
              true);
          put(at + 4 + static_cast<std::size_t>(i), b_row ? b[quad][lane % 4][i + upper] : b[quad][i][lane % 4 + upper],
              true);
        }
        for (int i = 0; i < 8; ++i) {
          const auto [row, column] = place(lane, i, c_half);
          put(at + 8 + static_cast<std::size_t>(c_half ? i : 2 * i), sums[quad][row][column], c_half);
        }
      }
      for (int quad = 0; quad < 4; ++quad)
        for (int m = 0; m < 8; ++m)
          for (int n = 0; n < 8; ++n)
            for (int k = 0; k < 4; ++k) sums[quad][m][n] += a[quad][m][k] * b[quad][k][n];
      std::string body = "mul.lo.u32 %r63, %t, 96;\ncvt.u64.u32 %x0, %r63;\nadd.u64 %x0, %x0, %out;\n";
      const auto list = [](int first, int count) {
        std::string text = "{";
        for (int i = 0; i < count; ++i) text += fmt::format("{}%r{}", i == 0 ? "" : ", ", first + i);
        return text + "}";
      };
      for (int i = 0; i < 12; ++i) body += fmt::format("ld.global.b32 %r{}, [%x0+{}];\n", i, 4 * i);
      body += fmt::format("mma.sync.aligned.m8n8k4.{}.{}.{}.f16.f16.{} {}, {}, {}, {};\n", a_layout, b_layout, d, c,
                          list(20, d_half ? 4 : 8), list(0, 2), list(2, 2), list(4, c_half ? 4 : 8));
      for (int i = 0; i < (d_half ? 4 : 8); ++i)
        body += fmt::format("st.global.b32 [%x0+{}], %r{};\n", 16 + 4 * i, 20 + i);
      const auto result = run(body, memory, 32);
      for (int lane = 0; lane < 32; ++lane) {
        for (int i = 0; i < 8; ++i) {
          const auto [row, column] = place(lane, i, d_half);
          const std::size_t at = static_cast<std::size_t>(48 * lane + 8 + (d_half ? i : 2 * i));
          float value = f16_to_f32(result[at]);
          if (!d_half) std::memcpy(&value, &result[at], 4);
          EXPECT_EQ(value, static_cast<float>(sums[lane / 4 % 4][row][column]))
              << d << c << a_layout << b_layout << lane;
        }
      }
    }
  }
}

}  // namespace
}  // namespace tilewright::emulator
