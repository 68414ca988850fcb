// Files that the command line names.
#pragma once

#include <cstddef>
#include <string>

namespace tilewright::cli {

/// The contents of a regular file. @throws InvalidArgument with the path when it cannot be read or has more than
/// `max_bytes`: a wrong name is bad input, not a failure of the environment
std::string read_input_file(const std::string& path, std::size_t max_bytes);

}  // namespace tilewright::cli
