// Contractions on the families of GEMMs, against their definition.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <map>

#include "tests/conformance/gemm_checks.hpp"
#include "tests/conformance/guarded_tensors.hpp"
#include "tests/unit/op/direct_contraction.hpp"
#include "tilewright/op/epilogue_text.hpp"
#include "tilewright/plan/design.hpp"

namespace tilewright::conformance {
namespace {

using GuardedContraction = GuardedTensors<op::Contraction>;

class Contractions : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (is_missing(GetParam())) GTEST_SKIP() << "no GPU";
  }

  engine::Engine& engine() const { return engine_of(GetParam()); }

  /// One kernel of each family. Its design does not depend on the extents, if possible, so that few are compiled.
  std::map<std::string, registry::KernelPtr> kernels(const op::Problem& problem) const {
    std::map<std::string, registry::KernelPtr> first;
    for (const engine::RankedKernel& candidate : engine().find_kernels(problem)) {
      registry::KernelPtr& kernel = first[candidate.kernel->metadata().family];
      const auto order = [](const registry::KernelPtr& each) {
        const plan::GemmTiling& tiling = plan::tiling(each->metadata().design);
        return std::tuple{tiling.split_k, std::abs(tiling.tile.m * tiling.tile.n - 32 * 32),
                          plan::to_string(each->metadata().design)};
      };
      if (kernel == nullptr || order(candidate.kernel) < order(kernel)) kernel = candidate.kernel;
    }
    return first;
  }

  Placement placement(int offset_elements = 0) const {
    Placement placement{.offset_elements = offset_elements};
    if (engine().device()->properties().emulated) placement.red_zone = 0;
    return placement;
  }

  void expect_exact_of(const registry::KernelPtr& kernel, GuardedContraction& guarded) const {
    SCOPED_TRACE(kernel->name());
    guarded.upload();
    engine().run(guarded.on_device(), kernel);
    guarded.download();
    ASSERT_EQ(guarded.wrong(), "");
  }

  std::vector<std::string> expect_exact_in_every_family(const op::Contraction& contraction) const {
    SCOPED_TRACE(op::to_string(contraction) + " " + op::classes_text(contraction));
    GuardedContraction guarded(engine().device(), contraction, placement());
    std::vector<std::string> families;
    for (const auto& [family, kernel] : kernels(guarded.on_device())) {
      families.push_back(family);
      expect_exact_of(kernel, guarded);
    }
    return families;
  }
};

/// The signature whose kernel computes most contractions of this type and these layouts: all operands are folded and
/// aligned to elements.
op::GemmSignature shared_signature(op::GemmSignature signature) {
  for (op::TensorSignature* const tensor : {&signature.a, &signature.b, &signature.c, &signature.d}) {
    tensor->alignment = 1;
    tensor->folded_modes = 4;
  }
  return signature;
}

TEST_P(Contractions, EveryContractionOfTheTccgList) {
  std::map<std::string, int> computed;
  for (const std::string_view text : op::tccg_contractions()) {
    SCOPED_TRACE(text);
    for (const std::string& family : expect_exact_in_every_family(op::tccg_contraction(text, DType::f32)))
      ++computed[family];
    if (HasFailure()) return;
  }
  EXPECT_EQ(computed["simt_gemm"], 48);
}

TEST_P(Contractions, Random) {
  constexpr std::array kTypes{DType::f32, DType::f16, DType::f64, DType::s8};
  for (std::uint64_t seed = 0; seed < 200 && !HasFailure(); ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    const op::Contraction contraction = op::random_contraction(seed, kTypes[seed % kTypes.size()]);
    SCOPED_TRACE(op::to_string(contraction) + " " + op::classes_text(contraction));
    GuardedContraction guarded(engine().device(), contraction, placement());
    const std::map<std::string, registry::KernelPtr> offered = kernels(guarded.on_device());
    ASSERT_EQ(offered.count("simt_gemm"), 1U);
    const registry::KernelMetadata& metadata = offered.at("simt_gemm")->metadata();
    auto design = std::get<plan::SimtGemmDesign>(metadata.design);
    design.tile = {32, 32, 16};
    design.warps_m = design.warps_n = 2;
    design.stages = 3;
    design.split_k = 1;
    expect_exact_of(engine().make_kernel(shared_signature(metadata.operands()), design), guarded);
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, Contractions, testing::ValuesIn(devices()),
                         [](const auto& test) { return identifier(test.param); });

}  // namespace
}  // namespace tilewright::conformance
