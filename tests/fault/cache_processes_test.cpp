// Many processes use one cache: each key is compiled once, and nobody waits for a process that died.
#include <gmock/gmock.h>
#include <signal.h>
#include <spdlog/sinks/ringbuffer_sink.h>
#include <spdlog/spdlog.h>

#include <atomic>
#include <chrono>
#include <random>

#include "tests/fault/fake_nvrtc.hpp"
#include "tests/fault/fault_fixture.hpp"
#include "tests/fault/repeats.hpp"
#include "tilewright/base/interruption.hpp"

namespace tilewright::cache {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

class CacheProcessesTest : public FaultTest {
 protected:
  /// Waits until `runs` compiles have begun.
  void wait_for_compile(std::size_t runs) const {
    const auto deadline = Clock::now() + 10s;
    while (compiler_.runs() < runs && Clock::now() < deadline) std::this_thread::sleep_for(2ms);
    ASSERT_EQ(compiler_.runs(), runs);
  }
  /// A process that compiles "gemm", which takes `duration`.
  Child compile_in_child(std::chrono::milliseconds duration) const {
    return Child([this, duration] {
      const FakeCompiler slow(at("compiles"), duration);
      return Store(options()).get_or_compile(source_named("gemm"), slow) != nullptr;
    });
  }
};

/// Many processes request one key that is not cached. With the parameter "forks", the process that compiles forks
/// meanwhile, and its child, which outlives the compile, must not keep the lock.
class CacheCrowdTest : public CacheProcessesTest, public testing::WithParamInterface<bool> {
 protected:
  /// A compiler whose process forks on another thread during a compile.
  class ForkingCompiler final : public compile::Compiler {
   public:
    ForkingCompiler(const std::string& log, bool forks) : real_(log, 100ms), forks_(forks) {}
    const std::string& identity() const override { return real_.identity(); }
    compile::Artifact compile(const compile::Source& source) const override {
      if (!forks_) return real_.compile(source);
      std::jthread other([] {
        if (::fork() != 0) return;
        ::sleep(3);
        ::_exit(0);
      });
      return real_.compile(source);
    }

