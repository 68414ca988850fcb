#include "tilewright/cache/layer.hpp"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <new>

namespace tilewright::cache {
namespace {

using compile::UniqueFd;

constexpr std::int64_t kMaxEntryBytes = std::int64_t{256} << 20;
constexpr std::int64_t kNanoseconds = 1'000'000'000;
constexpr std::int64_t kTouchAfter_s = 60;  // more frequent hits do not update the time of last use, to save writes

Result<std::vector<std::byte>> read_all(int fd, std::int64_t size) {
  std::vector<std::byte> bytes;
  try {
    bytes.resize(static_cast<std::size_t>(size));
  } catch (const std::bad_alloc&) {
    return refuse("there is no memory for its {} bytes", size);
  }
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t count = ::read(fd, bytes.data() + done, bytes.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return refuse("it cannot be read: {}", std::strerror(errno));
    if (count == 0) return refuse("it shrank to {} of {} bytes while it was read", done, size);
    done += static_cast<std::size_t>(count);
  }
  return bytes;
}

Support check_file(const struct stat& status, Layer::Trust trust) {
  if (!S_ISREG(status.st_mode)) return refuse("it is not a regular file");
  const bool is_roots = trust == Layer::Trust::shared && status.st_uid == 0;
  if (status.st_uid != ::geteuid() && !is_roots) return refuse("it belongs to uid {}", status.st_uid);
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    return refuse("others may write to it (mode {:04o})", status.st_mode & 07777);
  // A link count of 0 is fine: the entry was evicted or replaced after it was opened. Shared folders may contain hard
  // links, as the file systems of container images do.
  if (trust == Layer::Trust::own && status.st_nlink > 1) return refuse("it has {} links", status.st_nlink);
  return {};
}

// Updates the time of last use, also if it lies in the future, as after the clock was set back: otherwise the entry
// would never be evicted.
void touch_if_due(int fd, const struct stat& status) {
  const std::int64_t age_s =
      std::chrono::system_clock::to_time_t(std::chrono::system_clock::now()) - status.st_mtim.tv_sec;
  if (age_s < 0 || age_s >= kTouchAfter_s) ::futimens(fd, nullptr);  // a failure, as on a read-only disk, is ignored
}

}  // namespace

UniqueFd open_folder(int parent, const std::string& name) {
  return UniqueFd(::openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

void for_each_name(int folder, const std::function<void(const std::string&)>& visit) {
  // Reopened, because a listing moves the position of its descriptor, and other threads may list the same folder.
  UniqueFd own = open_folder(folder, ".");
  if (!own) return;
  struct Close {
    void operator()(DIR* listing) const { ::closedir(listing); }
  };
  const std::unique_ptr<DIR, Close> listing(::fdopendir(own.get()));
  if (!listing) return;
  static_cast<void>(own.release());
  while (const dirent* const entry = ::readdir(listing.get())) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") visit(name);
  }
}

Result<Layer> Layer::open(const std::string& root, UniqueFd root_fd, Trust trust) {
  Layer layer;
  layer.root_ = root;
  layer.trust_ = trust;
  layer.root_fd_ = std::move(root_fd);
  layer.entries_fd_ = open_folder(layer.root_fd_.get(), "entries");
  if (!layer.entries_fd_) return refuse("{}/entries: {}", root, std::strerror(errno));
  return layer;
}

Lookup Layer::read(const Key& key, bool marks_use) const {
  const EntryName name = entry_name(key);
  const auto unusable = [&](std::string_view reason) {
    return Lookup{{}, key, fmt::format("cache entry {} of {} is not used: {}", key.name(), root_, reason), false};
  };
  const UniqueFd folder = open_folder(entries_fd_.get(), name.folder);
  if (!folder && errno == ENOENT) return {};
  if (!folder) {
    return {{}, key, fmt::format("{}/entries/{} is not used: {}", root_, name.folder, std::strerror(errno)), false};
  }
  const UniqueFd file(::openat(folder.get(), name.file.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!file) {
    if (errno == ENOENT) return {};
    return unusable(errno == ELOOP ? "it is a symbolic link" : std::strerror(errno));
  }
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) return unusable(std::strerror(errno));
  if (const Support safe = check_file(status, trust_); !safe) return unusable(safe.reason());
  const auto damaged = [&](std::string_view how) {
    return Lookup{{}, key, fmt::format("cache entry {} of {} is damaged: {}", key.name(), root_, how), true};
  };
  if (status.st_size > kMaxEntryBytes)
    return damaged(fmt::format("it has {} bytes, the limit is {}", status.st_size, kMaxEntryBytes));
  const auto bytes = read_all(file.get(), status.st_size);
  if (!bytes) return unusable(bytes.reason());
  DecodedEntry decoded = decode_entry(key, *bytes);
  if (decoded.is_newer) return {};
  if (!decoded.artifact) return damaged(decoded.damage);
  if (marks_use) touch_if_due(file.get(), status);
  return {std::move(decoded.artifact), key, {}, false};
}

Lookup Layer::read_any(const Digest& source, bool marks_use) const {
  Lookup found = read({source, kImported}, marks_use);
  if (found.artifact) return found;
  const std::string folder_name = source.hex().substr(0, 2);
  std::vector<Key> others;
  if (const UniqueFd folder = open_folder(entries_fd_.get(), folder_name)) {
    for_each_name(folder.get(), [&](const std::string& file) {
      const std::optional<Key> key = key_of_entry(folder_name, file);
      if (key && key->source == source && key->compiler != kImported) others.push_back(*key);
    });
  }
  for (const Key& key : others) {
    Lookup other = read(key, marks_use);
    if (other.artifact) return other;
    if (found.problem.empty()) found = std::move(other);
  }
  return found;
}

std::vector<StoredFile> Layer::scan() const {
  std::vector<StoredFile> files;
  for_each_name(entries_fd_.get(), [&](const std::string& folder_name) {
    if (folder_name.size() != 2) return;
    const UniqueFd folder = open_folder(entries_fd_.get(), folder_name);
    if (!folder) return;
    for_each_name(folder.get(), [&](const std::string& file) {
      struct stat status {};
      if (!is_cache_file(folder_name, file) ||
          ::fstatat(folder.get(), file.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
        return;  // not a file of a cache, or deleted by another process
      }
      files.push_back({.folder = folder_name,
                       .file = file,
                       .key = key_of_entry(folder_name, file),
                       .bytes = status.st_size,
                       .last_used_ns = status.st_mtim.tv_sec * kNanoseconds + status.st_mtim.tv_nsec});
    });
  });
  return files;
}

}  // namespace tilewright::cache
