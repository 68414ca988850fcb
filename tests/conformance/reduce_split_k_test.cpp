// The reduction of split-K on every device: types, layouts, alignments, epilogues and numbers of parts, between red
// zones; the order of the sums; and split-K in parallel mode from GEMM to D.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <list>
#include <memory>
#include <tuple>

#include "tests/conformance/gemm_checks.hpp"
#include "tilewright/base/float_format.hpp"
#include "tilewright/op/epilogue_tensors.hpp"
#include "tilewright/op/epilogue_text.hpp"
#include "tilewright/op/expression.hpp"
#include "tilewright/op/fill.hpp"
#include "tilewright/op/split_k.hpp"

namespace tilewright::conformance {
namespace {

using op::MatrixLayout;
constexpr auto kRow = MatrixLayout::row_major;
constexpr auto kColumn = MatrixLayout::column_major;

/// A reduction without memory, and how its operands lie in memory.
struct Shape {
  std::int64_t count = 5, m = 37, n = 52;
  DType parts = DType::f32, d = DType::f32;
  MatrixLayout parts_layout = kRow, c_layout = kRow, d_layout = kRow;
  int padding = 0;  // elements added to each leading dimension
  int offset = 0;   // elements from an aligned address
  double alpha = 1.0, beta = 0.0;
  std::string epilogue = {};  // empty: a linear combination
  DType tensors = DType::f32;
};

op::ReduceSplitK reduction_of(const Shape& shape) {
  const auto matrix = [&](DType type, std::int64_t rows, std::int64_t columns, MatrixLayout layout) {
    const std::int64_t line = layout == kRow ? columns : rows;
    return op::matrix(std::uint64_t{0}, type, rows, columns, layout, std::max<std::int64_t>(line, 1) + shape.padding);
  };
  op::ReduceSplitK reduction;
  reduction.parts = op::batched(matrix(shape.parts, shape.m, shape.n, shape.parts_layout), shape.count);
  reduction.accumulator = op::sum_accumulator(shape.parts);
  const DType compute = op::default_compute(reduction.accumulator, shape.d);
  reduction.epilogue = shape.epilogue.empty() ? op::linear_combination(compute)
                                              : op::parse_epilogue(shape.epilogue, compute, {}).value_or_throw();
  reduction.c = matrix(shape.d, shape.m, reduction.d_columns(), shape.c_layout);
  reduction.d = matrix(shape.d, shape.m, reduction.d_columns(), shape.d_layout);
  reduction.alpha = shape.alpha;
  reduction.beta = shape.beta;
  for (const op::EpilogueTensor& each : op::epilogue_tensors(reduction.epilogue)) {
    reduction.tensors.push_back({std::string(each.label), matrix(compute == DType::f64 ? DType::f64 : shape.tensors,
                                                                 each.broadcast.along_m ? shape.m : 1,
                                                                 each.broadcast.along_n ? shape.n : 1, kRow)});
  }
  return reduction;
}

/// A reduction whose operands lie between red zones.
class GuardedReduction {
 public:
  GuardedReduction(engine::Engine& engine, const Shape& shape)
      : engine_(engine), host_(reduction_of(shape)), on_device_(host_) {
    const std::vector<op::Operand> host = op::operands(host_), device = op::operands(on_device_);
    for (std::size_t i = 0; i < host.size(); ++i) {
      const GuardedOperand& placed =
          memory_.emplace_back(engine.device(), *host[i].tensor, shape.offset, std::size_t{512});
      *host[i].tensor = placed.host();
      *device[i].tensor = placed.on_device();
    }
  }

  op::ReduceSplitK& host() { return host_; }
  const op::ReduceSplitK& on_device() const { return on_device_; }

