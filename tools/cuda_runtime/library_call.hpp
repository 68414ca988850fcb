// Work of a CUDA library, such as cuBLAS, in a stream. It is computed on the host.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "tilewright/emulator/footprint.hpp"

namespace tilewright::cuda_runtime {

class Machine;

/// Lines of bytes in device memory.
struct StridedBytes {
  CUdeviceptr begin = 0;
  std::size_t line = 0;   // bytes of a line
  std::size_t pitch = 0;  // bytes from one line to the next
  std::size_t lines = 1;
};

/// The device memory that a library's function accesses. Each access must be declared before it is made.
class LibraryMemory {
 public:
  LibraryMemory(Machine& machine, std::string function) : machine_(machine), function_(std::move(function)) {}

  /// Reports a finding, and returns false, if the bytes are not all allocated. Also reports bytes that no one has
  /// written. `what` is the argument's name, for the findings.
  bool reads(const std::string& what, const StridedBytes& bytes);
  bool writes(const std::string& what, const StridedBytes& bytes);

  const emulator::Footprint& footprint() const { return footprint_; }

 private:
  bool is_allocated(const std::string& what, const StridedBytes& bytes, const char* verb);

  Machine& machine_;
  std::string function_;
  emulator::Footprint footprint_;
};

struct LibraryCall {
  std::string function;  // that the program has called
  std::string key;       // the same for calls with the same arguments; empty: the call is never left out
  /// Returns without an effect if an access is not allowed.
  std::function<void(LibraryMemory&)> run;
};

}  // namespace tilewright::cuda_runtime
