// All mma.sync of arch/mma_atom, and ldmatrix, compared with plain loops over matrices.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>

#include "lane_kernel.hpp"
#include "tilewright/arch/mma_atom.hpp"
#include "tilewright/base/float_format.hpp"

namespace tilewright::emulator {
namespace {

using arch::MmaAtom;

/// The bits of a small integer in the type.
std::uint64_t encode(DType type, int value) {
  switch (type) {
    case DType::f64:
      return std::bit_cast<std::uint64_t>(static_cast<double>(value));
    case DType::f32:
      return std::bit_cast<std::uint32_t>(static_cast<float>(value));
    case DType::tf32:  // the low bits are ignored by the instruction
      return std::bit_cast<std::uint32_t>(static_cast<float>(value)) | 0x1234U;
    case DType::f16:
      return f32_to_f16(static_cast<float>(value));
    case DType::bf16:
      return f32_to_bf16(static_cast<float>(value));
    case DType::s32:
      return static_cast<std::uint32_t>(value);
    case DType::s8:
    case DType::u8:
      return static_cast<std::uint8_t>(value);
    default:  // not emulated, see is_emulated()
      return 0;
  }
}

int width(DType type) { return type == DType::f64 ? 8 : type == DType::s8 || type == DType::u8 ? 1 : bits(type) / 8; }

/// The registers of all lanes, lane-major, with values packed from the low bits.
std::vector<std::byte> fragment(const layout::Layout& tv, DType type, int rows, int registers, int register_bytes,
                                const std::vector<int>& column_major) {
  const int values = static_cast<int>(layout::size(tv)) / 32;
  std::vector<std::byte> bytes(static_cast<std::size_t>(32 * registers * register_bytes));
  EXPECT_EQ(static_cast<int>(column_major.size()) % rows, 0);
  for (int lane = 0; lane < 32; ++lane) {
    for (int value = 0; value < values; ++value) {
      const auto element = column_major[static_cast<std::size_t>(tv(lane + 32 * value))];
      const std::uint64_t code = encode(type, element);
      std::memcpy(&bytes[static_cast<std::size_t>(lane * registers * register_bytes + value * width(type))], &code,
                  static_cast<std::size_t>(width(type)));
    }
  }
  return bytes;
}

std::string register_list(char prefix, int count) {
  std::string text = "{";
  for (int i = 0; i < count; ++i) text += fmt::format("{}%{}{}", i == 0 ? "" : ", ", prefix, i);
  return text + "}";
}

std::string mma_kernel(const MmaAtom& atom) {
  const int word = atom.register_bits / 8;
  std::string text(kHeader);
  text +=
      ".visible .entry k(.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 d)\n{\n.reg .u32 %lane;\n"
      ".reg .u64 %at, %wide;\n";
  const auto load = [&](char name, int count) {
    text += fmt::format(".reg .b{} %{}<{}>;\n", atom.register_bits, name, count);
    text += fmt::format("ld.param.u64 %at, [{}];\nmad.lo.u64 %at, %wide, {}, %at;\n", name, count * word);
    for (int i = 0; i < count; ++i) {
      text += fmt::format("ld.global.b{} %{}{}, [%at+{}];\n", atom.register_bits, name, i, i * word);
    }
  };
  text += "mov.u32 %lane, %tid.x;\ncvt.u64.u32 %wide, %lane;\n";
  load('a', atom.a_registers);
  load('b', atom.b_registers);
  load('c', atom.c_registers);
  text += fmt::format(".reg .b{} %d<{}>;\n{} {}, {}, {}, {};\n", atom.register_bits, atom.c_registers, atom.ptx,
                      register_list('d', atom.c_registers), register_list('a', atom.a_registers),
                      register_list('b', atom.b_registers), register_list('c', atom.c_registers));
  text += fmt::format("ld.param.u64 %at, [d];\nmad.lo.u64 %at, %wide, {}, %at;\n", atom.c_registers * word);
  for (int i = 0; i < atom.c_registers; ++i) {
    text += fmt::format("st.global.b{} [%at+{}], %d{};\n", atom.register_bits, i * word, i);
  }
  return text + "ret;\n}\n";
}

/// The emulator does not support b1, 4-bit integers, FP8, and the 8-bit integer shapes of sm_75.
bool is_emulated(const MmaAtom& atom) {
  const bool is_8_bit_float = atom.a == DType::e4m3 || atom.a == DType::e5m2;
  return bits(atom.a) >= 8 && !is_8_bit_float && (bits(atom.a) != 8 || atom.m == 16);
}

TEST(Mma, AllAtomsAreExactOnSmallIntegers) {
  std::mt19937 random(1);
  for (const MmaAtom& atom : arch::mma_atoms()) {
    if (!is_emulated(atom)) continue;
    const auto matrix = [&](int elements, bool is_unsigned) {
      std::vector<int> values(static_cast<std::size_t>(elements));
      for (int& value : values) value = static_cast<int>(random() % 15) - (is_unsigned ? 0 : 7);
      return values;
    };
    const std::vector<int> a = matrix(atom.m * atom.k, atom.a == DType::u8);
    const std::vector<int> b = matrix(atom.n * atom.k, atom.b == DType::u8);
    const std::vector<int> c = matrix(atom.m * atom.n, false);
    std::vector<int> d = c;
    for (int m = 0; m < atom.m; ++m) {
      for (int n = 0; n < atom.n; ++n) {
        for (int k = 0; k < atom.k; ++k) {
          d[static_cast<std::size_t>(m + atom.m * n)] +=
              a[static_cast<std::size_t>(m + atom.m * k)] * b[static_cast<std::size_t>(n + atom.n * k)];
        }
      }
    }
    const int word = atom.register_bits / 8;
    const auto device = test_device();
    const auto da = upload(device, fragment(atom.a_tv, atom.a, atom.m, atom.a_registers, word, a));
    const auto db = upload(device, fragment(atom.b_tv, atom.b, atom.n, atom.b_registers, word, b));
    const auto dc = upload(device, fragment(atom.c_tv, atom.c, atom.m, atom.c_registers, word, c));
    const auto expected = fragment(atom.c_tv, atom.c, atom.m, atom.c_registers, word, d);
    const runtime::DeviceBuffer dd(device, expected.size());
    launch(*device, mma_kernel(atom), "k", {da.address(), db.address(), dc.address(), dd.address()}, {32, 1, 1});
    EXPECT_EQ(download<std::byte>(*device, dd), expected) << atom.name;
  }
}

TEST(Mma, SumsAreRoundedOncePerInstruction) {
  // 2^24 + 1 + 1 in f32: rounding after each product would lose both ones.
  const MmaAtom& atom = *arch::find_mma_atom(16, 8, 16, DType::f16, DType::f16, DType::f32);
  std::vector<int> a(256, 0), b(128, 0), c(128, 0);
  for (std::size_t k = 0; k < 2; ++k) a[16 * k] = b[8 * k] = 1;
  c[0] = 1 << 24;
  const auto device = test_device();
  const auto da = upload(device, fragment(atom.a_tv, atom.a, 16, 4, 4, a));
  const auto db = upload(device, fragment(atom.b_tv, atom.b, 8, 2, 4, b));
  const auto dc = upload(device, fragment(atom.c_tv, atom.c, 16, 4, 4, c));
  const runtime::DeviceBuffer dd(device, 512);
  launch(*device, mma_kernel(atom), "k", {da.address(), db.address(), dc.address(), dd.address()}, {32, 1, 1});
  EXPECT_EQ(download<float>(*device, dd)[0], 16777218.0F);
}

TEST(Mma, IntegersClampOnlyWithSatfinite) {
  for (const bool clamps : {false, true}) {
    std::string text(kHeader);
    text += fmt::format(
        ".visible .entry k(.param .u64 d)\n{{\n.reg .b32 %r<4>;\n.reg .u64 %at;\n"
        "mma.sync.aligned.m16n8k16.row.col{}.s32.s8.s8.s32 {{%r0, %r1, %r2, %r3}}, {{0x01010101, 0x01010101}}, "
        "{{0x01010101}}, {{0x7fffffff, 0, 0, 0}};\nld.param.u64 %at, [d];\nst.global.v2.u32 [%at], {{%r0, %r1}};\n"
        "ret;\n}}\n",
        clamps ? ".satfinite" : "");
    const auto device = test_device();
    const runtime::DeviceBuffer out(device, 8);
    launch(*device, text, "k", {out.address()}, {32, 1, 1});
    EXPECT_EQ(download<std::uint32_t>(*device, out),
              (std::vector<std::uint32_t>{clamps ? 0x7fffffffU : 0x8000000fU, 16}));
  }
}

TEST(Ldmatrix, LoadsRowsAsFragments) {
  for (const bool transposed : {false, true}) {
    std::string text(kHeader);
    // Each lane writes one row of 8 16-bit numbers: 256 * matrix + 8 * row + column.
    text += fmt::format(R"(.visible .entry k(.param .u64 d)
{{
  .shared .align 16 .b8 tile[512];
  .reg .b32 %l, %at, %v, %w, %i, %r<4>;
  .reg .u64 %d, %x;
  .reg .pred %p;
  mov.u32 %l, %tid.x;
  mov.u32 %at, tile;
  mad.lo.u32 %at, %l, 16, %at;
  mul.lo.u32 %v, %l, 8;
  mad.lo.u32 %v, %v, 65537, 65536;
  mov.u32 %w, %at;
  mov.u32 %i, 0;
LOOP:
  st.shared.u32 [%w], %v;
  add.u32 %v, %v, 131074;
  add.u32 %w, %w, 4;
  add.u32 %i, %i, 1;
  setp.lt.u32 %p, %i, 4;
  @%p bra LOOP;
  bar.sync 0;
  ldmatrix.sync.aligned.m8n8.x4{}.shared.b16 {{%r0, %r1, %r2, %r3}}, [%at];
  ld.param.u64 %d, [d];
  cvt.u64.u32 %x, %l;
  mad.lo.u64 %d, %x, 16, %d;
  st.global.v4.b32 [%d], {{%r0, %r1, %r2, %r3}};
  ret;
}}
)",
                        transposed ? ".trans" : "");
    const auto device = test_device();
    const runtime::DeviceBuffer out(device, 512);
    launch(*device, text, "k", {out.address()}, {32, 1, 1});
    const auto halves = download<std::uint16_t>(*device, out);
    for (int lane = 0; lane < 32; ++lane) {
      for (int matrix = 0; matrix < 4; ++matrix) {
        for (int half = 0; half < 2; ++half) {
          int row = lane / 4;
          int column = 2 * (lane % 4) + half;
          if (transposed) std::swap(row, column);
          EXPECT_EQ(halves[static_cast<std::size_t>(8 * lane + 2 * matrix + half)], 64 * matrix + 8 * row + column);
        }
      }
    }
  }
}

}  // namespace
}  // namespace tilewright::emulator
