#include "tilewright/compile/failed_source.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <tuple>
#include <vector>

#include "tilewright/base/error.hpp"
#include "tilewright/compile/file.hpp"

namespace tilewright::compile {
namespace {

constexpr std::size_t kKeptSources = 32;
constexpr std::string_view kSuffix = ".cu";
constexpr std::string_view kMlirSuffix = ".mlir";
constexpr std::string_view kFolderPrefix = "tilewright-failed-";

struct OpenFolder {
  std::string path;
  UniqueFd fd;
};

OpenFolder open_folder(std::string path, int flags = 0) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | flags));
  return {std::move(path), std::move(fd)};
}

bool is_private(int folder) {
  struct stat status {};
  return ::fstat(folder, &status) == 0 && status.st_uid == ::geteuid() && (status.st_mode & 07777) == 0700;
}

// The name is predictable and /tmp is writable by everybody, so another user may have created the folder. It is used
// only if it is private; otherwise a new private folder is made.
OpenFolder open_users_folder(const std::string& temporary_dir) {
  const std::string path = fmt::format("{}/{}{}", temporary_dir, kFolderPrefix, ::geteuid());
  ::mkdir(path.c_str(), 0700);  // open_folder() reports a failure
  OpenFolder folder = open_folder(path, O_NOFOLLOW);
  if (folder.fd && is_private(folder.fd.get())) return folder;
  return open_folder(make_private_folder(temporary_dir, fmt::format("{}{}-", kFolderPrefix, ::geteuid())), O_NOFOLLOW);
}

// Deletes the oldest sources. Another process may do the same at once, so failures to delete are ignored.
void delete_old_sources(int folder, const std::string& newest) {
  using Age = std::tuple<std::int64_t, std::int64_t, std::string>;  // seconds, nanoseconds, name
  std::vector<Age> sources;
  for (std::string& name : names_in(folder)) {
    struct stat status {};
    if ((!name.ends_with(kSuffix) && !name.ends_with(kMlirSuffix)) || name == newest) continue;
    if (::fstatat(folder, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(status.st_mode)) continue;
    sources.emplace_back(status.st_mtim.tv_sec, status.st_mtim.tv_nsec, std::move(name));
  }
  std::sort(sources.begin(), sources.end());
  for (std::size_t i = 0; i + (kKeptSources - 1) < sources.size(); ++i) {
    ::unlinkat(folder, std::get<std::string>(sources[i]).c_str(), 0);
  }
}

}  // namespace

std::string dump_source(const Source& source, const std::string& dump_dir, const std::string& temporary_dir) {
  try {
    const bool is_callers_folder = !dump_dir.empty();
    if (is_callers_folder) make_folders(dump_dir);
    const OpenFolder folder = is_callers_folder ? open_folder(dump_dir) : open_users_folder(temporary_dir);
    const std::string_view suffix = source.language == Language::mlir ? kMlirSuffix : kSuffix;
    const std::string name = fmt::format("{}-{}{}", source.name, random_name(), suffix);
    const std::string path = folder.path + "/" + name;
    const auto failed = [&] { return fmt::format("(not dumped: cannot create {}: {})", path, std::strerror(errno)); };
    if (!folder.fd) return failed();
    const UniqueFd file(
        ::openat(folder.fd.get(), name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!file) return failed();
    if (!is_callers_folder) delete_old_sources(folder.fd.get(), name);
    write_all(file.get(), source.text, path);
    return path;
  } catch (const Error& error) {
    return fmt::format("(not dumped: {})", error.what());
  }
}

void throw_compile_error(const Source& source, std::string_view why, std::string_view dumped, std::string_view log) {
  constexpr std::size_t kMaxLogBytes = std::size_t{16} << 10;
  const std::string_view shown = log.substr(0, kMaxLogBytes);
  const char* cut = shown.size() < log.size() ? "\n(log cut)" : "";
  throw CompileError(fmt::format("cannot compile '{}' for {}: {}\nsource: {}\nlog:\n{}{}", source.name,
                                 source.target.name(), why, dumped, shown, cut));
}

}  // namespace tilewright::compile
