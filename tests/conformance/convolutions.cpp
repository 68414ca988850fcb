#include "tests/conformance/convolutions.hpp"

#include <algorithm>

namespace tilewright::conformance {

op::Conv2d convolution(op::ConvPass pass, const Shape& shape, DType type) {
  using op::ConvPass;
  op::Conv2d conv;
  conv.pass = pass;
  conv.padding = {shape.padding, shape.padding};
  conv.stride = {shape.stride, shape.stride};
  conv.dilation = {shape.dilation, shape.dilation};
  conv.groups = shape.groups;
  const auto positions = [&](std::int64_t extent, std::int64_t taps) {
    return op::conv_positions(extent, shape.padding, shape.padding, taps, shape.stride, shape.dilation);
  };
  conv.x = op::packed_tensor(kApart, type, {shape.n, shape.h, shape.w, shape.c});
  conv.w = op::packed_tensor(2 * kApart, type, {shape.k, shape.r, shape.s, shape.c / shape.groups});
  conv.y =
      op::packed_tensor(3 * kApart, type, {shape.n, positions(shape.h, shape.r), positions(shape.w, shape.s), shape.k});
  conv.accumulator = op::default_accumulator(type);
  op::Tensor& written = pass == ConvPass::fprop ? conv.y : pass == ConvPass::dgrad ? conv.x : conv.w;
  written.dtype = op::default_output(type);
  conv.epilogue = op::linear_combination(op::default_compute(conv.accumulator, written.dtype));
  conv.c = written;
  conv.c.address = 4 * kApart;
  return conv;
}

op::Conv2d tensor_core_convolution(op::ConvPass pass, const Shape& shape, DType type) {
  op::Conv2d conv = convolution(pass, shape, type);
  if (type == DType::f32) conv.math = op::MathOperation::multiply_add_tf32;
  return conv;
}

op::Conv2d numbered_convolution(op::ConvPass pass, const Shape& shape, std::size_t number) {
  op::Conv2d conv = convolution(pass, shape, number % 2 == 0 ? DType::f16 : DType::bf16);
  conv.mode = number % 3 == 0 ? op::ConvMode::convolution : op::ConvMode::cross_correlation;
  conv.beta = number % 4 == 1 ? 1.0 : 0.0;
  return conv;
}

void set_addresses(op::Conv2d& conv, std::vector<std::uint16_t>& x, std::vector<std::uint16_t>& w,
                   std::vector<std::uint16_t>& y) {
  conv.x.address = reinterpret_cast<std::uint64_t>(x.data());
  conv.w.address = reinterpret_cast<std::uint64_t>(w.data());
  conv.y.address = reinterpret_cast<std::uint64_t>(y.data());
}

std::vector<registry::KernelPtr> Convolutions::kernels(const op::Problem& problem) const {
  return first_kernels(problem, [](const registry::KernelMetadata& metadata) {
    const std::string& family = metadata.family;
    const bool has_own_tests =
        family.starts_with("stem_") || family.starts_with("group_") || family.starts_with("repacked_");
    return has_own_tests ? std::string() : family;
  });
}

std::vector<registry::KernelPtr> Convolutions::kernels_of_family(const op::Problem& problem,
                                                                 std::string_view family) const {
  std::vector<registry::KernelPtr> kernels;
  for (const engine::RankedKernel& candidate : engine().find_kernels(problem)) {
    if (candidate.kernel->metadata().family == family) kernels.push_back(candidate.kernel);
  }
  return kernels;
}

void Convolutions::expect_exact_of(const registry::KernelPtr& kernel, GuardedConvolution& guarded) const {
  SCOPED_TRACE(kernel->name());
  expect_equal_to_reference(kernel, guarded);
  ASSERT_EQ(guarded.wrong(), "");
}

void Convolutions::expect_exact_in_two_runs_of(const registry::KernelPtr& kernel, GuardedConvolution& guarded) const {
  for (int run = 0; run < 2; ++run) expect_exact_of(kernel, guarded);
}

void Convolutions::expect_equal_to_reference(const registry::KernelPtr& kernel, GuardedConvolution& guarded) const {
  guarded.upload();
  engine().run(guarded.on_device(), kernel);
  guarded.download();
  const op::Comparison comparison = op::compare(op::Problem(guarded.host()));
  ASSERT_TRUE(comparison.is_exact()) << kernel->name() << ": " << op::to_string(comparison);
}

void Convolutions::expect_exact_without_product(op::Conv2d conv, std::string_view family) const {
  conv.alpha = 0.0;
  conv.beta = 2.0;
  GuardedConvolution guarded(engine().device(), conv, {.red_zone = 0});
  const std::vector<registry::KernelPtr> kernels = kernels_of_family(guarded.on_device(), family);
  ASSERT_FALSE(kernels.empty());
  expect_exact_of(kernels.front(), guarded);
}

std::vector<std::string> Convolutions::expect_exact_in_every_family(const op::Conv2d& conv, Placement placement) const {
  SCOPED_TRACE(op::to_string(conv));
  if (engine().device()->properties().emulated) placement.red_zone = 0;
  GuardedConvolution guarded(engine().device(), conv, placement);
  std::vector<std::string> families;
  for (const registry::KernelPtr& kernel : kernels(guarded.on_device())) {
    families.push_back(kernel->metadata().family);
    expect_exact_of(kernel, guarded);
  }
  const op::GemmSignature signature = op::describe(op::view(guarded.on_device()));
  const bool has_sm80 = signature.math == op::MathOperation::multiply_add_tf32 || bytes(signature.a.element) == 2;
  EXPECT_TRUE(!has_sm80 || std::ranges::count(families, "sm80_gemm") == 1);
  EXPECT_TRUE(signature.math != op::MathOperation::multiply_add || std::ranges::count(families, "simt_gemm") == 1);
  return families;
}

}  // namespace tilewright::conformance
