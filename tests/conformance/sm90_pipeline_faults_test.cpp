// Faults that are planted in sm90_gemm's device code. The emulator must name the broken rule, the line, and the barrier
// that threads wait for. On a GPU most of these faults would have no effect, or cause wrong results now and then.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <set>

#include "tests/conformance/gemm_checks.hpp"
#include "tests/conformance/sm90_pipeline_faults.hpp"
#include "tilewright/op/epilogue_tensors.hpp"
#include "tilewright/op/epilogue_text.hpp"

namespace tilewright::conformance {
namespace {

using emulator::Finding;

class Sm90PipelineFaults : public testing::Test {
 protected:
  // One engine per test, because a kernel that is stopped leaves workspace counters that no other kernel may find.
  Sm90PipelineFaults() : engine_(options()) {}

  void SetUp() override {
    try {
      engine_.compiler();
    } catch (const ToolchainNotFound& error) {
      GTEST_SKIP() << error.what();
    }
  }

  /// The problem of a base, and its kernel.
  struct Case {
    Case(engine::Engine& engine, const Base& base)
        : problem(engine.device(), problem_of(base), base.placement),
          kernel(kernel_of(engine, base, problem.on_device())) {}

    static op::Gemm problem_of(const Base& base) {
      const auto [m, n, k] = base.problem;
      op::Gemm gemm = plan::problem_of(plan::describe(base.types, base.layouts), m, n, k);
      gemm.beta = base.beta;
      if (base.epilogue.empty()) return gemm;
      gemm.epilogue = op::parse_epilogue(base.epilogue, DType::f32).value_or_throw();
      for (const op::EpilogueTensor& each : op::epilogue_tensors(gemm.epilogue)) {
        gemm.tensors.push_back(
            {std::string(each.label), op::matrix(std::uint64_t{1} << 50, DType::f32, each.broadcast.along_m ? m : 1,
                                                 each.broadcast.along_n ? n : 1)});
      }
      return gemm;
    }
    static registry::KernelPtr kernel_of(engine::Engine& engine, const Base& base, const op::Gemm& gemm) {
      const op::GemmSignature description = op::describe(gemm);
      return engine.make_kernel(description, design_of(base.design, description));
    }
    std::shared_ptr<const PlantedKernel> planted(std::span<const Substitution> faults) const {
      return std::make_shared<PlantedKernel>(kernel, faults);
    }

    GuardedProblem problem;
    registry::KernelPtr kernel;
  };

  engine::Engine engine_;

 private:
  static engine::Options options() {
    engine::Options options = engine::Options::from_environment();
    options.device = "emulator:sm_90a";
    return options;
  }
};

/// Replaces {full} and {empty}, the mbarriers of stage 0, by "(dynamic shared memory + 1024)". The mbarriers of all
/// stages are at the end of the kernel's shared memory.
std::string with_barriers(const char* text, const Base& base, const registry::Kernel& kernel, const op::Gemm& gemm) {
  const int end = static_cast<int>(kernel.launch(gemm).dynamic_smem_bytes);
  std::string out = text;
  for (const auto& [name, at] :
       {std::pair{"{full}", end - 16 * base.design.stages}, std::pair{"{empty}", end - 8 * base.design.stages}}) {
    const std::size_t found = out.find(name);
    if (found == std::string::npos) continue;
    out.replace(found, std::string_view(name).size(), fmt::format("(dynamic shared memory + {})", at));
  }
  return out;
}

class EachSm90PipelineFault : public Sm90PipelineFaults, public testing::WithParamInterface<Fault> {};

TEST_P(EachSm90PipelineFault, IsNamed) {
  const Fault& fault = GetParam();
  Case tested(engine_, fault.base);
  const auto kernel = tested.planted(fault.planted);
  fill_exactly(tested.problem.host());
  tested.problem.upload();
  std::optional<Finding> finding;
  try {
    engine_.run(tested.problem.on_device(), kernel);
  } catch (const emulator::EmulationFinding& found) {
    finding = found.finding();
  }
  ASSERT_TRUE(finding) << "the emulator found no fault";
  const std::string text = emulator::to_string(*finding);
  EXPECT_EQ(emulator::name(finding->kind), emulator::name(fault.kind)) << text;
  if (*fault.line != '\0') {
    EXPECT_THAT(kernel->lines_at(finding->location), testing::Contains(testing::HasSubstr(fault.line))) << text;
  }
  for (const char* says : fault.says) {
    EXPECT_THAT(text, testing::HasSubstr(with_barriers(says, fault.base, *kernel, tested.problem.on_device())));
  }
}

INSTANTIATE_TEST_SUITE_P(All, EachSm90PipelineFault,
                         testing::ValuesIn(pipeline_faults().begin(), pipeline_faults().end()),
                         [](const auto& tested) { return std::string(tested.param.name); });

// Without a fault, the same sources must have no findings.
TEST_F(Sm90PipelineFaults, AreNotReportedForUnchangedCode) {
  std::set<const Base*> bases;
  for (const Fault& fault : pipeline_faults()) bases.insert(&fault.base);
  for (const Base* base : bases) {
    SCOPED_TRACE(base->design.name);
    Case tested(engine_, *base);
    expect_exact(engine_, tested.planted({}), tested.problem);
  }
}

TEST_F(Sm90PipelineFaults, AreRefusedIfTheTextToReplaceIsMissing) {
  const Case tested(engine_, pipeline_faults().front().base);
  for (const Substitution& gone : {Substitution{"pipeline/tma_ring.cuh", "no such text", ""},
                                   {"pipeline/tma_ring.cuh", "ptx::", ""},
                                   {"pipeline/no_such.cuh", "x", "y"},
                                   {"gemm/sm80_gemm.cuh", "#pragma once", ""}}) {
    EXPECT_THROW(tested.planted(std::span(&gone, 1)), InvalidArgument) << gone.header << ": " << gone.from;
  }
}

}  // namespace
}  // namespace tilewright::conformance
