// Coalesce, filter, composition, complement, inverses, recast: expected results and refusals.
#include "tilewright/layout/algebra.hpp"

#include <gtest/gtest.h>

#include <string>

#include "postconditions.hpp"
#include "tilewright/base/error.hpp"
#include "tilewright/layout/print.hpp"

namespace tilewright::layout {
namespace {

void expect_same_function(const Layout& a, const Layout& b) {
  ASSERT_EQ(size(a), size(b)) << a << " and " << b;
  for (std::int64_t i = 0; i < size(a); ++i) ASSERT_EQ(a(i), b(i)) << a << " and " << b << " at " << i;
}

TEST(Coalesce, MergesModesAndKeepsTheFunction) {
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

TEST(Coalesce, ByMode) {
  const Layout layout({2, {1, 6}}, {1, {6, 2}});
  EXPECT_EQ(to_string(coalesce(layout)), "12:1");
  EXPECT_EQ(to_string(coalesce(layout, IntTuple{1, 1})), "(2,6):(1,2)");
  EXPECT_EQ(to_string(coalesce(make_layout({{2, 2}, {2, 2}}), IntTuple{1})), "(4,(2,2)):(1,(4,8))");
  EXPECT_THROW(coalesce(layout, IntTuple{1, 1, 1}), InvalidArgument);
}

TEST(Coalesce, FilterRemovesStrideZeroModes) {
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
    EXPECT_EQ(composition_breaks(c.a, c.b), "");
  }
}

TEST(Composition, ByModeDropsModesPastTheTiler) {
  const Layout a({12, {4, 8}, 3}, {59, {13, 1}, 7});
  EXPECT_EQ(to_string(composition(a, Tiler{Layout(3, 4), make_layout(8)})), "(3,(4,2)):(236,(13,1))");
  EXPECT_EQ(to_string(composition(a, Tiler{_, make_layout(8)})), "(12,(4,2)):(59,(13,1))");
  EXPECT_EQ(composition(a, make_tiler({3, 8})), composition(a, Tiler{Layout(3, 1), Layout(8, 1)}));
  EXPECT_THROW(composition(a, make_tiler({1, 1, 1, 1})), InvalidArgument);
}

TEST(Composition, RefusesViolatedDivisibility) {
  EXPECT_NE(refusal_of([] {
              return composition(Layout({8, 8}, {8, 1}), Layout(4, 3));
            }).find("shape divisibility"),
            std::string::npos);
  EXPECT_NE(refusal_of([] {
              return composition(Layout({8, 8}, {8, 1}), Layout(6, 3));
            }).find("stride divisibility"),
            std::string::npos)
      << "the sum carries into the next mode";
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
  EXPECT_NE(refusal_of([] { return complement(Layout(4, -1), 8); }).find("negative"), std::string::npos);
  EXPECT_THROW(complement(make_layout(4), 0), InvalidArgument);
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
  EXPECT_NE(refusal_of([] { return left_inverse(Layout({2, 2}, {-1, 2})); }).find("negative"), std::string::npos);
}

TEST(Inverse, NullspaceHasTheStrideZeroModes) {
  EXPECT_EQ(to_string(nullspace(Layout({2, 2, 2}, {1, 0, 2}))), "2:2");
  EXPECT_EQ(to_string(nullspace(Layout({7, 5, 16}, {0, 0, 0}))), "(7,5,16):(1,7,35)");
  EXPECT_EQ(to_string(nullspace(make_layout(8))), "1:0");
}

TEST(Inverse, MaxCommon) {
  EXPECT_EQ(max_common_vector(make_layout({8, 4}), make_layout({8, 4})), 32);
  EXPECT_EQ(max_common_vector(make_layout({8, 4}), Layout({8, 4}, {1, 16})), 8);
  EXPECT_EQ(max_common_vector(make_layout({8, 4}), make_row_major({8, 4})), 1);
  EXPECT_EQ(to_string(max_common_layout(Layout({8, 4}, {4, 1}), Layout({8, 4}, {8, 1}))), "4:8");
}

TEST(Inverse, MaxAlignmentOfContiguousGroups) {
  EXPECT_EQ(max_alignment(make_layout({8, 64})), 512);
  EXPECT_EQ(max_alignment(Layout({8, 4}, {1, 12})), 4);
  EXPECT_EQ(max_alignment(Layout({8, 4}, {12, 1})), 4);
  EXPECT_EQ(max_alignment(Layout(4, 2)), 1);
}

TEST(DomainDistribute, DividesModesFromTheLeft) {
  EXPECT_EQ(to_string(domain_distribute({15, 14}, 6)), "(3,2):(1,15)");
  EXPECT_EQ(to_string(domain_distribute({8, 8}, 16)), "16:1");
}

TEST(Basis, IdentityLayoutsMapToCoordinates) {
  const Layout identity = make_identity_layout({4, {2, 3}});
  EXPECT_EQ(to_string(identity), "(4,(2,3)):(1@0,(1@0@1,1@1@1))");
  EXPECT_EQ(coordinate(identity, 23), (IntTuple{3, {1, 2}}));
  EXPECT_EQ(to_string(coalesce(Layout({2, 4, 3}, {basis(1, {0}), basis(2, {0}), basis(8, {1})}))), "(8,3):(1@0,8@1)");
  EXPECT_NE(refusal_of([&] { return identity(3); }).find("scaled basis element"), std::string::npos);
  EXPECT_NE(refusal_of([&] { return right_inverse(identity); }).find("stride 1@0 is not an integer"),
            std::string::npos);
  EXPECT_THROW(left_inverse(identity), InvalidArgument);
  EXPECT_THROW(complement(identity, 8), InvalidArgument);
  EXPECT_THROW(upcast(identity, 2), InvalidArgument);
}

TEST(Basis, CompositionUsesTheModesThatBasesName) {
  const Layout a({8, {2, 3}}, {6, {3, 1}});
  EXPECT_EQ(composition(a, make_identity_layout(a.shape())), a);
  EXPECT_EQ(to_string(composition(a, Layout({2, 4}, {basis(1, {1, 0}), basis(2, {0})}))), "(2,4):(3,12)");
  EXPECT_NE(refusal_of([&] {
              return composition(a, Layout({2, 2}, {basis(1, {1}), basis(1, {1, 0})}));
            }).find("a mode and a part of it"),
            std::string::npos);
  EXPECT_THROW(composition(a, Layout(2, basis(1, {2}))), InvalidArgument);
  EXPECT_NE(refusal_of([&] { return composition(a, Layout(5, basis(1, {1}))); }).find("at @1"), std::string::npos);
}

/// TMA boxes: the coordinates of a tile in shared-memory order (CUTLASS 4.7, construct_tma_gbasis).
TEST(Basis, TileInSharedMemoryOrder) {
  const Layout gmem = make_identity_layout({4096, 4096});
  const auto box = [&](const Layout& smem, std::int64_t rows, std::int64_t columns) {
    return to_string(coalesce(composition(composition(gmem, make_tiler({rows, columns})), right_inverse(smem))));
  };
  const Layout k_atom({8, 64}, {64, 1});
  const Layout mn_atom({64, 8}, {1, 64});
  EXPECT_EQ(box(tile_to_shape(k_atom, {128, 64}), 128, 64), "(64,128):(1@1,1@0)");
  EXPECT_EQ(box(tile_to_shape(k_atom, {128, 128}), 128, 128), "(64,128,2):(1@1,1@0,64@1)");
  EXPECT_EQ(box(tile_to_shape(Layout({8, 8}, {8, 1}), {128, 64}), 128, 64), "(8,128,8):(1@1,1@0,8@1)");
  EXPECT_EQ(box(tile_to_shape(mn_atom, {128, 64}), 128, 64), "(64,8,2,8):(1@0,1@1,64@0,8@1)");
  EXPECT_EQ(box(tile_to_shape(mn_atom, {128, 64}, {2, 1}), 128, 64), "(64,64,2):(1@0,1@1,64@0)");
}

TEST(Recast, UpcastAndDowncast) {
  EXPECT_EQ(to_string(upcast(Layout({128, 64}, {64, 1}), 8)), "(128,8):(8,1)");
  EXPECT_EQ(to_string(upcast(Layout({4, 6}, {0, -16}), 8)), "(4,6):(0,-2)");
  EXPECT_EQ(to_string(upcast(Layout({8, {2, 4}}, {2, {1, 16}}), 4)), "(4,(1,4)):(1,(1,4))");
  EXPECT_EQ(to_string(downcast(Layout({128, 8}, {8, 1}), 8)), "(128,64):(64,1)");
  EXPECT_THROW(upcast(Layout(4, 3), 2), InvalidArgument);
  EXPECT_THROW(downcast(Layout(4, 2), 2), InvalidArgument) << "no mode has stride 1";
}

TEST(Recast, UpcastsAndDowncastsByTheReducedRatio) {
  const Layout layout({8, 64}, {64, 1});
  EXPECT_EQ(to_string(recast(layout, 16, 128)), "(8,8):(8,1)");
  EXPECT_EQ(to_string(recast(layout, 16, 8)), "(8,128):(128,1)");
  EXPECT_EQ(recast(layout, 16, 16), layout);
  EXPECT_EQ(to_string(recast(Layout({8, 96}, {96, 1}), 16, 24)), "(8,64):(64,1)");
  EXPECT_THROW(recast(layout, 16, 0), InvalidArgument);
}

}  // namespace
}  // namespace tilewright::layout
