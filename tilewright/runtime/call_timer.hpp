// Measures the time that calls take on a GPU, with CUDA events.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "tilewright/runtime/cuda_context.hpp"
#include "tilewright/runtime/event.hpp"
#include "tilewright/runtime/stream.hpp"

namespace tilewright::runtime {

/// Every call is enqueued between two events on one stream. Its work is held back until the host has enqueued a batch
/// of calls, so that calls which are shorter than the host's time per call are timed without gaps. Not thread-safe.
class CallTimer {
 public:
  /// Enqueues the work of call number `call` on `stream`, at most about 10 launches.
  using Enqueue = std::function<void(std::size_t call, StreamHandle stream)>;

  /// `max_hold` limits how long a batch is held back. It ends the wait of a call that synchronizes with the stream.
  /// @throws DriverError
  explicit CallTimer(std::shared_ptr<CudaContext> context,
                     std::chrono::milliseconds max_hold = std::chrono::milliseconds(200));

  /// Enqueues the calls 0 .. count - 1 in this order, waits for them, and returns the device time of each in
  /// microseconds. A batch that was not enqueued within the limit is enqueued a second time, and the times are those of
  /// the second time. Exceptions of `enqueue` are propagated after the work enqueued before has completed.
  /// @throws DriverError, also for errors of the calls' work
  std::vector<double> time(std::size_t count, const Enqueue& enqueue);

 private:
  bool enqueue_held(std::size_t begin, std::size_t end, const Enqueue& enqueue) const;

  std::shared_ptr<CudaContext> context_;
  std::chrono::milliseconds max_hold_;
  Stream stream_;
  std::vector<Event> events_;  // start and stop of each call, reused by the next ones
};

}  // namespace tilewright::runtime
