#include "tilewright/compile/failed_source.hpp"

#include <stdlib.h>

#include <cerrno>
#include <cstring>

#include "tilewright/base/error.hpp"
#include "tilewright/compile/file.hpp"

namespace tilewright::compile {

std::string dump_source(const Source& source, const std::string& dump_dir, const std::string& temporary_dir) {
  try {
    const std::string folder =
        dump_dir.empty() ? make_private_folder(temporary_dir) : (make_folders(dump_dir), dump_dir);
    constexpr std::string_view kSuffix = ".cu";
    std::string path = folder + "/" + source.name + "-XXXXXX" + std::string(kSuffix);
    const UniqueFd file(::mkostemps(path.data(), static_cast<int>(kSuffix.size()), O_CLOEXEC));
    if (!file) return fmt::format("(not dumped: cannot create {}: {})", path, std::strerror(errno));
    write_all(file.get(), source.text, path);
    return path;
  } catch (const Error& error) {
    return fmt::format("(not dumped: {})", error.what());
  }
}

void throw_compile_error(const Source& source, std::string_view why, std::string_view dumped, std::string_view log) {
  constexpr std::size_t kMaxLogBytes = std::size_t{16} << 10;
  const std::string_view shown = log.substr(0, kMaxLogBytes);
  const char* cut = shown.size() < log.size() ? "\n(log cut)" : "";
  throw CompileError(fmt::format("cannot compile '{}' for {}: {}\nsource: {}\nlog:\n{}{}", source.name,
                                 source.target.name(), why, dumped, shown, cut));
}

}  // namespace tilewright::compile
