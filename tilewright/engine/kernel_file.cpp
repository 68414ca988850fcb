// NVRTC opens no files: the headers are found by the #include lines of the text and passed in memory.
#include "tilewright/engine/kernel_file.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <sstream>

#include "tilewright/base/error.hpp"
#include "tilewright/base/interruption.hpp"
#include "tilewright/base/text.hpp"
#include "tilewright/compile/file.hpp"
#include "tilewright/compile/source.hpp"
#include "tilewright/compile/toolchain.hpp"

namespace tilewright::engine {
namespace {

namespace fs = std::filesystem;

constexpr std::uintmax_t kMaxBytes = std::uintmax_t{64} << 20;

constexpr std::string_view kStdint = R"(#pragma once
typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long long int64_t;
typedef unsigned long long uint64_t;
typedef unsigned long long uintptr_t;
namespace std {
using ::int16_t; using ::int32_t; using ::int64_t; using ::int8_t;
using ::uint16_t; using ::uint32_t; using ::uint64_t; using ::uint8_t; using ::uintptr_t;
}
)";

/// Headers that kernels include by habit: NVRTC declares what device code may use of them.
constexpr std::array<std::pair<std::string_view, std::string_view>, 20> kHostHeaders{{
    {"assert.h", ""},
    {"cassert", ""},
    {"cfloat", ""},
    {"cmath", ""},
    {"cstddef", ""},
    {"cstdio", ""},
    {"cstdlib", ""},
    {"cstring", ""},
    {"cstdint", kStdint},
    {"cuda.h", ""},
    {"cuda_runtime.h", ""},
    {"cuda_runtime_api.h", ""},
    {"device_launch_parameters.h", ""},
    {"iostream", ""},
    {"math.h", ""},
    {"stddef.h", ""},
    {"stdint.h", kStdint},
    {"stdio.h", ""},
    {"stdlib.h", ""},
    {"string.h", ""},
}};

std::optional<std::string> read_text(const fs::path& path) {
  std::error_code failed;
  if (!fs::is_regular_file(path, failed) || fs::file_size(path, failed) > kMaxBytes || failed) return std::nullopt;
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file) return std::nullopt;
  return text.str();
}

/// The names in the #include lines of a text.
std::vector<std::string> included_names(std::string_view text) {
  std::vector<std::string> names;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    std::string_view rest = line;
    const auto skip = [&](std::string_view blanks) {
      rest.remove_prefix(std::min(rest.find_first_not_of(blanks), rest.size()));
    };
    skip(" \t");
    if (!rest.starts_with('#')) continue;
    rest.remove_prefix(1);
    skip(" \t");
    if (!rest.starts_with("include")) continue;
    rest.remove_prefix(7);
    skip(" \t");
    const char close = rest.starts_with('<') ? '>' : rest.starts_with('"') ? '"' : '\0';
    if (close == '\0') continue;
    const std::size_t end = rest.find(close, 1);
    if (end != std::string_view::npos) names.emplace_back(rest.substr(1, end - 1));
  }
  return names;
}

/// The include folders of the CUDA toolkit beside the NVRTC library.
std::vector<fs::path> toolkit_folders(const compile::ToolchainOptions& toolchain) {
  compile::Environment environment = compile::capture_environment();
  if (!toolchain.cuda_home.empty()) environment.cuda_home = toolchain.cuda_home;
  std::vector<fs::path> folders;
  const compile::Search nvrtc = compile::find_nvrtc(environment);
  if (nvrtc.path) {
    fs::path at = fs::path(*nvrtc.path).parent_path();
    for (int level = 0; level < 3; ++level) {
      at = at.parent_path();
      std::error_code failed;
      if (fs::is_directory(at / "include", failed)) folders.push_back(at / "include");
    }
  }
  folders.emplace_back("/usr/local/cuda/include");
  return folders;
}

class HeaderCollection {
 public:
  explicit HeaderCollection(std::vector<fs::path> folders) : folders_(std::move(folders)) {}

