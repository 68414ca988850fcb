// repacked_conv, which computes on copies: with rows of channels, or of a window, padded to multiples of 16 bytes, with
// blocks of pixels of a gradient as channels, or with groups merged. Inner kernels of sm80_gemm are used on both
// targets.
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "tests/conformance/convolutions.hpp"

namespace tilewright::conformance {
namespace {

using op::ConvPass;

class RepackedConvolutions : public Convolutions {
 protected:
  /// One kernel for each way to repack: "pad8", "blocks2x2_pad8", ...
  std::vector<registry::KernelPtr> repacking_kernels(const op::Problem& problem) const {
    return first_kernels(problem, [](const registry::KernelMetadata& metadata) {
      constexpr std::string_view kPrefix = "repacked_";
      if (!metadata.name.starts_with(kPrefix)) return std::string();
      return metadata.name.substr(kPrefix.size(), metadata.name.find("_sm") - kPrefix.size());
    });
  }

  /// The kernel that repacks in this way; null if there is none.
  registry::KernelPtr repacking_kernel(const op::Problem& problem, std::string_view way) const {
    for (const registry::KernelPtr& each : repacking_kernels(problem)) {
      if (each->name().starts_with(fmt::format("repacked_{}_sm", way))) return each;
    }
    return nullptr;
  }
};

struct Case {
  ConvPass pass;
  DType type;
  Shape shape;
  std::string_view way;  // a way to repack that one of the kernels must have
};

TEST_P(RepackedConvolutions, AreExact) {
  const Shape odd{.n = 2, .h = 7, .w = 6, .c = 13, .k = 21, .r = 3, .s = 2, .padding = 1};
  const Shape odd_strided{.n = 6, .h = 9, .w = 8, .c = 13, .k = 16, .r = 3, .s = 3, .padding = 1, .stride = 2};
  const Shape stem{.n = 2, .h = 9, .w = 8, .c = 3, .k = 16, .r = 5, .s = 4, .padding = 2, .stride = 2};
  const Shape few{.n = 2, .h = 5, .w = 12, .c = 3, .k = 16, .r = 3, .s = 4, .padding = 1};
  const Shape to_few{.n = 1, .h = 9, .w = 8, .c = 24, .k = 3, .r = 3, .s = 4, .padding = 2, .stride = 2, .dilation = 2};
  const Shape dilated{
      .n = 1, .h = 8, .w = 7, .c = 3, .k = 13, .r = 2, .s = 3, .padding = 3, .stride = 3, .dilation = 2};
  const Shape grouped{.n = 2, .h = 6, .w = 5, .c = 16, .k = 32, .r = 3, .s = 2, .padding = 1, .groups = 4};
  const Shape grouped_strided{
      .n = 2, .h = 9, .w = 8, .c = 12, .k = 32, .r = 3, .s = 3, .padding = 1, .stride = 2, .dilation = 2, .groups = 4};
  const Shape grouped_dilated{
      .n = 1, .h = 7, .w = 8, .c = 16, .k = 32, .r = 3, .s = 2, .padding = 1, .dilation = 2, .groups = 4};
  const Shape grouped_odd{.n = 2, .h = 6, .w = 5, .c = 20, .k = 28, .r = 3, .s = 2, .padding = 1, .groups = 4};
  const Shape word{.n = 6, .h = 8, .w = 7, .c = 13, .k = 21, .r = 3, .s = 2, .padding = 1, .stride = 2, .dilation = 2};
  for (const auto& [pass, type, shape, way] : {Case{ConvPass::fprop, DType::f16, odd, "pad8"},
                                               {ConvPass::wgrad, DType::f32, word, "images4"},
                                               {ConvPass::wgrad, DType::s8, odd, "images16"},
                                               {ConvPass::dgrad, DType::f16, odd, "pad8"},
                                               {ConvPass::wgrad, DType::f16, odd, "pad8"},
                                               {ConvPass::fprop, DType::s8, odd, "pad16"},
                                               {ConvPass::dgrad, DType::f16, odd_strided, "pad8"},
                                               {ConvPass::dgrad, DType::f16, stem, "blocks4x4_pad8"},
                                               {ConvPass::dgrad, DType::f16, dilated, "blocks3x3_pad8"},
                                               {ConvPass::dgrad, DType::f16, few, "blocks1x4_pad8"},
                                               {ConvPass::fprop, DType::f16, to_few, "blocks1x2_pad8"},
                                               {ConvPass::dgrad, DType::f32, odd_strided, "blocks2x2_pad4"},
                                               {ConvPass::fprop, DType::f32, stem, "windows8"},
                                               {ConvPass::fprop, DType::f16, grouped, "groups2"},
                                               {ConvPass::dgrad, DType::f16, grouped, "groups4"},
                                               {ConvPass::dgrad, DType::f16, grouped, "blocks1x1_pad8"},
                                               {ConvPass::dgrad, DType::f32, grouped, "blocks1x1_pad4"},
                                               {ConvPass::dgrad, DType::f16, grouped_strided, "blocks2x2_pad8"},
                                               {ConvPass::dgrad, DType::f16, grouped_strided, "blocks2x2_groups2_pad8"},
                                               {ConvPass::dgrad, DType::f16, grouped, "blocks1x1_groups4_pad8"},
                                               {ConvPass::dgrad, DType::f16, grouped_dilated, "blocks1x1_pad8"},
                                               {ConvPass::fprop, DType::f16, grouped_odd, "pad8"},
                                               {ConvPass::dgrad, DType::f16, grouped_odd, "blocks1x1_pad8"},
                                               {ConvPass::dgrad, DType::f16, grouped_odd, "blocks1x1_groups2_pad8"},
                                               {ConvPass::wgrad, DType::f16, grouped, "groups4"}}) {
    op::Conv2d conv = tensor_core_convolution(pass, shape, type);
    conv.mode = shape.dilation == 2 ? op::ConvMode::convolution : op::ConvMode::cross_correlation;
    SCOPED_TRACE(op::to_string(conv));
    // Tensors begin anywhere, and end where reading one byte more is an error.
    GuardedConvolution guarded(engine().device(), conv, {.offset_elements = 1, .red_zone = 0});
    const registry::KernelPtr kernel = repacking_kernel(guarded.on_device(), way);
    ASSERT_NE(kernel, nullptr) << way;
    expect_exact_of(kernel, guarded);
  }
}

TEST_P(RepackedConvolutions, AreExactOnRandomProblems) {
  std::size_t count = 0;
  for (std::uint64_t seed = 2000; seed < 2012 && !HasFatalFailure(); ++seed) {
    op::Conv2d conv = op::random_convolution(seed, DType::f16);
    if (conv.pass != ConvPass::fprop) conv.beta = 0;
    SCOPED_TRACE(fmt::format("seed {}: {}", seed, op::to_string(conv)));
    GuardedConvolution guarded(engine().device(), conv, {.red_zone = 0});
    for (const registry::KernelPtr& kernel : repacking_kernels(guarded.on_device())) {
      expect_exact_of(kernel, guarded);
      ++count;
    }
  }
  EXPECT_GE(count, 12);
}

TEST_P(RepackedConvolutions, HaveEpilogues) {
  const Shape odd{.n = 2, .h = 7, .w = 6, .c = 13, .k = 21, .r = 3, .s = 2, .padding = 1};
  const Shape strided{.n = 2, .h = 7, .w = 6, .c = 13, .k = 24, .r = 3, .s = 2, .padding = 1, .stride = 2};
  const Shape grouped{.n = 2, .h = 7, .w = 6, .c = 16, .k = 32, .r = 3, .s = 2, .padding = 1, .groups = 4};
  for (const auto& [pass, type, shape, way] : {Case{ConvPass::fprop, DType::f16, odd, "pad8"},
                                               {ConvPass::dgrad, DType::f16, strided, "pad8"},
                                               {ConvPass::dgrad, DType::f16, grouped, "blocks1x1_pad8"},
                                               {ConvPass::wgrad, DType::f16, odd, "pad8"},
                                               {ConvPass::wgrad, DType::f32, odd, "images4"}}) {
    op::Conv2d conv = tensor_core_convolution(pass, shape, type);
    conv.epilogue = *op::parse_epilogue("D = relu(alpha * acc + beta * C + row(bias) + column(scale))", DType::f32);
    conv.beta = 1;
    const op::Dims written = conv.written().shape;
    const bool is_filter = pass == ConvPass::wgrad;
    const op::Dims bias{1, is_filter ? written[1] : 1, is_filter ? written[2] : 1, written[3]};
    const op::Dims scale{written[0], is_filter ? 1 : written[1], is_filter ? 1 : written[2], 1};
    conv.tensors = {{"bias", op::packed_tensor(5 * kApart, DType::f32, bias)},
                    {"scale", op::packed_tensor(6 * kApart, DType::f32, scale)}};
    SCOPED_TRACE(op::to_string(conv));
    GuardedConvolution guarded(engine().device(), conv);
    const registry::KernelPtr kernel = repacking_kernel(guarded.on_device(), way);
    ASSERT_NE(kernel, nullptr) << way;
    expect_equal_to_reference(kernel, guarded);
  }
}

// With 8 images, mma.sync takes 129 us and the copies and wgmma 249; with 64 images of a quarter of the pixels, 954 and
// 512 (H200, 2026-11-27).
TEST_P(RepackedConvolutions, OfFilterGradientsAreChosenForManyImages) {
  if (engine().device()->properties().target != kSm90a) GTEST_SKIP() << "the other device has no wgmma";
  const auto first = [&](std::int64_t images, std::int64_t pixels, std::int64_t channels) {
    op::Conv2d conv = tensor_core_convolution(
        ConvPass::wgrad, {.n = images, .h = pixels, .w = pixels, .c = channels, .k = 256, .r = 3, .s = 3, .padding = 1},
        DType::f32);
    for (op::Tensor* const tensor : {&conv.x, &conv.w, &conv.y, &conv.c}) {
      tensor->address = 0;
      tensor->device = {op::MemoryDevice::Kind::shape, 0};
    }
    return engine().find_kernels(conv).front().kernel->metadata().family;
  };
  EXPECT_EQ(first(8, 56, 128), "sm80_gemm");
  EXPECT_EQ(first(64, 28, 512), "repacked_conv");
}

INSTANTIATE_TEST_SUITE_P(Devices, RepackedConvolutions, testing::ValuesIn(devices()),
                         [](const auto& test) { return identifier(test.param); });

}  // namespace
}  // namespace tilewright::conformance
