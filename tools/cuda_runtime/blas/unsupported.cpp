// Every function of cuBLAS and cuBLASLt that is not emulated returns CUBLAS_STATUS_NOT_SUPPORTED, and is named on
// stderr and in the report. CMake finds the names in cuBLAS' headers; functions that are emulated replace these, which
// are weak.
#include "tools/cuda_runtime/blas/blas_call.hpp"

namespace tilewright::cuda_runtime::blas {
namespace {

int refuse(const char* function) {
  Machine& machine = Machine::get();
  const MachineLock lock(machine);
  machine.note_unsupported(source_name(function));
  return CUBLAS_STATUS_NOT_SUPPORTED;
}

}  // namespace

// The names in the object file differ from those in C++, so that the headers' declarations do not clash.
#define UNSUPPORTED(function)                                                                                     \
  extern "C" __attribute__((visibility("default"), weak)) int tilewright_unsupported_##function() asm(#function); \
  int tilewright_unsupported_##function() { return refuse(#function); }
#include "blas_functions.inc"

}  // namespace tilewright::cuda_runtime::blas
