#include "tilewright/compile/toolchain.hpp"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "tilewright/base/hash.hpp"
#include "tilewright/base/text.hpp"
#include "tilewright/compile/file.hpp"
#include "tilewright/compile/shared_library.hpp"

namespace tilewright::compile {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 4> kLibraryFolders = {"lib64", "lib", "targets/x86_64-linux/lib",
                                                             "lib/x86_64-linux-gnu"};

// One step of the search order: folders of equal priority, and their description for messages.
struct Place {
  std::string where;
  std::vector<std::string> folders;
};

std::vector<std::string> subfolders(const fs::path& parent, std::string_view prefix) {
  std::vector<std::string> found;
  std::error_code failed;
  for (fs::directory_iterator entry(parent, failed), end; !failed && entry != end; entry.increment(failed)) {
    if (entry->path().filename().string().starts_with(prefix)) found.push_back(entry->path().string());
  }
  std::sort(found.begin(), found.end(), std::greater<>());
  return found;
}

// Folders that are found by their position, not named by the user, are searched only if nobody else can write there.
bool is_ours(const fs::path& folder) {
  struct stat status {};
  if (::stat(folder.c_str(), &status) != 0) return false;
  return (status.st_uid == 0 || status.st_uid == ::geteuid()) && (status.st_mode & S_IWOTH) == 0;
}

std::vector<std::string> site_packages(const fs::path& prefix) {
  std::vector<std::string> found;
  for (const std::string& python : subfolders(prefix / "lib", "python3")) found.push_back(python + "/site-packages");
  return found;
}

// The site-packages folder that contains this code, then those of virtual environments beside it.
std::vector<std::string> site_packages_around(const fs::path& code_dir) {
  std::vector<std::string> found;
  for (fs::path folder = code_dir; folder.has_relative_path(); folder = folder.parent_path()) {
    if (folder.filename() == "site-packages" || folder.filename() == "dist-packages") found.push_back(folder.string());
  }
  const fs::path parent = code_dir.parent_path();
  for (const fs::path& prefix : {parent, parent / ".venv", parent.parent_path() / ".venv"}) {
    if (!is_ours(prefix)) continue;
    for (std::string& folder : site_packages(prefix)) found.push_back(std::move(folder));
  }
  return found;
}

std::vector<std::string> all_site_packages(const Environment& environment) {
  std::vector<std::string> found;
  const auto add = [&](std::vector<std::string> folders) {
    for (std::string& folder : folders) {
      if (std::find(found.begin(), found.end(), folder) == found.end()) found.push_back(std::move(folder));
    }
  };
  if (!environment.virtual_env.empty()) add(site_packages(environment.virtual_env));
  for (const std::string& folder : environment.code_dirs) add(site_packages_around(folder));
  if (!environment.home.empty()) add(site_packages(fs::path(environment.home) / ".local"));
  return found;
}

// The wheels of CUDA 13 share the folder nvidia/cu13; each wheel of CUDA 12 and of cuDNN has a folder of its own.
Place wheels(const std::string& site_packages_folder, std::string_view leaf) {
  Place place{site_packages_folder + "/nvidia/*/" + std::string(leaf), {}};
  for (const std::string& package : subfolders(site_packages_folder + "/nvidia", "")) {
    place.folders.push_back(package + "/" + std::string(leaf));
  }
  return place;
}

Place root_place(const std::string& root, std::span<const std::string_view> leaves) {
  Place place{root, {}};
  for (const std::string_view leaf : leaves) place.folders.push_back(root + "/" + std::string(leaf));
  return place;
}

std::vector<Place> wheel_places(const Environment& environment, std::string_view leaf) {
  std::vector<Place> places;
  for (const std::string& folder : all_site_packages(environment)) places.push_back(wheels(folder, leaf));
  return places;
}

std::vector<Place> root_places(const Environment& environment, std::span<const std::string_view> leaves) {
  std::vector<Place> places;
  for (const std::string& root : environment.cuda_paths) places.push_back(root_place(root, leaves));
  for (const std::string& root : environment.cuda_roots) places.push_back(root_place(root, leaves));
  return places;
}

std::optional<std::string> first_file(const Place& place, std::span<const std::string_view> names, int access_mode) {
  for (const std::string_view name : names) {
    for (const std::string& folder : place.folders) {
      std::string path = folder + "/" + std::string(name);
      struct stat status {};
      if (::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) && ::access(path.c_str(), access_mode) == 0) {
        return path;
      }
    }
  }
  return std::nullopt;
}

