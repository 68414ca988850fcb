// Output files. Each is written completely or not at all, and no two outputs are the same file.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace tilewright::cli {

/// A file and the option that names it: {"--epilogue-output aux", "x.npy"}.
struct NamedFile {
  std::string option;
  std::string path;
};

/// Replaces the file at `path` atomically. A failure leaves the old file as it was. @throws Error, naming the path and
/// the cause; Interrupted, before anything is written, if the command was interrupted
void write_output(const std::string& path, std::span<const std::byte> bytes);

/// Checks that a file can be created at `path`; called before the work that computes its contents.
/// @throws InvalidArgument if it cannot
void check_output(const std::string& path);

/// Calls check_output() for each output. @throws InvalidArgument if two outputs are the same file or an output is also
/// an input, including by another spelling of the path, a symbolic link or a hard link
void check_outputs(const std::vector<NamedFile>& outputs, const std::vector<NamedFile>& inputs);

}  // namespace tilewright::cli
