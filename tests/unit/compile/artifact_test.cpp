// The serialization of artifacts: round trips keep every field, and damaged bytes are refused.
#include "tilewright/compile/artifact.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>

#include "tilewright/base/hash.hpp"

namespace tilewright::compile {
namespace {

Artifact sample() {
  Artifact artifact;
  artifact.name = "gemm_128x128";
  artifact.symbol = "tw_kernel";
  artifact.target = kSm90a;
  for (int i = 0; i < 700; ++i) artifact.cubin.push_back(static_cast<std::byte>(i * 37));
  artifact.ptx = "// PTX\n.version 9.0\n\xff tail";
  artifact.ptx[3] = '\0';
  artifact.registers = 168;
  artifact.spill_bytes = 0;
  artifact.static_smem_bytes = 1024;
  artifact.compiler = "nvrtc 13.0 V13.0.88 CL-36424714";
  artifact.compile_ms = 38.0625;
  artifact.description = R"({"kind":"gemm","name":"\u00fcber"})";
  artifact.source = "0123abcd";
  return artifact;
}

std::vector<std::byte> with_valid_digest(std::vector<std::byte> bytes) {
  const Digest digest = sha256(std::span<const std::byte>(bytes).subspan(40));
  std::copy(digest.bytes.begin(), digest.bytes.end(), bytes.begin() + 8);
  return bytes;
}

std::vector<std::byte> with_metadata(const std::string& metadata) {
  std::vector<std::byte> bytes(64 + metadata.size());
  std::memcpy(bytes.data(), "TWK1\2\0\0\0", 8);
  const std::uint64_t size = metadata.size();
  std::memcpy(bytes.data() + 40, &size, sizeof size);
  std::memcpy(bytes.data() + 64, metadata.data(), metadata.size());
  return with_valid_digest(std::move(bytes));
}

TEST(Artifact, RoundTripKeepsEveryField) {
  const Artifact artifact = sample();
  EXPECT_EQ(*deserialize(serialize(artifact)), artifact);
}

TEST(Artifact, RoundTripKeepsEmptyFields) {
  Artifact artifact = sample();
  artifact.cubin.clear();
  artifact.registers.reset();
  artifact.spill_bytes.reset();
  artifact.description.clear();
  const Result<Artifact> back = deserialize(serialize(artifact));
  ASSERT_TRUE(back) << back.reason();
  EXPECT_EQ(*back, artifact);
  EXPECT_FALSE(back->registers.has_value());
}

TEST(Artifact, EveryTruncationIsRefused) {
  const std::vector<std::byte> bytes = serialize(sample());
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(deserialize(std::span(bytes).first(size))) << size;
  }
  EXPECT_EQ(
      deserialize(std::span(bytes).first(bytes.size() - 1)).reason(),
      fmt::format("it is truncated: its header says {} bytes, but it has {}; copy it again, or compile the kernel "
                  "again",
                  bytes.size(), bytes.size() - 1));
}

TEST(Artifact, BytesAfterTheEndAreRefused) {
  std::vector<std::byte> bytes = serialize(sample());
  bytes.push_back(std::byte{0});
  EXPECT_FALSE(deserialize(bytes));
  EXPECT_NE(deserialize(with_valid_digest(bytes)).reason().find("1 bytes follow"), std::string::npos);
}

TEST(Artifact, TenThousandFlippedBitsAreRefused) {
  const std::vector<std::byte> intact = serialize(sample());
  std::mt19937_64 random(20250807);
  for (int i = 0; i < 10000; ++i) {
    std::vector<std::byte> bytes = intact;
    const std::size_t bit = random() % (8 * bytes.size());
    bytes[bit / 8] ^= std::byte{1} << (bit % 8);
    ASSERT_FALSE(deserialize(bytes)) << "bit " << bit;
  }
}

TEST(Artifact, RandomBytesAreRefused) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 2000; ++i) {
    std::vector<std::byte> bytes(random() % 300);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
    ASSERT_FALSE(deserialize(bytes));
    if (bytes.size() < 64) continue;
    std::memcpy(bytes.data(), "TWK1\2\0\0\0", 8);
    ASSERT_FALSE(deserialize(with_valid_digest(bytes)));
  }
}

