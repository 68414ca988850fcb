// The order of lookups in memory and on disk, and how often the compiler runs.
#include "tilewright/cache/store.hpp"

#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <thread>

#include "tests/unit/cache/fake_compiler.hpp"

namespace tilewright::cache {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

class StoreTest : public testing::Test {
 protected:
  StoreOptions options() const {
    StoreOptions options;
    options.root = root();
    return options;
  }
  std::string root() const { return folder_.path() + "/cache"; }
  std::vector<fs::path> files() const {
    std::vector<fs::path> found;
    if (!fs::exists(root())) return found;
    for (const auto& file : fs::recursive_directory_iterator(root() + "/entries")) {
      if (file.is_regular_file()) found.push_back(file.path());
    }
    return found;
  }

  compile::ScopedFolder folder_{testing::TempDir()};
  FakeCompiler compiler_{folder_.path() + "/compiles"};
};

TEST_F(StoreTest, MemoryThenDiskThenCompiler) {
  ArtifactPtr first;
  {
    Store store(options());
    first = store.get_or_compile(source_named("gemm"), compiler_);
    EXPECT_EQ(store.get_or_compile(source_named("gemm"), compiler_), first);
    EXPECT_EQ(store.counters(), (Counters{.memory_hits = 1, .disk_hits = 0, .compiles = 1}));
  }
  Store store(options());
  EXPECT_EQ(*store.get_or_compile(source_named("gemm"), compiler_), *first);
  store.get_or_compile(source_named("conv"), compiler_);
  EXPECT_EQ(store.counters(), (Counters{.memory_hits = 0, .disk_hits = 1, .compiles = 1}));
  EXPECT_EQ(compiler_.runs(), 2u);
  EXPECT_TRUE(store.warnings().empty());
}

TEST_F(StoreTest, FilesArePrivateAndFannedOut) {
  Store store(options());
  store.get_or_compile(source_named("gemm"), compiler_);
  const fs::path entry = entry_path(root(), make_key(source_named("gemm"), compiler_.identity()));
  EXPECT_EQ(files(), std::vector<fs::path>{entry});
  EXPECT_EQ(fs::status(entry).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_EQ(fs::status(root()).permissions(), fs::perms::owner_all);
  EXPECT_TRUE(fs::is_empty(root() + "/tmp"));
}

TEST_F(StoreTest, MemoryOnlyTouchesNoDisk) {
  StoreOptions memory_only = options();
  memory_only.on_disk = false;
  Store store(memory_only);
  store.get_or_compile(source_named("gemm"), compiler_);
  store.get_or_compile(source_named("gemm"), compiler_);
  EXPECT_EQ(store.counters(), (Counters{.memory_hits = 1, .disk_hits = 0, .compiles = 1}));
  EXPECT_EQ(store.root(), "");
  EXPECT_FALSE(fs::exists(root()));
}

TEST_F(StoreTest, ChoosesTheRootInOrder) {
  compile::Environment environment;
  const auto root_of = [&](const StoreOptions& chosen) { return Store(chosen, environment).root(); };
  EXPECT_EQ(root_of({}), "");
  environment.home = "/";
  EXPECT_EQ(root_of({}), "");
  environment.home = folder_.path() + "/home";
  EXPECT_EQ(root_of({}), folder_.path() + "/home/.cache/tilewright");
  environment.xdg_cache_home = "relative/is/ignored";
  EXPECT_EQ(root_of({}), folder_.path() + "/home/.cache/tilewright");
  environment.xdg_cache_home = folder_.path() + "/xdg";
  EXPECT_EQ(root_of({}), folder_.path() + "/xdg/tilewright");
  environment.cache_dir = folder_.path() + "/named";
  EXPECT_EQ(root_of({}), folder_.path() + "/named");
  EXPECT_EQ(root_of(options()), root());
}

TEST_F(StoreTest, ThreadsOnOneColdKeyCompileOnce) {
  const FakeCompiler slow(folder_.path() + "/slow", 50ms);
  Store store(options());
  std::vector<ArtifactPtr> got(8);
  {
    std::vector<std::jthread> threads;
    for (ArtifactPtr& artifact : got) {
      threads.emplace_back([&] { artifact = store.get_or_compile(source_named("gemm"), slow); });
    }
  }
  EXPECT_EQ(slow.runs(), 1u);
  for (const ArtifactPtr& artifact : got) EXPECT_EQ(artifact, got.front());
}

TEST_F(StoreTest, AFailedCompileThrowsAndIsNotCached) {
  Store store(options());
  compile::Source source = source_named("gemm");
  source.text = "broken";
  EXPECT_THROW(store.get_or_compile(source, compiler_), CompileError);
  EXPECT_THROW(store.get_or_compile(source, compiler_), CompileError);
  EXPECT_EQ(compiler_.runs(), 2u);
  EXPECT_EQ(store.counters().compiles, 0);
  EXPECT_TRUE(files().empty());
}

TEST_F(StoreTest, WaitingThreadsGetTheFailureOfTheCompile) {
  const FakeCompiler slow(folder_.path() + "/slow", 100ms);
  Store store(options());
  compile::Source source = source_named("gemm");
  source.text = "broken";
  std::atomic<int> failures{0};
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        try {
          store.get_or_compile(source, slow);
        } catch (const CompileError&) {
          ++failures;
        }
      });
    }
  }
  EXPECT_EQ(failures, 4);
}

