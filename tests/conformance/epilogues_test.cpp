// Epilogue graphs on every family and device: each function; every broadcast, type and layout of tensors; auxiliary
// outputs; on problems with residue tiles. Results must be within the bound of the f64 reference, and equal bit for bit
// on integers if no operation rounds.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/conformance/gemm_checks.hpp"
#include "tests/unit/plan/gemm_cases.hpp"
#include "tilewright/op/epilogue_tensors.hpp"
#include "tilewright/op/epilogue_text.hpp"
#include "tilewright/op/expression.hpp"

namespace tilewright::conformance {
namespace {

constexpr std::string_view kGraphs[] = {
    "D = acc",
    "D = acc + row(bias)",
    "D = acc + column(bias)",
    "D = acc + single(bias)",
    "D = acc + residual",
    "D = alpha * acc + beta * C + row(bias)",
    "D = relu(acc + row(bias))",
    "D = gelu(acc + row(bias))",
    "D = gelu_tanh(acc + row(bias))",
    "D = silu(acc + column(bias))",
    "D = relu(alpha * acc + beta * C)",
    "D = leaky_relu(acc, $slope)",
    "D = tanh(acc)",
    "D = sigmoid(acc)",
    "D = sigmoid(acc * 8)",
    "D = silu(acc * 8)",
    "D = hardswish(acc)",
    "D = softplus(acc)",
    "D = mish(acc)",
    "D = erf(acc)",
    "D = exp(acc * 0.05)",
    "D = log(abs(acc) + 1)",
    "D = log1p(abs(acc))",
    "D = sqrt(abs(acc) + row(bias) * row(bias) + 0.5)",
    "D = rsqrt(acc * acc + 1)",
    "D = reciprocal(abs(acc) + 2)",
    "D = pow(abs(acc) + 0.5, 1.25)",
    "D = floor(acc * 0.5)",
    "D = round(acc * 0.5)",
    "D = clamp(acc, -2, 3.5)",
    "D = max(acc, C)",
    "D = min(acc, row(bias))",
    "D = abs(acc) - C",
    "D = neg(acc) * 0.5",
    "D = fma(acc, column(scale), row(bias))",
    "D = where(acc > 0, acc, $slope * acc)",
    "D = where(row_index < column_index, acc, 0)",
    "D = (acc >= C) + (acc == residual) * 2 + (acc != C) * 4",
    "D = row_index * 3 - column_index",
    "D = acc * row(scale) * column(other)",
    "D = acc * single(scale) + single(shift)",
    "D = convert(bf16, acc) + residual",
    "D = convert(e4m3, acc * single(scale))",
    "D = convert(s8, acc * 0.25) * 4",
    "D = relu_gradient(residual) * acc",
    "D = leaky_relu_gradient(residual, 0.25) * acc",
    "D = gelu_gradient(residual) * acc",
    "D = gelu_tanh_gradient(residual) * acc",
    "D = silu_gradient(residual) * acc",
    "D = sigmoid_gradient(residual) * acc",
    "D = tanh_gradient(residual) * acc",
    "D = hardswish_gradient(residual) * acc",
    "D = softplus_gradient(residual) * acc",
    "D = square(acc - C)",
    "D = acc; aux = acc",
    "let t = acc + row(bias); D = gelu(t); aux = t",
    "let t = acc + row(bias); aux = t; D = relu(aux); mask = aux > 0",
    "D = 0.5 * acc; aux = D * D; other = D + residual",
    "D = C; aux = acc",
    "D = 1; aux = row(bias)",
    "let t = alpha * acc + beta * C; D = t * column(scale); raw = t; sign = (t > 0) - (t < 0)",
    "D = acc + t1 + row(t2) + column(t3) + single(t4) + t5 * t6 + row(t7) * column(t8);"
    "o1 = acc; o2 = t1; o3 = acc - t5; o4 = row(t2); o5 = column(t3); o6 = t6; o7 = acc * 2; o8 = D",
    "D = $s1 * acc + $s2 + $s3 * C + $s4 * row(bias) + $s5 + $s6 + $s7 * ($s8 + acc)",
    "D = (acc + column(mean)) * column(deviation) * row(weight) + row(bias)",
    "D = acc; total = sum(acc)",
    "D = acc; row(total) = sum(acc)",
    "D = acc; column(total) = sum(acc)",
    "D = relu(acc + row(bias)); amax = absmax(D)",
    "D = acc * single(scale); row(top) = max(D); column(top_of_row) = max(D)",
    "D = acc; single(least) = min(acc); row(leasts) = min(acc - C); column(of_row) = min(residual)",
    "D = acc; row(squares) = sum_of_squares(acc); column(of_row) = sum_of_squares(acc); all = sum_of_squares(acc)",
    "D = convert(e4m3, acc * single(scale)); amax = absmax(acc); raw = acc",
    "D = gelu(acc + row(bias)); column(total) = sum(D); column(squares) = sum_of_squares(D); aux = acc",
    "let t = acc * column(scale); D = t; row(gradient) = sum(t); row(largest) = absmax(t); largest_of_all = absmax(t)",
    "D = acc + t1 + row(t2) + column(t3) + single(t4) + t5 * t6 + row(t7) + column(t8) + $s1 - $s2 + $s3 * $s4 +"
    "$s5 + $s6 * $s7 - $s8; o1 = acc; row(o2) = sum(acc); column(o3) = absmax(acc); o4 = absmax(D); o5 = t1;"
    "single(o6) = min(t5); row(o7) = max(D); column(o8) = sum(D)",
    // The epilogue visitor trees of PyCUTLASS's examples: row reduction, column reduction, row broadcast, column
    // broadcast. The reductions are over whole rows and columns.
    "D = alpha * acc + tanh(beta * C); column(reduction) = sum(D)",
    "D = alpha * acc + beta * C; row(reduction) = sum(D)",
    "let t = acc + row(v); D = relu(alpha * t + beta * C); T = t",
    "let t = acc + column(v); D = leaky_relu(alpha * t, 0.2) + beta * C; T = t",
    "D = even(acc) - 2 * odd(acc)",
    "D = swiglu(acc + row(bias))",
    "let t = alpha * acc + row(bias); D = geglu(t) * single(scale); aux = t",
    "D = reglu(acc) * column(scale); aux = relu(acc)",
    "D = max(even(acc + residual), odd(row_index * 2 - column_index)); where_am_i = column_index - row_index",
};

const std::map<std::string, double> kScalars{{"slope", 0.25}, {"s1", 1}, {"s2", 2}, {"s3", -1}, {"s4", 2},
                                             {"s5", -3},      {"s6", 4}, {"s7", 1}, {"s8", -1}};

/// Types, sizes and layouts alternate over the graphs, so that each is combined with many graphs.
struct Turn {
  std::size_t number;

