// An epilogue as a separate kernel, which a library needs after its GEMM if it does not fuse the epilogue.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "problem.hpp"
#include "tilewright/engine/engine.hpp"
#include "tilewright/plan/launch.hpp"

namespace tilewright::bench {

/// Reads the stored product once, computes the epilogue's graph with the code of Tilewright's GEMM kernels, and stores
/// D and the auxiliary outputs. It uses a grid-stride loop over vectors of 16 bytes, several in flight per thread. If D
/// is the product and has its address, D is not stored again. In a gated epilogue, the vectors of D have half as many
/// elements as those of the product.
///
/// The same kernel computes the epilogue's reductions. Row reductions use one CTA per row and always add in the same
/// order. The largest magnitude of all elements is an atomic maximum over the CTAs' results; run() clears it first.
class ElementwisePass {
 public:
  /// Compiles the kernel for the problem's types and alignments. Refused if rows are not whole vectors, or if the
  /// epilogue has other reductions than those above.
  /// @param calls the problem on each operand set
  /// @param products the product of each operand set: D itself if it has as many columns, or memory that overlaps
  /// nothing. The memory of both must outlive the pass.
  /// @throws CompileError, ToolchainNotFound, DriverError
  static Result<ElementwisePass> make(engine::Engine& engine, const std::vector<op::Gemm>& calls,
                                      const std::vector<op::Tensor>& products);

  /// Enqueues the pass over operand set `set`.
  void run(int set, runtime::StreamHandle stream) const;

 private:
  /// The launch on one operand set.
  struct Call {
    plan::Launch launch;
    std::vector<std::uint64_t> maxima;  // addresses of f32 values that run() clears
  };

  std::shared_ptr<runtime::Device> device_;
  std::shared_ptr<runtime::LoadedKernel> kernel_;
  std::vector<Call> calls_;
};

/// The text of the kernel "elementwise_pass". @pre op::validate(gemm), D row-major
std::string elementwise_text(const op::Gemm& gemm, const op::Tensor& product);

}  // namespace tilewright::bench
