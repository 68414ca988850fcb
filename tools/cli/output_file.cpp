#include "tools/cli/output_file.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <string_view>

#include "tilewright/base/error.hpp"
#include "tilewright/base/interruption.hpp"
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

// Two paths are the same file if their identities are equal: the inode of an existing file; for a file that does not
// exist yet, the inode of its folder and its name.
struct FileIdentity {
  dev_t device = 0;
  ino_t inode = 0;
  std::string name;
  bool operator==(const FileIdentity&) const = default;
};

std::optional<FileIdentity> identity_of(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) == 0) return FileIdentity{status.st_dev, status.st_ino, {}};
  if (stat(folder_of(path).c_str(), &status) != 0) return std::nullopt;
  return FileIdentity{status.st_dev, status.st_ino, path.substr(path.rfind('/') + 1)};
}

}  // namespace

void check_output(const std::string& path) {
  if (path.empty() || path.back() == '/' || !is_regular_or_missing(path)) {
    throw InvalidArgument(fmt::format("{}: is not the name of a file", printable(path)));
  }
  if (access(folder_of(path).c_str(), W_OK) != 0) {
    throw InvalidArgument(fmt::format("{}: cannot be written: {}", printable(path), std::strerror(errno)));
  }
}

void check_outputs(const std::vector<NamedFile>& outputs, const std::vector<NamedFile>& inputs) {
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const NamedFile& output = outputs[i];
    check_output(output.path);
    const std::optional<FileIdentity> identity = identity_of(output.path);
    const auto refuse_if_same = [&](const NamedFile& other, std::string_view verb) {
      if (!identity || identity != identity_of(other.path)) return;
      throw InvalidArgument(fmt::format("{} {} would overwrite {}, which {} {}", output.option, printable(output.path),
                                        printable(other.path), other.option, verb));
    };
    for (const NamedFile& input : inputs) refuse_if_same(input, "reads");
    for (std::size_t earlier = 0; earlier < i; ++earlier) refuse_if_same(outputs[earlier], "writes");
  }
}

void write_output(const std::string& path, std::span<const std::byte> bytes) {
  check_interruption();
  compile::write_file(path, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

}  // namespace tilewright::cli
