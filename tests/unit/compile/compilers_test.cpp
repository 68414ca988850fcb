// Tests with the real compilers: both backends produce equivalent artifacts and report what is wrong with a source.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>

#include "tilewright/compile/compiler.hpp"
#include "tilewright/compile/file.hpp"

namespace tilewright::compile {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;
using testing::StartsWith;

constexpr const char* kKernel = R"(
extern "C" __global__ void __launch_bounds__(128) scale(float* x, float by) {
  __shared__ float tile[128];
  tile[threadIdx.x] = x[threadIdx.x] * by;
  __syncthreads();
  x[threadIdx.x] = tile[127 - threadIdx.x];
}
)";

Source kernel(const Target& target) {
  Source source;
  source.name = "scale_kernel";
  source.symbol = "scale";
  source.text = kKernel;
  source.target = target;
  source.description = R"({"kind":"test"})";
  return source;
}

class CompilersTest : public testing::TestWithParam<Backend> {
 protected:
  void SetUp() override {
    options_.backend = GetParam();
    options_.dump_dir = folder_.path() + "/dumps";
    try {
      compiler_ = make_compiler(options_);
    } catch (const ToolchainNotFound& error) {
      GTEST_SKIP() << error.what();
    }
  }
  std::string backend() const { return GetParam() == Backend::nvrtc ? "nvrtc" : "nvcc"; }

  ScopedFolder folder_{testing::TempDir()};
  ToolchainOptions options_;
  std::unique_ptr<Compiler> compiler_;
};

INSTANTIATE_TEST_SUITE_P(Backends, CompilersTest, testing::Values(Backend::nvrtc, Backend::nvcc),
                         [](const auto& test) { return test.param == Backend::nvrtc ? "nvrtc" : "nvcc"; });

TEST_P(CompilersTest, MakesCubinAndPtxForEachTarget) {
  for (const Target& target : {kSm80, kSm90a}) {
    const Artifact artifact = compiler_->compile(kernel(target));
    EXPECT_EQ(artifact.target, target);
    EXPECT_EQ(artifact.symbol, "scale");
    EXPECT_EQ(artifact.description, R"({"kind":"test"})");
    ASSERT_GT(artifact.cubin.size(), 64u);
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(artifact.cubin.data()), 4),
              "\x7f"
              "ELF");
    EXPECT_THAT(artifact.ptx, HasSubstr(".visible .entry scale("));
    EXPECT_THAT(artifact.ptx, HasSubstr(".target " + target.name()));
    EXPECT_THAT(artifact.ptx, HasSubstr(".loc")) << "line info";
    EXPECT_EQ(artifact.static_smem_bytes, 512);
    ASSERT_TRUE(artifact.registers.has_value());
    EXPECT_GT(*artifact.registers, 0);
    EXPECT_EQ(artifact.spill_bytes, 0);
    EXPECT_GT(artifact.compile_ms, 0.0);
    EXPECT_THAT(artifact.compiler, MatchesRegex(backend() + " [0-9]+\\.[0-9]+ V[0-9.]+ CL-[0-9]+"));
  }
}

TEST_P(CompilersTest, KeepsOnlyTheRequestedOutputs) {
  Source source = kernel(kSm90a);
  source.outputs = {.cubin = false, .ptx = true};
  const Artifact only_ptx = compiler_->compile(source);
  EXPECT_TRUE(only_ptx.cubin.empty());
  EXPECT_THAT(only_ptx.ptx, HasSubstr(".entry scale"));
  source.outputs = {.cubin = true, .ptx = false};
  const Artifact only_cubin = compiler_->compile(source);
  EXPECT_FALSE(only_cubin.cubin.empty());
  EXPECT_TRUE(only_cubin.ptx.empty());
}

TEST_P(CompilersTest, LineInfoAndRegisterLimitTakeEffect) {
  Source source = kernel(kSm80);
  source.line_info = false;
  EXPECT_THAT(compiler_->compile(source).ptx, testing::Not(HasSubstr(".loc")));
  source.text = R"(extern "C" __global__ void scale(float* x) {
    float v[96];
    for (int i = 0; i < 96; ++i) v[i] = x[i];
    __syncthreads();
    for (int i = 0; i < 96; ++i) x[i] = v[95 - i] * v[i] + v[(i + 7) % 96];
  })";
  const Artifact free = compiler_->compile(source);
  source.max_registers = 32;
  const Artifact limited = compiler_->compile(source);
  EXPECT_GT(free.registers.value(), 64);
  EXPECT_LE(limited.registers.value(), 32);
  EXPECT_GT(limited.spill_bytes.value(), 0);
}

TEST_P(CompilersTest, ASyntaxErrorReportsLogAndDump) {
  Source source = kernel(kSm80);
  source.text = "extern \"C\" __global__ void scale() { int x = ; }\n";
  try {
    compiler_->compile(source);
    FAIL() << "compiled";
  } catch (const CompileError& error) {
    const std::string text = error.what();
    EXPECT_THAT(text, HasSubstr("'scale_kernel' for sm_80"));
    EXPECT_THAT(text, HasSubstr("expected an expression"));
    const std::size_t begin = text.find("source: ") + 8;
    const std::string dumped = text.substr(begin, text.find('\n', begin) - begin);
    EXPECT_THAT(dumped, MatchesRegex(options_.dump_dir + "/scale_kernel-.*\\.cu"));
    EXPECT_EQ(read_file(dumped, 4096), source.text);
  }
}

