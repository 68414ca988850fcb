// depthwise_conv: convolutions with a filter for each channel, and their gradients.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/conformance/convolutions.hpp"

namespace tilewright::conformance {
namespace {

using op::ConvPass;

class DepthwiseConvolutions : public Convolutions {
 protected:
  void SetUp() override {
    Convolutions::SetUp();
    if (GetParam() == "emulator:sm_90a") GTEST_SKIP() << "the kernels are those for sm_80";
  }
};

// Windows of 3 to 7 taps and steps of 1 and 2 have code of their own, which moves vectors of
// channels; others, and other alignments, have code for any window.
TEST_P(DepthwiseConvolutions, AreExact) {
  const std::vector<std::pair<Shape, bool>> shapes{
      // The second is whether vectors of channels can be moved.
      {{.n = 2, .h = 6, .w = 9, .c = 72, .k = 72, .r = 3, .s = 3, .padding = 1, .groups = 72}, true},
      {{.n = 1, .h = 9, .w = 8, .c = 16, .k = 16, .r = 7, .s = 7, .padding = 3, .groups = 16}, true},
      {{.n = 1, .h = 9, .w = 11, .c = 8, .k = 8, .r = 5, .s = 5, .padding = 2, .stride = 2, .groups = 8}, true},
      {{.n = 1, .h = 9, .w = 9, .c = 8, .k = 8, .r = 3, .s = 2, .padding = 2, .dilation = 2, .groups = 8}, true},
      {{.n = 2, .h = 5, .w = 7, .c = 13, .k = 13, .r = 3, .s = 3, .padding = 1, .stride = 3, .groups = 13}, false},
  };
  for (const auto& [shape, has_vectors] : shapes) {
    for (const ConvPass pass : {ConvPass::fprop, ConvPass::dgrad}) {
      op::Conv2d conv = convolution(pass, shape, DType::f16);
      conv.mode = shape.r == 5 ? op::ConvMode::convolution : op::ConvMode::cross_correlation;
      conv.beta = shape.r == 7 ? 1.0 : 0.0;
      SCOPED_TRACE(op::to_string(conv));
      GuardedConvolution guarded(engine().device(), conv, {.red_zone = 0});
      int count = 0;
      bool is_first = true, has_vector = false;
      for (const engine::RankedKernel& candidate : engine().find_kernels(guarded.on_device())) {
        const bool is_own = candidate.kernel->metadata().family == "depthwise_conv";
        EXPECT_TRUE(is_own || !is_first) << "the family is expected to be the fastest";
        is_first = false;
        if (!is_own) continue;
        ++count;
        has_vector |= plan::flatten(candidate.kernel->metadata().design, nullptr).instruction.n > 1;
        expect_exact_of(candidate.kernel, guarded);
      }
      EXPECT_GE(count, 1) << op::to_string(conv);
      EXPECT_EQ(has_vector, has_vectors);
    }
  }
  for (const int offset : {0, 1, 0}) {  // the kernel of vectors is not remembered for other addresses
    GuardedConvolution guarded(engine().device(), convolution(ConvPass::fprop, shapes[1].first, DType::f16),
                               {.offset_elements = offset, .red_zone = 0});
    guarded.upload();
    engine().run(guarded.on_device());
    guarded.download();
    EXPECT_EQ(guarded.wrong(), "");
  }
  op::Conv2d conv = convolution(ConvPass::fprop, shapes[0].first, DType::s8);
  conv.epilogue = *op::parse_epilogue("D = relu(acc + row(bias) + residual)", DType::f32);
  conv.tensors = {{"bias", op::packed_tensor(5 * kApart, DType::f32, {1, 1, 1, 72})},
                  {"residual", op::packed_tensor(6 * kApart, DType::f32, conv.y.shape)}};
  GuardedConvolution guarded(engine().device(), conv, {.red_zone = 0});
  const registry::KernelPtr kernel = engine().find_kernels(guarded.on_device()).front().kernel;
  EXPECT_EQ(kernel->metadata().family, "depthwise_conv");
  expect_equal_to_reference(kernel, guarded);
  // Vectors are as wide as one of 16 bytes of D, so that those of the image may have 2 bytes.
  for (const DType result : {DType::s32, DType::f32}) {
    for (const ConvPass pass : {ConvPass::fprop, ConvPass::dgrad}) {
      op::Conv2d of_bytes = convolution(pass, shapes[1].first, DType::s8);
      (pass == ConvPass::fprop ? of_bytes.y : of_bytes.x).dtype = of_bytes.c.dtype = result;
      GuardedConvolution bytes(engine().device(), of_bytes, {.red_zone = 0});
      int count = 0;
      for (const engine::RankedKernel& candidate : engine().find_kernels(bytes.on_device())) {
        if (candidate.kernel->metadata().family != "depthwise_conv") continue;
        ++count;
        expect_exact_of(candidate.kernel, bytes);
      }
      EXPECT_GE(count, 2);
    }
  }
}

// Images so high that a thread computes several rows of the output while its window slides down, in more rounds than it
// has sums; the last segment of an image has fewer rows.
TEST_P(DepthwiseConvolutions, WindowsThatSlideAreExact) {
  struct Case {
    Shape shape;
    DType type;
    ConvPass pass = ConvPass::fprop;
  };
  const Shape adjacent{.n = 2, .h = 330, .w = 4, .c = 512, .k = 512, .r = 3, .s = 3, .padding = 1, .groups = 512};
  const std::vector<Case> cases{
      {adjacent, DType::f16},
      {adjacent, DType::f32, ConvPass::dgrad},
      {{.n = 1, .h = 661, .w = 7, .c = 512, .k = 512, .r = 3, .s = 3, .padding = 1, .stride = 2, .groups = 512},
       DType::f16},
      {{.n = 1, .h = 300, .w = 5, .c = 256, .k = 256, .r = 5, .s = 5, .padding = 2, .groups = 256}, DType::f32},
      {{.n = 1, .h = 603, .w = 11, .c = 256, .k = 256, .r = 5, .s = 5, .padding = 1, .stride = 2, .groups = 256},
       DType::f16},
  };
  for (const auto& [shape, type, pass] : cases) {
    op::Conv2d conv = convolution(pass, shape, type);
    conv.mode = shape.r == 5 ? op::ConvMode::convolution : op::ConvMode::cross_correlation;
    SCOPED_TRACE(op::to_string(conv));
    GuardedConvolution guarded(engine().device(), conv, {.red_zone = 0});
    int count = 0;
    for (const registry::KernelPtr& kernel : kernels_of_family(guarded.on_device(), "depthwise_conv")) {
      if (plan::flatten(kernel->metadata().design, nullptr).stages != 2 || ++count > 2) continue;
      expect_exact_of(kernel, guarded);
    }
    EXPECT_GE(count, 2);
  }
}

// The gradient of a filter sums over all pixels. Threads that have the same taps take different segments of its rows,
// and so do CTAs, which add their partial sums through the workspace.
TEST_P(DepthwiseConvolutions, FilterGradientsAreExact) {
  struct Case {
    Shape shape;
    int kernels;    // of the family, at least
    int vector;     // the channels of a thread of the widest of them
    bool is_split;  // whether several CTAs of one of these have the same taps and channels
  };
  const std::vector<Case> cases{
      {{.n = 5, .h = 9, .w = 6, .c = 40, .k = 40, .r = 7, .s = 7, .padding = 3, .groups = 40}, 9, 8, true},
      {{.n = 1, .h = 6, .w = 9, .c = 72, .k = 72, .r = 3, .s = 3, .padding = 1, .groups = 72}, 9, 8, false},
      {{.n = 3, .h = 17, .w = 11, .c = 8, .k = 8, .r = 5, .s = 5, .padding = 2, .stride = 2, .groups = 8}, 9, 8, true},
      {{.n = 1, .h = 5, .w = 8, .c = 20, .k = 20, .r = 2, .s = 9, .padding = 4, .groups = 20}, 5, 4, false},
      {{.n = 1, .h = 3, .w = 190, .c = 24, .k = 24, .r = 3, .s = 3, .padding = 1, .groups = 24}, 9, 8, true},
      {{.n = 1, .h = 5, .w = 190, .c = 24, .k = 24, .r = 5, .s = 5, .padding = 2, .stride = 2, .groups = 24},
       9,
       8,
       true},
      {{.n = 1, .h = 9, .w = 9, .c = 8, .k = 8, .r = 3, .s = 2, .padding = 2, .dilation = 2, .groups = 8}, 3, 8, false},
      {{.n = 1, .h = 5, .w = 390, .c = 8, .k = 8, .r = 3, .s = 2, .padding = 2, .dilation = 2, .groups = 8},
       3,
       8,
       true},
      {{.n = 1, .h = 4, .w = 5, .c = 4, .k = 4, .r = 33, .s = 2, .padding = 16, .groups = 4}, 5, 4, true},
      {{.n = 2, .h = 65, .w = 7, .c = 13, .k = 13, .r = 3, .s = 3, .padding = 1, .stride = 3, .groups = 13},
       1,
       1,
       true},
  };
  for (const auto& [shape, least, vector, is_split] : cases) {
    op::Conv2d conv = convolution(ConvPass::wgrad, shape, DType::f16);
    conv.mode = shape.r == 5 || shape.s == 2 ? op::ConvMode::convolution : op::ConvMode::cross_correlation;
    conv.beta = shape.r == 7 ? 1.0 : 0.0;
    SCOPED_TRACE(op::to_string(conv));
    GuardedConvolution guarded(engine().device(), conv, {.red_zone = 0});
    int count = 0, widest = 0;
    bool has_parts = false;
    for (const registry::KernelPtr& kernel : kernels_of_family(guarded.on_device(), "depthwise_conv")) {
      ++count;
      const int channels = plan::flatten(kernel->metadata().design, nullptr).instruction.n;
      widest = std::max(widest, channels);
      has_parts |= channels == vector && kernel->workspace_bytes(guarded.on_device()) > 0;
      expect_exact_in_two_runs_of(kernel, guarded);
    }
    EXPECT_GE(count, least);
    EXPECT_EQ(widest, vector);
    EXPECT_EQ(has_parts, is_split);
  }
  const auto expect_exact_in_family = [&](const op::Conv2d& conv, int offset = 0) {
    SCOPED_TRACE(op::to_string(conv));
    GuardedConvolution guarded(engine().device(), conv, {.offset_elements = offset, .red_zone = 0});
    const std::vector<registry::KernelPtr> kernels = kernels_of_family(guarded.on_device(), "depthwise_conv");
    ASSERT_FALSE(kernels.empty());
    expect_equal_to_reference(kernels.front(), guarded);
  };
  for (const DType type : {DType::bf16, DType::f32, DType::f64, DType::s8})
    expect_exact_in_family(convolution(ConvPass::wgrad, cases[2].shape, type));
  for (const int offset : {0, 1, 0})  // the kernel of vectors is not remembered for other addresses
    expect_exact_in_family(convolution(ConvPass::wgrad, cases[0].shape, DType::f16), offset);
  expect_exact_without_product(convolution(ConvPass::wgrad, cases[0].shape, DType::f16), "depthwise_conv");
  op::Conv2d conv = convolution(ConvPass::wgrad, cases[1].shape, DType::f16);
  conv.epilogue = *op::parse_epilogue("D = relu(acc + row(bias) + residual)", DType::f32);
  conv.tensors = {{"bias", op::packed_tensor(5 * kApart, DType::f32, {1, 3, 3, 1})},
                  {"residual", op::packed_tensor(6 * kApart, DType::f32, conv.w.shape)}};
  expect_exact_in_family(conv);
  conv = convolution(ConvPass::wgrad,
                     {.n = 32, .h = 14, .w = 14, .c = 384, .k = 384, .r = 7, .s = 7, .padding = 3, .groups = 384},
                     DType::f16);
  for (op::Tensor* const tensor : {&conv.x, &conv.w, &conv.y, &conv.c}) {
    tensor->address = 0;
    tensor->device = {op::MemoryDevice::Kind::shape, 0};
  }
  EXPECT_EQ(engine().find_kernels(conv).front().kernel->metadata().family, "depthwise_conv");
}

// Tensor cores, which round to tf32, would use one column of an instruction.
TEST_P(DepthwiseConvolutions, OfTf32AreComputedInFull) {
  const Shape shape{.n = 2, .h = 20, .w = 21, .c = 40, .k = 40, .r = 3, .s = 3, .padding = 1, .groups = 40};
  for (const ConvPass pass : {ConvPass::fprop, ConvPass::dgrad, ConvPass::wgrad}) {
    op::Conv2d conv = convolution(pass, shape, DType::f32);
    conv.math = op::MathOperation::multiply_add_tf32;
    SCOPED_TRACE(op::to_string(conv));
    GuardedConvolution guarded(engine().device(), conv, {.red_zone = 0});
    const registry::KernelPtr first = engine().find_kernels(guarded.on_device()).front().kernel;
    EXPECT_EQ(first->metadata().family, "depthwise_conv");
    expect_exact_of(first, guarded);
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, DepthwiseConvolutions, testing::ValuesIn(devices()),
                         [](const auto& test) { return identifier(test.param); });

}  // namespace
}  // namespace tilewright::conformance
