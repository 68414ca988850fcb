// Holds a stream while the host enqueues calls. Calls that take the GPU less time than the host needs to enqueue them
// then run back to back and are timed without gaps.
#pragma once

#include <memory>

#include "tilewright/runtime/device.hpp"

namespace tilewright::bench {

class StreamHold {
 public:
  /// Work that is enqueued on `stream` from now on waits until this object is destroyed, or 0.2 s have passed. At most
  /// as much work may be enqueued as the driver's queue holds, about 1000 launches and events. @throws DriverError
  explicit StreamHold(runtime::StreamHandle stream);
  StreamHold(const StreamHold&) = delete;
  StreamHold& operator=(const StreamHold&) = delete;
  ~StreamHold();

 private:
  struct Latch;
  std::shared_ptr<Latch> latch_;
};

}  // namespace tilewright::bench