  void fill_exactly() {
    std::uint64_t seed = 1;
    for (const op::ConstOperand& each : op::operands(std::as_const(host_)))
      op::fill_integers(*each.tensor, -3, 3, seed++);
  }
  void fill_randomly() {
    std::uint64_t seed = 1;
    for (const op::ConstOperand& each : op::operands(std::as_const(host_)))
      conformance::fill_randomly(*each.tensor, seed++);
  }

  /// Runs the kernel on poisoned outputs, and compares.
  op::Comparison run(const registry::KernelPtr& kernel) {
    for (const op::ConstOperand& each : op::operands(std::as_const(host_))) {
      if (op::is_written(each.access)) op::fill_poison(*each.tensor);
    }
    for (const GuardedOperand& each : memory_) each.upload();
    engine_.run(on_device_, kernel);
    for (GuardedOperand& each : memory_) {
      each.download();
      EXPECT_EQ(each.damage(), "");
    }
    return op::compare(host_);
  }

 private:
  engine::Engine& engine_;
  op::ReduceSplitK host_, on_device_;
  std::list<GuardedOperand> memory_;
};

class ReduceSplitK : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (is_missing(GetParam())) GTEST_SKIP() << "no GPU";
  }
  engine::Engine& engine() const { return engine_of(GetParam()); }

  std::vector<registry::KernelPtr> kernels_for(const op::Problem& problem) const {
    std::vector<registry::KernelPtr> kernels;
    for (const engine::RankedKernel& each : engine().find_kernels(problem)) kernels.push_back(each.kernel);
    EXPECT_FALSE(kernels.empty()) << engine::to_text(engine().explain(problem), true);
    return kernels;
  }

  /// Runs the best kernel, or all kernels, on integers.
  void expect_exact(const Shape& shape, bool all_kernels = false) const {
    GuardedReduction problem(engine(), shape);
    problem.fill_exactly();
    for (const registry::KernelPtr& kernel : kernels_for(problem.on_device())) {
      const op::Comparison comparison = problem.run(kernel);
      EXPECT_TRUE(comparison.is_exact()) << kernel->name() << ": " << op::to_string(comparison);
      if (!all_kernels) break;
    }
  }
  void expect_within_bound(const Shape& shape, bool all_kernels = false) const {
    GuardedReduction problem(engine(), shape);
    problem.fill_randomly();
    for (const registry::KernelPtr& kernel : kernels_for(problem.on_device())) {
      const op::Comparison comparison = problem.run(kernel);
      EXPECT_TRUE(comparison.is_within_bound()) << kernel->name() << ": " << op::to_string(comparison);
      if (!all_kernels) break;
    }
  }
};

TEST_P(ReduceSplitK, EveryKernelSumsAnyNumberOfParts) {
  for (std::int64_t count = 1; count <= 17; ++count) expect_exact({.count = count, .alpha = 2, .beta = -1}, true);
}

TEST_P(ReduceSplitK, ExtentsMayBeRagged) {
  for (const auto& [m, n] : {std::pair{1, 1}, {1, 129}, {70, 1}, {3, 7}, {33, 130}, {129, 31}}) {
    SCOPED_TRACE(fmt::format("{}x{}", m, n));
    expect_exact({.count = 3, .m = m, .n = n, .beta = 1}, true);
  }
}

TEST_P(ReduceSplitK, Types) {
  using enum DType;
  for (const auto& [parts, d] : {std::pair{f32, f16},
                                 {f32, bf16},
                                 {f32, e4m3},
                                 {f32, e5m2},
                                 {f16, f16},
                                 {f16, f32},
                                 {bf16, bf16},
                                 {f64, f64},
                                 {s32, s32},
                                 {s32, s8},
                                 {s32, u8},
                                 {s32, f32},
                                 {s32, f16}}) {
    SCOPED_TRACE(fmt::format("{} to {}", name(parts), name(d)));
    expect_exact({.count = 4, .parts = parts, .d = d, .alpha = 2, .beta = 1});
    if (is_float(parts)) expect_within_bound({.count = 7, .parts = parts, .d = d, .alpha = 0.75, .beta = -1.5});
  }
}

