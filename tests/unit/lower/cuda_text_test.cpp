// Parts of the emitted text: the epilogue graph, and the constants that restate the plan.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/plan/gemm_cases.hpp"
#include "tilewright/lower/cuda/epilogue.hpp"
#include "tilewright/lower/cuda/gemm.hpp"
#include "tilewright/lower/cuda/simt_gemm.hpp"
#include "tilewright/lower/cuda/sm80_gemm.hpp"
#include "tilewright/op/epilogue_text.hpp"

namespace tilewright::lower::cuda {
namespace {

using plan::kColumn;
using plan::kRow;

std::string text_of(const op::Epilogue& epilogue) {
  SourceWriter out;
  op::GemmSignature operands;
  operands.epilogue = epilogue;
  operands.tensors.resize(epilogue.tensors().size() + epilogue.outputs.size());
  write_epilogue(out, operands);
  return std::move(out).take();
}

// The compiler must not decide what is fused, because kernels with one epilogue have to compute the same bits.
TEST(EpilogueText, FusesAProductThatIsUsedOnceInASum) {
  const auto text = [](const char* epilogue, DType compute = DType::f32) {
    return text_of(op::parse_epilogue(epilogue, compute).value_or_throw());
  };
  using testing::HasSubstr;
  using testing::Not;
  EXPECT_THAT(text("D = acc * C + acc"), HasSubstr("numeric::fma(x0, x1, x0)"));
  EXPECT_THAT(text("D = acc - acc * C"), HasSubstr("numeric::fma(tilewright::numeric::neg(x0), x1, x0)"));
  EXPECT_THAT(text("D = acc * C - acc"), HasSubstr("numeric::fma(x0, x1, tilewright::numeric::neg(x0))"));
  const std::string twice = text("let t = acc * C; D = (t + acc) * t");
  EXPECT_THAT(twice, Not(HasSubstr("fma")));
  EXPECT_THAT(text("D = acc * acc + acc", DType::s32), Not(HasSubstr("fma")));
}

TEST(EpilogueText, HasOneStatementPerNodeThatIsNotFused) {
  EXPECT_EQ(text_of(op::linear_combination()),
            R"(// linear_combination f32 add(mul($alpha,acc),mul($beta,c))
struct Epilogue {
  using Compute = float;
  static constexpr int kColumnsPerElement = 1;
  struct Parameters {
    Compute alpha_;
    Compute beta_;
  };
  static constexpr bool kReadsSource = true;
  static constexpr bool kHasTensors = false;
  static __device__ __forceinline__ bool reads_source([[maybe_unused]] const Parameters& parameters) {
    return parameters.beta_ != Compute(0);
  }
  template <class Visitor>
  static __device__ __forceinline__ void for_each_vector([[maybe_unused]] const Parameters& parameters,
                                                         [[maybe_unused]] const Visitor& visitor) {
  }
  static constexpr int kRowVectors = 0, kColumnVectors = 0;
  template <class Visitor>
  static __device__ __forceinline__ void for_each_reduction([[maybe_unused]] const Parameters& parameters,
                                                            [[maybe_unused]] const Visitor& visitor) {
  }
  static constexpr int kReductions = 0, kColumnResults = 0, kRowResults = 0, kSingleResults = 0;
  template <int kCount, class Place>
  static __device__ __forceinline__ void apply(Compute (&values)[kCount],
                                               [[maybe_unused]] const Compute (&source)[kCount],
                                               [[maybe_unused]] const Parameters& parameters,
                                               [[maybe_unused]] const Place& place) {
    #pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const Compute x0 = parameters.alpha_;
      const Compute x1 = values[i];
      const Compute x3 = parameters.beta_;
      const Compute x4 = source[i];
      const Compute x5 = tilewright::numeric::mul(x3, x4);
      const Compute x6 = tilewright::numeric::fma(x0, x1, x5);
      values[i] = x6;
    }
  }
};
)");
}

TEST(EpilogueText, DoesNotReadAMissingSource) {
  const std::string text = text_of({"plain", DType::f64, {{op::EpilogueOp::accumulator, {-1, -1}, 0.0, {}}}});
  EXPECT_NE(text.find("using Compute = double;"), std::string::npos);
  EXPECT_NE(text.find("kReadsSource = false;"), std::string::npos);
  EXPECT_NE(text.find("return kReadsSource;"), std::string::npos);
  EXPECT_NE(text.find("struct Parameters {\n  };"), std::string::npos);
}

TEST(EpilogueText, SaysWhetherThereAreTensors) {
  for (const auto& [epilogue, has_tensors] : {std::pair{"D = relu(acc)", false},
                                              {"D = $alpha * acc + C", false},
                                              {"D = acc + row(bias)", true},
                                              {"D = acc; aux = acc", true},
                                              {"D = acc; column(sums) = sum(D)", true}}) {
    const std::string text = text_of(op::parse_epilogue(epilogue, DType::f32).value_or_throw());
    EXPECT_NE(text.find(fmt::format("kHasTensors = {};", has_tensors)), std::string::npos) << epilogue;
  }
}

TEST(EpilogueText, AnUngatedSourceIsAlwaysRead) {
  using enum op::EpilogueOp;
  const std::string text = text_of(
      {"sum", DType::f32, {{accumulator, {-1, -1}, 0.0, {}}, {source, {-1, -1}, 0.0, {}}, {add, {0, 1}, 0.0, {}}}});
  EXPECT_NE(text.find("kReadsSource = true;"), std::string::npos);
  EXPECT_NE(text.find("return kReadsSource;"), std::string::npos);
}

TEST(EpilogueText, ConstantsAreExact) {
  const auto literal = [](double value, DType compute) {
    const std::string text = text_of({"constant", compute, {{op::EpilogueOp::constant, {-1, -1}, value, {}}}});
    const std::size_t begin = text.find("x0 = ") + 5;
    return text.substr(begin, text.find(';', begin) - begin);
  };
  EXPECT_EQ(literal(0.5, DType::f32), "0x1p-1f");
  EXPECT_EQ(literal(-128.0, DType::f32), "-0x1p+7f");
  EXPECT_EQ(literal(0.1, DType::f64), "0x1.999999999999ap-4");
  EXPECT_EQ(literal(0.0, DType::f32), "0x0p+0f");
  EXPECT_EQ(literal(-7.0, DType::s32), "-7");
}

TEST(TileText, RestatesThePlan) {
  const op::GemmSignature description =
      plan::describe({DType::f16, DType::f16, DType::f32, DType::f32}, {kRow, kColumn, kRow, kColumn});
  plan::Sm80GemmDesign design = plan::sm80_design({16, 8, 16}, {{128, 64, 32}, 3, {4, 2}});
  design.raster.width = 4;
  const Result<plan::GemmTile> tile = plan::plan_gemm_tile(description, design);
  ASSERT_TRUE(tile);
  SourceWriter out;
  write_tile_constants(out, *tile);
  EXPECT_EQ(std::move(out).take(), R"(using ElementC = float;
using ElementD = float;
using LayoutC = tilewright::ColumnMajor;
using LayoutD = tilewright::RowMajor;
using MatrixC = tilewright::StridedMatrix;
using MatrixD = tilewright::StridedMatrix;
static constexpr int kAlignmentC = 4;
static constexpr int kAlignmentD = 4;
static constexpr bool kCIsPointerArray = false, kDIsPointerArray = false;
static constexpr int kTileM = 64, kTileN = 128, kTileK = 32;
static constexpr int kWarpsM = 2, kWarpsN = 4;
static constexpr int kStages = 3;
using Scheduler = tilewright::GridTiles<Plan>;
using Groups = tilewright::NoGroups;
using Raster = tilewright::Raster<4, true>;
static constexpr int kSplitK = 1, kReductionCounters = 32768;
static constexpr bool kSplitsInTurn = false;
)");
}

TEST(KernelText, HasOneEntryPointWithTheGivenName) {
  SourceWriter out;
  write_kernel(out,
               {.family = "SimtGemm",
                .symbol = "my_kernel",
                .parameters = "MyParameters",
                .attributes = "__launch_bounds__(256)"},
               {{{"a", 0}, {"epilogue.alpha_", 8}}, 16});
  EXPECT_EQ(std::move(out).take(), R"(using Parameters = MyParameters;
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, a) == 0);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, epilogue.alpha_) == 8);
static_assert(sizeof(Parameters) == 16);

