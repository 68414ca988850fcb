// Hands the clusters of a grid to host threads.
#include "tilewright/emulator/machine.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "tilewright/base/interruption.hpp"
#include "tilewright/emulator/global_shadow.hpp"

namespace tilewright::emulator {
namespace {

/// Clusters handed out in order; one is one CTA where the launch has none. After a failure only those before it go on:
/// which finding is reported does not depend on the host's threads.
class Grid {
 public:
  explicit Grid(const Launch& launch)
      : launch_(launch),
        clusters_{launch.grid.x / launch.cluster.x, launch.grid.y / launch.cluster.y, launch.grid.z / launch.cluster.z},
        size_(std::uint64_t{clusters_.x} * clusters_.y * clusters_.z),
        end_(size_) {}

  std::uint64_t size() const { return size_; }
  runtime::Dim3 index_of(std::uint64_t index) const {
    const std::uint64_t rows = index / clusters_.x;
    return {static_cast<std::uint32_t>(index % clusters_.x), static_cast<std::uint32_t>(rows % clusters_.y),
            static_cast<std::uint32_t>(rows / clusters_.y)};
  }

  /// @throws what interrupted this thread's work; everything else is a failure of the cluster
  void work() {
    std::uint64_t index = 0;
    try {
      Cluster cluster(launch_);
      while ((index = next_.fetch_add(1)) < end_.load()) run(cluster, index);
    } catch (...) {
      if (is_interrupted()) throw;
      fail(index);
    }
  }

  void rethrow() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  /// To its end, or until a cluster before it has failed.
  void run(Cluster& cluster, std::uint64_t index) const {
    cluster.start(index_of(index));
    while (!cluster.finished()) {
      if (end_.load() <= index) return;
      if (!cluster.advance()) cluster.fail_stuck();
    }
    cluster.finish();
  }

  void fail(std::uint64_t index) {
    const std::lock_guard lock(mutex_);
    if (failure_ && index >= end_) return;
    failure_ = std::current_exception();
    end_ = index;
  }

  const Launch& launch_;
  runtime::Dim3 clusters_;
  std::uint64_t size_ = 0;
  std::atomic<std::uint64_t> next_ = 0;
  std::atomic<std::uint64_t> end_;
  std::mutex mutex_;
  std::exception_ptr failure_;
};

/// All clusters in turns on this thread, each as far as it gets alone: what does not wait for the others comes too
/// early. They end, or none can go on: not one of them in a few rounds.
void run_cooperatively(Launch launch, const Grid& grid) {
  constexpr int kPatience = 4;  // rounds: what one did last may let another go on
  GlobalShadow shadow;
  if (launch.options.check_races) launch.global_shadow = &shadow;
  std::vector<std::unique_ptr<Cluster>> clusters;
  for (std::uint64_t index = 0; index < grid.size(); ++index) {
    check_interruption();
    clusters.push_back(std::make_unique<Cluster>(launch));
    clusters.back()->start(grid.index_of(index));
  }
  for (int vain_rounds = 0; !clusters.empty();) {
    bool any = false;
    for (const auto& cluster : clusters) {
      while (cluster->advance() && !cluster->finished()) any = true;
      any |= cluster->finished();
    }
    any |= std::erase_if(clusters, [](const auto& cluster) {
             if (cluster->finished()) cluster->finish();
             return cluster->finished();
           }) > 0;
    vain_rounds = any ? 0 : vain_rounds + 1;
    if (vain_rounds > kPatience) clusters.front()->fail_stuck();
  }
}

}  // namespace

void run_grid(const Launch& launch) {
  const LongWork work;
  Grid grid(launch);
  if (launch.cooperative) return run_cooperatively(launch, grid);
  const int wanted =
      launch.options.threads > 0 ? launch.options.threads : static_cast<int>(std::thread::hardware_concurrency());
  const auto threads = static_cast<std::size_t>(std::clamp<std::uint64_t>(
      static_cast<std::uint64_t>(std::max(wanted, 1)), 1, std::max<std::uint64_t>(grid.size(), 1)));
  work_together(threads - 1, [&] { grid.work(); });
  grid.rethrow();
}

}  // namespace tilewright::emulator