TEST_P(ReduceSplitK, Layouts) {
  for (const auto parts : {kRow, kColumn}) {
    for (const auto c : {kRow, kColumn}) {
      for (const auto d : {kRow, kColumn}) {
        SCOPED_TRACE(fmt::format("{} {} {}", op::name(parts), op::name(c), op::name(d)));
        const Shape shape{.m = 36, .n = 52, .parts_layout = parts, .c_layout = c, .d_layout = d, .beta = 2};
        expect_exact(shape, true);
      }
    }
  }
}

TEST_P(ReduceSplitK, AnyAlignment) {
  for (const auto& [padding, offset] : {std::pair{1, 0}, {0, 1}, {2, 2}, {3, 1}}) {
    for (const DType type : {DType::f32, DType::f16}) {
      for (const auto layout : {kRow, kColumn}) {
        SCOPED_TRACE(fmt::format("padding {} offset {} {} {}", padding, offset, name(type), op::name(layout)));
        expect_exact(
            {.parts = type, .d = DType::f16, .d_layout = layout, .padding = padding, .offset = offset, .beta = 1});
      }
    }
  }
}

TEST_P(ReduceSplitK, Epilogues) {
  for (const std::string text :
       {"D = relu(alpha * acc + row(bias))", "D = gelu(acc + column(bias))", "D = acc * single(scale) + residual",
        "copy = acc + 1; D = copy * 2", "D = row_index * 3 - column_index + acc", "D = swiglu(acc)", "D = acc + C",
        "D = convert(bf16, acc) + residual"}) {
    for (const auto layout : {kRow, kColumn}) {
      if (layout == kColumn && text.find("swiglu") != std::string::npos) continue;
      SCOPED_TRACE(text);
      expect_within_bound({.d_layout = layout, .beta = 1, .epilogue = text}, true);
    }
  }
}

TEST_P(ReduceSplitK, ReductionsOfTheEpilogue) {
  for (const auto layout : {kRow, kColumn}) {
    for (const std::int64_t n : {52, 300}) {
      expect_exact({.m = 75,
                    .n = n,
                    .d_layout = layout,
                    .epilogue = "D = acc; row(columns) = sum(acc); column(rows) = max(acc); single(all) = min(acc)"},
                   true);
    }
  }
}

TEST_P(ReduceSplitK, AGatedEpilogueNeedsARowMajorD) {
  GuardedReduction problem(engine(), {.d_layout = kColumn, .epilogue = "D = swiglu(acc)"});
  const engine::Explanation found = engine().explain(problem.on_device());
  EXPECT_TRUE(found.kernels.empty());
  EXPECT_THAT(engine::to_text(found, true),
              testing::HasSubstr("the epilogue pairs columns, which needs a row-major D"));
}

// The sum must be that of a loop over the parts in ascending order, in f32, for every kernel.
TEST_P(ReduceSplitK, PartsAreAddedInAscendingOrder) {
  GuardedReduction problem(engine(), {.count = 17, .m = 20, .n = 36});
  problem.fill_randomly();
  const op::Tensor& parts = problem.host().parts;
  const std::array<double, 4> cancelling{1e8, 1, -1e8, 1};  // 1 in ascending order, 0 in all others tested
  for (std::int64_t part = 0; part < 17; ++part)
    op::store(op::slice(parts, part), 0, 0, part < 4 ? cancelling[static_cast<std::size_t>(part)] : 0.0);
  for (const registry::KernelPtr& kernel : kernels_for(problem.on_device())) {
    problem.run(kernel);
    EXPECT_EQ(op::load(problem.host().d, 0, 0), 1.0) << kernel->name();
    int differing = 0, differing_from_reverse = 0;
    for (std::int64_t row = 0; row < 20; ++row) {
      for (std::int64_t column = 0; column < 36; ++column) {
        float sum = 0.0F, reverse = 0.0F;
        for (std::int64_t part = 0; part < 17; ++part) {
          sum += static_cast<float>(op::load(op::slice(parts, part), row, column));
          reverse += static_cast<float>(op::load(op::slice(parts, 16 - part), row, column));
        }
        const double stored = op::load(problem.host().d, row, column);
        differing += stored == static_cast<double>(sum) ? 0 : 1;
        differing_from_reverse += stored == static_cast<double>(reverse) ? 0 : 1;
      }
    }
    EXPECT_EQ(differing, 0) << kernel->name();
    EXPECT_GT(differing_from_reverse, 100) << "the inputs do not distinguish the orders";
  }
}

