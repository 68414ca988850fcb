// memcpy and memset of sizes that take long: in pieces, between which the work may be interrupted.
#pragma once

#include <cstddef>

namespace tilewright {

/// Calls check_interruption() after each 32 MiB. @throws what that throws; a part is copied then
void copy_bytes(void* to, const void* from, std::size_t bytes);
/// As copy_bytes().
void fill_bytes(void* to, unsigned char value, std::size_t bytes);

}  // namespace tilewright
