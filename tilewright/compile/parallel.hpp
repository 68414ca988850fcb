// A parallel loop over indices.
#pragma once

#include <cstddef>
#include <functional>

namespace tilewright::compile {

/// Calls work(0) .. work(count - 1), each once, on up to `threads` threads, one of which is the calling thread. Returns
/// when all calls have ended. @throws the exception of the lowest index that failed. If the caller's interrupt check
/// throws, no further index is started, the other threads are interrupted, and its exception is thrown.
void for_each_index(std::size_t count, int threads, const std::function<void(std::size_t)>& work);

}  // namespace tilewright::compile