  plan::TypeCase types() const {
    constexpr plan::TypeCase kTypes[] = {
        {DType::f16, DType::f16, DType::f16, DType::f32},
        {DType::f32, DType::f32, DType::f32, DType::f32},
        {DType::bf16, DType::bf16, DType::f32, DType::f32},
        {DType::s8, DType::s8, DType::f32, DType::s32},
        {DType::f32, DType::f32, DType::f32, DType::f32, op::MathOperation::multiply_add_tf32},
        {DType::e4m3, DType::e4m3, DType::bf16, DType::f32},
        {DType::bf16, DType::bf16, DType::bf16, DType::f32},
        {DType::f64, DType::f64, DType::f64, DType::f64}};
    return kTypes[number % std::size(kTypes)];
  }
  plan::Layouts layouts() const {
    const auto layout = [&](std::size_t bit) { return (number >> bit) % 2 == 0 ? plan::kRow : plan::kColumn; };
    return {plan::kRow, plan::kColumn, layout(0), layout(1)};
  }
  std::array<std::int64_t, 3> extents() const {
    constexpr std::array<std::int64_t, 3> kExtents[] = {
        {64, 128, 64}, {72, 144, 80}, {33, 70, 48}, {1, 200, 64}, {136, 8, 160}};
    return kExtents[number % std::size(kExtents)];
  }
};

op::Tensor tensor_of(const op::EpilogueTensor& wanted, const op::Gemm& gemm, std::size_t number) {
  constexpr DType kTypes[] = {DType::f32, DType::f16, DType::bf16, DType::s8, DType::e4m3, DType::e5m2};
  const std::int64_t rows = wanted.broadcast.along_m ? gemm.m() : 1, columns = wanted.broadcast.along_n ? gemm.n() : 1;
  const auto layout = number % 3 == 1 ? plan::kColumn : plan::kRow;
  const DType type = gemm.epilogue.compute == DType::f64 ? DType::f64 : kTypes[number % std::size(kTypes)];
  return op::matrix(std::uint64_t{1} << 50, type, rows, columns, layout);
}

/// Makes D as wide as the gated epilogue of `gemm` needs. C is a matrix of the other layout, which no kernel reads.
void halve_d(op::Gemm& gemm, op::MatrixLayout layout) {
  gemm.d = op::matrix(gemm.d.address, gemm.d.dtype, gemm.m(), gemm.d_columns(), layout);
  gemm.c = op::matrix(gemm.c.address, gemm.d.dtype, gemm.m(), gemm.d_columns(), op::transposed(layout));
}

op::Gemm problem_of(std::string_view text, const Turn& turn) {
  const auto [m, n, k] = turn.extents();
  op::Gemm gemm = plan::problem_of(plan::describe(turn.types(), turn.layouts()), m, n, k);
  const DType compute = op::default_compute(gemm.accumulator, gemm.d.dtype);
  gemm.epilogue = op::parse_epilogue(text, compute, kScalars).value_or_throw();
  if (gemm.epilogue.is_gated()) halve_d(gemm, turn.layouts().d);
  gemm.alpha = 2.0;
  gemm.beta = -1.0;
  std::size_t number = turn.number;
  for (const op::EpilogueTensor& wanted : op::epilogue_tensors(gemm.epilogue))
    gemm.tensors.push_back({std::string(wanted.label), tensor_of(wanted, gemm, number++)});
  return gemm;
}

/// Whether the graph maps small integers to integers.
bool is_exact(const op::Epilogue& epilogue) {
  using enum op::EpilogueOp;
  return std::ranges::all_of(epilogue.nodes, [](const op::EpilogueNode& node) {
    const bool is_whole = node.op != constant || node.value == std::trunc(node.value);
    return is_whole && op::is_integral(node.op) && (node.op != scalar || node.value == std::trunc(node.value));
  });
}

struct Case {
  std::string device;
  std::size_t graph = 0;
};

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const std::string& device : devices()) {
    for (std::size_t graph = 0; graph < std::size(kGraphs); ++graph) cases.push_back({device, graph});
  }
  return cases;
}

