// Files that the command writes: complete or not at all, and never twice the same one.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace tilewright::cli {

/// A file and the option that names it: {"--output aux", "x.npy"}.
struct NamedFile {
  std::string option;
  std::string path;
};

/// Replaces the file at `path`, unless the program is to end. A reader never sees a part of it, and a failure leaves
/// nothing behind. @throws Error naming the path and the cause
void write_output(const std::string& path, std::span<const std::byte> bytes);

/// @throws InvalidArgument when no file can be made at `path`, before any work is spent on its contents.
void check_output(const std::string& path);

/// check_output() of each. @throws InvalidArgument when two outputs are one file, or an output is an input: by another
/// spelling of the path, a symbolic link or a hard link too
void check_outputs(const std::vector<NamedFile>& outputs, const std::vector<NamedFile>& inputs);

}  // namespace tilewright::cli