TEST_P(CompilersTest, ADumpThatFailsDoesNotHideTheLog) {
  options_.dump_dir = "/proc/no/such/place";
  compiler_ = make_compiler(options_);
  Source source = kernel(kSm80);
  source.text = "int x = ;\n";
  try {
    compiler_->compile(source);
    FAIL() << "compiled";
  } catch (const CompileError& error) {
    EXPECT_THAT(error.what(), HasSubstr("not dumped"));
    EXPECT_THAT(error.what(), HasSubstr("expected an expression"));
  }
}

TEST_P(CompilersTest, InvalidSourcesNeverReachTheCompiler) {
  Source source = kernel(kSm80);
  source.name = "x\n__global__ void evil(){}";
  EXPECT_THROW(compiler_->compile(source), InvalidArgument);
}

TEST_P(CompilersTest, CompileAllKeepsTheOrderOfSources) {
  std::vector<Source> sources;
  for (int i = 0; i < 6; ++i) {
    sources.push_back(kernel(kSm80));
    sources.back().name = "scale_" + std::to_string(i);
    sources.back().line_info = false;  // line info records the name, and the cubins would differ
  }
  const std::vector<Artifact> artifacts = compile_all(*compiler_, sources, 3);
  ASSERT_EQ(artifacts.size(), sources.size());
  for (std::size_t i = 0; i < artifacts.size(); ++i) {
    EXPECT_EQ(artifacts[i].name, sources[i].name);
    EXPECT_TRUE(artifacts[i].cubin == artifacts[0].cubin) << "of " << artifacts[i].name;
  }
}

TEST_P(CompilersTest, OneFailureOfManyIsThrownAfterAllEnded) {
  std::vector<Source> sources(3, kernel(kSm80));
  sources[1].text = "int x = ;\n";
  sources[1].name = "broken";
  try {
    compile_all(*compiler_, sources, 2);
    FAIL() << "compiled";
  } catch (const CompileError& error) {
    EXPECT_THAT(error.what(), HasSubstr("'broken'"));
  }
}

TEST_P(CompilersTest, DeviceHeadersAreFound) {
  if (device_headers().empty()) GTEST_SKIP() << "no device headers";
  Source source = kernel(kSm90a);
  source.text = "#if __has_include(\"" + std::string(device_headers().front().name) + "\")\n" + kKernel + "#endif\n";
  EXPECT_NO_THROW(compiler_->compile(source));
  source.text = std::string("#include \"tilewright/types.cuh\"\n") + kKernel;
  EXPECT_NO_THROW(compiler_->compile(source));
}

TEST_P(CompilersTest, CompilingTwiceGivesTheSameCubin) {
  if (GetParam() == Backend::nvcc) GTEST_SKIP() << "line info of nvcc records the temporary folder";
  const Source source = kernel(kSm90a);
  EXPECT_TRUE(compiler_->compile(source).cubin == compiler_->compile(source).cubin);
}

TEST_P(CompilersTest, IdentityIsStable) {
  EXPECT_THAT(compiler_->identity(), StartsWith(backend() + " "));
  EXPECT_EQ(make_compiler(options_)->identity(), compiler_->identity());
}

/// Sources that exceed any reasonable time or memory: exponential macros and templates, and extremely deep recursion.
class CompileBomb : public testing::TestWithParam<const char*> {
 protected:
  static std::string text(std::string_view kind) {
    const std::string head = kKernel;
    if (kind == "macros") {
      std::string text = "#define M0 +1\n";
      for (int i = 1; i < 40; ++i) text += fmt::format("#define M{} M{} M{}\n", i, i - 1, i - 1);
      return text + head + "__device__ int bomb = 0 M39;\n";
    }
    if (kind == "templates") {
      return head +
             "template <int N, int M> struct T { static constexpr int v = T<N - 1, 2 * M>::v + T<N - 1, 2 * M + "
             "1>::v; };\ntemplate <int M> struct T<0, M> { static constexpr int v = M; };\n"
             "__device__ int bomb = T<28, 0>::v;\n";
    }
    constexpr std::size_t kDepth = 1'000'000;
    return head + "__device__ int bomb = " + std::string(kDepth, '(') + "1" + std::string(kDepth, ')') + ";\n";
  }
};
INSTANTIATE_TEST_SUITE_P(Kinds, CompileBomb, testing::Values("macros", "templates", "parentheses"),
                         [](const auto& test) { return std::string(test.param); });

TEST_P(CompileBomb, EndsWithinItsLimits) {
  const ScopedFolder folder(testing::TempDir());
  ToolchainOptions options;
  options.dump_dir = folder.path();
  options.timeout_s = 1.0;
  options.memory_bytes = std::int64_t{1} << 30;
  std::unique_ptr<Compiler> compiler;
  try {
    compiler = make_compiler(options);
  } catch (const ToolchainNotFound& error) {
    GTEST_SKIP() << error.what();
  }
  Source bomb = kernel(kSm80);
  bomb.text = text(GetParam());
  const auto start = std::chrono::steady_clock::now();
  EXPECT_THROW(compiler->compile(bomb), CompileError);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
  EXPECT_FALSE(compiler->compile(kernel(kSm80)).cubin.empty()) << "the next compile works";
}

}  // namespace
}  // namespace tilewright::compile
