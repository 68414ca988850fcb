// The library that translates MLIR is missing, of another version, not a library, crashes or hangs; a source is wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>

#include "tilewright/base/error.hpp"
#include "tilewright/cache/store.hpp"
#include "tilewright/compile/compiler.hpp"
#include "tilewright/compile/file.hpp"
#include "tilewright/compile/mlir_compiler.hpp"
#include "tilewright/compile/toolchain.hpp"

namespace tilewright::compile {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class MlirFaultTest : public testing::Test {
 protected:
  MlirFaultTest() { environment_.temporary_dir = folder_.path(); }

  static Source source_of(const std::string& commands) {
    Source source;
    source.name = source.symbol = "kernel";
    source.language = Language::mlir;
    source.text = commands + "\n.visible .entry kernel(";
    source.target = kSm90a;
    source.outputs = {.cubin = false, .ptx = true};
    return source;
  }

  /// The message of the exception that is thrown if the library at `path` compiles.
  std::string error_of(const std::string& path, const std::string& commands = {}) {
    environment_.mlir_library = path;
    try {
      MlirCompiler(options_, environment_).compile(source_of(commands));
    } catch (const Error& error) {
      return error.what();
    }
    return "it compiled";
  }

  ScopedFolder folder_{testing::TempDir()};
  ToolchainOptions options_;
  Environment environment_;
};

TEST_F(MlirFaultTest, AMissingLibraryNamesThePathAndTheCommandThatInstallsIt) {
  EXPECT_THAT(error_of("/no/such/libtilewright_mlir.so"),
              AllOf(HasSubstr("libtilewright_mlir.so"), HasSubstr("was not found"),
                    HasSubstr("/no/such/libtilewright_mlir.so"), HasSubstr("apt-get install libmlir-22-dev")));
  environment_.mlir_library.clear();
  environment_.code_dirs = {folder_.path()};
  EXPECT_THROW(MlirCompiler(options_, environment_), ToolchainNotFound);
}

TEST_F(MlirFaultTest, CudaCompilesWhereTheLibraryIsMissing) {
  Environment environment = capture_environment();
  environment.mlir_library = "/no/such/libtilewright_mlir.so";
  std::unique_ptr<Compiler> compiler;
  try {
    compiler = make_compiler(options_, environment);
  } catch (const ToolchainNotFound& error) {
    GTEST_SKIP() << error.what();
  }
  EXPECT_THROW(compiler->identity_for(source_of({})), ToolchainNotFound);
  EXPECT_THROW(compiler->compile(source_of({})), ToolchainNotFound);
  Source cuda = source_of({});
  cuda.language = Language::cuda;
  cuda.text = "extern \"C\" __global__ void kernel() {}";
  EXPECT_THAT(compiler->compile(cuda).ptx, HasSubstr(".entry kernel("));
}

TEST_F(MlirFaultTest, AnotherVersionIsRefused) {
  for (const Backend backend : {Backend::nvrtc, Backend::nvrtc_in_process}) {
    options_.backend = backend;
    EXPECT_THAT(error_of(TILEWRIGHT_FAKE_MLIR_ABI),
                AllOf(HasSubstr("version 99 of the interface"), HasSubstr("needs version 1")));
    EXPECT_THAT(error_of(TILEWRIGHT_FAKE_MLIR_LLVM),
                AllOf(HasSubstr("contains LLVM 21.1.0"), HasSubstr("needs LLVM 22")));
  }
}

TEST_F(MlirFaultTest, AFileThatIsNoLibraryIsRefused) {
  write_new_file(folder_.path() + "/libtilewright_mlir.so", "not a library");
  EXPECT_THAT(error_of(folder_.path() + "/libtilewright_mlir.so"), HasSubstr("cannot load"));
}

TEST_F(MlirFaultTest, ACrashIsAnError) {
  EXPECT_THAT(error_of(TILEWRIGHT_FAKE_MLIR, "kill 11"),
              AllOf(HasSubstr("cannot compile 'kernel'"), HasSubstr("MLIR's process was killed by signal 11")));
  EXPECT_EQ(error_of(TILEWRIGHT_FAKE_MLIR), "it compiled") << "after the crash";
}

TEST_F(MlirFaultTest, AHangEndsAtTheTimeLimit) {
  options_.timeout_s = 0.3;
  const auto started = std::chrono::steady_clock::now();
  EXPECT_THAT(error_of(TILEWRIGHT_FAKE_MLIR, "sleep 60000"), HasSubstr("MLIR was killed after 0.3 s"));
  EXPECT_LT(std::chrono::steady_clock::now() - started, std::chrono::seconds(20));
}

TEST_F(MlirFaultTest, IdentityFollowsTheLibrary) {
  environment_.mlir_library = TILEWRIGHT_FAKE_MLIR;
  const std::string one = MlirCompiler(options_, environment_).identity();
  environment_.mlir_library = TILEWRIGHT_FAKE_MLIR_LLVM;
  EXPECT_NE(MlirCompiler(options_, environment_).identity(), one);
}

TEST_F(MlirFaultTest, AFailureIsNotCached) {
  environment_.mlir_library = TILEWRIGHT_FAKE_MLIR;
  const MlirCompiler compiler(options_, environment_);
  cache::StoreOptions store_options;
  store_options.root = folder_.path() + "/cache";
  cache::Store store(store_options);
  EXPECT_THROW(store.get_or_compile(source_of("kill 11"), compiler), CompileError);
  EXPECT_TRUE(store.keys().empty());
  EXPECT_EQ(store.counters().compiles, 0);
  const auto artifact = store.get_or_compile(source_of("fine"), compiler);
  EXPECT_EQ(store.get_or_compile(source_of("fine"), compiler), artifact);
  EXPECT_EQ(store.counters().compiles, 1);
}

}  // namespace
}  // namespace tilewright::compile
