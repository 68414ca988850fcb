// HostWatch finds accesses of host code to managed and pinned memory that work uses which the host has not waited for.
//
// Work runs when it is enqueued, so that such an access finds right values here, but not on a GPU. While no function of
// CUDA runs, the pages of the memory are protected; the signal SIGSEGV tells of the first access.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tools/cuda_runtime/stream_order.hpp"

namespace tilewright::cuda_runtime {

/// An access of host code to a watched page.
struct HostAccess {
  std::uint64_t address = 0;
  bool is_write = false;
  std::string location;  // "program+0x1234"
  PendingUse use;        // the work that it is not ordered with
};

/// One per process, as it owns the process's handler of SIGSEGV. Its functions must be called under the machine's lock.
class HostWatch {
 public:
  /// Whole pages of zeros, which are watched, with pages that nothing uses around them. Null: there is no memory.
  std::byte* allocate(std::size_t bytes);
  /// False if allocate() did not return the address.
  bool free(std::byte* address);
  bool has_memory() const { return !memory_.empty(); }

  /// A function of CUDA begins, and accesses the memory. Returns the accesses of host code since protect().
  std::vector<HostAccess> unprotect();
  /// The function ends: from now on, accesses to memory that `order` has unfinished uses of are noted.
  void protect(const StreamOrder& order);

 private:
  struct Memory {
    std::size_t bytes = 0;
    std::byte* mapping = nullptr;  // with the pages around the memory
    std::size_t mapped_bytes = 0;
    std::size_t slot = 0;  // in the table of the signal handler
    PendingUse use;        // that the memory is protected for, or was for order_version_
    bool is_reported = false;
  };

  void protect(std::uint64_t begin, Memory& memory, const PendingUse& use);

  std::map<std::uint64_t, Memory> memory_;  // by address
  std::uint64_t order_version_ = 0;
  bool is_protected_ = false;
};

}  // namespace tilewright::cuda_runtime
