// A kernel that is defined outside the library, examples/f64_gemm_kernel.hpp, is discovered, refused, compiled, run,
// saved and loaded like the built-in ones. B1 to B24 in the tests' names number the requirements for users' kernels.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <filesystem>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "examples/f64_gemm_kernel.hpp"
#include "tests/conformance/gemm_checks.hpp"
#include "tilewright/cache/store.hpp"
#include "tilewright/compile/artifact.hpp"
#include "tilewright/engine/host_operands.hpp"
#include "tilewright/kernels/list.hpp"
#include "tilewright/op/fill.hpp"
#include "tilewright/op/problem.hpp"
#include "tilewright/runtime/cuda_device.hpp"

namespace tilewright::conformance {
namespace {

using engine::Engine;
using engine::RankedKernel;
using testing::ElementsAre;
using testing::HasSubstr;

bool is_mine(const registry::KernelMetadata& metadata) { return metadata.family == "F64GemmKernel"; }

/// A batch of f64 matrices in host memory.
struct F64Problem {
  F64Problem(std::int64_t batch, std::int64_t m, std::int64_t n, std::int64_t k,
             op::MatrixLayout a_layout = op::MatrixLayout::row_major,
             op::MatrixLayout b_layout = op::MatrixLayout::row_major,
             op::MatrixLayout d_layout = op::MatrixLayout::row_major, std::int64_t padding = 0) {
    const auto make = [&](std::vector<double>& memory, std::int64_t rows, std::int64_t columns,
                          op::MatrixLayout layout) {
      const bool is_row_major = layout == op::MatrixLayout::row_major;
      const std::int64_t ld = (is_row_major ? columns : rows) + padding;
      const std::int64_t step = (is_row_major ? rows : columns) * ld + padding;
      memory.assign(static_cast<std::size_t>(batch * step), std::numeric_limits<double>::quiet_NaN());
      return op::batched(op::matrix(memory.data(), DType::f64, rows, columns, layout, ld), batch, step);
    };
    gemm.a = make(a, m, k, a_layout);
    gemm.b = make(b, k, n, b_layout);
    gemm.d = make(d, m, n, d_layout);
    gemm.accumulator = DType::f64;
    gemm.epilogue = op::linear_combination(DType::f64);
    op::fill_integers(gemm.a, -4, 4, 1);
    op::fill_integers(gemm.b, -4, 4, 2);
  }
  void expect_right() const { EXPECT_TRUE(op::compare(gemm).is_exact()) << op::to_string(op::compare(gemm)); }

  std::vector<double> a, b, d;
  op::Gemm gemm;
};

std::vector<std::string> names_of(const std::vector<RankedKernel>& kernels) {
  std::vector<std::string> names;
  for (const RankedKernel& ranked : kernels) names.push_back(ranked.kernel->name());
  return names;
}

class BringYourOwn : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (is_missing(GetParam())) GTEST_SKIP() << "no " << GetParam();
    options_ = engine::Options::from_environment();
    options_.device = GetParam();
    options_.tuning = engine::Tuning::off;
    engine_ = std::make_unique<Engine>(options_);
    ASSERT_TRUE(engine_->registry().add(std::make_shared<examples::F64GemmProvider>()));
  }
  std::string refusal_of(const op::Gemm& gemm, const std::string& kernel) const {
    for (const registry::RefusedKernel& refused : engine_->explain(gemm).refused) {
      if (refused.name == kernel) return refused.reason();
    }
    return "not refused";
  }

  engine::Options options_;
  std::unique_ptr<Engine> engine_;
};

TEST_P(BringYourOwn, B1_B2_SixteenAreListedInOrder) {
  std::vector<std::string> names;
  engine::KernelListing listing = engine_->list_kernels({}, is_mine);
  while (const registry::KernelPtr kernel = listing.next()) names.push_back(kernel->name());
  std::vector<std::string> expected;
  for (const char* tile : {"32x32", "16x16"}) {
    for (const char* layouts : {"ttt", "ttn", "tnt", "tnn", "ntt", "ntn", "nnt", "nnn"})
      expected.push_back(fmt::format("F64GemmKernel_tile{}_{}", tile, layouts));
  }
  EXPECT_EQ(names, expected);
}

