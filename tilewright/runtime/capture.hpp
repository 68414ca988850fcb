// Living beside a graph capture that a caller has under way.
#pragma once

#include "tilewright/runtime/cuda_context.hpp"

namespace tilewright::runtime {

/// Whether a graph capture of `stream` is under way. Asking does not disturb it. @pre the context is current
/// @throws DriverError
bool is_capturing(Driver& driver, StreamHandle stream);

/// Of the capture of `stream` that is under way, 0 for none. @pre the context is current
/// @throws DriverError
std::uint64_t capture_id(Driver& driver, StreamHandle stream);

/// While it lives, this thread may allocate, free, load and unload although some stream is being captured. Without it
/// the driver refuses (CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED) and invalidates the capture.
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
