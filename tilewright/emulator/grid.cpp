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
  std::uint64_t cluster_ctas() const { return cluster_ctas_; }
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

/// Runs the clusters of an ordinary launch on one thread, one after the other. One whose threads poll global memory is
/// left for the next ones, as on a device with free multiprocessors: it may wait for them.
class OrdinaryGrid {
 public:
  OrdinaryGrid(const Launch& launch, ClusterQueue& grid)
      : launch_(launch),
        grid_(grid),
        resident_(std::max<std::uint64_t>(1, launch.resident_ctas / grid.cluster_ctas())) {}

  /// @throws EmulationFinding if the launch does not continue after findings; and as check_interruption()
  void run() {
    const DefaultFloatEnvironment arithmetic;
    try {
      while (!has_ended_ && (start_next() || !running_.empty())) run_in_turn();
    } catch (...) {
      for (const auto& cluster : running_) log_deferred_findings(launch_, *cluster);
      throw;
    }
  }

 private:
  enum class Outcome : std::uint8_t { finished, makes_progress, waits };

  /// Starts the next cluster if all that run wait for others. False if there is none.
  bool start_next() {
    if (!all_wait_ || next_ == grid_.size() || running_.size() >= resident_) return false;
    running_.push_back(spare_ ? std::move(spare_) : std::make_unique<Cluster>(launch_));
    running_.back()->start(grid_.clusterid(next_++));
    idle_rounds_ = 0;
    return true;
  }

  /// Runs each cluster as far as it can.
  void run_in_turn() {
    bool any_finished = false, progress = false;
    for (std::size_t i = 0; i < running_.size() && !has_ended_;) {
      const Outcome outcome = run_logged(*running_[i]);
      progress |= outcome != Outcome::waits;
      if (outcome != Outcome::finished) {
        ++i;
        continue;
      }
      any_finished = true;
      spare_ = std::move(running_[i]);
      running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(i));
    }
    all_wait_ = !any_finished || running_.empty();
    const bool may_start = next_ < grid_.size() && running_.size() < resident_;
    idle_rounds_ = progress || may_start ? 0 : idle_rounds_ + 1;
    if (idle_rounds_ > kMaxIdleRounds && !has_ended_) end_in_deadlock();
  }

  /// Runs a cluster to its end, to a finding that ends it, or until it waits for others.
  Outcome run_logged(Cluster& cluster) {
    try {
      return run(cluster);
    } catch (const EmulationFinding& finding) {
      if (launch_.log == nullptr) throw;
      has_ended_ = launch_.log->add_fatal(finding.finding(), cluster.linear_index(),
                                          grid_.cluster_ctas() > 1 ? "cluster" : "CTA");
      return Outcome::finished;
    }
  }

  Outcome run(Cluster& cluster) {
    const std::uint64_t spells = cluster.idle_spells();
    for (auto outcome = Outcome::waits; !cluster.finished(); outcome = Outcome::makes_progress) {
      if (!cluster.advance()) {
        if (!cluster.polls_global()) cluster.report_deadlock();
        return outcome;
      }
      const bool has_others = running_.size() > 1 || next_ < grid_.size();
      if (has_others && cluster.idle_spells() != spells && cluster.polls_global()) return Outcome::makes_progress;
    }
    cluster.finish();
    grid_.progress().add(1);
    return Outcome::finished;
  }

  /// All clusters that run wait for each other, or for some that cannot start.
  void end_in_deadlock() {
    std::vector<std::string> notes;
    if (running_.size() > 1) notes.push_back(fmt::format("{} more {}s wait", running_.size() - 1, unit()));
    if (next_ < grid_.size()) {
      notes.push_back(fmt::format("{}s {}..{} have not started, as the device runs {} at a time", unit(), next_,
                                  grid_.size() - 1, resident_));
    }
    for (const auto& cluster : running_) cluster->finish();
    try {
      running_.front()->report_deadlock(std::move(notes));
    } catch (const EmulationFinding& finding) {
      if (launch_.log == nullptr) throw;
      static_cast<void>(launch_.log->add_fatal(finding.finding(), running_.front()->linear_index(), "launch"));
      has_ended_ = true;
    }
  }

  std::string_view unit() const { return grid_.cluster_ctas() > 1 ? "cluster" : "CTA"; }

  /// Rounds in which no cluster makes progress before that is a deadlock: see run_cooperatively().
  static constexpr int kMaxIdleRounds = 32;

  const Launch& launch_;
  ClusterQueue& grid_;
  std::uint64_t resident_ = 1;  // clusters that run at a time
  std::uint64_t next_ = 0;
  std::vector<std::unique_ptr<Cluster>> running_;  // in the order in which they have started
  std::unique_ptr<Cluster> spare_;                 // of one that has ended, to be started again
  bool all_wait_ = true;
  bool has_ended_ = false;
  int idle_rounds_ = 0;
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
    OrdinaryGrid(launch, grid).run();
    if (launch.unwritten != nullptr) shadow.remove_written(*launch.unwritten);
    if (launch.footprint != nullptr) shadow.add_to(*launch.footprint);
    if (launch.early != nullptr) launch.early->normalise();
    return;
  }
  const int requested =
      launch.options.threads > 0 ? launch.options.threads : static_cast<int>(std::thread::hardware_concurrency());
  const auto threads = static_cast<std::size_t>(std::clamp<std::uint64_t>(
      static_cast<std::uint64_t>(std::max(requested, 1)), 1, std::max<std::uint64_t>(grid.size(), 1)));
  work_together(threads - 1, [&] { grid.run_clusters(); });
  grid.rethrow();
}

}  // namespace tilewright::emulator
