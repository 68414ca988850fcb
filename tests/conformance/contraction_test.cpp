// Contractions on the families of GEMMs, against their definition.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>

#include "tests/conformance/gemm_checks.hpp"
#include "tests/conformance/guarded_tensors.hpp"
#include "tests/conformance/planted_kernel.hpp"
#include "tests/unit/op/direct_contraction.hpp"
#include "tilewright/base/error.hpp"
#include "tilewright/op/epilogue_text.hpp"
#include "tilewright/plan/design.hpp"

namespace tilewright::conformance {
namespace {

using GuardedContraction = GuardedTensors<op::Contraction>;

constexpr const char* kCopies = "permuted_gemm";

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

  /// The first kernel of each choice of operands to copy, by the letters of these.
  std::map<std::string, registry::KernelPtr> copying_kernels(const op::Problem& problem) const {
    std::map<std::string, registry::KernelPtr> first;
    for (const engine::RankedKernel& candidate : engine().find_kernels(problem)) {
      const registry::KernelMetadata& metadata = candidate.kernel->metadata();
      if (metadata.family == kCopies) first.insert({op::to_string(metadata.permuted), candidate.kernel});
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

  /// What is wrong with the results of a kernel with a fault, or the finding of the emulator.
  std::string found_fault(GuardedContraction& guarded, const registry::KernelPtr& kernel,
                          std::span<const Substitution> planted) const {
    guarded.upload();
    try {
      engine().run(guarded.on_device(), std::make_shared<PlantedKernel>(kernel, planted));
    } catch (const EmulationError& error) {
      return error.what();
    }
    guarded.download();
    return guarded.wrong();
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

/// Packed tensors whose first mode has stride 1, with the extent of each letter.
op::Contraction packed_contraction(std::string_view expression, const std::map<char, std::int64_t>& extents,
                                   DType type) {
  const auto modes = op::parse_contraction(expression).value_or_throw();
  op::Contraction contraction;
  contraction.modes_a = modes[0];
  contraction.modes_b = modes[1];
  contraction.modes_d = modes[2];
  std::uint64_t number = 0;
  for (const auto& [tensor, letters] : {std::pair{&contraction.a, &contraction.modes_a},
                                        {&contraction.b, &contraction.modes_b},
                                        {&contraction.d, &contraction.modes_d}}) {
    tensor->address = ++number << 40;
    tensor->dtype = type;
    std::int64_t stride = 1;
    for (const char letter : *letters) {
      tensor->shape.append(extents.at(letter));
      tensor->stride.append(stride);
      stride *= extents.at(letter);
    }
  }
  contraction.accumulator = op::default_accumulator(type);
  contraction.d.dtype = op::default_output(type);
  contraction.epilogue = op::linear_combination(op::default_compute(contraction.accumulator, contraction.d.dtype));
  contraction.c = contraction.d;
  contraction.c.address = std::uint64_t{4} << 40;
  return contraction;
}

TEST_P(Contractions, TensorCoresComputeFoldedOperands) {
  const std::map<char, std::int64_t> extents{{'a', 8}, {'b', 3}, {'c', 5}, {'i', 16}, {'j', 3},
                                             {'k', 8}, {'l', 2}, {'m', 8}, {'n', 3}};
  // A and B are folded along k, along m and n, or along both; contiguous in k, m or n; D in m or n.
  for (const std::string_view expression : {"imjn,lnkm->ijkl", "mink,lnjm->ijkl", "ijma,mkbc->abcijk", "kij,klj->il",
                                            "mijb,mkac->abcijk", "kxyw,kwxz->yxzw"}) {
    std::map<char, std::int64_t> all = extents;
    all.insert({{'x', 3}, {'w', 2}, {'y', 8}, {'z', 16}});
    for (const DType type : {DType::f16, DType::s8}) {
      if (type == DType::s8 && expression != "kij,klj->il") continue;  // both operands must be contiguous along k
      if (type == DType::s8) all = {{'k', 16}, {'i', 5}, {'j', 3}, {'l', 7}};
      const op::Contraction contraction = packed_contraction(expression, all, type);
      EXPECT_THAT(expect_exact_in_every_family(contraction), testing::Contains("sm80_gemm")) << expression;
      if (HasFailure()) return;
    }
  }
  op::Contraction tf32 = packed_contraction("imjn,lnkm->ijkl", extents, DType::f32);
  tf32.math = op::MathOperation::multiply_add_tf32;
  tf32.beta = 1.0;
  EXPECT_THAT(expect_exact_in_every_family(tf32), testing::Contains("sm80_gemm"));
}

TEST_P(Contractions, SplitK) {
  const op::Contraction contraction =
      packed_contraction("kil,kjl->ij", {{'k', 40}, {'l', 30}, {'i', 16}, {'j', 24}}, DType::f16);
  GuardedContraction guarded(engine().device(), contraction, placement());
  std::map<std::string, registry::KernelPtr> split;
  for (const engine::RankedKernel& candidate : engine().find_kernels(guarded.on_device())) {
    if (plan::tiling(candidate.kernel->metadata().design).split_k > 1)
      split.insert({candidate.kernel->metadata().family, candidate.kernel});
  }
  EXPECT_EQ(split.count("sm80_gemm"), 1U);
  for (const auto& [family, kernel] : split) expect_exact_of(kernel, guarded);
}

TEST_P(Contractions, EpiloguesReadTensorsOfFoldedOutputs) {
  op::Contraction contraction = packed_contraction("ijm,mkl->kijl", {{'i', 8}, {'j', 3}, {'m', 8}, {'k', 4}, {'l', 5}},
                                                   DType::f16);  // D is folded
  contraction.epilogue = *op::parse_epilogue(
      "D = relu(alpha * acc + row(bias) + column(shift) + beta * C); row(sums) = sum(acc)", DType::f32);
  const auto tensor = [](std::uint64_t number, DType type, const op::Dims& shape, const op::Dims& stride) {
    op::Tensor made;
    made.address = number << 40;
    made.dtype = type;
    made.shape = shape;
    made.stride = stride;
    return made;
  };
  contraction.beta = 1.0;
  contraction.tensors = {{"bias", tensor(5, DType::f32, {4, 1, 1, 5}, {1, 1, 1, 4})},
                         {"shift", tensor(6, DType::f32, {1, 8, 3, 1}, {1, 1, 8, 1})},
                         {"sums", tensor(7, DType::f32, {4, 1, 1, 5}, {1, 1, 1, 4})}};
  GuardedContraction guarded(engine().device(), contraction);
  for (const auto& [family, kernel] : kernels(guarded.on_device())) {
    SCOPED_TRACE(kernel->name());
    guarded.upload();
    engine().run(guarded.on_device(), kernel);
    guarded.download();
    const op::Comparison comparison = op::compare(op::Problem(guarded.host()));
    EXPECT_TRUE(comparison.is_exact()) << op::to_string(comparison);
  }
}

TEST_P(Contractions, ThoseThatFoldAreComputedByEveryFamilyOfGemms) {
  for (const auto& [expression, extents] :
       {std::pair{"abk,kcd->abcd", std::map<char, std::int64_t>{{'a', 8}, {'b', 5}, {'k', 24}, {'c', 8}, {'d', 3}}},
        {"mk,knb->mnb", {{'m', 40}, {'k', 16}, {'n', 24}, {'b', 3}}},
        {"kmb,knb->nmb", {{'m', 40}, {'k', 16}, {'n', 24}, {'b', 3}}},
        {"km,kbn->bmn", {{'m', 40}, {'k', 16}, {'n', 24}, {'b', 8}}}}) {
    const std::vector<std::string> families =
        expect_exact_in_every_family(packed_contraction(expression, extents, DType::f16));
    EXPECT_THAT(families, testing::IsSupersetOf({"simt_gemm", "sm80_gemm"})) << expression;
    const bool has_sm90 = std::ranges::count(families, "sm90_gemm") == 1;
    // The last one has a folded C, which sm90_gemm has no code for.
    EXPECT_EQ(has_sm90, GetParam() != "emulator:sm_80" && expression != std::string_view("km,kbn->bmn")) << expression;
  }
}

TEST_P(Contractions, Sm90LoadsFoldedOperandsByTmaAndStoresThem) {
  if (GetParam() == "emulator:sm_80") GTEST_SKIP() << "no TMA";
  // Queries and keys of attention, whose batch is folded; K of two modes along the lines of B, and along those of A;
  // two modes of m.
  for (const auto& [expression, extents] :
       {std::pair{"dhqb,dhkb->qkhb", std::map<char, std::int64_t>{{'d', 64}, {'h', 2}, {'q', 40}, {'k', 24}, {'b', 3}}},
        {"mkl,nlk->mn", {{'m', 40}, {'k', 64}, {'l', 3}, {'n', 24}}},
        {"kml,kln->mn", {{'m', 40}, {'k', 64}, {'l', 3}, {'n', 24}}},
        {"kixj,kxn->ijnx", {{'k', 24}, {'i', 128}, {'x', 2}, {'j', 2}, {'n', 16}}},
        // D is folded along m, along n, along both, and along the batch.
        {"km,kbn->bmn", {{'m', 40}, {'k', 16}, {'n', 24}, {'b', 8}}},
        {"kbm,kn->bnm", {{'m', 40}, {'k', 16}, {'n', 24}, {'b', 8}}},
        {"kim,kjn->ijmn", {{'i', 72}, {'j', 3}, {'m', 5}, {'n', 40}, {'k', 64}}},
        {"khqb,dkhb->dhqb", {{'d', 64}, {'h', 2}, {'q', 40}, {'k', 64}, {'b', 3}}}}) {
    op::Contraction contraction = packed_contraction(expression, extents, DType::f16);
    contraction.epilogue = *op::parse_epilogue("D = alpha * acc", DType::f32);  // without C
    EXPECT_THAT(expect_exact_in_every_family(contraction), testing::Contains("sm90_gemm")) << expression;
    if (HasFailure()) return;
  }
  const auto refusal = [&](const char* expression, const std::map<char, std::int64_t>& extents) {
    const op::Problem problem = packed_contraction(expression, extents, DType::f16);
    std::string reasons;
    for (const registry::RefusedKernel& each : engine().explain(problem).refused) {
      if (each.name.starts_with("sm90_gemm")) reasons += each.refusal.reason + "\n";
    }
    return reasons;
  };
  EXPECT_THAT(refusal("kml,kln->mn", {{'m', 40}, {'k', 40}, {'l', 3}, {'n', 24}}),
              testing::HasSubstr("boxes of 64 adjacent elements of A, which must divide the 40 of the first mode"));
  EXPECT_THAT(refusal("mkl,nlk->mn", {{'m', 40}, {'k', 40}, {'l', 3}, {'n', 24}}),
              testing::HasSubstr("lines of B together, which must divide the 40 of the first mode"));
}

constexpr const char* kFolded = "operand/folded_matrix.cuh";

TEST_P(Contractions, FaultsInTheModesAreFound) {
  if (GetParam() == "cuda") GTEST_SKIP() << "a fault may make the context of a GPU unusable";
  const op::Contraction contraction =
      packed_contraction("imjn,lnkm->iljk", {{'i', 8}, {'j', 3}, {'m', 8}, {'n', 3}, {'k', 4}, {'l', 2}}, DType::f16);
  const std::vector<std::vector<Substitution>> faults{
      {{kFolded, "index = rest;", ""}},
      {{kFolded, "(index - rest * coordinate[i].extent) * coordinate[i].stride", "index * coordinate[i].stride"}},
      {{kFolded, "return sum + index * coordinate[kCount - 1].stride;", "return sum;"}},
      {{kFolded, "return {line + along, true};", "return {line, true};"}},
      {{kFolded, "? matrix.line(row) + matrix.along(column)", "? matrix.line(column) + matrix.along(row)"}},
  };
  GuardedContraction guarded(engine().device(), contraction);
  for (const auto& [family, kernel] : kernels(guarded.on_device())) {
    if (family == kCopies) continue;
    for (const std::vector<Substitution>& planted : faults) {
      SCOPED_TRACE(family + " " + std::string(planted.front().to));
      EXPECT_NE(found_fault(guarded, kernel, planted), "");
    }
  }
  // A batch of two coordinates that do not merge.
  const op::Contraction batch =
      packed_contraction("xmyk,yxkn->xymn", {{'x', 2}, {'y', 3}, {'m', 8}, {'k', 8}, {'n', 8}}, DType::f16);
  GuardedContraction guarded_batch(engine().device(), batch);
  const std::vector<Substitution> first_matrix{{kFolded, "return matrix.batch.offset(index);", "return 0;"}};
  for (const auto& [family, kernel] : kernels(guarded_batch.on_device())) {
    if (family == kCopies) continue;
    guarded_batch.upload();
    engine().run(guarded_batch.on_device(), std::make_shared<PlantedKernel>(kernel, first_matrix));
    guarded_batch.download();
    EXPECT_NE(guarded_batch.wrong(), "") << family;
  }
}

TEST_P(Contractions, CopiesOfOperandsAreExact) {
  const std::map<char, std::int64_t> even{{'a', 8},  {'b', 3}, {'c', 8}, {'i', 16}, {'j', 6}, {'k', 8},
                                          {'l', 16}, {'m', 8}, {'n', 4}, {'x', 3},  {'y', 2}};
  const std::map<char, std::int64_t> odd{{'a', 7}, {'b', 3}, {'c', 5}, {'i', 9}, {'j', 6}, {'k', 5},
                                         {'l', 3}, {'m', 7}, {'n', 4}, {'x', 3}, {'y', 2}};
  std::map<std::string, int> computed;
  for (const auto& [expression, extents, type, beta] : {std::tuple{"minj,nlmk->ijkl", &even, DType::f16, 0.0},
                                                        {"minj,nlmk->ijkl", &odd, DType::s8, 1.0},
                                                        {"kil,lkj->ij", &odd, DType::f16, 1.0},
                                                        {"cbka,kj->abjc", &even, DType::f32, 1.0},
                                                        {"xmyk,yxkn->xymn", &odd, DType::f64, 0.0},
                                                        {"imjn,lnkm->ikjl", &even, DType::s8, 0.0},
                                                        {"imjn,lnkm->ikjl", &odd, DType::f16, 1.0}}) {
    op::Contraction contraction = packed_contraction(expression, *extents, type);
    contraction.beta = beta;
    SCOPED_TRACE(op::to_string(contraction) + " " + op::classes_text(contraction));
    GuardedContraction guarded(engine().device(), contraction, placement());
    for (const auto& [operands, kernel] : copying_kernels(guarded.on_device())) {
      SCOPED_TRACE(fmt::format("{} is copied", operands));
      expect_exact_of(kernel, guarded);
      ++computed[operands];
    }
    if (HasFailure()) return;
  }
  for (const char* const operands : {"a", "b", "ab", "d"}) EXPECT_GT(computed[operands], 0) << operands;
}

// Each seed takes one of the choices of operands to copy that there are.
TEST_P(Contractions, RandomThroughCopies) {
  constexpr std::array kTypes{DType::f32, DType::f16, DType::f64, DType::s8};
  int computed = 0;
  for (std::uint64_t seed = 0; seed < 100 && !HasFailure(); ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    const op::Contraction contraction = op::random_contraction(seed, kTypes[seed % kTypes.size()]);
    SCOPED_TRACE(op::to_string(contraction) + " " + op::classes_text(contraction));
    GuardedContraction guarded(engine().device(), contraction, placement());
    const std::map<std::string, registry::KernelPtr> offered = copying_kernels(guarded.on_device());
    if (offered.empty()) continue;
    const auto chosen = std::next(offered.begin(), static_cast<std::ptrdiff_t>(seed / kTypes.size() % offered.size()));
    expect_exact_of(chosen->second, guarded);
    ++computed;
  }
  EXPECT_GT(computed, 50);
}

TEST_P(Contractions, Sm90ComputesCopies) {
  if (GetParam() == "emulator:sm_80") GTEST_SKIP() << "no TMA";
  const op::Contraction contraction = packed_contraction(
      "minj,nlmk->ijkl", {{'i', 24}, {'j', 4}, {'k', 8}, {'l', 12}, {'m', 24}, {'n', 6}}, DType::bf16);
  GuardedContraction guarded(engine().device(), contraction, placement());
  int computed = 0;
  for (const auto& [operands, kernel] : copying_kernels(guarded.on_device())) {
    if (kernel->name().find("sm90_gemm") == std::string::npos) continue;
    expect_exact_of(kernel, guarded);
    ++computed;
  }
  EXPECT_GT(computed, 0);
}

TEST_P(Contractions, FaultsInStoresOfAFoldedOutputAreFound) {
  if (GetParam() == "cuda") GTEST_SKIP() << "a fault may make the context of a GPU unusable";
  if (GetParam() == "emulator:sm_80") GTEST_SKIP() << "no TMA";
  op::Contraction contraction = packed_contraction(
      "kimb,kjnb->ijmnb", {{'i', 72}, {'j', 3}, {'m', 5}, {'n', 40}, {'k', 64}, {'b', 2}}, DType::f16);
  contraction.epilogue = *op::parse_epilogue("D = alpha * acc", DType::f32);  // without C
  GuardedContraction guarded(engine().device(), contraction);
  const std::map<std::string, registry::KernelPtr> offered = kernels(guarded.on_device());
  ASSERT_EQ(offered.count("sm90_gemm"), 1U);
  constexpr const char* kOutput = "epilogue/warpgroup_output.cuh";
  for (const Substitution& planted :
       {Substitution{kOutput, "+ modes.batch.offset(tile.batch);", ";"},
        {kOutput, "modes.line(first_y + line) + modes.along(first_x + along)", "modes.line(first_y + line)"},
        {kOutput, "if (first_y + line >= end_y || first_x + along >= end_x) continue;", ""}}) {
    EXPECT_NE(found_fault(guarded, offered.at("sm90_gemm"), std::span(&planted, 1)), "") << planted.from;
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, Contractions, testing::ValuesIn(devices()),
                         [](const auto& test) { return identifier(test.param); });

}  // namespace
}  // namespace tilewright::conformance
