// Stream.
#include "tilewright/runtime/stream.hpp"

#include <utility>

#include "tilewright/runtime/capture.hpp"

namespace tilewright::runtime {

Stream::Stream(std::shared_ptr<CudaContext> context) : context_(std::move(context)) {
  const ContextScope scope(*context_);
  context_->driver().stream_create(&handle_, kStreamNonBlocking);
}

Stream::Stream(Stream&& other) noexcept
    : context_(std::move(other.context_)), handle_(std::exchange(other.handle_, nullptr)) {}

Stream& Stream::operator=(Stream&& other) noexcept {
  std::swap(context_, other.context_);
  std::swap(handle_, other.handle_);
  return *this;
}

Stream::~Stream() {
  if (handle_ != nullptr) release(*context_, context_->driver().stream_destroy, handle_);
}

void Stream::synchronize() const {
  const ContextScope scope(*context_);
  context_->driver().stream_synchronize(handle_);
}

void Stream::wait(const Event& event) const { event.make_wait(handle_); }

bool Stream::is_capturing() const {
  const ContextScope scope(*context_);
  return runtime::is_capturing(context_->driver(), handle_);
}

}  // namespace tilewright::runtime
