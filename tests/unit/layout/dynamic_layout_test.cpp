// The layout algebra on run-time values: results are evaluated and compared with the results of evaluated arguments.
#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "tilewright/base/error.hpp"
#include "tilewright/layout/composed_layout.hpp"
#include "tilewright/layout/conditions.hpp"
#include "tilewright/layout/print.hpp"

namespace tilewright::layout {
namespace {

struct DynamicLayoutTest : testing::Test {
  NumberScope scope;
  Number m = scope.launch("m");
  Number n = scope.launch("n");
  Number k = scope.launch("k", 64);
  Number lda = scope.launch("lda", 8);
  Number tid = scope.kernel("tid", 128);
};

TEST_F(DynamicLayoutTest, TuplesHaveRunTimeLeaves) {
  const IntTuple shape{m, {8, n}};
  EXPECT_EQ(to_string(shape), "(m,(8,n))");
  EXPECT_FALSE(is_static(shape));
  EXPECT_EQ(product_of(shape), m * n * 8);
  EXPECT_EQ(prefix_product(shape), (IntTuple{1, {m, m * 8}}));
  EXPECT_EQ(evaluate(shape, Bindings().set(m, 3).set(n, 5)), (IntTuple{3, {8, 5}}));
  EXPECT_THROW((void)product(shape), InvalidArgument);
  EXPECT_THROW((void)shape[0].value(), InvalidArgument);
}

TEST_F(DynamicLayoutTest, ExtentsAndStridesAreLaunchValues) {
  EXPECT_EQ(to_string(Layout({m, k}, {lda, 1})), "(m,k):(lda,1)");
  EXPECT_THROW((void)Layout(tid + 1, 1), InvalidArgument);
  EXPECT_THROW((void)Layout(8, tid), InvalidArgument);
  EXPECT_THROW((void)Layout(m - 1, 1), InvalidArgument);  // may be 0
  EXPECT_THROW((void)Layout(8, m - 8), InvalidArgument);  // may be negative
}

TEST_F(DynamicLayoutTest, NamedExtentsCoalesce) {
  EXPECT_EQ(coalesce(Layout({m, n}, {1, m})), Layout(m * n, 1));
  EXPECT_EQ(coalesce(Layout({m, 4, n}, {1, m, 4 * m})), Layout(4 * m * n, 1));
  EXPECT_EQ(coalesce(Layout({m, n}, {1, lda})), Layout({m, n}, {1, lda}));
  EXPECT_EQ(coalesce(make_layout({m, {n, 8}})), Layout(m * n * 8, 1));
}

TEST_F(DynamicLayoutTest, OffsetsOfRunTimeCoordinates) {
  const Layout a({m, k}, {lda, 1});
  EXPECT_EQ(a.at(tid / 8, tid % 8), tid / 8 * lda + tid % 8);
  EXPECT_EQ(idx2crd(tid, {8, {4, 4}}), (IntTuple{tid % 8, {tid / 8 % 4, tid / 32}}));
  EXPECT_EQ(make_layout({8, 16}).at(IntTuple(tid)), tid);
  EXPECT_EQ(index_of(idx2crd(tid, {8, {4, 4}}), {8, {4, 4}}), tid);
  EXPECT_EQ(coordinate(make_identity_layout({m, k}), {tid, 3}), (IntTuple{tid, 3}));
}

TEST_F(DynamicLayoutTest, StaticTilesOfRunTimeModes) {
  const Layout a({m, k}, {lda, 1});
  EXPECT_EQ(zipped_divide(a, make_tiler({128, 64})),
            Layout({{128, 64}, {ceil_div(m, 128), k / 64}}, {{lda, 1}, {128 * lda, 64}}));
  const LayoutAndOffset tile = local_tile(a, make_tiler({128, 64}), {3, _});
  EXPECT_EQ(tile.layout, Layout({128, 64, k / 64}, {lda, 1, 64}));
  EXPECT_EQ(tile.offset, IntTuple(384 * lda));
  EXPECT_EQ(complement(Layout(8, lda), m * lda), Layout({lda, ceil_div(m, 8)}, {1, 8 * lda}));
  EXPECT_EQ(logical_product(Layout(8, 1), make_tiler(n)), Layout({8, n}, {1, 8}));
}

TEST_F(DynamicLayoutTest, ThreadsOfTheKernelPartition) {
  const Layout threads({16, 8}, {8, 1});
  const LayoutAndOffset part = local_partition(Layout({m, k}, {lda, 1}), threads, tid);
  EXPECT_EQ(part.layout, Layout({ceil_div(m, 16), k / 8}, {16 * lda, 8}));
  EXPECT_EQ(part.offset, IntTuple(tid / 8 * lda + tid % 8));
}

TEST_F(DynamicLayoutTest, UnknownConditionsAreRefusedWithTheRule) {
  try {
    (void)composition(Layout({m, n}, {1, lda}), Layout(128, 1));
    FAIL();
  } catch (const InvalidArgument& error) {
    EXPECT_NE(std::string(error.what()).find("shape divisibility"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("known only at launch"), std::string::npos) << error.what();
  }
  EXPECT_THROW((void)tile_to_shape(make_layout({8, 8}), {m, k}), InvalidArgument);
}

TEST_F(DynamicLayoutTest, UnknownConditionsAreRecorded) {
  ConditionRecorder recorder;
  const Layout tiled = tile_to_shape(make_layout({8, 8}), {m, k});
  EXPECT_EQ(size_of(tiled.mode(0)), m / 8 * 8);
  ASSERT_EQ(recorder.conditions().size(), 2U);
  EXPECT_EQ(recorder.conditions()[1].condition, less(7, m));  // so that there is a tile
  EXPECT_EQ(recorder.conditions()[0].condition, divides(8, m));
  EXPECT_TRUE(supports(recorder.conditions(), Bindings().set(m, 16)));
  const Support no = supports(recorder.conditions(), Bindings().set(m, 12));
  ASSERT_FALSE(no);
  EXPECT_EQ(no.refusal().numbers, (std::vector<std::int64_t>{12}));
  EXPECT_NE(no.reason().find("m = 12"), std::string::npos) << no.reason();
  EXPECT_NE(no.reason().find("8 does not divide m"), std::string::npos) << no.reason();
  EXPECT_THROW((void)tile_to_shape(make_layout({8, 8}), {m, k + 4}), InvalidArgument);  // holds for no k
}

TEST_F(DynamicLayoutTest, ConditionsOnKernelValuesAreNotRecorded) {
  ConditionRecorder recorder;
  EXPECT_THROW((void)hierarchical_coord(Layout({4, 4}, {1, 16}), tid), InvalidArgument);
  EXPECT_TRUE(recorder.conditions().empty());
}

TEST_F(DynamicLayoutTest, AlignmentComesFromDivisors) {
  EXPECT_EQ(max_alignment(Layout({m, k}, {lda, 1})), 8);
  EXPECT_EQ(max_alignment(Layout({m, k}, {k, 1})), 64);
  EXPECT_EQ(max_alignment(Layout({m, n}, {n, 1})), 1);
}

TEST_F(DynamicLayoutTest, PredicatesAreConditions) {
  EXPECT_EQ(elem_less_of({tid, 3}, {m, k}), less(tid, m));
  EXPECT_THROW((void)elem_less(IntTuple(tid), IntTuple(m)), InvalidArgument);
}

TEST_F(DynamicLayoutTest, SwizzlesOfRunTimeOffsets) {
  const Swizzle swizzle(3, 4, 3);
  const Number stage = scope.loop("stage", 4);
  EXPECT_EQ(swizzle.at(stage * 8192 + tid * 8), stage * 8192 + swizzle.at(tid * 8));
  EXPECT_EQ(swizzle.at(tid), tid);
  const Number row = scope.kernel("row", 8);
  const Number x = swizzle.at(row * 128);
  EXPECT_EQ(swizzle.at(row * 128 + 32), x ^ 32);
  const ComposedLayout tile{swizzle, stage * 8192, Layout({8, 64}, {64, 1})};
  for (std::int64_t r = 0; r < 8; ++r) {
    for (std::int64_t s = 0; s < 4; ++s) {
      const Bindings bindings = Bindings().set(row, r).set(stage, s);
      EXPECT_EQ(evaluate(tile.at(row, 17), bindings), evaluate(tile, bindings)(r, 17));
    }
  }
  const auto plain = decay(ComposedLayout{Swizzle(2, 0, 3), stage * 8192, Layout(4, 1)});
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->layout, Layout(4, 1));
  EXPECT_EQ(plain->offset, IntTuple(stage * 8192));
}

// Random layouts of Numbers.

struct Case {
  explicit Case(unsigned seed) : random(seed) {
    variables = {scope.launch("m", 1, 1, 12), scope.launch("n", 1, 2, 9), scope.launch("p", 4, 4, 16)};
    for (const Number& variable : variables) {
      const NumberNode& node = *variable.node();
      const std::int64_t steps = (node.upper - node.lower) / node.divisor;
      bindings.set(variable, node.lower + node.divisor * below(static_cast<int>(steps) + 1));
    }
  }

