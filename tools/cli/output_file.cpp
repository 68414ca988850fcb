#include "tools/cli/output_file.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "tilewright/base/error.hpp"
#include "tilewright/base/text.hpp"
#include "tilewright/compile/file.hpp"

namespace tilewright::cli {
namespace {

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

bool is_regular_or_missing(const std::string& path) {
  struct stat status {};
  return stat(path.c_str(), &status) != 0 || S_ISREG(status.st_mode);
}

// mkstemp makes mode 0600; an output is as readable as any file that this user makes.
mode_t default_mode() {
  const mode_t mask = umask(0);
  umask(mask);
  return 0666 & ~mask;
}

// A file that goes away unless it was renamed.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& beside) : path_(beside + ".XXXXXX") {
    fd_ = compile::UniqueFd(mkstemp(path_.data()));
    if (!fd_) throw Error(fmt::format("cannot write {}: {}", printable(beside), std::strerror(errno)));
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    if (!path_.empty()) unlink(path_.c_str());
  }

  void write(std::string_view bytes, const std::string& shown_as) { compile::write_all(fd_.get(), bytes, shown_as); }

  void rename_to(const std::string& path) {
    if (fchmod(fd_.get(), default_mode()) != 0 || std::rename(path_.c_str(), path.c_str()) != 0) {
      throw Error(fmt::format("cannot write {}: {}", printable(path), std::strerror(errno)));
    }
    path_.clear();
  }

 private:
  std::string path_;
  compile::UniqueFd fd_;
};

}  // namespace

void check_output(const std::string& path) {
  if (path.empty() || path.back() == '/' || !is_regular_or_missing(path)) {
    throw InvalidArgument(fmt::format("{}: not the name of a file", printable(path)));
  }
  if (access(folder_of(path).c_str(), W_OK) != 0) {
    throw InvalidArgument(fmt::format("{}: cannot be written: {}", printable(path), std::strerror(errno)));
  }
}

void write_output(const std::string& path, std::span<const std::byte> bytes) {
  TemporaryFile file(path);
  file.write({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path);
  file.rename_to(path);
}

}  // namespace tilewright::cli
