// Files and folders by descriptor: one that closes itself, whole writes, files that appear complete, private folders.
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
  /// The descriptor, which the caller closes.
  int release() { return std::exchange(fd_, -1); }
  void reset(int fd = -1);

 private:
  int fd_ = -1;
};

/// Writes every byte. @throws Error naming `path` and the cause: disk full, file too large, I/O error.
void write_all(int fd, std::string_view bytes, std::string_view path);

/// Creates `path` (mode 0600) with `bytes`; it must not exist. @throws Error naming the path and the cause.
void write_new_file(const std::string& path, std::string_view bytes);

/// What AtomicFile::publish does where a file of the name exists.
enum class Existing { replace, keep };

/// The names of the temporary files that an AtomicFile may need begin with this.
inline constexpr std::string_view kTemporaryPrefix = ".tilewright-";

/// A file that readers see complete or not at all. Until publish() it has no name where the file system offers
/// O_TMPFILE, so a process that is killed leaves nothing behind; elsewhere it has a random name that begins with
/// kTemporaryPrefix, the file is locked (flock(2)) as long as it has its writer, and the destructor deletes it.
/// Replacing a file needs such a name between two system calls.
class AtomicFile {
 public:
  /// Begins an empty file on the file system of `folder`, an open folder (O_PATH suffices) that must stay open as long
  /// as the object lives. `mode` is that of open(2), which the umask reduces. `path` names the file in errors.
  /// @throws Error naming the path and the cause, as every member that can fail
  AtomicFile(int folder, mode_t mode, std::string path);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile();

  void write(std::string_view bytes) { write_all(fd_.get(), bytes, path_); }

  /// Gives the file its `name` in `folder`, which may be another folder of the same file system. Errors that the file
  /// system reports only when a file is closed are reported before the file gets its name. False: a file of that name
  /// exists and is kept. To be called once, when all is written.
  bool publish(int folder, const std::string& name, Existing existing);

 private:
  bool link_unnamed(int folder, const std::string& name) const;
  void open_named(mode_t mode);
  void copy_to_named();
  void settle() const;
  void mark_as_written() const;
  bool rename_named(int folder, const std::string& name, Existing existing);

  int folder_;
  std::string path_;
  UniqueFd fd_;
  std::string temporary_;  // the name in folder_; empty: none
};

/// Replaces `path` by an AtomicFile of mode 0666, which the umask reduces. @throws Error naming the path and the cause.
void write_file(const std::string& path, std::string_view bytes);

/// Opens what must be a regular file, without waiting for anybody: a FIFO, a device, a socket or a folder is refused.
/// The refusal says why it cannot be opened, without the path: "it is a FIFO, not a regular file".
Result<UniqueFd> open_regular_file(const std::string& path);

/// Reads from byte `offset` until `bytes` is full or the file ends, and gives how many there were; ends early when the
/// program asks for it (base/interruption.hpp). @throws Error naming `path` and the cause.
std::size_t read_at(int fd, std::span<std::byte> bytes, std::int64_t offset, std::string_view path);

/// The whole of a regular file. @throws Error when it cannot be read or has more than `max_bytes`.
std::string read_file(const std::string& path, std::size_t max_bytes);

/// Creates the folder and its missing parents with mode 0700. @throws Error naming the one that failed.
void make_folders(const std::string& path);

/// 16 hexadecimal digits that nobody can guess.
std::string random_name();

/// A new folder in `parent` that only this user may enter; its name is `prefix` and a random one. Gives its path.
/// @throws Error naming the parent and the cause
std::string make_private_folder(const std::string& parent, std::string_view prefix);

/// The names of all that is in the open folder `folder`, in no order; none where it cannot be read.
std::vector<std::string> names_in(int folder);

/// Deletes all that is in the open folder `folder`; never follows a symbolic link and never enters another file system.
/// False: something is left.
bool remove_contents(int folder);

/// A private folder that goes, with what is in it, when the object does. Making one also deletes those that killed
/// processes of this user left in `parent`: folders named kPrefix and a random name that no process holds any more.
class ScopedFolder {
 public:
  static constexpr std::string_view kPrefix = "tilewright-scratch-";

  /// @throws Error naming the parent and the cause
  explicit ScopedFolder(const std::string& parent);
  ScopedFolder(const ScopedFolder&) = delete;
  ScopedFolder& operator=(const ScopedFolder&) = delete;
  /// Does nothing in a forked child: the folder is its parent's.
  ~ScopedFolder();

  const std::string& path() const { return path_; }

 private:
  UniqueFd parent_;
  std::string name_;
  std::string path_;
  UninheritedFd folder_;  // locked while the folder is in use
};

}  // namespace tilewright::compile
