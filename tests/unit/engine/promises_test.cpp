// Promises that a caller requires: which kernels are refused, with which reason, and what is remembered.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "tests/unit/engine/fake_kernels.hpp"
#include "tests/unit/engine/host_problem.hpp"
#include "tests/unit/plan/gemm_cases.hpp"
#include "tilewright/kernels/list.hpp"
#include "tilewright/op/epilogue_text.hpp"

namespace tilewright::engine {
namespace {

using testing::HasSubstr;

constexpr registry::Promises kDeterministic{.deterministic = true};
constexpr registry::Promises kInvariant{.batch_invariant = true};

/// f16 with a column-major B, few rows and a long K, for which the ranking splits K.
op::Gemm few_rows(std::int64_t m = 16) { return plan::problem_of(plan::describe_f16(), m, 64, 4096); }

int split_k_of(const registry::Kernel& kernel) {
  return plan::flatten(kernel.metadata().design, kernel.metadata().signature.gemm()).split_k;
}

class Promises : public testing::Test {
 protected:
  /// Adds one correct f32 kernel that promises this.
  void add_kernel(const registry::Promises& promises) {
    engine_.registry().replace(std::make_shared<Authored>(promises)).or_throw();
  }

  class Authored final : public registry::Provider {
   public:
    explicit Authored(const registry::Promises& promises) : promises_(promises) {}
    std::string family() const override { return "authored"; }
    void discover(const op::Problem& problem, const Target& target, registry::Discovery& found) const override {
      plan::Design design{plan::FlatDesign()};
      plan::tiling(design).target = target;
      registry::KernelMetadata metadata{"authored", op::describe(std::get<op::Gemm>(problem)), design};
      metadata.promises = promises_;
      found.kernels.push_back(std::make_shared<FakeKernel>(std::move(metadata), kRightBody, 1e-6, 0));
    }

   private:
    registry::Promises promises_;
  };

  std::string reason(const Explanation& explanation, const std::string& name) const {
    for (const registry::RefusedKernel& refused : explanation.refused) {
      if (refused.name.starts_with(name)) return refused.reason();
    }
    return "not refused";
  }