extern "C" __global__ void __launch_bounds__(256)
my_kernel(const __grid_constant__ Parameters parameters) {
  tilewright::SimtGemm<Plan, Epilogue>(parameters).run();
}
)");
}

TEST(KernelText, NamesTheMathOfEachOperation) {
  using enum op::MathOperation;
  for (const auto& [math, device_type] :
       {std::pair{multiply_add_tf32, "using Math = tilewright::Tf32Math<"},
        {multiply_add_fast_f32, "using Math = tilewright::SplitTf32Math<"},
        {multiply_add_fast_f16, "using Math = tilewright::FastMath<tilewright::ptx::Mma<16, 8, 8, tilewright::half_t"},
        {multiply_add_fast_bf16,
         "using Math = tilewright::FastMath<tilewright::ptx::Mma<16, 8, 8, tilewright::bfloat16_t"}}) {
    const op::GemmSignature description = plan::describe({DType::f32, DType::f32, DType::f32, DType::f32, math});
    const plan::Tile tile{{64, 64, 16}, 3, {2, 2}};
    const auto plan = plan::plan_sm80_gemm(description, plan::sm80_design({16, 8, 8}, tile));
    ASSERT_TRUE(plan) << plan.reason();
    const std::string text = lower(*plan, "kernel");
    EXPECT_NE(text.find(device_type), std::string::npos) << text;
    const bool promotes = math == multiply_add_fast_f32;
    EXPECT_NE(text.find(fmt::format("kPromotesAccumulators = {};", promotes)), std::string::npos);
  }
}

TEST(KernelText, IsShortAndDependsOnlyOnThePlan) {
  const op::GemmSignature description = plan::describe_f16();
  const auto plan = plan::plan_sm80_gemm(description, plan::sm80_design({16, 8, 16}));
  ASSERT_TRUE(plan);
  const std::string text = lower(*plan, "kernel");
  EXPECT_LT(text.size(), 10240U);
  EXPECT_EQ(text, lower(*plan, "kernel"));
}

}  // namespace
}  // namespace tilewright::lower::cuda
