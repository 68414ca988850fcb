// A source that did not compile, kept on disk so that a person can look at it, and the exception that says so.
#pragma once

#include <string>
#include <string_view>

#include "tilewright/compile/source.hpp"

namespace tilewright::compile {

/// Writes the text to a new file of mode 0600 in `dump_dir`, made if missing; empty: a new private folder in
/// `temporary_dir`. Gives where, or in parentheses why not: a full disk must not hide the compiler's log.
std::string dump_source(const Source& source, const std::string& dump_dir, const std::string& temporary_dir);

/// @throws CompileError always: what failed, where the source is, and the log, cut to 16 KiB.
[[noreturn]] void throw_compile_error(const Source& source, std::string_view why, std::string_view dumped,
                                      std::string_view log);

}  // namespace tilewright::compile
