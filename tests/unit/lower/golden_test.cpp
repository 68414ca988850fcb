// Compares the whole text of some kernels with the files in tests/golden/. After an intended change, rewrite them by
//   test_lower --update-golden     or     TILEWRIGHT_UPDATE_GOLDEN=1 test_lower
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <sstream>
#include <string_view>

#include "tests/unit/plan/gemm_cases.hpp"
#include "tilewright/lower/cuda/depthwise_conv.hpp"
#include "tilewright/lower/cuda/depthwise_wgrad.hpp"
#include "tilewright/lower/cuda/group_conv.hpp"
#include "tilewright/lower/cuda/group_wgrad.hpp"
#include "tilewright/lower/cuda/permute.hpp"
#include "tilewright/lower/cuda/reduce_split_k.hpp"
#include "tilewright/lower/cuda/simt_gemm.hpp"
#include "tilewright/lower/cuda/skinny_gemm.hpp"
#include "tilewright/lower/cuda/sm80_gemm.hpp"
#include "tilewright/lower/cuda/sm90_gemm.hpp"
#include "tilewright/lower/cuda/stem_conv.hpp"
#include "tilewright/lower/cuda/stem_wgrad.hpp"
#include "tilewright/op/conv2d.hpp"
#include "tilewright/op/signature.hpp"

