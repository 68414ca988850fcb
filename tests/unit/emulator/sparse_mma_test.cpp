// mma.sp and wgmma.sp compared with plain loops over dense matrices. The metadata is written as CuTe's layouts
// ELayout_64x16, ELayout_64x32 and ELayout_64x64 say.
#include <gtest/gtest.h>

#include <random>

#include "hopper_kernel.hpp"
#include "tilewright/base/float_format.hpp"

namespace tilewright::emulator {
namespace {

using U = std::uint32_t;

std::uint32_t encode(std::string_view type, int value) {
  const auto real = static_cast<float>(value);
  if (type == "f16") return f32_to_f16(real);
  if (type == "bf16") return f32_to_bf16(real);
  if (type == "tf32" || type == "f32") return std::bit_cast<std::uint32_t>(real);
  if (type == "e4m3") return f64_to_e4m3(real);
  if (type == "e5m2") return f64_to_e5m2(real);
  return static_cast<std::uint32_t>(value);
}

int width_of(std::string_view type) {
  if (type == "f16" || type == "bf16") return 2;
  return type == "tf32" || type == "f32" || type == "s32" ? 4 : 1;
}

/// A matrix of which each chunk has the stored elements in the places of `places`.
struct SparseMatrix {
  int rows, k, width;
  std::vector<int> stored;  // rows * k / 2
  std::vector<int> places;  // in the row

