// A user-defined operation that is a tensor contraction: D[...] = alpha * sum of A[...] * B[...] over the extents that
// A and B share and D lacks. As in an einsum, the names of the extents determine the modes m, n, k and batch.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "tilewright/op/custom.hpp"

namespace tilewright::op {

/// Example: a GEMM with a transposed result has the operands {"a", {"m", "k"}}, {"b", {"k", "n"}} and
/// {"out", {"n", "m"}, Access::write}, and the product {"a", "b", "out"}. Operands whose modes do not
/// coalesce to one stride are folded; see OperandAccess.
class ProductOperation final : public Operation {
 public:
  /// `product` has the names of A, B and D; there are no other operands. The only scalar allowed is "alpha", which
  /// scales the result.
  /// @throws InvalidArgument like Operation, and if an extent is in one operand only, D has an extent that neither A
  /// nor B has, or one has an extent twice or as a number
  ProductOperation(std::string name, std::vector<OperandDeclaration> operands,
                   const std::array<std::string, 3>& product, std::vector<NamedScalar> scalars = {});

  /// Refuses element types that a GEMM does not support.
  Support check(const Custom& problem) const override;
  Result<GemmView> view(const Custom& problem) const override;

 private:
  struct Modes {
    std::vector<std::string> m, n, k, batch;
  };
  OperandView operand(const Custom& problem, std::size_t index, const std::vector<std::string>& rows,
                      const std::vector<std::string>& columns) const;

  std::array<std::size_t, 3> product_{};  // operands of A, B and D
  Modes modes_;
  std::array<Epilogue, 3> epilogues_;  // for the compute types f32, f64 and s32
};

}  // namespace tilewright::op
