// Headers of .npy files: those that NumPy writes, and malformed ones.
#include "tools/cli/npy.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>

#include "tilewright/op/fill.hpp"
#include "tools/cli/output_file.hpp"

namespace tilewright::cli {
namespace {

// A .npy file of format version 1.0 with the given text as its header.
std::string npy_file(const std::string& dictionary, int major = 1, const std::string& data = "") {
  std::string file = "\x93NUMPY";
  file += static_cast<char>(major);
  file += '\0';
  for (int digit = 0; digit < (major == 1 ? 2 : 4); ++digit) {
    file += static_cast<char>(dictionary.size() >> (8 * digit) & 0xff);
  }
  return file + dictionary + data;
}

std::string dictionary(const std::string& descr, const std::string& shape, const std::string& fortran = "False") {
  return "{'descr': '" + descr + "', 'fortran_order': " + fortran + ", 'shape': " + shape + ", }\n";
}

Result<NpyHeader> parse(const std::string& file) {
  return parse_npy_header({reinterpret_cast<const std::byte*>(file.data()), file.size()});
}

std::string refusal(const std::string& file) {
  const Result<NpyHeader> header = parse(file);
  return header ? "accepted" : header.reason();
}

TEST(NpyHeaders, OfEveryTypeAndVersion) {
  const std::pair<const char*, DType> types[] = {{"<f8", DType::f64}, {"<f4", DType::f32}, {"<f2", DType::f16},
                                                 {"<i4", DType::s32}, {"|i1", DType::s8},  {"|u1", DType::u8}};
  for (const auto& [descr, type] : types) {
    for (const int major : {1, 2, 3}) {
      const std::string file = npy_file(dictionary(descr, "(3, 5)"), major);
      const Result<NpyHeader> header = parse(file);
      ASSERT_TRUE(header) << header.reason();
      EXPECT_EQ(*header, (NpyHeader{type, {3, 5}, static_cast<std::int64_t>(file.size())}));
    }
  }
}

TEST(NpyHeaders, InOtherOrdersAndQuotes) {
  EXPECT_TRUE(parse(npy_file("{\"shape\":(2,3),\"fortran_order\":False,\"descr\":\"<f4\"}")));
  EXPECT_EQ(parse(npy_file(dictionary("<f4", "(2, 3, 5)")))->shape, (op::Dims{2, 3, 5}));
  EXPECT_TRUE(parse(npy_file("{'shape': (0, 3,), 'fortran_order': False, 'descr': '<f4', }        \n")));
}

TEST(NpyHeaders, RefusedWithTheReason) {
  EXPECT_EQ(refusal("PK\x03\x04"), "it is not a .npy file");
  EXPECT_EQ(refusal(""), "it is not a .npy file");
  EXPECT_NE(refusal("\x93NUMPY\x01").find("ends inside its header"), std::string::npos);
  EXPECT_NE(refusal(npy_file("{", 4)).find("version is 4"), std::string::npos);
  EXPECT_NE(refusal(npy_file(dictionary("<f4", "(3, 5)", "True"))).find("ascontiguousarray"), std::string::npos);
  EXPECT_NE(refusal(npy_file(dictionary(">f4", "(3, 5)"))).find("big endian"), std::string::npos);
  EXPECT_NE(refusal(npy_file(dictionary("<i8", "(3, 5)"))).find("'<i8'"), std::string::npos);
  EXPECT_NE(refusal(npy_file(dictionary("<c8", "(3, 5)"))).find("'<c8'"), std::string::npos);
  EXPECT_NE(refusal(npy_file(dictionary("<f4", "(3,)"))).find("1 dimensions"), std::string::npos);
  EXPECT_NE(refusal(npy_file(dictionary("<f4", "()"))).find("0 dimensions"), std::string::npos);
  EXPECT_NE(refusal(npy_file(dictionary("<f4", "(1, 2, 3, 4)"))).find("4 dimensions"), std::string::npos);
  EXPECT_NE(refusal(npy_file(dictionary("<f4", "(-1, 2)"))).find("impossible"), std::string::npos);
  EXPECT_NE(refusal(npy_file(dictionary("<f8", "(4611686018427387904, 4)"))).find("impossible"), std::string::npos);
  EXPECT_EQ(refusal(npy_file(dictionary("<f4", "(10000000, 1000000, 1000000)"))),
            "its shape (10000000,1000000,1000000) is impossible");
  EXPECT_NE(refusal(npy_file(dictionary("<f8", "(999999999999999999, 999999999999999999)"))).find("impossible"),
            std::string::npos);
  EXPECT_NE(refusal(npy_file(dictionary("<f8", "(99999999999999999999999999, 1)"))).find("impossible"),
            std::string::npos);
  EXPECT_NE(refusal(npy_file("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1, 1)}")).find("structure"),
            std::string::npos);
  EXPECT_NE(refusal(npy_file("{'descr': '<f4', 'shape': (1, 1)}")).find("dictionary"), std::string::npos);
  EXPECT_NE(refusal(npy_file("__import__('os')")).find("dictionary"), std::string::npos);
  EXPECT_NE(refusal(npy_file("")).find("dictionary"), std::string::npos);
}

TEST(NpyHeaders, WithAnExcessiveLengthAreRefusedAtOnce) {
  std::string file = "\x93NUMPY\x02";
  file += std::string("\0\xff\xff\xff\xff", 5);
  EXPECT_NE(refusal(file).find("states a length of 4294967295 bytes"), std::string::npos) << refusal(file);
  EXPECT_NE(refusal(npy_file(std::string(20000, ' '))).find("states a length of 20000 bytes"), std::string::npos);
}

TEST(NpyHeaders, TruncatedAnywhereAreRefused) {
  const std::string file = npy_file(dictionary("<f4", "(3, 5)"));
  for (std::size_t length = 0; length < file.size(); ++length) EXPECT_FALSE(parse(file.substr(0, length))) << length;
}

TEST(NpyHeaders, WithFlippedBytesNeverCrashAndNeverOverflow) {
  std::mt19937 random(1);
  const std::string sound = npy_file(dictionary("<f4", "(3, 5)"));
  for (int trial = 0; trial < 20000; ++trial) {
    std::string file = sound;
    for (int flip = 0; flip < 1 + trial % 4; ++flip) file[random() % file.size()] = static_cast<char>(random());
    const Result<NpyHeader> header = parse(file);
    if (!header) {
      EXPECT_EQ(header.reason().find('\n'), std::string::npos);
      continue;
    }
    std::int64_t size = bytes(header->dtype);
    for (int mode = 0; mode < header->shape.rank(); ++mode) {
      EXPECT_FALSE(__builtin_mul_overflow(size, header->shape[mode], &size));
    }
  }
}

class NpyFiles : public testing::Test {
 protected:
  NpyFiles() : folder_(std::filesystem::temp_directory_path() / ("tilewright_npy_" + std::to_string(getpid()))) {
    std::filesystem::create_directory(folder_);
  }
  ~NpyFiles() override { std::filesystem::remove_all(folder_); }

