#include "tilewright/kernels/weight_gemm.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <functional>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "tilewright/arch/limits.hpp"
#include "tilewright/base/float_format.hpp"
#include "tilewright/base/rounding.hpp"
#include "tilewright/base/target_features.hpp"
#include "tilewright/base/tensor_map.hpp"
#include "tilewright/lower/cuda/program.hpp"
#include "tilewright/op/fill.hpp"
#include "tilewright/program/launch.hpp"
#include "tilewright/program/packed_weights.hpp"
#include "tilewright/program/weight_gemm.hpp"
#include "tilewright/program/weight_gemm_cost.hpp"
#include "tilewright/program/weight_gemv.hpp"

namespace tilewright::kernels {
namespace {

constexpr const char* kName = "weight_gemm";
/// How many kernels a problem is offered.
constexpr std::size_t kMaxKernels = 8;

/// The type of the weights in a tensor whose elements are bytes.
DType weights_of(DType stored) { return stored == DType::u8 ? DType::s4 : stored; }

class WeightGemm final : public op::Operation {
 public:
  WeightGemm()
      : Operation(kName,
                  {{"weights", {"packed"}, op::Access::read, {DType::u8, DType::s8, DType::e4m3}},
                   {"scales", {"groups", "outputs"}, op::Access::read, {DType::f16, DType::bf16, DType::f32}},
                   {"x", {"tokens", "inputs"}, op::Access::read, {DType::f16, DType::bf16}},
                   {"out", {"tokens", "outputs"}, op::Access::write, {DType::f16, DType::bf16, DType::f32}}},
                  {{"group", 128}}) {}

  Support check(const op::Custom& problem) const override {
    const double group = problem.scalar("group");
    const std::int64_t inputs = problem.extent("inputs"), outputs = problem.extent("outputs");
    if (group < 0 || group != std::floor(group) || group > 1e9)
      return refuse("group must be an integer of at least 0, got {}", group).as(RefusalCode::shape);
    if (inputs < 1 || outputs < 1)
      return refuse("inputs and outputs are at least 1, got {} and {}", inputs, outputs).as(RefusalCode::shape);
    const auto size = static_cast<std::int64_t>(group);
    const std::int64_t groups = size == 0 ? 1 : ceil_div(inputs, size);
    if (problem.extent("groups") != groups) {
      return refuse("{} inputs in groups of {} have {} scales for each output, got {}", inputs, size, groups,
                    problem.extent("groups"))
          .as(RefusalCode::shape);
    }
    const DType type = weights_of(problem.tensor("weights").dtype);
    const std::int64_t bytes = program::packed_bytes(type, outputs, inputs);
    if (problem.extent("packed") != bytes) {
      return refuse("{} x {} packed weights of {} are {} bytes, got {}", outputs, inputs, tilewright::name(type), bytes,
                    problem.extent("packed"))
          .as(RefusalCode::shape);
    }
    return {};
  }

  bool has_reference() const override { return true; }
  void reference(const op::Custom& problem) const override {
    const op::Tensor &packed = problem.tensor("weights"), &scales = problem.tensor("scales"), &x = problem.tensor("x");
    const std::int64_t inputs = problem.extent("inputs"), outputs = problem.extent("outputs");
    const auto group = static_cast<std::int64_t>(problem.scalar("group"));
    const DType type = weights_of(packed.dtype);
    const auto* bytes = reinterpret_cast<const std::byte*>(packed.address);  // NOLINT(performance-no-int-to-ptr)
    const std::vector<std::int8_t> weights = program::unpack_weights(
        type, outputs, inputs, std::span(bytes, static_cast<std::size_t>(problem.extent("packed"))));
    for (std::int64_t token = 0; token < problem.extent("tokens"); ++token) {
      for (std::int64_t output = 0; output < outputs; ++output) {
        double sum = 0;
        for (std::int64_t input = 0; input < inputs; ++input) {
          const std::int8_t weight = weights[static_cast<std::size_t>(output * inputs + input)];
          const double value = type == DType::e4m3 ? static_cast<double>(e4m3_to_f32(static_cast<std::uint8_t>(weight)))
                                                   : static_cast<double>(weight);
          sum += value * op::load(scales, group == 0 ? 0 : input / group, output) * op::load(x, token, input);
        }
        op::store(problem.tensor("out"), token, output, sum);
      }
    }
  }
  /// A weight times its scale is rounded to the type of x, which is coarser than the sum.
  double tolerance() const override { return 0.02; }
};

const op::Custom* problem_of(const op::Problem& problem) {
  const auto* custom = std::get_if<op::Custom>(&problem);
  return custom != nullptr && custom->operation->name() == kName ? custom : nullptr;
}

program::LaunchArguments arguments_of(const op::Custom& problem) {
  program::LaunchArguments arguments;
  arguments.integer("m", problem.extent("outputs")).integer("n", problem.extent("tokens"));
  arguments.integer("k", problem.extent("inputs"));
  arguments.integer("ld_activations", problem.tensor("x").stride[0]);
  arguments.integer("ld_scales", problem.tensor("scales").stride[0]);
  arguments.integer("ldd", problem.tensor("out").stride[0]);
  arguments.address("weights", problem.tensor("weights").address).address("scales", problem.tensor("scales").address);
  arguments.address("activations", problem.tensor("x").address).address("d", problem.tensor("out").address);
  return arguments;
}

program::WeightGemmExtents extents_of(const op::Custom& problem) {
  return {.m = problem.extent("outputs"), .n = problem.extent("tokens"), .k = problem.extent("inputs")};
}

/// Whether all lines of the matrix begin and end at multiples of 16 bytes, so that TMA can store them. TMA stores whole
/// units of 16 bytes.
bool has_aligned_lines(const op::Tensor& out) {
  const std::int64_t elements = kTmaAlignment / bytes(out.dtype);
  return out.address % kTmaAlignment == 0 && out.stride[0] % elements == 0 && out.shape[1] % elements == 0;
}

std::string kernel_name(const program::WeightGemmDescription& about) {
  return fmt::format("{}_{}_{}_{}_{}_g{}_n{}_k{}_s{}_c{}x{}_split{}_p{}_x{}{}{}", kName, name(about.weights),
                     name(about.activations), name(about.scales), name(about.d), about.group, about.tile_n,
                     about.tile_k, about.stages, about.consumers, about.consumers_k, about.split_k, about.ctas_per_sm,
                     about.cluster_m, about.streaming_ctas > 0 ? "_stream" : "", about.stores_by_tma ? "_tma" : "");
}

/// A kernel of weight_gemm() or weight_gemv().
class WeightKernel final : public registry::Kernel {
 public:
  /// Returns the predicted time for a problem in microseconds.
  using Estimate = std::function<double(const op::Custom&)>;

