// The algebra of layouts: printed goldens, refusals, and functional cases.
#include "tilewright/layout/algebra.hpp"

#include <gtest/gtest.h>

#include <string>

#include "tilewright/base/error.hpp"
#include "tilewright/layout/print.hpp"

namespace tilewright::layout {
namespace {

template <class Verb>
std::string refusal_of(Verb&& verb) {
  try {
    (void)verb();
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "accepted";
}

void expect_same_function(const Layout& a, const Layout& b) {
  ASSERT_EQ(size(a), size(b)) << a << " and " << b;
  for (std::int64_t i = 0; i < size(a); ++i) ASSERT_EQ(a(i), b(i)) << a << " and " << b << " at " << i;
}

void expect_composes(const Layout& a, const Layout& b) {
  const Layout r = composition(a, b);
  EXPECT_TRUE(compatible(b.shape(), r.shape())) << a << " o " << b << " = " << r;
  for (std::int64_t i = 0; i < size(b); ++i) ASSERT_EQ(r(i), a(b(i))) << a << " o " << b << " = " << r << " at " << i;
}

TEST(Coalesce, KeepsTheFunctionInTheFewestModes) {
  const struct {
    Layout layout;
    const char* coalesced;
  } cases[] = {
      {Layout(1, 0), "1:0"},
      {Layout(1, 1), "1:0"},
      {make_layout({2, 4}), "8:1"},
      {make_layout({2, 4, 6}), "48:1"},
      {make_layout({2, 1, 6}), "12:1"},
      {Layout({2, 1, 6}, {1, 6, 2}), "12:1"},
      {Layout({2, 1, 6}, {1, 7, 2}), "12:1"},
      {Layout({2, 1, 6}, {4, 7, 8}), "12:4"},
      {Layout({2, {4, 6}}, {24, {6, 1}}), "(2,4,6):(24,6,1)"},
      {make_layout({{2, 4}, {6, 3}}), "144:1"},
      {Layout({2, 2, 3}, {0, 0, 1}), "(4,3):(0,1)"},
      {Layout({4, 3}, {-1, -4}), "12:-1"},
      {Layout({{2, 2}, {2, 2}}, {{1, 4}, {8, 32}}), "(2,4,2):(1,4,32)"},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(to_string(coalesce(c.layout)), c.coalesced) << c.layout;
    expect_same_function(c.layout, coalesce(c.layout));
  }
}

TEST(Coalesce, ByProfile) {
  const Layout layout({2, {1, 6}}, {1, {6, 2}});
  EXPECT_EQ(to_string(coalesce(layout)), "12:1");
  EXPECT_EQ(to_string(coalesce(layout, IntTuple{1, 1})), "(2,6):(1,2)");
  EXPECT_EQ(to_string(coalesce(make_layout({{2, 2}, {2, 2}}), IntTuple{1})), "(4,(2,2)):(1,(4,8))");
  EXPECT_THROW(coalesce(layout, IntTuple{1, 1, 1}), InvalidArgument);
}

TEST(Coalesce, FilterDropsBroadcasts) {
  EXPECT_EQ(to_string(filter(Layout({4, {2, 3}}, {0, {1, 2}}))), "6:1");
  EXPECT_EQ(to_string(filter(Layout({4, 5}, {0, 0}))), "1:0");
}

TEST(Composition, Goldens) {
  const struct {
    Layout a, b;
    const char* result;
  } cases[] = {
      {Layout({6, 2}, {8, 2}), Layout({4, 3}, {3, 1}), "((2,2),3):((24,2),8)"},
      {Layout({3, 6, 2, 8}, {1, 1000, 10000, 100000}), Layout(16, 9), "(2,2,4):(3000,10000,100000)"},
      {Layout({8, 8}, {8, 1}), Layout(2, 3), "2:24"},
      {Layout({8, 8}, {8, 1}), Layout(3, 3), "3:24"},
      {Layout({4, 3}, {3, 1}), make_layout(24), "(4,6):(3,1)"},
      {Layout({4, 3}, {3, 1}), make_layout(8), "(4,2):(3,1)"},
      {Layout({4, 3, 1}, {3, 1, 0}), make_layout(24), "(4,3,2):(3,1,0)"},
      {Layout({1, {2, 4}}, {0, {-1, 512}}), Layout(2, -1), "2:1"},
      {Layout({20, 2}, {16, 4}), Layout({4, 5}, {1, 4}), "(4,5):(16,64)"},
      {Layout({10, 2}, {16, 4}), Layout({5, 4}, {1, 5}), "(5,(2,2)):(16,(80,4))"},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(to_string(composition(c.a, c.b)), c.result) << c.a << " o " << c.b;
    expect_composes(c.a, c.b);
  }
}

TEST(Composition, IsTheFunctionAfterTheFunction) {
  const std::pair<Layout, Layout> cases[] = {
      {Layout(1, 0), Layout(1, 0)},
      {Layout(1, 0), Layout(1, 1)},
      {Layout(1, 1), Layout(1, 0)},
      {make_layout(4), make_layout(4)},
      {Layout(4, 2), make_layout(4)},
      {make_layout(4), Layout(4, 2)},
      {Layout(4, 0), make_layout(4)},
      {make_layout(4), Layout(4, 0)},
      {make_layout(4), Layout(1, 0)},
      {make_layout(4), make_layout(2)},
      {Layout(4, 2), make_layout(2)},
      {make_layout(4), Layout(2, 2)},
      {Layout(4, 2), Layout(2, 2)},
      {make_layout(12), make_layout({4, 3})},
      {Layout(12, 2), make_layout({4, 3})},
      {make_layout(12), Layout({4, 3}, {3, 1})},
      {Layout(12, 2), Layout({4, 3}, {3, 1})},
      {make_layout(12), Layout({2, 3}, {2, 4})},
      {make_layout({4, 3}), make_layout({4, 3})},
      {make_layout({4, 3}), make_layout(12)},
      {make_layout({4, 3}), Layout(6, 2)},
      {make_layout({4, 3}), Layout({6, 2}, {2, 1})},
      {Layout({4, 3}, {3, 1}), make_layout({4, 3})},
      {Layout({4, 3}, {3, 1}), make_layout(12)},
      {Layout({4, 3}, {3, 1}), Layout(6, 2)},
      {Layout({4, 3}, {3, 1}), Layout({6, 2}, {2, 1})},
      {make_layout({8, 8}), make_layout({{2, 2, 2}, {2, 2, 2}})},
      {make_layout({8, 8}), Layout({{2, 2, 2}, {2, 2, 2}}, {{1, 16, 4}, {8, 2, 32}})},
      {Layout({8, 8}, {8, 1}), Layout({{2, 2, 2}, {2, 2, 2}}, {{1, 16, 4}, {8, 2, 32}})},
      {Layout({{4, 2}}, {{1, 16}}), Layout({4, 2}, {2, 1})},
      {Layout({2, 2}, {2, 1}), Layout({2, 2}, {2, 1})},
      {make_layout({4, 8, 2}), make_layout({2, 2, 2, 2, 2, 2, 2})},
      {Layout({4, 8, 2}, {2, 8, 1}), Layout({4, 2, 2}, {2, 8, 1})},
      {Layout({4, 8, 2}, {2, 8, 1}), Layout({2, 8}, {32, 4})},
      {Layout({4, 6, 8}, {1, 4, 7}), make_layout(6 * 8 * 4)},
      {Layout({4, 6, 8, 10}, {2, 3, 5, 7}), Layout(6, 12)},
  };
  for (const auto& [a, b] : cases) expect_composes(a, b);
}

TEST(Composition, ByModeDropsWhatTheTilerDoesNotName) {
  const Layout a({12, {4, 8}, 3}, {59, {13, 1}, 7});
  EXPECT_EQ(to_string(composition(a, Tiler{{Layout(3, 4), make_layout(8)}})), "(3,(4,2)):(236,(13,1))");
  EXPECT_EQ(to_string(composition(a, Tiler{{std::nullopt, make_layout(8)}})), "(12,(4,2)):(59,(13,1))");
  EXPECT_EQ(composition(a, make_tiler({3, 8})), composition(a, Tiler{{Layout(3, 1), Layout(8, 1)}}));
  EXPECT_THROW(composition(a, make_tiler({1, 1, 1, 1})), InvalidArgument);
}

TEST(Composition, RefusesWhatItCannotDoExactly) {
  EXPECT_NE(refusal_of([] {
              return composition(Layout({8, 8}, {8, 1}), Layout(4, 3));
            }).find("shape divisibility"),
            std::string::npos);
  EXPECT_NE(refusal_of([] {
              return composition(Layout({8, 8}, {8, 1}), Layout(6, 3));
            }).find("stride divisibility"),
            std::string::npos)
      << "a remainder that is carried into the next mode";
  EXPECT_NE(refusal_of([] {
              return composition(Layout({6, 2}, {1, 100}), make_layout(8));
            }).find("shape divisibility"),
            std::string::npos);
  EXPECT_NE(refusal_of([] {
              return composition(Layout({4, 8}, {8, 1}), Layout(2, 6));
            }).find("stride divisibility"),
            std::string::npos);
  EXPECT_NE(refusal_of([] {
              return composition(Layout({4, 8}, {8, 1}), Layout({2, 2}, {2, 3}));
            }).find("carry"),
            std::string::npos);
  EXPECT_EQ(
      refusal_of([] {
        return composition(Layout({6, 2}, {1, 100}), make_layout(8));
      }),
      "composition (6,2):(1,100) o 8:1 breaks shape divisibility: 8:1 has extent 8 left at mode 0, which holds 6 of "
      "it; the left side coalesced is (6,2):(1,100)");
}

TEST(Complement, Goldens) {
  const struct {
    Layout layout;
    std::int64_t cotarget;
    const char* result;
  } cases[] = {
      {make_layout(4), 24, "6:4"},
      {Layout(6, 4), 24, "4:1"},
      {make_layout({4, 6}), 24, "1:0"},
      {Layout(4, 2), 24, "(2,3):(1,8)"},
      {Layout({2, 4}, {1, 6}), 24, "3:2"},
      {Layout({2, 2}, {1, 6}), 24, "(3,2):(2,12)"},
      {Layout(4, 2), 19, "(2,3):(1,8)"},
      {Layout(1, 0), 5, "5:1"},
      {Layout(4, 0), 8, "8:1"},
      {make_layout(4), 1, "1:0"},
      {Layout({2, 4}, {4, 1}), 8, "1:0"},
      {Layout({2, 2}, {4, 1}), 16, "(2,2):(2,8)"},
  };
  for (const auto& c : cases) EXPECT_EQ(to_string(complement(c.layout, c.cotarget)), c.result) << c.layout;
}

TEST(Complement, Refusals) {
  EXPECT_NE(refusal_of([] { return complement(Layout({2, 2}, {2, 3}), 19); }).find("not injective"), std::string::npos);
  EXPECT_NE(refusal_of([] {
              return complement(Layout({3, 2}, {1, 5}), 20);
            }).find("not a multiple of 3"),
            std::string::npos);
  EXPECT_NE(refusal_of([] { return complement(Layout(4, -1), 8); }).find("negative"), std::string::npos);
  EXPECT_THROW(complement(make_layout(4), 0), InvalidArgument);
}

TEST(Divide, Goldens) {
  EXPECT_EQ(to_string(logical_divide(Layout({4, 2, 3}, {2, 1, 8}), Layout(4, 2))), "((2,2),(2,3)):((4,1),(2,8))");
  const Layout a({9, {4, 8}}, {59, {13, 1}});
  const Tiler tiler{{Layout(3, 3), Layout({2, 4}, {1, 8})}};
  EXPECT_EQ(to_string(logical_divide(a, tiler)), "((3,3),((2,4),(2,2))):((177,59),((13,2),(26,1)))");
  EXPECT_EQ(to_string(zipped_divide(a, tiler)), "((3,(2,4)),(3,(2,2))):((177,(13,2)),(59,(26,1)))");
  EXPECT_EQ(to_string(logical_divide(make_layout(2), make_layout(32))), "(32,1):(1,0)");
  EXPECT_EQ(to_string(logical_divide(make_layout(6), make_layout(4))), "(4,2):(1,4)") << "the last tile hangs over";
  EXPECT_EQ(to_string(zipped_divide(make_layout({128, 64, 3}), make_tiler({32, 16}))),
            "((32,16),(4,4,3)):((1,128),(32,2048,8192))");
  EXPECT_EQ(to_string(zipped_divide(make_layout({128, 64}), Tiler{{std::nullopt, make_layout(16)}})),
            "((1,16),(128,4)):((0,128),(1,2048))");
}

TEST(Divide, TilesAreTheComposition) {
  const Layout a({9, {4, 8}}, {59, {13, 1}});
  const Tiler tiler{{Layout(3, 3), Layout({2, 4}, {1, 8})}};
  EXPECT_EQ(zipped_divide(a, tiler).mode(0), composition(a, tiler));
}

TEST(Product, Goldens) {
  const Layout a({2, 2}, {4, 1});
  EXPECT_EQ(to_string(logical_product(a, make_layout(6))), "((2,2),(2,3)):((4,1),(2,8))");
  EXPECT_EQ(to_string(logical_product(a, Layout({4, 2}, {2, 1}))), "((2,2),(4,2)):((4,1),(8,2))");
  EXPECT_EQ(to_string(blocked_product(Layout({2, 5}, {5, 1}), make_layout({3, 4}))), "((2,3),(5,4)):((5,10),(1,30))");
  EXPECT_EQ(to_string(raked_product(Layout({2, 5}, {5, 1}), make_layout({3, 4}))), "((3,2),(4,5)):((10,5),(30,1))");
  EXPECT_EQ(to_string(logical_product(make_layout({2, 3}), Tiler{{make_layout(4)}})), "((2,4),3):((1,2),2)");
}

TEST(Product, TileToShape) {
  const Layout block({8, 64}, {64, 1});
  EXPECT_EQ(to_string(tile_to_shape(block, {128, 64})), "((8,16),(64,1)):((64,512),(1,8192))");
  EXPECT_EQ(to_string(tile_to_shape(block, {16, 128, 3})), "((8,2),(64,2),(1,3)):((64,512),(1,1024),(0,2048))");
  EXPECT_EQ(to_string(tile_to_shape(block, {16, 128}, {1, 0})), "((8,2),(64,2)):((64,1024),(1,512))");
  EXPECT_THROW(tile_to_shape(block, {12, 64}), InvalidArgument);
  EXPECT_THROW(tile_to_shape(block, 512), InvalidArgument);
}

TEST(Inverse, RightGoldens) {
  const std::pair<Layout, const char*> cases[] = {
      {Layout(1, 0), "1:0"},
      {Layout(4, 0), "1:0"},
      {Layout(4, 2), "1:0"},
      {make_layout({4, 6}), "24:1"},
      {Layout({4, 6}, {6, 1}), "(6,4):(4,1)"},
      {Layout({2, 4}, {1, 8}), "2:1"},
      {Layout({2, 4, 6}, {4, 1, 8}), "(4,2,6):(2,1,8)"},
      {Layout({4, 2}, {1, 16}), "4:1"},
      {Layout({3, 4}, {0, 1}), "4:3"},
      {Layout({4, 2}, {-1, 1}), "2:4"},
  };
  for (const auto& [layout, result] : cases) EXPECT_EQ(to_string(right_inverse(layout)), result) << layout;
}

TEST(Inverse, LeftGoldens) {
  const std::pair<Layout, const char*> cases[] = {
      {Layout(1, 0), "1:0"},
      {Layout(4, 0), "1:0"},
      {make_layout(4), "4:1"},
      {Layout(4, 2), "(2,4):(0,1)"},
      {Layout({4, 2}, {1, 16}), "(16,2):(1,4)"},
      {Layout({3, 2}, {1, 4}), "(4,2):(1,3)"},
      {Layout({2, 4, 6}, {4, 1, 8}), "(4,2,6):(2,1,8)"},
      {Layout({3, 4}, {0, 1}), "4:3"},
  };
  for (const auto& [layout, result] : cases) {
    const Layout inverse = left_inverse(layout);
    EXPECT_EQ(to_string(inverse), result) << layout;
    for (std::int64_t i = 0; i < size(layout); ++i)
      EXPECT_EQ(layout(inverse(layout(i))), layout(i)) << layout << " at " << i;
  }
}

TEST(Inverse, LeftRefusals) {
  EXPECT_NE(refusal_of([] { return left_inverse(Layout({4, 2}, {1, 2})); }).find("not injective"), std::string::npos);
  EXPECT_NE(refusal_of([] {
              return left_inverse(Layout({2, 2}, {2, 5}));
            }).find("not a multiple of 2"),
            std::string::npos);
  EXPECT_NE(refusal_of([] { return left_inverse(Layout(2, -1)); }).find("negative"), std::string::npos);
}

TEST(Recast, UpcastAndDowncast) {
  EXPECT_EQ(to_string(upcast(Layout({128, 64}, {64, 1}), 8)), "(128,8):(8,1)");
  EXPECT_EQ(to_string(upcast(Layout({4, 6}, {0, -16}), 8)), "(4,6):(0,-2)");
  EXPECT_EQ(to_string(upcast(Layout({8, {2, 4}}, {2, {1, 16}}), 4)), "(4,(1,4)):(1,(1,4))");
  EXPECT_EQ(to_string(downcast(Layout({128, 8}, {8, 1}), 8)), "(128,64):(64,1)");
  EXPECT_THROW(upcast(Layout(4, 3), 2), InvalidArgument);
}

}  // namespace
}  // namespace tilewright::layout
