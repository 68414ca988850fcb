// The folder a cache lives in: which one, and whether it is safe to trust what lies there.
#pragma once

#include <string>

#include "tilewright/base/support.hpp"
#include "tilewright/compile/environment.hpp"
#include "tilewright/compile/file.hpp"

namespace tilewright::cache {

/// The first that is named: `explicit_root`, TILEWRIGHT_CACHE_DIR, $XDG_CACHE_HOME/tilewright, ~/.cache/tilewright.
/// Empty when there is none: no HOME, or HOME=/. Never a shared folder such as /tmp/tilewright, and no private
/// temporary one either: no other process could know it, so it would serve nothing that memory does not.
std::string choose_root(const std::string& explicit_root, const compile::Environment& environment);

/// Opens the folder, made with mode 0700 if missing. What is in it will reach the driver, so it is refused, with
/// nothing written, when somebody else could have put it there: a symlink, not owned by this user, writable by group or
/// others, or below a folder that anybody may write to and that is not sticky.
Result<compile::UniqueFd> open_root(const std::string& path);

}  // namespace tilewright::cache