TEST_F(StoreTest, ABatchCompilesOnlyMissingKernels) {
  Store store(options());
  store.get_or_compile(source_named("k1"), compiler_);
  const std::vector<compile::Source> sources = {source_named("k0"), source_named("k1"), source_named("k2"),
                                                source_named("k0")};
  const std::vector<ArtifactPtr> artifacts = store.get_or_compile_all(sources, compiler_, 3);
  ASSERT_EQ(artifacts.size(), sources.size());
  for (std::size_t i = 0; i < sources.size(); ++i) EXPECT_EQ(artifacts[i]->name, sources[i].name);
  EXPECT_EQ(compiler_.runs(), 3u);
}

TEST_F(StoreTest, LeastRecentlyUsedIsEvicted) {
  StoreOptions small = options();
  small.max_bytes = 25'000;
  compiler_.payload_bytes = 5000;
  const std::string oldest = entry_path(root(), make_key(source_named("k0"), compiler_.identity()));
  const auto age = [&] {
    for (const fs::path& file : files()) fs::last_write_time(file, fs::last_write_time(file) - 1h);
  };
  for (int i = 0; i < 4; ++i) {
    Store(small).get_or_compile(source_named("k" + std::to_string(i)), compiler_);
    age();
  }
  ASSERT_TRUE(fs::exists(oldest));
  Store store(small);
  store.get_or_compile(source_named("k0"), compiler_);  // a hit: now the most recently used
  EXPECT_EQ(store.counters().disk_hits, 1);
  store.get_or_compile(source_named("k4"), compiler_);
  std::uintmax_t total = 0;
  for (const fs::path& file : files()) total += fs::file_size(file);
  EXPECT_LE(total, 25'000u);
  EXPECT_GE(total, 15'000u);
  EXPECT_TRUE(fs::exists(oldest));
  EXPECT_EQ(Store(small).find(make_key(source_named("k1"), compiler_.identity())), nullptr);
}

TEST_F(StoreTest, AbandonedTemporaryFilesAreDeleted) {
  Store(options()).get_or_compile(source_named("k0"), compiler_);
  const std::string prefix = root() + "/tmp/" + std::string(compile::kTemporaryPrefix);
  compile::write_new_file(prefix + "left", "x");
  compile::write_new_file(prefix + "written", "x");
  compile::write_new_file(root() + "/tmp/users-own", "x");
  const compile::UniqueFd writer(::open((prefix + "written").c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_EQ(::flock(writer.get(), LOCK_EX), 0);
  Store(options()).get_or_compile(source_named("k1"), compiler_);
  EXPECT_FALSE(fs::exists(prefix + "left"));
  EXPECT_TRUE(fs::exists(prefix + "written"));
  EXPECT_TRUE(fs::exists(root() + "/tmp/users-own"));
}

TEST_F(StoreTest, ThreadsReadWriteEvictAndClearAtOnce) {
  StoreOptions small = options();
  small.max_bytes = 40'000;
  small.max_memory_bytes = 10'000;
  Store store(small);
  FakeCompiler fast("");
  fast.payload_bytes = 3000;
  std::atomic<int> wrong = 0;
  const auto deadline = std::chrono::steady_clock::now() + 1s;
  {
    std::vector<std::jthread> threads;
    for (unsigned thread = 0; thread < 6; ++thread) {
      threads.emplace_back([&, thread] {
        for (unsigned i = thread; std::chrono::steady_clock::now() < deadline; i = i * 1103515245U + 12345U) {
          const compile::Source source = source_named("k" + std::to_string((i >> 16) % 40));
          wrong += store.get_or_compile(source, fast)->ptx != "// compiled from text of " + source.name;
          if ((i >> 8) % 64 == 0) store.verify();
          if ((i >> 8) % 64 == 1) store.list();
          if ((i >> 8) % 64 == 2) store.discard(source);
          if ((i >> 8) % 256 == 3) store.clear();
        }
      });
    }
  }
  EXPECT_EQ(wrong, 0);
  EXPECT_TRUE(store.warnings().empty()) << store.warnings().front();
  EXPECT_TRUE(store.verify().damaged.empty());
}

TEST_F(StoreTest, ListIsMostRecentlyUsedFirst) {
  Store store(options());
  store.get_or_compile(source_named("older"), compiler_);
  for (const fs::path& file : files()) fs::last_write_time(file, fs::last_write_time(file) - 1h);
  store.get_or_compile(source_named("newer"), compiler_);
  const std::vector<Entry> entries = store.list();
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries[0].name, "newer");
  EXPECT_EQ(entries[1].name, "older");
  EXPECT_EQ(entries[1].key, make_key(source_named("older"), compiler_.identity()));
  EXPECT_EQ(entries[1].target, kSm90a);
  EXPECT_GT(entries[1].bytes, 1000);
  EXPECT_EQ(entries[1].compile_ms, 12.5);
  EXPECT_NEAR(static_cast<double>(entries[0].last_used_s - entries[1].last_used_s), 3600.0, 60.0);
}

TEST_F(StoreTest, VerifyCountsIntactEntriesAndNamesDamagedOnes) {
  Store store(options());
  for (const char* name : {"a", "b", "c"}) store.get_or_compile(source_named(name), compiler_);
  fs::resize_file(files().front(), 500);
  const Verification first = store.verify();
  EXPECT_EQ(first.intact, 2);
  ASSERT_EQ(first.damaged.size(), 1u);
  EXPECT_NE(first.damaged[0].find("truncated"), std::string::npos) << first.damaged[0];
  const Verification second = store.verify();
  EXPECT_EQ(second.intact, 2);
  EXPECT_TRUE(second.damaged.empty()) << "it was set aside";
}

TEST_F(StoreTest, ClearEmptiesMemoryAndDisk) {
  Store store(options());
  store.get_or_compile(source_named("a"), compiler_);
  store.get_or_compile(source_named("b"), compiler_);
  EXPECT_GT(store.clear(), 2000);
  EXPECT_TRUE(files().empty());
  EXPECT_TRUE(store.keys().empty());
  store.get_or_compile(source_named("a"), compiler_);
  EXPECT_EQ(compiler_.runs(), 3u);
}

TEST_F(StoreTest, InsertedKernelsAreFound) {
  const Key key = make_key(source_named("gemm"), "elsewhere");
  const auto artifact = std::make_shared<const compile::Artifact>(compiler_.compile(source_named("gemm")));
  Store(options()).insert(key, artifact);
  Store store(options());
  ASSERT_NE(store.find(key), nullptr);
  EXPECT_EQ(*store.find(key), *artifact);
  EXPECT_EQ(store.find(make_key(source_named("conv"), "elsewhere")), nullptr);
}

}  // namespace
}  // namespace tilewright::cache