namespace tilewright::lower {
namespace {

using plan::kColumn;
using plan::kRow;

const std::filesystem::path kFolder = TILEWRIGHT_SOURCE_DIR "/tests/golden";

struct Golden {
  std::string name;
  op::Signature description;
  plan::Design design;
  std::optional<op::Permutation> permutation = {};  // instead of the others
};
std::ostream& operator<<(std::ostream& out, const Golden& golden) { return out << golden.name; }

op::GemmSignature with_epilogue(op::GemmSignature description, std::string_view epilogue) {
  description.epilogue = *op::named_epilogue(epilogue, description.d.element, description.epilogue.compute);
  return description;
}

op::GemmSignature with_groups(op::GemmSignature description, op::GroupedMode mode) {
  description.groups = mode;
  if (mode == op::GroupedMode::independent) {
    for (op::TensorSignature* const operand : {&description.a, &description.b, &description.c, &description.d})
      operand->is_pointer_array = true;
    description.c.alignment = description.d.alignment = 1;
  }
  return description;
}

Golden tensor(std::string name, const op::GemmSignature& description, const plan::TileShape& instruction,
              const plan::Tile& tile, const Target& target = plan::kSm80) {
  return {std::move(name), description, plan::sm80_design(instruction, tile, target)};
}

Golden wgmma(std::string name, const op::GemmSignature& description, const plan::Tile& tile,
             std::array<int, 2> cluster) {
  return {std::move(name), description, plan::sm90_design(tile, cluster)};
}

Golden repacked(Golden golden) {
  std::get<plan::Sm90GemmDesign>(golden.design).repacks_operands = true;
  return golden;
}

Golden reduction(std::string name, const op::ReduceSplitK& problem) {
  const op::ReduceSplitKSignature signature = op::describe(problem);
  return {std::move(name), signature, plan::reduce_split_k_designs(signature, plan::kSm80).front()};
}

/// The transpose of a matrix.
Golden permute(std::string name) {
  op::Permutation permutation{op::packed_tensor(0, DType::f16, {64, 48}), op::packed_tensor(0, DType::f16, {64, 48})};
  permutation.from.stride = {1, 64};
  return {std::move(name), {}, {}, permutation};
}

op::Tensor shape_of(DType type, const op::Dims& shape) { return op::packed_tensor(0, type, shape); }

/// A filter of 3x3 for each of 64 channels; the first design with this number of stages.
Golden depthwise(std::string name, op::ConvPass pass = op::ConvPass::fprop, int stages = 1) {
  op::Conv2d conv{.pass = pass,
                  .x = shape_of(DType::f16, {2, 9, 9, 64}),
                  .w = shape_of(DType::f16, {64, 3, 3, 1}),
                  .y = shape_of(DType::f16, {2, 9, 9, 64}),
                  .c = {},
                  .padding = {1, 1},
                  .groups = 64};
  op::GemmSignature signature = op::describe(op::with_longest_lines(op::view(conv)));
  std::vector<plan::FlatDesign> designs = pass == op::ConvPass::wgrad
                                              ? plan::depthwise_wgrad_designs(signature, plan::kSm80)
                                              : plan::depthwise_conv_designs(signature, plan::kSm80);
  const auto design = std::ranges::find(designs, stages, &plan::FlatDesign::stages);
  return {std::move(name), std::move(signature), *design};
}

/// 7x7 with a stride of 2 and a padding of 3, from 3 channels to 64.
/// The first design for two rows of f32.
Golden skinny(std::string name) {
  const op::Gemm gemm =
      plan::problem_of(plan::describe({DType::f32, DType::f32, DType::f32, DType::f32}), 2, 512, 4096);
  const op::GemmSignature signature = op::describe(gemm);
  return {std::move(name), signature, plan::skinny_gemm_designs(op::view(gemm), signature, plan::kSm80).front()};
}

Golden stem(std::string name, op::ConvPass pass = op::ConvPass::fprop) {
  op::Conv2d conv{.pass = pass,
                  .x = shape_of(DType::bf16, {2, 28, 224, 3}),
                  .w = shape_of(DType::bf16, {64, 7, 7, 3}),
                  .y = shape_of(DType::bf16, {2, 14, 112, 64}),
                  .c = {},
                  .padding = {3, 3},
                  .stride = {2, 2}};
  const op::GemmView view = op::view(conv);
  op::GemmSignature signature = op::describe(view);
  std::vector<plan::FlatDesign> designs = pass == op::ConvPass::fprop
                                              ? plan::stem_conv_designs(view, signature, plan::kSm80)
                                              : plan::stem_wgrad_designs(view, signature, plan::kSm80);
  return {std::move(name), std::move(signature), designs.front()};
}

/// A gradient of a convolution in groups of 16 channels.
Golden grouped(std::string name, op::ConvPass pass) {
  op::Conv2d conv{.pass = pass,
                  .x = shape_of(DType::bf16, {2, 14, 14, 64}),
                  .w = shape_of(DType::bf16, {64, 3, 3, 16}),
                  .y = shape_of(DType::bf16, {2, 14, 14, 64}),
                  .c = {},
                  .padding = {1, 1},
                  .groups = 4};
  const op::GemmView view = op::view(conv);
  op::GemmSignature signature = op::describe(view);
  std::vector<plan::FlatDesign> designs = pass == op::ConvPass::wgrad
                                              ? plan::group_wgrad_designs(view, signature, plan::kSm80)
                                              : plan::group_conv_designs(view, signature, plan::kSm80);
  return {std::move(name), std::move(signature), designs.front()};
}

/// An interleaved convolution of 64 channels.
op::GemmSignature blocks_of_channels() {
  op::Conv2d conv{.x = shape_of(DType::s8, {2, 2, 9, 9, 32}),
                  .w = shape_of(DType::s8, {2, 3, 3, 64, 32}),
                  .y = shape_of(DType::s8, {2, 2, 9, 9, 32}),
                  .c = {},
                  .padding = {1, 1},
                  .accumulator = DType::s32};
  return op::describe(op::view(conv));
}

op::GemmSignature through_registers() {
  op::GemmSignature signature = plan::describe_f16();
  signature.a.alignment = 1;
  return signature;
}

op::ReduceSplitK f32_parts() {
  op::ReduceSplitK problem;
  problem.parts = op::batched(op::matrix(std::uint64_t{0}, DType::f32, 256, 384), 4);
  problem.d = op::matrix(std::uint64_t{0}, DType::f16, 256, 384);
  return problem;
}

std::vector<Golden> goldens() {
  using enum DType;
  using enum op::MathOperation;
  const op::GemmSignature simt = plan::describe_f32({kRow, kRow, kRow, kRow}, 4);
  return {
      tensor("f16_tn", plan::describe_f16(), {16, 8, 16}, {{128, 128, 32}, 4, {2, 2}}),
      tensor("f16_in_half_gelu", with_epilogue(plan::describe({f16, f16, f16, f16}), "gelu"), {16, 8, 16},
             {{64, 64, 32}, 3, {2, 2}}),
      tensor("s8_clamp", with_epilogue(plan::describe({s8, s8, s8, s32}), "clamp"), {16, 8, 32},
             {{64, 64, 64}, 4, {2, 2}}),
      tensor("s8_interleaved", plan::describe({s8, s8, s8, s32}, plan::kInterleavedLayouts), {16, 8, 32},
             {{64, 64, 64}, 6, {2, 2}}),
      tensor("tf32_mn_major", plan::describe({f32, f32, f32, f32, multiply_add_tf32}, {kColumn, kRow, kColumn, kRow}),
             {16, 8, 8}, {{128, 64, 16}, 3, {2, 2}}),
      tensor("f64_hopper", plan::describe({f64, f64, f64, f64}), {16, 8, 8}, {{64, 64, 16}, 4, {2, 2}}, plan::kSm90),
      tensor("fast_f32_column_major_output",
             plan::describe({f32, f32, f32, f32, multiply_add_fast_f32}, {kRow, kColumn, kRow, kColumn}), {16, 8, 8},
             {{64, 32, 16}, 3, {2, 1}}),
      wgmma("wgmma_bf16_mn_major", plan::describe({bf16, bf16, bf16, f32}, {kColumn, kRow, kRow, kRow}),
            {{128, 64, 64}, 6, {8, 1}}, {2, 1}),
      wgmma("wgmma_tf32_mn_major",
            plan::describe({f32, f32, f32, f32, multiply_add_tf32}, {kColumn, kColumn, kRow, kRow}),
            {{128, 32, 32}, 4, {8, 1}}, {1, 1}),
      wgmma("wgmma_s8", plan::describe({s8, s8, s32, s32}), {{64, 32, 128}, 4, {4, 1}}, {1, 1}),
      wgmma("wgmma_e4m3_e5m2", plan::describe({e4m3, e5m2, e4m3, f32}), {{128, 32, 128}, 4, {4, 1}}, {1, 1}),
      wgmma("wgmma_bf16_gathered", plan::describe({bf16, bf16, bf16, f32}, {kRow, kRow, kRow, kRow}, 2),
            {{128, 64, 64}, 6, {8, 1}}, {1, 1}),
      repacked(wgmma("wgmma_s8_repacked", plan::describe({s8, s8, s32, s32}, {kColumn, kColumn, kRow, kRow}, 1),
                     {{128, 64, 128}, 4, {8, 1}}, {2, 1})),
      wgmma("grouped_wgmma_bf16", with_groups(plan::describe({bf16, bf16, bf16, f32}), op::GroupedMode::ragged_m),
            {{128, 128, 64}, 4, {8, 1}}, {1, 1}),
      wgmma("independent_wgmma_bf16",
            with_groups(plan::describe({bf16, bf16, bf16, f32}), op::GroupedMode::independent),
            {{128, 128, 64}, 4, {8, 1}}, {1, 2}),
      {"simt_f32", simt, plan::simt_design()},
      {"grouped_simt_f32", with_groups(simt, op::GroupedMode::masked_m), plan::simt_design()},
      tensor("grouped_f16_tn", with_groups(plan::describe_f16(), op::GroupedMode::ragged_m), {16, 8, 16},
             {{128, 128, 32}, 4, {2, 2}}),
      tensor("independent_f16_tn", with_groups(plan::describe_f16(), op::GroupedMode::independent), {16, 8, 16},
             {{128, 128, 32}, 4, {2, 2}}),
      reduction("reduce_split_k_f32", f32_parts()),
      depthwise("depthwise_conv_f16"),
      depthwise("depthwise_conv_sliding_f16", op::ConvPass::fprop, 2),
      depthwise("depthwise_wgrad_f16", op::ConvPass::wgrad),
      stem("stem_conv_bf16"),
      stem("stem_wgrad_bf16", op::ConvPass::wgrad),
      grouped("group_conv_bf16", op::ConvPass::dgrad),
      grouped("group_wgrad_bf16", op::ConvPass::wgrad),
      skinny("skinny_gemm_f32"),
      permute("permute_f16"),
      tensor("s8_blocks_of_channels", blocks_of_channels(), {16, 8, 32}, {{64, 64, 64}, 4, {2, 2}}),
      tensor("f16_through_registers", through_registers(), {16, 8, 16}, {{64, 64, 32}, 3, {2, 2}}),
  };
}

std::string emit(const Golden& golden) {
  if (golden.permutation) return cuda::lower(plan::plan_permute(*golden.permutation, plan::kSm80), golden.name);
  const auto text = [&](auto plan) { return cuda::lower(std::move(plan).value_or_throw(), golden.name); };
  if (const op::ReduceSplitKSignature* const reduction = golden.description.reduce_split_k())
    return text(plan::plan_reduce_split_k(*reduction, std::get<plan::FlatDesign>(golden.design)));
  const op::GemmSignature& gemm = *golden.description.gemm();
  if (const auto* flat = std::get_if<plan::FlatDesign>(&golden.design)) {
    const bool is_filter_gradient = gemm.b.im2col != op::Im2colAccess::none;
    if (flat->op_class == plan::OpClass::tensor_op) {
      if (golden.name.starts_with("group_conv")) return text(plan::plan_group_conv(gemm, *flat));
      if (golden.name.starts_with("group_wgrad")) return text(plan::plan_group_wgrad(gemm, *flat));
      return is_filter_gradient ? text(plan::plan_stem_wgrad(gemm, *flat)) : text(plan::plan_stem_conv(gemm, *flat));
    }
    if (is_filter_gradient) return text(plan::plan_depthwise_wgrad(gemm, *flat));
    if (gemm.a.im2col == op::Im2colAccess::none) return text(plan::plan_skinny_gemm(gemm, *flat));
    return text(plan::plan_depthwise_conv(gemm, *flat));
  }
  if (const auto* simt = std::get_if<plan::SimtGemmDesign>(&golden.design))
    return text(plan::plan_simt_gemm(gemm, *simt));
  if (const auto* sm80 = std::get_if<plan::Sm80GemmDesign>(&golden.design))
    return text(plan::plan_sm80_gemm(gemm, *sm80));
  return text(plan::plan_sm90_gemm(gemm, std::get<plan::Sm90GemmDesign>(golden.design)));
}

bool updates_goldens() { return std::getenv("TILEWRIGHT_UPDATE_GOLDEN") != nullptr; }

class EmittedText : public testing::TestWithParam<Golden> {};

TEST_P(EmittedText, EqualsTheGoldenFile) {
  const std::filesystem::path path = kFolder / (GetParam().name + ".cu");
  const std::string text = emit(GetParam());
  if (updates_goldens()) std::ofstream(path) << text;
  std::ifstream file(path);
  ASSERT_TRUE(file) << path << " is missing";
  std::ostringstream golden;
  golden << file.rdbuf();
  EXPECT_EQ(text, golden.str());
}

INSTANTIATE_TEST_SUITE_P(Kernels, EmittedText, testing::ValuesIn(goldens()),
                         [](const auto& tested) { return tested.param.name; });

TEST(Goldens, EveryFileBelongsToAKernel) {
  if (updates_goldens()) GTEST_SKIP() << "the golden files are being rewritten";
  std::set<std::string> wanted, found;
  for (const Golden& golden : goldens()) wanted.insert(golden.name + ".cu");
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) found.insert(entry.path().filename());
  EXPECT_EQ(found, wanted);
}

}  // namespace
}  // namespace tilewright::lower

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]) == "--update-golden") ::setenv("TILEWRIGHT_UPDATE_GOLDEN", "1", 1);
  }
  return RUN_ALL_TESTS();
}
