// Words that were meant by misspelt ones.
#include "tilewright/base/spelling.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace tilewright {
namespace {

const std::vector<std::string> kCommands{"gemm", "conv", "run", "find", "tune", "emit", "layout", "cache", "profile"};

TEST(Spelling, FindsTheWordWithTheFewestEdits) {
  EXPECT_EQ(closest("gem", kCommands), "gemm");       // a letter is missing
  EXPECT_EQ(closest("egmm", kCommands), "gemm");      // letters are swapped
  EXPECT_EQ(closest("GEMM", kCommands), "gemm");      // in upper case
  EXPECT_EQ(closest("tunne", kCommands), "tune");     // a letter too many
  EXPECT_EQ(closest("lauout", kCommands), "layout");  // a wrong letter
  EXPECT_EQ(closest("proflie", kCommands), "profile");
  EXPECT_EQ(closest("find", kCommands), "find");
}

TEST(Spelling, FindsNothingForOtherWords) {
  EXPECT_EQ(closest("multiply", kCommands), "");
  EXPECT_EQ(closest("", kCommands), "");
  EXPECT_EQ(closest("xy", kCommands), "");
  EXPECT_EQ(closest(std::string(1000, 'g'), kCommands), "");
  EXPECT_EQ(closest("gemm", {}), "");
}

TEST(Spelling, Suggests) {
  EXPECT_EQ(suggestion("cahce", kCommands), ": did you mean 'cache'?");
  EXPECT_EQ(suggestion("something", kCommands), "");
}

}  // namespace
}  // namespace tilewright