std::ostream& operator<<(std::ostream& out, const Case& tested) { return out << kGraphs[tested.graph]; }

class Epilogues : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    if (is_missing(GetParam().device)) GTEST_SKIP() << "no GPU";
  }
};

TEST_P(Epilogues, EqualTheGraphInEveryFamily) {
  engine::Engine& engine = engine_of(GetParam().device);
  const std::size_t number = GetParam().graph;
  op::Gemm gemm = problem_of(kGraphs[number], {number});
  if (number % 4 == 3) {
    gemm = batch_of(gemm, 3);
    for (op::NamedTensor& each : gemm.tensors) {
      const auto& outputs = gemm.epilogue.outputs;
      const bool is_output = std::ranges::find(outputs, each.name, &op::EpilogueOutput::label) != outputs.end();
      if (is_output || each.name.size() % 2 == 0) each.tensor = op::batched(each.tensor, 3);
    }
  }
  const Placement placement{.padding = number % 3 == 0 ? 0 : 8, .offset_elements = number % 5 == 4 ? 1 : 0};
  GuardedProblem guarded(engine.device(), gemm, placement);
  const std::vector<registry::KernelPtr> kernels = best_of_each_family(engine, guarded.on_device());
  ASSERT_FALSE(kernels.empty());
  for (const registry::KernelPtr& kernel : without_kernels_of_sm80(engine, kernels)) {
    SCOPED_TRACE(kGraphs[number]);
    expect_within_bound(engine, kernel, guarded);
    if (is_exact(gemm.epilogue)) expect_exact(engine, kernel, guarded);
  }
}