  int below(int count) { return static_cast<int>(random() % static_cast<unsigned>(count)); }

  Number extent() {
    switch (below(6)) {
      case 0:
        return variables[static_cast<std::size_t>(below(3))];
      case 1:
        return ceil_div(variables[static_cast<std::size_t>(below(3))], 1 + below(4));
      case 2:
        return variables[static_cast<std::size_t>(below(3))] * (1 + below(2));
      default:
        return 1 + below(6);
    }
  }

  IntTuple shape() {
    switch (below(4)) {
      case 0:
        return extent();
      case 1:
        return IntTuple{extent(), extent()};
      case 2:
        return IntTuple{extent(), {extent(), extent()}};
      default:
        return IntTuple{{extent(), extent()}, extent()};
    }
  }

  Layout layout() {
    const IntTuple s = shape();
    switch (below(5)) {
      case 0:
        return make_layout(s);
      case 1:
        return make_row_major(s);
      case 2:
        return Layout(s, scaled(1 + below(3), prefix_product(s)));
      case 3: {
        const Number pitch = extent() * 4;
        return Layout(s, transform_leaves(s, [&](const IntTuple&) -> IntTuple {
                        const int kind = below(5);
                        return kind == 0 ? Number(0) : kind == 1 ? pitch : Number(1 + below(12));
                      }));
      }
      default: {  // a pitch that leaves a gap
        Number stride = 1;
        return Layout(s, transform_leaves(s, [&](const IntTuple& leaf) -> IntTuple {
                        const Number own = stride;
                        stride *= leaf.number() + (below(3) == 0 ? 1 : 0);
                        return own;
                      }));
      }
    }
  }

