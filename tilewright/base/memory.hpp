// memcpy and memset for large sizes, interruptible between chunks.
#pragma once

#include <cstddef>

namespace tilewright {

/// memcpy that calls check_interruption() after each 32 MiB.
/// @throws the exception of check_interruption(); part of the bytes are copied then
void copy_bytes(void* to, const void* from, std::size_t bytes);
/// memset that calls check_interruption() as copy_bytes() does.
void fill_bytes(void* to, unsigned char value, std::size_t bytes);

}  // namespace tilewright
