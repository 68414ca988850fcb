#include "tilewright/kernels/requirements.hpp"

#include <variant>

namespace tilewright::kernels {

Support check_target(const Target& target, const Target& needed) {
  if (target.has_features_of(needed)) return {};
  return refuse("needs {}, the target is {}", needed.name(), target.name()).as(RefusalCode::architecture);
}

Result<const op::GemmSignature*> gemm_of(const op::Signature& signature) {
  const op::GemmSignature* const gemm = signature.gemm();
  if (gemm == nullptr)
    return refuse("computes only GEMMs, but {} is not one", signature.operation).as(RefusalCode::operation);
  if (const Support valid = op::validate(*gemm); !valid) return valid.refusal();
  return gemm;
}

Result<plan::FlatDesign> flat_design_of(const plan::Design& design) {
  if (const auto* const flat = std::get_if<plan::FlatDesign>(&design)) return *flat;
  return refuse("the design is one of another family").as(RefusalCode::design);
}

}  // namespace tilewright::kernels