  std::mt19937 random;
  NumberScope scope;
  std::vector<Number> variables;
  Bindings bindings;
};

/// The values of a layout on [0, count).
std::vector<IntTuple> image(const Layout& layout, std::int64_t count) {
  std::vector<IntTuple> values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(coordinate(layout, IntTuple(i)));
  return values;
}

void expect_same(const Layout& dynamic, const Layout& from_static, const std::string& where) {
  if (dynamic == from_static) return;
  ASSERT_EQ(size(dynamic), size(from_static)) << where;
  ASSERT_EQ(image(dynamic, size(dynamic)), image(from_static, size(from_static))) << where;
}

void expect_same(const IntTuple& dynamic, const IntTuple& from_static, const std::string& where) {
  ASSERT_EQ(dynamic, from_static) << where;
}

using Value = std::variant<Layout, IntTuple>;
Value evaluated(const Value& value, const Bindings& bindings) {
  return std::visit([&](const auto& x) -> Value { return evaluate(x, bindings); }, value);
}

/// Whether a run-time extent is 1. Numbers keep such a mode, where values drop it; then a complement differs, within
/// its post-condition.
bool has_unit_extent(const Layout& layout, const Bindings& bindings) {
  const std::vector<Number> extents = numbers_of(layout.shape());
  return std::any_of(extents.begin(), extents.end(),
                     [&](const Number& x) { return !x.is_static() && evaluate(x, bindings) == 1; });
}

/// Computes verb on Numbers and on their values. Returns whether the verb accepted the Numbers and the conditions hold.
bool compare(const Case& drawn, const char* name, const std::vector<Layout>& arguments,
             const std::function<Value(const std::vector<Layout>&)>& verb) {
  std::string where = name;
  std::vector<Layout> values;
  for (const Layout& argument : arguments) {
    where += " " + to_string(argument);
    values.push_back(evaluate(argument, drawn.bindings));
    where += " = " + to_string(values.back());
  }
  std::optional<Value> dynamic;
  ConditionRecorder recorder;
  try {
    dynamic = verb(arguments);
  } catch (const InvalidArgument&) {
    return false;
  }
  if (!supports(recorder.conditions(), drawn.bindings)) return false;
  std::optional<Value> from_static;
  try {
    from_static = verb(values);
  } catch (const InvalidArgument& error) {
    ADD_FAILURE() << where << ": accepted for Numbers, refused for their values: " << error.what();
    return false;
  }
  const Value value = evaluated(*dynamic, drawn.bindings);
  if (const Layout* layout = std::get_if<Layout>(&value)) {
    expect_same(*layout, std::get<Layout>(*from_static), where);
  } else {
    expect_same(std::get<IntTuple>(value), std::get<IntTuple>(*from_static), where);
  }
  return true;
}

struct Verb {
  const char* name;
  std::size_t arguments;
  std::function<Value(const std::vector<Layout>&)> verb;
  bool complements = false;
};

IntTuple offset_of_last_tile(const Layout& layout) {
  const Number tiles = size_of(zipped_divide(layout, Layout(3, 1)).mode(1));
  return local_tile(layout, Layout(3, 1), tiles - 1).offset;
}

const std::vector<Verb>& verbs() {
  using A = const std::vector<Layout>&;
  static const std::vector<Verb> all = {
      {"coalesce", 1, [](A a) -> Value { return coalesce(a[0]); }},
      {"coalesce_past_end", 1,  // the size of the result is not part of its function
       [](A a) -> Value { return IntTuple(coalesce_past_end(a[0]).at(IntTuple(size_of(a[0]) + 3))); }},
      {"filter", 1, [](A a) -> Value { return filter(a[0]); }},
      {"filter_zeros", 1, [](A a) -> Value { return filter_zeros(a[0]); }},
      {"flatten", 1, [](A a) -> Value { return flatten(a[0]); }},
      {"composition", 2, [](A a) -> Value { return composition(a[0], a[1]); }},
      {"complement", 1, [](A a) -> Value { return complement(a[0]); }, true},
      {"complement in a size", 2, [](A a) -> Value { return complement(a[0], size_of(a[1])); }, true},
      {"left_inverse", 1, [](A a) -> Value { return left_inverse(a[0]); }, true},
      {"nullspace", 1, [](A a) -> Value { return nullspace(a[0]); }},
      {"logical_divide", 2, [](A a) -> Value { return logical_divide(a[0], a[1]); }, true},
      {"zipped_divide by a tile", 1,
       [](A a) -> Value {
         return zipped_divide(a[0], make_tiler(a[0].rank() == 1 ? IntTuple(4) : IntTuple{4, 2}));
       }},
      {"tiled_divide", 1, [](A a) -> Value { return tiled_divide(a[0], Layout(2, 1)); }},
      {"flat_divide", 1, [](A a) -> Value { return flat_divide(a[0], Layout(2, 1)); }},
      {"logical_product", 2, [](A a) -> Value { return logical_product(a[0], a[1]); }, true},
      {"blocked_product", 2, [](A a) -> Value { return blocked_product(a[0], a[1]); }, true},
      {"raked_product", 2, [](A a) -> Value { return raked_product(a[0], a[1]); }, true},
      {"tile_to_shape", 1, [](A a) -> Value { return tile_to_shape(a[0], scaled(3, product_each(a[0].shape()))); },
       true},
      {"make_layout_like", 1, [](A a) -> Value { return make_layout_like(a[0]); }},
      {"make_fragment_like", 1, [](A a) -> Value { return make_fragment_like(a[0]); }},
      {"make_identity_layout", 1, [](A a) -> Value { return make_identity_layout(a[0].shape()); }},
      {"downcast", 1, [](A a) -> Value { return downcast(a[0], 2); }},
      {"upcast", 1, [](A a) -> Value { return upcast(a[0], 2); }},
      {"coshape", 1, [](A a) -> Value { return coshape(a[0]); }},
      {"cosize", 1, [](A a) -> Value { return IntTuple(cosize_of(a[0])); }},
      {"product_each", 1, [](A a) -> Value { return product_each(a[0].shape()); }},
      {"inner product", 1, [](A a) -> Value { return IntTuple(inner_product_of(a[0].shape(), a[0].stride())); }},
      {"tuple_max", 1, [](A a) -> Value { return IntTuple(tuple_max_of(a[0].shape())); }},
      {"suffix_product", 1, [](A a) -> Value { return suffix_product(a[0].shape()); }},
      {"ceil_div", 1, [](A a) -> Value { return ceil_div(a[0].shape(), IntTuple(3)); }},
      {"shape_div", 2, [](A a) -> Value { return shape_div(a[0].shape(), a[1].shape()); }},
      {"crd2idx", 1, [](A a) -> Value { return IntTuple(a[0].at(IntTuple(3))); }},
      {"idx2crd", 1, [](A a) -> Value { return idx2crd(3, a[0].shape()); }},
      {"crd2crd", 2, [](A a) -> Value { return crd2crd(5, a[0].shape(), a[1].shape()); }},
      {"hierarchical_coord", 1, [](A a) -> Value { return hierarchical_coord(a[0], 1); }},
      {"local_tile", 1, [](A a) -> Value { return local_tile(a[0], Layout(3, 1), 1).layout; }},
      {"offset of local_tile", 1, [](A a) -> Value { return offset_of_last_tile(a[0]); }},
      {"offset of slice", 1,
       [](A a) -> Value {
         return slice_and_offset(a[0].rank() == 1 ? IntTuple(2) : IntTuple{2, _}, a[0]).offset;
       }},
      {"local_partition", 1, [](A a) -> Value { return local_partition(a[0], Layout(4, 1), 3).layout; }},
  };
  return all;
}

TEST(DynamicLayoutProperties, EvaluatedResultsAreResultsOfValues) {
  std::map<std::string, int> accepted;
  for (unsigned seed = 0; seed < 400; ++seed) {
    Case drawn(seed);
    const Layout a = drawn.layout();
    const Layout b = drawn.layout();
    for (const Verb& verb : verbs()) {
      if (verb.complements && (has_unit_extent(a, drawn.bindings) || has_unit_extent(b, drawn.bindings))) continue;
      if (compare(drawn, verb.name, verb.arguments == 1 ? std::vector{a} : std::vector{a, b}, verb.verb))
        ++accepted[verb.name];
      if (HasFatalFailure() || HasNonfatalFailure()) FAIL() << "seed " << seed;
    }
  }
  for (const Verb& verb : verbs()) EXPECT_GE(accepted[verb.name], 20) << verb.name;
}

/// Results that depend on the structure: an inverse of Numbers may be a shorter prefix, an alignment a divisor.
TEST(DynamicLayoutProperties, InversesAndAlignmentsAreRight) {
  int longer = 0;
  for (unsigned seed = 0; seed < 400; ++seed) {
    Case drawn(seed);
    const Layout a = drawn.layout();
    const Layout value = evaluate(a, drawn.bindings);
    const Layout inverse = evaluate(right_inverse(a), drawn.bindings);
    for (std::int64_t i = 0; i < size(inverse); ++i) ASSERT_EQ(value(inverse(i)), i) << to_string(a);
    ASSERT_LE(size(inverse), size(right_inverse(value))) << to_string(a);
    if (size(inverse) > 1) ++longer;
    ASSERT_EQ(max_alignment(value) % max_alignment(a), 0) << to_string(a) << " = " << to_string(value);
    const Layout distributed = evaluate(domain_distribute(a.shape(), 8), drawn.bindings);
    ASSERT_EQ(8 % size(distributed), 0) << to_string(a);
    (void)zipped_divide(make_layout(value.shape()), distributed);
  }
  EXPECT_GT(longer, 100);
}

}  // namespace
}  // namespace tilewright::layout
