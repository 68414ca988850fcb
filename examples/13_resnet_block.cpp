// A bottleneck block of ResNet-50, forward and backward: y = relu(conv3(relu(conv2(relu(conv1(x))))) + x).
//
// Each convolution is one launch with its bias, its activation and the residual. In the backward pass, the gradient of
// each relu is part of the convolution before it, and the sum of both gradients of x is part of the last one. As in
// inference, the batch normalisation is folded into weights and biases. All numbers are small integers, so that every
// order of addition gives the same bits as the loops below.
#include <algorithm>
#include <cstdio>
#include <random>
#include <string_view>
#include <vector>

#include "tilewright/engine/engine.hpp"
#include "tilewright/op/epilogue_text.hpp"

namespace {

using namespace tilewright;
using Floats = std::vector<float>;

constexpr int kImages = 2, kExtent = 7, kWidth = 64, kInner = 16;  // in ResNet-50: 56, 256 and 64
constexpr int kPixels = kImages * kExtent * kExtent;

Floats integers(std::size_t count, int most) {
  static std::mt19937 random(1);
  std::uniform_int_distribution<int> draw(-most, most);
  Floats values(count);
  std::ranges::generate(values, [&] { return static_cast<float>(draw(random)); });
  return values;
}

std::size_t place(int element) { return static_cast<std::size_t>(element); }

/// The extents of a convolution whose padding keeps the pixels as they are.
struct Layer {
  int channels, filters, taps;

  op::Dims images(int of) const { return {kImages, kExtent, kExtent, of}; }
  op::Dims weights() const { return {filters, taps, taps, channels}; }
  std::size_t weight_count() const { return place(filters * taps * taps * channels); }
};
constexpr Layer kFirst{kWidth, kInner, 1}, kSecond{kInner, kInner, 3}, kThird{kInner, kWidth, 1};

op::Tensor tensor(const Floats& data, const op::Dims& shape) {
  return op::packed_tensor(reinterpret_cast<std::uint64_t>(data.data()), DType::f32, shape);
}
op::Tensor vector_of(const Floats& data) { return tensor(data, {1, 1, 1, static_cast<std::int64_t>(data.size())}); }

/// A pass of the layer: x (or its gradient), w (or its gradient) and y (or its gradient) have the usual shapes.
op::Conv2d convolution(op::ConvPass pass, const Layer& layer, const Floats& x, const Floats& w, const Floats& y) {
  op::Conv2d conv{.pass = pass,
                  .x = tensor(x, layer.images(layer.channels)),
                  .w = tensor(w, layer.weights()),
                  .y = tensor(y, layer.images(layer.filters)),
                  .c = {},
                  .padding = {layer.taps / 2, layer.taps / 2}};
  conv.epilogue = op::parse_epilogue("D = acc", DType::f32).value_or_throw();
  return conv;
}

op::Conv2d with_epilogue(op::Conv2d conv, std::string_view text, std::vector<op::NamedTensor> tensors) {
  conv.epilogue = op::parse_epilogue(text, DType::f32).value_or_throw();
  conv.tensors = std::move(tensors);
  return conv;
}

/// Calls visit(pixel of x, pixel of y, tap) for every product of the layer.
template <class Visit>
void for_each_product(const Layer& layer, const Visit& visit) {
  const int border = layer.taps / 2;
  for (int y = 0; y < kPixels; ++y) {
    const int image = y / (kExtent * kExtent), p = y / kExtent % kExtent, q = y % kExtent;
    for (int tap = 0; tap < layer.taps * layer.taps; ++tap) {
      const int h = p - border + tap / layer.taps, w = q - border + tap % layer.taps;
      if (h >= 0 && w >= 0 && h < kExtent && w < kExtent) visit((image * kExtent + h) * kExtent + w, y, tap);
    }
  }
}

/// Adds all products of the layer to the one of x, w and y that the pass computes.
void accumulate(op::ConvPass pass, const Layer& layer, Floats& x, Floats& w, Floats& y) {
  for_each_product(layer, [&](int of_x, int of_y, int tap) {
    for (int k = 0; k < layer.filters; ++k) {
      float& out = y[place(of_y * layer.filters + k)];
      for (int c = 0; c < layer.channels; ++c) {
        float& in = x[place(of_x * layer.channels + c)];
        float& weight = w[place((k * layer.taps * layer.taps + tap) * layer.channels + c)];
        if (pass == op::ConvPass::fprop) out += in * weight;
        if (pass == op::ConvPass::dgrad) in += out * weight;
        if (pass == op::ConvPass::wgrad) weight += out * in;
      }
    }
  });
}

Floats forward_reference(const Layer& layer, Floats& x, Floats& w, const Floats& bias, const Floats* residual) {
  Floats y(static_cast<std::size_t>(kPixels * layer.filters));
  accumulate(op::ConvPass::fprop, layer, x, w, y);
  for (std::size_t i = 0; i < y.size(); ++i)
    y[i] = std::max(y[i] + bias[i % bias.size()] + (residual == nullptr ? 0.0F : (*residual)[i]), 0.0F);
  return y;
}

void mask_by(const Floats& positive, Floats& values) {
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = positive[i] > 0 ? values[i] : 0.0F;
}
Floats sum_over_pixels(const Floats& values, int channels) {
  Floats sums(static_cast<std::size_t>(channels));
  for (std::size_t i = 0; i < values.size(); ++i) sums[i % sums.size()] += values[i];
  return sums;
}

}  // namespace

