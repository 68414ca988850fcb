// sm90_gemm on im2col operands: loads by TMA, padded taps, and copies of filters in the workspace.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/conformance/convolutions.hpp"
#include "tests/conformance/sm90_design_case.hpp"
#include "tilewright/op/tap_columns.hpp"

namespace tilewright::conformance {
namespace {

using op::ConvPass;

class Sm90Convolutions : public Convolutions {
 protected:
  void SetUp() override {
    Convolutions::SetUp();
    if (GetParam() == "emulator:sm_80") GTEST_SKIP() << "no TMA";
  }
};

// A mainloop step is no longer than K: 16 and 32 elements of f16 have rows of 32 and 64 bytes in shared memory.
TEST_P(Sm90Convolutions, MultiplyFewChannelsInShortSteps) {
  const Shape shape{.n = 2, .h = 9, .w = 8, .c = 32, .k = 16, .r = 1, .s = 1};
  for (const auto& [pass, k] : {std::pair{ConvPass::fprop, 32}, {ConvPass::dgrad, 16}}) {
    GuardedConvolution guarded(engine().device(), convolution(pass, shape, DType::f16));
    const std::vector<registry::KernelPtr> all = kernels(guarded.on_device());
    const auto kernel = std::ranges::find(all, "sm90_gemm", [](const auto& each) { return each->metadata().family; });
    ASSERT_NE(kernel, all.end());
    EXPECT_EQ(plan::tiling((*kernel)->metadata().design).tile.k, k);
    expect_exact_of(*kernel, guarded);
  }
}

// Boxes of TMA end behind the last channel of a tap, where both operands are filled with zeros.
TEST_P(Sm90Convolutions, PadTaps) {
  const auto padded_kernels = [&](const op::Problem& problem) {
    return first_kernels(problem, [](const registry::KernelMetadata& metadata) {
      const bool is_padded = metadata.family == "sm90_gemm" && metadata.operands().a.has_padded_taps;
      return is_padded ? fmt::format("rows of {}", metadata.operands().a.tap_row) : std::string();
    });
  };
  struct Case {
    ConvPass pass;
    DType type;
    Shape shape;
    std::size_t lengths;  // of rows
  };
  const Shape wide{.n = 2, .h = 9, .w = 7, .c = 48, .k = 40, .r = 3, .s = 3, .padding = 1};
  const Shape strided{.n = 1, .h = 11, .w = 8, .c = 72, .k = 24, .r = 3, .s = 4, .padding = 2, .stride = 2};
  for (const auto& [pass, type, shape, lengths] : {Case{ConvPass::fprop, DType::f16, wide, 1},
                                                   {ConvPass::dgrad, DType::f16, wide, 2},
                                                   {ConvPass::wgrad, DType::f16, wide, 0},
                                                   {ConvPass::fprop, DType::f16, strided, 3},
                                                   {ConvPass::dgrad, DType::f16, strided, 1},
                                                   {ConvPass::fprop, DType::f32, strided, 2},
                                                   {ConvPass::fprop, DType::s8, wide, 1}}) {
    op::Conv2d conv = tensor_core_convolution(pass, shape, type);
    conv.mode = shape.stride == 2 ? op::ConvMode::convolution : op::ConvMode::cross_correlation;
    SCOPED_TRACE(op::to_string(conv));
    GuardedConvolution guarded(engine().device(), conv);
    const std::vector<registry::KernelPtr> all = padded_kernels(guarded.on_device());
    EXPECT_EQ(all.size(), lengths);
    for (const registry::KernelPtr& kernel : all) expect_exact_of(kernel, guarded);
  }
}

// The taps of a row of the window read the same pixels from shared memory. What tiles compute behind the ends of lines
// is not stored.
TEST_P(Sm90Convolutions, SharePixelsAmongTaps) {
  const auto sharing_kernels = [&](const op::Problem& problem) {
    return first_kernels(problem, [](const registry::KernelMetadata& metadata) {
      if (metadata.family != "sm90_gemm" || metadata.operands().a.shared_taps == 0) return std::string();
      const auto& design = std::get<plan::Sm90GemmDesign>(metadata.design);
      return fmt::format("{} rows, {}", metadata.operands().a.tap_row, design.swaps_operands ? "swapped" : "as it is");
    });
  };
  struct Case {
    ConvPass pass;
    DType type;
    Shape shape;
  };
  const Shape square{.n = 2, .h = 9, .w = 7, .c = 64, .k = 64, .r = 3, .s = 3, .padding = 1};
  const Shape wide{.n = 1, .h = 5, .w = 40, .c = 128, .k = 128, .r = 2, .s = 5, .padding = 3};
  const Shape dilated{.n = 2, .h = 12, .w = 13, .c = 64, .k = 192, .r = 1, .s = 2, .padding = 2, .dilation = 3};
  const Shape padded{.n = 2, .h = 9, .w = 7, .c = 48, .k = 40, .r = 3, .s = 3, .padding = 1};
  const Shape one_column{.n = 3, .h = 5, .w = 3, .c = 64, .k = 24, .r = 3, .s = 3};
  const Shape far{.n = 1, .h = 4, .w = 5, .c = 24, .k = 64, .r = 2, .s = 2, .padding = 3};  // beyond the filter
  const Shape column{.n = 3, .h = 9, .w = 5, .c = 64, .k = 72, .r = 5, .s = 1, .padding = 2};
  for (const auto& [pass, type, shape] : {Case{ConvPass::fprop, DType::f16, square},
                                          {ConvPass::dgrad, DType::f16, square},
                                          {ConvPass::fprop, DType::bf16, wide},
                                          {ConvPass::dgrad, DType::bf16, wide},
                                          {ConvPass::fprop, DType::f16, dilated},
                                          {ConvPass::dgrad, DType::f16, dilated},
                                          {ConvPass::fprop, DType::f16, padded},
                                          {ConvPass::dgrad, DType::f16, padded},
                                          {ConvPass::fprop, DType::f32, square},
                                          {ConvPass::fprop, DType::s8, wide},
                                          {ConvPass::fprop, DType::f16, one_column},
                                          {ConvPass::dgrad, DType::f16, far},
                                          {ConvPass::fprop, DType::f16, column},
                                          {ConvPass::dgrad, DType::f16, column}}) {
    for (const op::ConvMode mode : {op::ConvMode::cross_correlation, op::ConvMode::convolution}) {
      op::Conv2d conv = tensor_core_convolution(pass, shape, type);
      conv.mode = mode;
      conv.c = {};
      conv.beta = 0;
      SCOPED_TRACE(op::to_string(conv));
      GuardedConvolution guarded(engine().device(), conv);
      const std::vector<registry::KernelPtr> all = sharing_kernels(guarded.on_device());
      EXPECT_FALSE(all.empty());
      for (const registry::KernelPtr& kernel : all) expect_exact_of(kernel, guarded);
    }
  }
}

// The columns of a filter gradient are padded, and the taps of a row of the window are columns of a tile that read the
// same pixels. D is stored tap by tap, by plain stores of vectors or by those of split-K.
TEST_P(Sm90Convolutions, PadColumnsAndSharePixelsAmongThem) {
  const Shape square{.n = 4, .h = 9, .w = 7, .c = 64, .k = 64, .r = 3, .s = 3, .padding = 1};
  const Shape wide{.n = 2, .h = 5, .w = 40, .c = 128, .k = 136, .r = 2, .s = 5, .padding = 3};
  const Shape dilated{.n = 2, .h = 12, .w = 13, .c = 64, .k = 192, .r = 1, .s = 2, .padding = 2, .dilation = 3};
  const Shape padded{.n = 3, .h = 9, .w = 7, .c = 48, .k = 40, .r = 3, .s = 3, .padding = 1};
  const Shape narrow{.n = 1, .h = 33, .w = 5, .c = 24, .k = 64, .r = 2, .s = 7, .padding = 3};  // beyond the filter
  const Shape column{.n = 3, .h = 9, .w = 5, .c = 64, .k = 72, .r = 5, .s = 1, .padding = 2};
  const Shape strided{.n = 2, .h = 11, .w = 18, .c = 72, .k = 24, .r = 3, .s = 4, .padding = 2, .stride = 2};
  for (const Shape& shape : {square, wide, dilated, padded, narrow, column, strided}) {
    for (const auto& [mode, type] :
         {std::pair{op::ConvMode::cross_correlation, DType::f16}, {op::ConvMode::convolution, DType::bf16}}) {
      op::Conv2d conv = tensor_core_convolution(ConvPass::wgrad, shape, type);
      conv.mode = mode;
      conv.c = {};
      conv.beta = 0;
      SCOPED_TRACE(op::to_string(conv));
      GuardedConvolution guarded(engine().device(), conv);
      for (const int row : {16, 32, 64}) {  // channels of a tap
        const bool is_padded = shape.c % row != 0, shares = shape.stride == 1;
        const int taps = shares ? static_cast<int>(shape.s == 1 ? shape.r : shape.s) : 1;
        if (taps * row > 256 || (!is_padded && !shares)) continue;
        op::GemmView view = op::view(guarded.on_device());
        if (is_padded) view = op::with_padded_columns(std::move(view), row);
        if (shares) view = op::with_shared_columns(std::move(view));
        for (const auto& [rows, cluster_n, split_k] : {std::tuple{64, 1, 1}, {128, 2, 2}}) {
          plan::Sm90GemmDesign design = plan::sm90_design({{rows, taps * row, 64}, 3, {rows / 16, 1}}, {1, cluster_n});
          design.split_k = split_k;
          SCOPED_TRACE(plan::to_string(plan::Design{design}));
          expect_exact_in_two_runs_of(engine().make_kernel(op::describe(view), design), guarded);
        }
      }
    }
  }
}

// Where the channels of a tap end, a box of the filter must not reach the next tap: zeros of the image times its
// infinities would be NaNs.
TEST_P(Sm90Convolutions, PaddedTapsIgnoreInfinitiesOfTheNextTap) {
  constexpr std::uint16_t kOne = 0x3c00, kInfinity = 0x7c00;
  constexpr std::int64_t kChannels = 48, kFilters = 8;
  op::Conv2d conv =
      convolution(ConvPass::fprop,
                  {.n = 1, .h = 1, .w = 4, .c = kChannels, .k = kFilters, .r = 1, .s = 2, .padding = 0}, DType::f16);
  conv.epilogue = *op::parse_epilogue("D = acc", DType::f32);
  conv.c = {};
  conv.padding = {0, 1};
  conv.y = op::packed_tensor(0, DType::f16, {1, 1, 1, kFilters});  // of the padding and the first pixel
  std::vector<std::uint16_t> x(4 * kChannels, kOne), w(kFilters * 2 * kChannels, kOne), y(kFilters, 0x7e00);
  w[kChannels] = kInfinity;  // of the first filter, behind the channels of its first tap
  set_addresses(conv, x, w, y);
  for (const engine::RankedKernel& candidate : engine().find_kernels(conv)) {
    const registry::KernelMetadata& metadata = candidate.kernel->metadata();
    if (metadata.family != "sm90_gemm" || !metadata.operands().a.has_padded_taps) continue;
    engine().run(conv, candidate.kernel);
    EXPECT_EQ(y[0], kInfinity);
    EXPECT_EQ(y[1], 0x5200);  // 48
    return;
  }
  FAIL() << "no kernel pads the taps";
}

TEST_P(Sm90Convolutions, LoadIm2colByTma) {
  const std::vector<Shape> shapes{
      {.n = 2, .h = 9, .w = 7, .c = 64, .k = 128, .r = 3, .s = 3, .padding = 1},
      {.n = 3, .h = 11, .w = 6, .c = 128, .k = 64, .r = 3, .s = 2, .padding = 2, .stride = 2},
      {.n = 1, .h = 12, .w = 13, .c = 64, .k = 64, .r = 2, .s = 3, .padding = 1, .dilation = 3},
      {.n = 2, .h = 8, .w = 8, .c = 40, .k = 24, .r = 1, .s = 1, .stride = 3},  // nine classes of pixels
      {.n = 2, .h = 10, .w = 8, .c = 64, .k = 64, .r = 2, .s = 2, .stride = 4},
      {.n = 2, .h = 7, .w = 10, .c = 96, .k = 48, .r = 3, .s = 3, .padding = 1},  // tap rows of 64 and 32 bytes
      {.n = 3, .h = 6, .w = 9, .c = 16, .k = 8, .r = 5, .s = 3, .padding = 2},    // of 32 and 16 bytes
      {.n = 2, .h = 9, .w = 8, .c = 72, .k = 64, .r = 1, .s = 1, .stride = 2},    // pixels without products
      {.n = 1, .h = 13, .w = 9, .c = 64, .k = 32, .r = 3, .s = 4, .padding = 2, .stride = 2, .dilation = 2},
      {.n = 2, .h = 9, .w = 11, .c = 64, .k = 96, .r = 3, .s = 3, .padding = 1, .groups = 4},
      // Stages walk along the taps; some classes of pixels of the gradient meet none.
      {.n = 1, .h = 6, .w = 6, .c = 256, .k = 16, .r = 3, .s = 3, .padding = 1},
      {.n = 1, .h = 8, .w = 7, .c = 16, .k = 256, .r = 3, .s = 2, .padding = 2, .stride = 2, .dilation = 2},
  };
  for (const Shape& shape : shapes) {
    for (const ConvPass pass : {ConvPass::fprop, ConvPass::dgrad, ConvPass::wgrad}) {
      for (const op::ConvMode mode : {op::ConvMode::cross_correlation, op::ConvMode::convolution}) {
        op::Conv2d conv = convolution(pass, shape, DType::f16);
        conv.mode = mode;
        if (mode == op::ConvMode::convolution && shape.stride == 1 && shape.dilation == 1) continue;
        const std::vector<std::string> families = expect_exact_in_every_family(conv);
        const bool is_refused = pass == ConvPass::dgrad && (shape.stride > 3 || shape.groups > 1);
        EXPECT_EQ(std::ranges::count(families, "sm90_gemm"), is_refused ? 0 : 1) << op::to_string(conv);
      }
    }
  }
}

TEST_P(Sm90Convolutions, LoadIm2colInEveryDesign) {
  const Shape wide{.n = 2, .h = 17, .w = 13, .c = 64, .k = 128, .r = 2, .s = 3, .padding = 1};
  const Shape narrow{
      .n = 2, .h = 17, .w = 13, .c = 32, .k = 48, .r = 2, .s = 3, .padding = 1};  // several boxes per stage
  const Shape strided{.n = 2, .h = 15, .w = 18, .c = 64, .k = 64, .r = 3, .s = 3, .padding = 1, .stride = 2};
  for (const auto& [pass, shape] : {std::pair{ConvPass::fprop, wide},
                                    {ConvPass::dgrad, wide},
                                    {ConvPass::wgrad, wide},
                                    {ConvPass::fprop, narrow},
                                    {ConvPass::wgrad, narrow},
                                    {ConvPass::dgrad, strided}}) {
    const op::Conv2d conv = convolution(pass, shape, DType::f16);
    GuardedConvolution guarded(engine().device(), conv);
    for (const DesignCase& tested : {DesignCase{"cooperative", {128, 64}, 2, 3},
                                     {"two atoms", {256, 64}, 2, 3},
                                     {"ping-pong", {64, 64}, 2, 4, {1, 1}, plan::Schedule::ping_pong},
                                     {"multicast of both", {64, 64}, 1, 4, {2, 2}},
                                     {"swapped", {64, 64}, 1, 4, {1, 1}, plan::Schedule::cooperative, true},
                                     {"split-K", {64, 64}, 1, 4, {1, 1}, plan::Schedule::cooperative, false, 3}}) {
      const bool is_gradient = pass == ConvPass::dgrad;
      const bool is_as_in_fprop = is_gradient && shape.stride == 1 && tested.cluster[0] == 1 && !tested.swaps;
      const bool is_refused = is_gradient && shape.stride > 1 && (tested.swaps || tested.split_k > 1);
      if (is_as_in_fprop || is_refused) continue;
      SCOPED_TRACE(fmt::format("{} {}", op::name(pass), tested.name));
      const op::GemmSignature signature = op::describe(op::view(guarded.on_device()));
      plan::Sm90GemmDesign design = design_of(tested, signature);
      design.target = engine().device()->properties().target;
      expect_exact_of(engine().make_kernel(signature, design), guarded);
    }
  }
}

// wgmma takes elements that are not 16 bits wide along K only, but the channels of a filter are contiguous along N of
// dgrad. All CTAs copy its taps to lines along K first.
TEST_P(Sm90Convolutions, RepackTheFilterOfInputGradients) {
  struct Case {
    DType type;
    Shape shape;
  };
  for (const auto& [type, shape] :
       {Case{DType::f32, {.n = 2, .h = 9, .w = 7, .c = 72, .k = 36, .r = 3, .s = 3, .padding = 1}},
        {DType::f32, {.n = 1, .h = 8, .w = 9, .c = 32, .k = 64, .r = 1, .s = 4, .padding = 2}},
        {DType::f32, {.n = 2, .h = 6, .w = 6, .c = 40, .k = 4, .r = 5, .s = 1, .dilation = 1}},
        {DType::s8, {.n = 2, .h = 8, .w = 7, .c = 80, .k = 48, .r = 2, .s = 3, .padding = 1}},
        {DType::e4m3, {.n = 1, .h = 7, .w = 7, .c = 32, .k = 32, .r = 3, .s = 3}}}) {
    for (const ConvPass pass : {ConvPass::dgrad, ConvPass::wgrad}) {
      op::Conv2d conv = tensor_core_convolution(pass, shape, type);
      conv.mode = shape.s == 4 ? op::ConvMode::convolution : op::ConvMode::cross_correlation;
      SCOPED_TRACE(op::to_string(conv));
      const std::vector<std::string> families = expect_exact_in_every_family(conv);
      EXPECT_EQ(std::ranges::count(families, "sm90_gemm"), pass == ConvPass::dgrad ? 1 : 0);
    }
  }
  op::Conv2d conv = tensor_core_convolution(
      ConvPass::dgrad, {.n = 2, .h = 17, .w = 13, .c = 64, .k = 96, .r = 2, .s = 3, .padding = 1}, DType::f32);
  GuardedConvolution guarded(engine().device(), conv);
  for (const DesignCase& tested : {DesignCase{"cooperative", {128, 64}, 2, 3},
                                   {"ping-pong", {64, 64}, 2, 4, {1, 1}, plan::Schedule::ping_pong},
                                   {"multicast of both", {64, 64}, 1, 4, {2, 2}},
                                   {"swapped", {64, 64}, 1, 4, {1, 1}, plan::Schedule::cooperative, true},
                                   {"split-K", {64, 64}, 1, 4, {1, 1}, plan::Schedule::cooperative, false, 3}}) {
    SCOPED_TRACE(tested.name);
    const op::GemmSignature signature = op::describe(op::view(guarded.on_device()));
    plan::Sm90GemmDesign design = design_of(tested, signature);
    design.target = engine().device()->properties().target;
    design.tile.k = 32;
    design.repacks_operands = true;
    expect_exact_in_two_runs_of(engine().make_kernel(signature, design), guarded);
  }
  conv.w.stride[1] += 64;  // the taps have two strides
  for (const engine::RankedKernel& candidate : engine().find_kernels(conv))
    EXPECT_NE(candidate.kernel->metadata().family, "sm90_gemm");
}

// Each class of pixels has an im2col matrix of the copy of the filter.
TEST_P(Sm90Convolutions, RepackTheFilterOfStridedGradients) {
  const Shape some{.n = 2, .h = 9, .w = 8, .c = 40, .k = 36, .r = 3, .s = 3, .padding = 1, .stride = 2};
  const Shape single{.n = 1, .h = 9, .w = 6, .c = 32, .k = 32, .r = 1, .s = 1, .stride = 2};
  const Shape dilated{
      .n = 1, .h = 8, .w = 9, .c = 32, .k = 64, .r = 4, .s = 3, .padding = 2, .stride = 2, .dilation = 2};
  const Shape nine{.n = 2, .h = 10, .w = 11, .c = 32, .k = 32, .r = 4, .s = 3, .padding = 1, .stride = 3};
  for (const auto& [type, shape] :
       {std::pair{DType::f32, some}, {DType::f32, single}, {DType::f32, nine}, {DType::s8, dilated}}) {
    op::Conv2d conv = tensor_core_convolution(ConvPass::dgrad, shape, type);
    SCOPED_TRACE(op::to_string(conv));
    GuardedConvolution guarded(engine().device(), conv);
    const std::vector<registry::KernelPtr> all = kernels(guarded.on_device());
    const auto kernel = std::ranges::find(all, "sm90_gemm", [](const auto& each) { return each->metadata().family; });
    ASSERT_NE(kernel, all.end());
    expect_exact_in_two_runs_of(*kernel, guarded);
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, Sm90Convolutions, testing::ValuesIn(devices()),
                         [](const auto& test) { return identifier(test.param); });

}  // namespace
}  // namespace tilewright::conformance