  /// `group` is how many inputs share a scale.
  WeightKernel(registry::KernelMetadata metadata, int group, program::Program program, Estimate estimate_us)
      : Kernel(std::move(metadata)),
        group_(group),
        program_(std::move(program)),
        estimate_us_(std::move(estimate_us)) {}

  bool writes_whole_outputs() const override { return true; }

 protected:
  Support do_supports(const op::Problem& problem) const override {
    const auto& custom = std::get<op::Custom>(problem);
    if (custom.scalar("group") != group_)
      return refuse("computes groups of {}, got {}", group_, custom.scalar("group")).as(RefusalCode::shape);
    return check_arguments(program_, arguments_of(custom));
  }
  compile::Source do_source() const override {
    compile::Source source;
    source.text = lower::cuda::lower(program_);
    return source;
  }
  plan::Launch do_launch(const op::Problem& problem) const override {
    return program::launch(program_, arguments_of(std::get<op::Custom>(problem)));
  }
  double do_estimate_us(const op::Problem& problem) const override {
    return estimate_us_(std::get<op::Custom>(problem));
  }

 private:
  int group_;
  program::Program program_;
  Estimate estimate_us_;
};

std::string kernel_name(const program::WeightGemvDescription& about) {
  return fmt::format("weight_gemv_{}_{}_{}_{}_g{}_n{}_m{}_w{}_u{}_p{}{}", name(about.weights), name(about.activations),
                     name(about.scales), name(about.d), about.group, about.tile_n, about.rows, about.warps_k,
                     about.unrolled, about.ctas_per_sm, about.whole_chunks ? "" : "_any");
}

/// The predicted time of weight_gemv() for up to 8 tokens. Three sizes of s4 with groups of 128 were measured (H200,
/// 2026-11-26): 4096x4096 took 5.4 us, 14336x4096 13.4 and 28672x8192 42.7.
double gemv_us(const op::Custom& problem, const Target& target, DType weights) {
  constexpr double kStartUs = 2.2, kWeightsPerUs = 5.5e6, kDramShare = 0.8;
  const double count = static_cast<double>(problem.extent("outputs")) * static_cast<double>(problem.extent("inputs"));
  const double dram_us = count * bits(weights) / 8 / (arch::limits(target).dram_bytes_per_s * kDramShare) * 1e6;
  return kStartUs + std::max(count / kWeightsPerUs, dram_us);
}

class WeightGemmProvider final : public registry::Provider {
 public:
  std::string family() const override { return kName; }

  Support runs_on(const Target& target) const override { return check_feature(target, TargetFeature::wgmma); }

  void discover(const op::Problem& problem, const Target& target, registry::Discovery& found) const override {
    const op::Custom* custom = problem_of(problem);
    if (custom == nullptr) {
      found.refused.push_back(
          {kName, refuse("computes only weight_gemm, but the problem is a {}", op::operation_name(problem))
                      .as(RefusalCode::operation)});
      return;
    }
    const std::vector<program::WeightGemmDescription> designs = descriptions(*custom, target);
    for (const program::WeightGemmDescription& about : designs) {
      const std::string name = kernel_name(about);
      add_kernel(
          *custom, metadata_of(name, operands_of(*custom, about.stores_by_tma), target),
          program::weight_gemm(name, about),
          [about](const op::Custom& timed) { return predicted_us(about, extents_of(timed)); }, found);
    }
    discover_gemv(*custom, target, designs, found);
  }

