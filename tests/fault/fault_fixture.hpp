// The fixture of the fault tests: a store in a private folder with one entry, and code that runs in a child process.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <filesystem>
#include <functional>
#include <string>

#include "tests/unit/cache/fake_compiler.hpp"
#include "tilewright/cache/store.hpp"

namespace tilewright::cache {

/// A forked process that runs `work` and exits with 0 if that returns true.
class Child {
 public:
  explicit Child(const std::function<bool()>& work) : pid_(::fork()) {
    if (pid_ == 0) ::_exit(run(work) ? 0 : 1);
  }
  Child(Child&& other) noexcept : pid_(std::exchange(other.pid_, -1)) {}
  Child& operator=(Child&&) = delete;
  ~Child() {
    if (pid_ > 0) wait_status();
  }

  pid_t pid() const { return pid_; }
  /// Waits for the process; true when it exited with 0.
  bool succeeded() {
    const int status = wait_status();
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }

 private:
  static bool run(const std::function<bool()>& work) {
    try {
      return work();
    } catch (const std::exception& error) {
      std::fprintf(stderr, "child: %s\n", error.what());
      return false;
    }
  }
  int wait_status() {
    int status = 0;
    ::waitpid(std::exchange(pid_, -1), &status, 0);
    return status;
  }

  pid_t pid_;
};

class FaultTest : public testing::Test {
 protected:
  std::string at(const std::string& name) const { return folder_.path() + "/" + name; }
  StoreOptions options() const {
    StoreOptions options;
    options.root = at("cache");
    return options;
  }
  /// Path of the entry of source_named("gemm").
  std::string entry() const { return entry_path(at("cache"), make_key(source_named("gemm"), compiler_.identity())); }
  ArtifactPtr fill() const { return Store(options()).get_or_compile(source_named("gemm"), compiler_); }

  compile::ScopedFolder folder_{testing::TempDir()};
  FakeCompiler compiler_{at("compiles")};
};

}  // namespace tilewright::cache