TEST_P(ReduceSplitK, ZeroScalarsReadNothing) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto fill = [](const op::Tensor& tensor, double value) {
    for (std::int64_t row = 0; row < tensor.rows(); ++row) {
      for (std::int64_t column = 0; column < tensor.columns(); ++column) op::store(tensor, row, column, value);
    }
  };
  GuardedReduction no_c(engine(), {.count = 2, .beta = 0});
  no_c.fill_exactly();
  fill(no_c.host().c, nan);
  EXPECT_TRUE(no_c.run(nullptr).is_exact());
  EXPECT_FALSE(std::isnan(op::load(no_c.host().d, 3, 4)));
  for (const auto& [count, alpha] : {std::pair{2, 0.0}, {0, 1.0}}) {
    GuardedReduction no_parts(engine(), {.count = count, .alpha = alpha, .beta = 2});
    no_parts.fill_exactly();
    for (int part = 0; part < count; ++part) fill(op::slice(no_parts.host().parts, part), nan);
    EXPECT_TRUE(no_parts.run(nullptr).is_exact());
    EXPECT_EQ(op::load(no_parts.host().d, 3, 4), 2 * op::load(no_parts.host().c, 3, 4));
  }
}

TEST_P(ReduceSplitK, IntegersWrap) {
  GuardedReduction problem(engine(), {.count = 3, .m = 2, .n = 4, .parts = DType::s32, .d = DType::s32});
  for (int part = 0; part < 3; ++part) {
    for (int column = 0; column < 8; ++column)
      op::store(op::slice(problem.host().parts, part), column / 4, column % 4, 2147483647.0 - column);
  }
  EXPECT_TRUE(problem.run(nullptr).is_exact());
  EXPECT_EQ(op::load(problem.host().d, 0, 0), 2147483645.0);  // 3 * (2^31 - 1) modulo 2^32
}

/// A GEMM of bench's text in mode `parts` of split-K, compared with the reference of the whole GEMM.
struct SplitCase {
  DType a, accumulator, d;
  op::MathOperation math = op::MathOperation::multiply_add;
  bool needs_sm90 = false;
};

class SplitK : public ReduceSplitK {
 protected:
  /// Runs the GEMMs and the reduction with a poisoned workspace.
  void expect_exact(op::Gemm gemm, std::int64_t parts, const Placement& placement = {}) const {
    constexpr std::uint64_t kApart = std::uint64_t{1} << 40;
    gemm.a.address = kApart;
    gemm.b.address = 2 * kApart;
    gemm.c = gemm.d;
    gemm.c.address = 3 * kApart;
    gemm.d.address = 4 * kApart;
    GuardedProblem problem(engine().device(), gemm, placement);
    fill_exactly(problem.host());
    problem.upload();
    const std::int64_t bytes = op::split_k(problem.on_device(), parts, 0).value_or_throw().workspace_bytes();
    GuardedOperand workspace(engine().device(), op::matrix(std::uint64_t{0}, DType::s8, 1, bytes), 0, 512);
    workspace.upload();
    const op::SplitK split = op::split_k(problem.on_device(), parts, workspace.on_device().address).value_or_throw();
    for (const op::Gemm& each : split.gemms) engine().run(each);
    engine().run(split.reduction);
    problem.download();
    workspace.download();
    EXPECT_EQ(problem.damage(), "");
    EXPECT_EQ(workspace.damage(), "");
    const op::Comparison comparison = op::compare(problem.host());
    EXPECT_TRUE(comparison.is_exact()) << op::to_string(comparison);
  }
};

