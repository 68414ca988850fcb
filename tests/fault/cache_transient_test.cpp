// Temporary errors (no free descriptor, no memory, an I/O error, a stale network handle) cost a compile but leave the
// entry unchanged.
#include <gmock/gmock.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "tests/fault/failing_calls.hpp"
#include "tests/fault/fault_fixture.hpp"

namespace tilewright::cache {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class CacheTransientTest : public FaultTest, public testing::WithParamInterface<int> {
 protected:
  void SetUp() override {
    if (!can_fail_system_calls()) GTEST_SKIP() << "the kernel does not filter system calls here";
    fill();
  }
  /// Expects that a process in which `fail` makes a system call fail compiles the kernel and warns, and that a later
  /// process uses the unchanged entry.
  void expect_a_miss(const std::function<bool()>& fail) {
    const std::string before = compile::read_file(entry(), 1 << 20);
    Child child([&] {
      Store store(options());
      if (!fail()) return false;
      const FakeCompiler unlogged("");
      const bool is_right =
          store.get_or_compile(source_named("gemm"), unlogged)->ptx == "// compiled from text of gemm";
      const bool is_quarantined = !store.verify().damaged.empty();
      if (store.warnings().empty()) std::fprintf(stderr, "no warning\n");
      return is_right && !is_quarantined && store.counters().compiles == 1 && !store.warnings().empty();
    });
    EXPECT_TRUE(child.succeeded());
    EXPECT_EQ(compile::read_file(entry(), 1 << 20), before);
    Store after(options());
    after.get_or_compile(source_named("gemm"), compiler_);
    EXPECT_EQ(after.counters().disk_hits, 1);
  }
};

INSTANTIATE_TEST_SUITE_P(Errors, CacheTransientTest,
                         testing::Values(EMFILE, ENFILE, ENOMEM, ESTALE, EACCES, EIO, EBUSY, ENXIO),
                         [](const auto& test) { return std::string(::strerrorname_np(test.param)); });

TEST_P(CacheTransientTest, WhenAnEntryIsOpened) {
  expect_a_miss([] { return fail_system_call(SYS_openat, GetParam(), 2, O_NONBLOCK | O_NOFOLLOW); });
}

TEST_P(CacheTransientTest, WhenItsFolderIsOpened) {
  expect_a_miss([] { return fail_system_call(SYS_openat, GetParam(), 2, O_DIRECTORY | O_NOFOLLOW); });
}

TEST_P(CacheTransientTest, WhenItIsRead) {
  expect_a_miss([] { return fail_system_call(SYS_read, GetParam()); });
}

TEST_F(CacheTransientTest, WhenNoDescriptorIsFree) {
  expect_a_miss([] {
    const rlimit none{static_cast<rlim_t>(::dup(0)), 4096};
    return ::setrlimit(RLIMIT_NOFILE, &none) == 0;
  });
}

TEST_F(CacheTransientTest, PublishingSurvivesEveryError) {
  for (const int call : {SYS_openat, SYS_write, SYS_linkat, SYS_renameat2, SYS_mkdirat, SYS_fcntl, SYS_close}) {
    for (const int error : {EIO, ENOSPC, EDQUOT, ESTALE, EBUSY, ENOENT, ENOLCK, EROFS}) {
      Child child([&] {
        Store store(options());
        if (!fail_system_call(call, error)) return false;
        FakeCompiler unlogged("");
        return store.get_or_compile(source_named("new"), unlogged)->ptx == "// compiled from text of new";
      });
      EXPECT_TRUE(child.succeeded()) << call << " " << ::strerrorname_np(error);
      Store after(options());
      EXPECT_TRUE(after.verify().damaged.empty()) << "a partial entry was left after system call " << call;
      after.clear();
      EXPECT_TRUE(fs::is_empty(at("cache/tmp"))) << call << " " << ::strerrorname_np(error);
    }
  }
}

TEST_F(CacheTransientTest, ADiskWithoutFreeInodes) {
  fs::create_directory(at("small"));
  if (::mount("none", at("small").c_str(), "tmpfs", 0, "nr_inodes=12,mode=0700") != 0)
    GTEST_SKIP() << "mounting is not allowed here";
  {
    StoreOptions small = options();
    small.root = at("small");
    Store store(small);
    for (int i = 0; i < 12; ++i) {
      const std::string name = "k" + std::to_string(i);
      EXPECT_EQ(store.get_or_compile(source_named(name), compiler_)->name, name);
    }
    EXPECT_THAT(store.warnings(), testing::Contains(HasSubstr("No space left on device")));
    EXPECT_LE(store.warnings().size(), 2u);
    EXPECT_TRUE(store.verify().damaged.empty());
  }
  ::umount(at("small").c_str());
}

}  // namespace
}  // namespace tilewright::cache
