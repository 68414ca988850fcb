#include "tests/unit/op/direct_convolution.hpp"

#include <algorithm>
#include <random>

#include "tilewright/op/fill.hpp"

namespace tilewright::op {
namespace {

constexpr std::int64_t kBlock = 32;  // channels of NC32HW32 and C32RSK32

bool has_blocks(const Tensor& tensor) { return tensor.shape.rank() == 5; }

/// The coordinates of an element, in the order of the tensor's modes.
Dims pixel(const Tensor& images, std::int64_t n, std::int64_t h, std::int64_t w, std::int64_t c) {
  return has_blocks(images) ? Dims{n, c / kBlock, h, w, c % kBlock} : Dims{n, h, w, c};
}
Dims tap(const Tensor& filters, std::int64_t k, std::int64_t r, std::int64_t s, std::int64_t c) {
  return has_blocks(filters) ? Dims{c / kBlock, r, s, k, c % kBlock} : Dims{k, r, s, c};
}

double element(const Tensor& tensor, const Dims& at) {
  std::int64_t offset = 0;
  for (int mode = 0; mode < at.rank(); ++mode) offset += at[mode] * tensor.stride[mode];
  return load_at(tensor, offset);
}

std::size_t packed_index(const Tensor& tensor, const Dims& at) {
  std::int64_t index = 0;
  for (int mode = 0; mode < at.rank(); ++mode) index = index * tensor.shape[mode] + at[mode];
  return static_cast<std::size_t>(index);
}

/// The extents that both layouts have, by their usual names; `c` is that of a group.
struct Extents {
  explicit Extents(const Conv2d& conv)
      : h(conv.x.shape[has_blocks(conv.x) ? 2 : 1]),
        w(conv.x.shape[has_blocks(conv.x) ? 3 : 2]),
        p(conv.y.shape[has_blocks(conv.y) ? 2 : 1]),
        q(conv.y.shape[has_blocks(conv.y) ? 3 : 2]),
        k(conv.w.shape[has_blocks(conv.w) ? 3 : 0]),
        c(has_blocks(conv.w) ? conv.w.shape[0] * kBlock : conv.w.shape[3]) {}
  std::int64_t h, w, p, q, k, c;
};

/// Adds the products of pixel (n, p, q) of y and filter k.
void add_products(const Conv2d& conv, std::int64_t n, std::int64_t p, std::int64_t q, std::int64_t k,
                  std::vector<double>& sums) {
  const Extents all(conv);
  const std::int64_t filters = all.k / conv.groups;
  const Dims of_y = pixel(conv.y, n, p, q, k);
  for (std::int64_t r = 0; r < conv.w.shape[1]; ++r) {
    for (std::int64_t s = 0; s < conv.w.shape[2]; ++s) {
      const std::int64_t h = p * conv.stride[0] - conv.padding[0] + r * conv.dilation[0];
      const std::int64_t w = q * conv.stride[1] - conv.padding[1] + s * conv.dilation[1];
      if (h < 0 || w < 0 || h >= all.h || w >= all.w) continue;
      const bool is_reversed = conv.mode == ConvMode::convolution;
      for (std::int64_t c = 0; c < all.c; ++c) {
        const Dims of_x = pixel(conv.x, n, h, w, k / filters * all.c + c);
        const Dims of_w =
            tap(conv.w, k, is_reversed ? conv.w.shape[1] - 1 - r : r, is_reversed ? conv.w.shape[2] - 1 - s : s, c);
        switch (conv.pass) {
          case ConvPass::fprop:
            sums[packed_index(conv.y, of_y)] += element(conv.x, of_x) * element(conv.w, of_w);
            break;
          case ConvPass::dgrad:
            sums[packed_index(conv.x, of_x)] += element(conv.y, of_y) * element(conv.w, of_w);
            break;
          case ConvPass::wgrad:
            sums[packed_index(conv.w, of_w)] += element(conv.y, of_y) * element(conv.x, of_x);
            break;
        }
      }
    }
  }
}

}  // namespace

std::vector<double> direct_sums(const Conv2d& conv) {
  const Dims& shape = conv.written().shape;
  std::int64_t elements = 1;
  for (int mode = 0; mode < shape.rank(); ++mode) elements *= shape[mode];
  std::vector<double> sums(static_cast<std::size_t>(elements));
  const Extents all(conv);
  for (std::int64_t n = 0; n < conv.y.shape[0]; ++n) {
    for (std::int64_t p = 0; p < all.p; ++p) {
      for (std::int64_t q = 0; q < all.q; ++q) {
        for (std::int64_t k = 0; k < all.k; ++k) add_products(conv, n, p, q, k, sums);
      }
    }
  }
  return sums;
}

Conv2d random_convolution(std::uint64_t seed, DType type) {
  std::mt19937_64 random(seed);
  const auto from = [&](std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(high - low + 1));
  };
  const auto rarely = [&](int one_of) { return from(1, one_of) == 1; };
  Conv2d conv;
  conv.pass = static_cast<ConvPass>(seed % 3);
  conv.mode = rarely(3) ? ConvMode::convolution : ConvMode::cross_correlation;
  conv.groups = rarely(3) ? from(2, 3) : 1;
  const std::int64_t unit = rarely(4) ? 1 : 16 / bytes(type);
  const std::int64_t channels = unit * from(1, 3), filters = unit * from(1, 3);
  const std::int64_t images = from(1, 3);
  std::array<std::int64_t, 2> image{}, taps{}, positions{};
  for (std::size_t axis = 0; axis < 2; ++axis) {
    image[axis] = rarely(30) ? 0 : from(1, 9);
    taps[axis] = rarely(3) ? 1 : from(1, 4);
    conv.stride[axis] = rarely(2) ? 1 : from(1, 5);
    conv.dilation[axis] = rarely(2) ? 1 : from(1, rarely(6) ? 12 : 3);
    conv.padding[axis] = rarely(2) ? taps[axis] / 2 : from(0, 6);
    positions[axis] = conv_positions(image[axis], conv.padding[axis], conv.padding[axis], taps[axis], conv.stride[axis],
                                     conv.dilation[axis]);
    if (rarely(3)) positions[axis] = std::max<std::int64_t>(0, positions[axis] + from(-2, 2));
    positions[axis] = std::min<std::int64_t>(positions[axis], 12);
  }
  constexpr std::uint64_t kApart = std::uint64_t{1} << 40;
  conv.x = packed_tensor(kApart, type, {images, image[0], image[1], channels * conv.groups});
  conv.w = packed_tensor(2 * kApart, type, {filters * conv.groups, taps[0], taps[1], channels});
  conv.y = packed_tensor(3 * kApart, type, {images, positions[0], positions[1], filters * conv.groups});
  conv.accumulator = default_accumulator(type);
  Tensor& written = conv.pass == ConvPass::fprop ? conv.y : conv.pass == ConvPass::dgrad ? conv.x : conv.w;
  written.dtype = default_output(type);
  conv.epilogue = linear_combination(default_compute(conv.accumulator, written.dtype));
  conv.c = written;
  conv.c.address = 4 * kApart;
  conv.alpha = rarely(3) ? 2.0 : 1.0;
  conv.beta = rarely(2) ? 0.0 : 1.0;
  return conv;
}

