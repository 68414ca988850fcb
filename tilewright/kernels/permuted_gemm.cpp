// The family that computes contractions by copies of operands and a GEMM of another family: operands that are no plain
// matrices are copied to an order of modes in which they are, and D is copied from such an order.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tilewright/kernels/copying_kernel.hpp"
#include "tilewright/kernels/list.hpp"
#include "tilewright/kernels/requirements.hpp"
#include "tilewright/lower/cuda/permute.hpp"
#include "tilewright/op/permuted_contraction.hpp"
#include "tilewright/plan/permute.hpp"
#include "tilewright/registry/provider.hpp"

namespace tilewright::kernels {
namespace {

constexpr const char* kName = "permuted_gemm";
constexpr std::uint64_t kAnyWorkspace = CopyingKernel::kAnyWorkspace;
constexpr std::int64_t kMaxCopiedBytes = CopyingKernel::kMaxCopiedBytes;

/// The function that makes one copy, as an index of Kernel::symbol_suffixes(), and its plan.
struct CopyFunction {
  std::size_t kernel = 0;
  plan::PermutePlan plan;
};

/// "A is copied to K-major order (mn|ij) first: 113799168 bytes, estimated 59.3 us, because ..."
std::string remark(const op::OperandCopy& copy, const plan::PermutePlan& plan, const op::Contraction& contraction,
                   const op::GemmView& given) {
  const bool is_input = copy.role == "A" || copy.role == "B";
  const bool is_by_k = is_input && contraction.modes_d.find(copy.order[0]) == std::string::npos;
  const char* const order = is_by_k ? "K-major" : copy.role == "A" ? "M-major" : copy.role == "B" ? "N-major" : "row";
  const op::OperandView& operand = copy.role == "A"   ? given.a
                                   : copy.role == "B" ? given.b
                                   : copy.role == "C" ? given.c
                                                      : given.d;
  std::string reason = "the other operands then need no copies";
  if (operand.access == op::OperandAccess::folded) {
    reason = fmt::format("its rows have {} modes, its columns {}, and its vectors {} elements of {} bytes",
                         std::max(operand.rows.shape.rank(), 1), std::max(operand.columns.shape.rank(), 1),
                         op::describe_operand(operand, copy.role).alignment, bytes(operand.tensor.dtype));
  }
  const std::int64_t copied = op::elements(copy.permutation) * bytes(copy.permutation.to.dtype);
  return fmt::format("{} is copied {} {} order ({}) {}: {} bytes, estimated {:.1f} us ({}), because {}", copy.role,
                     copy.role == "D" ? "from" : "to", order, copy.order, copy.role == "D" ? "at the end" : "first",
                     copied, plan::estimate_us(plan, copy.permutation), plan::to_string(plan), reason);
}

/// The number of different functions that make the copies.
std::size_t functions_of(const std::vector<CopyFunction>& copies) {
  std::size_t functions = 0;
  for (const CopyFunction& copy : copies) functions = std::max(functions, copy.kernel);
  return functions;
}

class PermutedGemm final : public CopyingKernel {
 public:
  PermutedGemm(registry::KernelMetadata metadata, registry::KernelPtr inner, std::vector<CopyFunction> copies)
      : CopyingKernel(std::move(metadata), std::move(inner), functions_of(copies)), copies_(std::move(copies)) {}

  std::vector<std::string> remarks(const op::Problem& problem) const override {
    const op::PermutedContraction permuted = permute(problem, kAnyWorkspace).value_or_throw();
    const op::Contraction& contraction = std::get<op::Contraction>(problem);
    std::vector<std::string> remarks;
    const std::vector<op::OperandCopy> copies = all_copies(permuted);
    for (std::size_t i = 0; i < copies.size(); ++i) {
      if (copies[i].is_used) remarks.push_back(remark(copies[i], copies_[i].plan, contraction, op::view(contraction)));
    }
    remarks.push_back(fmt::format("the product is computed by {}, estimated {:.1f} us", inner().name(),
                                  inner().estimate_us(op::Problem(permuted.inner))));
    return remarks;
  }

