// Every arithmetic instruction of the emulator against the GPU: the forms of tests/differential/instruction_forms.txt,
// with all combinations of special values and random bit patterns. Prints the forms that differ, and a summary.
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>

#include "differential/comparison.hpp"
#include "gpu_test.hpp"
#include "tilewright/emulator/device.hpp"

namespace tilewright::runtime {
namespace {

using Differential = GpuTest;

TEST_F(Differential, EmulatorEqualsTheGpu) {
  const Target target = device_->properties().target;
  if (target.sm != 90) GTEST_SKIP() << "the forms are those of sm_90a, and the GPU is " << target.name();
  emulator::EmulatorOptions options;
  options.check_races = options.check_uninitialised = false;
  const auto emulated = emulator::make_emulated_device(target, options);
  differential::ComparisonSettings settings;
  if (const char* seed = std::getenv("TILEWRIGHT_RANDOM_SEED")) settings.seed = std::strtoull(seed, nullptr, 10);
  const auto reports = differential::compare(emulated, device_, differential::instruction_forms(), settings);
  std::size_t differing = 0;
  for (const differential::FormReport& report : reports) {
    if (report.matches()) continue;
    ++differing;
    fmt::print("{}\n", differential::describe_mismatch(report));
  }
  fmt::print("{}", differential::summarise(reports));
  std::fflush(stdout);
  EXPECT_EQ(differing, 0U) << "forms differ";
}

}  // namespace
}  // namespace tilewright::runtime
