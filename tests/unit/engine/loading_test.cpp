// Loading kernels: from a cache without a compiler, again after an image fails to load, and within the LRU limit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "tests/unit/engine/host_problem.hpp"
#include "tilewright/base/error.hpp"
#include "tilewright/cache/bundle.hpp"
#include "tilewright/cache/entry.hpp"
#include "tilewright/cache/store.hpp"
#include "tilewright/compile/file.hpp"

namespace tilewright::engine {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class Loading : public testing::Test {
 protected:
  Options options(const std::string& cache, compile::Backend backend = compile::Backend::nvrtc) const {
    Options options;
    options.device = "emulator:sm_80";
    options.cache_dir = folder_.path() + "/" + cache;
    options.toolchain.backend = backend;
    return options;
  }
  void expect_exact(Engine& engine) {
    HostProblem problem(24, 16, 8);
    engine.run(problem.gemm);
    EXPECT_TRUE(problem.compare().is_exact()) << op::to_string(problem.compare());
  }

  compile::ScopedFolder folder_{testing::TempDir()};
};

TEST_F(Loading, ABundleRunsWhereThereIsNoCompiler) {
  {
    Engine here(options("here"));
    expect_exact(here);
    ASSERT_EQ(cache::export_bundle(here.cache(), folder_.path() + "/bundle.db").kernels, 1);
  }
  Engine there(options("there", compile::Backend::none));
  HostProblem problem(24, 16, 8);
  EXPECT_THROW(there.run(problem.gemm), ToolchainNotFound);
  ASSERT_TRUE(cache::import_bundle(there.cache(), folder_.path() + "/bundle.db"));
  expect_exact(there);
  Engine later(options("there", compile::Backend::none));
  expect_exact(later);
  EXPECT_EQ(later.compile(later.find_kernels(problem.gemm).front().kernel)->compiler.substr(0, 5), "nvrtc");
}

TEST_F(Loading, AnImageThatDoesNotLoadIsCompiledAgainOnce) {
  cache::Key key;
  {
    Engine engine(options("cache"));
    expect_exact(engine);
    key = engine.cache().keys().front();
    compile::Artifact artifact = *engine.cache().find(key);
    artifact.ptx = "not PTX at all";
    const cache::EntryName name = cache::entry_name(key);
    const std::string path = folder_.path() + "/cache/entries/" + name.folder + "/" + name.file;
    const std::vector<std::byte> bytes = cache::encode_entry(key, artifact);
    std::filesystem::remove(path);
    compile::write_new_file(path, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }
  Engine engine(options("cache"));
  expect_exact(engine);
  EXPECT_EQ(engine.cache().counters(), (cache::Counters{.memory_hits = 0, .disk_hits = 1, .compiles = 1}));
  Engine next(options("cache"));
  expect_exact(next);
  EXPECT_EQ(next.cache().counters().disk_hits, 1) << "the new image is kept";
}

/// A user-defined kernel in PTX, which needs no compiler. Each index is a different kernel.
class PtxKernel final : public registry::Kernel {
 public:
  PtxKernel(registry::KernelMetadata metadata, int index) : Kernel(std::move(metadata)), index_(index) {}

 protected:
  compile::Source do_source() const override {
    compile::Source source;
    source.language = compile::Language::ptx;
    source.text = ".version 8.0\n.target sm_80\n.address_size 64\n// " + std::to_string(index_) + "\n.visible .entry " +
                  name() + "(.param .u64 p)\n{\n";
    for (int i = 0; i < 400; ++i) source.text += "add.u32 %r1, %r1, " + std::to_string(i) + ";\n";
    source.text.insert(source.text.find("{\n") + 2, ".reg .u32 %r<2>;\nmov.u32 %r1, 0;\n");
    source.text += "ret;\n}\n";
    return source;
  }
  plan::Launch do_launch(const op::Problem& problem) const override {
    const auto& arguments = std::get<op::Gemm>(problem);
    plan::Launch launch;
    launch.append(arguments.d.address);
    launch.finish();
    return launch;
  }

 private:
  int index_;
};

/// A user-defined kernel in MLIR, which writes 42 to D[0].
class MlirKernel final : public registry::Kernel {
 public:
  using Kernel::Kernel;

 protected:
  compile::Source do_source() const override {
    compile::Source source;
    source.language = compile::Language::mlir;
    source.text = "module {\n  llvm.func @" + name() + R"((%p: !llvm.ptr {llvm.byval = !llvm.struct<(ptr<1>)>,
        llvm.align = 64 : i64, nvvm.grid_constant}) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 1>} {
    %d = llvm.load %p : !llvm.ptr -> !llvm.ptr<1>
    %value = arith.constant 42.0 : f32
    llvm.store %value, %d : f32, !llvm.ptr<1>
    llvm.return
  }
})";
    return source;
  }
  plan::Launch do_launch(const op::Problem& problem) const override {
    plan::Launch launch;
    launch.append(std::get<op::Gemm>(problem).d.address);
    launch.finish();
    return launch;
  }
};

