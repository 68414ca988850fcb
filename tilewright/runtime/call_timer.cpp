// A stream is held back by a host function that waits for the host's promise, at most for a limited time.
//
// Fills of scratch memory would also keep the GPU busy while the host enqueues calls. But they need free memory, and
// how many are enough depends on the speed of the memory and of the host. A held stream needs no memory and waits
// exactly as long as the host needs. Its hazard is a call that waits for the stream or for the whole context: a kernel
// whose code is loaded at its first launch, a launch that needs more local memory than any before, a pool that reuses
// memory of this stream, or a full queue of the driver. The limit ends such a wait. Since the first three happen once,
// the calls are then enqueued again. Batches are smaller than the queue.
#include "tilewright/runtime/call_timer.hpp"

#include <algorithm>
#include <atomic>
#include <future>
#include <utility>

#include "tilewright/base/error.hpp"

namespace tilewright::runtime {
namespace {

/// The driver's queue holds about 1000 launches and events, which is 64 calls of up to 10 launches with their events.
constexpr std::size_t kCallsPerHold = 64;

/// Work that is enqueued on a stream after this object waits until the object is destroyed, or the limit has passed.
class StreamHold {
 public:
  StreamHold(Driver& driver, StreamHandle stream, std::chrono::milliseconds limit)
      : latch_(std::make_shared<Latch>(limit)) {
    auto owner = std::make_unique<std::shared_ptr<Latch>>(latch_);
    const auto wait = [](void* data) {
      const std::unique_ptr<std::shared_ptr<Latch>> latch(static_cast<std::shared_ptr<Latch>*>(data));
      (*latch)->wait();
    };
    driver.launch_host_function(stream, wait, owner.get());
    static_cast<void>(owner.release());  // the host function deletes it
  }
  StreamHold(const StreamHold&) = delete;
  StreamHold& operator=(const StreamHold&) = delete;
  ~StreamHold() { latch_->released.set_value(); }

  bool has_expired() const { return latch_->has_expired; }

 private:
  struct Latch {
    explicit Latch(std::chrono::milliseconds max_hold) : limit(max_hold) {}

    void wait() { has_expired = released.get_future().wait_for(limit) == std::future_status::timeout; }

    const std::chrono::milliseconds limit;
    std::promise<void> released;
    std::atomic<bool> has_expired = false;
  };

  std::shared_ptr<Latch> latch_;
};

}  // namespace

CallTimer::CallTimer(std::shared_ptr<CudaContext> context, std::chrono::milliseconds max_hold)
    : context_(std::move(context)), max_hold_(max_hold), stream_(context_) {}

std::vector<double> CallTimer::time(std::size_t count, const Enqueue& enqueue) {
  const ContextScope scope(*context_);
  while (events_.size() < 2 * count) events_.emplace_back(context_);
  try {
    for (std::size_t begin = 0; begin < count; begin += kCallsPerHold) {
      const std::size_t end = std::min(begin + kCallsPerHold, count);
      if (!enqueue_held(begin, end, enqueue)) enqueue_held(begin, end, enqueue);
    }
  } catch (...) {
    try {
      stream_.synchronize();
    } catch (const Error&) {
      // The first exception is the one that is propagated.
    }
    throw;
  }
  stream_.synchronize();
  std::vector<double> times_us;
  times_us.reserve(count);
  for (std::size_t call = 0; call < count; ++call) {
    times_us.push_back(1000.0 * events_[2 * call + 1].milliseconds_since(events_[2 * call]));
  }
  return times_us;
}

/// Returns whether the stream was held until all of these calls were enqueued.
bool CallTimer::enqueue_held(std::size_t begin, std::size_t end, const Enqueue& enqueue) const {
  const StreamHold hold(context_->driver(), stream_.handle(), max_hold_);
  for (std::size_t call = begin; call < end; ++call) {
    events_[2 * call].record(stream_.handle());
    enqueue(call, stream_.handle());
    events_[2 * call + 1].record(stream_.handle());
  }
  return !hold.has_expired();
}

}  // namespace tilewright::runtime
