// The folder a cache lives in: which one, whether it is a cache, and whether it is safe to trust what lies there.
#pragma once

#include <string>
#include <vector>

#include "tilewright/base/support.hpp"
#include "tilewright/compile/environment.hpp"
#include "tilewright/compile/file.hpp"

namespace tilewright::cache {

/// The first that is named: `explicit_root`, TILEWRIGHT_CACHE_DIR, $XDG_CACHE_HOME/tilewright, ~/.cache/tilewright.
/// Empty when there is none: no HOME, or HOME=/. Never a shared folder such as /tmp/tilewright, and no private
/// temporary one either: no other process could know it, so it would serve nothing that memory does not.
std::string choose_root(const std::string& explicit_root, const compile::Environment& environment);

/// Opens the folder, made with mode 0700 if missing. What is in it will reach the driver, so it is refused, with
/// nothing written, when somebody else could have put it there: a symbolic link, not owned by this user, writable by
/// group or others, or below a folder in which another user may replace it. A cache also deletes what is in it: a
/// folder that is not empty must have the marker that this function leaves in an empty one, beside a CACHEDIR.TAG
/// (bford.info/cachedir) for backup programs.
Result<compile::UniqueFd> open_root(const std::string& path);

/// Opens a folder whose kernels are read and never changed: a part of a container's image, or a network folder. It may
/// belong to root too, and must have the marker.
Result<compile::UniqueFd> open_shared_root(const std::string& path);

}  // namespace tilewright::cache
