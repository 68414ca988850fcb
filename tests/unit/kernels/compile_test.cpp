// The emitted code compiles for every design, layout, alignment and epilogue.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "tests/unit/plan/gemm_cases.hpp"
#include "tilewright/base/error.hpp"
#include "tilewright/compile/compiler.hpp"
#include "tilewright/kernels/list.hpp"
#include "tilewright/op/epilogue_tensors.hpp"
#include "tilewright/op/expression.hpp"
#include "tilewright/plan/search.hpp"

namespace tilewright::kernels {
namespace {

using plan::Layouts;
using plan::TypeCase;

// Limit of the spill stores and loads of one thread in bytes. Designs do not spill in the mainloop; prologue and
// epilogue spill less than this.
constexpr int kMaxSpillBytes = 128;

class Compiling : public testing::Test {
 protected:
  void SetUp() override {
    try {
      compiler_ = compile::make_compiler({});
    } catch (const ToolchainNotFound& error) {
      GTEST_SKIP() << error.what();
    }
  }

  /// The kernel of a design, if there is one.
  void add(const registry::Provider& provider, const op::GemmSignature& description, const plan::Design& design) {
    const Result<registry::KernelPtr> kernel = provider.make(description, design);
    if (kernel) sources_.push_back((*kernel)->source());
  }

  void add_all_designs(const op::GemmSignature& description, const Target& target) {
    for (const plan::Sm80GemmDesign& design : plan::sm80_gemm_designs(description, target))
      add(*sm80_, description, design);
    for (const plan::SimtGemmDesign& design : plan::simt_gemm_designs(description, target))
      add(*simt_, description, design);
  }

  /// The smallest design of each family, which is the last in its table.
  void add_small_designs(const op::GemmSignature& description, const Target& target) {
    const std::vector<plan::Sm80GemmDesign> tensor = plan::sm80_gemm_designs(description, target);
    if (!tensor.empty()) add(*sm80_, description, tensor.back());
    add(*simt_, description, plan::simt_gemm_designs(description, target).back());
  }

  void expect_that_all_compile(int max_spill_bytes = kMaxSpillBytes) const {
    ASSERT_FALSE(sources_.empty());
    std::vector<compile::Artifact> artifacts;
    ASSERT_NO_THROW(artifacts = compile::compile_all(*compiler_, sources_, 2));
    for (const compile::Artifact& artifact : artifacts) {
      EXPECT_FALSE(artifact.cubin.empty()) << artifact.name;
      EXPECT_NE(artifact.ptx.find(".entry " + artifact.symbol + "("), std::string::npos) << artifact.name;
      ASSERT_TRUE(artifact.spill_bytes.has_value()) << artifact.name;
      EXPECT_LE(*artifact.spill_bytes, max_spill_bytes) << artifact.name << " on " << artifact.target.name();
      EXPECT_EQ(artifact.static_smem_bytes, 0) << artifact.name;
    }
  }