  /// Adds the headers that a text in `folder` includes. Headers that are not found are left to the compiler, which
  /// knows whether the line is reached.
  void add_included(std::string_view text, const fs::path& folder) {
    constexpr std::size_t kMaxHeaders = 4096;
    for (const std::string& name : included_names(text)) {
      check_interruption();
      if (headers_.size() >= kMaxHeaders || !seen_.insert(name).second) continue;
      const auto host = std::ranges::find(kHostHeaders, name, &std::pair<std::string_view, std::string_view>::first);
      if (host != kHostHeaders.end()) {
        headers_.push_back({name, std::string(host->second)});
        continue;
      }
      if (is_device_header(name)) continue;
      std::vector<fs::path> places{folder};
      places.insert(places.end(), folders_.begin(), folders_.end());
      for (const fs::path& place : places) {
        const std::optional<std::string> found = read_text(place / name);
        if (!found) continue;
        headers_.push_back({name, *found});
        add_included(*found, (place / name).parent_path());
        break;
      }
    }
  }

  std::vector<compile::UserHeader> take() { return std::move(headers_); }

 private:
  static bool is_device_header(const std::string& name) {
    const auto& all = compile::device_headers();
    return std::ranges::any_of(all, [&](const compile::Header& header) { return header.name == name; });
  }

  std::vector<fs::path> folders_;
  std::set<std::string> seen_;
  std::vector<compile::UserHeader> headers_;
};

/// The last part of a path, without characters that would need quoting.
std::string file_name(const std::string& path) {
  std::string name = fs::path(path).filename().string();
  for (char& c : name) {
    const bool plain =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '-';
    if (!plain) c = '_';
  }
  return name;
}

KernelFile compile_text(const std::string& text, const std::string& name, const fs::path& folder, Target target,
                        const compile::ToolchainOptions& toolchain, const std::vector<std::string>& include_folders) {
  std::vector<fs::path> folders(include_folders.begin(), include_folders.end());
  std::ranges::move(toolkit_folders(toolchain), std::back_inserter(folders));
  HeaderCollection headers(std::move(folders));
  headers.add_included(text, folder);
  KernelFile kernel{name, text, {}, headers.take()};
  compile::Source source;
  source.name = source.symbol = "kernel";
  // NVRTC makes the name absolute, from the folder that its process runs in.
  const std::string line_name = file_name(name);
  source.text = fmt::format("#line 1 \"{}\"\n{}", line_name, text);
  source.target = target;
  source.headers = kernel.headers;
  source.outputs = {.cubin = false, .ptx = true};
  kernel.ptx = compile::make_compiler(toolchain)->compile(source).ptx;
  for (const std::string& absolute : {"\"/" + line_name + '"', '"' + line_name + '"'}) {
    const std::size_t at = kernel.ptx.find(absolute);
    if (at != std::string::npos) kernel.ptx.replace(at, absolute.size(), '"' + name + '"');
    if (at != std::string::npos) break;
  }
  return kernel;
}

}  // namespace

KernelFile read_kernel_file(const std::string& path, Target target, const compile::ToolchainOptions& toolchain,
                            const std::vector<std::string>& include_folders) {
  const std::optional<std::string> text = read_text(path);
  if (!text) throw InvalidArgument(fmt::format("{}: not a regular file that can be read", printable(path)));
  if (path.ends_with(".ptx")) return {path, *text, *text, {}};
  return compile_text(*text, path, fs::path(path).parent_path(), target, toolchain, include_folders);
}

KernelFile compile_kernel_text(const std::string& text, const std::string& name, Target target,
                               const compile::ToolchainOptions& toolchain,
                               const std::vector<std::string>& include_folders) {
  const std::string folder = include_folders.empty() ? std::string("/nonexistent") : include_folders.front();
  return compile_text(text, name, folder, target, toolchain, include_folders);
}

}  // namespace tilewright::engine
