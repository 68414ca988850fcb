// Distributes the clusters of a grid over host threads.
#include "tilewright/emulator/grid.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "tilewright/base/interruption.hpp"
#include "tilewright/emulator/finding_log.hpp"
#include "tilewright/emulator/global_shadow.hpp"
#include "tilewright/emulator/instructions/float_environment.hpp"
#include "tilewright/emulator/written_tensor_maps.hpp"

namespace tilewright::emulator {
namespace {

/// Says in the log, from time to time, how far a launch is. Only the thread that launches does so: a log may wait for a
/// lock that this thread holds, such as that of Python's interpreter.
class Progress {
 public:
  Progress(double seconds, std::uint64_t clusters, std::uint64_t ctas_per_cluster)
      : interval_(seconds), clusters_(clusters), ctas_per_cluster_(ctas_per_cluster) {}

  /// May be called by any thread.
  void add(std::uint64_t finished_clusters) {
    const std::uint64_t finished = finished_.fetch_add(finished_clusters) + finished_clusters;
    if (interval_.count() <= 0 || std::this_thread::get_id() != thread_) return;
    const Clock::time_point now = Clock::now();
    if (now - said_ < interval_ || finished == clusters_) return;
    said_ = now;
    spdlog::info("the emulator has run {} of {} CTAs of a launch after {:.0f} s", finished * ctas_per_cluster_,
                 clusters_ * ctas_per_cluster_, std::chrono::duration<double>(now - start_).count());
  }

 private:
  using Clock = std::chrono::steady_clock;
  std::chrono::duration<double> interval_;
  std::uint64_t clusters_, ctas_per_cluster_;
  std::thread::id thread_ = std::this_thread::get_id();
  Clock::time_point start_ = Clock::now(), said_ = start_;
  std::atomic<std::uint64_t> finished_ = 0;
};

/// Called when a cluster ends early: if that is because of an interruption, the log gets what its CTAs have deferred.
void log_deferred_findings(const Launch& launch, const Cluster& cluster) {
  if (launch.log != nullptr && is_interrupted()) cluster.finish();
}

/// Hands out the clusters of a grid in order; without clusters, a cluster is one CTA. After a finding only the clusters
/// before it continue, so that the finding which is reported does not depend on the timing of host threads.
class ClusterQueue {
 public:
  explicit ClusterQueue(const Launch& launch)
      : launch_(launch),
        clusters_{launch.grid.x / launch.cluster.x, launch.grid.y / launch.cluster.y, launch.grid.z / launch.cluster.z},
        size_(std::uint64_t{clusters_.x} * clusters_.y * clusters_.z),
        cluster_ctas_(std::uint64_t{launch.cluster.x} * launch.cluster.y * launch.cluster.z),
        end_(size_),
        progress_(launch.options.progress_seconds, size_, cluster_ctas_) {}

  std::uint64_t size() const { return size_; }
  Progress& progress() { return progress_; }
  runtime::Dim3 clusterid(std::uint64_t index) const {
    const std::uint64_t rows = index / clusters_.x;
    return {static_cast<std::uint32_t>(index % clusters_.x), static_cast<std::uint32_t>(rows % clusters_.y),
            static_cast<std::uint32_t>(rows / clusters_.y)};
  }

  /// Runs clusters until none is left. @throws as check_interruption(); a finding is kept for rethrow() or, if the
  /// launch continues after findings, in its log
  void run_clusters() {
    while (run_until_failure()) {
    }
  }

  /// False when no cluster is left. True when one ended with a finding that was logged.
  bool run_until_failure() {
    const DefaultFloatEnvironment arithmetic;
    std::uint64_t index = 0;
    try {
      Cluster cluster(launch_);
      while ((index = next_.fetch_add(1)) < end_.load()) run(cluster, index);
    } catch (const EmulationFinding& finding) {
      if (launch_.log == nullptr) {
        fail(index);
      } else if (!launch_.log->add_fatal(finding.finding(), index, cluster_ctas_ > 1 ? "cluster" : "CTA")) {
        return true;
      } else {
        end_ = 0;
      }
    } catch (...) {
      if (is_interrupted()) throw;
      fail(index);
    }
    return false;
  }

