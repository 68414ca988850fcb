// Matrices that stay in device memory: allocated once, multiplied by a prepared call on a stream, read back at the end.
#include <cstdio>
#include <memory>
#include <vector>

#include "tilewright/tilewright.hpp"

int main() {
  using namespace tilewright;
  constexpr int n = 64, steps = 3;
  constexpr std::size_t bytes = sizeof(float) * n * n;
  engine::Engine engine;
  const std::shared_ptr<runtime::Device>& device = engine.device();

  // The streams of CUDA are passed as they are: a cudaStream_t, or the handle of a runtime::Stream.
  runtime::StreamHandle stream = nullptr;
  const runtime::DeviceBuffer x(device, bytes, stream), y(device, bytes, stream), w(device, bytes, stream);
  const std::vector<float> ones(n * n, 1.0F), weights(n * n, 0.25F / n);
  device->copy_in(x.address(), ones.data(), bytes, stream);
  device->copy_in(w.address(), weights.data(), bytes, stream);

  const op::MemoryDevice memory = engine::memory_device(device->properties());
  const auto matrix = [&](const runtime::DeviceBuffer& buffer) {
    return op::matrix(buffer.address(), DType::f32, n, n, op::MatrixLayout::row_major, 0, memory);
  };
  op::Gemm forth;  // y = x * w
  forth.a = matrix(x);
  forth.b = matrix(w);
  forth.d = matrix(y);
  op::Gemm back = forth;  // x = 16 * y * w
  back.a = matrix(y);
  back.d = matrix(x);
  back.alpha = 16.0;

  // prepare() chooses, compiles and loads a kernel, and packs its arguments: run() only launches.
  const engine::PreparedCall there = engine.prepare(forth), here = engine.prepare(back);
  for (int step = 0; step < steps; ++step) {
    there.run(stream);
    here.run(stream);
  }
  std::vector<float> result(n * n);
  device->copy_out(result.data(), x.address(), bytes, stream);
  device->synchronize(stream);
  std::printf("%s: x[0,0] = %g after %d steps\n", device->properties().name.c_str(), result[0], steps);
  return result[0] == 1.0F && result.back() == 1.0F ? 0 : 1;
}