Conv2d random_blocked_convolution(std::uint64_t seed, DType output) {
  Conv2d conv = random_convolution(3 * seed, DType::s8);  // fprop
  std::mt19937_64 random(seed);
  const auto blocks = [&] { return 1 + static_cast<std::int64_t>(random() % 3); };
  const std::int64_t n = conv.x.shape[0], of_x = blocks(), of_y = blocks();
  const bool has_other_output = random() % 4 == 0;
  conv.groups = 1;
  conv.x = packed_tensor(conv.x.address, DType::s8, {n, of_x, conv.x.shape[1], conv.x.shape[2], kBlock});
  conv.w = packed_tensor(conv.w.address, DType::s8, {of_x, conv.w.shape[1], conv.w.shape[2], of_y * kBlock, kBlock});
  const std::int64_t p = conv.y.shape[1], q = conv.y.shape[2];
  conv.y = packed_tensor(conv.y.address, output,
                         has_other_output ? Dims{n, p, q, of_y * kBlock} : Dims{n, of_y, p, q, kBlock});
  conv.epilogue = linear_combination(default_compute(conv.accumulator, output));
  const std::uint64_t address_of_c = conv.c.address;
  conv.c = conv.y;
  conv.c.address = address_of_c;
  return conv;
}

std::string to_string(const Conv2d& conv) {
  return fmt::format("{} x{} w{} y{} padding {},{} stride {},{} dilation {},{} groups {} {}", name(conv.pass),
                     to_string(conv.x.shape), to_string(conv.w.shape), to_string(conv.y.shape), conv.padding[0],
                     conv.padding[1], conv.stride[0], conv.stride[1], conv.dilation[0], conv.dilation[1], conv.groups,
                     name(conv.mode));
}

}  // namespace tilewright::op
