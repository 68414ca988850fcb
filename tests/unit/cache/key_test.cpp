// A key changes with everything that the compiled code depends on, and with nothing else.
#include "tilewright/cache/key.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "tests/unit/cache/fake_compiler.hpp"

namespace tilewright::cache {
namespace {

TEST(Key, ChangesWithEachField) {
  const std::vector<std::function<void(compile::Source&)>> changes = {
      [](compile::Source&) {},
      [](compile::Source& s) { s.name = "other"; },
      [](compile::Source& s) { s.symbol = "other"; },
      [](compile::Source& s) { s.text += " "; },
      [](compile::Source& s) { s.target.sm = 80; },
      [](compile::Source& s) { s.target.features = FeatureSet::baseline; },
      [](compile::Source& s) { s.outputs.cubin = false; },
      [](compile::Source& s) { s.outputs.ptx = false; },
      [](compile::Source& s) { s.line_info = false; },
      [](compile::Source& s) { s.max_registers = 64; },
      [](compile::Source& s) { s.description = "{}"; },
      [](compile::Source& s) { std::swap(s.name, s.symbol); },
  };
  std::set<Key> keys;
  for (const auto& change : changes) {
    compile::Source source = source_named("gemm");
    change(source);
    keys.insert(make_key(source, "nvrtc A"));
  }
  keys.insert(make_key(source_named("gemm"), "nvrtc B"));
  EXPECT_EQ(keys.size(), changes.size() + 1);
  EXPECT_EQ(keys.count(make_key(source_named("gemm"), "nvrtc A")), 1u);
}

TEST(Key, FieldBoundariesCount) {
  compile::Source one = source_named("gemm");
  compile::Source other = one;
  one.symbol = "ab";
  one.description = "c";
  other.symbol = "a";
  other.description = "bc";
  EXPECT_NE(make_key(one, ""), make_key(other, ""));
}

TEST(Key, HexRoundTrip) {
  const Key key = make_key(source_named("gemm"), "nvrtc");
  EXPECT_EQ(parse_key(key.name()), key);
  EXPECT_EQ(parse_key(key.name().substr(1)), std::nullopt);
  EXPECT_EQ(parse_key(key.name() + "00"), std::nullopt);
  std::string bad = key.name();
  bad[10] = 'G';
  EXPECT_EQ(parse_key(bad), std::nullopt);
  bad[10] = 'A';
  EXPECT_EQ(parse_key(bad), std::nullopt) << "file systems may ignore case";
}

}  // namespace
}  // namespace tilewright::cache