TEST_P(BringYourOwn, B3_B4_B5_TwoAreFoundAndBothCompute) {
  F64Problem problem(1, 256, 64, 48);
  const std::vector<RankedKernel> mine = engine_->find_kernels(problem.gemm, is_mine);
  EXPECT_THAT(names_of(mine), ElementsAre("F64GemmKernel_tile32x32_ttt", "F64GemmKernel_tile16x16_ttt"));
  const std::vector<std::string> all = names_of(engine_->find_kernels(problem.gemm));
  EXPECT_THAT(all, testing::Contains("F64GemmKernel_tile32x32_ttt"));
  EXPECT_THAT(all, testing::Contains("F64GemmKernel_tile16x16_ttt"));
  EXPECT_GT(all.size(), 2U);
  EXPECT_NE(all.front(), "F64GemmKernel_tile32x32_ttt")
      << "a kernel without an estimate must be ranked after those with one";
  for (const RankedKernel& ranked : mine) {
    op::fill_integers(problem.gemm.d, 7, 7, 3);
    engine_->run(problem.gemm, ranked.kernel);
    problem.expect_right();
  }
}

TEST_P(BringYourOwn, B6_B7_FiltersSeeTheDesign) {
  const F64Problem problem(1, 64, 64, 16);
  const auto with_tile = [&](int m) {
    return engine_->find_kernels(problem.gemm, [m](const registry::KernelMetadata& metadata) {
      return is_mine(metadata) && plan::tiling(metadata.design).tile.m == m;
    });
  };
  EXPECT_TRUE(with_tile(256).empty());
  EXPECT_THAT(names_of(with_tile(16)), ElementsAre("F64GemmKernel_tile16x16_ttt"));
}

TEST_P(BringYourOwn, B8_AllLayoutsAndTilesCompute) {
  using enum op::MatrixLayout;
  for (const op::MatrixLayout a : {row_major, column_major}) {
    for (const op::MatrixLayout b : {row_major, column_major}) {
      for (const op::MatrixLayout d : {row_major, column_major}) {
        F64Problem problem(2, 40, 36, 20, a, b, d);
        const std::vector<RankedKernel> mine = engine_->find_kernels(problem.gemm, is_mine);
        ASSERT_EQ(mine.size(), 2U);
        const auto letter = [](op::MatrixLayout layout) { return layout == row_major ? 't' : 'n'; };
        EXPECT_TRUE(mine[0].kernel->name().ends_with(fmt::format("_{}{}{}", letter(a), letter(b), letter(d))));
        for (const RankedKernel& ranked : mine) {
          op::fill_integers(problem.gemm.d, 7, 7, 3);
          engine_->run(problem.gemm, ranked.kernel);
          problem.expect_right();
        }
      }
    }
  }
}

TEST_P(BringYourOwn, B9_ItsOwnConditionIsReported) {
  F64Problem problem(1, 32, 32, 16);
  const registry::KernelPtr kernel = engine_->find_kernels(problem.gemm, is_mine).front().kernel;
  op::Gemm flat = op::slice(problem.gemm, 0);
  EXPECT_TRUE(engine_->find_kernels(flat, is_mine).empty());
  EXPECT_EQ(kernel->supports(flat).reason(), "All operands must be rank 3.");
  EXPECT_EQ(refusal_of(flat, kernel->name()), "All operands must be rank 3.");
  try {
    engine_->run(flat, kernel);
    FAIL() << "ran";
  } catch (const InvalidArgument& error) {
    EXPECT_THAT(error.what(), HasSubstr("All operands must be rank 3."));
  }
}

