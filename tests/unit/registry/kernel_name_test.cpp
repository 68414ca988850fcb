// Kernel names, which must be unique and valid symbols, and the JSON of metadata.
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/unit/plan/gemm_cases.hpp"
#include "tilewright/base/text.hpp"
#include "tilewright/plan/search.hpp"
#include "tilewright/registry/metadata.hpp"

namespace tilewright::registry {
namespace {

using plan::describe_f16;
using plan::kColumn;
using plan::kRow;

KernelMetadata metadata_of(const op::GemmSignature& description) {
  return {"sm80_gemm", description, plan::sm80_design({16, 8, 16})};
}

TEST(KernelName, HasTheMainProperties) {
  const std::string name = kernel_name(metadata_of(describe_f16()));
  EXPECT_EQ(name.substr(0, name.size() - 8), "sm80_gemm_f16r8_f16c8_f16r8_f32_128x128x32_s4_w2x2_");
  EXPECT_EQ(name.find_last_not_of("0123456789abcdef"), name.size() - 9) << name;
}

TEST(KernelName, IsUniqueOverTypesLayoutsAlignmentsTargetsAndDesigns) {
  std::map<std::string, KernelMetadata> names;
  const auto add = [&](const std::string& family, const op::GemmSignature& description, const plan::Design& design) {
    const KernelMetadata metadata{family, description, design};
    const std::string name = kernel_name(metadata);
    ASSERT_TRUE(is_identifier(name)) << name;
    const auto [place, is_new] = names.emplace(name, metadata);
    ASSERT_TRUE(is_new || place->second == metadata) << name;
  };
  std::size_t count = 0;
  for (const plan::TypeCase& types : plan::type_cases()) {
    for (const plan::Layouts& layouts : plan::all_layouts()) {
      for (const int alignment_bytes : {8, 16}) {
        for (const Target& target : {plan::kSm80, Target{86}, plan::kSm90}) {
          const op::GemmSignature description = plan::describe(types, layouts, alignment_bytes);
          const auto tensor = plan::sm80_gemm_designs(description, target);
          const auto simt = plan::simt_gemm_designs(description, target);
          for (const plan::Sm80GemmDesign& design : tensor) add("sm80_gemm", description, design);
          for (const plan::SimtGemmDesign& design : simt) add("simt_gemm", description, design);
          count += tensor.size() + simt.size();
        }
      }
    }
  }
  EXPECT_GT(count, 10000U);
  EXPECT_EQ(names.size(), count);
}

TEST(KernelName, DependsOnEverythingThatSelectsCode) {
  std::set<std::string> names{kernel_name(metadata_of(describe_f16()))};
  const auto expect_new = [&](auto change) {
    KernelMetadata metadata = metadata_of(describe_f16());
    change(metadata);
    EXPECT_TRUE(names.insert(kernel_name(metadata)).second) << kernel_name(metadata);
  };
  expect_new([](KernelMetadata& m) { m.family = "sm90_gemm"; });
  expect_new([](KernelMetadata& m) { m.operands().c.element = DType::f32; });
  expect_new([](KernelMetadata& m) { m.operands().c.layout = kColumn; });
  expect_new([](KernelMetadata& m) { m.operands().c.layout = plan::kColumnInterleaved; });
  expect_new([](KernelMetadata& m) { m.operands().d.layout = plan::kRowInterleaved; });
  expect_new([](KernelMetadata& m) { m.operands().c.alignment = 1; });
  expect_new([](KernelMetadata& m) { m.operands().has_c = false; });
  expect_new([](KernelMetadata& m) { m.operands().math = op::MathOperation::multiply_add_fast_f16; });
  expect_new([](KernelMetadata& m) { m.operands().epilogue = op::linear_combination_clamp(DType::f16); });
  expect_new([](KernelMetadata& m) { m.operands().epilogue = op::linear_combination_clamp(DType::s8); });
  expect_new([](KernelMetadata& m) { m.operands().epilogue = op::linear_combination_clamp(DType::u8); });
  expect_new([](KernelMetadata& m) { m.operands().epilogue.compute = DType::f64; });
  expect_new([](KernelMetadata& m) { plan::tiling(m.design).target = {80, FeatureSet::architecture_specific}; });
  expect_new([](KernelMetadata& m) { plan::tiling(m.design).target = {86}; });
  expect_new([](KernelMetadata& m) { plan::tiling(m.design).raster.width = 8; });
  expect_new([](KernelMetadata& m) { plan::tiling(m.design).raster.along_n = true; });
  expect_new([](KernelMetadata& m) { plan::tiling(m.design).tile.k = 64; });
  expect_new([](KernelMetadata& m) { m.design = plan::sm80_design({16, 8, 8}); });
  const auto expect_new_sm90 = [&](auto change) {
    plan::Sm90GemmDesign design = plan::sm90_design({});
    change(design);
    expect_new([&](KernelMetadata& m) { m.design = design; });
  };
  expect_new_sm90([](plan::Sm90GemmDesign&) {});
  expect_new_sm90([](plan::Sm90GemmDesign& d) { d.cluster_m = 2; });
  expect_new_sm90([](plan::Sm90GemmDesign& d) { d.cluster_n = 2; });
  expect_new_sm90([](plan::Sm90GemmDesign& d) { d.schedule = plan::Schedule::ping_pong; });
  expect_new_sm90([](plan::Sm90GemmDesign& d) { d.swaps_operands = true; });
  expect_new_sm90([](plan::Sm90GemmDesign& d) { d.split_k = 2; });
  expect_new_sm90([](plan::Sm90GemmDesign& d) { d.repacks_operands = true; });
  for (const char* activation : {"relu", "leaky_relu", "tanh", "sigmoid", "silu", "hardswish", "gelu"}) {
    expect_new([&](KernelMetadata& m) {
      m.operands().epilogue = op::linear_combination_generic(*op::parse_activation(activation));
    });
  }
}

// The same formula with its launch arguments in the opposite order.
TEST(KernelName, DependsOnTheOrderOfScalars) {
  using enum op::EpilogueOp;
  const auto formula = [](std::array<const char*, 2> order) {
    return op::Epilogue{"custom",
                        DType::f32,
                        {{scalar, {-1, -1}, 0.0, order[0]},
                         {scalar, {-1, -1}, 0.0, order[1]},
                         {accumulator, {-1, -1}, 0.0, {}},
                         {source, {-1, -1}, 0.0, {}},
                         {multiply, {order[0] == std::string("alpha") ? 0 : 1, 2}, 0.0, {}},
                         {multiply, {order[0] == std::string("alpha") ? 1 : 0, 3}, 0.0, {}},
                         {add, {4, 5}, 0.0, {}}}};
  };
  KernelMetadata one = metadata_of(describe_f16());
  KernelMetadata other = one;
  one.operands().epilogue = formula({"alpha", "beta"});
  other.operands().epilogue = formula({"beta", "alpha"});
  ASSERT_EQ(op::signature(one.operands().epilogue), op::signature(other.operands().epilogue));
  EXPECT_NE(kernel_name(one), kernel_name(other));
}

TEST(KernelName, DoesNotDependOnTheValuesOfScalars) {
  KernelMetadata one = metadata_of(describe_f16());
  KernelMetadata other = one;
  one.operands().epilogue = op::linear_combination_generic(op::Activation::leaky_relu, DType::f32, 0.1);
  other.operands().epilogue = op::linear_combination_generic(op::Activation::leaky_relu, DType::f32, 0.3);
  EXPECT_EQ(kernel_name(one), kernel_name(other));
}

TEST(Metadata, IsComparable) {
  const KernelMetadata metadata = metadata_of(describe_f16());
  EXPECT_EQ(metadata, metadata_of(describe_f16()));
  KernelMetadata other = metadata;
  plan::tiling(other.design).stages = 3;
  EXPECT_NE(metadata, other);
}

TEST(Metadata, JsonHasEveryField) {
  op::GemmSignature description = describe_f16({kRow, kColumn, kRow, kColumn});
  description.epilogue = op::linear_combination_generic(op::Activation::gelu);
  const KernelMetadata metadata = metadata_of(description);
  const nlohmann::json json = nlohmann::json::parse(to_json(metadata));
  EXPECT_EQ(json.at("name"), kernel_name(metadata));
  EXPECT_EQ(json.at("family"), "sm80_gemm");
  EXPECT_EQ(json.at("operands").at("a"), (nlohmann::json{{"element", "f16"}, {"layout", "row"}, {"alignment", 8}}));
  EXPECT_EQ(json.at("operands").at("b").at("layout"), "column");
  EXPECT_EQ(json.at("operands").at("d").at("layout"), "column");
  EXPECT_EQ(json.at("operands").at("accumulator"), "f32");
  EXPECT_EQ(json.at("operands").at("math"), "multiply_add");
  const nlohmann::json& design = json.at("design");
  EXPECT_EQ(design.at("target"), "sm_80");
  EXPECT_EQ(design.at("op_class"), "tensor_op");
  EXPECT_EQ(design.at("instruction"), nlohmann::json({16, 8, 16}));
  EXPECT_EQ(design.at("threadblock_shape"), nlohmann::json({128, 128, 32}));
  EXPECT_EQ(design.at("warp_count"), nlohmann::json({2, 2, 1}));
  EXPECT_EQ(design.at("stages"), 4);
  EXPECT_EQ(design.at("raster"), (nlohmann::json{{"width", 1}, {"along", "m"}}));
  EXPECT_EQ(json.at("operands").at("epilogue").at("name"), "linear_combination_gelu");
  EXPECT_EQ(json.at("operands").at("epilogue").at("compute"), "f32");
  EXPECT_EQ(json.at("operands").at("epilogue").at("graph"), op::signature(description.epilogue));
}

TEST(Metadata, JsonHasAFixedOrder) {
  const std::string json = to_json(metadata_of(describe_f16()));
  std::size_t at = 0;
  for (const char* key : {"\"name\"", "\"family\"", "\"operation\"", "\"operands\"", "\"design\""}) {
    const std::size_t found = json.find(key);
    ASSERT_NE(found, std::string::npos) << key;
    EXPECT_GE(found, at) << key;
    at = found;
  }
}

}  // namespace
}  // namespace tilewright::registry
