// The checks that registry::Kernel makes for every kernel, tested with a user-defined one.
#include "tilewright/registry/kernel.hpp"

#include <gtest/gtest.h>

#include "tests/unit/plan/gemm_cases.hpp"
#include "tilewright/registry/provider.hpp"

namespace tilewright::registry {
namespace {

using plan::kColumn;
using plan::kRow;

/// Supports only problems with an even m.
class EvenRows final : public Kernel {
 public:
  using Kernel::Kernel;

 protected:
  Support do_supports(const op::Problem& problem) const override {
    const auto& arguments = std::get<op::Gemm>(problem);
    if (arguments.m() % 2 != 0) return refuse("m must be even, got {}", arguments.m());
    return {};
  }
  compile::Source do_source() const override {
    compile::Source source;
    source.text = "extern \"C\" __global__ void " + name() + "() {}\n";
    return source;
  }
  plan::Launch do_launch(const op::Problem& problem) const override {
    const auto& arguments = std::get<op::Gemm>(problem);
    plan::Launch launch;
    launch.grid[0] = static_cast<std::uint32_t>(arguments.m() / 2);
    launch.append_workspace(static_cast<std::size_t>(4 * arguments.m()));
    return launch;
  }
  double do_estimate_us(const op::Problem&) const override { return 42.0; }
};

KernelMetadata metadata() {
  const op::GemmSignature description = plan::describe_f32({}, 8);
  return {"even_rows", description, plan::simt_design()};
}

op::Gemm problem() {
  op::Gemm gemm;
  gemm.a = op::matrix(std::uint64_t{0xa0000}, DType::f32, 10, 16, kRow);
  gemm.b = op::matrix(std::uint64_t{0xb0000}, DType::f32, 16, 12, kColumn);
  gemm.c = op::matrix(std::uint64_t{0xc0000}, DType::f32, 10, 12, kRow);
  gemm.d = op::matrix(std::uint64_t{0xd0000}, DType::f32, 10, 12, kRow);
  gemm.beta = 1.0;
  return gemm;
}

TEST(Kernel, AUserDefinedKernelHasTheSameInterface) {
  const KernelPtr kernel = std::make_shared<EvenRows>(metadata());
  EXPECT_EQ(kernel->metadata(), metadata());
  EXPECT_EQ(kernel->name(), kernel_name(metadata()));
  EXPECT_TRUE(kernel->supports(problem())) << kernel->supports(problem()).reason();
  EXPECT_EQ(kernel->workspace_bytes(problem()), 40U);
  EXPECT_EQ(kernel->launch(problem()).grid[0], 5U);
  EXPECT_EQ(kernel->estimate_us(problem()), 42.0);
}

TEST(Kernel, SourceIsReadyToCompile) {
  const EvenRows kernel(metadata());
  const compile::Source source = kernel.source();
  EXPECT_TRUE(compile::validate(source)) << compile::validate(source).reason();
  EXPECT_EQ(source.name, kernel.name());
  EXPECT_EQ(source.symbol, kernel.name());
  EXPECT_EQ(source.target, plan::kSm80);
  EXPECT_EQ(source.description, to_json(metadata()));
  EXPECT_NE(source.text.find("void " + kernel.name()), std::string::npos);
}

/// A kernel with a given source text.
class Worded final : public Kernel {
 public:
  Worded(KernelMetadata metadata, std::string text) : Kernel(std::move(metadata)), text_(std::move(text)) {}
  int times_written() const { return times_written_; }

 protected:
  compile::Source do_source() const override {
    ++times_written_;
    compile::Source source;
    source.text = text_;
    return source;
  }
  plan::Launch do_launch(const op::Problem&) const override { return {}; }
  double do_estimate_us(const op::Problem&) const override { return 1.0; }

