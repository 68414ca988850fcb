// A convolution with bias, residual and relu, and the gradient of its filter, on the host's data.
#include <cstdio>
#include <vector>

#include "tilewright/engine/engine.hpp"
#include "tilewright/op/epilogue_text.hpp"

namespace {

using namespace tilewright;

op::Tensor images(const std::vector<float>& data, const op::Dims& shape) {
  return op::packed_tensor(reinterpret_cast<std::uint64_t>(data.data()), DType::f32, shape);
}

}  // namespace

int main() {
  constexpr int n = 2, h = 8, w = 8, channels = 16, filters = 32, taps = 3;
  constexpr int pixels = n * h * w;  // of x, and of y, because of the padding
  const std::vector<float> x(pixels * channels, 1.0F), filter(filters * taps * taps * channels, 1.0F);
  const std::vector<float> bias(filters, 10.0F), residual(pixels * filters, -100.0F);
  const std::vector<float> y(pixels * filters), filter_gradient(filter.size());

  op::Conv2d conv{.x = images(x, {n, h, w, channels}),
                  .w = images(filter, {filters, taps, taps, channels}),
                  .y = images(y, {n, h, w, filters}),
                  .c = {},
                  .padding = {1, 1}};
  conv.epilogue = op::parse_epilogue("D = relu(acc + row(bias) + residual)", DType::f32).value_or_throw();
  conv.tensors = {{"bias", images(bias, {1, 1, 1, filters})}, {"residual", images(residual, {n, h, w, filters})}};

  engine::Engine engine;
  engine.run(conv);

  op::Conv2d gradient{.pass = op::ConvPass::wgrad,
                      .x = conv.x,
                      .w = images(filter_gradient, conv.w.shape),
                      .y = images(residual, conv.y.shape),  // the gradient of y
                      .c = {},
                      .padding = {1, 1}};
  engine.run(gradient);

  // Nine taps in the middle, four in a corner; the tap in the middle of the filter meets all pixels.
  const float middle = y[(3 * w + 3) * filters], corner = y[0];
  const float of_tap = filter_gradient[(1 * taps + 1) * channels];
  std::printf("%s: y is %g in the middle and %g in a corner, the gradient of a tap %g\n",
              engine.device()->properties().name.c_str(), middle, corner, of_tap);
  return middle == 9 * channels - 90 && corner == 0 && of_tap == -100.0F * pixels ? 0 : 1;
}