  std::string write(const std::string& bytes) const {
    const std::string path = folder_ / "x.npy";
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }
  std::string error(const std::string& path) const {
    try {
      read_npy(path);
    } catch (const InvalidArgument& refused) {
      return refused.what();
    }
    return "accepted";
  }

  std::filesystem::path folder_;
};

TEST_F(NpyFiles, SurviveTheRoundTrip) {
  NpyMatrix matrix{DType::s32, {2, 3}, std::vector<std::byte>(24)};
  for (std::size_t i = 0; i < 24; ++i) matrix.data[i] = static_cast<std::byte>(i);
  const std::string path = folder_ / "y.npy";
  write_output(path, npy_bytes(matrix));
  const NpyMatrix read = read_npy(path);
  EXPECT_EQ(read.dtype, DType::s32);
  EXPECT_EQ(read.shape, (op::Dims{2, 3}));
  EXPECT_EQ(read.data, matrix.data);
  EXPECT_EQ((std::filesystem::file_size(path) - 24) % 64, 0U);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1);  // no temporary file is left
}

TEST_F(NpyFiles, MayBeEmptyMatrices) {
  const std::string path = folder_ / "y.npy";
  write_output(path, npy_bytes({DType::f64, {0, 7}, {}}));
  EXPECT_EQ(read_npy(path).shape, (op::Dims{0, 7}));
}

TEST_F(NpyFiles, MayBeBatches) {
  NpyMatrix batch{DType::u8, {2, 3, 4}, std::vector<std::byte>(24)};
  batch.data[17] = std::byte{9};
  const std::string path = folder_ / "y.npy";
  write_output(path, npy_bytes(batch));
  const NpyMatrix read = read_npy(path);
  EXPECT_EQ(read.shape, batch.shape);
  EXPECT_EQ(op::load(op::slice(read.tensor(), 1), 1, 1), 9.0);
  const std::string reason = error(write(npy_file(dictionary("<f4", "(2, 3, 5)"), 1, std::string(119, 'x'))));
  EXPECT_NE(reason.find("a f32 array of shape (2,3,5) needs 120 bytes of data, it has 119"), std::string::npos)
      << reason;
}

TEST_F(NpyFiles, TruncatedAreRefusedWithBothNumbers) {
  const std::string reason = error(write(npy_file(dictionary("<f4", "(3, 5)"), 1, std::string(59, 'x'))));
  EXPECT_NE(reason.find("needs 60 bytes of data, it has 59"), std::string::npos) << reason;
  const std::string huge = error(write(npy_file(dictionary("<f8", "(100000000, 1000000000)"))));
  EXPECT_NE(huge.find("truncated"), std::string::npos) << huge;
}

TEST_F(NpyFiles, OtherThanRegularFilesAreRefused) {
  EXPECT_NE(error(folder_ / "missing.npy").find("cannot be opened"), std::string::npos);
  EXPECT_NE(error(folder_), "accepted");
  EXPECT_NE(error("/dev/null"), "accepted");
}

TEST_F(NpyFiles, CannotBeWrittenToAMissingFolder) {
  EXPECT_THROW(check_output(folder_ / "missing" / "x.npy"), InvalidArgument);
  EXPECT_THROW(check_output(folder_), InvalidArgument);
  EXPECT_THROW(check_output(""), InvalidArgument);
  EXPECT_NO_THROW(check_output(folder_ / "x.npy"));
}

}  // namespace
}  // namespace tilewright::cli
