// Ahead-of-time compilation: a kernel is compiled for shapes without memory and saved to a file. An engine that has no
// compiler loads and runs it.
#include <cstdio>
#include <filesystem>
#include <vector>

#include "tilewright/tilewright.hpp"

using namespace tilewright;

constexpr int m = 64, n = 48, k = 32;

/// The problem on the given memory; without memory, on shapes alone.
op::Gemm problem(const float* a, const float* b, float* d) {
  op::Gemm gemm;
  gemm.a = op::matrix(a, DType::f32, m, k);
  gemm.b = op::matrix(b, DType::f32, k, n);
  gemm.d = op::matrix(d, DType::f32, m, n);
  if (d == nullptr) {
    for (op::Tensor* tensor : {&gemm.a, &gemm.b, &gemm.d}) tensor->device = {op::MemoryDevice::Kind::shape, 0};
  }
  return gemm;
}

int main() {
  const std::string path = std::filesystem::temp_directory_path() / "tilewright_example_06.twk";
  {
    engine::Engine engine;
    const op::Gemm shape = problem(nullptr, nullptr, nullptr);
    compile::write_artifact(*engine.compile(engine.find_kernels(shape).front().kernel), path);
  }

  engine::Options options = engine::Options::from_environment();
  options.cache_on_disk = false;
  options.toolchain.cuda_home = "/nowhere";
  engine::Engine engine(options);
  std::vector<float> a(m * k, 0.5F), b(k * n, 2.0F), d(m * n);
  const op::Gemm gemm = problem(a.data(), b.data(), d.data());
  // A file that is damaged, or belongs to another kernel or device, is refused with the reason.
  const auto artifact = std::make_shared<const compile::Artifact>(compile::read_artifact(path).value_or_throw());
  engine.run(gemm, engine.find_kernel(artifact->name, gemm), artifact, {});
  std::filesystem::remove(path);
  std::printf("%s, %zu bytes of PTX: D[0,0] = %g\n", artifact->name.c_str(), artifact->ptx.size(), d[0]);
  return d[0] == 0.5F * 2.0F * k && engine.cache().counters().compiles == 0 ? 0 : 1;
}
