// The driver's functions for stream capture and CUDA graphs, which the runtime does not wrap.
#pragma once

#include <dlfcn.h>

#include "tilewright/runtime/driver.hpp"

namespace tilewright::runtime {

struct Capture {
  Capture() {
    void* const driver = dlopen("libcuda.so.1", RTLD_NOW);
    const auto find = [driver](auto& function, const char* symbol) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(driver, symbol));
    };
    find(begin, "cuStreamBeginCapture_v2");
    find(end, "cuStreamEndCapture");
    find(instantiate, "cuGraphInstantiateWithFlags");
    find(launch, "cuGraphLaunch");
    find(destroy_executable, "cuGraphExecDestroy");
    find(destroy, "cuGraphDestroy");
  }
  int (*begin)(StreamHandle, int);  // the int is the capture mode: 0 global, 1 thread-local, 2 relaxed
  int (*end)(StreamHandle, void** graph);
  int (*instantiate)(void** executable, void* graph, unsigned long long flags);
  int (*launch)(void* executable, StreamHandle);
  int (*destroy_executable)(void* executable);
  int (*destroy)(void* graph);
};

}  // namespace tilewright::runtime
