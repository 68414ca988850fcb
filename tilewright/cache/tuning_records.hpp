// What was measured, kept for later processes: per device and problem the kernel that won, and the kernels that broke a
// device. One SQLite file, tuning_records.db, in the cache's folder.
//
// Many processes may use it at once: every call is one transaction on a connection of its own, so that nothing is held
// open over a fork. A record only ever chooses among kernels that are found anyway, so a wrong one costs time and never
// a result: nothing is synced, and a file that is proven to be damaged is set aside as tuning_records.db.bad and begun
// anew. A file of a newer build, of another program, or with more in it than plain tables is left alone and not used.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tilewright/base/support.hpp"
#include "tilewright/cache/file_lock.hpp"

namespace tilewright::cache {

class Database;

/// What a choice was measured for. It counts where all of it is equal.
struct TuningKey {
  std::string device;   // model, size, architecture, driver
  std::string library;  // library_identity()
  std::string problem;  // everything that selects code, and the extents
  std::string kernels;  // which kernels there were to choose from
  auto operator<=>(const TuningKey&) const = default;
};

struct TuningRecord {
  TuningKey key;
  std::string winner;           // the kernel's name
  double median_us = 0.0;       // its time
  std::string report;           // JSON: the times and fates of all
  std::int64_t measured_s = 0;  // since 1970

  bool operator==(const TuningRecord&) const = default;
};

/// A kernel that broke a device, or that a process tried and did not survive.
struct KernelFault {
  std::string device;
  std::string library;
  std::string source;  // digest of its text, hexadecimal
  std::string kernel;
  std::string problem;
  std::string reason;
  std::int64_t noted_s = 0;  // since 1970
  bool is_trial = false;     // noted before the attempt; taken back when the kernel came through

  bool operator==(const KernelFault&) const = default;
};

/// Thread-safe. Nothing here throws for what is wrong with the disk; a refusal names the folder and the cause. What the
/// thread's interrupt check throws passes.
class TuningRecords {
 public:
  /// `root`: Store::root(); empty: no disk, reads give nothing and writes are refused.
  explicit TuningRecords(std::string root, std::int64_t max_records = 4096);

  const std::string& root() const { return root_; }

  /// Excludes other processes and threads that tune on such a device; waits at most `timeout_s`. While it is held, a
  /// trial found in faults() belongs to a process that is gone.
  Result<FileLock> lock(const std::string& device, double timeout_s) const;

  /// The choices for one device and library, reports left out.
  Result<std::vector<TuningRecord>> choices(const std::string& device, const std::string& library) const;
  /// All of them, of every device, the latest first.
  Result<std::vector<TuningRecord>> list() const;
  Result<std::vector<KernelFault>> faults() const;

  /// Replaces a record of equal key. Beyond max_records the oldest go.
  Support remember(const TuningRecord& record) const;
  /// Replaces what was noted of the same device, library and source.
  Support note(const KernelFault& fault) const;
  Support take_back(const KernelFault& fault) const;

  /// Deletes the choices and faults of one problem on one device, or all where both are empty. How many there were.
  Result<std::int64_t> forget(const std::string& device, const std::string& problem) const;

 private:
  using Work = std::function<void(const Database&)>;
  Support read(const Work& work) const;
  Support write(const Work& work) const;
  Support attempt(const Work& work, bool writes) const;
  Database open(int flags, int busy_ms) const;
  Support check_file() const;
  bool set_aside() const;

  std::string root_;
  std::string path_;
  std::int64_t max_records_;
};

}  // namespace tilewright::cache
