// Dumps a source that failed to compile to disk for inspection, and throws the CompileError that names the file.
#pragma once

#include <string>
#include <string_view>

#include "tilewright/compile/source.hpp"

namespace tilewright::compile {

/// Writes the source text to a new file of mode 0600 in `dump_dir`, which is created if missing; nothing in it is ever
/// deleted. If `dump_dir` is empty, the file goes to the folder `tilewright-failed-UID` of mode 0700 in
/// `temporary_dir`, which keeps the newest 32 sources; if that name is in use for anything else, to a new folder of
/// that mode whose name begins the same. Returns the path of the file. When the file cannot be written, returns the
/// reason in parentheses instead of throwing: a full disk must not hide the compiler's log.
std::string dump_source(const Source& source, const std::string& dump_dir, const std::string& temporary_dir);

/// @throws CompileError always, with the source's name, `why`, the path in `dumped`, and the first 16 KiB of `log`.
[[noreturn]] void throw_compile_error(const Source& source, std::string_view why, std::string_view dumped,
                                      std::string_view log);

}  // namespace tilewright::compile
