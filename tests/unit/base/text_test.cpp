// Names of types, identifiers, text, refusals and digests.
#include "tilewright/base/text.hpp"

#include <gtest/gtest.h>

#include "tilewright/base/dtype.hpp"
#include "tilewright/base/hash.hpp"
#include "tilewright/base/support.hpp"

namespace tilewright {
namespace {

TEST(DTypeNames, EveryNameParsesToItsType) {
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto type = static_cast<DType>(i);
    EXPECT_EQ(parse_dtype(name(type)), type);
    EXPECT_NE(is_float(type), is_integer(type));
    if (bits(type) % 8 == 0) {
      EXPECT_EQ(bits(type), 8 * bytes(type));
    } else {
      EXPECT_THROW(bytes(type), InternalError) << name(type);
    }
  }
  for (const DType type : {DType::f64, DType::tf32, DType::bf16, DType::u8, DType::e4m3})
    EXPECT_FALSE(cuda_name(type).empty());
  EXPECT_EQ(bits(DType::s4), 4);
  EXPECT_EQ(bits(DType::b1), 1);
  EXPECT_EQ(bytes(DType::e5m2), 1);
  EXPECT_EQ(parse_dtype("float16"), DType::f16);
  EXPECT_EQ(parse_dtype("int8"), DType::s8);
  EXPECT_EQ(parse_dtype("float8_e4m3fn"), DType::e4m3);
  EXPECT_EQ(parse_dtype("uint4"), DType::u4);
  EXPECT_EQ(parse_dtype("F16"), std::nullopt);
  EXPECT_EQ(parse_dtype(""), std::nullopt);
}

TEST(Identifiers, AreSafeToEmit) {
  for (const char* good : {"a", "_", "sm80_gemm_f16", "A9"}) EXPECT_TRUE(is_identifier(good)) << good;
  for (const char* bad : {"", "9a", "a-b", "a b", "a\nb", "a;b", "a#b", "naïve"})
    EXPECT_FALSE(is_identifier(bad)) << bad;
  EXPECT_TRUE(is_identifier(std::string(128, 'a')));
  EXPECT_FALSE(is_identifier(std::string(129, 'a')));
  EXPECT_FALSE(is_identifier(std::string_view("a\0b", 3)));
}

TEST(Text, JoinAndSplit) {
  EXPECT_EQ(join({128, 64, 32}, "x"), "128x64x32");
  EXPECT_EQ(join({}, "x"), "");
  EXPECT_EQ(split("a,b,,c", ','), (std::vector<std::string>{"a", "b", "", "c"}));
  EXPECT_EQ(split("", ','), (std::vector<std::string>{""}));
}

TEST(Text, PrintableEscapesControlCharactersAndTruncates) {
  const std::string text = printable("a\n\x1b[31mb", 200);
  for (const char c : text) EXPECT_GE(static_cast<unsigned char>(c), 0x20) << text;
  EXPECT_LE(printable(std::string(100000, 'x'), 50).size(), 100U);
}

TEST(Text, SourceWriterIndents) {
  SourceWriter writer;
  writer.line("if ({}) {{", "x").indent().line("y();").dedent().line("}}").blank();
  EXPECT_EQ(std::move(writer).take(), "if (x) {\n  y();\n}\n\n");
}

TEST(Refusals, CarryTheirReason) {
  const Support refused = refuse("k must be a multiple of {}, got {}", 8, 63);
  EXPECT_FALSE(refused);
  EXPECT_EQ(refused.reason(), "k must be a multiple of 8, got 63");
  EXPECT_THROW(refused.or_throw(), InvalidArgument);
  EXPECT_NO_THROW(Support().or_throw());
  const Result<int> none = refuse("no");
  EXPECT_FALSE(none);
  EXPECT_THROW(*none, InternalError);
  EXPECT_EQ(*Result<int>(3), 3);
}

TEST(Sha256, GivesThePublishedDigests) {  // FIPS 180-2, appendix B
  EXPECT_EQ(sha256("abc").hex(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256("").hex(), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

TEST(FieldHashers, FieldBoundariesChangeTheDigest) {
  const auto digest = [](std::initializer_list<std::pair<const char*, const char*>> fields) {
    FieldHasher hasher;
    for (const auto& [tag, value] : fields) hasher.field(tag, std::string_view(value));
    return hasher.finish();
  };
  EXPECT_EQ(digest({{"a", "b"}}), digest({{"a", "b"}}));
  EXPECT_NE(digest({{"a", "bc"}}), digest({{"ab", "c"}}));
  EXPECT_NE(digest({{"a", "b"}, {"c", "d"}}), digest({{"a", "bcd"}}));
  EXPECT_NE(digest({{"a", "b"}, {"c", "d"}}), digest({{"c", "d"}, {"a", "b"}}));
}

}  // namespace
}  // namespace tilewright