 private:
  std::string text_;
  mutable int times_written_ = 0;
};

TEST(Kernel, SourceDigestDependsOnTextAndMetadata) {
  const Worded kernel(metadata(), "one");
  EXPECT_EQ(kernel.source_digest(), kernel.source_digest());
  EXPECT_EQ(kernel.times_written(), 1);
  EXPECT_EQ(kernel.source_digest(), Worded(metadata(), "one").source_digest());
  EXPECT_NE(kernel.source_digest(), Worded(metadata(), "two").source_digest());
  KernelMetadata other = metadata();
  other.family = "other_rows";
  EXPECT_NE(kernel.source_digest(), Worded(other, "one").source_digest());
}

struct Mismatch {
  std::string name;
  void (*spoil)(op::Gemm&);
  std::string reason;
};
std::ostream& operator<<(std::ostream& out, const Mismatch& mismatch) { return out << mismatch.name; }

class KernelSupports : public testing::TestWithParam<Mismatch> {};

TEST_P(KernelSupports, RefusesWithAReason) {
  op::Gemm gemm = problem();
  GetParam().spoil(gemm);
  const Support support = EvenRows(metadata()).supports(gemm);
  ASSERT_FALSE(support);
  EXPECT_EQ(support.reason(), GetParam().reason);
}

void use_halves(op::Gemm& gemm) { gemm.a.dtype = gemm.b.dtype = DType::f16; }

INSTANTIATE_TEST_SUITE_P(
    Arguments, KernelSupports,
    testing::Values(
        Mismatch{"InvalidProblem", [](op::Gemm& g) { g.a.address = 0; }, "A is a null pointer"},
        Mismatch{"Types", use_halves, "A is f16, but the kernel needs f32"},
        Mismatch{"OutputType", [](op::Gemm& g) { g.d.dtype = DType::f16; }, "D is f16, but the kernel needs f32"},
        Mismatch{"SourceType", [](op::Gemm& g) { g.c.dtype = DType::bf16; }, "C is bf16, but the kernel needs f32"},
        Mismatch{"LayoutOfA", [](op::Gemm& g) { g.a = op::matrix(g.a.address, DType::f32, 10, 16, kColumn); },
                 "A is column-major, but the kernel needs row-major"},
        Mismatch{"LayoutOfB", [](op::Gemm& g) { g.b = op::matrix(g.b.address, DType::f32, 16, 12, kRow); },
                 "B is row-major, but the kernel needs column-major"},
        Mismatch{"LayoutOfC", [](op::Gemm& g) { g.c = op::matrix(g.c.address, DType::f32, 10, 12, kColumn); },
                 "C is column-major, but the kernel needs row-major"},
        Mismatch{"LayoutOfD", [](op::Gemm& g) { g.d = op::matrix(g.d.address, DType::f32, 10, 12, kColumn); },
                 "D is column-major, but the kernel needs row-major"},
        Mismatch{"AlignmentOfAddress", [](op::Gemm& g) { g.a.address += 4; },
                 "A is aligned to 1 elements, but the kernel needs 2"},
        Mismatch{"AlignmentOfRows", [](op::Gemm& g) { g.d = op::matrix(g.d.address, DType::f32, 10, 12, kRow, 13); },
                 "D is aligned to 1 elements, but the kernel needs 2"},
        Mismatch{"Math", [](op::Gemm& g) { g.math = op::MathOperation::multiply_add_tf32; },
                 "the problem needs multiply_add_tf32, but the kernel does multiply_add"},
        Mismatch{"OwnCondition",
                 [](op::Gemm& g) {
                   g.a.shape[0] = 9;
                   g.c.shape[0] = g.d.shape[0] = 9;
                 },
                 "m must be even, got 9"}),
    [](const auto& tested) { return tested.param.name; });

TEST(Kernel, RefusesAnotherAccumulator) {
  op::GemmSignature description = plan::describe_f16({}, 2);
  description.accumulator = DType::f16;
  const EvenRows kernel({"even_rows", description, plan::simt_design()});
  op::Gemm gemm = problem();
  gemm.a.dtype = gemm.b.dtype = gemm.c.dtype = gemm.d.dtype = DType::f16;
  EXPECT_EQ(kernel.supports(gemm).reason(), "the problem accumulates in f32, but the kernel in f16");
  gemm.accumulator = DType::f16;
  EXPECT_TRUE(kernel.supports(gemm)) << kernel.supports(gemm).reason();
}

TEST(Kernel, RefusesAnotherEpilogueButNotOtherScalars) {
  KernelMetadata leaky = metadata();
  leaky.operands().epilogue = op::linear_combination_generic(op::Activation::leaky_relu, DType::f32, 0.1);
  const EvenRows kernel(leaky);
  op::Gemm gemm = problem();
  EXPECT_EQ(kernel.supports(gemm).reason(), "the problem's epilogue is " + op::signature(gemm.epilogue) +
                                                ", but the kernel's is " + op::signature(leaky.operands().epilogue));
  gemm.epilogue = op::linear_combination_generic(op::Activation::leaky_relu, DType::f32, 0.3);
  EXPECT_TRUE(kernel.supports(gemm)) << kernel.supports(gemm).reason();
}

// User-defined metadata may omit them.
TEST(Kernel, RefusesTensorsThatAreNotInItsMetadata) {
  op::Gemm gemm = problem();
  gemm.epilogue.nodes.push_back({.op = op::EpilogueOp::tensor, .label = "bias", .broadcast = op::kRowVector});
  gemm.epilogue.d = static_cast<int>(gemm.epilogue.nodes.size()) - 2;
  gemm.tensors = {{"bias", op::matrix(std::uint64_t{1} << 40, DType::f32, 1, gemm.n())}};
  KernelMetadata careless = metadata();
  careless.operands().epilogue = gemm.epilogue;
  EXPECT_EQ(EvenRows(careless).supports(gemm).reason(), "the epilogue has 1 tensors, but the kernel needs 0");
  careless.operands().tensors = {{DType::f16, op::ContiguousMode::columns, 4}};
  EXPECT_EQ(EvenRows(careless).supports(gemm).reason(),
            "tensor 0 of the epilogue is f32:columns:4, but the kernel needs f16:columns:4");
  careless.operands().tensors = {{DType::f32, op::ContiguousMode::columns, 2}};
  EXPECT_TRUE(EvenRows(careless).supports(gemm)) << EvenRows(careless).supports(gemm).reason();
}

TEST(Kernel, AKernelWithoutCSupportsProblemsThatDoNotReadC) {
  op::Gemm none = problem();
  none.beta = 0.0;
  none.c = {};
  const EvenRows general(metadata());
  EXPECT_TRUE(general.supports(none)) << general.supports(none).reason();
  KernelMetadata without = metadata();
  without.operands().has_c = false;
  const EvenRows special(without);
  EXPECT_TRUE(special.supports(none)) << special.supports(none).reason();
  EXPECT_EQ(special.supports(problem()).reason(), "the problem reads C, but the kernel does not");
  op::Gemm unread = problem();
  unread.beta = 0.0;
  EXPECT_TRUE(special.supports(unread)) << special.supports(unread).reason();
}

TEST(Kernel, RefusesBatchesByDefault) {
  op::Gemm gemm = problem();
  for (op::Tensor* tensor : {&gemm.a, &gemm.b, &gemm.c, &gemm.d}) *tensor = op::batched(*tensor, 3);
  EXPECT_EQ(Worded(metadata(), "one").supports(gemm).reason(), "the kernel needs single matrices, got a batch of 3");
  EXPECT_TRUE(EvenRows(metadata()).supports(gemm)) << EvenRows(metadata()).supports(gemm).reason();
}

TEST(Kernel, ACThatIsNotReadMayHaveAnyType) {
  op::Gemm gemm = problem();
  gemm.beta = 0.0;
  gemm.c = {};
  EXPECT_TRUE(EvenRows(metadata()).supports(gemm));
  gemm.c = op::matrix(std::uint64_t{0xc0004}, DType::f16, 10, 12, kColumn);
  EXPECT_TRUE(EvenRows(metadata()).supports(gemm));
}

TEST(Kernel, AcceptsLargerAlignment) {
  op::Gemm gemm = problem();
  for (op::Tensor* tensor : {&gemm.a, &gemm.b, &gemm.c, &gemm.d}) tensor->address &= ~std::uint64_t{0xff};
  EXPECT_TRUE(EvenRows(metadata()).supports(gemm));
}

TEST(RefusedKernels, AreComparable) {
  EXPECT_EQ((RefusedKernel{"a", refuse("b {}", 1)}), (RefusedKernel{"a", refuse("b {}", 1)}));
  EXPECT_NE((RefusedKernel{"a", refuse("b {}", 1)}), (RefusedKernel{"a", refuse("b {}", 2)}));
  EXPECT_NE((RefusedKernel{"a", refuse("b")}), (RefusedKernel{"a", refuse("b").as(RefusalCode::shape)}));
}

TEST(Kernel, PointerArraysNeedKernelsThatAreMadeForThem) {
  op::Gemm gemm = problem();
  for (op::Tensor* tensor : {&gemm.a, &gemm.b, &gemm.c, &gemm.d})
    *tensor = op::pointer_array(*tensor, tensor->address, 1);
  EXPECT_EQ(EvenRows(metadata()).supports(gemm).reason(),
            "A is an array of pointers, but the kernel needs a matrix or a strided batch");
  KernelMetadata made_for = metadata();
  made_for.operands() = op::describe(gemm);
  EXPECT_TRUE(EvenRows(made_for).supports(gemm)) << EvenRows(made_for).supports(gemm).reason();
  EXPECT_NE(kernel_name(made_for).find("p_"), std::string::npos) << kernel_name(made_for);
  EXPECT_EQ(Worded(made_for, "one").supports(gemm).reason(),
            made_for.family + " needs operands with a single stride per mode, but A is an array of pointers")
      << "a kernel with the default do_supports()";
  EXPECT_NE(EvenRows(made_for).supports(problem()).reason().find("A is a matrix or a strided batch"),
            std::string::npos);
}

}  // namespace
}  // namespace tilewright::registry