// A search in progress: ignores further places after the first match, and records each place it searched.
class Searcher {
 public:
  Searcher(std::span<const std::string_view> names, int access_mode) : names_(names), access_mode_(access_mode) {}

  void look(const Place& place) {
    if (!search_.path) record(place.where, first_file(place, names_, access_mode_));
  }
  void look(const std::vector<Place>& places) {
    for (const Place& place : places) look(place);
  }
  void look_at_loader(std::string_view where, SharedLibrary::Load load) {
    if (search_.path) return;
    std::optional<std::string> path;
    for (const std::string_view name : names_) {
      if (path) break;
      if (const auto library = SharedLibrary::open(std::string(name), load)) path = library->path();
    }
    record(std::string(where), std::move(path));
  }
  Search take() && { return std::move(search_); }

 private:
  void record(std::string where, std::optional<std::string> path) {
    search_.places.push_back({path ? *path : std::move(where), path.has_value()});
    search_.path = std::move(path);
  }

  std::span<const std::string_view> names_;
  int access_mode_;
  Search search_;
};

std::string hex(std::span<const unsigned char> bytes) {
  std::string text;
  for (const unsigned char byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

// The contents of the first NT_GNU_BUILD_ID note in the bytes of a PT_NOTE segment (ELF gABI: 4-byte aligned records).
std::optional<std::string> build_id_in_notes(std::span<const unsigned char> notes) {
  const auto padded = [](std::size_t size) { return (size + 3) & ~std::size_t{3}; };
  while (notes.size() >= sizeof(Elf64_Nhdr)) {
    Elf64_Nhdr header;
    std::memcpy(&header, notes.data(), sizeof header);
    const std::size_t descriptor = sizeof header + padded(header.n_namesz);
    const std::size_t next = descriptor + padded(header.n_descsz);
    if (next > notes.size()) return std::nullopt;
    if (header.n_type == NT_GNU_BUILD_ID && header.n_namesz == 4 &&
        std::memcmp(notes.data() + sizeof header, "GNU", 4) == 0) {
      return hex(notes.subspan(descriptor, header.n_descsz));
    }
    notes = notes.subspan(next);
  }
  return std::nullopt;
}

std::optional<std::string> elf_build_id(int fd) {
  constexpr std::size_t kMaxNoteBytes = 4096;
  Elf64_Ehdr header{};
  if (::pread(fd, &header, sizeof header, 0) != sizeof header) return std::nullopt;
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
      header.e_phentsize != sizeof(Elf64_Phdr)) {
    return std::nullopt;
  }
  for (int i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment{};
    const auto at = static_cast<off_t>(header.e_phoff + static_cast<std::size_t>(i) * sizeof segment);
    if (::pread(fd, &segment, sizeof segment, at) != sizeof segment) return std::nullopt;
    if (segment.p_type != PT_NOTE || segment.p_filesz > kMaxNoteBytes) continue;
    std::array<unsigned char, kMaxNoteBytes> notes{};
    const ssize_t read = ::pread(fd, notes.data(), segment.p_filesz, static_cast<off_t>(segment.p_offset));
    if (read != static_cast<ssize_t>(segment.p_filesz)) return std::nullopt;
    if (auto id = build_id_in_notes(std::span(notes).first(segment.p_filesz))) return id;
  }
  return std::nullopt;
}

}  // namespace

Search find_library(std::span<const std::string_view> sonames, const Environment& environment) {
  Searcher searcher(sonames, R_OK);
  if (!environment.cuda_home.empty()) searcher.look(root_place(environment.cuda_home, kLibraryFolders));
  if (environment.ask_loader) searcher.look_at_loader("already loaded", SharedLibrary::Load::only_if_loaded);
  searcher.look(wheel_places(environment, "lib"));
  if (!environment.conda_prefix.empty()) searcher.look(root_place(environment.conda_prefix, kLibraryFolders));
  for (const std::string& folder : environment.loader_dirs) searcher.look(Place{folder, {folder}});
  searcher.look(root_places(environment, kLibraryFolders));
  if (environment.ask_loader) searcher.look_at_loader("the system's loader (dlopen)", SharedLibrary::Load::now);
  return std::move(searcher).take();
}

