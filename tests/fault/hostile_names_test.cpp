// Names that could act as code, options, paths or commands are refused before anything is started or written.
#include <gmock/gmock.h>

#include <set>

#include "tests/fault/fault_fixture.hpp"
#include "tilewright/compile/nvcc.hpp"

namespace tilewright::compile {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> hostile_names() {
  return {"x\n__global__ void evil(){}",
          "a;b",
          "../../x",
          "/etc/passwd",
          "",
          std::string("a\0b", 3),
          std::string(1 << 20, 'x'),
          "k\xd0\xb5rnel",
          "\xff\xfe",
          "-I/etc",
          "@file",
          "a b",
          "$(id)",
          "`id`",
          "%s%n",
          "9k",
          "\"quoted\"",
          "tab\there"};
}

class HostileNames : public cache::FaultTest {
 protected:
  HostileNames() {
    make_folders(at("bin"));
    write_new_file(at("bin/nvcc"),
                   "#!/bin/sh\nif [ \"$1\" = --version ]; then echo 'Cuda compilation tools, release "
                   "13.0, V13.0.88'; echo 'Build cuda_13.0.r13.0/compiler.1_0'; exit 0; fi\ntouch " +
                       at("started") + "\nexit 1\n");
    fs::permissions(at("bin/nvcc"), fs::perms::owner_all);
    options_.backend = Backend::nvcc;
    options_.dump_dir = at("dumps");
    environment_.temporary_dir = folder_.path();
    environment_.path = {at("bin"), "/usr/bin", "/bin"};
  }

  /// All files but those of the cache, which creates a lock file.
  std::set<std::string> files() const {
    std::set<std::string> all;
    for (const auto& entry : fs::recursive_directory_iterator(folder_.path())) {
      if (!entry.path().string().starts_with(at("cache"))) all.insert(entry.path().string());
    }
    return all;
  }

  ToolchainOptions options_;
  Environment environment_;
};

TEST_F(HostileNames, StartNoCompilerAndWriteNoFile) {
  const auto compiler = make_compiler(options_, environment_);
  cache::Store store(options());
  const std::set<std::string> before = files();
  for (const std::string& name : hostile_names()) {
    Source source = cache::source_named("gemm");
    source.name = name;
    EXPECT_THROW(compiler->compile(source), InvalidArgument) << name.substr(0, 40);
    EXPECT_THROW(store.get_or_compile(source, *compiler), InvalidArgument) << name.substr(0, 40);
    source = cache::source_named("gemm");
    source.symbol = name;
    EXPECT_THROW(compiler->compile(source), InvalidArgument) << name.substr(0, 40);
    EXPECT_THROW(store.get_or_compile(source, *compiler), InvalidArgument) << name.substr(0, 40);
  }
  EXPECT_FALSE(fs::exists(at("started")));
  EXPECT_EQ(files(), before);
  EXPECT_TRUE(store.keys().empty());
}

/// The refusal is one short line without control characters.
TEST_F(HostileNames, AreShownSafely) {
  for (const std::string& name : hostile_names()) {
    Source source = cache::source_named("gemm");
    source.name = name;
    const std::string reason = validate(source).reason();
    EXPECT_FALSE(reason.empty());
    EXPECT_LT(reason.size(), 400U);
    for (const char c : reason) EXPECT_TRUE(c >= ' ' && c != '\x7f') << "byte " << static_cast<int>(c);
  }
}

}  // namespace
}  // namespace tilewright::compile