  Engine engine_{emulator_options()};
};

TEST_F(Promises, ShippedKernelsAreDeterministic) {
  const op::Gemm gemm = few_rows();
  const auto without = engine_.find_kernels(gemm);
  const auto with = engine_.find_kernels(gemm, {}, {}, {}, kDeterministic);
  ASSERT_EQ(with.size(), without.size());
  for (const RankedKernel& ranked : with) {
    EXPECT_EQ(ranked.kernel->metadata().promises, (registry::Promises{true, true}));
    EXPECT_THAT(registry::to_json(ranked.kernel->metadata()),
                HasSubstr(R"("promises":{"deterministic":true,"batch_invariant":true})"));
  }
}

TEST_F(Promises, BatchInvariantKernelsHaveOneOrder) {
  for (const Target& target : {kSm80, kSm90a}) {
    EXPECT_GT(split_k_of(*engine_.find_kernels(few_rows(), {}, target).front().kernel), 1);
    const Explanation explanation = engine_.explain(few_rows(), {}, target, {}, kInvariant);
    ASSERT_FALSE(explanation.kernels.empty());
    for (const RankedKernel& ranked : explanation.kernels) {
      EXPECT_EQ(ranked.kernel->sum_order(few_rows()), explanation.order) << ranked.kernel->name();
      EXPECT_EQ(split_k_of(*ranked.kernel), 1);
    }
    EXPECT_THAT(reason(explanation, "simt_gemm"), HasSubstr("sums in the order [fma 1x1x1 over 4096"));
  }
}

// The order is the same for every M, and some kernel has it.
TEST_F(Promises, EveryMHasAKernelOfTheSameOrder) {
  int problems = 0;
  for (const Target& target : {kSm80, kSm90a}) {
    for (const plan::TypeCase& types : plan::type_cases()) {
      for (const plan::Layouts& layouts : plan::all_layouts()) {
        if (layouts.c != layouts.d) continue;
        for (const auto& [n, k] : {std::pair<std::int64_t, std::int64_t>{80, 320}, {71, 133}}) {
          std::optional<plan::SumOrder> first;
          for (const std::int64_t m : {2, 1, 3, 8, 64, 333, 4096}) {
            const op::Gemm gemm = plan::problem_of(plan::describe(types, layouts), m, n, k);
            const std::shared_ptr<const Explanation> ranking = engine_.ranking(gemm, target, kInvariant);
            SCOPED_TRACE(fmt::format("{} {} {}x{}x{}", target.name(), plan::to_string(op::describe(gemm)), m, n, k));
            ASSERT_FALSE(ranking->kernels.empty()) << to_text(*ranking);
            ASSERT_TRUE(ranking->order);
            if (!first) first = ranking->order;
            // A packed D of one row is row-major, which matters where mma.sync computes the transposed problem.
            if (m == 1 && layouts.d == plan::kColumn && first->unit == arch::MathUnit::mma_sync) continue;
            EXPECT_EQ(plan::to_string(*ranking->order), plan::to_string(*first));
            ++problems;
          }
        }
      }
    }
  }
  EXPECT_GT(problems, 3000);
}

TEST_F(Promises, OfEmptyProblemsAndWithoutAProductAreKept) {
  for (op::Gemm gemm : {few_rows(0), plan::problem_of(plan::describe_f16(), 8, 64, 0), few_rows()}) {
    if (gemm.m() == 16) gemm.alpha = 0;
    for (const Target& target : {kSm80, kSm90a})
      EXPECT_FALSE(engine_.find_kernels(gemm, {}, target, {}, kInvariant).empty());
  }
}

// The parts are added in ascending order by every kernel.
TEST_F(Promises, ReductionsOfSplitKKeepBoth) {
  op::ReduceSplitK reduction;
  reduction.parts = op::batched(op::matrix(std::uint64_t{1} << 20, DType::f32, 20, 64), 5);
  reduction.d = op::matrix(std::uint64_t{2} << 20, DType::f32, 20, 64);
  const Explanation explanation = engine_.explain(reduction, {}, {}, {}, registry::Promises{true, true});
  ASSERT_FALSE(explanation.kernels.empty()) << to_text(explanation);
  EXPECT_EQ(explanation.kernels.size(), engine_.find_kernels(reduction).size());
  EXPECT_EQ(explanation.order, plan::exact_order());
  for (const RankedKernel& ranked : explanation.kernels)
    EXPECT_EQ(ranked.kernel->metadata().promises, (registry::Promises{true, true}));

  reduction.epilogue = op::parse_epilogue("D = acc; column(total) = sum(acc)", DType::f32).value_or_throw();
  reduction.tensors = {{"total", op::matrix(std::uint64_t{3} << 20, DType::f32, 20, 1)}};
  EXPECT_THAT(reason(engine_.explain(reduction, {}, {}, {}, kInvariant), "reduce_split_k"),
              HasSubstr("that depends on the tile"));
  EXPECT_FALSE(engine_.explain(reduction, {}, {}, {}, kDeterministic).kernels.empty());
}

TEST_F(Promises, EpiloguesThatSumAreRefused) {
  HostProblem problem(32, 48, 64);
  problem.set_epilogue(op::parse_epilogue("D = acc; column(total) = sum(acc)", DType::f32).value_or_throw());
  EXPECT_FALSE(engine_.find_kernels(problem.gemm, {}, {}, {}, kDeterministic).empty());
  const Explanation explanation = engine_.explain(problem.gemm, {}, {}, {}, kInvariant);
  EXPECT_TRUE(explanation.kernels.empty());
  EXPECT_THAT(to_text(explanation),
              HasSubstr("the epilogue's output 'total' sums along N in an order that depends on"));
  EXPECT_THROW(engine_.run(problem.gemm, nullptr, nullptr, {}, kInvariant), InvalidArgument);
}

TEST_F(Promises, CostIsExplained) {
  const Explanation explanation = engine_.explain(few_rows(), {}, kSm90a, {}, kInvariant);
  ASSERT_TRUE(explanation.unrestricted_us);
  EXPECT_EQ(*explanation.unrestricted_us, engine_.find_kernels(few_rows(), {}, kSm90a).front().estimate_us);
  EXPECT_GT(explanation.kernels.front().estimate_us, *explanation.unrestricted_us);
  EXPECT_THAT(
      to_text(explanation),
      HasSubstr(fmt::format("required  batch_invariant: the best kernel takes {:.1f} us, without the requirement "
                            "{:.1f} us; order of sums: wgmma 64x0x16 over 4096\n",
                            explanation.kernels.front().estimate_us, *explanation.unrestricted_us)));
  const auto json = nlohmann::json::parse(to_json(explanation));
  EXPECT_EQ(json["required"]["order"], "wgmma 64x0x16 over 4096");
  EXPECT_EQ(json["required"]["batch_invariant"], true);
  EXPECT_EQ(json["required"]["unrestricted_us"], *explanation.unrestricted_us);
  EXPECT_FALSE(nlohmann::json::parse(to_json(engine_.explain(few_rows()))).contains("required"));
}

TEST_F(Promises, OptionsAreTheDefault) {
  Options options = emulator_options();
  options.required = kInvariant;
  const Engine strict(options);
  EXPECT_EQ(split_k_of(*strict.find_kernels(few_rows()).front().kernel), 1);
  EXPECT_GT(split_k_of(*strict.find_kernels(few_rows(), {}, {}, {}, registry::Promises()).front().kernel), 1);
}

TEST_F(Promises, ArePartOfWhatIsRemembered) {
  const op::Gemm gemm = few_rows();
  const std::string free = engine_.ranking(gemm)->kernels.front().kernel->name();
  const std::string bound = engine_.ranking(gemm, {}, kInvariant)->kernels.front().kernel->name();
  EXPECT_NE(free, bound);
  EXPECT_EQ(engine_.ranking(gemm)->kernels.front().kernel->name(), free);
  EXPECT_EQ(engine_.ranking(gemm, {}, kInvariant)->kernels.front().kernel->name(), bound);
  // The same for ready kernels. Shapes alone can be prepared.
  op::Gemm shape = gemm;
  for (op::Tensor* tensor : {&shape.a, &shape.b, &shape.c, &shape.d}) {
    tensor->address = 0;
    tensor->device = {op::MemoryDevice::Kind::shape, 0};
  }
  EXPECT_EQ(engine_.prepare(shape).kernel().name(), free);
  EXPECT_EQ(engine_.prepare(shape, nullptr, nullptr, kInvariant).kernel().name(), bound);
  EXPECT_EQ(engine_.prepare(shape).kernel().name(), free);
}

// A tuning chooses among the kernels without a requirement, so its winner must not count where one is required.
TEST_F(Promises, ATunedChoiceOfAnotherOrderDoesNotCount) {
  const op::Gemm gemm = few_rows();
  const auto kernels_of = [&](const registry::Promises& required) {
    std::vector<registry::KernelPtr> kernels;
    for (const RankedKernel& ranked : engine_.rank_by_estimate(gemm, required)) kernels.push_back(ranked.kernel);
    return kernels;
  };
  const auto splits = [](const registry::KernelPtr& kernel) { return split_k_of(*kernel) > 1; };
  const auto all = kernels_of({}), invariant = kernels_of(kInvariant);
  const auto winner = std::ranges::find_if(all, splits);
  ASSERT_NE(winner, all.end());
  // The choices are remembered in memory only, since the engine has no cache on disk.
  const auto remember = [&](const registry::KernelPtr& kernel, const std::vector<registry::KernelPtr>& among) {
    static_cast<void>(engine_.choices().remember(op::problem_class(gemm), {kernel->name(), 1.0, "{}"}, among));
    engine_.forget_rankings();
  };
  remember(*winner, all);
  EXPECT_EQ(engine_.ranking(gemm)->tuned->kernel, (*winner)->name());
  EXPECT_FALSE(engine_.ranking(gemm, {}, kInvariant)->tuned);
  // A tuning among the kernels with the required order counts there, and only there.
  remember(invariant.back(), invariant);
  EXPECT_EQ(engine_.ranking(gemm, {}, kInvariant)->kernels.front().kernel->name(), invariant.back()->name());
  EXPECT_EQ(engine_.ranking(gemm)->tuned->kernel, (*winner)->name());
}

TEST_F(Promises, UserDefinedKernelsAreRefusedWithoutThePromise) {
  const HostProblem problem(8, 12, 16);
  add_kernel({});
  EXPECT_EQ(engine_.ranking(problem.gemm)->kernels.front().kernel->metadata().family, "authored");
  EXPECT_EQ(reason(engine_.explain(problem.gemm, {}, {}, {}, kDeterministic), "authored"),
            "deterministic is required, but the kernel's metadata does not promise it");
  EXPECT_EQ(reason(engine_.explain(problem.gemm, {}, {}, {}, kInvariant), "authored"),
            "batch_invariant is required, but the kernel's metadata does not promise it");
  EXPECT_NE(engine_.ranking(problem.gemm, {}, kInvariant)->kernels.front().kernel->metadata().family, "authored");
  const registry::KernelPtr kernel = engine_.ranking(problem.gemm)->kernels.front().kernel;
  EXPECT_THROW(engine_.run(problem.gemm, kernel, nullptr, {}, kDeterministic), InvalidArgument);
  engine_.run(problem.gemm, kernel);
  EXPECT_THROW(engine_.run(problem.gemm, kernel, nullptr, {}, kDeterministic), InvalidArgument)
      << "a kernel that ran without the requirement is not remembered for calls with it";
}

TEST_F(Promises, UserDefinedKernelsWithThePromiseAreAcceptedByTheirProvider) {
  const HostProblem problem(8, 12, 16);
  add_kernel({.deterministic = true, .batch_invariant = true});
  EXPECT_EQ(engine_.ranking(problem.gemm, {}, kDeterministic)->kernels.front().kernel->metadata().family, "authored");
  // Its order is not known, so it is not mixed with kernels of a known one.
  EXPECT_THAT(reason(engine_.explain(problem.gemm, {}, {}, {}, kInvariant), "authored"),
              HasSubstr("the order of this kernel is not known: name its provider"));
  const std::vector<std::string> own{"authored"};
  const auto found = engine_.find_kernels(problem.gemm, {}, {}, own, kInvariant);
  ASSERT_EQ(found.size(), 1U);
  engine_.run(problem.gemm, found.front().kernel, nullptr, {}, kInvariant);
  EXPECT_TRUE(problem.compare().is_exact());
}

TEST_F(Promises, AGivenKernelMustHaveTheOrderOfItsFamily) {
  const op::Gemm gemm = few_rows();
  const auto ranked = engine_.find_kernels(gemm);
  const auto split = std::ranges::find_if(ranked, [](const auto& each) { return split_k_of(*each.kernel) > 1; });
  ASSERT_NE(split, ranked.end());
  EXPECT_THAT(engine_.check_promises(*split->kernel, gemm, kInvariant).reason(), HasSubstr("split_k"));
  EXPECT_TRUE(engine_.check_promises(*split->kernel, gemm, kDeterministic));
  const std::vector<std::string> simt{"simt_gemm"};
  const auto others = engine_.find_kernels(gemm, {}, {}, simt, kInvariant);
  ASSERT_FALSE(others.empty());
  EXPECT_TRUE(engine_.check_promises(*others.front().kernel, gemm, kInvariant));
}

// The kernels of programs need vectors of A, which a column-major A has for some M only.
TEST_F(Promises, GivenKernelsOfAFamilyWithoutAnOrderMustHaveThatOfTheRanking) {
  const op::Gemm gemm =
      plan::problem_of(plan::describe_f16({plan::kColumn, plan::kColumn, plan::kRow, plan::kRow}), 64, 64, 512);
  std::set<std::string> found;
  for (const RankedKernel& each : engine_.find_kernels(gemm, {}, kSm90a, {}, kInvariant))
    found.insert(each.kernel->name());
  std::set<bool> accepted;
  for (const RankedKernel& each : engine_.find_kernels(gemm, {}, kSm90a)) {
    if (each.kernel->metadata().family != "cuda_program") continue;
    const Support makes = engine_.check_promises(*each.kernel, gemm, kInvariant);
    EXPECT_EQ(static_cast<bool>(makes), found.contains(each.kernel->name())) << each.kernel->name();
    accepted.insert(static_cast<bool>(makes));
  }
  EXPECT_EQ(accepted.size(), 2U) << "some kernels have the order, and some do not";
}

}  // namespace
}  // namespace tilewright::engine
