// The caches of rankings and of tuned choices, which must not return stale entries.
#include "tilewright/engine/rankings.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include <cmath>
#include <stdexcept>

#include "tests/unit/engine/fake_kernels.hpp"
#include "tests/unit/engine/host_problem.hpp"
#include "tilewright/engine/remembered_choices.hpp"

namespace tilewright::engine {
namespace {

TEST(Rankings, ARankingOfAnOlderGenerationIsNotInserted) {
  const HostProblem problem(8, 12, 16);
  const RankingKey key{op::key(problem.gemm), kSm80, Tuning::use};
  const auto ranking = std::make_shared<const Explanation>();
  Rankings rankings{1024};
  const std::uint64_t before = rankings.generation();
  rankings.clear();
  rankings.insert(key, ranking, before);
  EXPECT_EQ(rankings.find(key), nullptr);
  rankings.insert(key, ranking, rankings.generation());
  EXPECT_EQ(rankings.find(key), ranking);
}

registry::KernelPtr authored(const op::Gemm& gemm, std::string body) {
  return std::make_shared<FakeKernel>(registry::KernelMetadata{"authored", op::describe(gemm), {}}, std::move(body),
                                      1.0, 0);
}

class Sourceless final : public registry::Kernel {
 public:
  using Kernel::Kernel;

 protected:
  compile::Source do_source() const override { throw std::runtime_error("not written yet"); }
  plan::Launch do_launch(const op::Problem&) const override { return {}; }
};

TEST(KernelSet, DependsOnTheSourcesOfUserDefinedKernels) {
  const HostProblem problem(8, 12, 16);
  const auto set = [](std::vector<registry::KernelPtr> kernels) { return *kernel_set(kernels); };
  const registry::KernelPtr one = authored(problem.gemm, "return;"), other = authored(problem.gemm, "return; ;");
  ASSERT_EQ(one->name(), other->name());
  EXPECT_NE(set({one}), set({other}));
  EXPECT_EQ(set({one}), set({authored(problem.gemm, "return;")}));
  EXPECT_EQ(set({one, other}), set({other, one}));
}

TEST(KernelSet, IsRefusedIfAKernelHasNoSource) {
  const HostProblem problem(8, 12, 16);
  const std::vector<registry::KernelPtr> kernels{
      std::make_shared<Sourceless>(registry::KernelMetadata{"sourceless", op::describe(problem.gemm), {}})};
  EXPECT_THAT(kernel_set(kernels).reason(), testing::HasSubstr("has no source: not written yet"));
}

class Unknowing final : public registry::Provider {
 public:
  explicit Unknowing(double estimate_us) : estimate_us_(estimate_us) {}
  std::string family() const override { return "unknowing"; }
  void discover(const op::Problem& problem, const Target& target, registry::Discovery& found) const override {
    plan::FlatDesign design;
    design.target = target;
    found.kernels.push_back(std::make_shared<FakeKernel>(
        registry::KernelMetadata{"unknowing", op::describe(problem), design}, kRightBody, estimate_us_, 0));
  }
  Result<registry::KernelPtr> make(const op::Signature&, const plan::Design&) const override {
    return refuse("no explicit designs");
  }

 private:
  double estimate_us_;
};

TEST(Ranking, RefusesEstimatesThatAreNoTimes) {
  const HostProblem problem(8, 12, 16);
  for (const auto& [estimate_us, reason] :
       {std::pair{std::nan(""), "its estimate is NaN"}, {-1.5, "its estimate is -1.5 us, which is below 0"}}) {
    Engine engine(emulator_options());
    engine.registry().add(std::make_shared<Unknowing>(estimate_us)).or_throw();
    const Explanation found = engine.explain(problem.gemm);
    EXPECT_FALSE(found.kernels.empty()) << "the other kernels are ranked";
    const auto refused = std::ranges::find_if(
        found.refused, [](const registry::RefusedKernel& each) { return each.name.starts_with("unknowing"); });
    ASSERT_NE(refused, found.refused.end());
    EXPECT_EQ(refused->reason(), reason);
    EXPECT_EQ(refused->refusal.code, RefusalCode::provider);
  }
}

}  // namespace
}  // namespace tilewright::engine
