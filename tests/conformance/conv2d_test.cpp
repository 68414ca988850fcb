// Convolutions by every family that loads im2col operands, against the definition.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "tests/conformance/convolutions.hpp"

namespace tilewright::conformance {
namespace {

using op::ConvPass;

TEST_P(Convolutions, Random) {
  for (std::uint64_t seed = 0; seed < 300 && !HasFatalFailure(); ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    expect_exact_in_every_family(op::random_convolution(seed, DType::f16));
  }
}

TEST_P(Convolutions, EveryTypeInEveryPass) {
  for (const DType type : {DType::f64, DType::f32, DType::bf16, DType::s8, DType::e4m3}) {
    for (std::uint64_t seed = 1000; seed < 1004; ++seed)
      expect_exact_in_every_family(op::random_convolution(seed, type));
  }
  for (std::uint64_t seed = 1000; seed < 1003; ++seed) {
    op::Conv2d conv = op::random_convolution(seed, DType::f32);
    conv.math = op::MathOperation::multiply_add_tf32;
    expect_exact_in_every_family(conv);
  }
}

// The channels of a pixel are less than what cp.async moves.
TEST_P(Convolutions, StemsAreMultipliedByTensorCores) {
  if (GetParam() == "emulator:sm_90a") GTEST_SKIP() << "the kernels are those for sm_80";
  const Shape stem{.n = 2, .h = 11, .w = 9, .c = 3, .k = 16, .r = 7, .s = 7, .padding = 3, .stride = 2};
  const Shape odd{.n = 1, .h = 6, .w = 7, .c = 3, .k = 5, .r = 3, .s = 2, .padding = 1};
  for (const Shape& shape : {stem, odd}) {
    for (const ConvPass pass : {ConvPass::fprop, ConvPass::dgrad, ConvPass::wgrad}) {
      const std::vector<std::string> families = expect_exact_in_every_family(convolution(pass, shape, DType::f16));
      EXPECT_EQ(std::ranges::count(families, "sm80_gemm"), 1) << op::name(pass);
    }
  }
  const std::vector<std::string> families = expect_exact_in_every_family(convolution(ConvPass::fprop, odd, DType::s8));
  EXPECT_EQ(std::ranges::count(families, "sm80_gemm"), 1);
}

TEST_P(Convolutions, TensorsMayHaveGapsAndAnyAlignment) {
  for (const ConvPass pass : {ConvPass::fprop, ConvPass::dgrad, ConvPass::wgrad}) {
    for (const int offset : {0, 1}) {
      op::Conv2d conv =
          convolution(pass, {.n = 2, .h = 6, .w = 5, .c = 16, .k = 8, .r = 3, .s = 2, .padding = 1}, DType::f16);
      // A slice of channels of a larger tensor; pixels of gathered tensors need not follow each other.
      const auto pad = [](op::Tensor& tensor, bool between_images) {
        const std::int64_t pitch = tensor.shape[3] + 8;
        tensor.stride = {tensor.shape[1] * tensor.shape[2] * pitch + (between_images ? 16 : 0),
                         tensor.shape[2] * pitch + (between_images ? 8 : 0), pitch, 1};
        if (between_images) tensor.stride[0] += tensor.shape[1] * 8;
      };
      pad(conv.x, pass != ConvPass::dgrad);
      pad(conv.y, pass == ConvPass::dgrad);
      conv.c = conv.written();
      conv.c.address = 4 * kApart;
      conv.beta = 1.0;
      expect_exact_in_every_family(conv, {.offset_elements = offset});
    }
  }
}

TEST_P(Convolutions, EpiloguesReadTensorsOfPixelsAndChannels) {
  const Shape shape{.n = 2, .h = 6, .w = 5, .c = 16, .k = 16, .r = 3, .s = 3, .padding = 1, .groups = 2};
  for (const ConvPass pass : {ConvPass::fprop, ConvPass::dgrad, ConvPass::wgrad}) {
    op::Conv2d conv = convolution(pass, shape, DType::f16);
    conv.epilogue = *op::parse_epilogue("D = relu(alpha * acc + row(bias) + residual)", DType::f32);
    const op::Dims& whole = conv.written().shape;
    const bool is_weights = pass == ConvPass::wgrad;  // its rows are filters
    const op::Dims bias{1, is_weights ? whole[1] : 1, is_weights ? whole[2] : 1, whole[3]};
    conv.tensors = {{"bias", op::packed_tensor(5 * kApart, DType::f32, bias)},
                    {"residual", op::packed_tensor(6 * kApart, DType::f16, whole)}};
    SCOPED_TRACE(op::to_string(conv));
    GuardedConvolution guarded(engine().device(), conv);
    for (const registry::KernelPtr& kernel : kernels(guarded.on_device())) expect_equal_to_reference(kernel, guarded);
  }
}

TEST_P(Convolutions, SplitK) {
  for (const ConvPass pass : {ConvPass::fprop, ConvPass::dgrad, ConvPass::wgrad}) {
    const op::Conv2d conv =
        convolution(pass, {.n = 1, .h = 12, .w = 12, .c = 32, .k = 32, .r = 3, .s = 3, .padding = 1}, DType::f16);
    GuardedConvolution guarded(engine().device(), conv);
    std::map<std::string, registry::KernelPtr> split;
    for (const engine::RankedKernel& candidate : engine().find_kernels(guarded.on_device())) {
      if (plan::tiling(candidate.kernel->metadata().design).split_k > 1)
        split.insert({candidate.kernel->metadata().family, candidate.kernel});
    }
    EXPECT_EQ(split.count("sm80_gemm"), 1U) << op::to_string(conv);
    for (const auto& [family, kernel] : split) expect_exact_of(kernel, guarded);
  }
}

TEST_P(Convolutions, SinglePixelsAreComputedByEveryFamilyOfGemms) {
  for (const ConvPass pass : {ConvPass::fprop, ConvPass::dgrad, ConvPass::wgrad}) {
    const op::Conv2d conv = convolution(pass, {.n = 2, .h = 5, .w = 7, .c = 64, .k = 32, .r = 1, .s = 1}, DType::f16);
    const std::vector<std::string> families = expect_exact_in_every_family(conv);
    EXPECT_EQ(std::ranges::count(families, "sm90_gemm"), GetParam() == "emulator:sm_80" ? 0 : 1);
  }
}

TEST_P(Convolutions, BlocksOfChannels) {
  // The kernels for sm_90a are those for sm_80.
  const std::uint64_t seeds = GetParam() == "emulator:sm_90a" ? 2 : 16;
  for (std::uint64_t seed = 0; seed < seeds && !HasFatalFailure(); ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    op::Conv2d conv = op::random_blocked_convolution(seed, DType::s8);
    if (seed % 8 == 7 && conv.y.shape.rank() == 5) {  // gaps between the images and the rows of y
      conv.y.stride[2] += 32;
      conv.y.stride[1] += 32 * conv.y.shape[2];
      conv.y.stride[0] += 32 * conv.y.shape[2] * conv.y.shape[1] + 64;
      conv.c.stride = conv.y.stride;
    }
    const std::vector<std::string> families = expect_exact_in_every_family(conv);
    EXPECT_EQ(families, (std::vector<std::string>{"simt_gemm", "sm80_gemm"}));
  }
  op::Conv2d conv = op::random_blocked_convolution(0, DType::s8);
  conv.x = op::packed_tensor(kApart, DType::s8, {1, 2, 4, 4, 32});
  conv.w = op::packed_tensor(2 * kApart, DType::s8, {2, 3, 3, 64, 32});
  conv.y = op::packed_tensor(3 * kApart, DType::s8, {1, 2, 4, 4, 32});
  conv.padding = conv.stride = conv.dilation = {1, 1};
  conv.c = conv.y;
  conv.c.address = 4 * kApart;
  if (GetParam() != "emulator:sm_80") {
    EXPECT_THAT(engine::to_text(engine().explain(conv)),
                testing::HasSubstr("sm90_gemm: A is an im2col matrix of images with blocks of channels"));
  }
  conv.epilogue = *op::parse_epilogue("D = relu(alpha * acc + beta * C + row(bias))", DType::f32);
  conv.alpha = 0.5;
  conv.beta = 1.0;
  conv.tensors = {{"bias", op::packed_tensor(5 * kApart, DType::f32, {1, 2, 1, 1, 32})}};
  GuardedConvolution guarded(engine().device(), conv);
  std::map<std::string, registry::KernelPtr> chosen;
  for (const registry::KernelPtr& kernel : kernels(guarded.on_device())) chosen[kernel->metadata().family] = kernel;
  for (const engine::RankedKernel& candidate : engine().find_kernels(guarded.on_device())) {
    if (plan::tiling(candidate.kernel->metadata().design).split_k > 1) chosen.insert({"split-K", candidate.kernel});
  }
  EXPECT_EQ(chosen.size(), 3U);
  for (const auto& [name, kernel] : chosen) {
    SCOPED_TRACE(name);
    expect_equal_to_reference(kernel, guarded);
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, Convolutions, testing::ValuesIn(devices()),
                         [](const auto& test) { return identifier(test.param); });

}  // namespace
}  // namespace tilewright::conformance
