#include "tilewright/compile/file.hpp"

#include <dirent.h>
#include <linux/fs.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <vector>

#include "tilewright/base/error.hpp"
#include "tilewright/base/interruption.hpp"
#include "tilewright/base/text.hpp"

namespace tilewright::compile {
namespace {

[[noreturn]] void throw_errno(std::string_view call, std::string_view path) {
  const int cause = errno;
  throw Error(fmt::format("cannot {} {}: {}", call, printable(path, 4096), std::strerror(cause)));
}

const char* kind_of(mode_t mode) {
  if (S_ISFIFO(mode)) return "a FIFO";
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

constexpr int kOpenFolder = O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC;

// Whether `name` in `parent` still denotes the open folder `folder`.
bool has_name(int parent, const std::string& name, int folder) {
  struct stat named {};
  struct stat opened {};
  return ::fstatat(parent, name.c_str(), &named, AT_SYMLINK_NOFOLLOW) == 0 && ::fstat(folder, &opened) == 0 &&
         named.st_dev == opened.st_dev && named.st_ino == opened.st_ino;
}

// Deletes the open folder `folder`. If `name` meanwhile denotes another folder, that one is kept.
void remove_folder(int parent, const std::string& name, int folder) {
  remove_contents(folder);
  if (has_name(parent, name, folder)) ::unlinkat(parent, name.c_str(), AT_REMOVEDIR);
}

void remove_abandoned_folders(int parent) {
  for (const std::string& name : names_in(parent)) {
    if (!name.starts_with(ScopedFolder::kPrefix)) continue;
    const UniqueFd folder(::openat(parent, name.c_str(), kOpenFolder | O_NOFOLLOW));
    struct stat status {};
    if (!folder || ::fstat(folder.get(), &status) != 0) continue;
    if (status.st_uid != ::geteuid() || (status.st_mode & 07777) != 0700) continue;
    if (::flock(folder.get(), LOCK_EX | LOCK_NB) == 0) remove_folder(parent, name, folder.get());
  }
}

// The path through which linkat(2) can name a file that was opened with O_TMPFILE.
std::string proc_name(int fd) { return fmt::format("/proc/self/fd/{}", fd); }

// renameat2() with RENAME_NOREPLACE as a plain system call, because glibc declares it only since 2.28. Fails with
// EINVAL on file systems that do not support the flag.
int rename_without_replacing(int from, const char* old_name, int to, const char* new_name) {
  return static_cast<int>(::syscall(SYS_renameat2, from, old_name, to, new_name, RENAME_NOREPLACE));
}

}  // namespace

void UniqueFd::reset(int fd) {
  if (fd_ >= 0) ::close(fd_);
  fd_ = fd;
}

void write_all(int fd, std::string_view bytes, std::string_view path) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      throw_errno("write", path);
    }
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

void write_new_file(const std::string& path, std::string_view bytes) {
  const UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file) throw_errno("create", path);
  write_all(file.get(), bytes, path);
}

AtomicFile::AtomicFile(int folder, mode_t mode, std::string path) : folder_(folder), path_(std::move(path)) {
  fd_.reset(::openat(folder_, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, mode));
  if (!fd_ || ::access(proc_name(fd_.get()).c_str(), F_OK) != 0) open_named(mode);
  lock_while_writing();
}

// The lock tells a process that deletes abandoned temporary files that this file still has a writer.
void AtomicFile::lock_while_writing() const { ::flock(fd_.get(), LOCK_EX | LOCK_NB); }

AtomicFile::~AtomicFile() {
  if (!temporary_.empty()) ::unlinkat(folder_, temporary_.c_str(), 0);
}

void AtomicFile::open_named(mode_t mode) {
  std::string name = std::string(kTemporaryPrefix) + random_name();
  fd_.reset(::openat(folder_, name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode));
  if (!fd_) throw_errno("create", path_);
  temporary_ = std::move(name);
}

bool AtomicFile::link_unnamed(int folder, const std::string& name) const {
  return ::linkat(AT_FDCWD, proc_name(fd_.get()).c_str(), folder, name.c_str(), AT_SYMLINK_FOLLOW) == 0;
}