TEST_F(Loading, AKernelInMlirIsCompiledOnceAndCached) {
#ifndef TILEWRIGHT_HAS_MLIR
  GTEST_SKIP() << "built without MLIR";
#endif
  plan::FlatDesign design;
  design.target = kSm80;
  const auto run = [&](Options options) {
    Engine engine(options);
    HostProblem problem(8, 8, 8);
    engine.run(problem.gemm,
               std::make_shared<MlirKernel>(registry::KernelMetadata{"mlir", op::describe(problem.gemm), design}));
    float first = 0;
    std::memcpy(&first, reinterpret_cast<const void*>(problem.gemm.d.address), sizeof first);
    EXPECT_EQ(first, 42.0F);
    return engine.cache().counters();
  };
  EXPECT_EQ(run(options("cache")).compiles, 1);
  EXPECT_EQ(run(options("cache")), (cache::Counters{.memory_hits = 0, .disk_hits = 1, .compiles = 0}));
  EXPECT_EQ(run(options("cache", compile::Backend::none)).compiles, 0) << "without any compiler";
  Options missing = options("other");
  missing.toolchain.mlir_library = "/no/such/libtilewright_mlir.so";
  EXPECT_THROW(run(missing), ToolchainNotFound);
}

std::int64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::int64_t pages = 0, resident = 0;
  file >> pages >> resident;
  return resident * ::sysconf(_SC_PAGESIZE);
}

TEST_F(Loading, MemoryIsFlatOverManyKernelsAndShapes) {
  constexpr int kKernels = 2000, kShapes = 20'000;
  Options bounded = options("cache", compile::Backend::none);
  bounded.max_loaded_kernels = 32;
  bounded.max_remembered_calls = 256;
  bounded.max_rankings = 32;
  Engine engine(bounded);
  const HostProblem problem(8, 8, 8);
  plan::FlatDesign design;
  design.target = kSm80;
  const registry::KernelMetadata metadata{"ptx", op::describe(problem.gemm), design};
  std::int64_t settled = 0;
  for (int i = 0; i < kKernels; ++i) {
    engine.run(problem.gemm, std::make_shared<PtxKernel>(metadata, i));
    if (i == kKernels / 4) settled = resident_bytes();
  }
  EXPECT_LT(resident_bytes(), settled + (std::int64_t{12} << 20)) << "after " << kKernels << " kernels";

  const auto kernel = std::make_shared<PtxKernel>(metadata, 0);
  for (int i = 0; i < kShapes; ++i) {
    // Placeholder addresses, which are not accessed.
    const auto matrix = [](std::uint64_t address, std::int64_t rows, std::int64_t columns) {
      constexpr op::MemoryDevice kEmulator{.kind = op::MemoryDevice::Kind::emulator};
      return op::matrix(address << 30, DType::f32, rows, columns, op::MatrixLayout::row_major, 0, kEmulator);
    };
    op::Gemm shape;
    shape.a = matrix(1, 8 + i % 100, 8);
    shape.b = matrix(2, 8, 8 + i / 100 * 4);
    shape.d = matrix(3, 8 + i % 100, 8 + i / 100 * 4);
    shape.epilogue = problem.gemm.epilogue;
    engine.prepare(shape, kernel);
    if (i % 4 == 0) engine.ranking(shape);
    if (i == kShapes / 4) settled = resident_bytes();
  }
  EXPECT_LT(resident_bytes(), settled + (std::int64_t{12} << 20)) << "after " << kShapes << " shapes";
}

}  // namespace
}  // namespace tilewright::engine
