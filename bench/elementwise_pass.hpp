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
/// outputs: vectors of 16 bytes, several in flight a thread, a grid that strides over the matrix.
class ElementwisePass {
 public:
  /// Compiled for the problem's types and alignments; refused, with the number, where rows are not whole vectors.
  /// @param calls the problem over each operand set, `products` where each set has its product: D itself, or memory
  /// that overlaps nothing. Their memory must outlive the pass.
  /// @throws CompileError, ToolchainNotFound, DriverError
  static Result<ElementwisePass> make(engine::Engine& engine, const std::vector<op::Gemm>& calls,
                                      const std::vector<op::Tensor>& products);

  /// Enqueues the pass over operand set `set`.
  void run(int set, runtime::StreamHandle stream) const;

 private:
  /// A kernel and its launch on each set. There is one; an epilogue that reduces, to a sum of each row or to the
  /// largest magnitude, will take further ones, which clear and finish what the first adds up.
  struct Step {
    std::shared_ptr<runtime::LoadedKernel> kernel;
    std::vector<plan::Launch> launches;
  };

  std::vector<Step> steps_;
};

/// The text of the kernel "elementwise_pass". @pre op::validate(gemm), D row-major
std::string elementwise_text(const op::Gemm& gemm, DType product);

}  // namespace tilewright::bench
