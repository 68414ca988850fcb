#include "tests/conformance/gemm_checks.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>

#include "bench/arguments.hpp"
#include "tilewright/base/text.hpp"
#include "tilewright/op/fill.hpp"
#include "tilewright/runtime/cuda_device.hpp"

namespace tilewright::conformance {

engine::Engine& engine_of(const std::string& device) {
  static std::map<std::string, std::unique_ptr<engine::Engine>> engines;
  std::unique_ptr<engine::Engine>& engine = engines[device];
  if (!engine) {
    engine::Options options = engine::Options::from_environment();
    options.device = device;
    engine = std::make_unique<engine::Engine>(options);
  }
  return *engine;
}

std::vector<std::string> devices() {
  const char* chosen = std::getenv("TILEWRIGHT_DEVICES");
  return split(chosen != nullptr ? chosen : "emulator:sm_80,emulator:sm_90a", ',');
}

op::Gemm shape_of(const bench::Problem& problem) {
  constexpr std::uint64_t kApart = std::uint64_t{1} << 40;
  op::Gemm gemm = *bench::gemm(problem, {.a = kApart, .b = 2 * kApart, .d = 4 * kApart, .plain = 4 * kApart}, {});
  gemm.c = gemm.d;
  gemm.c.address = 3 * kApart;
  return gemm;
}

op::Gemm batch_of(op::Gemm gemm, std::int64_t batch, const std::string& one) {
  const auto step = [&](char letter) {
    return one.find(letter) != std::string::npos ? std::optional(0) : std::nullopt;
  };
  gemm.a = op::batched(gemm.a, batch, step('A'));
  gemm.b = op::batched(gemm.b, batch, step('B'));
  gemm.c = op::batched(gemm.c, batch, step('C'));
  gemm.d = op::batched(gemm.d, batch);
  return gemm;
}

op::Gemm with_pointer_arrays(op::Gemm gemm, const std::string& letters, int alignment) {
  const std::array<std::pair<char, op::Tensor*>, 4> operands{
      {{'A', &gemm.a}, {'B', &gemm.b}, {'C', &gemm.c}, {'D', &gemm.d}}};
  for (const auto& [letter, tensor] : operands) {
    if (letters.find(letter) == std::string::npos) continue;
    const op::Tensor one = op::matrix_at(*tensor, 0);
    *tensor = op::pointer_array(one, tensor->address, gemm.batch(), alignment);
  }
  return gemm;
}

void fill_exactly(const op::Gemm& gemm) {
  const std::int64_t limit = gemm.accumulator == DType::f16 ? 1 : 3;
  std::uint64_t seed = 1;
  for (const op::Tensor* input : {&gemm.a, &gemm.b, &gemm.c}) {
    op::fill_integers(*input, input->dtype == DType::u8 ? 0 : -limit, limit, seed++);
  }
  for (const op::NamedTensor& each : gemm.tensors)
    op::fill_integers(each.tensor, each.tensor.dtype == DType::u8 ? 0 : -limit, limit, seed++);
}

void fill_randomly(const op::Tensor& tensor, std::uint64_t seed) {
  op::fill_normal(tensor, is_integer(tensor.dtype) ? 20.0 : 1.0, seed);
}

void fill_randomly(const op::Gemm& gemm) {
  std::uint64_t seed = 4;
  for (const op::Tensor* input : {&gemm.a, &gemm.b, &gemm.c}) fill_randomly(*input, seed++);
  for (const op::NamedTensor& each : gemm.tensors) fill_randomly(each.tensor, seed++);
}

op::Comparison run_once(engine::Engine& engine, const registry::KernelPtr& kernel, GuardedProblem& problem) {
  problem.upload();
  engine.run(problem.on_device(), kernel);
  problem.download();
  EXPECT_EQ(problem.damage(), "");
  return op::compare(problem.host());
}

void expect_exact(engine::Engine& engine, const registry::KernelPtr& kernel, GuardedProblem& problem) {
  fill_exactly(problem.host());
  const op::Comparison comparison = run_once(engine, kernel, problem);
  EXPECT_TRUE(comparison.is_exact()) << kernel->name() << "\n" << op::to_string(comparison);
}

void expect_within_bound(engine::Engine& engine, const registry::KernelPtr& kernel, GuardedProblem& problem) {
  fill_randomly(problem.host());
  const op::Comparison comparison = run_once(engine, kernel, problem);
  EXPECT_TRUE(comparison.is_within_bound()) << kernel->name() << "\n" << op::to_string(comparison);
}

std::vector<registry::KernelPtr> best_of_each_family(const engine::Engine& engine, const op::Problem& problem) {
  std::vector<registry::KernelPtr> best;
  std::set<std::string> seen{"cuda_program", "mlir"};
  for (const engine::RankedKernel& candidate : engine.find_kernels(problem)) {
    if (seen.insert(candidate.kernel->metadata().family).second) best.push_back(candidate.kernel);
  }
  return best;
}

namespace {

/// Whether a kernel of simt_gemm or sm80_gemm may have instructions that sm_80 lacks.
bool may_need_newer_instructions(const op::GemmSignature& signature) {
  const auto is_eight_bit_float = [](const auto& typed) { return is_fp8(typed.element); };
  const std::array operands{signature.a, signature.b, signature.c, signature.d};
  return signature.accumulator == DType::f64 || std::ranges::any_of(operands, is_eight_bit_float) ||
         std::ranges::any_of(signature.tensors, is_eight_bit_float) ||
         std::ranges::any_of(signature.epilogue.nodes, [](const op::EpilogueNode& node) { return is_fp8(node.type); });
}

}  // namespace

std::vector<registry::KernelPtr> without_kernels_of_sm80(const engine::Engine& engine,
                                                         std::vector<registry::KernelPtr> kernels) {
  if (engine.device()->properties().name != "emulator:sm_90a") return kernels;
  std::erase_if(kernels, [](const registry::KernelPtr& kernel) {
    const registry::KernelMetadata& metadata = kernel->metadata();
    return (metadata.family == "simt_gemm" || metadata.family == "sm80_gemm") &&
           !may_need_newer_instructions(metadata.operands());
  });
  return kernels;
}

std::string identifier(std::string text) {
  for (char& c : text) c = std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  return text;
}

bool is_missing(const std::string& device) { return device.starts_with("cuda") && runtime::cuda_device_count() == 0; }

}  // namespace tilewright::conformance
