// Event.
#include "tilewright/runtime/event.hpp"

#include <utility>

namespace tilewright::runtime {

Event::Event(std::shared_ptr<CudaContext> context, Timing timing) : context_(std::move(context)) {
  const ContextScope scope(*context_);
  context_->driver().event_create(&handle_, timing == Timing::enabled ? kEventDefault : kEventDisableTiming);
}

Event::Event(Event&& other) noexcept
    : context_(std::move(other.context_)), handle_(std::exchange(other.handle_, nullptr)) {}

Event& Event::operator=(Event&& other) noexcept {
  std::swap(context_, other.context_);
  std::swap(handle_, other.handle_);
  return *this;
}

Event::~Event() {
  if (handle_ != nullptr) release(*context_, context_->driver().event_destroy, handle_);
}

void Event::record(StreamHandle stream) const {
  const ContextScope scope(*context_);
  context_->driver().event_record(handle_, stream);
}

void Event::make_wait(StreamHandle stream) const {
  const ContextScope scope(*context_);
  context_->driver().stream_wait_event(stream, handle_, 0);
}

bool Event::is_complete() const {
  const ContextScope scope(*context_);
  const auto& query = context_->driver().event_query;
  const DriverCode code = query.raw(handle_);
  if (code != kNotReady) context_->driver().check(code, query.symbol());
  return code != kNotReady;
}

void Event::synchronize() const {
  const ContextScope scope(*context_);
  context_->driver().event_synchronize(handle_);
}

float Event::milliseconds_since(const Event& start) const {
  const ContextScope scope(*context_);
  float milliseconds = 0.0f;
  context_->driver().event_elapsed_time(&milliseconds, start.handle_, handle_);
  return milliseconds;
}

}  // namespace tilewright::runtime
