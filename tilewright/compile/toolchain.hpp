// Finds NVIDIA's libraries and tools on this machine, and identifies their builds.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tilewright/compile/compiler.hpp"
#include "tilewright/compile/environment.hpp"

namespace tilewright::compile {

/// The result of a search: the absolute path of the first match, and every place that was searched up to it.
struct Search {
  std::optional<std::string> path;
  std::vector<SearchedPlace> places;
};

/// Searches for a shared library in this order:
///   Environment::cuda_home; a copy that this process has already loaded; the `nvidia-*` wheels (of VIRTUAL_ENV, of the
///   environment this code is installed in, of a .venv beside the build folder, of ~/.local); conda; the loader's
///   folders; CUDA_PATH and CUDA_HOME; the conventional roots; the loader itself.
/// The loader comes last because asking it loads the library; no other step does. Within one place, the sonames are
/// tried in the given order, which should be newest first.
Search find_library(std::span<const std::string_view> sonames, const Environment& environment);

/// Searches for an executable such as nvcc in the `bin` folders of the same roots, then in PATH.
Search find_tool(std::string_view name, const Environment& environment);

/// find_library() for NVRTC of CUDA 13 or 12.
Search find_nvrtc(const Environment& environment);

/// The library that translates MLIR to PTX; it is part of Tilewright (mlir_shim/).
inline constexpr std::string_view kMlirLibrary = "libtilewright_mlir.so";

/// Searches for kMlirLibrary: the file that Environment::mlir_library names, and no other if it is set; else beside
/// this code, in the folder `lib` beside the folder of this code, in an installed Python package, in the loader's
/// folders, and by the loader, which knows the run path of this program.
Search find_mlir(const Environment& environment);

/// The commands that install NVRTC, nvcc and the library that translates MLIR.
inline constexpr std::string_view kInstallNvrtc = "pip install \"cuda-toolkit[nvrtc]==13.*\"";
inline constexpr std::string_view kInstallNvcc = "pip install \"cuda-toolkit[nvcc]==13.*\"";

inline constexpr std::string_view kInstallMlir =
    "apt-get install libmlir-22-dev llvm-22-dev zlib1g-dev libzstd-dev, and build Tilewright again; or set "
    "TILEWRIGHT_MLIR_LIBRARY to the path of a libtilewright_mlir.so";

/// Identifies the build of a binary by its GNU build id, read from its first pages in microseconds; by its size and
/// modification time if it has none. @throws ToolchainNotFound when the file cannot be read.
std::string build_identity(const std::string& path);

/// Identifies the build of a binary that has no build id, independently of where it is installed: 16 hexadecimal digits
/// of a digest of its size and contents. In files of more than 1 MiB, only 256 evenly spaced pages are hashed, because
/// hashing the 150 MB of a toolkit takes as long as a compile. @throws ToolchainNotFound when the file cannot be read.
std::string content_identity(const std::string& path);

/// @throws ToolchainNotFound always, naming what is missing, each place searched, and `fix`: how to install it.
[[noreturn]] void throw_not_found(std::string_view what, const Search& search, std::string_view fix);

}  // namespace tilewright::compile