 protected:
  Support do_supports(const op::Problem& problem) const override {
    if (!std::holds_alternative<op::Contraction>(problem))
      return refuse("computes only contractions, but the problem is a {}", op::operation_name(problem))
          .as(RefusalCode::operation);
    const Result<op::PermutedContraction> permuted = permute(problem, kAnyWorkspace);
    if (!permuted) return permuted.refusal();
    const std::vector<op::OperandCopy> copies = all_copies(*permuted);
    if (copies.size() != copies_.size())
      return refuse("makes {} copies, but the problem needs {}", copies_.size(), copies.size())
          .as(RefusalCode::epilogue);
    for (std::size_t i = 0; i < copies.size(); ++i) {
      const Support fits = plan::check_arguments(copies_[i].plan, copies[i].permutation);
      if (!fits) return refuse("{}: {}", copies[i].role, fits.reason()).as(fits.refusal().code).of(copies[i].role);
    }
    return inner().supports(op::Problem(permuted->inner));
  }

  CopiedProblem copied(const op::Problem& problem, std::uint64_t workspace) const override {
    op::PermutedContraction permuted = permute(problem, workspace).value_or_throw();
    CopiedProblem result{
        .inner = permuted.inner, .before = {}, .after = {}, .workspace_bytes = permuted.workspace_bytes};
    const std::vector<op::OperandCopy> copies = all_copies(permuted);
    for (std::size_t i = 0; i < copies.size(); ++i) {
      if (!copies[i].is_used) continue;
      const CopyFunction& function = copies_[i];
      (i < permuted.before.size() ? result.before : result.after)
          .push_back({function.kernel, plan::launch(function.plan, copies[i].permutation),
                      plan::estimate_us(function.plan, copies[i].permutation)});
    }
    return result;
  }

  std::string copy_text(std::size_t copy, std::string_view symbol) const override {
    return lower::cuda::lower(std::ranges::find(copies_, copy, &CopyFunction::kernel)->plan, symbol);
  }

  std::optional<plan::SumOrder> do_sum_order(const op::Problem& problem) const override {
    return inner().sum_order(op::Problem(permute(problem, kAnyWorkspace).value_or_throw().inner));
  }

 private:
  Result<op::PermutedContraction> permute(const op::Problem& problem, std::uint64_t workspace) const {
    return op::permute(std::get<op::Contraction>(problem), metadata().permuted, workspace, kMaxCopiedBytes);
  }

  std::vector<CopyFunction> copies_;  // in the order of all_copies()
};

std::vector<registry::ProviderPtr> inner_families() {
  std::vector<registry::ProviderPtr> families;
  families.push_back(make_sm90_gemm_provider());
  families.push_back(make_sm80_gemm_provider());
  families.push_back(make_skinny_gemm_provider());
  families.push_back(make_simt_gemm_provider());
  return families;
}

class PermutedGemmProvider final : public CopyingProvider {
 public:
  PermutedGemmProvider() : CopyingProvider(kName, "operands of a contraction", inner_families()) {}

  void discover(const op::Problem& problem, const Target& target, registry::Discovery& found) const override {
    const auto* const contraction = std::get_if<op::Contraction>(&problem);
    const auto refused = [&](const Refusal& refusal) { found.refused.push_back({kName, refusal}); };
    if (contraction == nullptr)
      return refused(
          refuse("copies operands of contractions only, but the problem is a {}", op::operation_name(problem))
              .as(RefusalCode::operation));
    if (contraction->is_empty() || !op::view(*contraction).reads_product)
      return refused(refuse("the call reads neither A nor B").as(RefusalCode::shape));
    if (!op::has_folded_operands(*contraction))
      return refused(
          refuse("every operand is a matrix or a strided batch, so that no copy helps").as(RefusalCode::strides));
    std::vector<Candidate> candidates = candidates_of(*contraction, target, found);
    std::ranges::stable_sort(candidates, {}, &Candidate::copies_us);
    double best_us = registry::kUnknownTime;
    std::vector<EstimatedKernel> kernels;
    for (const Candidate& candidate : candidates) {
      if (candidate.copies_us >= best_us) break;
      for (auto& [total_us, kernel] : kernels_of(candidate, *contraction, target)) {
        best_us = std::min(best_us, total_us);
        kernels.emplace_back(total_us, std::move(kernel));
      }
    }
    if (kernels.empty()) refused(refuse("no family computes the GEMM of the copies").as(RefusalCode::design));
    offer_fastest(std::move(kernels), kMaxKernels, found);
  }

