// The random operands of a problem.
#include "bench/operand_sets.hpp"

#include <gtest/gtest.h>

#include "tilewright/engine/engine.hpp"

namespace tilewright::bench {
namespace {

// A column of B that repeats a row of A has a product of k, which no bound on the error of random sums is for.
TEST(RandomBlocks, FactorsComeFromDifferentOnes) {
  engine::Options options;
  options.device = "emulator:sm_90a";
  options.cache_on_disk = false;
  const engine::Engine engine(options);
  RandomBlocks random(engine.device(), 1);
  const auto filled = [&](RandomBlocks::Source source) {
    constexpr std::size_t kElements = 1024;
    std::mt19937_64 offsets(1);  // the same place in each block
    const runtime::DeviceBuffer buffer(engine.device(), kElements * sizeof(float));
    random.fill(buffer, DType::f32, source, offsets);
    std::vector<float> values(kElements);
    engine.device()->copy_out(values.data(), buffer.address(), buffer.bytes(), nullptr);
    return values;
  };
  using enum RandomBlocks::Source;
  EXPECT_EQ(filled(first), filled(first));
  EXPECT_NE(filled(first), filled(second));
}

}  // namespace
}  // namespace tilewright::bench
