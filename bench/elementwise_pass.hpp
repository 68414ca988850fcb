// An epilogue as a kernel of its own: what must follow the product of a library that does not fuse it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "problem.hpp"
#include "tilewright/engine/engine.hpp"
#include "tilewright/plan/launch.hpp"

namespace tilewright::bench {

/// Reads the stored product once, computes the epilogue's graph as our GEMM kernels do, and stores D and the further
/// outputs: vectors of 16 bytes, several in flight a thread, a grid that strides over the matrix. A D that is the
/// product, and lies where that is, is not stored again. Where columns are paired, D's vectors have half as many
/// elements as the product's.
///
/// What the epilogue reduces is reduced by the same kernel: to a result for each row with a CTA for each row, always in
/// the same order; to the largest magnitude of all by an atomic maximum of each CTA's, after run() has cleared it.
class ElementwisePass {
 public:
  /// Compiled for the problem's types and alignments; refused, with the number, where rows are not whole vectors, and
  /// where the epilogue reduces to anything else.
  /// @param calls the problem over each operand set, `products` where each set has its product: D itself, where that
  /// has as many columns, or memory that overlaps nothing. Their memory must outlive the pass.
  /// @throws CompileError, ToolchainNotFound, DriverError
  static Result<ElementwisePass> make(engine::Engine& engine, const std::vector<op::Gemm>& calls,
                                      const std::vector<op::Tensor>& products);

  /// Enqueues the pass over operand set `set`.
  void run(int set, runtime::StreamHandle stream) const;

 private:
  /// On one set.
  struct Call {
    plan::Launch launch;
    std::vector<std::uint64_t> maxima;  // addresses of an f32 each
  };

  std::shared_ptr<runtime::Device> device_;
  std::shared_ptr<runtime::LoadedKernel> kernel_;
  std::vector<Call> calls_;
};

/// The text of the kernel "elementwise_pass". @pre op::validate(gemm), D row-major
std::string elementwise_text(const op::Gemm& gemm, const op::Tensor& product);

}  // namespace tilewright::bench
