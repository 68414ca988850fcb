#include "tilewright/cache/disk.hpp"

#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>

#include "tilewright/cache/root.hpp"

namespace tilewright::cache {
namespace {

namespace fs = std::filesystem;
using compile::UniqueFd;

constexpr std::string_view kEntryMagic = "TWE1";
constexpr std::string_view kEntrySuffix = ".twk";
constexpr std::size_t kEntryHeader = kEntryMagic.size() + sizeof(Key::bytes);
constexpr std::int64_t kMaxEntryBytes = std::int64_t{256} << 20;
constexpr std::int64_t kNanoseconds = 1'000'000'000;
constexpr double kStaleAfter_s = 3600.0;    // no writer takes an hour over one file
constexpr std::int64_t kTouchAfter_s = 60;  // a hit within this time of the last leaves the inode clean
constexpr int kPublishesPerScan = 64;       // other processes publish too: look anew now and then
constexpr std::int64_t kEvictionLock = std::int64_t{1} << 62;  // keys lock bytes below
constexpr const char* kLockFile = "locks";

std::string folder_name(const std::string& hex) { return hex.substr(0, 2); }
std::string file_name(const std::string& hex) { return hex.substr(2) + std::string(kEntrySuffix); }

std::string random_name() {
  Key random;
  const ssize_t count = ::getrandom(random.bytes.data(), 16, 0);
  TILEWRIGHT_CHECK(count == 16, "getrandom gave {} bytes", count);
  return random.hex().substr(0, 32);
}

UniqueFd open_folder(int parent, const std::string& name) {
  return UniqueFd(::openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

UniqueFd open_or_make_folder(int parent, const std::string& name) {
  ::mkdirat(parent, name.c_str(), 0700);  // a failure shows when it is opened
  return open_folder(parent, name);
}

std::string encode(const Key& key, const compile::Artifact& artifact) {
  const std::vector<std::byte> payload = compile::serialize(artifact);
  std::string bytes(kEntryMagic);
  bytes.append(reinterpret_cast<const char*>(key.bytes.data()), key.bytes.size());
  bytes.append(reinterpret_cast<const char*>(payload.data()), payload.size());
  return bytes;
}

Result<compile::Artifact> decode(const Key& key, std::span<const std::byte> bytes) {
  if (bytes.size() < kEntryHeader || std::memcmp(bytes.data(), kEntryMagic.data(), kEntryMagic.size()) != 0) {
    return refuse("not a cache entry ({} bytes)", bytes.size());
  }
  if (!std::equal(key.bytes.begin(), key.bytes.end(), bytes.begin() + kEntryMagic.size())) {
    return refuse("it is the entry of another key");
  }
  return compile::deserialize(bytes.subspan(kEntryHeader));
}

Result<std::vector<std::byte>> read_all(int fd, std::int64_t size) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(size));
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t count = ::read(fd, bytes.data() + done, bytes.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return refuse("cannot read it: {}", std::strerror(errno));
    if (count == 0) return refuse("it ends after {} of {} bytes", done, size);
    done += static_cast<std::size_t>(count);
  }
  return bytes;
}

Support check_file(const struct stat& status) {
  if (!S_ISREG(status.st_mode)) return refuse("it is not a regular file");
  if (status.st_uid != ::geteuid()) return refuse("it belongs to uid {}", status.st_uid);
  // None: evicted or replaced since it was opened, and as good as before.
  if (status.st_nlink > 1) return refuse("it has {} links", status.st_nlink);
  if (status.st_size > kMaxEntryBytes) return refuse("{} bytes, at most {}", status.st_size, kMaxEntryBytes);
  return {};
}

std::int64_t now_s() { return std::chrono::system_clock::to_time_t(std::chrono::system_clock::now()); }

void touch_if_due(int fd, const struct stat& status) {
  if (now_s() - status.st_mtim.tv_sec < kTouchAfter_s) return;
  ::futimens(fd, nullptr);  // fails on a read-only disk, where nothing is evicted either
}

// A file under tmp/ until it is renamed; deleted if that never happens.
class TemporaryFile {
 public:
  explicit TemporaryFile(int folder) : folder_(folder), name_(random_name()) {
    fd_.reset(::openat(folder, name_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    if (fd_) ::unlinkat(folder_, name_.c_str(), 0);
  }

  const UniqueFd& fd() const { return fd_; }
  bool rename_to(int folder, const std::string& name) {
    if (::renameat(folder_, name_.c_str(), folder, name.c_str()) != 0) return false;
    fd_.reset();
    return true;
  }

 private:
  int folder_;
  std::string name_;
  UniqueFd fd_;
};

}  // namespace

Result<std::unique_ptr<Disk>> Disk::open(const std::string& root, std::int64_t max_bytes) {
  Result<UniqueFd> root_fd = open_root(root);
  if (!root_fd) return root_fd.refusal();
  std::unique_ptr<Disk> disk(new Disk(root, max_bytes));
  disk->root_fd_ = *std::move(root_fd);
  disk->entries_fd_ = open_or_make_folder(disk->root_fd_.get(), "entries");
  if (!disk->entries_fd_) return refuse("{}/entries: {}", root, std::strerror(errno));
  disk->temporary_fd_ = open_or_make_folder(disk->root_fd_.get(), "tmp");
  return disk;
}

Lookup Disk::read(const Key& key) const { return read_entry(key, true); }
Lookup Disk::inspect(const Key& key) const { return read_entry(key, false); }

Lookup Disk::read_entry(const Key& key, bool touch) const {
  const std::string hex = key.hex();
  const UniqueFd folder = open_folder(entries_fd_.get(), folder_name(hex));
  if (!folder) return {};
  const std::string name = file_name(hex);
  const auto refused = [&](std::string_view reason) {
    quarantine(folder.get(), name);
    return Lookup{{}, fmt::format("cache entry {} of {} is set aside: {}", hex, root_, reason)};
  };

  const UniqueFd file(::openat(folder.get(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!file) return errno == ENOENT ? Lookup{} : refused(std::strerror(errno));
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) return refused(std::strerror(errno));
  if (const Support safe = check_file(status); !safe) return refused(safe.reason());
  const auto bytes = read_all(file.get(), status.st_size);
  if (!bytes) return refused(bytes.reason());
  Result<compile::Artifact> artifact = decode(key, *bytes);
  if (!artifact) return refused(artifact.reason());
  if (touch) touch_if_due(file.get(), status);
  return {*std::move(artifact), {}};
}

void Disk::quarantine(int folder, const std::string& name) const {
  const std::string aside = name.substr(0, name.size() - kEntrySuffix.size()) + ".bad";
  if (::renameat(folder, name.c_str(), folder, aside.c_str()) != 0) ::unlinkat(folder, name.c_str(), 0);
}

Support Disk::publish(const Key& key, const compile::Artifact& artifact) {
  const std::string hex = key.hex();
  const auto failed = [&] { return refuse("cannot keep a kernel in {}: {}", root_, std::strerror(errno)); };
  if (!temporary_fd_) return refuse("cannot keep a kernel in {}: it has no folder tmp", root_);
  const std::string bytes = encode(key, artifact);
  TemporaryFile file(temporary_fd_.get());
  if (!file.fd()) return failed();
  try {
    compile::write_all(file.fd().get(), bytes, root_);
  } catch (const Error& error) {
    return refuse("cannot keep a kernel: {}", error.what());
  }
  const UniqueFd folder = open_or_make_folder(entries_fd_.get(), folder_name(hex));
  if (!folder || !file.rename_to(folder.get(), file_name(hex))) return failed();
  account_for(static_cast<std::int64_t>(bytes.size()));
  return {};
}

Result<FileLock> Disk::lock(const Key& key, double timeout_s) const {
  const auto offset = static_cast<std::int64_t>(KeyHash{}(key) >> 2);  // below 2^62
  return FileLock::acquire(root_fd_.get(), kLockFile, offset, timeout_s);
}

std::vector<StoredFile> Disk::scan() const {
  std::vector<StoredFile> files;
  std::error_code failed;
  const fs::path entries = fs::path(root_) / "entries";
  for (fs::directory_iterator folder(entries, failed), end; !failed && folder != end; folder.increment(failed)) {
    const std::string prefix = folder->path().filename().string();
    std::error_code unreadable;
    for (fs::directory_iterator file(folder->path(), unreadable); !unreadable && file != end;
         file.increment(unreadable)) {
      struct stat status {};
      if (::lstat(file->path().c_str(), &status) != 0) continue;  // another process deleted it
      const std::string name = file->path().filename().string();
      StoredFile found{prefix + "/" + name, {}, status.st_size, 0};
      found.last_used_ns = status.st_mtim.tv_sec * kNanoseconds + status.st_mtim.tv_nsec;
      if (name.ends_with(kEntrySuffix))
        found.key = parse_key(prefix + name.substr(0, name.size() - kEntrySuffix.size()));
      files.push_back(std::move(found));
    }
  }
  return files;
}

void Disk::account_for(std::int64_t published_bytes) {
  const std::lock_guard guard(accounting_);
  const bool scan_is_due = publishes_++ % kPublishesPerScan == 0;
  estimated_bytes_ += published_bytes;
  if (!scan_is_due && estimated_bytes_ <= max_bytes_) return;
  sweep_temporary_files(kStaleAfter_s);
  evict();
}

// Another process at it means: not our turn. It looks again when it has deleted, so what is published meanwhile counts.
void Disk::evict() {
  const auto lock = FileLock::acquire(root_fd_.get(), kLockFile, kEvictionLock, 0.0);
  if (!lock) return;
  for (bool progress = true; progress;) {
    std::vector<StoredFile> files = scan();
    estimated_bytes_ = 0;
    for (const StoredFile& file : files) estimated_bytes_ += file.bytes;
    if (estimated_bytes_ <= max_bytes_) return;
    std::sort(files.begin(), files.end(),
              [](const StoredFile& a, const StoredFile& b) { return a.last_used_ns < b.last_used_ns; });
    progress = delete_down_to(max_bytes_ / 10 * 9, files);  // a full cache should not evict on every publish
  }
}

// Oldest first. False when not even one file could be deleted.
bool Disk::delete_down_to(std::int64_t wanted_bytes, const std::vector<StoredFile>& oldest_first) {
  bool deleted = false;
  for (const StoredFile& file : oldest_first) {
    if (estimated_bytes_ <= wanted_bytes) break;
    if (::unlinkat(entries_fd_.get(), file.path.c_str(), 0) != 0) continue;
    estimated_bytes_ -= file.bytes;
    deleted = true;
  }
  return deleted;
}

void Disk::sweep_temporary_files(double older_than_s) const {
  std::error_code failed;
  const fs::path folder = fs::path(root_) / "tmp";
  for (fs::directory_iterator file(folder, failed), end; !failed && file != end; file.increment(failed)) {
    struct stat status {};
    if (::lstat(file->path().c_str(), &status) != 0) continue;
    if (static_cast<double>(now_s() - status.st_mtim.tv_sec) >= older_than_s) {
      std::error_code ignored;
      fs::remove(file->path(), ignored);
    }
  }
}

std::int64_t Disk::clear() {
  std::int64_t freed = 0;
  for (const StoredFile& file : scan()) {
    std::error_code failed;
    if (fs::remove_all(fs::path(root_) / "entries" / file.path, failed) > 0 && !failed) freed += file.bytes;
  }
  sweep_temporary_files(0.0);
  return freed;
}

}  // namespace tilewright::cache
