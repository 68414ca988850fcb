// The family of forward convolutions of images with few channels.
#include "tilewright/plan/stem_conv.hpp"

#include "tilewright/kernels/flat_family.hpp"
#include "tilewright/kernels/list.hpp"
#include "tilewright/lower/cuda/stem_conv.hpp"

namespace tilewright::kernels {
namespace {

struct StemConvFamily : FlatFamily<plan::StemConvPlan, plan::stem_conv_designs, plan::plan_stem_conv> {
  static constexpr const char* kName = "stem_conv";
  static constexpr const char* kNoDesign =
      "computes forward convolutions of f16 and bf16 images with at most 8 channels, without groups";

  static std::string lower(const Plan& plan, std::string_view symbol) { return lower::cuda::lower(plan, symbol); }
};

}  // namespace

std::unique_ptr<registry::Provider> make_stem_conv_provider() {
  return std::make_unique<PlannedGemmProvider<StemConvFamily>>();
}

}  // namespace tilewright::kernels
