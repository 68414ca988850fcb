// Functions that visit whole host matrices can be interrupted.
#include <gtest/gtest.h>

#include <vector>

#include "tests/unit/base/interruption_latency.hpp"
#include "tilewright/op/fill.hpp"
#include "tilewright/op/problem.hpp"

namespace tilewright::op {
namespace {

constexpr std::int64_t kSize = 2000;  // 8 * 10^9 products: some ten seconds

struct Problem {
  Problem() {
    gemm.a = matrix(a.data(), DType::f32, kSize, kSize);
    gemm.b = matrix(b.data(), DType::f32, kSize, kSize);
    gemm.d = matrix(d.data(), DType::f32, kSize, kSize);
  }
  std::vector<float> a = std::vector<float>(kSize * kSize, 1.0F), b = a, d = a;
  Gemm gemm;
};

TEST(HostInterruption, OfTheReference) {
  const Problem problem;
  EXPECT_LT(interruption_latency([&] { reference(problem.gemm); }), kMaxInterruptionLatency);
}

TEST(HostInterruption, OfComparisons) {
  const Problem problem;
  EXPECT_LT(interruption_latency([&] { static_cast<void>(compare(problem.gemm)); }, std::chrono::milliseconds(5)),
            kMaxInterruptionLatency);
  Gemm all = problem.gemm;  // below the limit above which a sample is drawn
  all.a = matrix(problem.gemm.a.address, DType::f32, 1000, kSize);
  all.b = matrix(problem.gemm.b.address, DType::f32, kSize, 1000);
  all.d = matrix(problem.gemm.d.address, DType::f32, 1000, 1000);
  EXPECT_LT(interruption_latency([&] { static_cast<void>(compare(all)); }), kMaxInterruptionLatency);
}

/// One element of D with a very large k.
TEST(HostInterruption, OfOneLongSum) {
  constexpr std::int64_t kLong = std::int64_t{1} << 26;
  std::vector<std::int8_t> operand(kLong, 1);
  float d = 0;
  Gemm gemm;
  gemm.a = matrix(operand.data(), DType::s8, 1, kLong);
  gemm.b = matrix(operand.data(), DType::s8, kLong, 1);
  gemm.d = matrix(&d, DType::f32, 1, 1);
  gemm.accumulator = DType::s32;
  EXPECT_LT(interruption_latency([&] { static_cast<void>(compare_at(view(gemm), std::vector{Place{}})); }),
            kMaxInterruptionLatency);
  EXPECT_LT(interruption_latency([&] { reference(gemm); }), kMaxInterruptionLatency);
}

TEST(HostInterruption, OfFills) {
  std::vector<float> memory(std::size_t{1} << 25);
  const Tensor tensor = matrix(memory.data(), DType::f32, 1, std::int64_t{1} << 25);
  EXPECT_LT(interruption_latency([&] { fill_integers(tensor, -1, 1, 1); }), kMaxInterruptionLatency);
  EXPECT_LT(interruption_latency([&] { fill_normal(tensor, 1.0, 1); }), kMaxInterruptionLatency);
  EXPECT_LT(interruption_latency([&] { copy_elements(tensor, tensor); }), kMaxInterruptionLatency);
  interruption_latency([&] { fill_poison(tensor); }, std::chrono::milliseconds(0));
}

}  // namespace
}  // namespace tilewright::op
