// A kernel as a program: record it, print it, run it.
#include <cmath>
#include <cstdio>
#include <numeric>
#include <vector>

#include "examples/run_program.hpp"
#include "tilewright/program/instructions.hpp"

namespace {

using namespace tilewright::program;

/// out[i] = x[i] + y[i]
Program vector_add() {
  KernelBuilder k("vector_add", tilewright::kSm80, 128);
  const Number n = k.launch("n");
  const Value x = k.address("x", 4), y = k.address("y", 4), out = k.address("out", 4);
  k.set_grid(ceil_div(n, 128));
  const Number i = k.block() * 128 + k.thread();
  k.branch(less(i, n), [&] {
    const Value of_x = load_global(k, x, i * 4, RegisterType::f32);
    const Value of_y = load_global(k, y, i * 4, RegisterType::f32);
    store_global(k, out, i * 4, {add(k, of_x, of_y)});
  });
  return k.build();
}

}  // namespace

int main() {
  const Program program = vector_add();
  std::printf("%s", to_string(program).c_str());
  std::vector<float> x(1000), y(1000, 1.0F);
  std::iota(x.begin(), x.end(), 0.0F);

  tilewright::engine::Engine engine;
  const auto on_device_x = examples::upload(engine, x), on_device_y = examples::upload(engine, y);
  const auto out = examples::upload(engine, std::vector<float>(x.size(), NAN));
  examples::run(engine, program,
                LaunchArguments()
                    .integer("n", 1000)
                    .address("x", on_device_x.address())
                    .address("y", on_device_y.address())
                    .address("out", out.address()));
  const std::vector<float> sums = examples::download<float>(engine, out);
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (sums[i] != x[i] + y[i]) return 1;
  }
  return 0;
}
