// CUDA events: for time between two points of a stream's work, and for order between streams.
#pragma once

#include <memory>

#include "tilewright/runtime/cuda_context.hpp"

namespace tilewright::runtime {

class Event {
 public:
  enum class Timing { enabled, disabled };

  /// @throws DriverError
  explicit Event(std::shared_ptr<CudaContext> context, Timing timing = Timing::enabled);
  Event(Event&& other) noexcept;
  Event& operator=(Event&& other) noexcept;
  ~Event();

  EventHandle handle() const { return handle_; }

  /// Records the event after all work that is enqueued on `stream` now. @throws DriverError
  void record(StreamHandle stream) const;
  /// Makes later work of `stream` wait for the event. @throws DriverError
  void make_wait(StreamHandle stream) const;
  /// Whether the work before the event has completed. @throws DriverError
  bool is_complete() const;
  /// Waits until the work before the event has completed. @throws DriverError, also for errors of that work
  void synchronize() const;
  /// Milliseconds from `start` to this event, resolution about 0.5 us. @pre both are complete and have timing enabled
  /// @throws DriverError
  float milliseconds_since(const Event& start) const;

 private:
  std::shared_ptr<CudaContext> context_;
  EventHandle handle_ = nullptr;
};

}  // namespace tilewright::runtime