 private:
  static constexpr std::size_t kMaxKernels = 8, kKernelsOfEach = 3;

  /// One choice of operands to copy.
  struct Candidate {
    op::PermutedOperands operands;
    op::PermutedContraction permuted;
    std::vector<CopyFunction> copies;
    double copies_us = 0;
  };

  /// Whether an operand that is folded in `given` is not in `permuted`, or is aligned better there.
  static bool improves(const op::GemmSignature& given, const op::GemmSignature& permuted) {
    const auto is_better = [](const op::TensorSignature& before, const op::TensorSignature& after) {
      return (before.folded_modes != 0 && after.folded_modes == 0) || after.alignment > before.alignment;
    };
    return is_better(given.a, permuted.a) || is_better(given.b, permuted.b) || is_better(given.d, permuted.d);
  }

  static std::vector<Candidate> candidates_of(const op::Contraction& contraction, const Target& target,
                                              registry::Discovery& found) {
    const op::GemmSignature given = op::describe(op::view(contraction));
    std::vector<Candidate> candidates;
    for (unsigned bits = 1; bits < 8; ++bits) {
      Candidate candidate{.operands = {(bits & 1U) != 0, (bits & 2U) != 0, (bits & 4U) != 0},
                          .permuted = {},
                          .copies = {},
                          .copies_us = 0};
      const auto refused = [&](const Refusal& refusal) {
        found.refused.push_back({fmt::format("{} of {}", kName, op::to_string(candidate.operands)), refusal});
      };
      Result<op::PermutedContraction> permuted =
          op::permute(contraction, candidate.operands, kAnyWorkspace, kMaxCopiedBytes);
      if (!permuted) {
        refused(permuted.refusal());
        continue;
      }
      candidate.permuted = *std::move(permuted);
      if (!improves(given, op::describe(op::view(candidate.permuted.inner)))) {
        refused(refuse("no operand becomes a matrix of one stride, or is aligned better").as(RefusalCode::strides));
        continue;
      }
      Support fits;
      std::size_t functions = 0;
      for (const op::OperandCopy& copy : all_copies(candidate.permuted)) {
        CopyFunction function{.kernel = 0, .plan = plan::plan_permute(copy.permutation, target)};
        if (fits) fits = plan::check_arguments(function.plan, copy.permutation);
        const auto same = std::ranges::find(candidate.copies, function.plan, &CopyFunction::plan);
        function.kernel = same == candidate.copies.end() ? ++functions : same->kernel;
        if (copy.is_used) candidate.copies_us += plan::estimate_us(function.plan, copy.permutation);
        candidate.copies.push_back(function);
      }
      if (fits) {
        candidates.push_back(std::move(candidate));
      } else {
        refused(fits.refusal());
      }
    }
    return candidates;
  }

  /// The kernels of other families that are the fastest for the GEMM of the copies, each with the copies, and the
  /// estimates of all steps.
  std::vector<EstimatedKernel> kernels_of(const Candidate& candidate, const op::Contraction& contraction,
                                          const Target& target) const {
    std::vector<EstimatedKernel> ranked =
        fastest_kernels(op::Problem(candidate.permuted.inner), target, kKernelsOfEach);
    const op::GemmSignature signature = op::describe(op::view(contraction));
    const std::string way = fmt::format("permuted_{}", op::to_string(candidate.operands));
    std::string functions;
    for (const CopyFunction& copy : candidate.copies) {
      functions +=
          fmt::format(" {} {} {} {}", copy.kernel, plan::to_string(copy.plan), copy.plan.coordinates, copy.plan.blocks);
    }
    for (auto& [total_us, kernel] : ranked) {
      total_us += candidate.copies_us;
      registry::KernelMetadata metadata = metadata_with_copies(*kernel, signature, way, functions);
      metadata.permuted = candidate.operands;
      kernel = std::make_shared<PermutedGemm>(std::move(metadata), std::move(kernel), candidate.copies);
    }
    return ranked;
  }
};

}  // namespace

std::unique_ptr<registry::Provider> make_permuted_gemm_provider() { return std::make_unique<PermutedGemmProvider>(); }

}  // namespace tilewright::kernels