  void rethrow() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  /// Runs a cluster to its end, or until a cluster before it has failed.
  void run(Cluster& cluster, std::uint64_t index) {
    cluster.start(clusterid(index));
    try {
      while (!cluster.finished()) {
        if (end_.load() <= index) return;
        if (!cluster.advance()) cluster.report_deadlock();
      }
    } catch (...) {
      log_deferred_findings(launch_, cluster);
      throw;
    }
    cluster.finish();
    progress_.add(1);
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
  std::uint64_t cluster_ctas_ = 1;
  std::atomic<std::uint64_t> next_ = 0;
  std::atomic<std::uint64_t> end_;  // clusters from here on are not run
  std::mutex mutex_;
  std::exception_ptr failure_;
  Progress progress_;
};

/// Runs all clusters in turn on this thread. Each runs as far as it can before the next one does, so that a missing
/// wait for another CTA shows as an access that comes too early. If no cluster makes progress and no register changes
/// for many rounds, that is a deadlock. In each of these rounds a warp polls once, and an unrolled loop may poll
/// several times before it counts.
void run_cooperatively(Launch launch, ClusterQueue& grid) {
  constexpr int kMaxIdleRounds = 32;
  const DefaultFloatEnvironment arithmetic;
  GlobalShadow shadow(launch.options.check_races, launch.unwritten != nullptr, launch.options.check_warps);
  if (launch.options.check_races) launch.global_shadow = &shadow;
  shadow.record_early(launch.early);
  std::vector<std::unique_ptr<Cluster>> clusters;
  for (std::uint64_t index = 0; index < grid.size(); ++index) {
    check_interruption();
    clusters.push_back(std::make_unique<Cluster>(launch));
    clusters.back()->start(grid.clusterid(index));
  }
  const auto advance = [&] {
    bool progress = false;
    for (const auto& cluster : clusters) {
      while (cluster->advance() && !cluster->finished()) progress = true;
      progress |= cluster->finished();
    }
    return progress;
  };
  for (int idle_rounds = 0; !clusters.empty();) {
    bool progress = false;
    try {
      progress = advance();
    } catch (...) {
      for (const auto& cluster : clusters) log_deferred_findings(launch, *cluster);
      throw;
    }
    const std::size_t finished = std::erase_if(clusters, [](const auto& cluster) {
      if (cluster->finished()) cluster->finish();
      return cluster->finished();
    });
    grid.progress().add(finished);
    progress |= finished > 0;
    if (!progress) {
      for (const auto& cluster : clusters) progress |= cluster->registers_changed();
    }
    idle_rounds = progress ? 0 : idle_rounds + 1;
    if (idle_rounds > kMaxIdleRounds) clusters.front()->report_deadlock();
  }
  if (launch.unwritten != nullptr) shadow.remove_written(*launch.unwritten);
  if (launch.footprint != nullptr) shadow.add_to(*launch.footprint);
  if (launch.early != nullptr) launch.early->normalise();
}

}  // namespace

void run_grid(Launch launch) {
  const LongWork work;
  WrittenTensorMaps tensor_maps;
  launch.tensor_maps = &tensor_maps;
  ClusterQueue grid(launch);
  if (launch.cooperative) {
    try {
      return run_cooperatively(launch, grid);
    } catch (const EmulationFinding& finding) {
      if (launch.log == nullptr) throw;
      static_cast<void>(launch.log->add_fatal(finding.finding(), 0, "launch"));
      return;
    }
  }
  GlobalShadow shadow(launch.options.check_races, launch.options.check_uninitialised, launch.options.check_warps);
  if (launch.options.check_global) {
    launch.global_shadow = &shadow;
    shadow.record_early(launch.early);
    while (grid.run_until_failure()) {
    }
    if (launch.unwritten != nullptr) shadow.remove_written(*launch.unwritten);
    if (launch.footprint != nullptr) shadow.add_to(*launch.footprint);
    if (launch.early != nullptr) launch.early->normalise();
    return grid.rethrow();
  }
  const int requested =
      launch.options.threads > 0 ? launch.options.threads : static_cast<int>(std::thread::hardware_concurrency());
  const auto threads = static_cast<std::size_t>(std::clamp<std::uint64_t>(
      static_cast<std::uint64_t>(std::max(requested, 1)), 1, std::max<std::uint64_t>(grid.size(), 1)));
  work_together(threads - 1, [&] { grid.run_clusters(); });
  grid.rethrow();
}

}  // namespace tilewright::emulator