  Result<registry::KernelPtr> make(const op::Signature& signature, const plan::Design& /*design*/) const override {
    if (signature.operation != kName) {
      return refuse("computes only weight_gemm, got {}", signature.operation).as(RefusalCode::operation);
    }
    return refuse("makes no kernel of a given design: find_kernels() offers those that suit a problem");
  }

 private:
  static registry::KernelMetadata metadata_of(const std::string& name, std::vector<op::OperandSignature> operands,
                                              const Target& target) {
    registry::KernelMetadata metadata;
    metadata.family = kName;
    metadata.name = name;
    metadata.signature = {kName, std::move(operands)};
    metadata.promises = {.deterministic = true, .batch_invariant = false};
    plan::tiling(metadata.design).target = target;
    return metadata;
  }

  /// Adds the kernel of the program, or the reason why there is none or why it does not compute the problem.
  static void add_kernel(const op::Custom& problem, registry::KernelMetadata metadata, Result<program::Program> program,
                         WeightKernel::Estimate estimate_us, registry::Discovery& found) {
    const std::string name = metadata.name;
    if (!program) {
      found.refused.push_back({name, program.refusal()});
      return;
    }
    const int group = static_cast<int>(problem.scalar("group"));
    auto kernel =
        std::make_shared<WeightKernel>(std::move(metadata), group, *std::move(program), std::move(estimate_us));
    if (const Support support = kernel->supports(problem); support) {
      found.kernels.push_back(std::move(kernel));
    } else {
      found.refused.push_back({name, support.refusal()});
    }
  }

  /// Rows, warps along k, chunks at once and CTAs per SM of the kernels for a few tokens. With groups of 128, none
  /// spills.
  using GemvDesign = std::array<int, 4>;
  static constexpr std::array<GemvDesign, 2> kGemvDesigns{{{16, 8, 4, 2}, {16, 16, 2, 2}}};

  /// Adds the kernels for up to 8 tokens; for 16, weight_gemm() is twice as fast (H200, 2026-11-26). `others` are its
  /// designs.
  static void discover_gemv(const op::Custom& problem, const Target& target,
                            const std::vector<program::WeightGemmDescription>& others, registry::Discovery& found) {
    constexpr int kMostTokens = 8;
    if (others.empty() || problem.extent("tokens") > kMostTokens) return;
    const program::WeightGemmDescription& first = others.front();
    for (const auto& [rows, warps_k, unrolled, ctas_per_sm] : kGemvDesigns) {
      const program::WeightGemvDescription about{
          .target = target,
          .weights = first.weights,
          .activations = first.activations,
          .scales = first.scales,
          .d = first.d,
          .group = first.group,
          .tile_n = kMostTokens,
          .rows = rows,
          .warps_k = warps_k,
          .unrolled = unrolled,
          .ctas_per_sm = ctas_per_sm,
          .whole_chunks = problem.extent("inputs") % program::weight_packing(first.weights).chunk_k == 0};
      const std::string name = kernel_name(about);
      add_kernel(
          problem, metadata_of(name, operands_of(problem, false), target), program::weight_gemv(name, about),
          [about](const op::Custom& timed) { return gemv_us(timed, about.target, about.weights); }, found);
    }
  }

  /// The kernels to offer.
  static std::vector<program::WeightGemmDescription> descriptions(const op::Custom& problem, const Target& target) {
    program::WeightGemmDescription about;
    about.target = target;
    about.weights = weights_of(problem.tensor("weights").dtype);
    about.activations = problem.tensor("x").dtype;
    about.scales = problem.tensor("scales").dtype;
    about.d = problem.tensor("out").dtype;
    about.group = static_cast<int>(problem.scalar("group"));
    about.stores_by_tma = has_aligned_lines(problem.tensor("out"));
    return program::weight_gemm_designs(about, extents_of(problem), kMaxKernels);
  }

  /// The operands that the kernels need, with the types of the problem's.
  static std::vector<op::OperandSignature> operands_of(const op::Custom& problem, bool stores_by_tma) {
    std::vector<op::OperandSignature> operands;
    for (const op::OperandDeclaration& declared : problem.operation->operands()) {
      const DType element = problem.tensor(declared.name).dtype;
      const int rank = static_cast<int>(declared.shape.size());
      const bool is_any = declared.access != op::Access::read && !stores_by_tma;
      operands.push_back(
          {declared.name, declared.access, element, rank, rank - 1, is_any ? 1 : kTmaAlignment / bytes(element)});
    }
    return operands;
  }
};

}  // namespace

op::OperationPtr weight_gemm_operation() {
  static const op::OperationPtr operation = std::make_shared<WeightGemm>();
  return operation;
}

std::unique_ptr<registry::Provider> make_weight_gemm_provider() { return std::make_unique<WeightGemmProvider>(); }

}  // namespace tilewright::kernels