TEST_P(BringYourOwn, B10_UnsupportedTypesAreReported) {
  F64Problem problem(1, 32, 32, 16);
  const registry::KernelPtr kernel = engine_->find_kernels(problem.gemm, is_mine).front().kernel;
  std::vector<float> memory(3 * 32 * 32);
  op::Gemm floats;
  floats.a = op::batched(op::matrix(memory.data(), DType::f32, 32, 16), 1);
  floats.b = op::batched(op::matrix(memory.data() + 1024, DType::f32, 16, 32), 1);
  floats.d = op::batched(op::matrix(memory.data() + 2048, DType::f32, 32, 32), 1);
  EXPECT_TRUE(engine_->find_kernels(floats, is_mine).empty());
  EXPECT_EQ(kernel->supports(floats).reason(), "the problem accumulates in f32, but the kernel in f64");
  EXPECT_EQ(kernel->supports(floats).refusal().code, RefusalCode::types);
}

TEST_P(BringYourOwn, B11_UnsupportedEpiloguesAreReported) {
  F64Problem problem(1, 32, 32, 16);
  const registry::KernelPtr kernel = engine_->find_kernels(problem.gemm, is_mine).front().kernel;
  problem.gemm.epilogue = op::linear_combination_generic(op::Activation::relu, DType::f64);
  EXPECT_TRUE(engine_->find_kernels(problem.gemm, is_mine).empty());
  EXPECT_EQ(kernel->supports(problem.gemm).refusal().code, RefusalCode::epilogue);
  F64Problem scaled(1, 32, 32, 16);
  scaled.gemm.alpha = 2.0;  // the kernel's epilogue is the accumulator alone
  EXPECT_FALSE(kernel->supports(scaled.gemm));
}

TEST_P(BringYourOwn, B12_B22_NoWorkspaceAndOneCompile) {
  F64Problem problem(1, 32, 32, 16);
  engine::Options options = options_;
  options.cache_on_disk = false;
  Engine engine(options);
  engine.registry().add(std::make_shared<examples::F64GemmProvider>()).or_throw();
  for (int i = 0; i < 2; ++i) {
    const registry::KernelPtr kernel = engine.find_kernels(problem.gemm, is_mine).front().kernel;
    EXPECT_EQ(kernel->workspace_bytes(problem.gemm), 0U);
    engine.run(problem.gemm, kernel);
    problem.expect_right();
  }
  EXPECT_EQ(engine.cache().counters().compiles, 1);
}

TEST_P(BringYourOwn, B13_B23_TheProviderDecidesAboutArchitectures) {
  const F64Problem problem(1, 32, 32, 16);
  for (const Target target : {kSm90a, kSm80, Target{10}})
    EXPECT_EQ(engine_->find_kernels(problem.gemm, is_mine, target).size(), 2U) << target.name();

  /// The same kernel, for targets from sm_100 on.
  class Newer final : public registry::Provider {
   public:
    std::string family() const override { return "newer"; }
    Support runs_on(const Target& target) const override {
      return target.has_features_of(Target{100})
                 ? Support()
                 : refuse("needs sm_100, the target is {}", target.name()).as(RefusalCode::architecture);
    }
    std::vector<registry::KernelPtr> generate(const Target& target) const override {
      return examples::F64GemmProvider().generate(target);
    }
  };
  ASSERT_TRUE(engine_->registry().add(std::make_shared<Newer>()));
  EXPECT_EQ(engine_->find_kernels(problem.gemm, is_mine).size(), 2U);
  EXPECT_EQ(refusal_of(problem.gemm, "newer"),
            fmt::format("needs sm_100, the target is {}", engine_->device()->properties().target.name()));
}

TEST_P(BringYourOwn, AKernelOfAnotherTargetIsRefused) {
  F64Problem problem(1, 32, 32, 16);
  const bool is_hopper = engine_->device()->properties().target == kSm90a;
  const Target other = is_hopper ? kSm80 : kSm90a;
  const registry::KernelPtr kernel = engine_->find_kernels(problem.gemm, is_mine, other).front().kernel;
  try {
    engine_->run(problem.gemm, kernel);
    FAIL() << "ran";
  } catch (const InvalidArgument& error) {
    EXPECT_THAT(error.what(), HasSubstr("is compiled for " + other.name()));
  }
}