op::Gemm gemm_of(const SplitCase& types, std::int64_t m, std::int64_t n, std::int64_t k, MatrixLayout a = kRow,
                 MatrixLayout b = kColumn, MatrixLayout d = kRow) {
  op::Gemm gemm;
  gemm.a = op::matrix(std::uint64_t{0}, types.a, m, k, a);
  gemm.b = op::matrix(std::uint64_t{0}, types.a, k, n, b);
  gemm.d = op::matrix(std::uint64_t{0}, types.d, m, n, d);
  gemm.accumulator = types.accumulator;
  gemm.math = types.math;
  gemm.epilogue = op::linear_combination(op::default_compute(types.accumulator, types.d));
  gemm.alpha = 2;
  gemm.beta = -1;
  return gemm;
}

constexpr SplitCase kF16{DType::f16, DType::f32, DType::f16};

TEST_P(SplitK, EveryType) {
  using enum DType;
  using enum op::MathOperation;
  for (const SplitCase& types : {kF16,
                                 SplitCase{f16, f16, f16},
                                 {bf16, f32, f32},
                                 {f32, f32, f32},
                                 {f32, f32, f32, multiply_add_tf32},
                                 {f64, f64, f64},
                                 {s8, s32, s32},
                                 {s8, s32, f32},
                                 {e4m3, f32, bf16, multiply_add, true}}) {
    if (types.needs_sm90 && !GetParam().ends_with("sm_90a")) continue;
    SCOPED_TRACE(fmt::format("{} {} {}", name(types.a), name(types.d), op::name(types.math)));
    expect_exact(gemm_of(types, 48, 40, 160), 4);
  }
}

TEST_P(SplitK, RaggedK) {
  for (const auto& [k, parts] : {std::pair{100, 3}, {100, 7}, {96, 3}, {17, 2}, {9, 16}, {1, 3}, {250, 17}}) {
    SCOPED_TRACE(fmt::format("k {} in {} parts", k, parts));
    expect_exact(gemm_of(kF16, 20, 24, k), parts);
  }
}

TEST_P(SplitK, Layouts) {
  for (const auto a : {kRow, kColumn}) {
    for (const auto b : {kRow, kColumn}) {
      for (const auto d : {kRow, kColumn}) expect_exact(gemm_of(kF16, 40, 24, 72, a, b, d), 3);
    }
  }
  expect_exact(gemm_of(kF16, 13, 11, 45), 3, {.padding = 1, .offset_elements = 1});
}

TEST_P(SplitK, ProductsThatAreNotReadLeaveTheEpilogue) {
  expect_exact(gemm_of(kF16, 20, 24, 0), 4);
  op::Gemm gemm = gemm_of(kF16, 20, 24, 64);
  gemm.alpha = 0;
  expect_exact(gemm, 4);
}

TEST_P(SplitK, ABatchIsRefused) {
  op::Gemm gemm = gemm_of(kF16, 20, 24, 64);
  gemm = batch_of(gemm, 3);
  EXPECT_EQ(op::split_k(gemm, 4, 0).reason(), "split-K in parallel mode needs single matrices, got a batch of 3");
}

INSTANTIATE_TEST_SUITE_P(Devices, ReduceSplitK, testing::ValuesIn(devices()),
                         [](const auto& tested) { return identifier(tested.param); });
INSTANTIATE_TEST_SUITE_P(Devices, SplitK, testing::ValuesIn(devices()),
                         [](const auto& tested) { return identifier(tested.param); });

}  // namespace
}  // namespace tilewright::conformance
