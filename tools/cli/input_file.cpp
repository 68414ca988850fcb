#include "tools/cli/input_file.hpp"

#include "tilewright/base/error.hpp"
#include "tilewright/compile/file.hpp"

namespace tilewright::cli {

std::string read_input_file(const std::string& path, std::size_t max_bytes) {
  try {
    return compile::read_file(path, max_bytes);
  } catch (const Error& error) {
    throw InvalidArgument(error.what());
  }
}

}  // namespace tilewright::cli