TEST_P(BringYourOwn, B14_Alignment) {
  F64Problem problem(1, 32, 32, 16);
  const registry::KernelPtr kernel = engine_->find_kernels(problem.gemm, is_mine).front().kernel;
  op::Gemm shifted = problem.gemm;
  shifted.a.address += 4;
  EXPECT_THROW(engine_->find_kernels(shifted, is_mine), InvalidArgument);
  const Support refused = kernel->supports(shifted);
  EXPECT_THAT(refused.reason(), HasSubstr("must be aligned to its element size of 8 bytes"));
  EXPECT_EQ(refused.refusal().code, RefusalCode::alignment);
  EXPECT_EQ(refused.refusal().operand, "A");

  F64Problem odd(1, 7, 5, 3);  // its arrays begin 8 bytes after a multiple of 16
  std::vector<double> memory(2 * 7 * 3 + 2);
  const auto aligned = (reinterpret_cast<std::uintptr_t>(memory.data()) + 15) / 16 * 16;
  odd.gemm.a.address = aligned + 8;
  op::fill_integers(odd.gemm.a, -4, 4, 1);
  ASSERT_EQ(engine_->find_kernels(odd.gemm, is_mine).size(), 2U);
  engine_->run(odd.gemm, engine_->find_kernels(odd.gemm, is_mine).front().kernel);
  odd.expect_right();
}

TEST_P(BringYourOwn, B15_OddSizesBatchesAndPaddedStrides) {
  for (const auto& [batch, m, n, k] : std::vector<std::array<std::int64_t, 4>>{
           {1, 3, 5, 7}, {1, 1, 33, 17}, {1, 33, 1, 17}, {1, 33, 17, 1}, {4, 19, 21, 23}, {4, 1, 1, 1}}) {
    for (const std::int64_t padding : {0, 3}) {
      F64Problem problem(batch, m, n, k, op::MatrixLayout::row_major, op::MatrixLayout::row_major,
                         op::MatrixLayout::row_major, padding);
      const std::vector<RankedKernel> mine = engine_->find_kernels(problem.gemm, is_mine);
      ASSERT_EQ(mine.size(), 2U) << batch << " x " << m << "x" << n << "x" << k << " padded by " << padding;
      for (const RankedKernel& ranked : mine) {
        op::fill_integers(problem.gemm.d, 7, 7, 3);
        engine_->run(problem.gemm, ranked.kernel);
        problem.expect_right();
      }
    }
  }
}

TEST_P(BringYourOwn, B16_MetadataIsData) {
  const F64Problem problem(1, 32, 32, 16);
  const registry::KernelMetadata metadata = engine_->find_kernels(problem.gemm, is_mine).front().kernel->metadata();
  EXPECT_EQ(registry::kernel_name(metadata), "F64GemmKernel_tile32x32_ttt");
  EXPECT_EQ(plan::tiling(metadata.design).tile, (plan::TileShape{32, 32, 1}));
  EXPECT_EQ(metadata.operands().a, (op::TensorSignature{DType::f64, op::MatrixLayout::row_major, 1}));
  EXPECT_EQ(metadata.operands().accumulator, DType::f64);
  registry::KernelMetadata other = metadata;
  EXPECT_EQ(other, metadata);
  EXPECT_EQ(std::hash<registry::KernelMetadata>()(other), std::hash<registry::KernelMetadata>()(metadata));
  EXPECT_EQ(registry::to_json(other), registry::to_json(metadata));
  plan::tiling(other.design).tile.m = 16;
  EXPECT_NE(other, metadata);
  EXPECT_NE(registry::to_json(other), registry::to_json(metadata));
}

