// Compilers that are missing, damaged or patched, crash or hang: an exception says so, and nothing is cached.
#include <gmock/gmock.h>

#include <chrono>

#include "tests/fault/fault_fixture.hpp"
#include "tilewright/compile/nvcc.hpp"
#include "tilewright/compile/nvrtc.hpp"

namespace tilewright::compile {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kBanner =
    "#!/bin/sh\n"
    "if [ \"$1\" = --version ]; then\n"
    "  echo 'Cuda compilation tools, release 13.0, V13.0.88'; echo 'Build cuda_13.0.r13.0/compiler.1_0'; exit 0\n"
    "fi\n";

class CompilerFaultTest : public cache::FaultTest {
 protected:
  CompilerFaultTest() {
    options_.backend = Backend::nvcc;
    environment_.temporary_dir = folder_.path();
    environment_.path = {at("bin"), "/usr/bin", "/bin"};
    make_folders(at("bin"));
  }
  /// Installs an nvcc that answers --version and otherwise runs `script`.
  void fake_nvcc(const std::string& script) const {
    fs::remove(at("bin/nvcc"));
    write_new_file(at("bin/nvcc"), kBanner + script);
    fs::permissions(at("bin/nvcc"), fs::perms::owner_all);
  }
  std::string failure_of(const Source& source) const {
    const auto compiler = make_compiler(options_, environment_);
    cache::Store store(options());
    try {
      store.get_or_compile(source, *compiler);
    } catch (const CompileError& error) {
      EXPECT_TRUE(store.keys().empty()) << "a failure left an entry";
      return error.what();
    }
    return "it compiled";
  }

