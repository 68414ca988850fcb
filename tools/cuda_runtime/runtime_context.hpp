// Whether the runtime has made the primary context current.
#pragma once

namespace tilewright::cuda_runtime {

/// Whether this thread has called a function of the runtime, which makes the primary context current.
extern thread_local bool runtime_has_context;

}  // namespace tilewright::cuda_runtime
