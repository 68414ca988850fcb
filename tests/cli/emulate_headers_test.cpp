// Headers of kernels that tilewright emulate compiles: of the toolkit, of the host's library, and of the user.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <string>

#include "tilewright/base/error.hpp"
#include "tilewright/compile/file.hpp"
#include "tools/cli/commands.hpp"

namespace tilewright::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class EmulateHeadersTest : public testing::Test {
 protected:
  void SetUp() override {
    try {
      run("__global__ void k() {}");
    } catch (const ToolchainNotFound&) {
      GTEST_SKIP() << "no NVRTC";
    }
  }
  void write(const std::string& name, const std::string& text) {
    const std::string path = folder_.path() + "/" + name;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    compile::write_file(path, text);
  }
  ExitCode run(const std::string& text, const std::string& options = "") {
    write("kernels/k.cu", text);
    CLI::App app;
    const Command command = add_emulate_command(app);
    app.parse("emulate " + folder_.path() + "/kernels/k.cu --out-dir " + folder_.path() + " --block 32 " + options,
              false);
    return command.run();
  }
  std::string refusal(const std::string& text) {
    try {
      run(text);
    } catch (const InvalidArgument& error) {
      return error.what();
    }
    return "no refusal";
  }
  static bool has_cccl() { return std::filesystem::exists("/usr/local/cuda/include/cccl/cuda/barrier"); }

  compile::ScopedFolder folder_{testing::TempDir()};
};

TEST_F(EmulateHeadersTest, CooperativeGroupsAndCcclAreFound) {
  if (!has_cccl()) GTEST_SKIP() << "no CCCL in /usr/local/cuda";
  EXPECT_EQ(run(R"(
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cub/cub.cuh>
#include <cuda/barrier>
#include <cuda/std/array>
namespace cg = cooperative_groups;
__global__ void k(int* out) {
  __shared__ cuda::barrier<cuda::thread_scope_block> barrier;
  __shared__ cub::BlockReduce<int, 32>::TempStorage storage;
  if (threadIdx.x == 0) init(&barrier, blockDim.x);
  __syncthreads();
  barrier.arrive_and_wait();
  const cuda::std::array<int, 2> ones{1, 1};
  const int sum = cg::reduce(cg::tiled_partition<32>(cg::this_thread_block()), ones[1], cg::plus<int>());
  const int total = cub::BlockReduce<int, 32>(storage).Sum(sum);
  if (threadIdx.x == 0) *out = total;
})",
                "--args out:s32[1]"),
            ExitCode::ok);
}

TEST_F(EmulateHeadersTest, HeadersOfTheStandardLibraryAreThoseOfLibcu) {
  if (!has_cccl()) GTEST_SKIP() << "no CCCL in /usr/local/cuda";
  EXPECT_EQ(run(R"(
#include <limits.h>
#include <algorithm>
#include <array>
#include <cfloat>
#include <climits>
#include <cmath>
#include <cstdint>
#include <limits>
#include <tuple>
#include <type_traits>
#include <utility>
template <class T>
__global__ void k(T* out) {
  static_assert(std::is_same_v<T, float> && CHAR_BIT == 8 && UINT_MAX > INT_MAX);
  const std::array<int, 2> numbers{1, 2};
  out[threadIdx.x] = std::min(std::numeric_limits<T>::max(), FLT_MAX) + std::max(numbers[0], numbers[1]);
}
template __global__ void k<float>(float*);)",
                "--args out:f32[32]"),
            ExitCode::ok);
}

TEST_F(EmulateHeadersTest, AHeaderIsSearchedBesideTheFileThatIncludesIt) {
  write("common.h", "constexpr int kFactor = 2;\n");
  write("kernels/sub/a.h", "#include \"b.h\"\n");
  write("kernels/sub/b.h", "__device__ int scaled(int x) { return kFactor * x; }\n");
  write("kernels/b.h", "#error the wrong header\n");
  write("kernels/name.h", "#define HEADER \"sub/a.h\"\n");
  testing::internal::CaptureStdout();
  EXPECT_EQ(run("#include \"../common.h\"\n#include \"name.h\"\n#include HEADER\n"
                "__global__ void k(int* out) { out[threadIdx.x] = scaled(2); }\n",
                "--args out:s32[31]"),
            ExitCode::wrong_result);
  EXPECT_THAT(testing::internal::GetCapturedStdout(), HasSubstr("at " + folder_.path() + "/kernels/k.cu:4"));
}

TEST_F(EmulateHeadersTest, AWholeProgramIsToldToRun) {
  const auto says_so = [](const std::string& reason) {
    return AllOf(HasSubstr(reason), HasSubstr("nvcc -cudart shared"), HasSubstr("tilewright emulate run -- ./program"));
  };
  EXPECT_THAT(refusal("#include <vector>\n__global__ void k() {}\nint main() {\n  k<<<1, 1>>>();\n}\n"),
              says_so("k.cu has a main(), and emulate compiles device code only"));
  EXPECT_THAT(refusal("__global__ void k() {}\nvoid launch() { k<<<1, 1>>>(); }\n"), says_so("k.cu has host code"));
  EXPECT_THAT(refusal("#include <vector>\n__global__ void k() {}\n"),
              says_so("<vector> is a header of the host's C++ library, which device code cannot use"));
  EXPECT_THAT(refusal("#include \"nowhere.h\"\n__global__ void k() {}\n"),
              HasSubstr("To say where nowhere.h is, add -I FOLDER."));
  EXPECT_THAT(refusal("__global__ void k() { undeclared(); }\n"), testing::Not(HasSubstr("emulate run")));
}

}  // namespace
}  // namespace tilewright::cli
