// Loops with a condition of cells, in both lowerings.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <vector>

#include "program_run.hpp"
#include "tilewright/base/error.hpp"
#include "tilewright/program/instructions.hpp"

namespace tilewright::program {
namespace {

constexpr int kThreads = 64;

TEST(LoopWhile, EndsAtAnotherIterationInEachThread) {
  KernelBuilder k("gcd", kSm80, kThreads);
  const Value out = k.address("out", 4);
  const NumberCell a = k.cell(k.thread() + 36, 200), b = k.cell(48, 200);
  k.loop_while([&] { return less(0, b.get()); },
               [&] {
                 const Number rest = a.get() % maximum(b.get(), 1);
                 a.set(b.get());
                 b.set_within(rest);
               });
  store_global(k, out, k.thread() * 4, {to_f32(k, a.get())});
  const std::vector<float> found = results_of(k.build(), LaunchArguments(), kThreads, NAN);
  for (int i = 0; i < kThreads; ++i)
    EXPECT_EQ(static_cast<int>(found[static_cast<std::size_t>(i)]), std::gcd(i + 36, 48));
}

TEST(LoopWhile, ConditionOfValuesIsInACell) {
  KernelBuilder k("steps", kSm80, kThreads);
  const Value out = k.address("out", 4);
  const ValueCell value = k.cell(to_b32(k, k.thread() + 1)), steps = k.cell(to_b32(k, 0));
  const NumberCell goes_on = k.cell(less(1, k.thread() + 1), 2);
  const Value one = to_b32(k, 1);
  k.loop_while([&] { return goes_on.get(); },
               [&] {
                 k.branch(
                     equal(k, bitwise_and(k, value.get(), one), one),
                     [&] { value.set(add(k, multiply(k, value.get(), to_b32(k, 3)), one)); },
                     [&] { value.set(shift_right(k, value.get(), one)); });
                 steps.set(add(k, steps.get(), one));
                 goes_on.set(less(k, one, value.get()));
               });
  store_global(k, out, k.thread() * 4, {to_f32(k, steps.get(), DType::s32)});
  const std::vector<float> found = results_of(k.build(), LaunchArguments(), kThreads, NAN);
  for (int i = 0; i < kThreads; ++i) {
    int expected = 0;
    for (int n = i + 1; n != 1; n = n % 2 != 0 ? 3 * n + 1 : n / 2) ++expected;
    EXPECT_EQ(static_cast<int>(found[static_cast<std::size_t>(i)]), expected) << i;
  }
}

TEST(LoopWhile, HasBarriersIfAllThreadsGoOn) {
  KernelBuilder k("tree", kSm80, kThreads);
  const Value out = k.address("out", 4);
  const Number memory = k.shared(kThreads * 4).address;
  const auto place = [&](const Number& index) { return memory + index * 4; };
  store_shared(k, place(k.thread()), {to_f32(k, k.thread())});
  synchronize(k);
  const NumberCell width = k.cell(kThreads / 2, kThreads);
  k.loop_while([&] { return less(0, width.get()); },
               [&] {
                 k.branch(less(k.thread(), width.get()), [&] {
                   const Value low = load_shared(k, place(k.thread()), RegisterType::f32);
                   const Value high = load_shared(k, place(k.thread() + width.get()), RegisterType::f32);
                   store_shared(k, place(k.thread()), {add(k, low, high)});
                 });
                 synchronize(k);
                 width.set(width.get() / 2);
               });
  store_global(k, out, k.thread() * 4, {load_shared(k, memory, RegisterType::f32)});
  for (const float each : results_of(k.build(), LaunchArguments(), kThreads, NAN))
    EXPECT_EQ(each, kThreads * (kThreads - 1) / 2);
}

TEST(LoopWhile, RefusesConditionsThatTheBodyDoesNotChange) {
  KernelBuilder k("endless", kSm80, kThreads);
  const NumberCell number = k.cell(k.thread(), kThreads), other = k.cell(0, 2);
  const Number before = number.get();
  const auto halve = [&] { number.set(number.get() / 2); };
  EXPECT_THROW(k.loop_while([&] { return less(0, before); }, halve), InvalidArgument);
  EXPECT_THROW(k.loop_while([&] { return less(0, number.get()); }, [&] { other.set(1); }), InvalidArgument);
  EXPECT_THROW(k.loop_while([] { return Number(1); }, halve), InvalidArgument);
  k.loop_while([] { return Number(0); }, [] {});
  k.loop_while([&] { return less(0, number.get()); }, [&] { k.branch(less(3, k.thread()), halve, halve); });
  EXPECT_NO_THROW(k.build());
}

TEST(LoopWhile, RefusesConditionsWithInstructions) {
  KernelBuilder k("refused", kSm80, kThreads);
  EXPECT_THROW(k.loop_while([&] { return less(k, constant(k, 0), constant(k, 1)); }, [] {}), InvalidArgument);
}

}  // namespace
}  // namespace tilewright::program
