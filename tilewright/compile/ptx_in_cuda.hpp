// A kernel in PTX as a CUDA kernel whose body is one asm statement, so that NVRTC can assemble it where there is no
// ptxas. NVRTC compiles it as a whole program, as ptxas does, and honours setmaxnreg.
#pragma once

#include <string>
#include <string_view>

#include "tilewright/base/support.hpp"

namespace tilewright::compile {

/// The CUDA C++ text of the kernel `symbol`. The PTX is LLVM's: one entry, whose parameters are one struct by value,
/// and whose only variable is the external shared memory. Line information is dropped. Anything else is refused.
Result<std::string> ptx_in_cuda(std::string_view ptx, std::string_view symbol);

}  // namespace tilewright::compile
