// Numbers: folding, decisions, evaluation, and their text in C and in MLIR's arith dialect.
#include "tilewright/layout/number.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "arith_interpreter.hpp"
#include "c_evaluator.hpp"
#include "tilewright/base/error.hpp"
#include "tilewright/layout/number_text.hpp"

namespace tilewright::layout {
namespace {

struct NumberTest : testing::Test {
  NumberScope scope;
  Number m = scope.launch("m", 8);
  Number n = scope.launch("n");
  Number k = scope.launch("k", 64);
  Number lda = scope.launch("lda", 8);
  Number tid = scope.kernel("tid", 128);
  Number i = scope.loop("i", 16);
};

TEST_F(NumberTest, StaticNumbersFold) {
  EXPECT_EQ(Number(6) * 7 + 4, Number(46));
  EXPECT_EQ(Number(-7) / 2, Number(-3));
  EXPECT_EQ(ceil_div(Number(7), 2), Number(4));
  EXPECT_EQ(select(less(Number(1), 2), 5, 6), Number(5));
  EXPECT_THROW((void)(Number(1) / 0), InvalidArgument);
  EXPECT_THROW((void)(Number(std::int64_t{1} << 62) * 2), InvalidArgument);
  EXPECT_EQ(scope.node_count(), 6U);
}

TEST_F(NumberTest, EqualExpressionsAreTheSameNode) {
  EXPECT_EQ(m + n, n + m);
  EXPECT_EQ(m * n * k, k * (n * m));
  EXPECT_EQ((m + n) * 4, 4 * n + m * 4);
  EXPECT_EQ(m + n + 3 - n, m + 3);
  EXPECT_EQ((m + 1) - m, Number(1));
  EXPECT_NE(m * n, m * k);
  EXPECT_EQ(minimum(m, n), minimum(n, m));
}

TEST_F(NumberTest, QuotientsOfMultiples) {
  EXPECT_EQ((m * n) / m, n);
  EXPECT_EQ((8 * n + tid % 8) / 8, n);
  EXPECT_EQ((8 * n + tid % 8) % 8, tid % 8);
  EXPECT_EQ(m / 8 * 8, m);
  EXPECT_EQ(k / 8 / 8, k / 64);
  EXPECT_EQ(tid / 4 / 8, tid / 32);
  EXPECT_EQ(tid % 32 % 8, tid % 8);
  EXPECT_EQ(tid % 32 / 8, tid / 8 % 4);
  EXPECT_EQ(tid / 128, Number(0));
  EXPECT_EQ(tid % 128, tid);
  EXPECT_EQ((16 * n + 12) / 8, 2 * n + 1);
  EXPECT_EQ((6 * n + 3) / 4, (6 * n + 3) / 4);
  EXPECT_EQ((m * n + i) % m, (i + m * n) % m);
  EXPECT_EQ(ceil_div(m, 8), m / 8);
  EXPECT_EQ(ceil_div(ceil_div(n, 4), 8), ceil_div(n, 32));
  EXPECT_EQ(ceil_div(tid + 1, 128), Number(1));
}

TEST_F(NumberTest, DigitsJoin) {
  EXPECT_EQ(tid / 8 * 8 + tid % 8, tid);
  EXPECT_EQ(tid % 8 + tid / 8 % 4 * 8, tid % 32);
  EXPECT_EQ(n % 24 + n / 24 * 24, n);
  const Number b = scope.kernel("b", m * n);
  EXPECT_EQ(b % m + m * (b / m), b);
}

TEST_F(NumberTest, BitsThatAreDisjointAdd) {
  EXPECT_EQ(tid * 16 | i, tid * 16 + i);
  EXPECT_EQ((tid * 16) ^ i, tid * 16 + i);
  EXPECT_EQ(tid ^ tid, Number(0));
  EXPECT_EQ((tid & 7) ^ (i & 7) ^ (tid & 7), i & 7);
  EXPECT_EQ((tid & 0x70) >> 4, tid / 16 % 8);
  EXPECT_EQ((tid * 16 + i) & 15, i);
  EXPECT_EQ((tid & 3) & 12, Number(0));
}

TEST_F(NumberTest, DividesAndRanges) {
  EXPECT_EQ((m * 3).divisor(), 24);
  EXPECT_EQ((m + k).divisor(), 8);
  EXPECT_EQ((k / 16).divisor(), 4);
  EXPECT_EQ((m * k).divisor(), 512);
  EXPECT_EQ((tid + i).upper(), 142);
  EXPECT_EQ((tid - 3).lower(), -3);
  EXPECT_EQ((tid % 7).upper(), 6);
  EXPECT_EQ(m.lower(), 8);
}

TEST_F(NumberTest, Decisions) {
  EXPECT_EQ(decide(divides(8, m)), Decision::yes);
  EXPECT_EQ(decide(divides(8, m + 4)), Decision::no);
  EXPECT_EQ(decide(divides(16, m)), Decision::unknown);
  EXPECT_EQ(decide(divides(m, m * n)), Decision::yes);
  EXPECT_EQ(decide(less(m, m + 1)), Decision::yes);
  EXPECT_EQ(decide(less(m + n, m)), Decision::no);
  EXPECT_EQ(decide(less(m, n)), Decision::unknown);
  EXPECT_EQ(decide(less(n % m, m)), Decision::yes);
  EXPECT_EQ(decide(less_equal(n / 3 * 3, n)), Decision::yes);
  EXPECT_EQ(decide(less_equal(n, ceil_div(n, 3) * 3)), Decision::yes);
  EXPECT_EQ(decide(equal(m * (n + 1), m * n + m)), Decision::yes);
  EXPECT_EQ(decide(equal(8 * n, m + 4)), Decision::no);
  EXPECT_EQ(decide(less_equal(minimum(m, n), n)), Decision::yes);
  EXPECT_EQ(negation(less(m, n)), less_equal(n, m));
}

TEST_F(NumberTest, PredicatesOfFullTilesAreDropped) {
  const Number rows = scope.launch("rows", 128);
  const Number block = scope.kernel("block", rows / 128);
  EXPECT_EQ(less(block * 128 + tid, rows), Number(1));
  const Number odd_block = scope.kernel("odd_block", ceil_div(n, 128));
  EXPECT_EQ(decide(less(odd_block * 128 + tid, n)), Decision::unknown);
}

TEST_F(NumberTest, RefusesWhatCannotBeComputed) {
  EXPECT_THROW((void)(m / (n - 1)), InvalidArgument);  // the divisor may be 0
  EXPECT_THROW((void)((n - 2) / 4), InvalidArgument);  // may be negative
  EXPECT_THROW((void)m.value(), InvalidArgument);
  EXPECT_THROW((void)scope.launch("m"), InvalidArgument);
  EXPECT_THROW((void)scope.kernel("x", tid), InvalidArgument);
  NumberScope other;
  const Number x = other.launch("x");
  EXPECT_THROW((void)(m + x), InvalidArgument);
  EXPECT_THROW((void)(m << 63), InvalidArgument);
}

TEST_F(NumberTest, BindingsAreChecked) {
  Bindings bindings;
  EXPECT_THROW(bindings.set(m, 12), InvalidArgument);
  EXPECT_THROW(bindings.set(m, 0), InvalidArgument);
  EXPECT_THROW(bindings.set(m + 1, 8), InvalidArgument);
  bindings.set(m, 16).set(n, 5);
  EXPECT_EQ(evaluate(m * n + 3, bindings), 83);
  EXPECT_THROW((void)evaluate(k, bindings), InvalidArgument);
  const Number j = scope.loop("j", n);
  EXPECT_EQ(evaluate(j, Bindings(bindings).set(j, 4)), 4);
  EXPECT_THROW((void)evaluate(j, Bindings(bindings).set(j, 5)), InvalidArgument);
}

TEST_F(NumberTest, TextInC) {
  EXPECT_EQ(c_text(i * 8 + tid % 8), "(tid & 7) + i * 8");
  EXPECT_EQ(c_text(tid / 4 * 16 + i), "(tid >> 2) * 16 + i");
  EXPECT_EQ(c_text(m * lda), "static_cast<long long>(m) * lda");
  EXPECT_EQ(c_text(ceil_div(n, 128)), "static_cast<long long>(n) + 127 >> 7");
  EXPECT_EQ(c_text(minimum(n, 5)), "(n < 5 ? n : 5)");
  EXPECT_EQ(c_text(divides(16, m)), "((m & 15) == 0 ? 1 : 0)") << "== binds tighter than &";
  EXPECT_EQ(c_text(select(less(tid ^ 3, n), i, 7)), "((tid ^ 3) < n ? i : 7)");
  EXPECT_EQ(c_text(m * 8 + i, [&](const Number& x) { return x == m * 8 ? std::string("row") : ""; }), "row + i");
}

TEST_F(NumberTest, TextForPeople) {
  EXPECT_EQ(to_string(m * lda + i % 8), "m * lda + i % 8");
  EXPECT_EQ(to_string(ceil_div(n, 128) * tid), "ceil_div(n, 128) * tid");
  EXPECT_EQ(to_string(divides(16, m)), "m % 16 == 0");
  EXPECT_EQ(to_string(select(less(m, n), maximum(m, 64), 1)), "(m < n ? max(m, 64) : 1)");
}

TEST_F(NumberTest, ArithOperations) {
  std::vector<std::string> lines;
  ArithPrinter printer([](const Number& x) { return "%" + x.node()->variable->name; },
                       [&](const std::string& line) { lines.push_back(line); });
  EXPECT_EQ(printer.value(tid / 8 * 16 + i), "%n4");
  EXPECT_EQ(lines, (std::vector<std::string>{
                       "%n0 = arith.constant 3 : i32",
                       "%n1 = arith.shrui %tid, %n0 : i32",
                       "%n2 = arith.constant 16 : i32",
                       "%n3 = arith.muli %n1, %n2 overflow<nsw, nuw> : i32",
                       "%n4 = arith.addi %n3, %i overflow<nsw, nuw> : i32",
                   }));
  lines.clear();
  EXPECT_EQ(printer.value(m * lda), "%n7");
  EXPECT_EQ(lines, (std::vector<std::string>{
                       "%n5 = arith.extui %m : i32 to i64",
                       "%n6 = arith.extui %lda : i32 to i64",
                       "%n7 = arith.muli %n5, %n6 overflow<nsw, nuw> : i64",
                   }));
  lines.clear();
  EXPECT_EQ(printer.value(m / 8), "%n8");  // the constant 3 is visible
  EXPECT_EQ(lines, (std::vector<std::string>{"%n8 = arith.shrui %m, %n0 exact : i32"}));
}

TEST_F(NumberTest, ArithNamesStayInTheirRegion) {
  std::vector<std::string> lines;
  ArithPrinter printer([](const Number& x) { return "%" + x.node()->variable->name; },
                       [&](const std::string& line) { lines.push_back(line); });
  const std::string outer = printer.value(m + n);
  printer.enter_region();
  EXPECT_EQ(printer.value(m + n), outer);
  const std::string inner = printer.value(m + i);
  EXPECT_EQ(printer.value(m + i), inner);
  printer.leave_region();
  EXPECT_NE(printer.value(m + i), inner);
}

/// Random expressions beside functions that compute the same integers.
struct Sample {
  Number number;
  std::function<std::int64_t(const std::vector<std::int64_t>&)> function;
};

class SampleMaker {
 public:
  explicit SampleMaker(unsigned seed) : random_(seed) {
    add(scope.launch("m", 8, 8, 64));
    add(scope.launch("n", 1, 1, 50));
    add(scope.launch("k", 3, 3, 1'000'000'000));
    add(scope.kernel("t", 32));
    add(scope.loop("i", ceil_div(scope.variables()[0], 8)));
    add(scope.loop("j", scope.variables()[1]));
  }

  /// Adds a random combination of samples. Those that may be refused (negative operands) are tried again.
  void grow() {
    for (;;) {
      const Sample a = pick();
      const Sample b = below(3) == 0 ? Sample{} : pick();
      const std::int64_t magnitude = below(4) == 0 ? std::int64_t{1} << below(6) : 1 + below(12);
      const Number constant = below(3) == 0 ? -magnitude : magnitude;
      const bool is_constant = b.function == nullptr;
      const Number y = is_constant ? constant : b.number;
      const std::int64_t c = is_constant ? constant.value() : 0;
      const int op = below(20);
      try {
        Sample made = {combine(op, a.number, y), nullptr};
        if (made.number.upper() > (std::int64_t{1} << 55) || made.number.lower() < -(std::int64_t{1} << 55)) continue;
        made.function = [=, x = a.function, z = b.function](const std::vector<std::int64_t>& v) {
          return reference(op, x(v), is_constant ? c : z(v));
        };
        samples.push_back(std::move(made));
        return;
      } catch (const InvalidArgument&) {
        continue;
      }
    }
  }

  std::vector<std::int64_t> values() {
    const std::int64_t m = 8 * (1 + below(8));
    const std::int64_t n = 1 + below(50);
    return {m, n, 3 * (1 + below(333'333'333)), below(32), below(static_cast<int>(m / 8)), below(static_cast<int>(n))};
  }

  int below(int count) { return static_cast<int>(random_() % static_cast<unsigned>(count)); }

  NumberScope scope;
  std::vector<Sample> samples;

 private:
  void add(const Number& variable) {
    const std::size_t at = samples.size();
    samples.push_back({variable, [at](const std::vector<std::int64_t>& v) { return v[at]; }});
  }
  const Sample& pick() { return samples[static_cast<std::size_t>(below(static_cast<int>(samples.size())))]; }

  static Number combine(int op, const Number& a, const Number& b) {
    switch (op) {
      case 0:
      case 1:
        return a + b;
      case 2:
        return a - b;
      case 3:
      case 4:
        return a * b;
      case 5:
      case 6:
        return a / b;
      case 7:
      case 8:
        return a % b;
      case 9:
        return ceil_div(a, b);
      case 10:
        return minimum(a, b);
      case 11:
        return maximum(a, b);
      case 12:
        return a & b;
      case 13:
        return a ^ b;
      case 14:
        return a | b;
      case 15:
        return select(less(a, b), a, b);
      case 16:
        return select(less(a, 7), b, a - 3);
      case 17:
        return both(a, less_equal(b, a));
      case 18:
        return select(a, b, negation(b));
      default:
        return select(less(a, b), a + 1, equal(a, b) + b);
    }
  }

  static std::int64_t reference(int op, std::int64_t a, std::int64_t b) {
    switch (op) {
      case 0:
      case 1:
        return a + b;
      case 2:
        return a - b;
      case 3:
      case 4:
        return a * b;
      case 5:
      case 6:
        return a / b;
      case 7:
      case 8:
        return a % b;
      case 9:
        return a / b + (a % b > 0 ? 1 : 0);
      case 10:
        return std::min(a, b);
      case 11:
        return std::max(a, b);
      case 12:
        return a & b;
      case 13:
        return a ^ b;
      case 14:
        return a | b;
      case 15:
        return a < b ? a : b;
      case 16:
        return a < 7 ? b : a - 3;
      case 17:
        return a != 0 && b <= a ? 1 : 0;
      case 18:
        return a != 0 ? b : b == 0 ? 1 : 0;
      default:
        return a < b ? a + 1 : (a == b ? 1 : 0) + b;
    }
  }

  std::mt19937 random_;
};

TEST(NumberProperties, ExpressionsKeepTheirValues) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    SampleMaker maker(seed);
    while (maker.samples.size() < 40) maker.grow();
    std::vector<std::string> lines;
    ArithPrinter printer([](const Number& x) { return "%" + x.node()->variable->name; },
                         [&](const std::string& line) { lines.push_back(line); });
    std::vector<std::string> names;
    for (const Sample& sample : maker.samples) names.push_back(printer.value(sample.number));
    // Variables are unsigned, as those of lower/cuda.
    std::vector<std::string> variables;
    for (const Number& variable : maker.scope.variables()) variables.push_back(variable.node()->variable->name);
    std::vector<CEvaluator> codes;
    for (const Sample& sample : maker.samples) codes.emplace_back(c_text(sample.number), variables, CType::u32);
    for (int round = 0; round < 20; ++round) {
      const std::vector<std::int64_t> values = maker.values();
      Bindings bindings;
      ArithInterpreter machine;
      for (std::size_t v = 0; v < values.size(); ++v) {
        const Number& variable = maker.scope.variables()[v];
        bindings.set(variable, values[v]);
        machine.define("%" + variable.node()->variable->name, static_cast<std::uint64_t>(values[v]),
                       width_of(variable));
      }
      ASSERT_NO_THROW(for (const std::string& line : lines) machine.run(line)) << "seed " << seed;
      for (std::size_t s = 0; s < maker.samples.size(); ++s) {
        const auto& [number, function] = maker.samples[s];
        const std::int64_t wanted = function(values);
        const std::string where = fmt::format("seed {}, sample {}: {}", seed, s, to_string(number));
        ASSERT_EQ(evaluate(number, bindings), wanted) << where;
        ASSERT_LE(number.lower(), wanted) << where;
        ASSERT_GE(number.upper(), wanted) << where;
        if (number.divisor() != 0) {
          ASSERT_EQ(wanted % number.divisor(), 0) << where;
        }
        ASSERT_EQ(static_cast<std::uint64_t>(wanted) & ~number.bits(), 0U) << where;
        ASSERT_EQ(machine.signed_value(names[s]), wanted) << where;
        ASSERT_EQ(codes[s](values), wanted) << where << ", in C " << c_text(number);
      }
    }
  }
}

}  // namespace
}  // namespace tilewright::layout