int main() {
  using enum op::ConvPass;
  constexpr std::size_t kOuterElements = kPixels * kWidth, kInnerElements = kPixels * kInner;
  Floats x = integers(kOuterElements, 2), w1 = integers(kFirst.weight_count(), 1),
         w2 = integers(kSecond.weight_count(), 1), w3 = integers(kThird.weight_count(), 1);
  const Floats b1 = integers(kInner, 4), b2 = integers(kInner, 4), b3 = integers(kWidth, 4);
  const Floats dy = integers(kOuterElements, 2);
  Floats h1(kInnerElements), h2(kInnerElements), y(kOuterElements);
  engine::Engine engine;

  constexpr std::string_view kBias = "D = relu(acc + row(bias))", kResidual = "D = relu(acc + row(bias) + residual)";
  engine.run(with_epilogue(convolution(fprop, kFirst, x, w1, h1), kBias, {{"bias", vector_of(b1)}}));
  engine.run(with_epilogue(convolution(fprop, kSecond, h1, w2, h2), kBias, {{"bias", vector_of(b2)}}));
  engine.run(with_epilogue(convolution(fprop, kThird, h2, w3, y), kResidual,
                           {{"bias", vector_of(b3)}, {"residual", tensor(x, kThird.images(kWidth))}}));

  // The result of a relu is greater than 0 where its gradient is 1. The gradient of a bias is the sum of the gradient
  // over the pixels, which the same launch leaves in db.
  constexpr std::string_view kGradient = "D = where(h > 0, acc, 0); row(db) = sum(where(h > 0, acc, 0))";
  Floats d3 = dy, d2(kInnerElements), d1(kInnerElements), dx(kOuterElements);
  Floats dw1(w1.size()), dw2(w2.size()), dw3(w3.size()), db1(kInner), db2(kInner);
  mask_by(y, d3);
  const auto masked = [&](const op::Conv2d& conv, const Floats& h, const Floats& db) {
    return with_epilogue(conv, kGradient, {{"h", tensor(h, conv.x.shape)}, {"db", vector_of(db)}});
  };
  engine.run(convolution(wgrad, kThird, h2, dw3, d3));
  engine.run(masked(convolution(dgrad, kThird, d2, w3, d3), h2, db2));
  engine.run(convolution(wgrad, kSecond, h1, dw2, d2));
  engine.run(masked(convolution(dgrad, kSecond, d1, w2, d2), h1, db1));
  engine.run(convolution(wgrad, kFirst, x, dw1, d1));
  op::Conv2d last = convolution(dgrad, kFirst, dx, w1, d1);  // the gradients of both paths
  last.epilogue = op::parse_epilogue("D = acc + C", DType::f32).value_or_throw();
  last.c = tensor(d3, last.x.shape);
  last.beta = 1.0;
  engine.run(last);

  Floats e1 = forward_reference(kFirst, x, w1, b1, nullptr), e2 = forward_reference(kSecond, e1, w2, b2, nullptr);
  const Floats expected_y = forward_reference(kThird, e2, w3, b3, &x);
  Floats g3 = dy, g2(kInnerElements), g1(kInnerElements);
  Floats of_w1(w1.size()), of_w2(w2.size()), of_w3(w3.size());
  mask_by(expected_y, g3);
  accumulate(wgrad, kThird, e2, of_w3, g3);
  accumulate(dgrad, kThird, g2, w3, g3);
  mask_by(e2, g2);
  accumulate(wgrad, kSecond, e1, of_w2, g2);
  accumulate(dgrad, kSecond, g1, w2, g2);
  mask_by(e1, g1);
  accumulate(wgrad, kFirst, x, of_w1, g1);
  Floats gx = g3;
  accumulate(dgrad, kFirst, gx, w1, g1);

  bool is_right = true;
  for (const auto& [name, result, expected] : {std::tuple{"y", &y, expected_y},
                                               {"dw1", &dw1, of_w1},
                                               {"dw2", &dw2, of_w2},
                                               {"dw3", &dw3, of_w3},
                                               {"db1", &db1, sum_over_pixels(g1, kInner)},
                                               {"db2", &db2, sum_over_pixels(g2, kInner)},
                                               {"dx", &dx, gx}}) {
    if (*result == expected) continue;
    std::printf("%s is wrong\n", name);
    is_right = false;
  }
  std::printf("%s: a block of %d images of %dx%dx%d: result and gradients are %s\n",
              engine.device()->properties().name.c_str(), kImages, kExtent, kExtent, kWidth,
              is_right ? "as expected" : "wrong");
  return is_right ? 0 : 1;
}
