// Pictures: contents of cells, refusals, and the three renderers.
#include "tilewright/layout/draw.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace tilewright::layout {
namespace {

ComposedLayout plain(Layout layout) { return {Swizzle(), 0, std::move(layout)}; }

const Cell& cell(const Picture& picture, int row, int column) {
  return picture.cells[static_cast<std::size_t>(row * picture.columns.cells + column)];
}

std::tuple<int, int, int> rgb(const Colour& colour) { return {colour.red, colour.green, colour.blue}; }

std::size_t colours_of_column(const Picture& picture, int column) {
  std::set<std::tuple<int, int, int>> colours;
  for (int row = 0; row < picture.rows.cells; ++row) colours.insert(rgb(cell(picture, row, column).fill));
  return colours.size();
}

TEST(Draw, OffsetsOfALayout) {
  const std::vector<Picture> pictures = *offset_pictures(plain(Layout({2, {2, 2}}, {1, {4, 2}})), "L");
  ASSERT_EQ(pictures.size(), 1U);
  EXPECT_EQ(to_terminal(pictures, false),
            "L\n"
            "     0   1   2   3\n"
            "   +---+---#---+---+\n"
            " 0 | 0 | 4 # 2 | 6 |\n"
            "   +---+---#---+---+\n"
            " 1 | 1 | 5 # 3 | 7 |\n"
            "   +---+---#---+---+\n");
  EXPECT_NE(cell(pictures[0], 0, 0).fill, cell(pictures[0], 1, 3).fill) << "larger offsets are darker";
}

TEST(Draw, RankOneIsARowAndHigherRanksAreSeveralPictures) {
  EXPECT_EQ(offset_pictures(plain(Layout(8, 1)), "")->front().columns.cells, 8);
  const std::vector<Picture> tables = *offset_pictures(plain(make_layout({2, 3, {2, 2}})), "L");
  ASSERT_EQ(tables.size(), 4U);
  EXPECT_EQ(tables[3].title, "L  at (_,_,(1,1))");
  EXPECT_EQ(cell(tables[3], 1, 2).first, "23");
}

TEST(Draw, CoordinatesOfALayoutWithBasisStrides) {
  const std::vector<Picture> pictures = *offset_pictures(plain(make_identity_layout({2, 3})), "");
  EXPECT_EQ(cell(pictures[0], 1, 2).first, "(1,2)");
}

// PTX ISA, mma.m16n8k16, fragment of C: row = lane / 4 + 8 * (i / 2), column = lane % 4 * 2 + i % 2.
TEST(Draw, ThreadsAndValuesOfAFragment) {
  const Picture picture = *thread_value_picture(Layout({{4, 8}, {2, 2}}, {{32, 1}, {16, 8}}), 16, 8, "");
  for (int lane = 0; lane < 32; ++lane) {
    for (int i = 0; i < 4; ++i) {
      const Cell& held = cell(picture, lane / 4 + 8 * (i / 2), lane % 4 * 2 + i % 2);
      EXPECT_EQ(held.first, "T" + std::to_string(lane));
      EXPECT_EQ(held.second, "V" + std::to_string(i));
      EXPECT_EQ(held.fill, cell(picture, lane / 4, lane % 4 * 2).fill) << "all values of a thread have one colour";
    }
  }
  EXPECT_EQ(colours_of_column(picture, 0), 8U);
}

TEST(Draw, CellsOfSeveralThreads) {
  const Picture picture = *thread_value_picture(Layout({2, 4}, {0, 1}), 2, 2, "");
  EXPECT_EQ(cell(picture, 1, 0).first, "T0+");
  EXPECT_EQ(cell(picture, 1, 0).second, "V1");
}

// With a 128-byte swizzle, eight rows of one 16-byte column are in eight different groups of banks.
TEST(Draw, BanksOfASwizzledLayout) {
  const Layout rows({8, 32}, {32, 1});
  const Picture without = bank_pictures(plain(rows), 32, "")->front();
  const Picture with = bank_pictures({Swizzle(3, 2, 3), 0, rows}, 32, "")->front();
  for (int column = 0; column < 32; ++column) {
    EXPECT_EQ(colours_of_column(without, column), 1U);
    EXPECT_EQ(colours_of_column(with, column), 8U);
  }
  EXPECT_EQ(cell(with, 1, 0).first, "36");
  EXPECT_EQ(cell(with, 1, 0).second, "b4");
  EXPECT_EQ(with.legend.size(), 8U);
}

// The picture for wgmma descriptors: core matrices of B, 64 x 128 (K x N) 16-bit elements, N-major in boxes of 64.
TEST(Draw, TilesShowTheirOffsets) {
  const Layout b({64, {64, 2}}, {64, {1, 4096}});
  const Picture picture = *tile_picture(plain(b), {8, 8, 16, 16, 128}, "");
  EXPECT_EQ(picture.rows, (Axis{8, 8, 0}));
  EXPECT_EQ(picture.columns, (Axis{16, 8, 0}));
  EXPECT_EQ(cell(picture, 0, 1).first, "16");
  EXPECT_EQ(cell(picture, 1, 0).first, "1024");
  EXPECT_EQ(cell(picture, 0, 8).first, "8192");
  EXPECT_NE(cell(picture, 0, 0).fill, cell(picture, 1, 15).fill);
  EXPECT_EQ(cell(picture, 1, 15).fill, cell(picture, 1, 0).fill) << "both are in the first 16 elements of k";
  EXPECT_NE(cell(picture, 1, 15).fill, cell(picture, 2, 15).fill);
}

TEST(Draw, ElementsColouredByTile) {
  const Picture picture = *tiled_picture(plain(Layout({8, 8}, {8, 1})), 2, 4, "");
  EXPECT_EQ(picture.rows, (Axis{8, 1, 2}));
  EXPECT_EQ(picture.columns, (Axis{8, 1, 4}));
  EXPECT_EQ(cell(picture, 1, 3).first, "11");
  EXPECT_EQ(cell(picture, 1, 3).fill, cell(picture, 0, 0).fill);
  EXPECT_NE(cell(picture, 1, 4).fill, cell(picture, 0, 0).fill);
  EXPECT_NE(cell(picture, 2, 3).fill, cell(picture, 0, 0).fill);
}

TEST(Draw, Refusals) {
  EXPECT_EQ(tiled_picture(plain(Layout({4, 8}, {8, 1})), 4, 3, "").reason(), "tiles of 4x3 do not divide 4x8");
  EXPECT_EQ(offset_pictures(plain(make_layout({256, 256})), "").reason(),
            "a drawing has at most 16384 cells, got 65536: draw its tiles, or a slice");
  EXPECT_EQ(bank_pictures(plain(Layout(4, -1)), 16, "").reason(), "shared memory has no negative offsets, got -3");
  EXPECT_FALSE(bank_pictures(plain(Layout(4, 1)), 0, ""));
  EXPECT_FALSE(bank_pictures(plain(make_identity_layout({2, 2})), 16, ""));
  EXPECT_EQ(thread_value_picture(Layout({4, 8}, {8, 1}), 4, 4, "").reason(),
            "thread 2 value 0 is at index 16, outside the tile of 4x4");
  EXPECT_FALSE(thread_value_picture(Layout(8, 1), 8, 1, ""));
  EXPECT_FALSE(thread_value_picture(Layout({2, 2}, {1, 2}), 0, 4, ""));
  EXPECT_FALSE(thread_value_picture(Layout({1 << 20, 2}, {0, 1}), 2, 1, "")) << "(thread, value) pairs are limited too";
  EXPECT_EQ(tile_picture(plain(Layout({4, 8}, {8, 1})), {3, 8}, "").reason(), "tiles of 3x8 do not divide 4x8");
  EXPECT_FALSE(tile_picture(plain(Layout(8, 1)), {1, 8}, ""));
}

std::vector<Picture> with_everything() {
  Picture picture = *tile_picture(plain(Layout({8, 16}, {16, 1})), {4, 8, 16}, "a<b> & {c}");
  picture.dimensions = {{false, 0, 1, "LBO 16 B"}, {true, 0, 1, "SBO 128 B"}};
  picture.legend = {{{1, 2, 3}, "0-3"}};
  picture.notes = {"50% of a_b"};
  return {picture, picture};
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST(Draw, Terminal) {
  const std::string text = to_terminal(with_everything(), false);
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_EQ(count(text, "LBO 16 B: from column 0 to 8\n"), 2U);
  EXPECT_EQ(count(text, "SBO 128 B: from row 0 to 4\n"), 2U);
  EXPECT_EQ(count(to_terminal(with_everything(), true), "48;2;1;2;3m 0-3 \x1b[0m"), 2U);
}

TEST(Draw, Svg) {
  const std::string text = to_svg(with_everything());
  EXPECT_TRUE(text.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\" "));
  EXPECT_TRUE(text.ends_with("</svg>\n"));
  EXPECT_EQ(count(text, "a&lt;b&gt; &amp; {c}"), 3U) << "the title of the document and of each picture";
  EXPECT_EQ(count(text, "<rect"), 1U + 2 * (4 + 1)) << "background, cells, legend";
  EXPECT_EQ(count(text, ">LBO 16 B</text>"), 2U);
  EXPECT_EQ(text, to_svg(with_everything()));
}

TEST(Draw, Latex) {
  const std::string text = to_latex(with_everything());
  EXPECT_TRUE(text.starts_with("\\documentclass[tikz,border=4mm]{standalone}\n"));
  EXPECT_EQ(count(text, "\\begin{tikzpicture}"), 2U);
  EXPECT_EQ(count(text, "\\fill["), 2U * (4 + 1));
  EXPECT_NE(text.find("a\\textless{}b\\textgreater{} \\& \\{c\\}"), std::string::npos);
  EXPECT_NE(text.find("50\\% of a\\_b"), std::string::npos);
}

}  // namespace
}  // namespace tilewright::layout