TEST(Artifact, WrongPartSizesAreRefusedWithoutAllocating) {
  for (const std::uint64_t size : {~std::uint64_t{0}, std::uint64_t{1} << 40, std::uint64_t{1} << 63}) {
    for (const std::size_t field : {40, 48, 56}) {
      std::vector<std::byte> bytes = serialize(sample());
      std::memcpy(bytes.data() + field, &size, sizeof size);
      const Result<Artifact> result = deserialize(with_valid_digest(std::move(bytes)));
      ASSERT_FALSE(result);
      EXPECT_NE(result.reason().find("claims"), std::string::npos) << result.reason();
    }
  }
}

TEST(Artifact, AnotherFormatVersionIsNamed) {
  std::vector<std::byte> bytes = serialize(sample());
  bytes[4] = std::byte{3};
  EXPECT_EQ(deserialize(bytes).reason(), "the format version is 3, this build reads version 2");
}

TEST(Artifact, MetadataWithAValidHashIsStillChecked) {
  const std::string valid =
      R"({"name":"n","symbol":"s","target":"sm_80","static_smem_bytes":0,"compiler":"","compile_ms":1,"description":"","source":""})";
  EXPECT_TRUE(deserialize(with_metadata(valid)));
  const auto replaced = [&](const std::string& from, const std::string& to) {
    std::string text = valid;
    text.replace(text.find(from), from.size(), to);
    return deserialize(with_metadata(text));
  };
  EXPECT_FALSE(replaced(R"("name":"n")", R"("name":"../../n")"));
  EXPECT_FALSE(replaced(R"("name":"n")", R"("name":7)"));
  EXPECT_FALSE(replaced(R"("symbol":"s",)", ""));
  EXPECT_FALSE(replaced(R"("sm_80")", R"("x86")"));
  EXPECT_FALSE(replaced(R"("source":"")", R"("source":1)"));
  EXPECT_FALSE(replaced(R"("compile_ms":1)", R"("compile_ms":null)"));
  EXPECT_FALSE(replaced(R"("static_smem_bytes":0)", R"("static_smem_bytes":-1)"));
  EXPECT_FALSE(replaced(R"("compiler")", R"("registers":4294967296,"compiler")"));
  EXPECT_FALSE(deserialize(with_metadata("")));
  EXPECT_FALSE(deserialize(with_metadata("[]")));
  EXPECT_FALSE(deserialize(with_metadata(std::string(100000, '['))));
}

TEST(Artifact, PtxAndCubinsAreWrappedWithoutCompiling) {
  Source source;
  source.name = source.symbol = "kernel";
  source.target = kSm80;
  source.text = ".version 8.0";
  source.language = Language::ptx;
  EXPECT_EQ(precompiled_artifact(source).ptx, source.text);
  EXPECT_TRUE(precompiled_artifact(source).cubin.empty());
  EXPECT_EQ(precompiled_artifact(source).source, source_digest(source).hex());
  source.text = std::string("\0ELF", 4);
  EXPECT_THROW(precompiled_artifact(source), InvalidArgument) << "PTX must not contain NUL";
  source.language = Language::cubin;
  EXPECT_EQ(precompiled_artifact(source).cubin.size(), 4U);
}

TEST(Artifact, FilesRoundTripAndMissingOnesThrow) {
  const std::string path = testing::TempDir() + "artifact.twk";
  write_artifact(sample(), path);
  EXPECT_EQ(*read_artifact(path), sample());
  write_artifact(sample(), path);  // replaces the file
  EXPECT_THROW(write_artifact(sample(), testing::TempDir() + "absent/artifact.twk"), Error);
  EXPECT_THROW(static_cast<void>(read_artifact(path + ".absent")), Error);
}

TEST(Artifact, TextThatIsNotUtf8CannotBeSerialized) {
  Artifact artifact = sample();
  artifact.description = "\xff";
  EXPECT_THROW(serialize(artifact), InvalidArgument);
}

}  // namespace
}  // namespace tilewright::compile
