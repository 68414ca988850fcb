// An author's operation that is a sum of products: D[...] = alpha * sum of A[...] * B[...] over the extents that A and
// B share and D lacks. Its names of extents say which modes are m, n, k and batch, as an einsum does.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "tilewright/op/custom.hpp"

namespace tilewright::op {

/// A GEMM with a transposed result is slots {"a", {"m", "k"}}, {"b", {"k", "n"}}, {"out", {"n", "m"}, Access::write}
/// with the product {"a", "b", "out"}. GEMM families serve it where each mode of an operand has one stride.
class ProductOperation final : public Operation {
 public:
  /// `product`: the names of A, B and D among the slots, of which there are no others. A scalar "alpha", if there is
  /// one, scales the sums; there may be no other scalar.
  /// @throws InvalidArgument as Operation, and where an extent is in one slot only, D has an extent that neither A nor
  /// B has, a slot names an extent twice or as a number, or more than one extent is in all three slots
  ProductOperation(std::string name, std::vector<SlotDeclaration> slots, const std::array<std::string, 3>& product,
                   std::vector<NamedScalar> scalars = {});

  /// Refuses element types that no GEMM multiplies, and views that validate(const Gemm&) would refuse.
  Support check(const Custom& problem) const override;
  Result<GemmView> view(const Custom& problem) const override;

 private:
  struct Modes {
    std::vector<std::string> m, n, k, batch;
  };
  OperandView operand(const Custom& problem, std::size_t slot, const std::vector<std::string>& rows,
                      const std::vector<std::string>& columns) const;

  std::array<std::size_t, 3> product_{};  // slots of A, B and D
  Modes modes_;
  std::array<Epilogue, 3> epilogues_;  // that compute in f32, f64 and s32
};

}  // namespace tilewright::op