  ToolchainOptions options_;
  Environment environment_;
};

TEST_F(CompilerFaultTest, KilledBySignal) {
  fake_nvcc("echo working; kill -9 $$\n");
  EXPECT_THAT(failure_of(cache::source_named("gemm")), AllOf(HasSubstr("signal 9"), HasSubstr("working")));
  fake_nvcc("kill -SEGV $$\n");
  EXPECT_THAT(failure_of(cache::source_named("gemm")), HasSubstr("signal 11"));
}

TEST_F(CompilerFaultTest, ExceedsTheTimeLimit) {
  fake_nvcc("echo started; sleep 60 & wait\n");
  options_.timeout_s = 0.3;
  const auto started = std::chrono::steady_clock::now();
  EXPECT_THAT(failure_of(cache::source_named("gemm")), AllOf(HasSubstr("killed after 0.3 s"), HasSubstr("started")));
  EXPECT_LT(std::chrono::steady_clock::now() - started, std::chrono::seconds(5));
}

TEST_F(CompilerFaultTest, FailsAndFloodsItsLog) {
  fake_nvcc("yes 'error: everything' | head -c 5000000; exit 3\n");
  const std::string message = failure_of(cache::source_named("gemm"));
  EXPECT_THAT(message, AllOf(HasSubstr("code 3"), HasSubstr("log cut")));
  EXPECT_LT(message.size(), 20'000u);
}

TEST_F(CompilerFaultTest, SucceedsWithoutOutput) {
  fake_nvcc("exit 0\n");
  EXPECT_THAT(failure_of(cache::source_named("gemm")), AllOf(HasSubstr("cannot open"), HasSubstr("kernel.ptx")));
}

TEST_F(CompilerFaultTest, FlagsFromTheEnvironmentDoNotReachIt) {
  ::setenv("NVCC_APPEND_FLAGS", "-O0 -G", 1);
  ::setenv("NVCC_PREPEND_FLAGS", "--evil", 1);
  fake_nvcc("env; pwd; echo \"$@\"; exit 1\n");
  const std::string message = failure_of(cache::source_named("gemm"));
  ::unsetenv("NVCC_APPEND_FLAGS");
  ::unsetenv("NVCC_PREPEND_FLAGS");
  EXPECT_THAT(message,
              AllOf(HasSubstr("-arch=sm_90a"), HasSubstr("TMPDIR="), Not(HasSubstr("NVCC_")), Not(HasSubstr("evil"))));
}

TEST_F(CompilerFaultTest, TemporaryFoldersAreGoneAfterwards) {
  fake_nvcc("exit 1\n");
  options_.dump_dir = at("dumps");
  failure_of(cache::source_named("gemm"));
  for (const auto& file : fs::directory_iterator(folder_.path())) {
    EXPECT_THAT(file.path().filename().string(), Not(testing::StartsWith("tilewright-")));
  }
  EXPECT_FALSE(fs::is_empty(at("dumps")));
}

TEST_F(CompilerFaultTest, NoTemporaryFolder) {
  fake_nvcc("exit 0\n");
  environment_.temporary_dir = at("missing");
  const auto compiler = make_compiler(options_, environment_);
  try {
    compiler->compile(cache::source_named("gemm"));
    FAIL() << "compiled";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr(at("missing")));
  }
}

TEST_F(CompilerFaultTest, NvccThatPrintsNoVersion) {
  fs::remove(at("bin/nvcc"));
  write_new_file(at("bin/nvcc"), "#!/bin/sh\necho hello\n");
  fs::permissions(at("bin/nvcc"), fs::perms::owner_all);
  EXPECT_THROW(make_compiler(options_, environment_), ToolchainNotFound);
  fs::remove(at("bin/nvcc"));
  write_new_file(at("bin/nvcc"), "#!/no/such/interpreter\n");
  fs::permissions(at("bin/nvcc"), fs::perms::owner_all);
  EXPECT_THROW(make_compiler(options_, environment_), Error);
}

TEST_F(CompilerFaultTest, NvccIsIdentifiedByItsBinariesAndNotByItsBanner) {
  const auto identity = [&] { return make_compiler(options_, environment_)->identity(); };
  fake_nvcc("exit 1\n");
  const std::string first = identity();
  EXPECT_EQ(identity(), first);
  fake_nvcc("exit 2\n");
  const std::string patched = identity();
  EXPECT_NE(patched, first);
  write_new_file(at("bin/ptxas"), std::string(2 << 20, 'p'));
  const std::string with_ptxas = identity();
  EXPECT_NE(with_ptxas, patched);
  fs::remove(at("bin/ptxas"));
  write_new_file(at("bin/ptxas"), std::string(2 << 20, 'q'));
  EXPECT_NE(identity(), with_ptxas);
}

TEST_F(CompilerFaultTest, NvrtcMissing) {
  options_.backend = Backend::nvrtc;
  environment_.cuda_paths = {at("cuda")};
  environment_.virtual_env = at("venv");
  make_folders(at("venv/lib/python3.11/site-packages"));
  try {
    make_compiler(options_, environment_);
    FAIL() << "found";
  } catch (const ToolchainNotFound& error) {
    EXPECT_THAT(error.what(),
                AllOf(HasSubstr(at("cuda")), HasSubstr(at("venv/lib/python3.11/site-packages/nvidia/*/lib")),
                      HasSubstr("pip install \"cuda-toolkit[nvrtc]==13.*\"")));
  }
}

TEST_F(CompilerFaultTest, NvrtcThatIsNotALibrary) {
  options_.backend = Backend::nvrtc;
  environment_.cuda_home = at("cuda");
  make_folders(at("cuda/lib64"));
  write_new_file(at("cuda/lib64/libnvrtc.so.13"), "not ELF");
  const auto compiler = make_compiler(options_, environment_);
  for (int attempt = 0; attempt < 2; ++attempt) {
    try {
      compiler->compile(cache::source_named("gemm"));
      FAIL() << "compiled";
    } catch (const ToolchainNotFound& error) {
      EXPECT_THAT(error.what(), AllOf(HasSubstr("cannot load"), HasSubstr("pip install")));
    }
  }
}

TEST_F(CompilerFaultTest, AnotherLibraryInPlaceOfNvrtc) {
  const std::string libm = "/lib/x86_64-linux-gnu/libm.so.6";
  if (!fs::exists(libm)) GTEST_SKIP() << "no " << libm;
  options_.backend = Backend::nvrtc;
  environment_.cuda_home = at("cuda");
  make_folders(at("cuda/lib64"));
  fs::copy_file(libm, at("cuda/lib64/libnvrtc.so.13"));
  try {
    make_compiler(options_, environment_)->compile(cache::source_named("gemm"));
    FAIL() << "compiled";
  } catch (const ToolchainNotFound& error) {
    EXPECT_THAT(error.what(), HasSubstr("has no function nvrtcVersion"));
  }
}

TEST_F(CompilerFaultTest, OptionsCannotBeInjected) {
  fake_nvcc("echo \"$@\"; exit 1\n");
  for (const char* name : {"-I/etc", "--pre-include=/etc/passwd", "@file", "a b", "a\nb", "$(id)"}) {
    Source source = cache::source_named("gemm");
    source.name = name;
    EXPECT_THROW(make_compiler(options_, environment_)->compile(source), InvalidArgument) << name;
  }
}

}  // namespace
}  // namespace tilewright::compile
