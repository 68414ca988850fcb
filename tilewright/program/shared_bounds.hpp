// Whether an access of shared memory is aligned and within memory that the kernel has reserved, as far as that is known
// while the kernel is recorded.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tilewright/layout/number.hpp"

namespace tilewright::program {

/// Bytes from `begin` to before `end` of the dynamic shared memory, which one call of KernelBuilder::shared() reserved.
struct SharedRegion {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

/// A condition under which the access is executed: `holds` is not 0, or is 0 if `negated`.
struct AccessCondition {
  layout::Number holds;
  bool negated = false;
};

/// An access of `bytes` bytes by each thread for which the conditions hold.
struct SharedAccess {
  layout::Number offset;  // in bytes, from the beginning of the dynamic shared memory
  std::int64_t bytes = 0;
  std::int64_t alignment = 1;  // of the offset, in bytes
  layout::Number thread;       // threadIdx.x
  int threads = 0;
  std::vector<AccessCondition> conditions;
};

/// The reason why the access is outside of the regions, or crosses from one to another, in at least one thread that is
/// certain to execute it. Nothing is certain of an offset that depends on more than `thread`, unless no value that it
/// may have is below `end` of the last region, or all are negative; nor of a thread, if conditions depend on more than
/// `thread`, unless no thread is within a region.
std::optional<std::string> out_of_shared_memory(const std::vector<SharedRegion>& regions, const SharedAccess& access);

/// The reason why the offset is no multiple of the alignment in at least one thread that is certain to execute the
/// access. Nothing is certain of an offset that depends on more than `thread`; nor of a thread, if conditions do,
/// unless no thread's offset is aligned.
std::optional<std::string> misaligned_in_shared_memory(const SharedAccess& access);

}  // namespace tilewright::program
