// Many processes on one cache: one compile a key, and nobody waits for the dead.
#include <gmock/gmock.h>
#include <signal.h>

#include <chrono>

#include "tests/fault/fault_fixture.hpp"

namespace tilewright::cache {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

class CacheProcessesTest : public FaultTest {
 protected:
  /// Returns once a compile has begun.
  void wait_for_compile(std::size_t runs) const {
    const auto deadline = Clock::now() + 10s;
    while (compiler_.runs() < runs && Clock::now() < deadline) std::this_thread::sleep_for(2ms);
    ASSERT_EQ(compiler_.runs(), runs);
  }
  /// A process that compiles "gemm" and takes `duration` over it.
  Child compile_in_child(std::chrono::milliseconds duration) const {
    return Child([this, duration] {
      const FakeCompiler slow(at("compiles"), duration);
      return Store(options()).get_or_compile(source_named("gemm"), slow) != nullptr;
    });
  }
};

TEST_F(CacheProcessesTest, EightOnOneColdKeyCompileOnce) {
  int start[2];
  ASSERT_EQ(::pipe(start), 0);
  std::vector<Child> children;
  for (int i = 0; i < 8; ++i) {
    children.emplace_back([&] {
      ::close(start[1]);
      char byte = 0;
      if (::read(start[0], &byte, 1) != 0) return false;  // until the test closes its end
      const FakeCompiler slow(at("compiles"), 100ms);
      Store store(options());
      const ArtifactPtr artifact = store.get_or_compile(source_named("gemm"), slow);
      return artifact->ptx == "// compiled from text of gemm" && store.warnings().empty();
    });
  }
  ::close(start[1]);
  for (Child& child : children) EXPECT_TRUE(child.succeeded());
  ::close(start[0]);
  EXPECT_EQ(compiler_.runs(), 1u);
}

TEST_F(CacheProcessesTest, DifferentKeysDoNotWaitForEachOther) {
  Child slow = compile_in_child(2000ms);
  wait_for_compile(1);
  const auto started = Clock::now();
  Store(options()).get_or_compile(source_named("conv"), compiler_);
  EXPECT_LT(Clock::now() - started, 1s);
  EXPECT_TRUE(slow.succeeded());
}

TEST_F(CacheProcessesTest, AKilledHolderIsReplacedAtOnce) {
  Child holder = compile_in_child(60s);
  wait_for_compile(1);
  const auto started = Clock::now();
  Child waiter = compile_in_child(0ms);
  std::this_thread::sleep_for(200ms);
  EXPECT_EQ(compiler_.runs(), 1u) << "it waits";
  ::kill(holder.pid(), SIGKILL);
  EXPECT_TRUE(waiter.succeeded());
  EXPECT_LT(Clock::now() - started, 1500ms);
  EXPECT_FALSE(holder.succeeded());
  EXPECT_EQ(compiler_.runs(), 2u);
  EXPECT_TRUE(fs::is_empty(at("cache") + "/tmp"));
}

TEST_F(CacheProcessesTest, AStoppedHolderIsWaitedForOnlySoLong) {
  Child holder = compile_in_child(60s);
  wait_for_compile(1);
  ::kill(holder.pid(), SIGSTOP);
  StoreOptions impatient = options();
  impatient.lock_timeout_s = 0.2;
  Store store(impatient);
  EXPECT_NE(store.get_or_compile(source_named("gemm"), compiler_), nullptr);
  EXPECT_THAT(store.warnings(), testing::ElementsAre(testing::HasSubstr("holds the lock on it after 0.2 s")));
  ::kill(holder.pid(), SIGKILL);
}

TEST_F(CacheProcessesTest, AFailedCompileReleasesTheLock) {
  compile::Source broken = source_named("gemm");
  broken.text = "broken";
  Store store(options());
  EXPECT_THROW(store.get_or_compile(broken, compiler_), CompileError);
  Child other([&] {
    try {
      Store(options()).get_or_compile(broken, compiler_);
    } catch (const CompileError&) {
      return true;
    }
    return false;
  });
  EXPECT_TRUE(other.succeeded());
  EXPECT_EQ(compiler_.runs(), 2u);
}

TEST_F(CacheProcessesTest, ReadersWritersAndEvictionTogether) {
  std::vector<Child> children;
  StoreOptions small = options();
  small.max_bytes = 40'000;
  for (int process = 0; process < 4; ++process) {
    children.emplace_back([&, process] {
      FakeCompiler fast("/dev/null");
      fast.payload_bytes = 3000;
      const auto deadline = Clock::now() + 1500ms;
      for (unsigned i = static_cast<unsigned>(process); Clock::now() < deadline; i = i * 1103515245u + 12345u) {
        Store store(small);
        const std::string name = "k" + std::to_string((i >> 16) % 40);
        if (store.get_or_compile(source_named(name), fast)->ptx != "// compiled from text of " + name) return false;
        if (!store.warnings().empty()) return false;
      }
      return true;
    });
  }
  for (Child& child : children) EXPECT_TRUE(child.succeeded());
  Store(small).get_or_compile(source_named("last"), compiler_);
  std::uintmax_t bytes = 0;
  for (const auto& file : fs::recursive_directory_iterator(at("cache") + "/entries")) {
    if (file.is_regular_file()) bytes += file.file_size();
  }
  EXPECT_LE(bytes, 40'000u);
  EXPECT_GT(bytes, 10'000u);
}

}  // namespace
}  // namespace tilewright::cache
