// The family of convolutions whose groups have few channels, and of the gradients of their inputs.
#include "tilewright/plan/group_conv.hpp"

#include "tilewright/kernels/flat_family.hpp"
#include "tilewright/kernels/list.hpp"
#include "tilewright/lower/cuda/group_conv.hpp"

namespace tilewright::kernels {
namespace {

struct GroupConvFamily : FlatFamily<plan::GroupConvPlan, plan::group_conv_designs, plan::plan_group_conv> {
  static constexpr const char* kName = "group_conv";
  static constexpr const char* kNoDesign =
      "computes convolutions of f16 and bf16 with 8 to 64 channels, or in groups of as many, and input gradients with "
      "a stride of 1";

  static std::string lower(const Plan& plan, std::string_view symbol) { return lower::cuda::lower(plan, symbol); }
};

}  // namespace

std::unique_ptr<registry::Provider> make_group_conv_provider() {
  return std::make_unique<PlannedGemmProvider<GroupConvFamily>>();
}

}  // namespace tilewright::kernels
