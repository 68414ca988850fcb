// Coexistence with a graph capture of the caller.
#pragma once

#include "tilewright/runtime/cuda_context.hpp"

namespace tilewright::runtime {

/// Whether `stream` is being captured into a graph. The query does not affect the capture. @pre the context is current
/// @throws DriverError
bool is_capturing(Driver& driver, StreamHandle stream);

/// The id of the current capture of `stream`; 0 if it is not being captured. @pre the context is current
/// @throws DriverError
std::uint64_t capture_id(Driver& driver, StreamHandle stream);

/// Sets the thread's capture mode to relaxed while the object lives: the thread may allocate, free, load and unload
/// although a stream is being captured. Otherwise the driver returns CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED and
/// invalidates the capture.
class RelaxedCapture {
 public:
  explicit RelaxedCapture(Driver& driver) : driver_(driver) { exchange(); }
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;
  ~RelaxedCapture() { exchange(); }

 private:
  void exchange() noexcept;

  Driver& driver_;
  CaptureMode mode_ = CaptureMode::relaxed;
};

}  // namespace tilewright::runtime
