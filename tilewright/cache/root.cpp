#include "tilewright/cache/root.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

namespace tilewright::cache {
namespace {

namespace fs = std::filesystem;

Support check_ancestors(const fs::path& root) {
  std::error_code failed;
  fs::path folder = root.parent_path();
  while (!fs::exists(folder, failed) && folder.has_relative_path()) folder = folder.parent_path();
  folder = fs::canonical(folder, failed);
  if (failed) return refuse("cannot resolve {}: {}", root.string(), failed.message());
  while (true) {
    struct stat status {};
    if (::stat(folder.c_str(), &status) != 0)
      return refuse("cannot stat {}: {}", folder.string(), std::strerror(errno));
    if ((status.st_mode & S_IWOTH) != 0 && (status.st_mode & S_ISVTX) == 0) {
      return refuse("its ancestor {} may be written by anybody (mode {:04o})", folder.string(), status.st_mode & 07777);
    }
    if (!folder.has_relative_path()) return {};
    folder = folder.parent_path();
  }
}

Support check_owner(int fd) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) return refuse("cannot stat it: {}", std::strerror(errno));
  if (status.st_uid != ::geteuid()) return refuse("it belongs to uid {}, not to uid {}", status.st_uid, ::geteuid());
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return refuse("others may write to it (mode {:04o}, wanted 0700)", status.st_mode & 07777);
  }
  return {};
}

}  // namespace

std::string choose_root(const std::string& explicit_root, const compile::Environment& environment) {
  if (!explicit_root.empty()) return fs::absolute(explicit_root).lexically_normal().string();
  if (!environment.cache_dir.empty()) return fs::absolute(environment.cache_dir).lexically_normal().string();
  if (environment.xdg_cache_home.starts_with('/')) return environment.xdg_cache_home + "/tilewright";
  if (environment.home.starts_with('/') && environment.home != "/") return environment.home + "/.cache/tilewright";
  return {};
}

Result<compile::UniqueFd> open_root(const std::string& path) {
  if (const Support safe = check_ancestors(path); !safe) return refuse("{}: {}", path, safe.reason());
  try {
    compile::make_folders(path);
  } catch (const Error& error) {
    return refuse("{}: {}", path, error.what());
  }
  compile::UniqueFd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd) return refuse("{}: cannot open it as a folder: {}", path, std::strerror(errno));
  if (const Support safe = check_owner(fd.get()); !safe) return refuse("{}: {}", path, safe.reason());
  return fd;
}

}  // namespace tilewright::cache
