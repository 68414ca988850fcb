// A point in a stream's work, owned: for time between two of them and for order between streams.
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

  /// Marks the end of what `stream` holds now. @throws DriverError
  void record(StreamHandle stream) const;
  /// Later work of `stream` starts after the mark. @throws DriverError
  void hold_back(StreamHandle stream) const;
  /// Whether the mark is passed. @throws DriverError
  bool has_passed() const;
  /// Waits until the mark is passed. @throws DriverError, also for what the work before it did wrong.
  void synchronize() const;
  /// Milliseconds from `start` to this event, resolution about 0.5 us. @pre both passed, both with timing enabled
  /// @throws DriverError
  float milliseconds_since(const Event& start) const;

 private:
  std::shared_ptr<CudaContext> context_;
  EventHandle handle_ = nullptr;
};

}  // namespace tilewright::runtime
