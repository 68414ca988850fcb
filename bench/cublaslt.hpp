// cuBLASLt, loaded at run time: the baseline of the comparison.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "contender.hpp"
#include "operand_alignment.hpp"
#include "operand_sets.hpp"
#include "tilewright/runtime/cuda_device.hpp"

namespace tilewright::bench {

struct CublasLtFunctions;

/// The problem that one call of cuBLASLt computes.
enum class MatmulForm {
  plain,    // D of plain(problem)
  product,  // the product at stored_product(), to which another kernel applies the epilogue
  fused,    // the problem with the cuBLASLt epilogue of its case
};

class CublasLt {
 public:
  /// @param path of libcublasLt; if empty, the library is searched in the same places as NVRTC.
  /// @throws ToolchainNotFound, or DriverError if the library cannot be initialised on the device
  CublasLt(std::shared_ptr<runtime::CudaDevice> device, const std::string& path, std::size_t workspace_bytes);
  CublasLt(const CublasLt&) = delete;
  CublasLt& operator=(const CublasLt&) = delete;
  ~CublasLt();

  /// "13.1.0 (/usr/local/cuda/lib64/libcublasLt.so.13)"
  std::string version() const;

  /// Up to `most` algorithms for the problem, in the order of the heuristic, each as a contender named "cublaslt". They
  /// use the memory of `sets`. `sets` and this object must outlive them. Empty if cuBLASLt has no algorithm for these
  /// types and layouts. The algorithms use at most
  /// `most_workspace_bytes` of the workspace. @pre for MatmulForm::fused, the problem has an epilogue that cuBLASLt has
  /// too
  std::vector<Contender> contenders(const Problem& problem, const OperandSets& sets, int most,
                                    MatmulForm form = MatmulForm::plain,
                                    std::size_t most_workspace_bytes = kWholeWorkspace);

 private:
  std::shared_ptr<runtime::CudaDevice> device_;
  std::string path_;
  std::unique_ptr<const CublasLtFunctions> functions_;
  void* handle_ = nullptr;
  runtime::DeviceBuffer workspace_;
};

}  // namespace tilewright::bench
