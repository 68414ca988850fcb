// CUDA streams.
#pragma once

#include <memory>

#include "tilewright/runtime/cuda_context.hpp"
#include "tilewright/runtime/event.hpp"

namespace tilewright::runtime {

/// A stream that does not synchronise with the null stream. Its destructor does not wait: enqueued work still runs.
class Stream {
 public:
  /// @throws DriverError
  explicit Stream(std::shared_ptr<CudaContext> context);
  Stream(Stream&& other) noexcept;
  Stream& operator=(Stream&& other) noexcept;
  ~Stream();

  StreamHandle handle() const { return handle_; }

  /// Waits for all enqueued work. @throws DriverError, also for errors of that work
  void synchronize() const;
  /// Makes later work of this stream wait for `event`. @throws DriverError
  void wait(const Event& event) const;
  /// Whether this stream is being captured into a graph. @throws DriverError
  bool is_capturing() const;

 private:
  std::shared_ptr<CudaContext> context_;
  StreamHandle handle_ = nullptr;
};

}  // namespace tilewright::runtime
