#include "tilewright/compile/file.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "tilewright/base/error.hpp"

namespace tilewright::compile {
namespace {

[[noreturn]] void throw_errno(std::string_view call, std::string_view path) {
  throw Error(fmt::format("cannot {} {}: {}", call, path, std::strerror(errno)));
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

void write_file(const std::string& path, std::string_view bytes) {
  std::string temporary = path + ".XXXXXX";
  const UniqueFd file(::mkostemp(temporary.data(), O_CLOEXEC));
  if (!file) throw_errno("create", temporary);
  try {
    write_all(file.get(), bytes, temporary);
    constexpr mode_t kForAllToRead = 0644;
    if (::fchmod(file.get(), kForAllToRead) != 0) throw_errno("chmod", temporary);
    if (std::rename(temporary.c_str(), path.c_str()) != 0) throw_errno("rename", temporary);
  } catch (...) {
    ::unlink(temporary.c_str());
    throw;
  }
}

std::string read_file(const std::string& path, std::size_t max_bytes) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status {};
  if (!file || ::fstat(file.get(), &status) != 0) throw_errno("open", path);
  const auto size = static_cast<std::size_t>(status.st_size);
  if (size > max_bytes) throw Error(fmt::format("cannot read {}: {} bytes, at most {}", path, size, max_bytes));
  std::string bytes(size, '\0');
  std::size_t done = 0;
  while (done < size) {
    const ssize_t read = ::read(file.get(), bytes.data() + done, size - done);
    if (read < 0 && errno == EINTR) continue;
    if (read < 0) throw_errno("read", path);
    if (read == 0) throw Error(fmt::format("cannot read {}: it shrank from {} to {} bytes", path, size, done));
    done += static_cast<std::size_t>(read);
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

std::string make_private_folder(const std::string& parent) {
  std::string path = std::filesystem::path(parent) / "tilewright-XXXXXX";
  if (::mkdtemp(path.data()) == nullptr) throw_errno("create a folder in", parent);
  return path;
}

ScopedFolder::~ScopedFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace tilewright::compile
