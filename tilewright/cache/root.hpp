// The root folder of a cache: chooses it, and checks that it is a cache and that its contents can be trusted.
#pragma once

#include <string>
#include <vector>

#include "tilewright/base/support.hpp"
#include "tilewright/compile/environment.hpp"
#include "tilewright/compile/file.hpp"

namespace tilewright::cache {

/// The first of these that is set: `explicit_root`, TILEWRIGHT_CACHE_DIR, $XDG_CACHE_HOME/tilewright,
/// ~/.cache/tilewright. Empty when none is: HOME is unset or "/". There is no fallback to a shared folder such as
/// /tmp/tilewright, which is unsafe, or to a private temporary folder, which no other process could find.
std::string choose_root(const std::string& explicit_root, const compile::Environment& environment);

/// Opens the folder, which is created with mode 0700 if missing. Its contents will be loaded by the driver, so the
/// folder is refused, with nothing written, when another user could have put them there: it is a symbolic link, does
/// not belong to this user, is writable by group or others, or lies below a folder in which another user may replace
/// it. A cache also deletes files, so a folder that is not empty must have the marker file `tilewright-cache`, which
/// this function writes to empty folders together with a CACHEDIR.TAG (bford.info/cachedir) for backup programs.
Result<compile::UniqueFd> open_root(const std::string& path);

/// Opens a folder whose entries are only read: part of a container image, or a network folder. It may belong to root
/// instead of this user, and must have the marker file.
Result<compile::UniqueFd> open_shared_root(const std::string& path);

}  // namespace tilewright::cache
