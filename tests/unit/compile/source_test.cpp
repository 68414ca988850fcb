// Validation of sources, and the embedded device headers.
#include "tilewright/compile/source.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

namespace tilewright::compile {
namespace {

Source valid_source() {
  Source source;
  source.name = "k";
  source.symbol = "k";
  source.text = "extern \"C\" __global__ void k() {}\n";
  return source;
}

TEST(Source, AValidSourceIsAccepted) { EXPECT_TRUE(validate(valid_source())); }

TEST(Source, HostileNamesAreRefused) {
  for (const std::string& name :
       {std::string("x\n__global__ void evil(){}"), std::string("a;b"), std::string("../../x"), std::string(),
        std::string("a\0b", 3), std::string(1 << 20, 'x'), std::string("k\xd0\xb5rnel"), std::string("9k")}) {
    Source source = valid_source();
    source.name = name;
    EXPECT_FALSE(validate(source));
    source = valid_source();
    source.symbol = name;
    EXPECT_FALSE(validate(source));
  }
}

TEST(Source, TextIsBounded) {
  Source source = valid_source();
  source.text.assign(std::size_t{4} << 20, ' ');
  EXPECT_TRUE(validate(source));
  source.text += ' ';
  EXPECT_NE(validate(source).reason().find("4194305"), std::string::npos);
}

TEST(Source, TextWithNulIsRefused) {
  Source source = valid_source();
  source.text[3] = '\0';
  EXPECT_NE(validate(source).reason().find("byte 3"), std::string::npos);
}

TEST(Source, OptionsAreChecked) {
  Source source = valid_source();
  source.max_registers = 255;
  EXPECT_TRUE(validate(source));
  source.max_registers = 256;
  EXPECT_FALSE(validate(source));
  source = valid_source();
  source.outputs = {false, false};
  EXPECT_FALSE(validate(source));
  source = valid_source();
  source.description = "{not json";
  EXPECT_FALSE(validate(source));
}

TEST(DeviceHeaders, AreTheFilesBelowDevice) {
  namespace fs = std::filesystem;
  const fs::path device = fs::path(TILEWRIGHT_SOURCE_DIR) / "device";
  std::map<std::string, std::string> files;
  for (const fs::directory_entry& file : fs::recursive_directory_iterator(device)) {
    if (file.path().extension() != ".cuh") continue;
    std::ostringstream text;
    text << std::ifstream(file.path()).rdbuf();
    files[fs::relative(file.path(), device).string()] = text.str();
  }
  std::map<std::string, std::string> embedded;
  for (const Header& header : device_headers()) embedded[std::string(header.name)] = header.text;
  EXPECT_EQ(embedded, files);
}

TEST(DeviceHeaders, AreSortedByName) {
  EXPECT_TRUE(std::is_sorted(device_headers().begin(), device_headers().end(),
                             [](const Header& a, const Header& b) { return a.name < b.name; }));
}

}  // namespace
}  // namespace tilewright::compile