// Fallback for security modules that forbid linking a file that never had a name.
void AtomicFile::copy_to_named() {
  struct stat status {};
  if (::fstat(fd_.get(), &status) != 0) throw_errno("write", path_);
  const UniqueFd unnamed = std::move(fd_);
  open_named(status.st_mode & 0777);
  lock_while_writing();
  std::array<char, std::size_t{1} << 16> bytes{};
  for (off_t done = 0;;) {
    const ssize_t count = ::pread(unnamed.get(), bytes.data(), bytes.size(), done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw_errno("write", path_);
    if (count == 0) return;
    write({bytes.data(), static_cast<std::size_t>(count)});
    done += count;
  }
}

// Network file systems may report a full disk or an exceeded quota only at close(). Closing a duplicate of the
// descriptor brings such an error up before the file gets its name.
void AtomicFile::report_delayed_write_errors() const {
  UniqueFd copy(::fcntl(fd_.get(), F_DUPFD_CLOEXEC, 0));
  const bool failed = copy ? ::close(copy.release()) != 0 && errno != EINTR : ::fsync(fd_.get()) != 0;
  if (failed) throw_errno("write", path_);
}

bool AtomicFile::rename_named(int folder, const std::string& name, Existing existing) {
  if (existing == Existing::replace) {
    if (::renameat(folder_, temporary_.c_str(), folder, name.c_str()) != 0) throw_errno("write", path_);
    temporary_.clear();
    return true;
  }
  if (rename_without_replacing(folder_, temporary_.c_str(), folder, name.c_str()) == 0) {
    temporary_.clear();
    return true;
  }
  // After a link, temporary_ stays set, so that the destructor deletes the temporary name.
  if (errno == EINVAL && ::linkat(folder_, temporary_.c_str(), folder, name.c_str(), 0) == 0) return true;
  if (errno != EEXIST) throw_errno("write", path_);
  return false;
}

bool AtomicFile::publish(int folder, const std::string& name, Existing existing) {
  report_delayed_write_errors();
  if (temporary_.empty()) {
    if (link_unnamed(folder, name)) return true;
    if (errno == EEXIST) {
      if (existing == Existing::keep) return false;
      std::string name_to_rename = std::string(kTemporaryPrefix) + random_name();
      if (!link_unnamed(folder_, name_to_rename)) throw_errno("write", path_);
      temporary_ = std::move(name_to_rename);
    } else {
      copy_to_named();
      report_delayed_write_errors();
    }
  }
  return rename_named(folder, name, existing);
}

void write_file(const std::string& path, std::string_view bytes) {
  const std::size_t slash = path.rfind('/');
  const std::string parent = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  const UniqueFd folder(::open(parent.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!folder) throw_errno("create", path);
  AtomicFile file(folder.get(), 0666, path);
  file.write(bytes);
  file.publish(folder.get(), path.substr(slash + 1), Existing::replace);
}

// stat() comes first because opening some devices has side effects, even with O_NONBLOCK; fstat() repeats the check
// because the path may have been replaced before open().
Result<UniqueFd> open_regular_file(const std::string& path) {
  struct stat status {};
  const auto failed = [] { return refuse("{}", std::strerror(errno)); };
  const auto not_regular = [&] { return refuse("it is {}, not a regular file", kind_of(status.st_mode)); };
  if (::stat(path.c_str(), &status) != 0) return failed();
  if (!S_ISREG(status.st_mode)) return not_regular();
  UniqueFd file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!file || ::fstat(file.get(), &status) != 0) return failed();
  if (!S_ISREG(status.st_mode)) return not_regular();
  return file;
}

std::size_t read_at(int fd, std::span<std::byte> bytes, std::int64_t offset, std::string_view path) {
  constexpr std::size_t kBytesPerCheck = std::size_t{4} << 20;
  std::size_t done = 0;
  while (done < bytes.size()) {
    check_interruption();
    const std::size_t wanted = std::min(bytes.size() - done, kBytesPerCheck);
    const ssize_t count = ::pread(fd, bytes.data() + done, wanted, offset + static_cast<off_t>(done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw_errno("read", path);
    if (count == 0) break;
    done += static_cast<std::size_t>(count);
  }
  return done;
}

std::string read_file(const std::string& path, std::size_t max_bytes) {
  const Result<UniqueFd> file = open_regular_file(path);
  if (!file) throw Error(fmt::format("cannot open {}: {}", printable(path, 4096), file.reason()));
  struct stat status {};
  if (::fstat(file->get(), &status) != 0) throw_errno("read", path);
  const auto size = static_cast<std::size_t>(status.st_size);
  if (size > max_bytes) {
    throw Error(
        fmt::format("cannot read {}: it has {} bytes, the limit is {}", printable(path, 4096), size, max_bytes));
  }
  std::string bytes(size, '\0');
  const std::size_t done = read_at(file->get(), std::as_writable_bytes(std::span(bytes)), 0, path);
  if (done < size) {
    throw Error(fmt::format("cannot read {}: it shrank from {} to {} bytes", printable(path, 4096), size, done));
  }
  return bytes;
}

void make_folders(const std::string& path) {
  for (std::size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    const std::string folder = path.substr(0, end);
    if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
      const int cause = errno;
      if (::access(folder.c_str(), F_OK) != 0) {
        errno = cause;
        throw_errno("create", folder);
      }
    }
    if (end == std::string::npos) return;
  }
}

std::string random_name() {
  std::uint64_t number = 0;
  const ssize_t count = ::getrandom(&number, sizeof number, 0);
  TILEWRIGHT_CHECK(count == sizeof number, "getrandom gave {} bytes", count);
  return fmt::format("{:016x}", number);
}

std::string make_private_folder(const std::string& parent, std::string_view prefix) {
  std::string path = std::filesystem::path(parent) / (std::string(prefix) + random_name());
  if (::mkdir(path.c_str(), 0700) != 0) throw_errno("create a folder in", parent);
  return path;
}

std::vector<std::string> names_in(int folder) {
  std::vector<std::string> names;
  const int reopened = ::openat(folder, ".", kOpenFolder);  // a listing moves the position of its descriptor
  DIR* listing = reopened < 0 ? nullptr : ::fdopendir(reopened);
  if (listing == nullptr) {
    if (reopened >= 0) ::close(reopened);
    return names;
  }
  while (const dirent* entry = ::readdir(listing)) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  ::closedir(listing);
  return names;
}

bool remove_contents(int folder) {
  struct stat status {};
  if (::fstat(folder, &status) != 0) return false;
  bool is_empty = true;
  for (const std::string& name : names_in(folder)) {
    if (::unlinkat(folder, name.c_str(), 0) == 0 || errno == ENOENT) continue;
    const UniqueFd inner(::openat(folder, name.c_str(), kOpenFolder | O_NOFOLLOW));
    struct stat inside {};
    const bool is_ours = inner && ::fstat(inner.get(), &inside) == 0 && inside.st_dev == status.st_dev;
    is_empty &= is_ours && remove_contents(inner.get()) && ::unlinkat(folder, name.c_str(), AT_REMOVEDIR) == 0;
  }
  return is_empty;
}

// A folder in use is locked. After locking one, a process checks that its name still denotes it: another process may
// have deleted the folder between its creation and the lock.
ScopedFolder::ScopedFolder(const std::string& parent)
    : parent_(::open(parent.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)) {
  if (!parent_) throw_errno("create a folder in", parent);
  remove_abandoned_folders(parent_.get());
  while (true) {
    path_ = make_private_folder(parent, kPrefix);
    name_ = path_.substr(path_.rfind('/') + 1);
    UniqueFd folder(::openat(parent_.get(), name_.c_str(), kOpenFolder | O_NOFOLLOW));
    if (!folder && errno == ENOENT) continue;
    if (!folder) throw_errno("open a folder in", parent);
    const bool is_free = ::flock(folder.get(), LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
    if (!is_free || !has_name(parent_.get(), name_, folder.get())) continue;
    folder_ = UninheritedFd(folder.release());
    return;
  }
}

ScopedFolder::~ScopedFolder() {
  if (folder_) remove_folder(parent_.get(), name_, folder_.get());
}

}  // namespace tilewright::compile
