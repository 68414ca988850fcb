// CallTimer on the fake driver: the order of the work on its stream, times, and calls that throw or synchronize.
#include "tilewright/runtime/call_timer.hpp"

#include <gmock/gmock.h>

#include <numeric>
#include <stdexcept>

#include "fixture.hpp"

namespace tilewright::runtime {
namespace {

using fake_driver::kRecordMs;
using fake_driver::StreamWork;
using std::chrono::milliseconds;

constexpr milliseconds kLong = std::chrono::seconds(10);  // only a hold that is not released lasts this long

class CallTimerTest : public FakeDriverTest {
 protected:
  /// A call that takes `ms` on the fake GPU.
  void run(const std::string& what, StreamHandle stream, float ms = 0.0f) {
    state_->stream_work.push_back({what, stream});
    state_->clock_ms += ms;
  }

  std::shared_ptr<CudaDevice> device_ = open_cuda_device(0, {}, kFakeDriver);
};

TEST_F(CallTimerTest, EveryCallIsBetweenItsEventsOnOneHeldStream) {
  CallTimer timer(device_->context(), kLong);
  StreamHandle used = nullptr;
  timer.time(3, [&](std::size_t call, StreamHandle stream) {
    used = stream;
    run(std::to_string(call), stream);
  });
  EXPECT_NE(used, nullptr);
  std::vector<StreamWork> expected{{"host function", used}};
  for (const char* call : {"0", "1", "2"}) {
    for (const char* what : {"event", call, "event"}) expected.push_back({what, used});
  }
  EXPECT_EQ(state_->stream_work, expected);
  EXPECT_EQ(calls("cuStreamSynchronize"), 1);
}

TEST_F(CallTimerTest, TimesAreThoseBetweenTheEventsOfEachCall) {
  CallTimer timer(device_->context(), kLong);
  const auto enqueue = [&](std::size_t call, StreamHandle stream) { run("", stream, static_cast<float>(call) + 1.0f); };
  EXPECT_THAT(timer.time(3, enqueue),
              testing::ElementsAre(1e3 * (kRecordMs + 1), 1e3 * (kRecordMs + 2), 1e3 * (kRecordMs + 3)));
  EXPECT_THAT(timer.time(1, enqueue), testing::ElementsAre(1e3 * (kRecordMs + 1)));
  EXPECT_EQ(state_->live["event"], 6) << "events are reused";
  EXPECT_TRUE(timer.time(0, enqueue).empty());
}

TEST_F(CallTimerTest, ManyCallsAreHeldInBatches) {
  CallTimer timer(device_->context(), kLong);
  std::vector<std::size_t> order;
  EXPECT_EQ(timer.time(150, [&](std::size_t call, StreamHandle) { order.push_back(call); }),
            std::vector<double>(150, 1e3 * kRecordMs));
  std::vector<std::size_t> expected(150);
  std::iota(expected.begin(), expected.end(), std::size_t{0});
  EXPECT_EQ(order, expected);
  EXPECT_EQ(calls("cuLaunchHostFunc"), 3);
}

TEST_F(CallTimerTest, AnExceptionOfACallReleasesTheStreamAndWaitsForIt) {
  CallTimer timer(device_->context(), kLong);
  const auto fail = [&](std::size_t call, StreamHandle) {
    if (call == 1) throw std::runtime_error("no launch");
  };
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(message_of<std::runtime_error>([&] { timer.time(3, fail); }), "no launch");
  EXPECT_LT(std::chrono::steady_clock::now() - start, kLong);
  EXPECT_EQ(calls("cuStreamSynchronize"), 1);
  EXPECT_EQ(timer.time(1, [](std::size_t, StreamHandle) {}).size(), 1u);
}

TEST_F(CallTimerTest, CallsAreTimedAgainAfterOneOfThemWaitedForTheStream) {
  CallTimer timer(device_->context(), milliseconds(1));
  bool is_loaded = false;
  const std::vector<double> times = timer.time(2, [&](std::size_t, StreamHandle stream) {
    if (!is_loaded) {
      device_->synchronize(stream);
      run("load", stream, 100.0f);
    }
    is_loaded = true;
  });
  EXPECT_EQ(times, std::vector<double>(2, 1e3 * kRecordMs));
  EXPECT_EQ(calls("cuLaunchHostFunc"), 2);
}

TEST_F(CallTimerTest, CallsThatAlwaysWaitForTheStreamAreTimed) {
  CallTimer timer(device_->context(), milliseconds(1));
  const auto wait = [&](std::size_t, StreamHandle stream) { device_->synchronize(stream); };
  EXPECT_EQ(timer.time(2, wait).size(), 2u);
  EXPECT_EQ(calls("cuLaunchHostFunc"), 2);
}

}  // namespace
}  // namespace tilewright::runtime