TEST_P(BringYourOwn, B17_RegisteredOnceAndUnregistered) {
  const F64Problem problem(1, 32, 32, 16);
  const auto again = std::make_shared<examples::F64GemmProvider>();
  const Support added = engine_->registry().add(again);
  EXPECT_EQ(added.reason(), "the family 'F64GemmKernel' is already registered");
  EXPECT_EQ(added.refusal().code, RefusalCode::duplicate);
  EXPECT_EQ(engine_->find_kernels(problem.gemm, is_mine).size(), 2U);
  EXPECT_TRUE(engine_->registry().replace(again));
  EXPECT_TRUE(engine_->registry().add(again)) << "adding the same provider again must succeed";
  EXPECT_EQ(engine_->find_kernels(problem.gemm, is_mine).size(), 2U);

  EXPECT_TRUE(engine_->registry().remove("F64GemmKernel"));
  EXPECT_FALSE(engine_->registry().remove("F64GemmKernel"));
  EXPECT_TRUE(engine_->find_kernels(problem.gemm, is_mine).empty());
  EXPECT_THROW(engine_->registry().remove("simt_gemm"), InvalidArgument);
}

TEST_P(BringYourOwn, B18_ExceptionsOfTheAuthorAreReported) {
  struct Mine : std::runtime_error {
    using std::runtime_error::runtime_error;
  };
  const F64Problem problem(1, 32, 32, 16);
  EXPECT_THROW(engine_->find_kernels(problem.gemm, [](const auto&) -> bool { throw Mine("filter"); }), Mine);
  class Failing final : public registry::Provider {
   public:
    std::string family() const override { return "failing"; }
    std::vector<registry::KernelPtr> generate(const Target&) const override { throw Mine("generate"); }
  };
  ASSERT_TRUE(engine_->registry().add(std::make_shared<Failing>()));
  EXPECT_EQ(engine_->find_kernels(problem.gemm, is_mine).size(), 2U) << "other providers keep their kernels";
  const std::vector<std::string> failing{"failing"}, working{"F64GemmKernel"};
  EXPECT_THROW(engine_->find_kernels(problem.gemm, {}, {}, failing), Mine) << "the provider was requested by name";
  EXPECT_EQ(engine_->find_kernels(problem.gemm, is_mine, {}, working).size(), 2U);
}

TEST_P(BringYourOwn, B19_B20_CompiledOnceForShapesAndRunOnOthers) {
  F64Problem first(1, 48, 40, 24), second(3, 17, 9, 5);
  const registry::KernelPtr kernel = engine_->find_kernels(first.gemm, is_mine).front().kernel;
  const engine::ArtifactPtr artifact = engine_->compile(kernel);
  engine_->run(second.gemm, kernel, artifact, {});
  second.expect_right();

  // The call is prepared from shapes alone, without memory.
  op::Gemm shape = first.gemm;
  for (op::Tensor* tensor : {&shape.a, &shape.b, &shape.d}) {
    tensor->address = 0;
    tensor->device = {op::MemoryDevice::Kind::shape, 0};
  }
  const engine::PreparedCall prepared = engine_->prepare(shape, kernel, artifact);
  EXPECT_THROW(prepared.run(), InvalidArgument);
  engine::HostOperands operands(first.gemm, engine_->device(), nullptr);
  prepared.run(operands.on_device());
  operands.copy_out();
  first.expect_right();

  engine::HostOperands others(second.gemm, engine_->device(), nullptr);
  try {
    prepared.run(others.on_device());
    FAIL() << "ran";
  } catch (const InvalidArgument& error) {
    EXPECT_THAT(error.what(), HasSubstr("prepared for m = 48, got 17"));
  }
}

