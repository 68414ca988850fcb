// Files and folders: an owning descriptor, complete reads and writes, atomic files, private temporary folders.
#pragma once

#include <fcntl.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tilewright/base/fork.hpp"
#include "tilewright/base/support.hpp"

namespace tilewright::compile {

class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    reset(std::exchange(other.fd_, -1));
    return *this;
  }
  ~UniqueFd() { reset(); }

  explicit operator bool() const { return fd_ >= 0; }
  int get() const { return fd_; }
  /// Returns the descriptor; the caller must close it.
  int release() { return std::exchange(fd_, -1); }
  void reset(int fd = -1);

 private:
  int fd_ = -1;
};

/// Writes every byte. @throws Error naming `path` and the cause: disk full, file too large, I/O error.
void write_all(int fd, std::string_view bytes, std::string_view path);

/// Creates `path` (mode 0600) with `bytes`; it must not exist. @throws Error naming the path and the cause.
void write_new_file(const std::string& path, std::string_view bytes);

/// Whether AtomicFile::publish() replaces or keeps an existing file of the same name.
enum class Existing { replace, keep };

/// Prefix of the names of AtomicFile's temporary files.
inline constexpr std::string_view kTemporaryPrefix = ".tilewright-";

/// A file that readers see complete or not at all. On file systems with O_TMPFILE it has no name until publish(), so a
/// process that is killed leaves nothing behind. On others it has a random name that begins with kTemporaryPrefix, it
/// is locked by flock(2) while its writer exists, and the destructor deletes it. With O_TMPFILE, replacing an existing
/// file needs such a name too, for the moment between two system calls.
class AtomicFile {
 public:
  /// Creates an empty file on the file system of `folder`, an open folder (O_PATH suffices) that must stay open as long
  /// as the object lives. `mode` is the mode of open(2), which the umask reduces. `path` names the file in errors.
  /// @throws Error naming the path and the cause, as every member that can fail does.
  AtomicFile(int folder, mode_t mode, std::string path);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile();

  void write(std::string_view bytes) { write_all(fd_.get(), bytes, path_); }

  /// Gives the file its `name` in `folder`, which may be another folder of the same file system. Errors that a file
  /// system reports only at close() are thrown before the file gets its name. False: a file of that name exists and was
  /// kept. To be called once, after the last write().
  bool publish(int folder, const std::string& name, Existing existing);

 private:
  bool link_unnamed(int folder, const std::string& name) const;
  void open_named(mode_t mode);
  void copy_to_named();
  void report_delayed_write_errors() const;
  void lock_while_writing() const;
  bool rename_named(int folder, const std::string& name, Existing existing);

  int folder_;
  std::string path_;
  UniqueFd fd_;
  std::string temporary_;  // the temporary name in folder_; empty when the file has none
};

/// Replaces `path` by an AtomicFile of mode 0666, which the umask reduces. @throws Error naming the path and the cause.
void write_file(const std::string& path, std::string_view bytes);

/// Opens a regular file without blocking; a FIFO, device, socket or folder is refused. The refusal gives the reason
/// without the path: "it is a FIFO, not a regular file".
Result<UniqueFd> open_regular_file(const std::string& path);

/// Reads from byte `offset` until `bytes` is full or the file ends; returns the number of bytes read.
/// @throws Error naming `path` and the cause; whatever check_interruption() throws (base/interruption.hpp).
std::size_t read_at(int fd, std::span<std::byte> bytes, std::int64_t offset, std::string_view path);

/// The contents of a regular file. @throws Error when it cannot be read or has more than `max_bytes`.
std::string read_file(const std::string& path, std::size_t max_bytes);

/// Creates the folder and its missing parents with mode 0700. @throws Error naming the folder that failed.
void make_folders(const std::string& path);

/// 16 random hexadecimal digits from the operating system's secure generator.
std::string random_name();

/// Creates a folder of mode 0700 in `parent`, named `prefix` followed by random_name(), and returns its path.
/// @throws Error naming the parent and the cause.
std::string make_private_folder(const std::string& parent, std::string_view prefix);

/// The names of the entries of the open folder `folder`, unsorted; empty when it cannot be read.
std::vector<std::string> names_in(int folder);

/// Deletes everything in the open folder `folder`, without following symbolic links or entering another file system.
/// False: some entries could not be deleted.
bool remove_contents(int folder);

/// A private folder that the destructor deletes with its contents. The constructor also deletes the folders that killed
/// processes of this user left in `parent`: those named kPrefix plus a random name that no process has locked.
class ScopedFolder {
 public:
  static constexpr std::string_view kPrefix = "tilewright-scratch-";

  /// @throws Error naming the parent and the cause.
  explicit ScopedFolder(const std::string& parent);
  ScopedFolder(const ScopedFolder&) = delete;
  ScopedFolder& operator=(const ScopedFolder&) = delete;
  /// Does nothing in a forked child, because the folder belongs to the parent process.
  ~ScopedFolder();

  const std::string& path() const { return path_; }

 private:
  UniqueFd parent_;
  std::string name_;
  std::string path_;
  UninheritedFd folder_;  // locked while the folder is in use
};

}  // namespace tilewright::compile