Search find_tool(std::string_view name, const Environment& environment) {
  constexpr std::array<std::string_view, 1> kToolFolders = {"bin"};
  const std::array<std::string_view, 1> names = {name};
  Searcher searcher(names, X_OK);
  if (!environment.cuda_home.empty()) searcher.look(root_place(environment.cuda_home, kToolFolders));
  searcher.look(wheel_places(environment, "bin"));
  if (!environment.conda_prefix.empty()) searcher.look(root_place(environment.conda_prefix, kToolFolders));
  searcher.look(root_places(environment, kToolFolders));
  for (const std::string& folder : environment.path) searcher.look(Place{folder, {folder}});
  return std::move(searcher).take();
}

Search find_nvrtc(const Environment& environment) {
  constexpr std::array<std::string_view, 2> kSonames = {"libnvrtc.so.13", "libnvrtc.so.12"};
  return find_library(kSonames, environment);
}

Search find_mlir(const Environment& environment) {
  const std::array<std::string_view, 1> names = {kMlirLibrary};
  if (!environment.mlir_library.empty()) {
    const fs::path file(environment.mlir_library);
    const std::string name = file.filename().string();
    const std::array<std::string_view, 1> only = {name};
    Searcher searcher(only, R_OK);
    searcher.look(Place{environment.mlir_library, {file.parent_path().string()}});
    return std::move(searcher).take();
  }
  Searcher searcher(names, R_OK);
  for (const std::string& code_dir : environment.code_dirs) {
    const fs::path parent = fs::path(code_dir).parent_path();
    Place place{code_dir + ", or lib beside it", {}};
    for (const fs::path& folder : {fs::path(code_dir), parent / "lib", parent / "lib64",
                                   parent / "lib/x86_64-linux-gnu", parent.parent_path() / "lib"}) {
      if (is_ours(folder)) place.folders.push_back(folder.string());
    }
    searcher.look(place);
  }
  for (const std::string& folder : all_site_packages(environment))
    searcher.look(root_place(folder, std::array<std::string_view, 1>{"tilewright"}));
  for (const std::string& folder : environment.loader_dirs) searcher.look(Place{folder, {folder}});
  if (environment.ask_loader) searcher.look_at_loader("the system's loader (dlopen)", SharedLibrary::Load::now);
  return std::move(searcher).take();
}

std::string build_identity(const std::string& path) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status {};
  if (!file || ::fstat(file.get(), &status) != 0) {
    throw ToolchainNotFound(fmt::format("cannot read {}: {}", path, std::strerror(errno)));
  }
  if (const auto id = elf_build_id(file.get())) return *id;
  return fmt::format("{}-bytes-{}.{:09}", status.st_size, status.st_mtim.tv_sec, status.st_mtim.tv_nsec);
}

std::string content_identity(const std::string& path) {
  constexpr std::int64_t kPage = 4096;
  constexpr std::int64_t kPages = 256;
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status {};
  if (!file || ::fstat(file.get(), &status) != 0)
    throw ToolchainNotFound(fmt::format("cannot read {}: {}", path, std::strerror(errno)));
  FieldHasher hasher;
  hasher.field("size", std::int64_t{status.st_size});
  const std::int64_t last_page = std::max<std::int64_t>(0, status.st_size - 1) / kPage;
  const std::int64_t count = std::min(kPages, last_page + 1);
  std::array<char, kPage> page{};
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t index = count == 1 ? 0 : i * last_page / (count - 1);
    const ssize_t size = ::pread(file.get(), page.data(), page.size(), index * kPage);
    if (size < 0) throw ToolchainNotFound(fmt::format("cannot read {}: {}", path, std::strerror(errno)));
    hasher.field("page", std::string_view(page.data(), static_cast<std::size_t>(size)));
  }
  return hasher.finish().hex().substr(0, 16);
}

void throw_not_found(std::string_view what, const Search& search, std::string_view fix) {
  std::string message = fmt::format("{} was not found. Searched:", what);
  for (const SearchedPlace& place : search.places) message += "\n  " + place.where;
  if (search.places.empty()) message += "\n  (nowhere: the environment names no place to search)";
  throw ToolchainNotFound(fmt::format("{}\nInstall it with: {}", message, fix));
}

}  // namespace tilewright::compile
