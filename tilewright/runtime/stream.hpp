// A stream of a GPU, owned.
#pragma once

#include <memory>

#include "tilewright/runtime/cuda_context.hpp"
#include "tilewright/runtime/event.hpp"

namespace tilewright::runtime {

/// Does not synchronise with the null stream. Destroying it does not wait: work already enqueued still runs.
class Stream {
 public:
  /// @throws DriverError
  explicit Stream(std::shared_ptr<CudaContext> context);
  Stream(Stream&& other) noexcept;
  Stream& operator=(Stream&& other) noexcept;
  ~Stream();

  StreamHandle handle() const { return handle_; }

  /// Waits for all that was enqueued. @throws DriverError, also for what that work did wrong.
  void synchronize() const;
  /// Later work of this stream starts after `event`. @throws DriverError
  void wait(const Event& event) const;
  /// True between the begin and the end of a graph capture of this stream. @throws DriverError
  bool is_capturing() const;

 private:
  std::shared_ptr<CudaContext> context_;
  StreamHandle handle_ = nullptr;
};

}  // namespace tilewright::runtime