INSTANTIATE_TEST_SUITE_P(Graphs, Epilogues, testing::ValuesIn(all_cases()), [](const auto& tested) {
  return identifier(fmt::format("{}_{}", tested.param.device, tested.param.graph));
});

// Every output path of sm90_gemm's epilogue: each accumulator must be combined with the tensor elements of its own
// place.
struct OutputPath {
  std::string_view name;
  std::array<std::int64_t, 3> extents;
  plan::Layouts layouts;
  int offset;  // distance from an aligned address, in elements
  bool (*is)(const plan::Sm90GemmDesign& design);
  void (*change)(plan::Sm90GemmDesign& design) = nullptr;  // changes the design that was found
};
constexpr bool any_design(const plan::Sm90GemmDesign& /*design*/) { return true; }
constexpr bool is_cooperative(const plan::Sm90GemmDesign& design) {
  return design.schedule == plan::Schedule::cooperative && !design.swaps_operands;
}
constexpr bool is_ping_pong(const plan::Sm90GemmDesign& design) { return design.schedule == plan::Schedule::ping_pong; }
constexpr bool is_swapped(const plan::Sm90GemmDesign& design) {
  return design.swaps_operands && design.schedule == plan::Schedule::cooperative;
}
void split(plan::Sm90GemmDesign& design) {
  design.split_k = 3;
  design.stages = 3;  // leaves shared memory for the reductions
}
void repack(plan::Sm90GemmDesign& design) { design.repacks_operands = true; }

const OutputPath kOutputPaths[] = {
    {"cooperative", {136, 264, 128}, {}, 0, is_cooperative},
    {"ping_pong", {136, 264, 128}, {}, 0, is_ping_pong},
    {"split_k", {136, 264, 640}, {}, 0, is_cooperative, split},
    {"swapped", {24, 264, 512}, {}, 0, is_swapped},
    {"swapped_split_k", {24, 264, 640}, {}, 0, is_swapped, split},
    {"column_major_d", {136, 264, 128}, {plan::kRow, plan::kColumn, plan::kColumn, plan::kColumn}, 0, any_design},
    {"plain_stores", {131, 67, 128}, {}, 1, any_design},
    {"repacked", {131, 67, 129}, {}, 1, is_cooperative, repack},
};

class OutputPaths : public testing::TestWithParam<OutputPath> {};