  int stored_k() const { return k / 2; }
  /// The four bits of a chunk.
  U metadata(int row, int chunk) const {
    const auto at = static_cast<std::size_t>(row * stored_k());
    if (width == 4) return places[at + static_cast<std::size_t>(chunk)] % 2 == 0 ? 0b0100 : 0b1110;
    const auto first = at + static_cast<std::size_t>(2 * chunk);
    return static_cast<U>(places[first] % 4 | places[first + 1] % 4 << 2);
  }
};

SparseMatrix random_matrix(std::mt19937& random, int rows, int k, int width, bool is_unsigned) {
  SparseMatrix matrix{rows, k, width, {}, {}};
  for (int row = 0; row < rows; ++row) {
    const int chunks = width == 4 ? k / 2 : k / 4;
    for (int chunk = 0; chunk < chunks; ++chunk) {
      if (width == 4) {
        matrix.places.push_back(2 * chunk + static_cast<int>(random() % 2));
      } else {
        const int first = static_cast<int>(random() % 3);
        matrix.places.push_back(4 * chunk + first);
        matrix.places.push_back(4 * chunk + first + 1 + static_cast<int>(random() % static_cast<U>(3 - first)));
      }
    }
  }
  for (std::size_t i = 0; i < matrix.places.size(); ++i)
    matrix.stored.push_back(static_cast<int>(random() % 9) - (is_unsigned ? 0 : 4));
  return matrix;
}

/// The metadata register of each lane of a warp for 16 rows of the matrix from `first_row`.
std::vector<U> metadata_of(const SparseMatrix& matrix, int first_row, int selector) {
  std::vector<U> words(32);
  for (int lane = 0; lane < 32; ++lane) {
    const int low = lane % 2, high = lane / 2 % 2, group = first_row + lane / 4;
    const bool halves = matrix.k * matrix.width == 32;  // the shapes with half of the k of ELayout's
    U& word = words[static_cast<std::size_t>(lane)];
    if (matrix.width == 1) {
      if (halves && high != selector) continue;
      for (int chunk = 0; chunk < 8; ++chunk)
        word |= matrix.metadata(group + 8 * low, (halves ? 0 : 8 * high) + chunk) << (4 * chunk);
      continue;
    }
    if (halves ? lane % 4 != selector : high != selector) continue;
    for (int chunk = 0; chunk < 4; ++chunk) {
      for (int half = 0; half < 2; ++half)
        word |= matrix.metadata(group + 8 * half, (halves ? 0 : 4 * low) + chunk) << (16 * half + 4 * chunk);
    }
  }
  return words;
}

std::string registers(std::string_view prefix, int count) {
  std::string text = "{";
  for (int i = 0; i < count; ++i) text += fmt::format("{}%{}{}", i == 0 ? "" : ", ", prefix, i);
  return text + "}";
}

void put(std::vector<std::uint8_t>& bytes, std::size_t at, U bits, int width) {
  std::memcpy(&bytes[at], &bits, static_cast<std::size_t>(width));
}

struct Form {
  std::string d, a, b;
  int k;
};

/// Checks one mma.sp. Each lane has 16 bytes of A, B and C, and its metadata, in `memory`; D is stored over C.
void check(const Form& form, int selector, std::string_view variant) {
  SCOPED_TRACE(fmt::format("{} {} k{} selector {}", form.a, form.d, form.k, selector));
  std::mt19937 random(static_cast<unsigned>(form.k + selector));
  const int width = width_of(form.a), per = 4 / width, d_width = width_of(form.d);
  const SparseMatrix a = random_matrix(random, 16, form.k, width, form.a == "u8");
  std::vector<int> b(static_cast<std::size_t>(8 * form.k));  // by column
  for (int& value : b) value = static_cast<int>(random() % 9) - (form.b == "u8" ? 0 : 4);
  const int a_count = a.stored_k() / (2 * per), b_count = form.k / (4 * per), c_count = d_width == 2 ? 2 : 4;
  constexpr std::size_t kLane = 64;  // A, B, C: 16 bytes each; metadata
  std::vector<std::uint8_t> memory(32 * kLane), expected(32 * 16);
  const std::vector<U> words = metadata_of(a, 0, selector);
  for (int lane = 0; lane < 32; ++lane) {
    const int group = lane / 4, part = lane % 4;
    const std::size_t at = kLane * static_cast<std::size_t>(lane);
    for (int i = 0; i < a_count * per; ++i) {
      const int r = i / per, row = group + 8 * (r % 2), column = r / 2 * 4 * per + part * per + i % per;
      put(memory, at + static_cast<std::size_t>(i * width),
          encode(form.a, a.stored[static_cast<std::size_t>(row * a.stored_k() + column)]), width);
    }
    for (int i = 0; i < b_count * per; ++i) {
      const int k = i / per * 4 * per + part * per + i % per;
      put(memory, at + 16 + static_cast<std::size_t>(i * width),
          encode(form.b, b[static_cast<std::size_t>(group * form.k + k)]), width);
    }
    for (int i = 0; i < 4; ++i) {
      const int row = group + 8 * (i / 2), column = 2 * part + i % 2, c = row - 3 * column;
      int sum = c;
      for (int k = 0; k < a.stored_k(); ++k) {
        const auto element = static_cast<std::size_t>(row * a.stored_k() + k);
        sum += a.stored[element] * b[static_cast<std::size_t>(column * form.k + a.places[element])];
      }
      put(memory, at + 32 + static_cast<std::size_t>(i * d_width), encode(form.d, c), d_width);
      put(expected, 16 * static_cast<std::size_t>(lane) + static_cast<std::size_t>(i * d_width), encode(form.d, sum),
          d_width);
    }
    put(memory, at + 48, words[static_cast<std::size_t>(lane)], 4);
  }
  const auto device = test_device();
  const auto out = upload(device, memory);
  std::string body = "mul.lo.u32 %r63, %t, 64;\ncvt.u64.u32 %x0, %r63;\nadd.u64 %x0, %x0, %out;\n";
  for (int i = 0; i < 12; ++i) body += fmt::format("ld.global.b32 %r{}, [%x0+{}];\n", i, 4 * i);
  body += "ld.global.b32 %r12, [%x0+48];\n";
  const auto list = [](int first, int count) {
    std::string text = "{";
    for (int i = 0; i < count; ++i) text += fmt::format("{}%r{}", i == 0 ? "" : ", ", first + i);
    return text + "}";
  };
  body += fmt::format("mma.{}.sync.aligned.m16n8k{}.row.col.{}.{}.{}.{} {}, {}, {}, {}, %r12, {};\n", variant, form.k,
                      form.d, form.a, form.b, form.d, list(8, c_count), list(0, a_count), list(4, b_count),
                      list(8, c_count), selector);
  for (int i = 0; i < c_count; ++i) body += fmt::format("st.global.b32 [%x0+{}], %r{};\n", 32 + 4 * i, 8 + i);
  launch_hopper(*device, hopper_kernel(body), pack_maps({{}, {}}, {out.address()}), {.block = {32, 1, 1}});
  const auto result = download<std::uint8_t>(*device, out);
  for (std::size_t lane = 0; lane < 32; ++lane) {
    const auto begin = result.begin() + static_cast<std::ptrdiff_t>(kLane * lane + 32);
    EXPECT_TRUE(std::equal(begin, begin + 4 * c_count, expected.begin() + static_cast<std::ptrdiff_t>(16 * lane)))
        << "lane " << lane;
  }
}

TEST(SparseMma, MultipliesStoredElements) {
  const std::vector<Form> forms = {{"f32", "f16", "f16", 16},   {"f16", "f16", "f16", 32},   {"f32", "f16", "f16", 32},
                                   {"f32", "bf16", "bf16", 16}, {"f32", "bf16", "bf16", 32}, {"f32", "tf32", "tf32", 8},
                                   {"f32", "tf32", "tf32", 16}, {"s32", "s8", "u8", 32},     {"s32", "u8", "s8", 64},
                                   {"f32", "e4m3", "e5m2", 64}, {"f32", "e5m2", "e4m3", 64}};
  for (const Form& form : forms) {
    const int bytes = form.k * width_of(form.a);
    const int selectors = width_of(form.a) == 1 ? 64 / bytes : 128 / bytes;
    for (int selector = 0; selector < selectors; ++selector) check(form, selector, "sp");
    check(form, 0, "sp::ordered_metadata");
  }
}

TEST(SparseMma, MetadataThatMeansNothingIsFound) {
  const auto with = [](std::string_view variant, std::string_view metadata) {
    return finding_of([&] {
      const auto device = test_device();
      const auto out = upload(device, std::vector<U>(64));
      launch_hopper(*device,
                    hopper_kernel(fmt::format("mma.{}.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {{%f0, %f1, %f2, "
                                              "%f3}}, {{0, 0}}, {{0, 0}}, {{%f0, %f1, %f2, %f3}}, {}, 0;",
                                              variant, metadata)),
                    pack_maps({{}, {}}, {out.address()}), {.block = {32, 1, 1}});
    });
  };
  EXPECT_EQ(with("sp", "0x44444444").detail, "");
  const Finding twice = with("sp", "0x44404444");
  EXPECT_EQ(twice.kind, FindingKind::bad_descriptor) << to_string(twice);
  EXPECT_NE(twice.detail.find("chunk 0 of row 8 of the warp's rows of A, which names one element twice"),
            std::string::npos)
      << twice.detail;
  EXPECT_EQ(with("sp", "0x11111111").detail, "");
  EXPECT_EQ(with("sp::ordered_metadata", "0x11111111").kind, FindingKind::bad_descriptor);
}

// wgmma.sp -----------------------------------------------------------------------------------------------------------

/// Offset of byte `byte` of row `row` in the K-major layout of 64 bytes per row with the swizzle of 64 bytes.
int offset_of(int row, int byte) {
  const int at = row / 8 * 512 + row % 8 * 64 + byte;
  return at ^ ((at >> 7 & 3) << 4);
}

void check_warpgroup(const Form& form, int selector) {
  SCOPED_TRACE(fmt::format("{} {} k{} selector {}", form.a, form.d, form.k, selector));
  constexpr int kN = 16, kA = 2048, kB = 4096;  // shared addresses after `bars`
  std::mt19937 random(static_cast<unsigned>(form.k + selector));
  const int width = width_of(form.a);
  const SparseMatrix a = random_matrix(random, 64, form.k, width, form.a == "u8");
  std::vector<int> b(static_cast<std::size_t>(kN * form.k));
  for (int& value : b) value = static_cast<int>(random() % 9) - (form.b == "u8" ? 0 : 4);
  // 4096 bytes of A, of which a row takes 32 bytes of 64; 1024 of B; the metadata of 128 threads; D.
  constexpr std::size_t kMetadata = 5120, kD = kMetadata + 512;
  std::vector<std::uint8_t> memory(kD + 128 * 32);
  for (int row = 0; row < 64; ++row) {
    for (int k = 0; k < a.stored_k(); ++k) {
      put(memory, static_cast<std::size_t>(offset_of(row, k * width)),
          encode(form.a, a.stored[static_cast<std::size_t>(row * a.stored_k() + k)]), width);
    }
  }
  for (int n = 0; n < kN; ++n) {
    for (int k = 0; k < form.k; ++k)
      put(memory, static_cast<std::size_t>(4096 + offset_of(n, k * width)),
          encode(form.b, b[static_cast<std::size_t>(n * form.k + k)]), width);
  }
  for (int warp = 0; warp < 4; ++warp) {
    const std::vector<U> words = metadata_of(a, 16 * warp, selector);
    for (int lane = 0; lane < 32; ++lane)
      put(memory, kMetadata + static_cast<std::size_t>(4 * (32 * warp + lane)), words[static_cast<std::size_t>(lane)],
          4);
  }
  const auto descriptor = [](int address) {
    return static_cast<std::uint64_t>(address >> 4) | std::uint64_t{1} << 16 | std::uint64_t{512 >> 4} << 32 |
           std::uint64_t{2} << 62;
  };
  std::string body =
      fmt::format(R"(
    shl.b32 %r0, %t, 4;
    FILL:
    cvt.u64.u32 %x0, %r0;
    add.u64 %x0, %out, %x0;
    ld.global.v4.u32 {{%r4, %r5, %r6, %r7}}, [%x0];
    add.u32 %r1, %base, %r0;
    st.shared.v4.u32 [%r1], {{%r4, %r5, %r6, %r7}};
    add.u32 %r0, %r0, 2048;
    setp.lt.u32 %p, %r0, 5120;
    @%p bra FILL;
    fence.proxy.async.shared::cta;
    bar.sync 0;
    mad.wide.u32 %x1, %t, 4, %out;
    ld.global.b32 %r8, [%x1+{}];
    mad.wide.u32 %x2, %t, 32, %out;
    setp.ne.u32 %q, 0, 0;
    wgmma.fence.sync.aligned;
    wgmma.mma_async.sp.sync.aligned.m64n16k{}.{}.{}.{} {}, {}, {}, %r8, {}, %q{};
    wgmma.commit_group.sync.aligned;
    wgmma.wait_group.sync.aligned 0;
  )",
                  kMetadata, form.k, form.d, form.a, form.b, registers("d", 8), descriptor(kA), descriptor(kA + kB),
                  selector, form.d == "s32" ? "" : (width == 2 ? ", 1, 1, 0, 0" : ", 1, 1"));
  for (int i = 0; i < 8; ++i)
    body += fmt::format("st.global.b32 [%x2+{}], %d{};\n", kD + 4 * static_cast<std::size_t>(i), i);
  const auto device = test_device();
  const auto out = upload(device, memory);
  launch_hopper(*device, hopper_kernel(body), pack_maps({{}, {}}, {out.address()}), {.dynamic_smem_bytes = 6144});
  const auto result = download<U>(*device, out);
  for (int t = 0; t < 128; ++t) {
    for (int i = 0; i < 8; ++i) {
      const int row = t / 32 * 16 + t % 32 / 4 + i / 2 % 2 * 8, column = i / 4 * 8 + t % 4 * 2 + i % 2;
      int sum = 0;
      for (int k = 0; k < a.stored_k(); ++k) {
        const auto element = static_cast<std::size_t>(row * a.stored_k() + k);
        sum += a.stored[element] * b[static_cast<std::size_t>(column * form.k + a.places[element])];
      }
      ASSERT_EQ(result[kD / 4 + static_cast<std::size_t>(8 * t + i)], encode(form.d, sum)) << row << " " << column;
    }
  }
}

TEST(SparseWgmma, MultipliesStoredElements) {
  for (const int selector : {0, 1}) {
    check_warpgroup({"f32", "f16", "f16", 32}, selector);
    check_warpgroup({"f32", "tf32", "tf32", 16}, selector);
  }
  check_warpgroup({"f32", "e4m3", "e4m3", 64}, 0);
  check_warpgroup({"s32", "u8", "s8", 64}, 0);
}

}  // namespace
}  // namespace tilewright::emulator
