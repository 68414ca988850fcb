// Hands the CTAs of a grid to host threads.
#include "tilewright/emulator/machine.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace tilewright::emulator {
namespace {

/// CTAs handed out in order. After a failure only those before it still run: which finding is reported does not depend
/// on the host's threads.
class Grid {
 public:
  explicit Grid(const Launch& launch)
      : launch_(launch), size_(std::uint64_t{launch.grid.x} * launch.grid.y * launch.grid.z), end_(size_) {}

  std::uint64_t size() const { return size_; }

  void work() noexcept {
    std::uint64_t index = 0;
    try {
      Cta cta(launch_);
      while ((index = next_.fetch_add(1)) < end_.load()) cta.run(index_of(index));
    } catch (...) {
      fail(index);
    }
  }

  void rethrow() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  runtime::Dim3 index_of(std::uint64_t index) const {
    const std::uint64_t rows = index / launch_.grid.x;
    return {static_cast<std::uint32_t>(index % launch_.grid.x), static_cast<std::uint32_t>(rows % launch_.grid.y),
            static_cast<std::uint32_t>(rows / launch_.grid.y)};
  }

  void fail(std::uint64_t index) {
    const std::lock_guard lock(mutex_);
    if (failure_ && index >= end_) return;
    failure_ = std::current_exception();
    end_ = index;
  }

  const Launch& launch_;
  std::uint64_t size_ = 0;
  std::atomic<std::uint64_t> next_ = 0;
  std::atomic<std::uint64_t> end_;
  std::mutex mutex_;
  std::exception_ptr failure_;
};

}  // namespace

void run_grid(const Launch& launch) {
  Grid grid(launch);
  const int wanted =
      launch.options.threads > 0 ? launch.options.threads : static_cast<int>(std::thread::hardware_concurrency());
  const auto threads = static_cast<std::size_t>(std::clamp<std::uint64_t>(
      static_cast<std::uint64_t>(std::max(wanted, 1)), 1, std::max<std::uint64_t>(grid.size(), 1)));
  {
    std::vector<std::jthread> helpers;
    for (std::size_t i = 1; i < threads; ++i) helpers.emplace_back([&] { grid.work(); });
    grid.work();
  }
  grid.rethrow();
}

}  // namespace tilewright::emulator