TEST_P(OutputPaths, CombineEachElementWithItsOwnTensorElement) {
  const std::string device = devices().back();
  if (is_missing(device)) GTEST_SKIP() << "no GPU";
  if (device == "emulator:sm_80") GTEST_SKIP() << "no Hopper";
  engine::Engine& engine = engine_of(device);
  const OutputPath& path = GetParam();
  const auto [m, n, k] = path.extents;
  for (const DType type : {DType::bf16, DType::s8}) {
    const plan::TypeCase types = type == DType::s8 ? plan::TypeCase{type, type, DType::f32, DType::s32}
                                                   : plan::TypeCase{type, type, type, DType::f32};
    op::Gemm gemm = plan::problem_of(plan::describe(types, path.layouts), m, n, k);
    gemm.epilogue = op::parse_epilogue(
                        "D = alpha * acc + beta * C + row(bias) - column(scale) * single(shift) + residual;"
                        "aux = acc; where_am_i = row_index * 2 - column_index; turned = residual * row(bias);"
                        "row(total) = sum(acc); column(totals) = sum(acc); all = sum(residual); amax = absmax(acc);"
                        "row(top) = max(residual - row_index); column(least) = min(residual + column_index)",
                        DType::f32)
                        .value_or_throw();
    gemm.alpha = 2.0;
    gemm.beta = -1.0;
    for (const op::EpilogueTensor& wanted : op::epilogue_tensors(gemm.epilogue)) {
      const DType dtype = wanted.label == "where_am_i" ? DType::s32 : DType::f32;
      gemm.tensors.push_back(
          {std::string(wanted.label),
           op::matrix(std::uint64_t{1} << 50, dtype, wanted.broadcast.along_m ? m : 1, wanted.broadcast.along_n ? n : 1,
                      wanted.label == "turned" ? plan::kColumn : plan::kRow)});
    }
    GuardedProblem guarded(engine.device(), gemm, {.offset_elements = path.offset});
    const auto kernels = engine.find_kernels(guarded.on_device(), [&](const registry::KernelMetadata& metadata) {
      return metadata.family == "sm90_gemm" && path.is(std::get<plan::Sm90GemmDesign>(metadata.design));
    });
    if (type == DType::bf16) {
      ASSERT_FALSE(kernels.empty()) << path.name;
    }
    for (std::size_t i = 0; i < std::min<std::size_t>(2, kernels.size()); ++i) {
      registry::KernelPtr kernel = kernels[i].kernel;
      auto design = std::get<plan::Sm90GemmDesign>(kernel->metadata().design);
      if (path.change != nullptr) {
        path.change(design);
        kernel = engine.make_kernel(op::describe(guarded.on_device()), design);
      }
      expect_exact(engine, kernel, guarded);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Hopper, OutputPaths, testing::ValuesIn(kOutputPaths),
                         [](const auto& tested) { return std::string(tested.param.name); });

/// D and the outputs beside it share a buffer, in which the panels of each need an alignment of their own: those of 8
/// columns with 1-byte elements are shorter than the alignment of those that follow.
TEST(OutputsOfOneBuffer, MayHaveElementsOfAllWidths) {
  const std::string device = devices().back();
  if (is_missing(device)) GTEST_SKIP() << "no GPU";
  if (device == "emulator:sm_80") GTEST_SKIP() << "no Hopper";
  engine::Engine& engine = engine_of(device);
  constexpr DType kBytes = DType::s8, kHalves = DType::f16, kWords = DType::f32;
  const std::pair<plan::TypeCase, std::array<DType, 2>> types[] = {
      {{kBytes, kBytes, kBytes, DType::s32}, {kWords, kHalves}},
      {{kBytes, kBytes, kBytes, DType::s32}, {kBytes, kWords}},
      {{kHalves, kHalves, kHalves, kWords}, {kBytes, kWords}},
      {{kHalves, kHalves, kWords, kWords}, {kBytes, kBytes}},
  };
  for (const auto& [of_d, of_others] : types) {
    for (const auto& [m, n] : {std::pair{8, 128}, {24, 128}, {128, 64}, {136, 272}}) {
      op::Gemm gemm =
          plan::problem_of(plan::describe(of_d, {plan::kRow, plan::kColumn, plan::kRow, plan::kRow}), m, n, 64);
      gemm.epilogue = op::parse_epilogue("D = acc; first = acc > 0; second = acc", kWords).value_or_throw();
      for (const op::EpilogueTensor& wanted : op::epilogue_tensors(gemm.epilogue)) {
        const DType type = of_others[wanted.label == "first" ? 0 : 1];
        gemm.tensors.push_back({std::string(wanted.label), op::matrix(std::uint64_t{1} << 50, type, m, n, plan::kRow)});
      }
      GuardedProblem guarded(engine.device(), gemm, {});
      const auto kernels = engine.find_kernels(
          guarded.on_device(), [](const registry::KernelMetadata& metadata) { return metadata.family == "sm90_gemm"; });
      ASSERT_FALSE(kernels.empty());
      constexpr std::size_t kMost = 4;
      for (const engine::RankedKernel& each : std::span(kernels).first(std::min(kMost, kernels.size())))
        expect_exact(engine, each.kernel, guarded);
    }
  }
}

/// A CTA arrives once for the full reductions of all its tiles of a matrix, so it must count them. The second run
/// needs counters that the first has reset.
TEST(FullReductions, CountTheTilesOfPersistentCtas) {
  const std::string device = devices().back();
  if (is_missing(device)) GTEST_SKIP() << "no GPU";
  if (device == "emulator:sm_80") GTEST_SKIP() << "no Hopper";
  engine::Engine& engine = engine_of(device);
  constexpr std::int64_t kExtent = 840, kBatches = 4, kCtas = 132;
  op::Gemm gemm = batch_of(
      plan::problem_of(plan::describe({DType::bf16, DType::bf16, DType::bf16, DType::f32}, {}), kExtent, kExtent, 16),
      kBatches);
  gemm.epilogue = op::parse_epilogue("D = acc; amax = absmax(acc); total = sum(acc)", DType::f32).value_or_throw();
  for (const op::EpilogueTensor& wanted : op::epilogue_tensors(gemm.epilogue))
    gemm.tensors.push_back({std::string(wanted.label), op::batched(tensor_of(wanted, gemm, 0), kBatches)});
  GuardedProblem guarded(engine.device(), gemm, {});
  for (const auto is : {is_cooperative, is_ping_pong}) {
    const auto kernels = engine.find_kernels(guarded.on_device(), [&](const registry::KernelMetadata& metadata) {
      if (metadata.family != "sm90_gemm") return false;
      const auto& design = std::get<plan::Sm90GemmDesign>(metadata.design);
      const auto along = [](int tile) { return (kExtent + tile - 1) / tile; };
      return is(design) && along(design.tile.m) * along(design.tile.n) * kBatches > kCtas;
    });
    ASSERT_FALSE(kernels.empty());
    for (int run = 0; run < 2; ++run) expect_exact(engine, kernels.front().kernel, guarded);
  }
}

/// Gated epilogues on every output path, with a row-major and a column-major D. Their operands are never swapped.
TEST_P(OutputPaths, ComputeGatedEpilogues) {
  const std::string device = devices().back();
  if (is_missing(device)) GTEST_SKIP() << "no GPU";
  if (device == "emulator:sm_80") GTEST_SKIP() << "no Hopper";
  const OutputPath& path = GetParam();
  engine::Engine& engine = engine_of(device);
  const auto [m, n, k] = path.extents;
  for (const op::MatrixLayout layout : {plan::kRow, plan::kColumn}) {
    op::Gemm gemm =
        plan::problem_of(plan::describe({DType::bf16, DType::bf16, DType::bf16, DType::f32}, {}), m, n / 2 * 2, k);
    gemm.epilogue =
        op::parse_epilogue("let t = acc + row(bias); D = even(t) - 2 * odd(t) + column(shift); aux = t", DType::f32)
            .value_or_throw();
    halve_d(gemm, layout);
    for (const op::EpilogueTensor& wanted : op::epilogue_tensors(gemm.epilogue))
      gemm.tensors.push_back({std::string(wanted.label), tensor_of(wanted, gemm, 0)});
    GuardedProblem guarded(engine.device(), gemm, {.offset_elements = path.offset});
    const auto kernels = engine.find_kernels(guarded.on_device(), [&](const registry::KernelMetadata& metadata) {
      return metadata.family == "sm90_gemm" && path.is(std::get<plan::Sm90GemmDesign>(metadata.design));
    });
    EXPECT_EQ(kernels.empty(), path.is == is_swapped);
    for (std::size_t i = 0; i < std::min<std::size_t>(2, kernels.size()); ++i) {
      auto design = std::get<plan::Sm90GemmDesign>(kernels[i].kernel->metadata().design);
      if (path.change != nullptr) path.change(design);
      expect_exact(engine, engine.make_kernel(op::describe(guarded.on_device()), design), guarded);
    }
  }
}

/// Gated epilogues of every operand type in every family, with both layouts of D, batches, residue tiles, and lines of
/// D that are not aligned.
TEST(GatedEpilogues, ComputeRowMajorAndColumnMajorOutputs) {
  constexpr plan::TypeCase kTypes[] = {
      {DType::f16, DType::f16, DType::f16, DType::f32},
      {DType::f16, DType::f16, DType::f16, DType::f16},
      {DType::bf16, DType::bf16, DType::f32, DType::f32},
      {DType::e4m3, DType::e4m3, DType::bf16, DType::f32},
      {DType::s8, DType::s8, DType::s8, DType::s32},
      {DType::u8, DType::u8, DType::s32, DType::s32},
      {DType::f64, DType::f64, DType::f64, DType::f64},
      {DType::f32, DType::f32, DType::f32, DType::f32},
      {DType::f32, DType::f32, DType::f32, DType::f32, op::MathOperation::multiply_add_tf32}};
  constexpr std::string_view kGated[] = {"D = reglu(acc)", "D = reglu(acc + row(bias)); aux = acc",
                                         "D = max(even(acc), 2 * odd(acc)) + column(shift)"};
  constexpr std::array<std::int64_t, 3> kSizes[] = {{64, 96, 64}, {33, 70, 48}};
  std::size_t number = 0;
  for (const std::string& device : devices()) {
    if (is_missing(device)) continue;
    engine::Engine& engine = engine_of(device);
    for (const plan::TypeCase& types : kTypes) {
      for (const op::MatrixLayout layout : {plan::kRow, plan::kColumn}) {
        for (const auto& [m, n, k] : kSizes) {
          SCOPED_TRACE(
              fmt::format("{} {} {} {}x{}x{}", device, testing::PrintToString(types), op::name(layout), m, n, k));
          op::Gemm gemm = plan::problem_of(plan::describe(types, {}), m, n, k);
          const DType compute = op::default_compute(gemm.accumulator, gemm.d.dtype);
          gemm.epilogue = op::parse_epilogue(kGated[number % std::size(kGated)], compute).value_or_throw();
          halve_d(gemm, layout);
          for (const op::EpilogueTensor& wanted : op::epilogue_tensors(gemm.epilogue))
            gemm.tensors.push_back({std::string(wanted.label), tensor_of(wanted, gemm, 0)});
          if (++number % 2 == 0) {
            gemm = batch_of(gemm, 2);
            for (op::NamedTensor& each : gemm.tensors) each.tensor = op::batched(each.tensor, 2);
          }
          GuardedProblem guarded(engine.device(), gemm, {.offset_elements = number % 3 == 0 ? 1 : 0});
          const std::vector<registry::KernelPtr> kernels = best_of_each_family(engine, guarded.on_device());
          ASSERT_FALSE(kernels.empty());
          for (const registry::KernelPtr& kernel : without_kernels_of_sm80(engine, kernels))
            expect_exact(engine, kernel, guarded);
        }
      }
    }
  }
}

/// A vector of 16 elements of a byte is computed from 32 columns of A*B, more than a thread otherwise keeps in
/// registers.
TEST(GatedEpilogues, ComputeRowsOfBytesThatAreNotAligned) {
  constexpr plan::TypeCase kTypes[] = {{DType::s8, DType::s8, DType::s8, DType::s32},
                                       {DType::e4m3, DType::e5m2, DType::e4m3, DType::f32},
                                       {DType::e5m2, DType::e4m3, DType::e5m2, DType::f32}};
  for (const std::string& device : devices()) {
    if (is_missing(device)) continue;
    engine::Engine& engine = engine_of(device);
    for (const plan::TypeCase& types : kTypes) {
      SCOPED_TRACE(fmt::format("{} {}", device, testing::PrintToString(types)));
      op::Gemm gemm = plan::problem_of(plan::describe(types, {}), 33, 142, 48);
      const DType compute = op::default_compute(gemm.accumulator, gemm.d.dtype);
      gemm.epilogue = op::parse_epilogue("D = reglu(acc)", compute).value_or_throw();
      halve_d(gemm, plan::kRow);
      GuardedProblem guarded(engine.device(), gemm, Placement{});
      const std::vector<registry::KernelPtr> kernels = best_of_each_family(engine, guarded.on_device());
      EXPECT_GE(kernels.size(), types.a == DType::s8 ? 2U : 1U);
      for (const registry::KernelPtr& kernel : kernels) expect_exact(engine, kernel, guarded);
    }
  }
}

/// Random graphs with leaves of all kinds.
class RandomGraphs {
 public:
  explicit RandomGraphs(std::uint64_t seed) : engine_(seed) {}

  op::Expression draw() {
    std::vector<op::Expression> values{op::acc(),
                                       op::c(),
                                       op::row("t2"),
                                       op::column("t3"),
                                       op::single("t4"),
                                       op::full("t5"),
                                       op::scalar("s", 0.5),
                                       op::Expression(-1.5),
                                       op::row_index() * 0.125,
                                       op::column_index() * 0.0625};
    for (int i = 0; i < kOperations; ++i) {
      const op::NamedFunction& function = op::functions()[below(op::functions().size())];
      if (is_gated(function)) continue;
      std::vector<op::Expression> inputs;
      for (int side = 0; side < function.arity; ++side)
        inputs.push_back(tamed(values[below(values.size())], function.name));
      const op::Expression made = function.apply(inputs);
      values.push_back(below(3) == 0 ? made - values[below(values.size())] : made);
    }
    return values.back();
  }

 private:
  static constexpr int kOperations = 6;

  static bool is_gated(const op::NamedFunction& function) {
    const std::vector<op::Expression> inputs(static_cast<std::size_t>(function.arity), op::acc());
    const op::Expression made = function.apply(inputs);
    return std::ranges::any_of(made.nodes(), [](const op::EpilogueNode& node) {
      return node.op == op::EpilogueOp::even || node.op == op::EpilogueOp::odd;
    });
  }

  std::size_t below(std::size_t count) { return engine_() % count; }

  /// Maps a value to a range in which all functions are small and which contains no poles.
  static op::Expression tamed(const op::Expression& x, std::string_view function) {
    const op::Expression bounded = op::call("clamp", {x, -4.0, 4.0});
    constexpr std::string_view kPositive[] = {"sqrt", "rsqrt", "log", "log1p", "reciprocal", "pow"};
    const bool needs_positive = std::ranges::find(kPositive, function) != std::end(kPositive);
    return needs_positive ? op::call("abs", {bounded}) + 0.5 : bounded;
  }

  std::mt19937_64 engine_;
};

/// Eight results at once: D, five auxiliary outputs, and two reductions.
op::Epilogue draw_epilogue(std::uint64_t seed) {
  RandomGraphs graphs(seed);
  for (;;) {
    std::vector<op::NamedOutput> outputs;
    for (int i = 0; i < 5; ++i) outputs.push_back({fmt::format("o{}", i), graphs.draw()});
    constexpr op::Reduction kReductions[] = {op::Reduction::sum, op::Reduction::maximum, op::Reduction::minimum};
    constexpr op::Broadcast kResults[] = {op::kRowVector, op::kColumnVector, op::kSingle};
    for (std::uint64_t i = 5; i < 7; ++i)
      outputs.push_back({fmt::format("o{}", i), graphs.draw(), kReductions[(seed + i) % 3], kResults[seed / 3 % 3]});
    const Result<op::Epilogue> epilogue = op::make_epilogue("random", DType::f32, graphs.draw(), outputs);
    if (epilogue) return *epilogue;  // the others had too many terms
  }
}

TEST(RandomEpilogues, AreWithinTheirBounds) {
  if (is_missing(devices().front())) GTEST_SKIP() << "no GPU";
  if (devices().front() == "emulator:sm_90a") GTEST_SKIP() << "emulator:sm_80 runs the same kernels";
  engine::Engine& engine = engine_of(devices().front());
  constexpr int kEpilogues = 63;
  for (int seed = 0; seed < kEpilogues; ++seed) {
    op::Gemm gemm = plan::problem_of(plan::describe({DType::f32, DType::f32, DType::f32, DType::f32}, {}), 19, 37, 8);
    gemm.epilogue = draw_epilogue(static_cast<std::uint64_t>(seed));
    for (const op::EpilogueTensor& wanted : op::epilogue_tensors(gemm.epilogue)) {
      gemm.tensors.push_back(
          {std::string(wanted.label), op::matrix(std::uint64_t{1} << 50, DType::f32, wanted.broadcast.along_m ? 19 : 1,
                                                 wanted.broadcast.along_n ? 37 : 1)});
    }
    GuardedProblem guarded(engine.device(), gemm, Placement{});
    const auto kernels = engine.find_kernels(
        guarded.on_device(), [](const registry::KernelMetadata& metadata) { return metadata.family == "simt_gemm"; });
    ASSERT_FALSE(kernels.empty());
    SCOPED_TRACE(op::signature(gemm.epilogue));
    expect_within_bound(engine, kernels.front().kernel, guarded);
  }
}

}  // namespace
}  // namespace tilewright::conformance
