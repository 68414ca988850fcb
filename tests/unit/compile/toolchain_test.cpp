// Where libraries and tools are searched, in which order, and the error when there are none.
#include "tilewright/compile/toolchain.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <filesystem>

#include "tilewright/compile/file.hpp"

namespace tilewright::compile {
namespace {

namespace fs = std::filesystem;
using testing::EndsWith;
using testing::HasSubstr;

constexpr std::array<std::string_view, 2> kSonames = {"libtoy.so.13", "libtoy.so.12"};

class ToolchainTest : public testing::Test {
 protected:
  std::string create(const std::string& path) const {
    const std::string full = folder_.path() + "/" + path;
    make_folders(fs::path(full).parent_path());
    write_new_file(full, "toy");
    fs::permissions(full, fs::perms::owner_all);
    return full;
  }
  std::string at(const std::string& path) const { return folder_.path() + "/" + path; }

  ScopedFolder folder_{testing::TempDir()};
};

TEST_F(ToolchainTest, SearchesPlacesInOrder) {
  Environment environment;
  environment.cuda_home = at("override");
  environment.virtual_env = at("venv");
  environment.home = at("home");
  environment.conda_prefix = at("conda");
  environment.loader_dirs = {at("system")};
  environment.cuda_paths = {at("cuda_path")};
  environment.cuda_roots = {at("usr_local_cuda")};
  const std::vector<std::string> worst_first = {
      "usr_local_cuda/lib64/libtoy.so.13",
      "cuda_path/lib/libtoy.so.13",
      "system/libtoy.so.13",
      "conda/lib/libtoy.so.13",
      "home/.local/lib/python3.11/site-packages/nvidia/cu13/lib/libtoy.so.13",
      "venv/lib/python3.12/site-packages/nvidia/cu13/lib/libtoy.so.13",
      "override/lib64/libtoy.so.13",
  };
  for (const std::string& path : worst_first) {
    const std::string created = create(path);
    EXPECT_EQ(find_library(kSonames, environment).path, created);
  }
}

TEST_F(ToolchainTest, NewestSonameOfOnePlaceWins) {
  Environment environment;
  environment.virtual_env = at("venv");
  const std::string older = create("venv/lib/python3.11/site-packages/nvidia/toy/lib/libtoy.so.12");
  EXPECT_EQ(find_library(kSonames, environment).path, older);
  const std::string newer = create("venv/lib/python3.11/site-packages/nvidia/cu13/lib/libtoy.so.13");
  EXPECT_EQ(find_library(kSonames, environment).path, newer);
}

TEST_F(ToolchainTest, VirtualEnvironmentBesideTheBuildFolderIsFound) {
  Environment environment;
  environment.code_dirs = {at("project/build/bin")};
  const std::string created = create("project/.venv/lib/python3.11/site-packages/nvidia/cu13/lib/libtoy.so.13");
  EXPECT_EQ(find_library(kSonames, environment).path, created);
  fs::permissions(at("project/.venv"), fs::perms::all);
  EXPECT_EQ(find_library(kSonames, environment).path, std::nullopt) << "anybody may write there";
}

TEST_F(ToolchainTest, WheelsBesideAnInstalledExtensionAreFound) {
  Environment environment;
  environment.code_dirs = {at("py/lib/python3.11/site-packages/tilewright")};
  const std::string created = create("py/lib/python3.11/site-packages/nvidia/cu13/lib/libtoy.so.13");
  EXPECT_EQ(find_library(kSonames, environment).path, created);
}

TEST_F(ToolchainTest, RecordsPlacesUpToTheFirstMatch) {
  Environment environment;
  environment.cuda_home = at("override");
  environment.cuda_paths = {at("cuda_path")};
  environment.cuda_roots = {at("never_reached")};
  const std::string created = create("cuda_path/lib64/libtoy.so.12");
  const Search search = find_library(kSonames, environment);
  ASSERT_EQ(search.places.size(), 2u);
  EXPECT_EQ(search.places[0].where, at("override"));
  EXPECT_FALSE(search.places[0].found);
  EXPECT_EQ(search.places[1].where, created);
  EXPECT_TRUE(search.places[1].found);
}

TEST_F(ToolchainTest, AToolMustBeExecutable) {
  Environment environment;
  environment.path = {at("bin")};
  const std::string created = create("bin/nvcc");
  EXPECT_EQ(find_tool("nvcc", environment).path, created);
  fs::permissions(created, fs::perms::owner_read);
  EXPECT_EQ(find_tool("nvcc", environment).path, std::nullopt);
  fs::remove(created);
  fs::create_directories(created);
  EXPECT_EQ(find_tool("nvcc", environment).path, std::nullopt) << "a folder";
}

TEST_F(ToolchainTest, FindsTheMlirLibraryBesideThisCodeOrInLibOrInAPackage) {
  Environment environment;
  environment.code_dirs = {at("build/bin")};
  fs::create_directories(at("build/bin"));
  EXPECT_EQ(find_mlir(environment).path, std::nullopt);
  environment.loader_dirs = {at("usr/lib")};
  const std::string of_loader = create("usr/lib/libtilewright_mlir.so");
  EXPECT_EQ(find_mlir(environment).path, of_loader);
  environment.virtual_env = at("venv");
  const std::string in_package = create("venv/lib/python3.11/site-packages/tilewright/libtilewright_mlir.so");
  EXPECT_EQ(find_mlir(environment).path, in_package);
  const std::string in_lib = create("build/lib/libtilewright_mlir.so");
  EXPECT_EQ(find_mlir(environment).path, in_lib);
  const std::string beside = create("build/bin/libtilewright_mlir.so");
  EXPECT_EQ(find_mlir(environment).path, beside);
  environment.mlir_library = at("elsewhere/shim.so");
  EXPECT_EQ(find_mlir(environment).path, std::nullopt) << "the named file and no other";
  const std::string named = create("elsewhere/shim.so");
  EXPECT_EQ(find_mlir(environment).path, named);
}

TEST_F(ToolchainTest, BuildIdentityOfAnElfFileIsItsBuildId) {
  const std::string libc = "/lib/x86_64-linux-gnu/libc.so.6";
  if (!fs::exists(libc)) GTEST_SKIP() << "no " << libc;
  EXPECT_THAT(build_identity(libc), testing::MatchesRegex("[0-9a-f]{40}"));
}

TEST_F(ToolchainTest, BuildIdentityOfOtherFilesDependsOnTheirModificationTime) {
  const std::string path = create("tool");
  const std::string before = build_identity(path);
  fs::remove(path);
  create("tool");
  fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::hours(1));
  EXPECT_NE(build_identity(path), before);
  EXPECT_THROW(build_identity(path + ".missing"), ToolchainNotFound);
}

TEST_F(ToolchainTest, BuildIdentitySurvivesADamagedElfFile) {
  std::string head = read_file("/proc/self/exe", std::size_t{1} << 30).substr(0, 4096);
  const std::string path = at("damaged.so");
  for (std::size_t byte = 32; byte < 1024; byte += 3) {
    std::string damaged = head;
    damaged[byte] = '\xff';
    fs::remove(path);
    write_new_file(path, damaged);
    EXPECT_FALSE(build_identity(path).empty());
  }
}

TEST_F(ToolchainTest, NotFoundErrorListsPlacesAndInstallCommand) {
  ToolchainOptions options;
  Environment environment;
  environment.cuda_paths = {at("here"), at("there")};
  for (const Backend backend : {Backend::nvrtc, Backend::nvcc}) {
    options.backend = backend;
    try {
      make_compiler(options, environment);
      FAIL() << "found one";
    } catch (const ToolchainNotFound& error) {
      EXPECT_THAT(error.what(), HasSubstr(at("here")));
      EXPECT_THAT(error.what(), HasSubstr(at("there")));
      EXPECT_THAT(error.what(), HasSubstr("pip install \"cuda-toolkit["));
    }
  }
}

TEST(Environment, ContainsTheFolderOfTheExecutable) {
  const Environment environment = capture_environment();
  ASSERT_FALSE(environment.code_dirs.empty());
  EXPECT_EQ(environment.code_dirs.front(), fs::canonical("/proc/self/exe").parent_path().string());
  EXPECT_FALSE(environment.temporary_dir.empty());
}

}  // namespace
}  // namespace tilewright::compile
