// The command tilewright layout: its output, its pictures and files, and what it refuses.
#include <gtest/gtest.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tilewright/base/error.hpp"
#include "tilewright/layout/function_table.hpp"
#include "tools/cli/commands.hpp"

namespace tilewright::cli {
namespace {

// Runs the command and returns its output. Exceptions of the command pass to the caller.
std::string run(std::vector<std::string> arguments) {
  CLI::App app;
  const Command command = add_layout_command(app);
  arguments.insert(arguments.begin(), "layout");
  std::reverse(arguments.begin(), arguments.end());  // CLI11 takes the arguments in reverse order
  app.parse(arguments);
  testing::internal::CaptureStdout();
  try {
    EXPECT_EQ(command.run(), ExitCode::ok);
  } catch (...) {
    EXPECT_EQ(testing::internal::GetCapturedStdout(), "") << "a refused command must print nothing";
    throw;
  }
  return testing::internal::GetCapturedStdout();
}

std::string refusal(const std::vector<std::string>& arguments) {
  try {
    return "accepted: " + run(arguments);
  } catch (const InvalidArgument& refused) {
    return refused.what();
  }
}

class Folder {
 public:
  Folder() : path_(std::filesystem::temp_directory_path() / ("tilewright_layout_" + std::to_string(getpid()))) {
    std::filesystem::create_directory(path_);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string file(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

std::string contents(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(LayoutCommand, Evaluates) {
  EXPECT_EQ(run({"eval", "composition((20,2):(16,4),(4,5):(1,4))"}), "(4,5):(16,64)\n");
  EXPECT_EQ(run({"eval", "logical_divide(24:1,4:1)", "((4,8):(8,1))(5)"}), "(4,6):(1,4)\n9\n");
}

TEST(LayoutCommand, RefusesSyntaxErrorsWithTheColumn) {
  EXPECT_EQ(refusal({"eval", "size(composition(8:1,"}),
            "column 22: expected an integer, '(', '<' or a name, got the end");
  EXPECT_EQ(refusal({"eval", "size(compositon(8:1,4:1))"}), "column 6: no function compositon; near: composition");
  EXPECT_EQ(refusal({"eval", "8:1", "8:"}), "column 3: expected an integer, '(', '<' or a name, got the end");
  EXPECT_EQ(refusal({"draw", "(4,8)"}), "only layouts can be drawn, got a tuple: (4,8)");
  EXPECT_EQ(refusal({"draw", "(1024,1024):(1,1024)"}),
            "a drawing has at most 16384 cells, got 1048576: draw its tiles, or a slice");
}

TEST(LayoutCommand, ListsEveryFunction) {
  const std::string listed = run({"functions"});
  for (const layout::Function& function : layout::functions())
    EXPECT_NE(listed.find(function.signature() + "\n    "), std::string::npos) << function.name;
}

TEST(LayoutCommand, DrawsOnTheTerminal) {
  EXPECT_EQ(run({"draw", "(1,2):(2,1)"}), "(1,2):(2,1)\n     0   1\n   +---+---+\n 0 | 0 | 1 |\n   +---+---+\n");
  EXPECT_NE(run({"draw", "((4,8),(2,2)):((32,1),(16,8))", "--thread-values", "16x8"}).find("| T31 V3 |"),
            std::string::npos);
  EXPECT_NE(run({"draw", "((4,8):(8,1))(_,3)", "--title", "a column"}).find("a column\n"), std::string::npos);
  EXPECT_NE(run({"draw", "(4,8):(8,1)", "--tile", "2x4"}).find(" 1 |  8 |  9 | 10 | 11 # 12 |"), std::string::npos);
  EXPECT_NE(run({"draw", "(4,8):(8,1)", "--tile", "2x4", "--cell-per-tile", "--bits", "16"}).find(" 2 | 32 | 40 |"),
            std::string::npos);
  EXPECT_NE(run({"draw", "8:1", "--banks", "--bits", "64"}).find("| 7 b14 |"), std::string::npos);
}

// Descriptors of a 64x128x64 tile of f16. A: 64 x 64, row-major (K-major), LBO 16, SBO 1024. B: 64 x 128 (K x N),
// row-major (MN-major), LBO 8192, SBO 1024. The next instruction along K is 32 bytes further in A and 2048 in B.
TEST(LayoutCommand, DrawsTheOperandsOfWgmma) {
  const std::string a = run({"draw", "Sw<3,3,3> o (64,64):(64,1)", "--wgmma", "a", "--bits", "16"});
  EXPECT_NE(a.find("LBO 16 B: from column 0 to 8\nSBO 1024 B: from row 0 to 8\n"), std::string::npos) << a;
  EXPECT_NE(a.find("descriptor 0x4000004000010000: "), std::string::npos) << a;
  EXPECT_NE(a.find("the next are at +32 bytes"), std::string::npos) << a;
  const std::string b = run({"draw", "Sw<3,3,3> o ((64,2),64):((1,4096),64)", "--wgmma", "b", "--bits", "16"});
  EXPECT_NE(b.find("LBO 8192 B: from column 0 to 64\nSBO 1024 B: from row 0 to 8\n"), std::string::npos) << b;
  EXPECT_NE(b.find("descriptor 0x4000004002000000: "), std::string::npos) << b;
  EXPECT_NE(b.find("the next are at +2048 bytes"), std::string::npos) << b;
}

TEST(LayoutCommand, RefusesOptionsThatDoNotFit) {
  EXPECT_EQ(refusal({"draw", "8:1", "--banks"}), "--banks needs --bits, the width of an element in bits");
  EXPECT_EQ(refusal({"draw", "8:1", "--thread-values", "8"}),
            "--thread-values must be two positive numbers such as 8x16, got '8'");
  EXPECT_EQ(refusal({"draw", "(4,8):(8,1)", "--tile", "3x4"}), "tiles of 3x4 do not divide 4x8");
  EXPECT_EQ(refusal({"draw", "(4,8):(8,1)", "--tile", "0x4"}),
            "--tile must be two positive numbers such as 8x16, got '0x4'");
  EXPECT_EQ(refusal({"draw", "8:1", "8:1", "--wgmma", "a"}),
            "--wgmma must be given once per expression: given 1 times for 2 expressions");
  EXPECT_EQ(refusal({"draw", "8:1", "--wgmma", "c", "--bits", "16"}), "--wgmma must be a or b, got 'c'");
  EXPECT_EQ(refusal({"draw", "(64,64):(2,128)", "--wgmma", "a", "--bits", "16"}),
            "neither mode of Sw<0,0,0> o 0 o (64,64):(2,128) is contiguous");
  EXPECT_THROW(run({"draw", "8:1", "--banks", "--bits", "16", "--thread-values", "2x4"}), CLI::ParseError);
  EXPECT_THROW(run({"draw"}), CLI::ParseError);
  EXPECT_THROW(run({"draw", "8:1", "--bits", "0"}), InvalidArgument);
  EXPECT_THROW(run({}), CLI::ParseError);
}

TEST(LayoutCommand, WritesCompleteFilesOrNone) {
  const Folder folder;
  EXPECT_EQ(run({"draw", "8:1", "--svg", folder.file("a.svg"), "--latex", folder.file("a.tex")}), "");
  EXPECT_EQ(contents(folder.file("a.svg")), run({"draw", "8:1", "--svg", "-"}));
  EXPECT_EQ(contents(folder.file("a.tex")), run({"draw", "8:1", "--latex", "-"}));

  EXPECT_NE(refusal({"draw", "8:1", "--svg", folder.file("no/a.svg")}).find("cannot be written"), std::string::npos);
  std::filesystem::remove_all(folder.file("a.svg"));
  EXPECT_NE(refusal({"draw", "8", "--svg", folder.file("a.svg")}).find("only layouts can be drawn"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(folder.file("a.svg")));
}

}  // namespace
}  // namespace tilewright::cli
