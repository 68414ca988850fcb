// Asks for and relaxes stream capture.
#include "tilewright/runtime/capture.hpp"

namespace tilewright::runtime {

bool is_capturing(Driver& driver, StreamHandle stream) {
  CaptureStatus status = CaptureStatus::none;
  driver.stream_is_capturing(stream, &status);
  return status != CaptureStatus::none;
}

void RelaxedCapture::exchange() noexcept {
  if (driver_.poisoned() || !driver_.is_owner_process()) return;
  driver_.note(driver_.thread_exchange_capture_mode.raw(&mode_), driver_.thread_exchange_capture_mode.symbol());
}

}  // namespace tilewright::runtime
