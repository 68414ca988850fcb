// The results of tuning, kept for later processes: the fastest kernel for each device and problem, and the kernels that
// caused a fault on a device. They are stored in one SQLite file, tuning_records.db, in the cache's root folder.
//
// Many processes may use the file at the same time: every call is one transaction on its own connection, so that no
// connection is open across a fork. A record only chooses among kernels that are found anyway, so a wrong record costs
// time but never correctness. Therefore nothing is synced, and a file that is certainly damaged is renamed to
// tuning_records.db.bad and replaced. A file of a newer format, of another program, or with a schema of more than plain
// tables is neither used nor changed.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tilewright/base/support.hpp"
#include "tilewright/cache/file_lock.hpp"

namespace tilewright::cache {

class Database;

/// Identifies a choice among kernels. A record is used only if all members are equal.
struct TuningKey {
  std::string device;   // model, number of SMs, architecture, driver
  std::string library;  // library_identity()
  std::string problem;  // everything that selects code, and the extents
  std::string kernels;  // identifies the set of candidate kernels
  auto operator<=>(const TuningKey&) const = default;
};

struct TuningRecord {
  TuningKey key;
  std::string winner;           // name of the fastest kernel
  double median_us = 0.0;       // its median time
  std::string report;           // JSON: the time of each candidate, or why it was discarded
  std::int64_t measured_s = 0;  // since 1970

  bool operator==(const TuningRecord&) const = default;
};

/// A kernel that caused a fault on a device, or that was running when its process died.
struct KernelFault {
  std::string device;
  std::string library;
  std::string source;  // compile::source_digest() of the kernel, hexadecimal
  std::string kernel;
  std::string problem;
  std::string reason;
  std::int64_t noted_s = 0;  // since 1970
  bool is_trial = false;     // written before the kernel's first run and removed when that run succeeds

  bool operator==(const KernelFault&) const = default;
};

/// Thread-safe. Failures of the disk are refusals that name the folder and the cause, not exceptions. Every member that
/// accesses the disk throws whatever check_interruption() throws.
class TuningRecords {
 public:
  /// `root`: Store::root(). If it is empty, there is no disk: reads return nothing and writes are refused.
  explicit TuningRecords(std::string root, std::int64_t max_records = 4096);

  const std::string& root() const { return root_; }

  /// Locks tuning on that kind of device against other processes and threads; waits at most `timeout_s` seconds. While
  /// the lock is held, a trial found in faults() belongs to a process that died.
  Result<FileLock> lock(const std::string& device, double timeout_s) const;

  /// The records of one device and library, without their reports.
  Result<std::vector<TuningRecord>> choices(const std::string& device, const std::string& library) const;
  /// The records of all devices and libraries, newest first.
  Result<std::vector<TuningRecord>> list() const;
  /// The faults of all devices and libraries, newest first.
  Result<std::vector<KernelFault>> faults() const;

  /// Adds a record, replacing one of equal key. Beyond max_records, the oldest records are deleted.
  Support remember(const TuningRecord& record) const;
  /// Adds a fault, replacing one of the same device, library and source.
  Support note(const KernelFault& fault) const;
  /// Removes the fault of the same device, library and source.
  Support take_back(const KernelFault& fault) const;

  /// Deletes the records and faults of one problem on one device, or all of them if both arguments are empty. Returns
  /// the number of rows deleted.
  Result<std::int64_t> forget(const std::string& device, const std::string& problem) const;

 private:
  using Work = std::function<void(const Database&)>;
  Support read(const Work& work) const;
  Support write(const Work& work) const;
  Support attempt(const Work& work, bool writes) const;
  Database open(int flags, int busy_timeout_ms) const;
  Support check_file() const;
  bool set_aside() const;

  std::string root_;
  std::string path_;
  std::int64_t max_records_;
};

}  // namespace tilewright::cache
