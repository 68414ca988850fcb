// op::Problem for every kind of operation, and user-defined operations.
#include "tilewright/op/problem.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "tilewright/op/fill.hpp"
#include "tilewright/op/product_operation.hpp"

namespace tilewright::op {
namespace {

using testing::HasSubstr;

Tensor tensor(std::uint64_t address, DType type, Dims shape) {
  Tensor packed{address, type, shape, shape, {}};
  std::int64_t stride = 1;
  for (int mode = shape.rank() - 1; mode >= 0; --mode) {
    packed.stride[mode] = stride;
    stride *= shape[mode];
  }
  return packed;
}

Gemm f16_gemm() {
  Gemm gemm;
  gemm.a = matrix(std::uint64_t{0x10000}, DType::f16, 64, 32);
  gemm.b = matrix(std::uint64_t{0x20000}, DType::f16, 32, 48);
  gemm.d = matrix(std::uint64_t{0x30000}, DType::f32, 64, 48);
  return gemm;
}

OperationPtr stencil() {
  return std::make_shared<Operation>("stencil",
                                     std::vector<OperandDeclaration>{{"x", {"h", "w"}, Access::read, {DType::f32}},
                                                                     {"out", {"h", "w"}, Access::write, {DType::f32}}},
                                     std::vector<NamedScalar>{{"weight", 0.25}});
}

Custom stencil_problem(const Tensor& x, const Tensor& out) { return Custom::make(stencil(), {{"x", x}, {"out", out}}); }

TEST(Problem, ListsTheOperandsOfAGemm) {
  Gemm gemm = f16_gemm();
  gemm.c = gemm.d;
  gemm.tensors = {{"bias", matrix(std::uint64_t{0x40000}, DType::f32, 1, 48)}};
  Problem problem = gemm;
  std::vector<std::string> names;
  for (const Operand& operand : operands(problem)) {
    names.push_back(std::string(operand.name) + ':' + std::string(name(operand.access)) +
                    (operand.is_used ? "" : ":unused"));
  }
  EXPECT_THAT(names, testing::ElementsAre("A:read", "B:read", "C:read:unused", "D:write", "bias:read"));
}

TEST(Problem, IsMeasuredUnlessNothingIsComputed) {
  const auto reason = [](const auto& change) {
    Gemm gemm = f16_gemm();
    change(gemm);
    const Result<Problem> measured = measurable(gemm);
    return measured ? std::string() : measured.reason();
  };
  EXPECT_EQ(reason([](Gemm&) {}), "");
  EXPECT_EQ(reason([](Gemm& gemm) { gemm.alpha = 0.0; }), "") << "it is measured with another alpha";
  const auto set_rows = [](Gemm& gemm) { gemm.a.shape[0] = gemm.d.shape[0] = 0; };
  EXPECT_EQ(reason(set_rows), "there is nothing to measure in a GEMM of 0x48x32, batch 1: all outputs are empty");
  EXPECT_EQ(reason([](Gemm& gemm) { gemm.a.shape[1] = gemm.b.shape[0] = 0; }),
            "there is nothing to measure in a GEMM of 64x48x0, batch 1: K is 0");
  const auto batch_of_none = [](Gemm& gemm) {
    for (Tensor* const each : {&gemm.a, &gemm.b, &gemm.d}) *each = batched(*each, 0);
  };
  EXPECT_EQ(reason(batch_of_none), "there is nothing to measure in a GEMM of 64x48x32, batch 0: all outputs are empty");
}

TEST(Problem, KeysDependOnCodeExtentsAndStrides) {
  const Problem one = f16_gemm();
  Gemm scaled = f16_gemm();
  scaled.alpha = 2.0;
  EXPECT_EQ(key(one).signature, key(scaled).signature) << "alpha is a launch argument";
  EXPECT_FALSE(key(one) == key(scaled)) << "D is no longer the accumulator";
  Gemm moved = f16_gemm();
  moved.a.address += 4096;
  EXPECT_EQ(key(one), key(moved));
  EXPECT_EQ(ProblemKeyHash()(key(one)), ProblemKeyHash()(key(moved)));
  moved.a.device = moved.b.device = moved.c.device = moved.d.device = {MemoryDevice::Kind::cuda, 0};
  const ProblemKey whole_sectors = key(moved);
  moved.a.address += 16;
  EXPECT_FALSE(key(moved) == whole_sectors) << "kernels may be ranked in another order";
  EXPECT_TRUE(check_same_extents(whole_sectors, key(moved))) << "but a prepared kernel computes both";
  Gemm longer = f16_gemm();
  longer.a = matrix(std::uint64_t{0x10000}, DType::f16, 65, 32);
  longer.d = matrix(std::uint64_t{0x30000}, DType::f32, 65, 48);
  EXPECT_EQ(check_same_extents(key(one), key(longer)).reason(), "prepared for m = 64, got 65");
}

TEST(Problem, KeysDependOnTheAlignmentOfASingleLine) {
  Gemm gemm = f16_gemm();
  gemm.a = matrix(std::uint64_t{0x10000}, DType::f16, 64, 17);
  gemm.b = matrix(std::uint64_t{0x20000}, DType::f16, 17, 1);
  gemm.d = matrix(std::uint64_t{0x30000}, DType::f32, 64, 1);
  gemm.b.stride = gemm.d.stride = {1, 1};  // row-major: lines of one element
  Gemm other = gemm;
  other.b.address += 16;
  EXPECT_EQ(key(Problem(gemm)), key(Problem(other)));
  other.b.address += 2;
  EXPECT_FALSE(key(Problem(gemm)) == key(Problem(other))) << "kernels may load vectors along the column";
  EXPECT_TRUE(check_same_extents(key(Problem(gemm)), key(Problem(other)))) << "a prepared kernel may compute both";
  other = gemm;
  other.d.address += 4;
  EXPECT_FALSE(key(Problem(gemm)) == key(Problem(other)));
}

TEST(Signature, DependsOnEveryField) {
  const GemmSignature base = describe(f16_gemm());
  std::vector<std::string> texts{to_string(Signature(base))};
  const auto expect_other = [&](auto change) {
    GemmSignature changed = base;
    change(changed);
    EXPECT_FALSE(Signature(base) == Signature(changed));
    const std::string text = to_string(Signature(changed));
    EXPECT_THAT(texts, testing::Not(testing::Contains(text)));
    texts.push_back(text);
  };
  expect_other([](GemmSignature& d) { d.a.alignment = 1; });
  expect_other([](GemmSignature& d) { d.b.layout = MatrixLayout::column_major; });
  expect_other([](GemmSignature& d) { d.c.element = DType::bf16; });
  expect_other([](GemmSignature& d) { d.d.element = DType::bf16; });
  expect_other([](GemmSignature& d) { d.has_c = !d.has_c; });
  expect_other([](GemmSignature& d) { d.accumulator = DType::f16; });
  expect_other([](GemmSignature& d) { d.math = MathOperation::multiply_add_fast_accumulate; });
  expect_other([](GemmSignature& d) { d.epilogue = linear_combination_generic(Activation::relu); });
  expect_other([](GemmSignature& d) { d.groups = GroupedMode::ragged_m; });
  expect_other([](GemmSignature& d) { d.groups = GroupedMode::masked_m; });
  expect_other([](GemmSignature& d) { d.tensors = {{DType::f16, ContiguousMode::columns, 8}}; });
}

TEST(Custom, BindsExtentsByTheirNames) {
  const Tensor x = tensor(0x10000, DType::f32, {5, 7}), out = tensor(0x20000, DType::f32, {5, 7});
  const Custom problem = stencil_problem(x, out);
  EXPECT_TRUE(validate(problem)) << validate(problem).reason();
  EXPECT_EQ(problem.extent("w"), 7);
  EXPECT_EQ(problem.scalar("weight"), 0.25);
  EXPECT_EQ(operation_name(Problem(problem)), "stencil");
  const Custom wide = stencil_problem(x, tensor(0x20000, DType::f32, {5, 8}));
  EXPECT_EQ(validate(wide).reason(), "mode 1 of 'out' must be w = 7, got 8");
}

TEST(Custom, RefusesUndeclaredOperands) {
  const Tensor x = tensor(0x10000, DType::f32, {5, 7}), out = tensor(0x20000, DType::f32, {5, 7});
  EXPECT_THAT(
      [&] {
        Custom::make(stencil(), {{"x", x}});
      },
      testing::ThrowsMessage<InvalidArgument>("stencil needs the operand 'out'"));
  EXPECT_THAT(
      [&] {
        Custom::make(stencil(), {{"x", x}, {"out", out}, {"y", out}});
      },
      testing::ThrowsMessage<InvalidArgument>("stencil has no operand 'y'"));
  EXPECT_THAT(
      [&] {
        Custom::make(stencil(), {{"x", x}, {"out", out}}, {{"height", 1.0}});
      },
      testing::ThrowsMessage<InvalidArgument>("stencil has no scalar 'height'"));
  EXPECT_EQ(validate(stencil_problem(tensor(0x10000, DType::f16, {5, 7}), out)).reason(), "'x' must be f32, got f16");
  EXPECT_THAT(validate(stencil_problem(tensor(0x10000, DType::f32, {5, 7, 1}), out)).reason(),
              HasSubstr("'x' must have 2 modes (h, w)"));
  EXPECT_THAT(validate(stencil_problem(x, x)).reason(), HasSubstr("overlaps"));
  EXPECT_EQ(validate(stencil_problem(x, tensor(0, DType::f32, {5, 7}))).reason(), "'out' is a null pointer");
}

TEST(Custom, RefusesAnOutputWhoseElementsOverlap) {
  Tensor out = tensor(0x20000, DType::f32, {5, 7});
  out.stride = {3, 1};
  EXPECT_THAT(validate(stencil_problem(tensor(0x10000, DType::f32, {5, 7}), out)).reason(),
              HasSubstr("elements of 'out' overlap"));
}

TEST(Operation, RefusesInvalidDeclarations) {
  const auto declare = [](std::vector<OperandDeclaration> operands) { Operation("mine", std::move(operands)); };
  EXPECT_THAT(
      [&] {
        declare({{"x", {"n"}}});
      },
      testing::ThrowsMessage<InvalidArgument>("mine does not write any operand"));
  EXPECT_THAT(
      [&] {
        declare({{"x", {"n"}}, {"x", {"n"}, Access::write}});
      },
      testing::ThrowsMessage<InvalidArgument>("two operands or scalars have the name 'x'"));
  EXPECT_THAT(
      [] {
        Operation("gemm", {{"x", {"n"}, Access::write}});
      },
      testing::ThrowsMessage<InvalidArgument>("'gemm' is a built-in operation"));
  EXPECT_THAT(
      [&] {
        declare({{"x", {"n m"}, Access::write}});
      },
      testing::ThrowsMessage<InvalidArgument>(HasSubstr("'n m'")));
}

OperationPtr transposed_gemm() {
  return std::make_shared<ProductOperation>(
      "transposed_gemm",
      std::vector<OperandDeclaration>{{"a", {"m", "k"}}, {"b", {"k", "n"}}, {"out", {"n", "m"}, Access::write}},
      std::array<std::string, 3>{"a", "b", "out"}, std::vector<NamedScalar>{{"alpha", 1.0}});
}

TEST(ProductOperation, HasAGemmView) {
  const Problem problem = Custom::make(transposed_gemm(), {{"a", tensor(0x10000, DType::f16, {64, 32})},
                                                           {"b", tensor(0x20000, DType::f16, {32, 48})},
                                                           {"out", tensor(0x30000, DType::f32, {48, 64})}});
  ASSERT_TRUE(validate(problem)) << validate(problem).reason();
  const GemmView gemm = view(problem).value_or_throw();
  EXPECT_EQ(gemm.m(), 64);
  EXPECT_EQ(gemm.n(), 48);
  EXPECT_EQ(gemm.k(), 32);
  EXPECT_EQ(gemm.d.tensor.row_stride(), 1);
  EXPECT_EQ(gemm.d.tensor.column_stride(), 64);
  EXPECT_EQ(describe(problem).operation, "gemm") << "GEMM kernels compute it";
}

// m = (i, j) is folded from two modes that do not coalesce to one stride.
TEST(ProductOperation, FoldsModesAndMatchesItsDefinition) {
  const auto operation = std::make_shared<ProductOperation>(
      "folded",
      std::vector<OperandDeclaration>{
          {"a", {"i", "k", "j"}}, {"b", {"k", "n"}}, {"out", {"i", "n", "j"}, Access::write}},
      std::array<std::string, 3>{"a", "b", "out"});
  constexpr int kI = 3, kJ = 4, kK = 5, kN = 6;
  std::vector<float> a(kI * kK * kJ), b(kK * kN), out(kI * kN * kJ, -1.0F);
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i % 7) - 3.0F;
  for (std::size_t i = 0; i < b.size(); ++i) b[i] = static_cast<float>(i % 5) - 2.0F;
  const auto address = [](std::vector<float>& values) { return reinterpret_cast<std::uint64_t>(values.data()); };
  const Problem problem = Custom::make(operation, {{"a", tensor(address(a), DType::f32, {kI, kK, kJ})},
                                                   {"b", tensor(address(b), DType::f32, {kK, kN})},
                                                   {"out", tensor(address(out), DType::f32, {kI, kN, kJ})}});
  ASSERT_TRUE(validate(problem)) << validate(problem).reason();
  const GemmView gemm = view(problem).value_or_throw();
  EXPECT_EQ(gemm.a.access, OperandAccess::folded);
  EXPECT_THAT(gemm.check_strided("a family").reason(), HasSubstr("A is folded"));
  reference(problem);
  for (int i = 0; i < kI; ++i) {
    for (int n = 0; n < kN; ++n) {
      for (int j = 0; j < kJ; ++j) {
        float sum = 0.0F;
        for (int k = 0; k < kK; ++k)
          sum += a[static_cast<std::size_t>((i * kK + k) * kJ + j)] * b[static_cast<std::size_t>(k * kN + n)];
        EXPECT_EQ(out[static_cast<std::size_t>((i * kN + n) * kJ + j)], sum) << i << ',' << n << ',' << j;
      }
    }
  }
  EXPECT_TRUE(compare(problem).is_exact());
}

TEST(ProductOperation, RefusesInvalidExtents) {
  const auto declare = [](std::vector<std::string> a, std::vector<std::string> b, std::vector<std::string> out) {
    ProductOperation("bad", {{"a", std::move(a)}, {"b", std::move(b)}, {"out", std::move(out), Access::write}},
                     {"a", "b", "out"});
  };
  EXPECT_THAT(
      [&] {
        declare({"m", "k"}, {"k", "n"}, {"m", "n", "p"});
      },
      testing::ThrowsMessage<InvalidArgument>("the output has the extent 'p', which no input has"));
  EXPECT_THAT(
      [&] {
        declare({"m", "k", "q"}, {"k", "n"}, {"m", "n"});
      },
      testing::ThrowsMessage<InvalidArgument>("only one operand has the extent 'q'"));
}

}  // namespace
}  // namespace tilewright::op
