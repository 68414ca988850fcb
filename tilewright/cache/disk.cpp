#include "tilewright/cache/disk.hpp"

#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "tilewright/cache/root.hpp"

namespace tilewright::cache {
namespace {

using compile::UniqueFd;

constexpr int kPublishesPerScan = 64;  // a scan after so many publishes also counts what other processes published
constexpr std::int64_t kEvictionLock = std::int64_t{1} << 62;  // the lock's byte; keys lock bytes below
constexpr const char* kLockFile = "locks";

UniqueFd open_or_make_folder(int parent, const std::string& name) {
  ::mkdirat(parent, name.c_str(), 0700);  // open_folder() reports a failure
  return open_folder(parent, name);
}

std::string quarantine_name(const std::string& entry) {
  return entry.substr(0, entry.size() - kEntrySuffix.size()) + std::string(kQuarantineSuffix);
}

/// Decides what publishing an entry does with an existing file of its name. A regular file is kept, because it is the
/// equal entry of another process or the entry of a later version; it is replaced if it is not safe to read. Anything
/// else, such as a folder, is renamed to .bad.
compile::Existing resolve_name_conflict(int folder, const std::string& name) {
  struct stat status {};
  if (::fstatat(folder, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) return compile::Existing::keep;
  if (!S_ISREG(status.st_mode)) {
    ::renameat(folder, name.c_str(), folder, quarantine_name(name).c_str());
    return compile::Existing::keep;
  }
  const bool is_safe = status.st_uid == ::geteuid() && status.st_nlink == 1 && (status.st_mode & 022) == 0;
  return is_safe ? compile::Existing::keep : compile::Existing::replace;
}

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

/// Sets the time of last use to now if it lies in the future, as after the clock was set back: otherwise the entry
/// would never be evicted.
void clamp_last_use(const Layer& layer, StoredFile& file, std::int64_t now) {
  if (file.last_used_ns <= now) return;
  file.last_used_ns = now;
  const UniqueFd folder = open_folder(layer.entries_fd(), file.folder);
  if (folder) ::utimensat(folder.get(), file.file.c_str(), nullptr, AT_SYMLINK_NOFOLLOW);
}

bool delete_file(const Layer& layer, const StoredFile& file) {
  const UniqueFd folder = open_folder(layer.entries_fd(), file.folder);
  return folder && ::unlinkat(folder.get(), file.file.c_str(), 0) == 0;
}

}  // namespace

Result<std::unique_ptr<Disk>> Disk::open(const std::string& root, std::int64_t max_bytes) {
  Result<UniqueFd> root_fd = open_root(root);
  if (!root_fd) return root_fd.refusal();
  open_or_make_folder(root_fd->get(), "entries");
  UniqueFd temporary = open_or_make_folder(root_fd->get(), "tmp");
  Result<Layer> layer = Layer::open(root, *std::move(root_fd), Layer::Trust::own);
  if (!layer) return layer.refusal();
  std::unique_ptr<Disk> disk(new Disk(*std::move(layer), max_bytes));
  disk->temporary_fd_ = std::move(temporary);
  return disk;
}

Lookup Disk::read(const Key& key, bool marks_use) const { return quarantine_if_damaged(layer_.read(key, marks_use)); }
Lookup Disk::read_any(const Digest& source, bool marks_use) const {
  return quarantine_if_damaged(layer_.read_any(source, marks_use));
}

Lookup Disk::quarantine_if_damaged(Lookup lookup) const {
  if (!lookup.is_damaged) return lookup;
  quarantine(lookup.key);
  lookup.problem += "; it is set aside";
  return lookup;
}

void Disk::quarantine(const Key& key) const {
  const EntryName name = entry_name(key);
  const UniqueFd folder = open_folder(layer_.entries_fd(), name.folder);
  if (folder) ::renameat(folder.get(), name.file.c_str(), folder.get(), quarantine_name(name.file).c_str());
}

void Disk::remove(const Key& key) const {
  const EntryName name = entry_name(key);
  if (const UniqueFd folder = open_folder(layer_.entries_fd(), name.folder))
    ::unlinkat(folder.get(), name.file.c_str(), 0);
}

Support Disk::publish(const Key& key, const compile::Artifact& artifact) {
  const auto failed = [&](std::string_view why) { return refuse("cannot keep a kernel in {}: {}", root(), why); };
  if (!temporary_fd_) return failed("it has no folder tmp");
  const std::vector<std::byte> bytes = encode_entry(key, artifact);
  const EntryName name = entry_name(key);
  try {
    compile::AtomicFile file(temporary_fd_.get(), 0600, root());
    file.write({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    const UniqueFd folder = open_or_make_folder(layer_.entries_fd(), name.folder);
    if (!folder) return failed(std::strerror(errno));
    file.publish(folder.get(), name.file, resolve_name_conflict(folder.get(), name.file));
  } catch (const Error& error) {
    return failed(error.what());
  }
  count_published(static_cast<std::int64_t>(bytes.size()));
  return {};
}

Result<std::optional<FileLock>> Disk::try_lock(const Key& key) const {
  const auto offset = static_cast<std::int64_t>(KeyHash{}(key) >> 2);  // below 2^62
  return FileLock::try_acquire(layer_.root_fd(), kLockFile, offset);
}

void Disk::count_published(std::int64_t published_bytes) {
  const bool scan_is_due = publishes_++ % kPublishesPerScan == 0;
  estimated_bytes_ += published_bytes;
  if (!scan_is_due && estimated_bytes_ <= max_bytes_) return;
  sweep_temporary_files();
  evict();
}

// Deletes the least recently used entries until 90% of max_bytes_ is left. Does nothing if another process or thread is
// evicting. The loop scans again after deleting, so that entries published meanwhile count.
void Disk::evict() {
  const auto lock = FileLock::try_acquire(layer_.root_fd(), kLockFile, kEvictionLock);
  if (!lock || !*lock) return;
  const std::int64_t now = now_ns();
  for (bool progress = true; progress;) {
    std::vector<StoredFile> files = layer_.scan();
    std::int64_t total = 0;
    for (StoredFile& file : files) {
      total += file.bytes;
      clamp_last_use(layer_, file, now);
    }
    estimated_bytes_ = total;
    if (total <= max_bytes_) return;
    std::ranges::sort(files, {}, &StoredFile::last_used_ns);
    progress = false;
    const std::int64_t wanted = max_bytes_ / 10 * 9;  // so that a full cache does not evict at every publish
    for (const StoredFile& oldest : files) {
      if (estimated_bytes_ <= wanted) break;
      if (!delete_file(layer_, oldest)) continue;
      estimated_bytes_ -= oldest.bytes;
      progress = true;
    }
  }
}

// Deletes the temporary files of processes that were killed: those that their writer no longer locks
// (compile::AtomicFile).
void Disk::sweep_temporary_files() const {
  if (!temporary_fd_) return;
  for_each_name(temporary_fd_.get(), [&](const std::string& name) {
    if (!name.starts_with(compile::kTemporaryPrefix)) return;
    const UniqueFd file(::openat(temporary_fd_.get(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    struct stat status {};
    if (!file || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return;
    if (::flock(file.get(), LOCK_EX | LOCK_NB) == 0) ::unlinkat(temporary_fd_.get(), name.c_str(), 0);
  });
}

ClearReport Disk::clear() {
  ClearReport report;
  for (const StoredFile& file : layer_.scan()) {
    if (delete_file(layer_, file)) {
      report.bytes += file.bytes;
    } else if (errno != ENOENT) {
      report.failures.push_back(
          fmt::format("{}/entries/{}/{}: {}", root(), file.folder, file.file, std::strerror(errno)));
    }
  }
  sweep_temporary_files();
  estimated_bytes_ = 0;
  return report;
}

}  // namespace tilewright::cache
