// The stream is held by a host function that waits for an atomic variable.
#include "stream_hold.hpp"

#include <atomic>
#include <chrono>
#include <thread>

#include "tilewright/compile/shared_library.hpp"
#include "tilewright/runtime/driver.hpp"

namespace tilewright::bench {

struct StreamHold::Latch {
  std::atomic<bool> is_released = false;

  void wait() const {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(200);
    while (!is_released && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  }
};

namespace {

using HostFunction = void (*)(void*);
using LaunchHostFunction = int (*)(runtime::StreamHandle, HostFunction, void*);

LaunchHostFunction find_launch_host_function() {
  const auto driver = compile::SharedLibrary::open("libcuda.so.1", compile::SharedLibrary::Load::now);
  void* function = driver ? driver->symbol("cuLaunchHostFunc") : nullptr;
  if (function == nullptr) throw DriverError(0, "libcuda.so.1 has no cuLaunchHostFunc");
  return reinterpret_cast<LaunchHostFunction>(function);
}

}  // namespace

StreamHold::StreamHold(runtime::StreamHandle stream) : latch_(std::make_shared<Latch>()) {
  static const LaunchHostFunction launch_host_function = find_launch_host_function();
  using Shared = std::shared_ptr<Latch>;
  auto shared = std::make_unique<Shared>(latch_);
  const auto wait = [](void* data) {
    const std::unique_ptr<Shared> latch(static_cast<Shared*>(data));
    (*latch)->wait();
  };
  if (const int code = launch_host_function(stream, wait, shared.get()); code != runtime::kSuccess)
    throw DriverError(code, fmt::format("cuLaunchHostFunc failed with CUresult {}", code));
  static_cast<void>(shared.release());  // the stream's host function owns it from now on
}

StreamHold::~StreamHold() { latch_->is_released = true; }

}  // namespace tilewright::bench
