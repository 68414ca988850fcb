// cuBLASLt, opened at run time: the vendor's side of the comparison.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "contender.hpp"
#include "operand_sets.hpp"

namespace tilewright::bench {

struct CublasLtFunctions;

/// What cuBLASLt is asked for.
enum class MatmulForm {
  plain,    // D of plain(problem)
  product,  // the product at stored_product(), for a kernel that applies the epilogue
  fused,    // with the epilogue that its row names
};

class CublasLt {
 public:
  /// @param path of libcublasLt; empty: searched like NVRTC.
  /// @throws ToolchainNotFound, or DriverError when it cannot be initialised on the device
  CublasLt(std::shared_ptr<runtime::CudaDevice> device, const std::string& path, std::size_t workspace_bytes);
  CublasLt(const CublasLt&) = delete;
  CublasLt& operator=(const CublasLt&) = delete;
  ~CublasLt();

  /// "13.1.0 (/usr/local/cuda/lib64/libcublasLt.so.13)"
  std::string version() const;

  /// Up to `most` algorithms for the problem, the heuristic's first choice first, each a contender named
  /// "cublaslt". They use the memory of `sets`, which must outlive them as this object must. Empty when cuBLASLt has
  /// none for these types and layouts. @pre the problem has an epilogue, with one of cuBLASLt, where it is to be fused
  std::vector<Contender> contenders(const Problem& problem, const OperandSets& sets, int most,
                                    MatmulForm form = MatmulForm::plain);

 private:
  std::shared_ptr<runtime::CudaDevice> device_;
  std::string path_;
  std::unique_ptr<const CublasLtFunctions> functions_;
  void* handle_ = nullptr;
  runtime::DeviceBuffer workspace_;
};

}  // namespace tilewright::bench
