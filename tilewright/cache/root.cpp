#include "tilewright/cache/root.hpp"

#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "tilewright/cache/layer.hpp"

namespace tilewright::cache {
namespace {

namespace fs = std::filesystem;

constexpr const char* kMarker = "tilewright-cache";
constexpr std::string_view kMarkerText = "This folder is a cache of Tilewright, which deletes files in it.\n";
constexpr const char* kTag = "CACHEDIR.TAG";
constexpr const char* kTuningRecords = "tuning_records.db";
constexpr std::string_view kTagText =
    "Signature: 8a477f597d28d172789f06886806bc55\n"
    "# This file marks a folder whose contents can be made again. See https://bford.info/cachedir/\n";

bool is_ours_or_roots(const struct stat& status) { return status.st_uid == 0 || status.st_uid == ::geteuid(); }

/// Whether the group is the user's private group: it has the user's name and no other members. Write permission of such
/// a group gives access to nobody else.
bool is_private_group(gid_t group, uid_t owner) {
  std::array<char, 4096> group_text{}, user_text{};
  struct group group_entry {};
  struct group* found_group = nullptr;
  struct passwd user_entry {};
  struct passwd* found_user = nullptr;
  if (::getgrgid_r(group, &group_entry, group_text.data(), group_text.size(), &found_group) != 0 ||
      found_group == nullptr ||
      ::getpwuid_r(owner, &user_entry, user_text.data(), user_text.size(), &found_user) != 0 || found_user == nullptr) {
    return false;
  }
  if (std::strcmp(found_group->gr_name, found_user->pw_name) != 0) return false;
  for (char* const* member = found_group->gr_mem; *member != nullptr; ++member) {
    if (std::strcmp(*member, found_user->pw_name) != 0) return false;
  }
  return true;
}

/// Whether nobody but root and this user can rename or replace the entries of any folder above the root.
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
    const mode_t mode = status.st_mode & 07777;
    if (!is_ours_or_roots(status)) {
      return refuse("the folder {} above it belongs to uid {}, who may replace it", folder.string(), status.st_uid);
    }
    const bool is_sticky = (mode & S_ISVTX) != 0;
    if (!is_sticky && (mode & S_IWOTH) != 0)
      return refuse("the folder {} above it may be written by anybody (mode {:04o})", folder.string(), mode);
    if (!is_sticky && (mode & S_IWGRP) != 0 && !is_private_group(status.st_gid, status.st_uid)) {
      return refuse("the folder {} above it may be written by the group {} (mode {:04o})", folder.string(),
                    status.st_gid, mode);
    }
    if (!folder.has_relative_path()) return {};
    folder = folder.parent_path();
  }
}

Support check_root(int fd, Layer::Trust trust) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) return refuse("cannot stat it: {}", std::strerror(errno));
  const bool is_trusted = status.st_uid == ::geteuid() || (trust == Layer::Trust::shared && status.st_uid == 0);
  if (!is_trusted) return refuse("it belongs to uid {}, not to uid {}", status.st_uid, ::geteuid());
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return refuse("others may write to it (mode {:04o}, wanted 0700)", status.st_mode & 07777);
  }
  return {};
}

bool has(int folder, const char* name) {
  struct stat status {};
  return ::fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(status.st_mode);
}

/// Whether the folder is a cache of a version before 0.2. Such caches had no marker; they contain `locks` or tuning
/// records, and nothing but the known names.
bool is_older_cache(int folder, const std::vector<std::string>& names) {
  const auto is_known = [](const std::string& name) {
    return name == "entries" || name == "tmp" || name == "locks" || name == kTag || name.starts_with(kTuningRecords);
  };
  return (has(folder, "locks") || has(folder, kTuningRecords)) && std::ranges::all_of(names, is_known);
}

/// Creates the file; an existing one is kept. False when it cannot be created, as on a read-only file system.
bool write_marker(int folder, const char* name, std::string_view text) {
  const compile::UniqueFd file(::openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file) return errno == EEXIST;
  return ::write(file.get(), text.data(), text.size()) >= 0;
}

/// Checks that the folder is a cache; makes it one by writing the marker if it is empty or an older cache.
Support claim(int folder) {
  if (has(folder, kMarker)) return {};
  std::vector<std::string> names;
  for_each_name(folder, [&](const std::string& name) { names.push_back(name); });
  // has() is repeated because another process may be claiming the same empty folder; the marker is the first file that
  // it writes.
  if (!names.empty() && !is_older_cache(folder, names) && !has(folder, kMarker)) {
    return refuse(
        "it is not empty and not a cache of Tilewright (it has no file {}, but it has {}): choose an empty folder or "
        "one "
        "that does not exist",
        kMarker, *std::ranges::min_element(names));
  }
  if (!write_marker(folder, kMarker, kMarkerText)) return refuse("cannot write {}: {}", kMarker, std::strerror(errno));
  write_marker(folder, kTag, kTagText);
  return {};
}

compile::UniqueFd open_as_folder(const std::string& path, int flags) {
  return compile::UniqueFd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | flags));
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
  compile::UniqueFd fd = open_as_folder(path, O_NOFOLLOW);
  if (!fd) return refuse("{}: cannot open it as a folder: {}", path, std::strerror(errno));
  if (const Support safe = check_root(fd.get(), Layer::Trust::own); !safe) return refuse("{}: {}", path, safe.reason());
  if (const Support ours = claim(fd.get()); !ours) return refuse("{}: {}", path, ours.reason());
  return fd;
}

Result<compile::UniqueFd> open_shared_root(const std::string& path) {
  std::error_code failed;
  const fs::path real = fs::canonical(path, failed);
  if (failed) return refuse("{}: {}", path, failed.message());
  if (const Support safe = check_ancestors(real); !safe) return refuse("{}: {}", path, safe.reason());
  compile::UniqueFd fd = open_as_folder(real, O_NOFOLLOW);
  if (!fd) return refuse("{}: cannot open it as a folder: {}", path, std::strerror(errno));
  if (const Support safe = check_root(fd.get(), Layer::Trust::shared); !safe)
    return refuse("{}: {}", path, safe.reason());
  if (!has(fd.get(), kMarker)) return refuse("{}: it is not a cache of Tilewright: there is no file {}", path, kMarker);
  return fd;
}

}  // namespace tilewright::cache
