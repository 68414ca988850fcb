// The family of GEMMs with few rows or columns.
#include "tilewright/plan/skinny_gemm.hpp"

#include "tilewright/kernels/flat_family.hpp"
#include "tilewright/kernels/list.hpp"
#include "tilewright/lower/cuda/skinny_gemm.hpp"

namespace tilewright::kernels {
namespace {

struct SkinnyGemmFamily : FlatFamily<plan::SkinnyGemmPlan, plan::skinny_gemm_designs, plan::plan_skinny_gemm> {
  static constexpr const char* kName = "skinny_gemm";
  static constexpr const char* kNoDesign = "computes at most 8 rows or 8 columns";

  static std::string lower(const Plan& plan, std::string_view symbol) { return lower::cuda::lower(plan, symbol); }
};

}  // namespace

std::unique_ptr<registry::Provider> make_skinny_gemm_provider() {
  return std::make_unique<PlannedGemmProvider<SkinnyGemmFamily>>();
}

}  // namespace tilewright::kernels
