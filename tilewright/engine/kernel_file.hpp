// A kernel of the user's, from CUDA C++ or PTX, as the emulator runs it.
#pragma once

#include <string>
#include <vector>

#include "tilewright/base/target.hpp"
#include "tilewright/compile/compiler.hpp"

namespace tilewright::engine {

struct KernelFile {
  std::string path;  // in messages, and in the line information of `ptx`
  std::string text;  // CUDA C++ or PTX
  std::string ptx;   // names headers in user folders by the folder's name as the caller gave it
};

/// Reads a kernel. A file whose name ends in .ptx has PTX; any other one is compiled by NVRTC with line information,
/// for the target. Headers are searched in the folder of the file, in `include_folders`, and in the include folders of
/// the CUDA toolkit that NVRTC belongs to, which has CCCL in include/cccl. Headers of the host's C++ library are those
/// of libcu++ if CCCL is found (<limits> is <cuda/std/limits>, with its names in std); <stdint.h>, <limits.h>,
/// <float.h> and their C++ names are declared without CCCL, too; those whose functions NVRTC declares, such as <cmath>
/// and <stdio.h>, are empty. <cub/cub.cuh> has what device code can use: cub/block, cub/thread and cub/warp.
/// @throws InvalidArgument if a file cannot be read or the source is refused; CompileError; ToolchainNotFound
KernelFile read_kernel_file(const std::string& path, Target target, const compile::ToolchainOptions& toolchain,
                            const std::vector<std::string>& include_folders = {});

/// Compiles CUDA C++ in memory as read_kernel_file() does. `name` stands for the file in messages; headers are searched
/// in `include_folders`.
KernelFile compile_kernel_text(const std::string& text, const std::string& name, Target target,
                               const compile::ToolchainOptions& toolchain,
                               const std::vector<std::string>& include_folders = {});

}  // namespace tilewright::engine