   private:
    FakeCompiler real_;
    bool forks_;
  };
};

INSTANTIATE_TEST_SUITE_P(Holder, CacheCrowdTest, testing::Bool(),
                         [](const auto& test) { return test.param ? "forks" : "does_not_fork"; });

TEST_P(CacheCrowdTest, SixteenProcessesOnOneColdKeyCompileOnce) {
  int start[2], ends[2];
  ASSERT_EQ(::pipe(start), 0);
  ASSERT_EQ(::pipe(ends), 0);
  std::vector<Child> children;
  for (int i = 0; i < 16; ++i) {
    children.emplace_back([&] {
      ::close(start[1]);
      char byte = 0;
      if (::read(start[0], &byte, 1) != 0) return false;  // blocks until the test closes its end of the pipe
      Store store(options());
      const ForkingCompiler slow(at("compiles"), GetParam());
      const ArtifactPtr artifact = store.get_or_compile(source_named("gemm"), slow);
      const std::int64_t end = Clock::now().time_since_epoch().count();
      return ::write(ends[1], &end, sizeof end) == sizeof end && artifact->ptx == "// compiled from text of gemm" &&
             store.warnings().empty();
    });
  }
  ::close(start[1]);
  std::vector<std::int64_t> times(children.size());
  for (std::int64_t& time : times) ASSERT_EQ(::read(ends[0], &time, sizeof time), static_cast<ssize_t>(sizeof time));
  for (Child& child : children) EXPECT_TRUE(child.succeeded());
  for (const int fd : {start[0], ends[0], ends[1]}) ::close(fd);
  EXPECT_EQ(compiler_.runs(), 1u);
  const auto [first, last] = std::ranges::minmax(times);
  EXPECT_LT(Clock::duration(last - first), 50ms) << "the others finish soon after the process that compiled";
}

TEST_F(CacheProcessesTest, DifferentKeysDoNotWaitForEachOther) {
  Child slow = compile_in_child(2000ms);
  wait_for_compile(1);
  const auto started = Clock::now();
  Store(options()).get_or_compile(source_named("conv"), compiler_);
  EXPECT_LT(Clock::now() - started, 1s);
  EXPECT_TRUE(slow.succeeded());
}

TEST_F(CacheProcessesTest, AKilledLockHolderIsReplacedAtOnce) {
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

TEST_F(CacheProcessesTest, AStoppedLockHolderIsWaitedForUntilTheTimeout) {
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

TEST_F(CacheProcessesTest, AForkedChildIsNotBlockedByItsParentsCompile) {
  const FakeCompiler slow(at("compiles"), 600ms);
  Store store(options());
  std::jthread busy([&] { store.get_or_compile(source_named("gemm"), slow); });
  wait_for_compile(1);
  const auto start = Clock::now();
  Child other_key([&] {
    ::alarm(10);
    const FakeCompiler fast(at("childs"));
    return store.get_or_compile(source_named("conv"), fast) != nullptr;
  });
  EXPECT_TRUE(other_key.succeeded());
  EXPECT_LT(Clock::now() - start, 300ms);
  Child same_key([&] {
    ::alarm(10);
    const FakeCompiler fast(at("childs"));
    return store.get_or_compile(source_named("gemm"), fast) != nullptr;
  });
  EXPECT_TRUE(same_key.succeeded()) << "it waits for the parent's compile like an unrelated process";
  busy.join();
  EXPECT_EQ(FakeCompiler(at("childs")).runs(), 1u);
}

TEST_F(CacheProcessesTest, ALongWaitIsLogged) {
  Child holder = compile_in_child(60s);
  wait_for_compile(1);
  const auto messages = std::make_shared<spdlog::sinks::ringbuffer_sink_mt>(10);
  const auto usual = spdlog::default_logger();
  spdlog::set_default_logger(std::make_shared<spdlog::logger>("test", messages));
  StoreOptions patient = options();
  patient.lock_timeout_s = 2.3;
  Store(patient).get_or_compile(source_named("gemm"), compiler_);
  spdlog::set_default_logger(usual);
  EXPECT_THAT(messages->last_formatted(),
              testing::ElementsAre(testing::HasSubstr("waiting for another process that compiles gemm"),
                                   testing::HasSubstr("compiling gemm without a lock")));
  ::kill(holder.pid(), SIGKILL);
}

TEST_F(CacheProcessesTest, AWaitCanBeInterrupted) {
  Child holder = compile_in_child(60s);
  wait_for_compile(1);
  const auto start = Clock::now();
  const ScopedInterruptCheck check([&] {
    if (Clock::now() - start > 50ms) throw Interrupted("as asked");
  });
  Store store(options());
  EXPECT_THROW(store.get_or_compile(source_named("gemm"), compiler_), Interrupted);
  EXPECT_LT(Clock::now() - start, 250ms);
  ::kill(holder.pid(), SIGKILL);
}

TEST_F(CacheProcessesTest, AWaitingThreadTakesOverAnInterruptedCompile) {
  const FakeCompiler slow(at("compiles"), 100ms);
  Store store(options());
  std::atomic<bool> was_interrupted = false;
  std::jthread leader([&] {
    const auto start = Clock::now();
    const ScopedInterruptCheck check([&] {
      if (Clock::now() - start > 50ms) throw Interrupted("as asked");
    });
    // This thread can be interrupted because it waits for a lock that another process holds.
    Child holder = compile_in_child(150ms);
    wait_for_compile(1);
    try {
      store.get_or_compile(source_named("gemm"), slow);
    } catch (const Interrupted&) {
      was_interrupted = true;
    }
  });
  wait_for_compile(1);
  std::this_thread::sleep_for(10ms);
  EXPECT_EQ(store.get_or_compile(source_named("gemm"), slow)->name, "gemm");
  leader.join();
  EXPECT_TRUE(was_interrupted);
}

TEST_F(CacheProcessesTest, AKillAtAnyPointLeavesNothingBehind) {
  std::mt19937_64 random(7);
  for (int round = 0; round < repeats(60); ++round) {
    const std::string name = "k" + std::to_string(round);
    const compile::Source source = compile::commanded_source(name, {"sleep 10"});
    Child victim([&] {
      Store store(options());
      return store.get_or_compile(source, *compile::make_fake_nvrtc(folder_.path())) != nullptr;
    });
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 30'000));
    ::kill(victim.pid(), SIGKILL);
    victim.succeeded();
    EXPECT_TRUE(!fs::exists(at("cache/tmp")) || fs::is_empty(at("cache/tmp"))) << "round " << round;
    Store next(options());
    const auto compiler = compile::make_fake_nvrtc(folder_.path());
    ASSERT_EQ(next.get_or_compile(source, *compiler)->ptx, source.text) << "round " << round;
    ASSERT_TRUE(next.warnings().empty()) << next.warnings().front();
  }
  const Verification verification = Store(options()).verify();
  EXPECT_TRUE(verification.damaged.empty() && verification.unusable.empty());
  for (const auto& file : fs::directory_iterator(folder_.path())) {
    const std::string name = file.path().filename();
    EXPECT_TRUE(name == "cache" || name == "cuda") << name;
  }
}

}  // namespace
}  // namespace tilewright::cache
