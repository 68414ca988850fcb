// A source that did not compile, kept on disk so that a person can look at it, and the exception that says so.
#pragma once

#include <string>
#include <string_view>

#include "tilewright/compile/source.hpp"

namespace tilewright::compile {

/// Writes the text to a new file of mode 0600 in `dump_dir`, made if missing, where nothing is ever deleted. Without
/// one it goes to `tilewright-failed-UID` in `temporary_dir`, a folder that only this user may enter and that keeps the
/// newest 32 sources; where that name is taken by something else, to a new folder of which the same holds.
/// Gives where the text is, or in parentheses why not: a full disk must not hide the compiler's log.
std::string dump_source(const Source& source, const std::string& dump_dir, const std::string& temporary_dir);

/// @throws CompileError always: what failed, where the source is, and the log, cut to 16 KiB.
[[noreturn]] void throw_compile_error(const Source& source, std::string_view why, std::string_view dumped,
                                      std::string_view log);

}  // namespace tilewright::compile
