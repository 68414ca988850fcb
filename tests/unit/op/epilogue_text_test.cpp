// Parsing of epilogue texts: the resulting graphs, and the positions of errors.
#include "tilewright/op/epilogue_text.hpp"

#include <gtest/gtest.h>

namespace tilewright::op {
namespace {

std::string parsed(std::string_view text) {
  const Result<Epilogue> epilogue = parse_epilogue(text, DType::f32, {{"slope", 0.5}});
  if (!epilogue) return epilogue.reason();
  return signature(*epilogue).substr(std::string("graph f32 ").size());
}

TEST(EpilogueText, IsParsedToAGraph) {
  EXPECT_EQ(parsed("D = acc"), "acc");
  EXPECT_EQ(parsed("D = alpha*acc + beta*C;"), "add(mul($alpha,acc),mul($beta,c))");
  EXPECT_EQ(parsed("D = acc + row(bias)"), "add(acc,row(bias))");
  EXPECT_EQ(parsed("D = acc - column(x) / single(y)"), "sub(acc,div(column(x),single(y)))");
  EXPECT_EQ(parsed("D = residual + full(residual) * 2e0"), "add(full(residual),mul(full(residual),0x1p+1))");
  EXPECT_EQ(parsed("D = -(acc + 1) * $slope"), "mul(neg(add(acc,0x1p+0)),$slope)");
  EXPECT_EQ(parsed("D = acc - 1 - 2"), "sub(sub(acc,0x1p+0),0x1p+1)") << "left-associative";
  EXPECT_EQ(parsed("D = where(acc >= C, acc, 0)"), "where(less_equal(c,acc),acc,0x0p+0)");
  EXPECT_EQ(parsed("D = convert(e4m3, acc)"), "convert(e4m3,acc)");
  EXPECT_EQ(parsed("let t = acc + 1; D = t*t; aux = t; other = aux - D"),
            "mul(add(acc,0x1p+0),add(acc,0x1p+0)); aux=add(acc,0x1p+0); "
            "other=sub(add(acc,0x1p+0),mul(add(acc,0x1p+0),add(acc,0x1p+0)))");
  EXPECT_EQ(parsed("D = relu(acc); amax = absmax(D)"), "max(acc,0x0p+0); single(amax)=max(abs(max(acc,0x0p+0)))");
  EXPECT_EQ(parsed("D = acc; row(a) = sum(acc); column(b) = max(C); single(c) = min(acc)"),
            "acc; row(a)=sum(acc); column(b)=max(c); single(c)=min(acc)");
  EXPECT_EQ(parsed("D = acc; n = sum_of_squares(acc)"), "acc; single(n)=sum(mul(acc,acc))");
  EXPECT_EQ(parsed("D = acc; up = max(acc, 0)"), "acc; up=max(acc,0x0p+0)") << "without a shape, max is a function";
  EXPECT_EQ(parsed("D = relu(even(acc)) * odd(acc + row(bias)); aux = acc"),
            "mul(max(even(acc),0x0p+0),odd(add(acc,row(bias)))); aux=acc");
  EXPECT_EQ(parsed("\n aux = row_index;\tD = column_index\n"), "column_index; aux=row_index");
}

TEST(EpilogueText, ErrorsNameTheirPosition) {
  struct Wrong {
    std::string text;
    std::string_view says;
  };
  const std::string deep(10000, '(');
  const std::string minus(10000, '-');
  for (const Wrong& wrong : std::vector<Wrong>{
           {"", "character 1: nothing is assigned to D"},
           {"aux = acc", "character 10: nothing is assigned to D"},
           {"relu(acc)", "character 5: expected '=', got '(': a result is assigned to a name, as in 'D = relu(acc)'"},
           {"D acc", "character 3: expected '=', got 'acc': a result is assigned to a name, as in 'D = relu(acc)'"},
           {"D = ", "character 5: expected a value, got the end"},
           {"D = acc)", "character 8: expected ';', got ')'"},
           {"D = (acc", "character 9: expected ')', got the end"},
           {"D = relu(acc); asm(\"trap;\")",
            "character 19: expected '=', got '(': a result is assigned to a name, as in 'D = relu(acc)'"},
           {"D = acc; __syncthreads()",
            "character 23: expected '=', got '(': a result is assigned to a name, as in 'D = relu(acc)'"},
           {"#include <x>", "character 1: expected a name to assign to, got '#'"},
           {"D = acc \\", "character 9: expected ';', got '\\'"},
           {"D = cosine(acc)", "character 5: unknown function 'cosine'"},
           {"D = rleu(acc)", "character 5: unknown function 'rleu': did you mean 'relu'?"},
           {"D = max(acc)", "character 5: max takes 2 inputs, got 1"},
           {"D = sum(acc)", "character 5: sum is a reduction, which must be assigned to an output of its own"},
           {"D = acc; let s = absmax(acc)",
            "character 18: absmax is a reduction, which must be assigned to an output of its own"},
           {"s = sum(acc); D = acc / s", "character 25: 's' is a reduction, which no expression can read"},
           {"D = acc; s = sum(acc) + 1", "character 23: a reduction must end its statement, got '+'"},
           {"D = acc; row(s) = acc", "character 19: 's' has shape row: expected a reduction, got 'acc'"},
           {"D = acc; row(s) = sum(acc); s = acc", "character 29: 's' is already defined"},
           {"D = acc; full(s) = sum(acc)",
            "character 14: expected '=', got '(': a result is assigned to a name, as in 'D = relu(acc)'"},
           {"D = acc; row(s = sum(acc)", "character 16: expected ')', got '='"},
           {"D = acc; s = sum(acc, acc)", "character 21: expected ')', got ','"},
           {"D = 1e999", "character 5: the number is out of the range of f64"},
           {"D = inf", "character 5: 'inf' is not a value"},
           {"D = nan", "character 5: 'nan' is not a value"},
           {"D = relu", "character 5: 'relu' is not a value"},
           {"D = $other", "character 6: $other has no value"},
           {"D = convert(s4, acc)", "character 13: cannot convert to 's4'"},
           {"D = row(acc)", "character 9: 'acc' is not a tensor"},
           {"let t = acc; t = acc; D = t", "character 14: 't' is already defined"},
           {"gelu = acc; D = acc", "character 1: 'gelu' is already defined"},
           {"D = acc; D = acc", "character 10: 'D' is already defined"},
           {"D = acc < C < acc", "character 13: expected ';', got '<'"},
           {"D = " + deep, "character 134: more than 128 nested expressions"},
           {"D = " + minus + "acc", "character 134: more than 128 nested expressions"},
           {std::string("D = a\0b", 7), "character 6: expected ';', got '\\x00'"},
           {"D = \xc3\xa4", "character 5: expected a value, got '\\xc3'"}}) {
    const Result<Epilogue> epilogue = parse_epilogue(wrong.text, DType::f32);
    ASSERT_FALSE(epilogue) << wrong.text;
    EXPECT_EQ(epilogue.reason(), "epilogue, " + std::string(wrong.says)) << wrong.text;
  }
}

TEST(EpilogueText, HasLimits) {
  EXPECT_EQ(parse_epilogue(std::string(1 << 20, 'a'), DType::f32).reason(),
            "the text of an epilogue may have at most 16384 characters, got 1048576");
  std::string many = "D = acc";
  for (int i = 0; i < 600; ++i) many += "+" + std::to_string(i) + ".5*acc";
  EXPECT_NE(parse_epilogue(many, DType::f32).reason().find("more than 512 nodes"), std::string::npos);
  std::string doubling = "let t0 = acc + C; ";
  for (int i = 0; i < 20; ++i) doubling += fmt::format("let t{} = t{} * t{}; ", i + 1, i, i);
  EXPECT_NE(parse_epilogue(doubling + "D = t20", DType::f32).reason().find("more than 4096 terms"), std::string::npos);
}

}  // namespace
}  // namespace tilewright::op