TEST_P(BringYourOwn, ArtifactsAreSavedLoadedAndChecked) {
  F64Problem problem(1, 33, 31, 17);
  const std::vector<RankedKernel> mine = engine_->find_kernels(problem.gemm, is_mine);
  const std::string path = testing::TempDir() + "f64_gemm.twk";
  compile::write_artifact(*engine_->compile(mine[0].kernel), path);

  // This engine stands for a process that has the artifact's file but no compiler.
  engine::Options options = options_;
  options.cache_on_disk = false;
  options.toolchain.cuda_home = "/nowhere";
  Engine fresh(options);
  fresh.registry().add(std::make_shared<examples::F64GemmProvider>()).or_throw();
  const auto artifact = std::make_shared<const compile::Artifact>(compile::read_artifact(path).value_or_throw());
  fresh.run(problem.gemm, fresh.find_kernel(artifact->name, problem.gemm), artifact, {});
  problem.expect_right();
  EXPECT_EQ(fresh.cache().counters().compiles, 0);

  const Support other = engine_->accepts(*mine[1].kernel, *artifact);
  EXPECT_EQ(other.reason(),
            "the artifact is for F64GemmKernel_tile32x32_ttt, but the kernel is F64GemmKernel_tile16x16_ttt");
  compile::Artifact altered = *artifact;
  altered.source[0] = altered.source[0] == 'a' ? 'b' : 'a';
  EXPECT_EQ(engine_->accepts(*mine[0].kernel, altered).refusal().code, RefusalCode::artifact);
  altered = *artifact;
  altered.target = {75};
  EXPECT_EQ(engine_->accepts(*mine[0].kernel, altered).refusal().code, RefusalCode::architecture);
  EXPECT_THROW(engine_->run(problem.gemm, mine[1].kernel, artifact, {}), InvalidArgument);
  EXPECT_THROW(static_cast<void>(compile::read_artifact(path + ".absent")), Error);
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 1);
  EXPECT_THAT(compile::read_artifact(path).reason(), HasSubstr(path));
}

/// The PTX or cubin of the compiled F64 kernel as a kernel without CUDA source. It is launched like the original.
class Precompiled final : public registry::Kernel {
 public:
  Precompiled(registry::KernelPtr original, const compile::Artifact& artifact, compile::Language language)
      : Kernel([&] {
          registry::KernelMetadata metadata = original->metadata();
          metadata.name = fmt::format("precompiled_{}", compile::name(language));
          return metadata;
        }()),
        original_(std::move(original)) {
    source_.symbol = artifact.symbol;
    source_.language = language;
    source_.text = language == compile::Language::ptx
                       ? artifact.ptx
                       : std::string(reinterpret_cast<const char*>(artifact.cubin.data()), artifact.cubin.size());
  }

 protected:
  Support do_supports(const op::Problem& problem) const override { return original_->supports(problem); }
  compile::Source do_source() const override { return source_; }
  plan::Launch do_launch(const op::Problem& problem) const override { return original_->launch(problem); }

 private:
  registry::KernelPtr original_;
  compile::Source source_;
};

TEST_P(BringYourOwn, B24_PtxAndCubinsNeedNoCompiler) {
  F64Problem problem(2, 33, 31, 17);
  const registry::KernelPtr original = engine_->find_kernels(problem.gemm, is_mine).front().kernel;
  const engine::ArtifactPtr artifact = engine_->compile(original);
  const auto ptx = std::make_shared<Precompiled>(original, *artifact, compile::Language::ptx);
  engine_->run(problem.gemm, ptx);
  problem.expect_right();

  const auto cubin = std::make_shared<Precompiled>(original, *artifact, compile::Language::cubin);
  op::fill_integers(problem.gemm.d, 7, 7, 3);
  if (engine_->device()->properties().emulated) {
    try {
      engine_->run(problem.gemm, cubin);
      FAIL() << "ran";
    } catch (const InvalidArgument& error) {
      EXPECT_THAT(error.what(), HasSubstr("precompiled_cubin has no PTX"));
    }
  } else {
    engine_->run(problem.gemm, cubin);
    problem.expect_right();
  }
}

/// D = A * B + (number of launches since the workspace was zeroed) - 1. The kernel counts its launches in the
/// workspace.
class WithWorkspace final : public registry::Kernel {
 public:
  using Kernel::Kernel;

 protected:
  compile::Source do_source() const override {
    compile::Source source;
    source.headers = {{"mine/count.cuh", "inline __device__ double count(int* n) { return double((*n)++); }\n"}};
    source.text = "#include \"mine/count.cuh\"\nextern \"C\" __global__ void " + name() +
                  "(double* d, char* scratch) { int* n = reinterpret_cast<int*>(scratch); d[0] = count(n);"
                  " d[1] = double(reinterpret_cast<unsigned long long>(scratch) % 4096); scratch[9000] = 1; }\n";
    return source;
  }
  plan::Launch do_launch(const op::Problem& problem) const override {
    const auto& arguments = std::get<op::Gemm>(problem);
    plan::Launch launch;
    launch.append_parameter(arguments.d.address);
    launch.append_parameter(plan::Workspace{.bytes = 10000, .alignment = 4096, .zeroed_bytes = 4});
    return launch;
  }
};

