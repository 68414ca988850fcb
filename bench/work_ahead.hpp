// Does the work that later items need while the caller is busy with earlier ones: compiles kernels during measurements.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace tilewright::bench {

/// Threads that work through items in their order. Exceptions are dropped: the caller, who needs the result of the
/// work, meets the same error itself.
class WorkAhead {
 public:
  using Work = std::function<void()>;

  /// `works_of(item)` returns the parts of an item's work, which run in parallel. It is called for one item after
  /// another, from other threads.
  WorkAhead(std::size_t items, int threads, std::function<std::vector<Work>(std::size_t item)> works_of);
  WorkAhead(const WorkAhead&) = delete;
  WorkAhead& operator=(const WorkAhead&) = delete;
  /// Waits for the parts that are running and drops the others.
  ~WorkAhead();

  /// Returns when the work of the item has ended.
  void wait_for(std::size_t item);

 private:
  struct Part {
    std::size_t item;
    Work work;
  };

  void run();
  /// Fills parts_ with those of the next item. @pre `lock` holds mutex_, and is released meanwhile
  void add_item(std::unique_lock<std::mutex>& lock);
  void end_part(std::size_t item);

  std::function<std::vector<Work>(std::size_t)> works_of_;
  std::mutex mutex_;  // guards the members below
  std::condition_variable changed_;
  std::deque<Part> parts_;
  std::vector<std::size_t> open_;  // parts of each item that have not ended, and one more until all parts are known
  std::size_t next_ = 0;           // the item whose parts are added next
  bool is_adding_ = false;
  bool stops_ = false;
  std::vector<std::jthread> threads_;
};

}  // namespace tilewright::bench
