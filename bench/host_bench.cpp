// host_bench: host costs of compilation, cache, discovery and dispatch; and the emulator's speed.
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tilewright/base/float_format.hpp"
#include "tilewright/cache/store.hpp"
#include "tilewright/engine/engine.hpp"
#include "tilewright/runtime/cuda_device.hpp"
#include "tilewright/runtime/module.hpp"
#include "tilewright/runtime/stream.hpp"

namespace tilewright {
namespace {

constexpr Target kHopper = kSm90a;
constexpr const char* kEmulator = "emulator:sm_90a";

engine::Options options_for(const std::string& device) {
  engine::Options options = engine::Options::from_environment();
  options.device = device;
  return options;
}

/// f16 x f16 -> f16 with f32 sums: A row-major, B column-major, D row-major, at `address`.
op::Gemm f16_problem(std::int64_t size, std::uint64_t address, op::MemoryDevice device) {
  op::Gemm gemm;
  gemm.a = op::matrix(address, DType::f16, size, size, op::MatrixLayout::row_major, 0, device);
  gemm.b = op::matrix(address, DType::f16, size, size, op::MatrixLayout::column_major, 0, device);
  gemm.d =
      op::matrix(address + (std::uint64_t{1} << 32), DType::f16, size, size, op::MatrixLayout::row_major, 0, device);
  return gemm;
}

/// The f16 kernel of CTA tile 128x128x32 on mma.sync m16n8k16.
registry::KernelPtr f16_128x128x32_kernel(const engine::Engine& engine) {
  plan::Sm80GemmDesign design;
  design.target = kHopper;
  design.tile = {128, 128, 32};
  design.stages = 4;
  design.warps_m = design.warps_n = 2;
  const op::Gemm gemm = f16_problem(1024, 1 << 20, {.kind = op::MemoryDevice::Kind::emulator});
  return engine.make_kernel(op::describe(gemm), design);
}

void compile_cold(benchmark::State& state, compile::Backend backend) {
  engine::Options options = options_for(kEmulator);
  options.toolchain.backend = backend;
  engine::Engine engine(options);
  const compile::Source source = f16_128x128x32_kernel(engine)->source();
  benchmark::DoNotOptimize(
      engine.compiler().compile(source));  // untimed: starts the compiler process, which loads NVRTC
  for (auto _ : state) benchmark::DoNotOptimize(engine.compiler().compile(source));
}
BENCHMARK_CAPTURE(compile_cold, process, compile::Backend::nvrtc)
    ->Name("nvrtc_compile/f16_sm80_128x128x32")
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(compile_cold, in_process, compile::Backend::nvrtc_in_process)
    ->Name("nvrtc_compile_in_process/f16_sm80_128x128x32")
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

/// The first compile of a program, which starts the compiler process and loads NVRTC. Each round sets other limits, so
/// that the process of the previous round is not reused.
void compile_in_new_process(benchmark::State& state) {
  engine::Engine engine(options_for(kEmulator));
  const compile::Source source = f16_128x128x32_kernel(engine)->source();
  compile::ToolchainOptions toolchain;
  for (auto _ : state) {
    ++toolchain.memory_bytes;
    benchmark::DoNotOptimize(compile::make_compiler(toolchain)->compile(source));
  }
}
BENCHMARK(compile_in_new_process)->UseRealTime()->Unit(benchmark::kMillisecond);

/// A temporary folder, deleted with its contents at the end.
class TemporaryFolder {
 public:
  TemporaryFolder() : path_((std::filesystem::temp_directory_path() / "host_bench_XXXXXX").string()) {
    if (mkdtemp(path_.data()) == nullptr) throw Error("cannot create a folder from the template " + path_);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// A hit on disk. Each round opens a new store, as a new process does, so that no kernel is in memory.
void disk_cache_hit(benchmark::State& state) {
  engine::Engine engine(options_for(kEmulator));
  const compile::Source source = f16_128x128x32_kernel(engine)->source();
  const TemporaryFolder folder;
  const cache::StoreOptions options{.root = folder.path()};
  cache::Store(options).get_or_compile(source, engine.compiler());
  for (auto _ : state) {
    cache::Store store(options);
    benchmark::DoNotOptimize(store.get_or_compile(source, engine.compiler()));
    if (store.counters().disk_hits != 1) state.SkipWithError("the kernel was not on disk");
  }
}
BENCHMARK(disk_cache_hit)->Unit(benchmark::kMicrosecond);

/// A row-major, B column-major, D row-major, at placeholder addresses that are never read.
op::Gemm problem_of(DType dtype, DType d_type, const std::array<std::int64_t, 3>& extents) {
  const auto [m, n, k] = extents;
  constexpr op::MemoryDevice kDevice{.kind = op::MemoryDevice::Kind::emulator};
  op::Gemm gemm;
  gemm.a = op::matrix(std::uint64_t{1} << 40, dtype, m, k, op::MatrixLayout::row_major, 0, kDevice);
  gemm.b = op::matrix(std::uint64_t{2} << 40, dtype, k, n, op::MatrixLayout::column_major, 0, kDevice);
  gemm.d = op::matrix(std::uint64_t{3} << 40, d_type, m, n, op::MatrixLayout::row_major, 0, kDevice);
  gemm.accumulator = op::default_accumulator(dtype);
  gemm.epilogue = op::linear_combination(op::default_compute(gemm.accumulator, d_type));
  return gemm;
}

/// find_kernels() reuses no ranking: every call discovers and ranks the kernels again.
void find_kernels(benchmark::State& state, DType dtype, DType d_type, std::array<std::int64_t, 3> extents) {
  const engine::Engine engine(options_for(kEmulator));
  const op::Gemm gemm = problem_of(dtype, d_type, extents);
  for (auto _ : state) benchmark::DoNotOptimize(engine.find_kernels(gemm));
}
BENCHMARK_CAPTURE(find_kernels, bf16_4096, DType::bf16, DType::bf16, {4096, 4096, 4096})->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(find_kernels, bf16_16x28672x4096, DType::bf16, DType::bf16, {16, 28672, 4096})
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(find_kernels, bf16_192x8192x8192, DType::bf16, DType::bf16, {192, 8192, 8192})
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(find_kernels, bf16_4095, DType::bf16, DType::bf16, {4095, 4095, 4095})->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(find_kernels, f32_4096, DType::f32, DType::f32, {4096, 4096, 4096})->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(find_kernels, s8_4096, DType::s8, DType::s32, {4096, 4096, 4096})->Unit(benchmark::kMicrosecond);

/// Compiles all kernels that sm90_gemm offers for a problem, one after another and without a cache. Reports the mean
/// and the longest time; the label is the kernel that took longest.
void compile_candidates(benchmark::State& state, DType dtype, DType d_type, std::array<std::int64_t, 3> extents) {
  using Clock = std::chrono::steady_clock;
  engine::Engine engine(options_for(kEmulator));
  const auto is_sm90 = [](const registry::KernelMetadata& kernel) { return kernel.family == "sm90_gemm"; };
  const auto ranked = engine.find_kernels(problem_of(dtype, d_type, extents), is_sm90);
  double longest = 0, sum = 0;
  for (auto _ : state) {
    for (const engine::RankedKernel& candidate : ranked) {
      const compile::Source source = candidate.kernel->source();
      const Clock::time_point begin = Clock::now();
      benchmark::DoNotOptimize(engine.compiler().compile(source));
      const double ms = std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
      sum += ms;
      if (ms <= longest) continue;
      longest = ms;
      state.SetLabel(candidate.kernel->name());
    }
  }
  state.counters["longest_ms"] = longest;
  state.counters["mean_ms"] = sum / static_cast<double>(state.iterations() * static_cast<std::int64_t>(ranked.size()));
}
BENCHMARK_CAPTURE(compile_candidates, bf16_4096, DType::bf16, DType::bf16, {4096, 4096, 4096})->Iterations(1);
BENCHMARK_CAPTURE(compile_candidates, bf16_4095, DType::bf16, DType::bf16, {4095, 4095, 4095})->Iterations(1);
BENCHMARK_CAPTURE(compile_candidates, bf16_16x28672x4096, DType::bf16, DType::bf16, {16, 28672, 4096})->Iterations(1);
BENCHMARK_CAPTURE(compile_candidates, bf16_512x512x16384, DType::bf16, DType::bf16, {512, 512, 16384})->Iterations(1);
BENCHMARK_CAPTURE(compile_candidates, e4m3_4096, DType::e4m3, DType::bf16, {4096, 4096, 4096})->Iterations(1);
BENCHMARK_CAPTURE(compile_candidates, s8_4096, DType::s8, DType::s32, {4096, 4096, 4096})->Iterations(1);

/// Small integers in the representation of the element type.
template <class Element, class Convert>
std::vector<Element> pattern(std::int64_t count, const Convert& convert) {
  std::vector<Element> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = convert(static_cast<float>(static_cast<int>(i % 7) - 3));
  return values;
}

/// A run with operands in host memory, copies included. The first, untimed run compiles and loads the kernel.
template <class Element, class Convert>
void emulate(benchmark::State& state, DType dtype, op::MatrixLayout b_layout, const char* family,
             const Convert& convert) {
  constexpr std::int64_t kSize = 256;
  engine::Engine engine(options_for("emulator:sm_80"));
  const std::vector<Element> a = pattern<Element>(kSize * kSize, convert);
  const std::vector<Element> b = pattern<Element>(kSize * kSize, convert);
  std::vector<Element> d(a.size());
  op::Gemm gemm;
  gemm.a = op::matrix(a.data(), dtype, kSize, kSize);
  gemm.b = op::matrix(b.data(), dtype, kSize, kSize, b_layout);
  gemm.d = op::matrix(d.data(), dtype, kSize, kSize);
  const auto ranked =
      engine.find_kernels(gemm, [&](const registry::KernelMetadata& metadata) { return metadata.family == family; });
  if (ranked.empty()) return state.SkipWithError("no kernel");
  engine.run(gemm, ranked.front().kernel);
  for (auto _ : state) engine.run(gemm, ranked.front().kernel);
  state.SetLabel(ranked.front().kernel->name());
}

void emulate_f16(benchmark::State& state) {
  emulate<std::uint16_t>(state, DType::f16, op::MatrixLayout::column_major, "sm80_gemm", f32_to_f16);
}
BENCHMARK(emulate_f16)->Name("emulator/f16_sm80_256x256x256")->Unit(benchmark::kSecond)->Iterations(1);

void emulate_simt_f32(benchmark::State& state) {
  emulate<float>(state, DType::f32, op::MatrixLayout::row_major, "simt_gemm", [](float value) { return value; });
}
BENCHMARK(emulate_simt_f32)->Name("emulator/f32_simt_256x256x256")->Unit(benchmark::kSecond)->Iterations(1);

/// A prepared call, and cuLaunchKernel of the same kernel with the same parameters for comparison, on the first GPU.
class Dispatch : public benchmark::Fixture {
 public:
  void SetUp(benchmark::State& state) override {
    std::string reason;
    if (runtime::cuda_device_count(&reason) == 0) return state.SkipWithError(reason.c_str());
    engine_ = std::make_unique<engine::Engine>(options_for("cuda:0"));
    device_ = std::dynamic_pointer_cast<runtime::CudaDevice>(engine_->device());
    stream_ = std::make_unique<runtime::Stream>(device_->context());
    memory_ = runtime::DeviceBuffer(device_, 3 * kSize * kSize * sizeof(std::uint16_t));
    gemm_ = f16_problem(kSize, memory_.address(), {.kind = op::MemoryDevice::Kind::cuda});
    gemm_.d.address = memory_.address() + 2 * kSize * kSize * sizeof(std::uint16_t);
    prepared_ = std::make_unique<engine::PreparedCall>(engine_->prepare(gemm_));
    scope_ = std::make_unique<runtime::ContextScope>(*device_->context());
  }

  void TearDown(benchmark::State&) override {
    if (stream_) stream_->synchronize();
    scope_.reset();
    prepared_.reset();
    stream_.reset();
    memory_ = {};
    device_.reset();
    engine_.reset();
  }

 protected:
  static constexpr std::int64_t kSize = 128;  // one CTA, so that the GPU is faster than the host

  /// Synchronizes now and then. If the launch queue were full, the GPU would be timed instead of the host.
  template <class Launch>
  void run(benchmark::State& state, const Launch& launch) {
    constexpr int kQueued = 256;
    int queued = 0;
    for (auto _ : state) {
      launch();
      if (++queued % kQueued != 0) continue;
      state.PauseTiming();
      stream_->synchronize();
      state.ResumeTiming();
    }
  }

  std::unique_ptr<engine::Engine> engine_;
  std::shared_ptr<runtime::CudaDevice> device_;
  std::unique_ptr<runtime::Stream> stream_;
  runtime::DeviceBuffer memory_;
  op::Gemm gemm_;
  std::unique_ptr<engine::PreparedCall> prepared_;
  std::unique_ptr<runtime::ContextScope> scope_;
};

BENCHMARK_DEFINE_F(Dispatch, prepared)(benchmark::State& state) {
  if (!prepared_) return;
  run(state, [&] { prepared_->run(stream_->handle()); });
}
BENCHMARK_REGISTER_F(Dispatch, prepared)->Name("dispatch/prepared")->Unit(benchmark::kMicrosecond);

BENCHMARK_DEFINE_F(Dispatch, remembered)(benchmark::State& state) {
  if (!prepared_) return;
  run(state, [&] { engine_->run(gemm_, nullptr, stream_->handle()); });
}
BENCHMARK_REGISTER_F(Dispatch, remembered)->Name("dispatch/engine_run")->Unit(benchmark::kMicrosecond);

BENCHMARK_DEFINE_F(Dispatch, bare)(benchmark::State& state) {
  if (!prepared_) return;
  const registry::Kernel& kernel = prepared_->kernel();
  const plan::Launch launch = kernel.launch(gemm_);
  const auto artifact = engine_->compile(engine_->find_kernels(gemm_).front().kernel);
  const runtime::CudaKernel loaded(device_->context(), {artifact->cubin, {}}, artifact->symbol,
                                   launch.dynamic_smem_bytes);
  const runtime::LaunchRecord record{.grid = {launch.grid[0], launch.grid[1], launch.grid[2]},
                                     .block = {launch.block[0], launch.block[1], launch.block[2]},
                                     .dynamic_smem_bytes = launch.dynamic_smem_bytes,
                                     .stream = stream_->handle(),
                                     .attributes = nullptr,
                                     .attribute_count = 0};
  std::array<void*, 1> parameters = {const_cast<std::byte*>(launch.parameters().data())};
  const auto& call = device_->context()->driver().launch_kernel;
  run(state, [&] { benchmark::DoNotOptimize(call.raw(&record, loaded.function(), parameters.data(), nullptr)); });
}
BENCHMARK_REGISTER_F(Dispatch, bare)->Name("dispatch/bare_cuLaunchKernelEx")->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace tilewright