TEST_P(BringYourOwn, WorkspacesAreAlignedAndZeroedAsRequested) {
  F64Problem problem(1, 32, 32, 16);
  registry::KernelMetadata metadata = engine_->find_kernels(problem.gemm, is_mine).front().kernel->metadata();
  metadata.name = "with_scratch";
  const auto kernel = std::make_shared<WithWorkspace>(metadata);
  EXPECT_GE(kernel->workspace_bytes(problem.gemm), 10000U);
  for (int i = 0; i < 3; ++i) {
    engine_->run(problem.gemm, kernel);
    EXPECT_EQ(problem.d[0], 0.0) << "the workspace must be zeroed before every launch";
    EXPECT_EQ(problem.d[1], 0.0) << "aligned";
  }
  // A workspace that the caller provides.
  engine::HostOperands operands(problem.gemm, engine_->device(), nullptr);
  const engine::PreparedCall prepared = engine_->prepare(operands.on_device(), kernel);
  const runtime::DeviceBuffer own(engine_->device(), prepared.workspace_bytes());
  prepared.run(engine::RunOptions{.workspace = own.address(), .workspace_bytes = own.bytes()});
  EXPECT_THROW(prepared.run(engine::RunOptions{.workspace = own.address(), .workspace_bytes = own.bytes() - 1}),
               InvalidArgument);
  EXPECT_THROW(prepared.run(engine::RunOptions{.workspace = own.address() + 8, .workspace_bytes = own.bytes()}),
               InvalidArgument);
}

TEST_P(BringYourOwn, ManyThreadsFindCompileAndRunAtOnce) {
  constexpr int kThreads = 32;
  std::vector<std::thread> threads;
  std::atomic<int> right = 0;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      F64Problem problem(1 + i % 2, 8 + i % 5, 9, 4);
      if (i % 8 == 7) {
        static_cast<void>(engine_->registry().replace(std::make_shared<examples::F64GemmProvider>()));
      }
      const std::vector<RankedKernel> mine = engine_->find_kernels(problem.gemm, is_mine);
      engine_->run(problem.gemm, mine.at(static_cast<std::size_t>(i % 2)).kernel);
      right += op::compare(problem.gemm).is_exact() ? 1 : 0;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, kThreads);
}

TEST_P(BringYourOwn, CompilesInTheBackgroundAndReportsProgress) {
  const F64Problem problem(1, 32, 32, 16);
  engine::Options options = options_;
  options.cache_on_disk = false;
  Engine engine(options);
  engine.registry().add(std::make_shared<examples::F64GemmProvider>()).or_throw();
  std::vector<registry::KernelPtr> kernels;
  for (const RankedKernel& ranked : engine.find_kernels(problem.gemm, is_mine)) kernels.push_back(ranked.kernel);
  std::vector<std::size_t> done;
  std::future<std::vector<engine::ArtifactPtr>> compiled =
      engine.compile_async(kernels, [&](const engine::CompileProgress& progress) {
        EXPECT_EQ(progress.all, 2U);
        EXPECT_THAT(progress.kernel, testing::StartsWith("F64GemmKernel_"));
        done.push_back(progress.done);
      });
  const std::vector<engine::ArtifactPtr> artifacts = compiled.get();
  EXPECT_THAT(done, ElementsAre(1U, 2U));
  ASSERT_EQ(artifacts.size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) EXPECT_EQ(artifacts[i]->name, kernels[i]->name());
}

INSTANTIATE_TEST_SUITE_P(Devices, BringYourOwn, testing::ValuesIn(devices()), [](const auto& row) {
  std::string label = row.param;
  std::ranges::replace(label, ':', '_');
  return label;
});

}  // namespace
}  // namespace tilewright::conformance
