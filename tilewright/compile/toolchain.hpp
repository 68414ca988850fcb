// Where the vendor's libraries and tools are on this machine.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tilewright/compile/compiler.hpp"
#include "tilewright/compile/environment.hpp"

namespace tilewright::compile {

/// The outcome of a search: the absolute path of the first hit, and every place that was looked at up to it.
struct Search {
  std::optional<std::string> path;
  std::vector<SearchedPlace> places;
};

/// Looks for a shared library, without loading it, in this order:
///   Environment::cuda_home; a copy this process already loaded; the `nvidia-*` wheels (of VIRTUAL_ENV, of the
///   environment this code is installed in, of a .venv beside the build folder, of ~/.local); conda; the loader's
///   folders; CUDA_PATH and CUDA_HOME; the conventional roots; last the loader itself, since asking it is loading.
/// Within one place, sonames are tried in the order given: newest first.
Search find_library(std::span<const std::string_view> sonames, const Environment& environment);

/// Looks for an executable such as nvcc in the `bin` of the same roots, then in PATH.
Search find_tool(std::string_view name, const Environment& environment);

/// NVRTC by its sonames of CUDA 13 and 12.
Search find_nvrtc(const Environment& environment);

/// How to get what was not found.
inline constexpr std::string_view kInstallNvrtc = "pip install \"cuda-toolkit[nvrtc]==13.*\"";
inline constexpr std::string_view kInstallNvcc = "pip install \"cuda-toolkit[nvcc]==13.*\"";

/// What tells one build of a binary from another, read from its first pages in microseconds: its GNU build id; for a
/// file that carries none, its size and modification time. @throws ToolchainNotFound when the file cannot be read.
std::string build_identity(const std::string& path);

/// What tells one build of a binary without a build id from another, wherever it is installed: a digest of its size and
/// contents; of a file of more than a megabyte, of 256 pages spread evenly over it, since hashing a toolkit's 150 MB
/// takes as long as a compile. 16 hexadecimal digits. @throws ToolchainNotFound when the file cannot be read.
std::string content_identity(const std::string& path);

/// @throws ToolchainNotFound always: what is missing, each place searched, the command that installs it
[[noreturn]] void throw_not_found(std::string_view what, const Search& search, std::string_view fix);

}  // namespace tilewright::compile
