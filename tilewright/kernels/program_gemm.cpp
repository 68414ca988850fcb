// GEMM kernels that are written as programs. Both families have the same programs: cuda_program prints them as CUDA
// C++, mlir as MLIR.
#include "tilewright/program/gemm.hpp"

#include "tilewright/compile/toolchain.hpp"
#include "tilewright/kernels/list.hpp"
#include "tilewright/kernels/planned_gemm.hpp"
#include "tilewright/lower/cuda/program.hpp"
#include "tilewright/lower/mlir/program.hpp"

namespace tilewright::kernels {
namespace {

/// A plan with its program, whose name is that of the kernel only where it is printed.
struct PlannedProgram {
  plan::ProgramGemmPlan plan;
  program::Program program;
};

plan::Launch launch(const PlannedProgram& planned, const op::GemmView& view) {
  return program::launch(planned.program, planned.plan, view);
}

/// Programs with cp.async take longer in CUDA C++ than the cost model predicts, which does not count the addresses that
/// NVRTC computes for each copy: 2.0 to 2.4 times as long in twelve products of 4096 and more (H200, 2026-11-24; H100,
/// 2026-11-26). MLIR's take 0.86 to 1.13 times as long. The larger factor stands for all, so that none is chosen
/// instead of a kernel of sm90_gemm that is as fast.
constexpr double kCopiesInCuda = 2.2, kCopiesInMlir = 1.13;

template <compile::Language kLanguageOfText>
struct ProgramGemmFamily {
  using Design = plan::ProgramGemmDesign;
  using Sketch = plan::ProgramGemmPlan;
  using Plan = PlannedProgram;
  static constexpr compile::Language kLanguage = kLanguageOfText;
  static constexpr const char* kName = kLanguage == compile::Language::mlir ? "mlir" : "cuda_program";
  static constexpr Target kNeeds = kSm90a;
  static constexpr const char* kNoDesign = "there is no design";

  static Support is_available() {
    if constexpr (kLanguage == compile::Language::mlir) {
      static const bool is_found = compile::find_mlir(compile::capture_environment()).path.has_value();
      if (!is_found) {
        return refuse("needs {}, which was not found; to install it: {}", compile::kMlirLibrary, compile::kInstallMlir)
            .as(RefusalCode::provider);
      }
    }
    return {};
  }

  static Support accepts(const op::GemmSignature& signature) { return plan::check_functions(signature.epilogue); }
  static std::vector<Design> designs(const op::GemmView& /*view*/, const op::GemmSignature& signature,
                                     const Target& target, const std::optional<plan::SumOrder>& /*order*/) {
    return plan::program_gemm_designs(signature, target);
  }
  /// The k of a tile is the same in all designs, so that the order is that of every mix with wgmma.
  static std::optional<Design> invariant_design(const op::GemmSignature& signature, const Target& target) {
    return plan::program_gemm_designs(signature, target).front();
  }
  static Result<Design> design(const plan::Design& given, const op::GemmSignature& signature) {
    return plan::program_gemm_design(given, signature);
  }
  static Result<Sketch> sketch(const op::GemmSignature& signature, const Design& design) {
    return plan::plan_program_gemm(signature, design);
  }
  static Result<Plan> plan(const op::GemmSignature& signature, const Design& design) {
    Result<Sketch> plan = sketch(signature, design);
    if (!plan) return plan.refusal();
    program::Program program = program::gemm("program", *plan);
    return Plan{*std::move(plan), std::move(program)};
  }
  static std::string lower(const Plan& plan, std::string_view symbol) {
    program::Program named = plan.program;
    named.symbol = symbol;
    return kLanguage == compile::Language::mlir ? lower::mlir::lower(named) : lower::cuda::lower(named);
  }
  static double estimate_us(const Sketch& sketch, const op::GemmView& view) {
    const double us = plan::estimate_us(sketch, view);
    if (sketch.mix != plan::AtomMix::cp_async_wgmma) return us;
    return us * (kLanguage == compile::Language::mlir ? kCopiesInMlir : kCopiesInCuda);
  }
};

}  // namespace

std::unique_ptr<registry::Provider> make_cuda_program_provider() {
  return std::make_unique<PlannedGemmProvider<ProgramGemmFamily<compile::Language::cuda>>>();
}

std::unique_ptr<registry::Provider> make_mlir_provider() {
  return std::make_unique<PlannedGemmProvider<ProgramGemmFamily<compile::Language::mlir>>>();
}

}  // namespace tilewright::kernels
