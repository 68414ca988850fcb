// Random problems, computed by the kernel that is ranked first and by others. Operands lie between red zones, and D is
// poisoned before each run. Results must be within the bound of the f64 reference, and a second run must give the same
// bits. TILEWRIGHT_RANDOM_PROBLEMS is the number of problems; problem i has the seed TILEWRIGHT_RANDOM_SEED + i.
#include <gtest/gtest.h>

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <map>

#include "tests/conformance/gemm_checks.hpp"
#include "tests/conformance/random_problem.hpp"

namespace tilewright::conformance {
namespace {

/// The value of an environment variable, or `otherwise` if it is not set. @throws InvalidArgument if it is not a number
std::uint64_t number_from_environment(const char* name, std::uint64_t otherwise) {
  const char* const text = std::getenv(name);
  if (text == nullptr) return otherwise;
  std::uint64_t value = 0;
  const char* const end = text + std::strlen(text);
  const auto [stopped, error] = std::from_chars(text, end, value);
  if (error != std::errc() || stopped != end)
    throw InvalidArgument(fmt::format("{} must be a number, got {}", name, text));
  return value;
}

/// A random problem in device memory, and the kernels that compute it.
struct Drawn {
  Drawn(engine::Engine& engine, std::uint64_t seed, std::int64_t largest)
      : problem(draw_problem(seed, largest)), guarded(engine.device(), problem.shape, problem.placements) {
    gemm = guarded.on_device();
    if (problem.shape.c.address == 0) gemm.c.address = 0;
    const std::vector<engine::RankedKernel> ranked = engine.find_kernels(gemm);
    if (ranked.empty()) return;
    kernels.push_back(ranked.front().kernel);
    if (problem.tries_another) kernels.push_back(another(ranked));
  }

  /// A kernel of a random family, so that families with few kernels are chosen as often as others.
  registry::KernelPtr another(const std::vector<engine::RankedKernel>& ranked) const {
    std::map<std::string, std::vector<registry::KernelPtr>> families;
    for (const engine::RankedKernel& each : ranked) {
      families[each.kernel->metadata().family].push_back(each.kernel);
    }
    const auto chosen = std::next(families.begin(), static_cast<std::ptrdiff_t>(problem.which % families.size()));
    return chosen->second[problem.which / families.size() % chosen->second.size()];
  }

  RandomProblem problem;
  GuardedProblem guarded;
  op::Gemm gemm;  // on device memory
  std::vector<registry::KernelPtr> kernels;
};

std::vector<std::byte> bytes_of(const op::Tensor& tensor) {
  if (tensor.is_pointer_array()) {
    std::vector<std::byte> all;
    for (std::int64_t index = 0; index < tensor.batch(); ++index) {
      const std::vector<std::byte> one = bytes_of(op::slice(tensor, index));
      all.insert(all.end(), one.begin(), one.end());
    }
    return all;
  }
  const auto* const begin = reinterpret_cast<const std::byte*>(tensor.address);
  return {begin, begin + op::span_bytes(tensor)};
}

class RandomProblems : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (is_missing(GetParam())) GTEST_SKIP() << "no GPU";
  }

  static bool is_gpu() { return GetParam().starts_with("cuda"); }
  static engine::Engine& engine() { return engine_of(GetParam()); }

  /// The bytes of D after a run, including the gaps between rows.
  static std::vector<std::byte> run(Drawn& drawn, const registry::KernelPtr& kernel) {
    drawn.guarded.upload();
    engine().run(drawn.gemm, kernel);
    drawn.guarded.download();
    EXPECT_EQ(drawn.guarded.damage(), "");
    return bytes_of(drawn.guarded.host().d);
  }

  /// The command that runs this problem alone.
  static std::string reproduction(const Drawn& drawn) {
    return fmt::format(
        "TILEWRIGHT_DEVICES={} TILEWRIGHT_RANDOM_SEED={} TILEWRIGHT_RANDOM_PROBLEMS=1 "
        "build/bin/test_conformance --gtest_filter='*RandomProblems*'\n{}",
        GetParam(), drawn.problem.seed, to_string(drawn.problem));
  }

  static void check(Drawn& drawn) {
    ASSERT_FALSE(drawn.kernels.empty()) << "no kernel can compute the problem";
    // Operands that must not be read stay NaN.
    op::Gemm host = drawn.guarded.host();
    if (op::reads_product(host))
      fill_randomly(host.a, drawn.problem.seed), fill_randomly(host.b, drawn.problem.seed + 1);
    if (op::reads_source(host)) fill_randomly(host.c, drawn.problem.seed + 2);
    for (const registry::KernelPtr& kernel : drawn.kernels) {
      SCOPED_TRACE(kernel->name());
      const std::vector<std::byte> first = run(drawn, kernel);
      const op::Comparison comparison = op::compare(host);
      EXPECT_TRUE(comparison.is_within_bound()) << op::to_string(comparison);
      EXPECT_TRUE(run(drawn, kernel) == first) << "a second run gave other bits";
    }
  }
};

TEST_P(RandomProblems, AreWithinTheBoundAndReproducible) {
  const std::uint64_t count = number_from_environment("TILEWRIGHT_RANDOM_PROBLEMS", is_gpu() ? 200 : 24);
  const std::uint64_t seed = number_from_environment("TILEWRIGHT_RANDOM_SEED", 1);
  std::vector<Drawn> all;
  std::vector<registry::KernelPtr> kernels;
  for (std::uint64_t i = 0; i < count; ++i) {
    const Drawn& drawn = all.emplace_back(engine(), seed + i, is_gpu() ? 700 : 100);
    kernels.insert(kernels.end(), drawn.kernels.begin(), drawn.kernels.end());
  }
  engine().compile(kernels);
  std::map<std::string, int> families;
  for (const registry::KernelPtr& kernel : kernels) ++families[kernel->metadata().family];
  for (const auto& [family, runs] : families) fmt::print("{} kernels of {}\n", runs, family);
  for (Drawn& drawn : all) {
    SCOPED_TRACE(reproduction(drawn));
    try {
      check(drawn);
    } catch (const Error& error) {
      ADD_FAILURE() << error.what();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, RandomProblems, testing::ValuesIn(devices()),
                         [](const auto& tested) { return identifier(tested.param); });

}  // namespace
}  // namespace tilewright::conformance
