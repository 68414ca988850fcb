// Offsets of run-time coordinates as Numbers, and their text in C and in MLIR's arith dialect.
#include <gtest/gtest.h>

#include <random>

#include "arith_interpreter.hpp"
#include "c_evaluator.hpp"
#include "tilewright/base/error.hpp"
#include "tilewright/layout/index_code.hpp"
#include "tilewright/layout/number_text.hpp"

namespace tilewright::layout {
namespace {

TEST(IndexNumber, OfLayouts) {
  NumberScope scope;
  const Number row = scope.kernel("row", 8);
  const Number column = scope.kernel("column", 64);
  const Number lda = scope.launch("lda", 8);
  EXPECT_EQ(to_string(index_number(Layout({8, 64}, {64, 1}), {row, column})), "row * 64 + column");
  EXPECT_EQ(to_string(index_number(Layout({8, 64}, {lda, 1}), {row, column})), "column + lda * row");
  EXPECT_EQ(index_number(Layout({{2, 4}, 64}, {{1, 2}, 8}), {row, column}), row + column * 8);
  EXPECT_EQ(to_string(index_number(Layout({8, 4}, {0, 1}), {scope.kernel("x", 32)})), "x / 8");
  EXPECT_THROW((void)index_number(Layout({8, 8}, {8, 1}), {row, column}), InvalidArgument);
  EXPECT_THROW((void)index_number(Layout({8, 8}, {8, 1}), {row, row, row}), InvalidArgument);
}

TEST(IndexNumber, OfSwizzledTiles) {
  NumberScope scope;
  const Number row = scope.kernel("row", 64);
  const Number chunk = scope.kernel("chunk", 8);
  const Number stage = scope.loop("stage", 4);
  const ComposedLayout bytes{Swizzle(3, 4, 3), stage * 8192, Layout({64, 8}, {128, 16})};
  EXPECT_EQ(to_string(index_number(bytes, {row, chunk})), "row * 128 + (chunk * 16 ^ row % 8 * 16) + stage * 8192");
}

/// Modes with extents and strides that are often powers of two.
Layout random_layout(std::mt19937& random, bool only_compact) {
  const auto below = [&](int count) { return static_cast<std::int64_t>(random() % static_cast<unsigned>(count)); };
  std::vector<IntTuple> shape;
  std::vector<IntTuple> stride;
  std::int64_t running = 1;
  for (std::int64_t modes = 1 + below(3); modes > 0; --modes) {
    const std::int64_t a = below(2) == 0 ? std::int64_t{1} << below(4) : 1 + below(6);
    const std::int64_t b = below(2) == 0 ? std::int64_t{1} << below(3) : 1 + below(5);
    shape.push_back(IntTuple{a, b});
    stride.push_back(only_compact ? IntTuple{running * b, running} : IntTuple{below(4) * 4, 1 + below(20)});
    running *= a * b;
  }
  return {IntTuple::tuple(shape), IntTuple::tuple(stride)};
}

TEST(IndexNumberProperties, EqualsTheLayoutInEveryForm) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    const Layout layout = random_layout(random, seed % 2 == 0);
    const Swizzle swizzle =
        seed % 3 == 0 ? Swizzle() : Swizzle(1 + static_cast<int>(seed % 3), static_cast<int>(seed % 5), 3);
    NumberScope scope;
    const Number stage = scope.loop("stage", 3);
    const ComposedLayout composed{swizzle, stage * (seed % 4 == 0 ? 96 : 4096), layout};
    std::vector<Number> coordinates;
    std::vector<std::string> names = {"stage"};
    for (int i = 0; i < layout.rank(); ++i) {
      coordinates.push_back(scope.kernel(fmt::format("x{}", i), size(layout.mode(i))));
      names.push_back(fmt::format("x{}", i));
    }
    const Number number = index_number(composed, coordinates);
    const CEvaluator code(c_text(number), names);
    std::vector<std::string> lines;
    ArithPrinter printer([](const Number& x) { return "%" + x.node()->variable->name; },
                         [&](const std::string& line) { lines.push_back(line); });
    const std::string name = printer.value(number);
    for (int round = 0; round < 40; ++round) {
      std::vector<std::int64_t> values = {static_cast<std::int64_t>(random() % 3)};
      Bindings bindings;
      bindings.set(stage, values[0]);
      ArithInterpreter machine;
      machine.define("%stage", static_cast<std::uint64_t>(values[0]), 32);
      std::vector<IntTuple> point;
      for (std::size_t i = 0; i < coordinates.size(); ++i) {
        values.push_back(static_cast<std::int64_t>(random()) % (coordinates[i].upper() + 1));
        bindings.set(coordinates[i], values.back());
        machine.define("%" + names[i + 1], static_cast<std::uint64_t>(values.back()), 32);
        point.emplace_back(values.back());
      }
      const std::int64_t wanted = evaluate(composed, bindings)(IntTuple::tuple(point));
      ASSERT_EQ(evaluate(number, bindings), wanted) << "seed " << seed << ": " << to_string(number);
      ASSERT_EQ(code(values), wanted) << "seed " << seed << ": " << c_text(number);
      for (const std::string& line : lines) machine.run(line);
      ASSERT_EQ(number.is_static() ? number.value() : machine.signed_value(name), wanted) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace tilewright::layout
