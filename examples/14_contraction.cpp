// A contraction of tensors with four modes, whose modes c and d are summed in different orders in A and B, on the
// host's data. Nothing is transposed or copied.
#include <cstdio>
#include <vector>

#include "tilewright/engine/engine.hpp"

namespace {

using namespace tilewright;

op::Tensor packed(const std::vector<float>& data, const op::Dims& shape) {
  return op::packed_tensor(reinterpret_cast<std::uint64_t>(data.data()), DType::f32, shape);
}

}  // namespace

int main() {
  constexpr int a = 6, b = 5, c = 8, d = 7, e = 4, f = 3;
  std::vector<float> x(a * b * c * d), y(d * c * e * f);
  const std::vector<float> out(a * b * e * f);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 5);
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = static_cast<float>(i % 3);

  op::Contraction contraction{.a = packed(x, {a, b, c, d}),
                              .b = packed(y, {d, c, e, f}),
                              .c = {},
                              .d = packed(out, {a, b, e, f}),
                              .modes_a = "abcd",
                              .modes_b = "dcef",
                              .modes_d = "abef"};
  engine::Engine engine;
  engine.run(contraction);

  float expected = 0;  // the last element
  for (int i = 0; i < c; ++i) {
    for (int j = 0; j < d; ++j) {
      const int last_of_x = (a * b - 1) * c * d + i * d + j, last_of_y = (j * c + i + 1) * e * f - 1;
      expected += x[static_cast<std::size_t>(last_of_x)] * y[static_cast<std::size_t>(last_of_y)];
    }
  }
  std::printf("%s: %s; the last element is %g\n", engine.device()->properties().name.c_str(),
              op::classes_text(contraction).c_str(), out.back());
  return out.back() == expected ? 0 : 1;
}