  std::unique_ptr<registry::Provider> sm80_ = make_sm80_gemm_provider();
  std::unique_ptr<registry::Provider> simt_ = make_simt_gemm_provider();
  std::unique_ptr<compile::Compiler> compiler_;
  std::vector<compile::Source> sources_;
};

/// One case for each operand type and math operation. Other output types differ only in the epilogue's last conversion,
/// and u8 differs from s8 only in the name of the instruction.
std::vector<TypeCase> different_mainloops() {
  std::vector<TypeCase> cases;
  std::set<std::string> seen;
  for (const TypeCase& types : plan::type_cases()) {
    if (types.a == DType::u8 || types.b == DType::u8) continue;
    const std::string mainloop =
        fmt::format("{} {} {} {}", name(types.a), name(types.b), name(types.accumulator), op::name(types.math));
    if (seen.insert(mainloop).second) cases.push_back(types);
  }
  return cases;
}

class CompilingType : public Compiling, public testing::WithParamInterface<TypeCase> {};

TEST_P(CompilingType, EveryDesignOnHopper) {
  add_all_designs(plan::describe(GetParam()), plan::kSm90);
  expect_that_all_compile();
}

TEST_P(CompilingType, EveryLayoutOnAmpere) {
  for (const Layouts& layouts : plan::all_layouts()) {
    if (layouts.c == layouts.d) add_small_designs(plan::describe(GetParam(), layouts), plan::kSm80);
  }
  expect_that_all_compile();
}

INSTANTIATE_TEST_SUITE_P(Types, CompilingType, testing::ValuesIn(different_mainloops()), [](const auto& tested) {
  const TypeCase& types = tested.param;
  return fmt::format("{}_{}_{}_{}", name(types.a), name(types.b), name(types.accumulator), op::name(types.math));
});

TEST_F(Compiling, EveryOutputTypeFromAColumnMajorSource) {
  for (const TypeCase& types : plan::type_cases()) {
    if (types.math != op::MathOperation::multiply_add) continue;
    add_small_designs(plan::describe(types, {plan::kRow, plan::kColumn, plan::kColumn, plan::kRow}), plan::kSm80);
  }
  expect_that_all_compile();
}

TEST_F(Compiling, EveryAlignment) {
  for (const int alignment_bytes : {1, 2, 4, 8}) {
    for (const TypeCase& types : {TypeCase{DType::f16, DType::f16, DType::f16, DType::f32},
                                  TypeCase{DType::s8, DType::s8, DType::s8, DType::s32},
                                  TypeCase{DType::f32, DType::f32, DType::f32, DType::f32}}) {
      add_small_designs(plan::describe(types, {}, alignment_bytes), plan::kSm80);
    }
  }
  expect_that_all_compile();
}

// The lines of a narrow tile that covers the matrix stay in L1; a tile that may be one of many bypasses it.
TEST_F(Compiling, OnlyCopiesOfNarrowTilesAlongMUseL1) {
  constexpr TypeCase kF16{DType::f16, DType::f16, DType::f16, DType::f32};
  const auto ptx_of = [&](const op::GemmSignature& description, const plan::TileShape& tile) {
    sources_.clear();
    for (const plan::Sm80GemmDesign& design : plan::sm80_gemm_designs(description, plan::kSm80)) {
      if (design.tile == tile && sources_.empty()) add(*sm80_, description, design);
    }
    return compile::compile_all(*compiler_, sources_, 1).at(0).ptx;
  };
  const op::GemmSignature along_m = plan::describe(kF16, {plan::kColumn, plan::kColumn, plan::kRow, plan::kRow});
  const op::GemmSignature along_k = plan::describe(kF16, {plan::kRow, plan::kColumn, plan::kRow, plan::kRow});
  using testing::HasSubstr;
  EXPECT_THAT(ptx_of(along_m, {32, 32, 32}), HasSubstr("cp.async.ca"));
  EXPECT_THAT(ptx_of(along_m, {64, 64, 32}), Not(HasSubstr("cp.async.ca")));
  EXPECT_THAT(ptx_of(along_k, {32, 32, 32}), Not(HasSubstr("cp.async.ca")));
}

TEST_F(Compiling, EveryEpilogue) {
  for (const char* epilogue : {"linear_combination", "clamp", "identity", "relu", "leaky_relu", "tanh", "sigmoid",
                               "silu", "hardswish", "gelu"}) {
    for (const TypeCase& types : {TypeCase{DType::f64, DType::f64, DType::f64, DType::f64},
                                  TypeCase{DType::f16, DType::f16, DType::f16, DType::f16},
                                  TypeCase{DType::s8, DType::s8, DType::s8, DType::s32},
                                  TypeCase{DType::s8, DType::s8, DType::s32, DType::s32}}) {
      op::GemmSignature description = plan::describe(types);
      const Result<op::Epilogue> graph = op::named_epilogue(epilogue, types.d, description.epilogue.compute);
      if (!graph) continue;  // an epilogue in s32 has no transcendental functions
      description.epilogue = *graph;
      const plan::Sm80GemmDesign smallest = plan::sm80_gemm_designs(description, plan::kSm80).back();
      add(*sm80_, description, smallest);
    }
  }
  EXPECT_GT(sources_.size(), 30U);
  expect_that_all_compile();
}

// Promotion needs a second set of accumulator registers; no planned design may spill them, for any type of D.
TEST_F(Compiling, PromotedSumsOfEightBitFloatsStayInRegisters) {
  const auto sm90 = make_sm90_gemm_provider();
  for (const DType d : {DType::bf16, DType::e4m3}) {
    const op::GemmSignature description = plan::describe({DType::e4m3, DType::e4m3, d, DType::f32});
    const op::Gemm gemm = plan::problem_of(description, 4096, 4096, 4096);
    for (const plan::Sm90GemmDesign& design : plan::sm90_gemm_designs(op::view(gemm), description, plan::kSm90)) {
      add(*sm90, description, design);
    }
  }
  expect_that_all_compile(0);
}

// A graph with every function, a scalar, a tensor of every broadcast and an output. Functions that pair columns need a
// graph of their own, since D must be even() or odd() of the rest.
TEST_F(Compiling, AUserDefinedEpilogue) {
  const std::array<op::Expression, 3> inputs{op::acc(), op::full("residual"), op::single("shift")};
  op::Expression sum = op::scalar("temperature", 2.5) * op::row("bias") + op::column("scale");
  for (const op::NamedFunction& function : op::functions())
    sum = sum + function.apply(std::span(inputs).first(static_cast<std::size_t>(function.arity)));
  op::GemmSignature description = plan::describe_f32();
  description.epilogue = op::make_epilogue("everything", DType::f32, op::convert(DType::f16, op::call("even", {sum})),
                                           {{"aux", op::row_index() - op::column_index()}})
                             .value_or_throw();
  for (const op::EpilogueTensor& tensor : op::epilogue_tensors(description.epilogue)) {
    description.tensors.push_back({DType::f32, op::ContiguousMode::none, 1});
    if (tensor.is_written) description.tensors.back() = {DType::bf16, op::ContiguousMode::columns, 4};
  }
  ASSERT_TRUE(op::validate(description)) << op::validate(description).reason();
  add_small_designs(description, plan::kSm80);
  expect_that_all_compile();
}

}  // namespace
}  // namespace tilewright::kernels
