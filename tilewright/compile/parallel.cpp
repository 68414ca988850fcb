#include "tilewright/compile/parallel.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <vector>

#include "tilewright/base/interruption.hpp"

namespace tilewright::compile {

void for_each_index(std::size_t count, int threads, const std::function<void(std::size_t)>& work) {
  if (count == 0) return;
  std::vector<std::exception_ptr> failures(count);
  std::atomic<std::size_t> next{0};
  const std::size_t workers = std::min(count, static_cast<std::size_t>(std::max(threads, 1)));
  work_together(workers - 1, [&] {
    for (std::size_t index = next++; index < count; index = next++) {
      try {
        work(index);
      } catch (...) {
        if (is_interrupted()) throw;
        failures[index] = std::current_exception();
      }
    }
  });
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

}  // namespace tilewright::compile
