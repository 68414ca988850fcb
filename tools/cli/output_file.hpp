// Files that the command writes: complete or not at all.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace tilewright::cli {

/// Writes beside `path` under another name and renames, so that a reader never sees a part, and a failure leaves no
/// file behind. @throws Error naming the path and the cause.
void write_output(const std::string& path, std::span<const std::byte> bytes);

/// @throws InvalidArgument when no file can be made at `path`, before any work is spent on its contents.
void check_output(const std::string& path);

}  // namespace tilewright::cli
