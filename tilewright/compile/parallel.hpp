// The same work for many indices on a few threads.
#pragma once

#include <cstddef>
#include <functional>

namespace tilewright::compile {

/// Calls work(0) .. work(count - 1), each once, on up to `threads` threads (at least one; the caller's if one is
/// enough). Returns when all have ended. @throws what the lowest index that threw threw. When the caller's interrupt
/// check throws, no further index is begun, the work under way on other threads is interrupted, and that is thrown.
void for_each_index(std::size_t count, int threads, const std::function<void(std::size_t)>& work);

}  // namespace tilewright::compile
