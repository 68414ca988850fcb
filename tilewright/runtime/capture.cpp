// Queries of stream capture, and the relaxed capture mode.
#include "tilewright/runtime/capture.hpp"

namespace tilewright::runtime {

bool is_capturing(Driver& driver, StreamHandle stream) {
  CaptureStatus status = CaptureStatus::none;
  driver.stream_is_capturing(stream, &status);
  return status != CaptureStatus::none;
}

std::uint64_t capture_id(Driver& driver, StreamHandle stream) {
  CaptureStatus status = CaptureStatus::none;
  std::uint64_t id = 0;
  driver.stream_get_capture_info(stream, &status, &id, nullptr, nullptr, nullptr);
  return status == CaptureStatus::none ? 0 : id;
}

void RelaxedCapture::exchange() noexcept {
  if (driver_.poisoned() || !driver_.is_owner_process()) return;
  driver_.note(driver_.thread_exchange_capture_mode.raw(&mode_), driver_.thread_exchange_capture_mode.symbol());
}

}  // namespace tilewright::runtime
