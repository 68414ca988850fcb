// Lists and ranges of extents.
#include "tilewright/profile/extents.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tilewright::profile {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::int64_t> extents(std::string_view text) { return parse_extents(text, "--m").value_or_throw(); }
std::string refusal(std::string_view text) { return parse_extents(text, "--m").reason(); }

TEST(Extents, SingleValuesListsAndRanges) {
  EXPECT_THAT(extents("64"), ElementsAre(64));
  EXPECT_THAT(extents("64,1,7"), ElementsAre(64, 1, 7));
  EXPECT_THAT(extents("128:512:128"), ElementsAre(128, 256, 384, 512));
  EXPECT_THAT(extents("1:10:4"), ElementsAre(1, 5, 9));
  EXPECT_THAT(extents("16:128"), ElementsAre(16, 32, 64, 128));
  EXPECT_THAT(extents("100:700"), ElementsAre(100, 200, 400));
  EXPECT_THAT(extents("5:5"), ElementsAre(5));
  EXPECT_THAT(extents("3,8:16:8,1:4"), ElementsAre(3, 8, 16, 1, 2, 4));
  EXPECT_THAT(extents("2147483647"), ElementsAre(2147483647));
}

TEST(Extents, RefusalsHaveTheText) {
  for (const char* const text : {"", "a", "1:2:3:4", "1,,2", "1:", ":2", "1:2:", " 1", "1e3", "+1", "1.5", "1,"})
    EXPECT_THAT(refusal(text), HasSubstr("--m must be an extent (64), a list")) << text;
  EXPECT_THAT(refusal("0"), HasSubstr("--m must be 1 to 2147483647, got '0'"));
  EXPECT_THAT(refusal("-4"), HasSubstr("must be 1 to 2147483647"));
  EXPECT_THAT(refusal("2147483648"), HasSubstr("must be 1 to 2147483647"));
  EXPECT_THAT(refusal("64:32"), HasSubstr("--m has the range 64:32: its last value is below the first"));
  EXPECT_THAT(refusal("1:64:0"), HasSubstr("its step must be at least 1"));
  EXPECT_THAT(refusal("1:64:-1"), HasSubstr("its step must be at least 1"));
  EXPECT_THAT(refusal("1:200000:1"), HasSubstr("--m has more than 100000 extents"));
}

}  // namespace
}  // namespace tilewright::profile
