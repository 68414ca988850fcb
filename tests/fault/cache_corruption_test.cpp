// Random corruption of everything that is read from disk: a reader gets the original contents or a refusal.
#include <gmock/gmock.h>

#include <random>

#include "tests/fault/fault_fixture.hpp"
#include "tests/fault/repeats.hpp"
#include "tilewright/cache/bundle.hpp"
#include "tilewright/cache/disk.hpp"

namespace tilewright::cache {
namespace {

namespace fs = std::filesystem;

class CacheCorruptionTest : public FaultTest {
 protected:
  /// Corrupts `bytes` in one of eight ways; `other` is another file of the same kind.
  std::string corrupted(std::string bytes, const std::string& other) {
    const auto below = [&](std::size_t bound) { return bound == 0 ? 0 : random_() % bound; };
    switch (random_() % 8) {
      case 0:  // flip a bit
        bytes[below(bytes.size())] ^= static_cast<char>(1 << below(8));
        break;
      case 1:  // overwrite some bytes
        for (std::size_t i = 0, count = 1 + below(16); i < count; ++i)
          bytes[below(bytes.size())] = static_cast<char>(random_());
        break;
      case 2:  // truncate
        bytes.resize(below(bytes.size()));
        break;
      case 3:  // zero a block, as after a power failure
      {
        const std::size_t begin = below(bytes.size());
        std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(begin), below(bytes.size() - begin), '\0');
        break;
      }
      case 4:  // insert bytes
        bytes.insert(below(bytes.size()), std::string(1 + below(64), static_cast<char>(random_())));
        break;
      case 5:  // remove bytes
        bytes.erase(below(bytes.size()), 1 + below(64));
        break;
      case 6:  // splice two files
      {
        const std::size_t at = below(std::min(bytes.size(), other.size()));
        bytes = bytes.substr(0, at) + other.substr(at);
        break;
      }
      default:  // append bytes
        bytes.append(1 + below(4096), static_cast<char>(random_()));
    }
    return bytes;
  }
  static void overwrite(const std::string& path, const std::string& bytes) {
    fs::remove(path);
    compile::write_new_file(path, bytes);
  }

  std::mt19937_64 random_{20261123};
  const compile::Artifact gemm_ = compiler_.compile(source_named("gemm"));
  const compile::Artifact conv_ = compiler_.compile(source_named("conv"));
};

TEST_F(CacheCorruptionTest, CorruptedEntriesAreNeverServed) {
  fill();
  Store(options()).get_or_compile(source_named("conv"), compiler_);
  const Key key = make_key(source_named("gemm"), compiler_.identity());
  const std::string intact = compile::read_file(entry(), 1 << 20);
  const std::string other =
      compile::read_file(entry_path(at("cache"), make_key(source_named("conv"), compiler_.identity())), 1 << 20);
  const auto disk = Disk::open(at("cache"), 1 << 30);
  ASSERT_TRUE(disk) << disk.reason();
  int served = 0;
  for (int i = 0; i < repeats(6000); ++i) {
    const std::string bytes = corrupted(intact, other);
    overwrite(entry(), bytes);
    const Lookup lookup = (*disk)->read(key);
    if (!lookup.artifact) continue;
    ++served;
    ASSERT_EQ(*lookup.artifact, gemm_) << "corruption " << i;
    ASSERT_EQ(bytes, intact) << "corruption " << i << " was not noticed";
  }
  EXPECT_LT(served, 100) << "most corruptions change something";
}

TEST_F(CacheCorruptionTest, CorruptedArtifactsAreNeverRead) {
  const std::string path = at("kernel.twk");
  compile::write_artifact(conv_, path);
  const std::string other = compile::read_file(path, 1 << 20);
  compile::write_artifact(gemm_, path);
  const std::string intact = compile::read_file(path, 1 << 20);
  for (int i = 0; i < repeats(3000); ++i) {
    const std::string bytes = corrupted(intact, other);
    overwrite(path, bytes);
    const Result<compile::Artifact> artifact = compile::read_artifact(path);
    if (!artifact) continue;
    ASSERT_TRUE(*artifact == gemm_ || *artifact == conv_) << "corruption " << i;
    ASSERT_TRUE(bytes == intact || bytes == other) << "corruption " << i << " was not noticed";
  }
}

TEST_F(CacheCorruptionTest, CorruptedBundlesAreNeverImported) {
  StoreOptions here = options();
  here.root = at("here");
  Store store(here);
  for (const char* name : {"gemm", "conv"}) store.get_or_compile(source_named(name), compiler_);
  export_bundle(store, at("intact.db"));
  const std::string intact = compile::read_file(at("intact.db"), 1 << 20);
  StoreOptions memory_only;
  memory_only.on_disk = false;
  int taken = 0;
  for (int i = 0; i < repeats(1000); ++i) {
    overwrite(at("bundle.db"), corrupted(intact, intact));
    Store there(memory_only);
    const Result<BundleReport> report = import_bundle(there, at("bundle.db"));
    for (const auto& [name, artifact] : {std::pair{"gemm", &gemm_}, {"conv", &conv_}}) {
      const ArtifactPtr found = there.find_any(source_named(name));
      if (found == nullptr) continue;
      ++taken;
      ASSERT_EQ(*found, *artifact) << "corruption " << i;
    }
    ASSERT_TRUE(!report || report->kernels <= 2);
  }
  EXPECT_GT(taken, 0) << "the intact kernels of a damaged bundle are imported";
}

}  // namespace
}  // namespace tilewright::cache
