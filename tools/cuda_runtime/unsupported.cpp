// Every function of CUDA 13.0 that is not emulated returns an error, and is named on stderr and in the report.
#include <string>

#include "tools/cuda_runtime/machine.hpp"

namespace tilewright::cuda_runtime {
namespace {

int refuse(const char* function) {
  Machine& machine = Machine::get();
  const MachineLock lock(machine);
  machine.note_unsupported(function);
  return CUDA_ERROR_NOT_SUPPORTED;
}

/// Writes what the last launches have added to the report, when the program ends.
struct AtExit {
  ~AtExit() {
    Machine& machine = Machine::get();
    const MachineLock lock(machine);
    machine.write_report();
  }
} const at_exit;

}  // namespace

// The headers of CUDA, which machine.hpp includes, declare these functions with parameters; the names in the object
// file differ from those in C++, so that the declarations do not clash.
#define UNSUPPORTED(function)                                                                               \
  extern "C" __attribute__((visibility("default"))) int tilewright_unsupported_##function() asm(#function); \
  int tilewright_unsupported_##function() { return refuse(#function); }
#include "tools/cuda_runtime/unsupported_functions.inc"

}  // namespace tilewright::cuda_runtime
