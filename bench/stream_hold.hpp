// Keeps a stream's work back while the host enqueues it: calls shorter than the host's part of them are then timed as
// the GPU runs them, one after another.
#pragma once

#include <memory>

#include "tilewright/runtime/device.hpp"

namespace tilewright::bench {

class StreamHold {
 public:
  /// What is enqueued on `stream` from here on waits until this object ends, or 0.2 s have passed. A held stream must
  /// not be given more than the driver queues, about 1000 launches and events. @throws DriverError
  explicit StreamHold(runtime::StreamHandle stream);
  StreamHold(const StreamHold&) = delete;
  StreamHold& operator=(const StreamHold&) = delete;
  ~StreamHold();

 private:
  struct Latch;
  std::shared_ptr<Latch> latch_;
};

}  // namespace tilewright::bench
