// Files and folders by descriptor: one that closes itself, whole writes, private folders.
#pragma once

#include <fcntl.h>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>

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
  void reset(int fd = -1);

 private:
  int fd_ = -1;
};

/// Writes every byte. @throws Error naming `path` and the cause: disk full, file too large, I/O error.
void write_all(int fd, std::string_view bytes, std::string_view path);

/// Creates `path` (mode 0600) with `bytes`; it must not exist. @throws Error naming the path and the cause.
void write_new_file(const std::string& path, std::string_view bytes);

/// Writes beside `path` and renames: a reader sees the old file or the whole new one. @throws Error naming the cause.
void write_file(const std::string& path, std::string_view bytes);

/// The whole file. @throws Error when it cannot be read or has more than `max_bytes`.
std::string read_file(const std::string& path, std::size_t max_bytes);

/// Creates the folder and its missing parents with mode 0700. @throws Error naming the one that failed.
void make_folders(const std::string& path);

/// A new folder that only this user may enter, below `parent`. @throws Error naming the parent and the cause.
std::string make_private_folder(const std::string& parent);

/// A private folder that goes, with what is in it, when the object does.
class ScopedFolder {
 public:
  explicit ScopedFolder(const std::string& parent) : path_(make_private_folder(parent)) {}
  ScopedFolder(const ScopedFolder&) = delete;
  ScopedFolder& operator=(const ScopedFolder&) = delete;
  ~ScopedFolder();

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace tilewright::compile
