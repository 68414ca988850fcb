// Expressions: an example of every function, operators, and refusals with the column.
#include "tilewright/layout/expression.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "tilewright/layout/function_table.hpp"

namespace tilewright::layout {
namespace {

std::string value(std::string_view text) {
  const Result<Value> result = evaluate(text);
  return result ? notation(*result) : result.reason();
}

struct Example {
  std::string_view expression;
  std::string_view expected;
};

// Expected values are from CuTe's documentation (02_layout_algebra.md, 0t_mma_atom.md) for the algebra, divides and
// products; the others are computed by hand from the definitions in the headers.
constexpr Example examples[] = {
    {"make_layout((4,(2,3)))", "(4,(2,3)):(1,(4,8))"},
    {"make_layout((4,8),(8,1))", "(4,8):(8,1)"},
    {"make_layout(4:1,(2,3):(4,8),5:30)", "(4,(2,3),5):(1,(4,8),30)"},
    {"make_row_major((4,8))", "(4,8):(8,1)"},
    {"make_ordered_layout((3,(2,5),7),(2,0,1))", "(3,(2,5),7):(70,(1,2),10)"},
    {"make_layout_like((2,3):(30,10))", "(2,3):(3,1)"},
    {"make_fragment_like((2,3,4):(12,4,1))", "(2,3,4):(1,8,2)"},
    {"make_identity_layout((4,8))", "(4,8):(1@0,1@1)"},
    {"make_basis_like((4,(2,3)))", "(1@0,(1@0@1,1@1@1))"},
    {"make_tiler((128,_))", "<128:1,_>"},
    {"make_swizzle(896,112)", "Sw<3,4,3>"},
    {"shape((4,8):(8,1))", "(4,8)"},
    {"shape((4,(2,3)):(1,(4,8)),(1,0))", "2"},
    {"stride((4,8):(8,1))", "(8,1)"},
    {"stride((4,8):(8,1),0)", "8"},
    {"get((4,(2,3)):(1,(4,8)),1)", "(2,3):(4,8)"},
    {"get(((2,3),8),(0,1))", "3"},
    {"layout(Sw<3,4,3> o 5 o 8:1)", "8:1"},
    {"offset(Sw<3,4,3> o 5 o 8:1)", "5"},
    {"swizzle(Sw<3,4,3> o 5 o 8:1)", "Sw<3,4,3>"},
    {"source_bits(Sw<3,4,3>)", "896"},
    {"target_bits(Sw<3,4,3>)", "112"},
    {"flatten(((2,2),8):((1,4),2))", "(2,2,8):(1,4,2)"},
    {"unflatten((2,2,8),((1,1),1))", "((2,2),8)"},
    {"take((2,3,5):(1,2,6),0,2)", "(2,3):(1,2)"},
    {"select((2,3,5),(2,0))", "(5,2)"},
    {"group((2,3,5):(1,2,6),0,2)", "((2,3),5):((1,2),6)"},
    {"replace((2,3):(1,2),0,4:7)", "(4,3):(7,2)"},
    {"reverse((2,(3,5)))", "((3,5),2)"},
    {"append(4:1,2)", "(4,1):(1,0)"},
    {"append((2,3):(1,2),5:6)", "(2,3,5):(1,2,6)"},
    {"append((2,3),5)", "(2,3,5)"},
    {"prepend(4:1,2)", "(1,4):(0,1)"},
    {"rank((4,8):(8,1))", "2"},
    {"depth(((2,2),8):((1,4),2))", "2"},
    {"size((4,8):(8,1))", "32"},
    {"size(((2,2),8):((1,4),2),0)", "4"},
    {"cosize((2,4):(1,6))", "20"},
    {"coshape(make_identity_layout((4,8)))", "(4,8)"},
    {"max_alignment((8,8):(1,16))", "8"},
    {"product(((2,2),8))", "32"},
    {"product_each(((2,2),8))", "(4,8)"},
    {"inner_product((2,3),(5,7))", "31"},
    {"elem_scale((2,3),(4,5))", "(8,15)"},
    {"tuple_max((3,(9,2)))", "9"},
    {"prefix_product(((2,3),4))", "((1,2),6)"},
    {"suffix_product(((2,3),4))", "((12,4),1)"},
    {"compact_order((4,8),(1,0))", "(8,1)"},
    {"ceil_div((7,6),(2,3))", "(4,2)"},
    {"shape_div((6,2),12)", "(1,1)"},
    {"as_arithmetic_tuple(5@1)", "(0,5)"},
    {"congruent((1,(2,3)),(4,(5,6)))", "true"},
    {"weakly_congruent((1,2),3)", "false"},
    {"compatible(24,(4,6))", "true"},
    {"evenly_divides((8,8),(4,3))", "false"},
    {"elem_less((1,2),(2,3))", "true"},
    {"elem_leq((1,3),(1,3))", "true"},
    {"elem_gtr((1,2),(2,3))", "false"},
    {"elem_geq((2,3),(1,2))", "true"},
    {"lex_less((1,5),(2,0))", "true"},
    {"colex_less((1,5),(2,0))", "false"},
    {"crd2idx((1,2),(4,8))", "9"},
    {"crd2idx((1,2),(4,8),(8,1))", "10"},
    {"idx2crd(9,(4,8))", "(1,2)"},
    {"idx2crd(10,(4,8),(8,1))", "(1,2)"},
    {"crd2crd(9,32,(4,8))", "(1,2)"},
    {"hierarchical_coord((4,8):(8,1),10)", "(1,2)"},
    {"flat_coord(((2,2),8):((16,8),1),24)", "(3,0)"},
    {"slice((_,(1,_)),(4,(2,3)))", "(4,3)"},
    {"dice((_,(1,_)),(4,(2,3)))", "(2)"},
    {"slice_and_offset((2,_),(8,64):(64,1))", "128 o (64):(1)"},
    {"coalesce((2,(1,6)):(1,(6,2)))", "12:1"},
    {"coalesce((2,(1,6)):(1,(6,2)),(1,1))", "(2,6):(1,2)"},
    {"coalesce_past_end((4,3):(1,4))", "12:1"},
    {"filter((2,4):(0,1))", "4:1"},
    {"filter_zeros((2,4):(0,1))", "(1,4):(0,1)"},
    {"decay(Sw<0,4,3> o 5 o 8:1)", "5 o 8:1"},
    {"composition((6,2):(8,2),(4,3):(3,1))", "((2,2),3):((24,2),8)"},
    {"composition((10,2):(16,4),(5,4):(1,5))", "(5,(2,2)):(16,(80,4))"},
    {"composition((12,(4,8)):(59,(13,1)),<3:4,8:2>)", "(3,(2,4)):(236,(26,1))"},
    {"complement(4:1,24)", "6:4"},
    {"complement((2,2):(1,6),24)", "(3,2):(2,12)"},
    {"right_inverse((4,8):(8,1))", "(8,4):(4,1)"},
    {"left_inverse(4:2)", "(2,4):(0,1)"},
    {"nullspace((2,3):(0,1))", "2:1"},
    {"max_common_layout((4,8):(1,4),(4,8):(1,4))", "32:1"},
    {"max_common_vector((4,8):(1,4),(4,8):(1,8))", "4"},
    {"domain_distribute((15,14),6)", "(3,2):(1,15)"},
    {"logical_divide((4,2,3):(2,1,8),4:2)", "((2,2),(2,3)):((4,1),(2,8))"},
    {"logical_divide((9,(4,8)):(59,(13,1)),<3:3,(2,4):(1,8)>)", "((3,3),((2,4),(2,2))):((177,59),((13,2),(26,1)))"},
    {"zipped_divide((9,(4,8)):(59,(13,1)),<3:3,(2,4):(1,8)>)", "((3,(2,4)),(3,(2,2))):((177,(13,2)),(59,(26,1)))"},
    {"tiled_divide((9,(4,8)):(59,(13,1)),<3:3,(2,4):(1,8)>)", "((3,(2,4)),3,(2,2)):((177,(13,2)),59,(26,1))"},
    {"flat_divide((9,(4,8)):(59,(13,1)),<3:3,(2,4):(1,8)>)", "(3,(2,4),3,(2,2)):(177,(13,2),59,(26,1))"},
    {"logical_product((2,2):(4,1),6:1)", "((2,2),(2,3)):((4,1),(2,8))"},
    {"logical_product((2,5):(5,1),<3:5,4:6>)", "((2,3),(5,4)):((5,10),(1,30))"},
    {"zipped_product((2,5):(5,1),<3:5,4:6>)", "((2,5),(3,4)):((5,1),(10,30))"},
    {"tiled_product((2,5):(5,1),<3:5,4:6>)", "((2,5),3,4):((5,1),10,30)"},
    {"flat_product((2,5):(5,1),<3:5,4:6>)", "(2,5,3,4):(5,1,10,30)"},
    {"blocked_product((2,5):(5,1),(3,4):(1,3))", "((2,3),(5,4)):((5,10),(1,30))"},
    {"raked_product((2,5):(5,1),(3,4):(1,3))", "((3,2),(4,5)):((10,5),(30,1))"},
    {"tile_to_shape((8,64):(64,1),(16,128))", "((8,2),(64,2)):((64,512),(1,1024))"},
    {"tile_to_shape((8,64):(64,1),(16,128),(1,0))", "((8,2),(64,2)):((64,1024),(1,512))"},
    {"inner_partition((8,8):(1,8),<4,4>,(1,0))", "4 o (4,4):(1,8)"},
    {"outer_partition((8,8):(1,8),<4,4>,(1,0))", "1 o (2,2):(4,32)"},
    {"local_tile((8,8):(1,8),(4,4),(0,1))", "32 o (4,4):(1,8)"},
    {"local_partition((8,8):(1,8),(4,4):(1,4),1)", "1 o (2,2):(4,32)"},
    {"upcast((128,64):(64,1),8)", "(128,8):(8,1)"},
    {"upcast(Sw<3,4,3>,8)", "Sw<3,1,3>"},
    {"downcast((128,8):(8,1),8)", "(128,64):(64,1)"},
    {"recast(16,32,(128,64):(64,1))", "(128,32):(32,1)"},
    {"recast((128,64):(64,1),16,32)", "(128,32):(32,1)"},
};

TEST(Expressions, Examples) {
  for (const Example& example : examples) EXPECT_EQ(value(example.expression), example.expected) << example.expression;
}

TEST(Expressions, EveryFunctionHasAnExample) {
  for (const Function& function : functions()) {
    const std::string call = std::string(function.name) + "(";
    EXPECT_TRUE(std::any_of(std::begin(examples), std::end(examples), [&](const Example& example) {
      return example.expression.starts_with(call);
    })) << function.name;
    EXPECT_FALSE(function.meaning.empty());
    EXPECT_EQ(&find_function(function.name), &function) << "two functions have one name";
    EXPECT_TRUE(function.signature().starts_with(call)) << function.signature();
  }
}

TEST(Expressions, Apply) {
  EXPECT_EQ(value("((4,8):(8,1))(5)"), "9");
  EXPECT_EQ(value("((4,8):(8,1))(1,3)"), "11");
  EXPECT_EQ(value("((4,8):(8,1))((1,3))"), "11");
  EXPECT_EQ(value("composition((4,8):(8,1),8:4)(1)"), "1");
  EXPECT_EQ(value("(make_identity_layout((4,8)))(5)"), "(1,1)");
  EXPECT_EQ(value("((8,64):(64,1))(2,_)(3)"), "131");
  EXPECT_EQ(value("((8,64,3):(64,1,512))(2,_,_)(_,1)"), "640 o (64):(1)");
  // The K-major 128-byte swizzle atom of 16-bit elements maps (1,0) to 72 and (3,17) to 201.
  EXPECT_EQ(value("(Sw<3,3,3> o 0 o (8,64):(64,1))(1,0)"), "72");
  EXPECT_EQ(value("(Sw<3,3,3> o 0 o (8,64):(64,1))(3,17)"), "201");
  EXPECT_EQ(value("(Sw<3,3,3> o 0 o (8,64):(64,1))(3,_)"), "Sw<3,3,3> o 192 o (64):(1)");
  // PTX ISA, 128-byte swizzle: the row at 0x80 begins at 0x90.
  EXPECT_EQ(value("Sw<3,4,3>(128)"), "144");
}

TEST(Expressions, Compose) {
  EXPECT_EQ(value("(6,2):(8,2) o (4,3):(3,1)"), "((2,2),3):((24,2),8)");
  EXPECT_EQ(value("Sw<3,4,3> o (8,64):(64,1)"), "Sw<3,4,3> o 0 o (8,64):(64,1)");
  EXPECT_EQ(value("Sw<3,4,3> o 16 o (8,64):(64,1)"), "Sw<3,4,3> o 16 o (8,64):(64,1)");
  EXPECT_EQ(value("2 o 8:64"), "2 o 8:64");
  EXPECT_EQ(value("(2 o 8:64)(1)"), "66");
  EXPECT_EQ(value("(Sw<3,3,3> o (8,64):(64,1)) o 64:8"), "Sw<3,3,3> o 0 o 64:1");
}

TEST(Expressions, AnIntegerConvertsToALayout) {
  EXPECT_EQ(value("logical_divide(24:1,4)"), "(4,6):(1,4)");
  EXPECT_EQ(value("zipped_divide((8,8):(1,8),(4,_))"), value("zipped_divide((8,8):(1,8),<4:1,_>)"));
}

TEST(Expressions, RefuseWithTheColumn) {
  EXPECT_EQ(value("compositon(8:1,4:1)"), "column 1: no function compositon; near: composition");
  EXPECT_EQ(value("size(divide(8:1,4:1))"),
            "column 6: no function divide; near: evenly_divides, logical_divide, zipped_divide, tiled_divide");
  EXPECT_EQ(value("frobnicate(8:1)"), "column 1: no function frobnicate");
  EXPECT_EQ(value("size(nullspace(Sw<3,4,3>))"), "column 6: expected nullspace(layout), got (swizzle)");
  EXPECT_EQ(value("nullspace(8:1,4:1)"), "column 1: expected nullspace(layout), got (layout, layout)");
  EXPECT_TRUE(value("make_layout(8:1, complement((2,2):(2,3),19))").starts_with("column 18: "));
  EXPECT_TRUE(value("composition((8,8):(8,1), 4:3)").starts_with("column 1: composition (8,8):(8,1) o 4:3"));
  EXPECT_TRUE(value("((4,8):(8,1))(1,2,3)").starts_with("column 14: "));
  EXPECT_EQ(value("((4,8):(8,1))()"), "column 14: expected a coordinate");
  EXPECT_EQ(value("(4,8):(8,1)(5)"),
            "column 12: tuple (8,1) is not a function; to apply a layout, write it in parentheses: ((4,8):(8,1))(5)");
  EXPECT_EQ(value("(8:1):(4:1)"), "column 1: a shape is a tuple, got layout 8:1");
  EXPECT_EQ(value("size"), "column 5: expected '(' after size, got the end");
}

TEST(Expressions, RefuseRecastsOfASwizzleByOtherFactors) {
  EXPECT_EQ(value("upcast(Sw<3,4,3>,5)"), "column 1: a swizzle is recast by a power of two, got 5");
  EXPECT_EQ(value("downcast(Sw<3,4,3> o 8:1,0)"), "column 1: a swizzle is recast by a power of two, got 0");
  EXPECT_EQ(value("recast(16,24,Sw<3,4,3>)"), "column 1: a swizzle is recast by a power of two, got 3");
}

TEST(Expressions, RefuseLargeValues) {
  std::string text = "1";
  for (int i = 0; i < 30; ++i) text = "select((" + text + "),(0,0,0,0,0,0,0,0))";
  EXPECT_NE(value(text).find("a value has at most 1024 integers"), std::string::npos);
  EXPECT_NE(value("append(8:1,1000000000)").find("a rank is at most 64"), std::string::npos);
}

}  // namespace
}  // namespace tilewright::layout
