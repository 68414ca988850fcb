// Finds the PTX in a fat binary, which nvcc embeds in programs.
#pragma once

#include <string>

#include "tilewright/base/target.hpp"

namespace tilewright::cuda_runtime {

/// Whether memory begins with a fat binary.
bool is_fat_binary(const void* image);

/// The PTX of the newest architecture that runs on the target, decompressed. `image` is a fat binary.
/// @throws InvalidArgument that says which code the fat binary has instead
std::string ptx_for(const void* image, Target target);

/// The PTX of a program whose files were compiled separately (nvcc -rdc=true) and are to be linked: that of each of
/// the fat binaries, which end with a null pointer, one after the other.
/// @throws InvalidArgument
std::string linked_ptx_for(const void* const* parts, Target target);

/// The bytes of an LZ4 block. @throws InvalidArgument unless it is valid and has `size` bytes
std::string decompress_lz4(std::string_view block, std::size_t size);

}  // namespace tilewright::cuda_runtime
